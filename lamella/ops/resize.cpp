// Spatial axes resampled to other sizes.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// How the places of the result lie on x: as cells of one whole whose centres are compared, with the
// first and last elements on each other, or with the first elements on each other and steps of
// from / to.
enum class Coordinates : uint8_t { HalfPixel, AlignCorners, Asymmetric };

Coordinates coordinates_of(const std::string& name) {
  if (name == "half_pixel") return Coordinates::HalfPixel;
  if (name == "align_corners") return Coordinates::AlignCorners;
  if (name == "asymmetric") return Coordinates::Asymmetric;
  fail(ErrorKind::Value,
       "[resize] coordinates must be 'half_pixel', 'align_corners' or 'asymmetric', got '{}'",
       name);
}

Tensor size_number(Dim size) {
  return Tensor(Value::size(DType::Int64, size));
}

// For each of `to` places where it lies among `from` elements, as a fraction in integers.
struct Places {
  Tensor numerator;
  Dim denominator;
};

Places places_of(Dim from, Dim to, Coordinates coordinates) {
  const Tensor number = ops::element_numbers(Shape{to});
  switch (coordinates) {
    case Coordinates::AlignCorners:
      return {number * size_number(from - 1), to.is(1) ? Dim(1) : to - 1};
    case Coordinates::Asymmetric:
      return {number * size_number(from), to};
    default:  // (number + 1/2) from / to - 1/2
      return {(number * 2 + 1) * size_number(from) - size_number(to), to * 2};
  }
}

// Straight from one element to the next; before the first one the first.
Tensor resized_linear(const Tensor& x, int64_t axis, Dim to, Coordinates coordinates) {
  const Dim from = x.shape()[static_cast<size_t>(axis)];
  const Places places = places_of(from, to, coordinates);
  const Tensor at = ops::maximum(places.numerator, 0);
  const Tensor denominator = size_number(places.denominator), last = size_number(from - 1);
  const Tensor before = ops::floor_divide(at, denominator);
  const Tensor low = ops::gather(x, ops::minimum(before, last), axis, false, "resize");
  const Tensor high = ops::gather(x, ops::minimum(before + 1, last), axis, false, "resize");
  Shape along(static_cast<uint32_t>(x.rank()), Dim(1));
  along[static_cast<size_t>(axis)] = to;
  const Tensor way = ops::reshape(ops::cast(ops::mod(at, denominator), x.dtype()) /
                                      Tensor(Value::size(x.dtype(), places.denominator)),
                                  along);
  return low * (1 - way) + high * way;
}

// The element whose cell a place falls into; with Asymmetric coordinates the one before it.
Tensor resized_nearest(const Tensor& x, int64_t axis, Dim to, Coordinates coordinates) {
  const Dim from = x.shape()[static_cast<size_t>(axis)];
  const Places places = places_of(from, to, coordinates);
  Tensor at = places.numerator * 2;
  if (coordinates != Coordinates::Asymmetric) at = at + size_number(places.denominator);
  const Tensor number = ops::floor_divide(at, size_number(places.denominator * 2));
  return ops::gather(x, ops::minimum(number, size_number(from - 1)), axis, false, "resize");
}

}  // namespace

LAMELLA_OP(resize, (Operand x, Axes size, std::string mode = "nearest", std::string coordinates = "half_pixel"),
    .doc = "The spatial axes of x (batch, channels, ...) resampled to `size`, one after the other: 'nearest' takes one "
           "element, 'linear' goes straight from one to the next. Place i of n lies at (i + 1/2) from / n - 1/2 "
           "('half_pixel'), i (from - 1) / (n - 1) ('align_corners') or i from / n ('asymmetric', where 'nearest' is floor).",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const Axes& size = call.attribute<Axes>(0);
      const std::string& mode = call.attribute<std::string>(1);
      if (mode != "nearest" && mode != "linear") {
        fail(ErrorKind::Value, "[resize] mode must be 'nearest' or 'linear', got '{}'", mode);
      }
      coordinates_of(call.attribute<std::string>(2));
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
      const Coordinates coordinates = coordinates_of(call.attribute<std::string>(2));
      for (size_t i = 0; i < size.size(); ++i) {
        const auto axis = static_cast<int64_t>(i + 2);
        if (x.shape()[i + 2].is(size[i])) continue;
        x = call.attribute<std::string>(1) == "nearest" ? resized_nearest(x, axis, size[i], coordinates)
                                                        : resized_linear(x, axis, size[i], coordinates);
      }
      return std::vector{x};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("resize(x, size, mode, coordinates)", 8), .cost = Cost{8},
    .samples = Samples{"randn(2, 3, 4), size=(7,)", "randn(1, 2, 3, 5), size=(6, 3), coordinates='asymmetric'",
                       "randn(1, 2, 3, 5), size=(7, 4), coordinates='align_corners'", "randn(1, 2, 3, 5), size=(7, 4), mode='linear'",
                       "randn(2, 1, 4, 3), size=(5, 6), mode='linear', coordinates='align_corners'",
                       "randn(1, 1, 4), size=(1,), mode='linear', coordinates='align_corners'",
                       "randn(2, 1, 4, 3), size=(3, 7), mode='linear', coordinates='asymmetric'"})

}  // namespace lamella
