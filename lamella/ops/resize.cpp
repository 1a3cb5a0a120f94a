// Spatial axes resampled to other sizes.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// For each place of an axis of `to` elements the place before it among `from` elements, and how far
// it is on the way to the next one, as a fraction with a known denominator: all in integers, so
// exact.
struct Places {
  Tensor before, numerator;
  Dim denominator;
};

Places linear_places(Dim from, Dim to, bool align_corners) {
  const Tensor number = ops::element_numbers(Shape{to});
  const auto size = [](Dim dim) { return Tensor(Value::size(DType::Int64, dim)); };
  if (align_corners) {
    // The first and last elements keep their places.
    const Dim steps = to.is(1) ? Dim(1) : to - 1;
    const Tensor scaled = number * size(from - 1);
    return {ops::floor_divide(scaled, size(steps)), ops::mod(scaled, size(steps)), steps};
  }
  // Elements are cells: (number + 1/2) from / to - 1/2, not below 0.
  const Dim steps = to * 2;
  const Tensor scaled = ops::maximum((number * 2 + 1) * size(from) - size(to), 0);
  return {ops::floor_divide(scaled, size(steps)), ops::mod(scaled, size(steps)), steps};
}

Tensor resized_linear(const Tensor& x, int64_t axis, Dim to, bool align_corners) {
  const Dim from = x.shape()[static_cast<size_t>(axis)];
  const Places places = linear_places(from, to, align_corners);
  const Tensor last = Tensor(Value::size(DType::Int64, from - 1));
  const Tensor low = ops::gather(x, ops::minimum(places.before, last), axis, false, "resize");
  const Tensor high = ops::gather(x, ops::minimum(places.before + 1, last), axis, false, "resize");
  Shape along(static_cast<uint32_t>(x.rank()), Dim(1));
  along[static_cast<size_t>(axis)] = to;
  const Tensor way = ops::reshape(
      ops::cast(places.numerator, x.dtype()) / Tensor(Value::size(x.dtype(), places.denominator)),
      along);
  return low * (1 - way) + high * way;
}

Tensor resized_nearest(const Tensor& x, int64_t axis, Dim to) {
  const Dim from = x.shape()[static_cast<size_t>(axis)];
  const Tensor scaled = ops::element_numbers(Shape{to}) * Tensor(Value::size(DType::Int64, from));
  const Tensor places = ops::floor_divide(scaled, Tensor(Value::size(DType::Int64, to)));
  return ops::gather(x, places, axis, false, "resize");
}

}  // namespace

LAMELLA_OP(resize, (Operand x, Axes size, std::string mode = "nearest", bool align_corners = false),
    .doc = "The spatial axes of x (batch, channels, ...) resampled to `size`: 'nearest' takes the element at "
           "floor(i n / size); 'linear' goes straight from one element's centre to the next, along each axis in turn. "
           "align_corners lays the first and last elements onto those of the result.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const Axes& size = call.attribute<Axes>(0);
      const std::string& mode = call.attribute<std::string>(1);
      if (mode != "nearest" && mode != "linear") {
        fail(ErrorKind::Value, "[resize] mode must be 'nearest' or 'linear', got '{}'", mode);
      }
      if (mode == "nearest" && call.attribute<bool>(2)) {
        fail(ErrorKind::Value, "[resize] align_corners is for mode 'linear'");
      }
      if (result.shape.size() < 3 || size.size() != result.shape.size() - 2) {
        fail(ErrorKind::Value, "[resize] size must have one number a spatial axis, got {} (x: {})",
             text(AttributeValue(size)), text(result));
      }
      for (size_t i = 0; i < size.size(); ++i) {
        if (size[i] < 1 || result.shape[i + 2].is(0)) {
          fail(ErrorKind::Value, "[resize] cannot resize axis {} to {} (x: {})", i + 2, size[i], text(call.operand(0)));
        }
        result.shape[i + 2] = size[i];
      }
      result.layout = Layout::RowMajor;
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      Tensor x = call[0];
      const Axes& size = call.attribute<Axes>(0);
      for (size_t i = 0; i < size.size(); ++i) {
        const auto axis = static_cast<int64_t>(i + 2);
        if (x.shape()[i + 2].is(size[i])) continue;
        x = call.attribute<std::string>(1) == "nearest" ? resized_nearest(x, axis, size[i])
                                                        : resized_linear(x, axis, size[i], call.attribute<bool>(2));
      }
      return std::vector{x};
    }),
    .vjp = from_composite,
    .reference = numpy("resize(x, size, mode, align_corners)", 8), .cost = Cost{8},
    .samples = Samples{"randn(2, 3, 4), size=(7,)", "randn(1, 2, 3, 5), size=(6, 3)", "randn(1, 2, 3, 5), size=(7, 4), mode='linear'",
                       "randn(2, 1, 4, 3), size=(5, 6), mode='linear', align_corners=True", "randn(1, 1, 4), size=(1,), mode='linear', align_corners=True"})

}  // namespace lamella
