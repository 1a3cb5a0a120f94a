// Activations: gates and bends applied element by element.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

constexpr double kSqrtHalf = 0.7071067811865476;
constexpr double kSqrtTwoByPi = 0.7978845608028654, kInverseSqrtTwoPi = 0.3989422804014327;
// Beyond these bounds the two forms of gelu have become 0 and x, in every dtype. A bounded x keeps
// its powers, and its product with what is 0, finite.
constexpr double kGeluBound = 40, kGeluTanhBound = 30;
constexpr double kGeluCubic = 0.044715;
// Klambauer et al., "Self-normalizing neural networks", 2017.
constexpr double kSeluAlpha = 1.6732632423543772, kSeluScale = 1.0507009873554805;

// Where `inside` holds the cotangent, else 0.
Tensor where_inside(const Tensor& inside, const Tensor& cotangent) {
  return ops::where(inside, cotangent, 0.0);
}

// gelu's tanh form: (1 + tanh(u)) / 2 = sigmoid(2u), which keeps its precision for u far below 0.
Tensor gelu_gate(const Tensor& bounded) {
  const Tensor u = bounded + ops::square(bounded) * bounded * kGeluCubic;
  return ops::sigmoid(u * (2 * kSqrtTwoByPi));
}

// x gate(x) for a gate that reaches 0 to the left and 1 to the right of 0 within kGateBound, in
// every dtype. Beyond it nothing is multiplied: 0 times an infinite x would be NaN, here and in
// gradients.
template <typename Gate>
Tensor gated(const Tensor& x, Gate gate) {
  constexpr double kGateBound = 800;
  const Tensor bounded = ops::clip(x, -kGateBound, kGateBound);
  return ops::where(ops::less_equal(x, kGateBound), bounded * gate(bounded), x);
}

Tensor between(const Tensor& x, double low, double high) {
  return ops::bitwise_and(ops::greater(x, low), ops::less(x, high));
}

}  // namespace

LAMELLA_OP(relu, (Operand x),
    .doc = "max(x, 0); NaN of NaN. Its gradient at 0 is 0.",
    .accepts = kNumbers, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::maximum(call[0], 0)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::where(ops::less_equal(call.result(), 0), 0.0, call.cotangent()));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.maximum(x, 0)", 0), .cost = Cost{1},
    .samples = Samples{"away_from_zero(3, 5)", "randn(2, 0)"})

LAMELLA_OP(relu6, (Operand x),
    .doc = "min(max(x, 0), 6). Its gradient is 0 at 0 and at 6.",
    .accepts = kNumbers, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::minimum(ops::maximum(call[0], 0), 6)};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, where_inside(between(call.operand(0), 0, 6), call.cotangent()));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.minimum(np.maximum(x, 0), 6)", 0), .cost = Cost{2},
    .samples = Samples{"away_from_zero(3, 5) * 4"})

LAMELLA_OP(leaky_relu, (Operand x, Operand alpha),
    .doc = "x where x > 0, else alpha x.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::where(ops::greater(call[0], 0), call[0], ops::clamp_max(call[0], 0) * call[1])};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(x > 0, x, x * x.dtype.type(alpha))", 1), .cost = Cost{2},
    .samples = Samples{"away_from_zero(3, 5), 0.2"})

