// Indexing, as views and gathers; writing, as the same steps walked back.
#include "lamella/ops/index.h"

#include <functional>
#include <limits>

#include "lamella/ops/functions.h"
#include "lamella/ops/selection.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// How a result is written back: x before the step, and what the step's result shall be.
using WriteBack = std::function<Tensor(const Tensor& x, const Tensor& part)>;

// x seen through indices, and the way back.
class Path {
 public:
  Path(const Tensor& x, const SourceLocation& location) : x_(x), location_(location) {}

  const Tensor& tensor() const { return x_; }
  Operand at_caller(const Tensor& x) const { return Operand(x).at(location_); }
  Operand number(int64_t value) const { return Operand(value).at(location_); }

  void narrow(int64_t axis, int64_t start, int64_t length, int64_t step) {
    const Operand first = number(start);
    step_to(ops::narrow(at_caller(x_), first, axis, Shape{length}, step),
            [=](const Tensor& x, const Tensor& part) {
              return ops::narrow_update(x, first, part, axis, step);
            });
  }
  void reshape(const Shape& shape) {
    if (shape == x_.shape()) return;
    step_to(ops::reshape(at_caller(x_), shape),
            [](const Tensor& x, const Tensor& part) { return ops::reshape(part, x.shape()); });
  }
  void transpose(const Axes& axes) {
    Axes inverse(axes.size(), 0);
    bool moves = false;
    for (size_t i = 0; i < axes.size(); ++i) {
      inverse[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
      moves = moves || axes[i] != static_cast<int64_t>(i);
    }
    if (!moves) return;
    step_to(ops::transpose(at_caller(x_), axes),
            [=](const Tensor&, const Tensor& part) { return ops::transpose(part, inverse); });
  }

  // The whole, with what this path leads to replaced.
  Tensor write(Tensor part) const {
    for (size_t i = steps_.size(); i-- > 0;) part = steps_[i].write(steps_[i].before, part);
    return part;
  }

 private:
  struct Step {
    Tensor before;
    WriteBack write;
  };
  void step_to(Tensor next, WriteBack write) {
    steps_.push_back({x_, std::move(write)});
    x_ = std::move(next);
  }

  Tensor x_;
  SourceLocation location_;
  std::vector<Step> steps_;
};

// The elements of a slice of an axis, as Python's slice.indices.
struct Range {
  int64_t start, length, step;

  Range(const Slice& slice, int64_t size) {
    step = slice.step.value_or(1);
    if (step == 0) fail(ErrorKind::Value, "[index] the step of a slice must not be 0");
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
    const auto bounded = [&](int64_t at) {
      return std::clamp(at < 0 ? at + size : at, lowest, highest);
    };
    start = slice.start ? bounded(*slice.start) : (step > 0 ? lowest : highest);
    const int64_t stop = slice.stop ? bounded(*slice.stop) : (step > 0 ? highest : lowest);
    const int64_t span = step > 0 ? stop - start : start - stop;
    const int64_t stride = step > 0 ? step : -step;
    length = span <= 0 ? 0 : (span + stride - 1) / stride;
    if (length == 0) start = 0;
  }
};

Tensor combined(const Tensor& current, const Tensor& value, ops::Update update) {
  switch (update) {
    case ops::Update::Set:
      return value;
    case ops::Update::Add:
      return current + value;
    case ops::Update::Multiply:
      return current * value;
    case ops::Update::Minimum:
      return ops::minimum(current, value);
    case ops::Update::Maximum:
      return ops::maximum(current, value);
  }
  return value;
}

class Indexing {
 public:
  Indexing(const Operand& x, const std::vector<Index>& indices)
      : path_(x.tensor(), x.location()), indices_(expanded(indices, x.tensor())) {
    walk();
  }

  Tensor read() const {
    if (positions_.empty()) return path_.tensor();
    return ops::gather(path_.at_caller(path_.tensor()), places_, axis_, false, "index");
  }

  Tensor update(const Operand& value, ops::Update update) const {
    const Tensor current = path_.tensor();
    const DType dtype = current.dtype();
    const Tensor given =
        value.is_tensor() ? ops::cast(value, dtype) : Tensor(value.number_as(dtype));
    const Tensor fitted = fit(given);
    if (positions_.empty()) return path_.write(combined(current, fitted, update));
    static constexpr const char* kModes[] = {"set", "add", "mul", "min", "max"};
    return path_.write(ops::scatter(current, places_, fitted, axis_,
                                    kModes[static_cast<size_t>(update)], false, "index_update"));
  }

