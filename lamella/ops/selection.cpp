// Masks read for their size; unique elements from sorted ones.
#include "lamella/ops/selection.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella::ops {

namespace {

Tensor size_number(Dim size) {
  return Tensor(Value::size(DType::Int64, size));
}

Tensor flat(const Operand& x) {
  const Tensor& tensor = x.tensor();
  return reshape(x, Shape{element_count(tensor.shape())});
}

Tensor part(const Tensor& x, Dim start, Dim length) {
  return narrow(x, size_number(start), 0, Shape{length});
}

void require_tensor(const Operand& x, const char* op) {
  if (!x.is_tensor())
    throw Error(ErrorKind::Type, fmt::format("[{}] x must be a tensor", op), x.location());
}

// Whether each element of a vector differs from the one before it; the first one does.
Tensor run_starts(const Tensor& x) {
  const Dim size = x.shape()[0];
  Tensor first = broadcast_to(Tensor::scalar(DType::Bool, 1), Shape{size.is(0) ? 0 : 1});
  if (size.is(0) || size.is(1)) return first;
  const Tensor left = part(x, 0, size - 1), right = part(x, 1, size - 1);
  Tensor differs = not_equal(left, right);
  if (is_float(x.dtype())) {
    differs = logical_and(differs, logical_not(logical_and(isnan(left), isnan(right))));
  }
  return concat({first, differs}, 0);
}

// The number of the run that each element belongs to.
Tensor run_numbers(const Tensor& starts) {
  return cumsum(starts, 0) - 1;
}

Tensor run_lengths(const Tensor& begins, Dim size) {
  const Dim count = begins.shape()[0];
  if (count.is(0)) return begins;
  const Tensor end = reshape(size_number(size), Shape{1});
  return concat({part(begins, 1, count - 1), end}, 0) - begins;
}

}  // namespace

Tensor picked(const Operand& mask) {
  require_tensor(mask, "picked");
  if (mask.tensor().dtype() != DType::Bool) {
    throw Error(ErrorKind::Type,
                fmt::format("[picked] mask must be bool, got {}", text(mask.tensor().type())),
                mask.location());
  }
  const auto count = static_cast<int64_t>(sum(mask).item());
  return mask_positions(mask, Shape{count});
}

std::vector<Tensor> nonzero_by_axis(const Operand& x) {
  require_tensor(x, "nonzero");
  const Tensor& tensor = x.tensor();
  Tensor rest = picked(tensor.dtype() == DType::Bool ? x : Operand(not_equal(x, 0)));
  std::vector<Tensor> places(static_cast<size_t>(tensor.rank()));
  for (size_t axis = places.size(); axis-- > 0;) {
    const Tensor size = size_number(std::max<int64_t>(1, tensor.shape()[axis].value()));
    places[axis] = axis == 0 ? rest : mod(rest, size);
    rest = floor_divide(rest, size);
  }
  return places;
}

Tensor nonzero(const Operand& x) {
  require_tensor(x, "nonzero");
  if (x.tensor().rank() > 0) return stack(nonzero_by_axis(x), 1);
  return zeros_of({DType::Int64, Layout::RowMajor, {picked(not_equal(x, 0)).shape()[0], 0}});
}

Tensor masked_select(const Operand& x, const Operand& mask) {
  require_tensor(x, "masked_select");
  require_tensor(mask, "masked_select");
  const Shape shape = broadcast_shapes(x.tensor().shape(), mask.tensor().shape(), "masked_select");
  const Tensor positions = picked(broadcast_to(mask, shape));
  return gather(flat(broadcast_to(x, shape)), positions, 0, false, "masked_select");
}

Unique unique(const Operand& x) {
  require_tensor(x, "unique");
  const std::vector<Tensor> sorted = sort(flat(x));
  const Tensor starts = run_starts(sorted[0]), begins = picked(starts);
  const Tensor inverse = scatter(zeros_of(sorted[1].type()), sorted[1], run_numbers(starts), 0,
                                 "set", false, "unique");
  return {gather(sorted[0], begins, 0, false, "unique"), reshape(inverse, x.tensor().shape()),
          run_lengths(begins, sorted[0].shape()[0])};
}

Unique unique_consecutive(const Operand& x) {
  require_tensor(x, "unique_consecutive");
  const Tensor elements = flat(x), starts = run_starts(elements), begins = picked(starts);
  return {gather(elements, begins, 0, false, "unique_consecutive"),
          reshape(run_numbers(starts), x.tensor().shape()),
          run_lengths(begins, elements.shape()[0])};
}

// The operator takes as many sizes as a shape has; more of them are split as groups first, so that
// the gradient stays a few concatenations.
std::vector<Tensor> split_into(const Operand& x, const std::vector<Dim>& sizes, int64_t axis) {
  require_tensor(x, "split");
  // One size alone would mean parts of that size.
  if (sizes.size() == 1 && sizes[0] != x.tensor().size(axis)) {
    throw Error(
        ErrorKind::Value,
        fmt::format("[split] sizes add up to {}, but axis {} has {} (x: {})", sizes[0].text(), axis,
                    x.tensor().size(axis).text(), text(x.tensor().type())),
        x.location());
  }
  if (sizes.size() <= static_cast<size_t>(kMaxRank)) {
    return split(x, Shape(sizes.begin(), sizes.end()), axis);
  }
  const size_t in_group = (sizes.size() + kMaxRank - 1) / kMaxRank;
  std::vector<std::vector<Dim>> groups;
  Shape wholes;
  for (size_t begin = 0; begin < sizes.size(); begin += in_group) {
    const size_t end = std::min(sizes.size(), begin + in_group);
    groups.emplace_back(sizes.begin() + static_cast<std::ptrdiff_t>(begin),
                        sizes.begin() + static_cast<std::ptrdiff_t>(end));
    Dim whole = 0;
    for (Dim size : groups.back()) whole = whole + size;
    wholes.push_back(whole);
  }
  const std::vector<Tensor> pieces = split(x, wholes, axis);
  std::vector<Tensor> parts;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (Tensor& one : split_into(pieces[i], groups[i], axis)) parts.push_back(std::move(one));
  }
  return parts;
}

}  // namespace lamella::ops