LAMELLA_OP(prelu, (Operand x, Operand weight),
    .doc = "x where x > 0, else x times weight: one number, or one a channel (axis 1).",
    .accepts = kFloats, .promotion = Promotion::First,
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &weight = call.operand(1);
      const Dim channels = x.shape.size() < 2 ? Dim(1) : x.shape[1];
      const Dim count = element_count(weight.shape);
      if (weight.shape.size() > 1 || (!count.is(1) && count != channels)) {
        fail(ErrorKind::Value, "[prelu] weight must have 1 or {} elements on one axis (x: {}, weight: {})",
             channels.text(), text(x), text(weight));
      }
      call.results.push_back(x);
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      Tensor weight = call[1];
      if (weight.rank() == 1) {
        Shape shape(static_cast<uint32_t>(x.rank()), Dim(1));
        if (x.rank() > 1) shape[1] = weight.shape()[0];
        weight = ops::reshape(weight, shape);
      }
      return std::vector{ops::where(ops::greater(x, 0), x, ops::clamp_max(x, 0) * weight)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("np.where(x > 0, x, x * weight.reshape([-1 if i == 1 else 1 for i in range(x.ndim)]))", 1),
    .cost = Cost{2},
    .samples = Samples{"away_from_zero(3, 4, 5), randn(4)", "away_from_zero(3, 4), randn(1)"})

LAMELLA_OP(elu, (Operand x, Operand alpha),
    .doc = "x where x > 0, else alpha (exp(x) - 1).",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor below = ops::expm1(ops::clamp_max(call[0], 0)) * call[1];
      return std::vector{ops::where(ops::greater(call[0], 0), call[0], below)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor slope = call.result() + call.operand(1);
      call.give(0, ops::where(ops::greater(call.operand(0), 0), call.cotangent(), call.cotangent() * slope));
      if (call.needs(1)) {
        call.give(1, call.cotangent() * ops::expm1(ops::clamp_max(call.operand(0), 0)));
      }
    }),
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))", 4), .cost = Cost{14},
    .samples = Samples{"away_from_zero(3, 5), 1.0", "away_from_zero(3, 5), 0.5"})

LAMELLA_OP(celu, (Operand x, Operand alpha),
    .doc = "x where x > 0, else alpha (exp(x / alpha) - 1).",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor below = ops::expm1(ops::clamp_max(call[0], 0) / call[1]) * call[1];
      return std::vector{ops::where(ops::greater(call[0], 0), call[0], below)};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))", 8), .cost = Cost{15},
    .samples = Samples{"away_from_zero(3, 5), 0.5"})

LAMELLA_OP(selu, (Operand x),
    .doc = "1.0507 x where x > 0, else 1.0507 * 1.6733 (exp(x) - 1).",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor below = ops::expm1(ops::clamp_max(call[0], 0)) * (kSeluAlpha * kSeluScale);
      return std::vector{ops::where(ops::greater(call[0], 0), call[0] * kSeluScale, below)};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("np.where(x > 0, 1.0507009873554805 * x, 1.7580993408473766 * np.expm1(np.minimum(x, 0)))", 4),
    .cost = Cost{14}, .samples = Samples{"away_from_zero(3, 5)"})

LAMELLA_OP(gelu, (Operand x, bool tanh_form = false),
    .doc = "x times the normal distribution function of x; tanh_form approximates it by "
           "(1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel, 2016).",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      if (!call.attribute<bool>(0)) {
        return std::vector{ops::maximum(x, -kGeluBound) * 0.5 * ops::erfc(x * -kSqrtHalf)};
      }
      return std::vector{ops::maximum(x, -kGeluTanhBound) * gelu_gate(ops::clip(x, -kGeluTanhBound, kGeluTanhBound))};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::gelu_backward(call.operand(0), call.cotangent(), call.attribute<bool>(0)));
    }),
    .batch = batch::elementwise,
    .reference = numpy("gelu_tanh(x) if tanh_form else 0.5 * x * erfc(-x / np.sqrt(2))", 8), .cost = Cost{20},
    .samples = Samples{"randn(3, 5)", "randn(3, 5), tanh_form=True"})