 private:
  // The value in the shape of what is indexed. Leading axes of size 1 may be too many, as in NumPy.
  Tensor fit(const Tensor& value) const {
    const Shape shape = result_shape();
    Tensor fitted = value;
    while (fitted.shape().size() > shape.size() && fitted.shape()[0].is(1)) {
      fitted = ops::squeeze(fitted, {0});
    }
    if (fitted.shape() == shape) return fitted;
    if (broadcast_shapes(fitted.shape(), shape, "index_update") != shape) {
      fail(ErrorKind::Value,
           "[index_update] the value must broadcast to the part it is put into, {}, got {}",
           text(shape), text(value.type()));
    }
    return ops::broadcast_to(fitted, shape);
  }

  Shape result_shape() const {
    Shape shape = path_.tensor().shape();
    if (positions_.empty()) return shape;
    shape.erase(static_cast<uint32_t>(axis_));
    for (size_t i = 0; i < places_.shape().size(); ++i) {
      shape.insert(static_cast<uint32_t>(axis_) + static_cast<uint32_t>(i), places_.shape()[i]);
    }
    return shape;
  }

  static int64_t consumed(const Index& index) {
    switch (index.kind()) {
      case Index::Kind::Integer:
      case Index::Kind::Range:
        return 1;
      case Index::Kind::Positions:
        return index.positions().dtype() == DType::Bool ? index.positions().rank() : 1;
      default:
        return 0;
    }
  }

  // The ellipsis as full slices; there always is one, at the end if nowhere else.
  static std::vector<Index> expanded(const std::vector<Index>& indices, const Tensor& x) {
    int64_t used = 0, ellipses = 0;
    for (const Index& index : indices) {
      used += consumed(index);
      ellipses += index.kind() == Index::Kind::Ellipsis;
    }
    if (ellipses > 1)
      fail(ErrorKind::Index, "[index] only one ellipsis may stand among the indices");
    const int64_t left = x.rank() - used;
    if (left < 0) {
      fail(ErrorKind::Index, "[index] {} indices for the {} axes of x (x: {})", used, x.rank(),
           text(x.type()));
    }
    std::vector<Index> result;
    const auto fill = [&] {
      result.insert(result.end(), static_cast<size_t>(left), Index(Slice{}));
    };
    for (const Index& index : indices) {
      if (index.kind() == Index::Kind::Ellipsis) {
        fill();
      } else {
        result.push_back(index);
      }
    }
    if (ellipses == 0) fill();
    return result;
  }

  int64_t size(uint32_t axis) const { return path_.tensor().shape()[axis].value(); }

  int64_t checked(int64_t integer, uint32_t axis) const {
    const int64_t whole = size(axis);
    if (integer < -whole || integer >= whole) {
      fail(ErrorKind::Index, "[index] index {} is out of range for axis {} of size {}", integer,
           source_axis_, whole);
    }
    return integer < 0 ? integer + whole : integer;
  }

  // Goes through the indices with `axis` the place reached in the path's tensor. Beside tensors of
  // positions an integer is one of them, as in NumPy.
  void walk() {
    const bool advanced = std::any_of(indices_.begin(), indices_.end(), [](const Index& i) {
      return i.kind() == Index::Kind::Positions;
    });
    uint32_t axis = 0;
    bool apart = false, open = false;
    for (const Index& index : indices_) {
      const bool picks = index.kind() == Index::Kind::Positions ||
                         (advanced && index.kind() == Index::Kind::Integer);
      if (picks) {
        apart = apart || (!positions_.empty() && !open);
        open = true;
        pick(index, axis);
        ++axis;
        continue;
      }
      open = false;
      step(index, axis);
    }
    if (!positions_.empty()) gather_axes(apart);
  }

  void step(const Index& index, uint32_t& axis) {
    Shape shape = path_.tensor().shape();
    switch (index.kind()) {
      case Index::Kind::Integer:
        path_.narrow(axis, checked(index.integer(), axis), 1, 1);
        shape.erase(axis);
        path_.reshape(shape);
        ++source_axis_;
        return;
      case Index::Kind::Range: {
        const Range range(index.slice(), size(axis));
        const bool whole = range.start == 0 && range.step == 1 && range.length == size(axis);
        if (!whole) path_.narrow(axis, range.start, range.length, range.step);
        ++source_axis_;
        ++axis;
        return;
      }
      default:  // a new axis
        shape.insert(axis, 1);
        path_.reshape(shape);
        ++axis;
    }
  }