LAMELLA_OP(gelu_backward, (Operand x, Operand cotangent, bool tanh_form = false),
    .doc = "The cotangent of gelu's operand.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0], cotangent = call[1];
      if (!call.attribute<bool>(0)) {
        const Tensor bounded = ops::clip(x, -kGeluBound, kGeluBound), u = x * -kSqrtHalf;
        return std::vector{cotangent * (ops::erfc(u) * 0.5 + bounded * ops::gaussian(u) * kInverseSqrtTwoPi)};
      }
      const Tensor bounded = ops::clip(x, -kGeluTanhBound, kGeluTanhBound);
      const Tensor gate = gelu_gate(bounded);
      const Tensor slope = ops::square(bounded) * (3 * kGeluCubic) + 1.0;
      return std::vector{cotangent * (gate + bounded * slope * (gate * (1.0 - gate)) * (2 * kSqrtTwoByPi))};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("gelu_backward(x, cotangent, tanh_form)", 16), .cost = Cost{40},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(3, 5), randn(3, 5), tanh_form=True"})

LAMELLA_OP(silu, (Operand x),
    .doc = "x sigmoid(x), also called swish.",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{gated(call[0], [](const Tensor& x) { return ops::sigmoid(x); })};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("x / (1 + np.exp(-x))", 4), .cost = Cost{13}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(hardsigmoid, (Operand x),
    .doc = "min(max(x / 6 + 1/2, 0), 1). Its gradient at the bends is 0.",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::clip(call[0] + 3.0, 0.0, 6.0) / 6.0};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, where_inside(between(call.operand(0), -3, 3), call.cotangent() / 6.0));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.clip(x + 3, 0, 6) / 6", 2), .cost = Cost{4}, .samples = Samples{"randn(3, 5) * 3"})

LAMELLA_OP(hardswish, (Operand x),
    .doc = "x min(max(x + 3, 0), 6) / 6.",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::clamp_min(call[0], -3.0) * ops::clip(call[0] + 3.0, 0.0, 6.0) / 6.0};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("x * np.clip(x + 3, 0, 6) / 6", 2), .cost = Cost{5}, .samples = Samples{"randn(3, 5) * 3"})

LAMELLA_OP(mish, (Operand x),
    .doc = "x tanh(softplus(x)).",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{gated(call[0], [](const Tensor& x) { return ops::tanh(ops::softplus(x)); })};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("x * np.tanh(np.logaddexp(x, 0))", 6), .cost = Cost{36}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(logsigmoid, (Operand x),
    .doc = "log(sigmoid(x)), without overflow.",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{ops::neg(ops::softplus(ops::neg(call[0])))};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("-np.logaddexp(-x, 0)", 4), .cost = Cost{22}, .samples = Samples{"randn(3, 5)"})

LAMELLA_OP(softsign, (Operand x),
    .doc = "x / (1 + |x|).",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor bounded = ops::clip(call[0], -1e30, 1e30);  // beyond it is 1 or -1
      return std::vector{bounded / (1.0 + ops::abs(bounded))};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise,
    .reference = numpy("x / (1 + np.abs(x))", 2), .cost = Cost{3}, .samples = Samples{"away_from_zero(3, 5)"})

LAMELLA_OP(tanhshrink, (Operand x),
    .doc = "x - tanh(x).",
    .accepts = kFloats, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{call[0] - ops::tanh(call[0])};
    }),
    .vjp = vjp([](VjpCall& call) { call.give(0, call.cotangent() * ops::square(ops::tanh(call.operand(0)))); }),
    .batch = batch::elementwise,
    .reference = numpy("x - np.tanh(x)", 64), .cost = Cost{15}, .samples = Samples{"away_from_zero(3, 5)"})

LAMELLA_OP(hardshrink, (Operand x, Operand bound),
    .doc = "x where |x| > bound, else 0.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::where(ops::less_equal(ops::abs(call[0]), call[1]), 0.0, call[0])};
    }),
    .vjp = vjp([](VjpCall& call) {
      call.give(0, ops::where(ops::less_equal(ops::abs(call.operand(0)), call.operand(1)), 0.0, call.cotangent()));
    }),
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(np.abs(x) <= bound, 0, x)", 0), .cost = Cost{2},
    .samples = Samples{"randn(3, 5), 0.5"})

LAMELLA_OP(softshrink, (Operand x, Operand bound),
    .doc = "x moved towards 0 by bound, 0 if that would pass it.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite([](const CompositeCall& call) {
      const Tensor moved = call[0] - ops::sign(call[0]) * call[1];
      return std::vector{ops::where(ops::less_equal(ops::abs(call[0]), call[1]), 0.0, moved)};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(np.abs(x) <= x.dtype.type(bound), 0, x - np.sign(x) * x.dtype.type(bound))", 2),
    .cost = Cost{4}, .samples = Samples{"randn(3, 5), 0.5"})

LAMELLA_OP(threshold, (Operand x, Operand bound, Operand value),
    .doc = "x where x > bound, else value.",
    .accepts = kNumbers, .promotion = Promotion::First, .infer = infer::same,
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::where(ops::less_equal(call[0], call[1]), call[2], call[0])};
    }),
    .vjp = from_composite,
    .batch = batch::elementwise_like<0>,
    .reference = numpy("np.where(x <= bound, x.dtype.type(value), x)", 0), .cost = Cost{2},
    .samples = Samples{"randn(3, 5), 0.5, 2.0"})

LAMELLA_OP(glu, (Operand x, int64_t axis = -1),
    .doc = "The first half of an axis times the sigmoid of the second.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const int axis = normalize_axis(call.attribute<int64_t>(0), rank(result.shape), "glu");
      Dim& size = result.shape[static_cast<size_t>(axis)];
      if (floor_div(size, 2) * 2 != size) {
        fail(ErrorKind::Value, "[glu] axis {} has the odd size {} (x: {})", axis, size.text(), text(call.operand(0)));
      }
      size = floor_div(size, 2);
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      const int64_t axis = call.attribute<int64_t>(0);
      const Shape half{floor_div(call[0].size(axis), 2)};
      const Tensor value = ops::narrow(call[0], 0, axis, half);
      const Tensor gate = ops::narrow(call[0], Tensor(Value::size(DType::Int64, half[0])), axis, half);
      return std::vector{value * ops::sigmoid(gate)};
    }),
    .vjp = from_composite,
    .batch = batch::along_axes<0>,
    .reference = numpy("glu(x, axis)", 4), .cost = Cost{13},
    .samples = Samples{"randn(3, 6)", "randn(4, 3), axis=0"})

LAMELLA_OP(clip, (Operand x, Operand low, Operand high),
    .doc = "min(max(x, low), high): high where low > high, NaN where any is NaN. The gradient goes to x "
           "from low to high, both included.",
    .accepts = kNumbers, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite_of_moves([](const CompositeCall& call) {
      return std::vector{ops::minimum(ops::maximum(call[0], call[1]), call[2])};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), low = call.operand(1), high = call.operand(2);
      if (call.needs(0)) {
        const Tensor inside = ops::bitwise_and(ops::greater_equal(x, low), ops::less_equal(x, high));
        call.give(0, where_inside(inside, call.cotangent()));
      }
      if (call.needs(1)) {
        const Tensor below = ops::bitwise_and(ops::less(x, low), ops::less_equal(low, high));
        call.give(1, where_inside(below, call.cotangent()));
      }
      if (call.needs(2)) {
        const Tensor above = ops::bitwise_or(ops::greater(x, high), ops::greater(low, high));
        call.give(2, where_inside(above, call.cotangent()));
      }
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.minimum(np.maximum(x, low), high)", 0), .cost = Cost{2},
    .samples = Samples{"randn(3, 5), -0.5, 0.5", "randn(3, 5), randn(5) - 2, randn(3, 1) + 2"})

LAMELLA_OP(clamp_min, (Operand x, Operand low),
    .doc = "max(x, low), with all of the gradient for x where x = low.",
    .accepts = kNumbers, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite_of_moves([](const CompositeCall& call) { return std::vector{ops::maximum(call[0], call[1])}; }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor below = ops::less(call.operand(0), call.operand(1));
      call.give(0, ops::where(below, 0.0, call.cotangent()));
      if (call.needs(1)) call.give(1, where_inside(below, call.cotangent()));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.maximum(x, low)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5), 0.1"})

LAMELLA_OP(clamp_max, (Operand x, Operand high),
    .doc = "min(x, high), with all of the gradient for x where x = high.",
    .accepts = kNumbers, .promotion = Promotion::Common, .infer = infer::elementwise,
    .lower = composite_of_moves([](const CompositeCall& call) { return std::vector{ops::minimum(call[0], call[1])}; }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor above = ops::greater(call.operand(0), call.operand(1));
      call.give(0, ops::where(above, 0.0, call.cotangent()));
      if (call.needs(1)) call.give(1, where_inside(above, call.cotangent()));
    }),
    .batch = batch::elementwise,
    .reference = numpy("np.minimum(x, high)", 0), .cost = Cost{1}, .samples = Samples{"randn(3, 5), 0.1"})

}  // namespace lamella