  // Adds the positions picked from one axis; a mask's axes become one first.
  void pick(const Index& index, uint32_t axis) {
    picked_axes_.push_back(axis);
    if (index.kind() == Index::Kind::Integer) {
      const int64_t place = checked(index.integer(), axis);
      positions_.push_back(Tensor(path_.number(place).number_as(DType::Int64)));
      ++source_axis_;
      return;
    }
    Tensor given = index.positions();
    if (given.dtype() != DType::Bool) {
      if (!is_integer(given.dtype())) {
        fail(ErrorKind::Index, "[index] positions must be integers or bools, got {}",
             text(given.type()));
      }
      if (size_of(given.dtype()) < 4) given = ops::cast(given, DType::Int64);
      const Tensor places = ops::check_indices(path_.at_caller(given), path_.number(size(axis)),
                                               path_.number(std::numeric_limits<int64_t>::min()),
                                               source_axis_, true, "index");
      positions_.push_back(places);
      ++source_axis_;
      return;
    }
    Shape shape = path_.tensor().shape();
    int64_t joined = 1;
    for (int i = 0; i < given.rank(); ++i) {
      const Dim along = shape[axis + static_cast<uint32_t>(i)];
      if (given.shape()[static_cast<size_t>(i)] != along) {
        fail(ErrorKind::Index, "[index] a mask of type {} does not fit axis {} of size {}",
             text(given.type()), source_axis_ + i, along.text());
      }
      joined *= along.value();
    }
    for (int i = 0; i < given.rank(); ++i) shape.erase(axis);
    shape.insert(axis, joined);
    path_.reshape(shape);
    positions_.push_back(ops::picked(path_.at_caller(given)));
    source_axis_ += given.rank();
  }

  // Brings the picked axes side by side, as one, and their positions to places along it. Where
  // something stands between them the result's axes come first.
  void gather_axes(bool apart) {
    const auto rank = static_cast<int64_t>(path_.tensor().rank());
    const auto is_picked = [&](int64_t axis) {
      return std::find(picked_axes_.begin(), picked_axes_.end(), static_cast<uint32_t>(axis)) !=
             picked_axes_.end();
    };
    const int64_t target = apart ? 0 : static_cast<int64_t>(picked_axes_.front());
    Axes order;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (axis < target && !is_picked(axis)) order.push_back(axis);
    }
    for (uint32_t axis : picked_axes_) order.push_back(axis);
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (axis >= target && !is_picked(axis)) order.push_back(axis);
    }
    path_.transpose(order);
    axis_ = target;
    Shape shape = path_.tensor().shape();
    places_ = positions_[0];
    Shape places = places_.shape();
    Dim joined = shape[static_cast<size_t>(axis_)];
    for (size_t i = 1; i < positions_.size(); ++i) {
      const Dim along = shape[static_cast<size_t>(axis_) + i];
      places = broadcast_shapes(places, positions_[i].shape(), "index");
      places_ = places_ * path_.number(along.value()) + positions_[i];
      joined = joined * along;
    }
    for (size_t i = 0; i < positions_.size(); ++i) shape.erase(static_cast<uint32_t>(axis_));
    shape.insert(static_cast<uint32_t>(axis_), joined);
    path_.reshape(shape);
  }

  Path path_;
  std::vector<Index> indices_;
  int64_t source_axis_ = 0;  // of x, for errors
  std::vector<uint32_t> picked_axes_;
  std::vector<Tensor> positions_;
  Tensor places_;
  int64_t axis_ = 0;
};

// An update of everything a mask picks with a value that is the same for each place: a choice
// element by element, for which nobody needs to know how many places there are. Nothing if it is
// not of this kind.
Tensor update_by_mask(const Operand& x, const std::vector<Index>& indices, const Operand& value,
                      ops::Update update) {
  if (indices.size() != 1 || indices[0].kind() != Index::Kind::Positions) return {};
  const Tensor mask = indices[0].positions(), current = x.tensor();
  const int rest = current.rank() - mask.rank();
  const int value_rank = value.is_tensor() ? value.tensor().rank() : 0;
  if (mask.dtype() != DType::Bool || rest < 0 || value_rank > rest) return {};
  Shape shape = mask.shape();
  if (Shape(current.shape().begin(), current.shape().begin() + mask.rank()) != shape) return {};
  shape.resize(shape.size() + static_cast<uint32_t>(rest), 1);
  const DType dtype = current.dtype();
  const Tensor given = value.is_tensor() ? ops::cast(value, dtype) : Tensor(value.number_as(dtype));
  const Tensor updated = combined(current, given, update);
  return ops::where(ops::reshape(mask, shape), updated, current);
}

// Runs `body`, with errors said to come from the operand's line.
template <typename Body>
Tensor at_line_of(const Operand& x, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (!x.location().known() || error.location().known()) throw;
    throw error.at(x.location());
  }
}

}  // namespace

namespace ops {

Tensor index(const Operand& x, const std::vector<Index>& indices) {
  return at_line_of(x, [&] { return Indexing(x, indices).read(); });
}

Tensor index_update(const Operand& x, const std::vector<Index>& indices, const Operand& value,
                    ops::Update update) {
  return at_line_of(x, [&] {
    Tensor updated = update_by_mask(x, indices, value, update);
    return updated.defined() ? updated : Indexing(x, indices).update(value, update);
  });
}

}  // namespace ops

}  // namespace lamella
