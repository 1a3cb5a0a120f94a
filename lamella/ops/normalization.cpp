// Normalisation over features (layer norm, root mean square norm), channels (batch norm) and
// groups. Forward and backward read their operand once for the statistics; what is 16-bit is
// computed in float32, and statistics stay float32.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// ---- Over the trailing axes ----

Axes trailing_axes(int64_t begin, int rank, std::string_view op) {
  Axes axes;
  for (int axis = normalize_axis(begin, rank, op); axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Axes leading_axes(const Axes& trailing) {
  Axes axes;
  for (int64_t axis = 0; axis < trailing.front(); ++axis) axes.push_back(axis);
  return axes;
}

void check_trailing(const InferCall& call, size_t index, const char* what, int64_t begin) {
  const TensorType& x = call.operand(0);
  const Axes axes = trailing_axes(begin, rank(x.shape), call.op.name());
  const Shape expected(x.shape.begin() + axes.front(), x.shape.end());
  if (call.operand(index).shape != expected) {
    fail(ErrorKind::Value, "[{}] {} must have shape {}, x's from axis {} on, got {} (x: {})",
         call.op.name(), what, text(expected), axes.front(), text(call.operand(index)), text(x));
  }
}

void infer_trailing(InferCall& call) {
  const TensorType& x = call.operand(0);
  if (x.shape.empty()) fail(ErrorKind::Value, "[{}] x needs at least 1 axis", call.op.name());
  static constexpr const char* kNames[] = {"x", "weight", "bias"};
  for (size_t i = 1; i < call.operands.size(); ++i)
    check_trailing(call, i, kNames[i], call.attribute<int64_t>(0));
  call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
}

Tensor mean_over(const Tensor& x, const Axes& axes) {
  return ops::sum(x, axes, true) / ops::size_as(x.dtype(), x.shape(), axes);
}

// The row's elements less their mean, and one over their deviation.
struct Centered {
  Tensor distance, inverse_deviation;
};

Centered centered(const Tensor& x, const Axes& axes, double epsilon) {
  const Tensor distance = x - mean_over(x, axes);
  return {distance, ops::rsqrt(mean_over(ops::square(distance), axes) + epsilon)};
}

// ---- Over channels: axis 1 ----

Axes all_but_channels(int rank) {
  Axes axes{0};
  for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Shape channel_shape(const Shape& x) {
  Shape shape(x.size(), Dim(1));
  shape[1] = x[1];
  return shape;
}

// One number a channel, to broadcast against x, in the dtype x is computed in.
Tensor per_channel(const Tensor& numbers, const Tensor& x) {
  return ops::reshape(ops::cast(numbers, x.dtype()), channel_shape(x.shape()));
}

void check_channels(const InferCall& call, size_t from, size_t to, std::string_view names) {
  const TensorType& x = call.operand(0);
  if (x.shape.size() < 2) {
    fail(ErrorKind::Value, "[{}] x needs at least 2 axes, channels are axis 1, got {}",
         call.op.name(), text(x));
  }
  for (size_t i = from; i < to; ++i) {
    if (call.operand(i).shape == Shape{x.shape[1]}) continue;
    fail(ErrorKind::Value,
         "[{}] {} must have shape [{}], one number a channel (axis 1), got {} (x: {})",
         call.op.name(), names, x.shape[1].text(), text(call.operand(i)), text(x));
  }
}

// One number a channel; statistics of 16-bit floats are float32.
TensorType channel_type(const TensorType& x) {
  return {compute_dtype(x.dtype), Layout::RowMajor, Shape{x.shape[1]}};
}

void require_shape_of_x(const InferCall& call, size_t cotangent) {
  if (call.operand(cotangent).shape == call.operand(0).shape) return;
  fail(ErrorKind::Value, "[{}] the cotangent must have the shape of x, {}, got {}", call.op.name(),
       text(call.operand(0).shape), text(call.operand(cotangent)));
}

// x (and its cotangent, which stands last) batched, the parameters the same for all examples.
// Otherwise the composite: what the parameters scale is an example's own.
template <bool backward>
std::vector<Tensor> batch_rows(const BatchCall& call) {
  const size_t parameters_end = call.operand_count() - (backward ? 1 : 0);
  for (size_t i = 1; i < parameters_end; ++i) {
    if (call.is_batched(i)) return call.through_composite();
  }
  std::vector<AttributeValue> attributes = call.attributes();
  attributes[0] = batch::moved(call.attribute<int64_t>(0));
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.operand_count(); ++i) {
    const bool data = i == 0 || i >= parameters_end;
    operands.push_back(data ? call.stacked(i) : call.operand(i));
  }
  return call.record(operands, std::move(attributes));
}

}  // namespace

LAMELLA_OP(layer_norm, (Operand x, Operand weight, Operand bias, int64_t begin_axis = -1, double epsilon = 1e-05),
    .doc = "(x - mean) / sqrt(variance + epsilon) * weight + bias, statistics over the axes from "
           "begin_axis on, whose sizes are weight's and bias's shape.",
    .accepts = kFloats, .infer = infer_trailing,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = trailing_axes(call.attribute<int64_t>(0), x.rank(), "layer_norm");
      const Centered row = centered(x, axes, call.attribute<double>(1));
      const Tensor normal = row.distance * row.inverse_deviation;
      return std::vector{normal * ops::cast(call[1], x.dtype()) + ops::cast(call[2], x.dtype())};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), weight = call.operand(1), cotangent = call.cotangent();
      const int64_t begin = call.attribute<int64_t>(0);
      const double epsilon = call.attribute<double>(1);
      if (call.needs(0)) call.give(0, ops::layer_norm_backward(x, weight, cotangent, begin, epsilon));
      if (call.needs(1) || call.needs(2)) {
        const std::vector<Tensor> parameters =
            ops::layer_norm_backward_parameters(x, cotangent, begin, epsilon);
        call.give(1, ops::cast(parameters[0], weight.dtype()));
        call.give(2, ops::cast(parameters[1], call.operand(2).dtype()));
      }
    }),
    .batch = batch::rule(batch_rows<false>),
    .reference = numpy("layer_norm(x, weight, bias, begin_axis, epsilon)", 16), .cost = Cost{8},
    .samples = Samples{"randn(3, 5), randn(5), randn(5)", "randn(2, 3, 40), randn(3, 40), randn(3, 40), begin_axis=1",
                       "randn(0, 5), randn(5), randn(5)"})

LAMELLA_OP(layer_norm_backward, (Operand x, Operand weight, Operand cotangent, int64_t begin_axis, double epsilon),
    .doc = "The cotangent of layer_norm's x.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      require_shape_of_x(call, 2);
      call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = trailing_axes(call.attribute<int64_t>(0), x.rank(), "layer_norm");
      const Centered row = centered(x, axes, call.attribute<double>(1));
      const Tensor normal = row.distance * row.inverse_deviation;
      const Tensor weighted = call[2] * ops::cast(call[1], x.dtype());
      const Tensor along = normal * mean_over(weighted * normal, axes);
      return std::vector{(weighted - mean_over(weighted, axes) - along) * row.inverse_deviation};
    }),
    .vjp = from_composite,
    .batch = batch::rule(batch_rows<true>),
    .reference = numpy("layer_norm_backward(x, weight, cotangent, begin_axis, epsilon)", 32), .cost = Cost{14},
    .samples = Samples{"randn(3, 5), randn(5), randn(3, 5), begin_axis=-1, epsilon=1e-5"})

LAMELLA_OP_MULTI(layer_norm_backward_parameters, (Operand x, Operand cotangent, int64_t begin_axis, double epsilon),
    .doc = "The cotangents of layer_norm's weight and bias.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      const TensorType& x = call.operand(0);
      require_shape_of_x(call, 1);
      const Axes axes = trailing_axes(call.attribute<int64_t>(0), rank(x.shape), "layer_norm");
      const Shape shape(x.shape.begin() + axes.front(), x.shape.end());
      for (int i = 0; i < 2; ++i) call.results.push_back({compute_dtype(x.dtype), Layout::RowMajor, shape});
    },
    .lower = composite([](const CompositeCall& call) {
      const Axes axes = trailing_axes(call.attribute<int64_t>(0), call[0].rank(), "layer_norm");
      const Axes leading = leading_axes(axes);
      const Centered row = centered(call[0], axes, call.attribute<double>(1));
      // The distance again, as a node of its own: that of the rows would have to be stored.
      const Tensor again = call[0] - ops::broadcast_to(mean_over(call[0], axes), call[0].shape());
      const Tensor weighted = call[1] * (again * row.inverse_deviation);
      if (leading.empty()) return std::vector{weighted, call[1]};
      return std::vector{ops::sum(weighted, leading), ops::sum(call[1], leading)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("layer_norm_backward_parameters(x, cotangent, begin_axis, epsilon)", 32), .cost = Cost{8},
    .samples = Samples{"randn(3, 5), randn(3, 5), begin_axis=-1, epsilon=1e-5"})

LAMELLA_OP(rms_norm, (Operand x, Operand weight, int64_t begin_axis = -1, double epsilon = 1e-06),
    .doc = "x / sqrt(mean(x^2) + epsilon) * weight, the mean over the axes from begin_axis on.",
    .accepts = kFloats, .infer = infer_trailing,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = trailing_axes(call.attribute<int64_t>(0), x.rank(), "rms_norm");
      const Tensor scale = ops::rsqrt(mean_over(ops::square(x), axes) + call.attribute<double>(1));
      return std::vector{x * scale * ops::cast(call[1], x.dtype())};
    }),
    .vjp = from_composite,
    .batch = batch::rule(batch_rows<false>),
    .reference = numpy("x / np.sqrt(np.mean(x * x, axis=tuple(range(begin_axis % x.ndim, x.ndim)), keepdims=True) + epsilon) * weight", 16),
    .cost = Cost{5}, .samples = Samples{"randn(3, 5), randn(5)", "randn(2, 3, 40), randn(3, 40), begin_axis=1"})

LAMELLA_OP_MULTI(batch_norm, (Operand x, Operand weight, Operand bias, double epsilon = 1e-05),
    .doc = "For training: y = (x - mean) / sqrt(variance + epsilon) * weight + bias with statistics of "
           "each channel (axis 1) over the batch; gives y, mean, variance (dividing by the number of "
           "elements). Statistics are float32 for 16-bit x.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      check_channels(call, 1, 3, "weight and bias");
      call.results.push_back(call.operand(0));
      call.results.push_back(channel_type(call.operand(0)));
      call.results.push_back(channel_type(call.operand(0)));
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Axes axes = all_but_channels(x.rank());
      // Both moments in one pass, about the channel's first element: moments about a value of the
      // channel itself lose no digits however far the mean is from 0.
      Tensor origin = x;
      for (int64_t axis : axes) {
        const bool empty = x.shape()[static_cast<size_t>(axis)].is(0);
        origin = ops::narrow(origin, 0, axis, Shape{empty ? 0 : 1});
      }
      const bool empty = element_count(origin.shape()).is(0) && !x.shape()[1].is(0);
      if (empty) origin = ops::zeros_of({x.dtype(), Layout::RowMajor, channel_shape(x.shape())});
      const Tensor distance = x - origin;
      const Tensor count = ops::size_as(x.dtype(), x.shape(), axes);
      const Tensor first = ops::sum(distance, axes, true) / count;
      const Tensor second = ops::sum(ops::square(distance), axes, true) / count;
      const Tensor mean = origin + first;
      const Tensor variance = ops::maximum(second - ops::square(first), 0.0);
      const Tensor scale = ops::rsqrt(variance + call.attribute<double>(0)) * per_channel(call[1], x);
      const Tensor y = (x - mean) * scale + per_channel(call[2], x);
      const Shape channels{x.shape()[1]};
      return std::vector{y, ops::reshape(mean, channels), ops::reshape(variance, channels)};
    }),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), mean = call.result(1), variance = call.result(2);
      const std::vector<Tensor> back = ops::batch_norm_backward(
          x, call.operand(1), mean, variance, call.cotangent(), call.attribute<double>(0));
      call.give(0, back[0]);
      call.give(1, ops::cast(back[1], call.operand(1).dtype()));
      call.give(2, ops::cast(back[2], call.operand(2).dtype()));
      if (!call.needs(0)) return;
      const DType dtype = mean.dtype();
      const Tensor count = ops::size_as(dtype, x.shape(), all_but_channels(x.rank()));
      const Shape channels = channel_shape(x.shape());
      const auto give = [&](const Tensor& slope) {
        call.give(0, ops::cast(ops::broadcast_to(slope, x.shape()), x.dtype()));
      };
      if (call.has_cotangent(1)) give(ops::reshape(call.cotangent(1) / count, channels));
      if (call.has_cotangent(2)) {
        const Tensor distance = ops::cast(x, dtype) - ops::reshape(mean, channels);
        give(distance * ops::reshape(call.cotangent(2) * 2.0 / count, channels));
      }
    }),
    .batch = batch::through_composite,
    .reference = numpy("batch_norm(x, weight, bias, epsilon)", 32), .cost = Cost{10},
    .samples = Samples{"randn(4, 3), randn(3), randn(3)", "randn(2, 3, 4, 5), randn(3), randn(3)",
                       "randn(2, 3, 7) + 100, randn(3), randn(3)"})

LAMELLA_OP_MULTI(batch_norm_backward, (Operand x, Operand weight, Operand mean, Operand variance,
                                       Operand cotangent, double epsilon),
    .doc = "The cotangents of batch_norm's x, weight and bias from that of y.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      check_channels(call, 1, 4, "weight, mean and variance");
      call.results.push_back(call.operand(0));
      call.results.push_back(channel_type(call.operand(0)));
      call.results.push_back(channel_type(call.operand(0)));
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0], cotangent = call[4];
      const Axes axes = all_but_channels(x.rank());
      const Tensor inverse = ops::rsqrt(per_channel(call[3], x) + call.attribute<double>(0));
      const Tensor distance = x - per_channel(call[2], x);
      const Tensor product = ops::sum(cotangent * distance, axes, true);
      const Tensor total = ops::sum(cotangent, axes, true);
      const Tensor along = product * inverse;
      const Tensor count = ops::size_as(x.dtype(), x.shape(), axes);
      const Tensor tilt = along * inverse / count;
      // The distance again, as a node of its own: the one above would have to be stored between the loops.
      const Tensor again = x - ops::broadcast_to(per_channel(call[2], x), x.shape());
      const Tensor dx = (cotangent - total / count - again * tilt) * (inverse * per_channel(call[1], x));
      const Shape channels{x.shape()[1]};
      return std::vector{dx, ops::reshape(along, channels), ops::reshape(total, channels)};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("batch_norm_backward(x, weight, mean, variance, cotangent, epsilon)", 64), .cost = Cost{12},
    .samples = Samples{"randn(4, 3), randn(3), randn(3), positive(3), randn(4, 3), epsilon=1e-5"})

LAMELLA_OP(batch_norm_inference, (Operand x, Operand weight, Operand bias, Operand mean, Operand variance,
                                  double epsilon = 1e-05),
    .doc = "(x - mean) / sqrt(variance + epsilon) * weight + bias, one number a channel (axis 1).",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      check_channels(call, 1, 5, "weight, bias, mean and variance");
      call.results.push_back(call.operand(0));
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const Tensor scale = ops::rsqrt(per_channel(call[4], x) + call.attribute<double>(0)) * per_channel(call[1], x);
      return std::vector{(x - per_channel(call[3], x)) * scale + per_channel(call[2], x)};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("batch_norm_inference(x, weight, bias, mean, variance, epsilon)", 16), .cost = Cost{4},
    .samples = Samples{"randn(4, 3), randn(3), randn(3), randn(3), positive(3)",
                       "randn(2, 3, 4, 5), randn(3), randn(3), randn(3), positive(3)"})

LAMELLA_OP(group_norm, (Operand x, Operand weight, Operand bias, int64_t groups, double epsilon = 1e-05),
    .doc = "The channels (axis 1) in groups; each sample's group is normalised over its channels and all "
           "positions, then each channel times its weight plus its bias. With as many groups as "
           "channels this is instance norm.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      check_channels(call, 1, 3, "weight and bias");
      const TensorType& x = call.operand(0);
      const int64_t groups = call.attribute<int64_t>(0);
      if (groups < 1 || floor_div(x.shape[1], groups) * groups != x.shape[1]) {
        fail(ErrorKind::Value, "[group_norm] {} channels do not divide into {} groups (x: {})",
             x.shape[1].text(), groups, text(x));
      }
      call.results.push_back({x.dtype, Layout::RowMajor, x.shape});
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0];
      const int64_t groups = call.attribute<int64_t>(0);
      Shape split{x.shape()[0], groups, floor_div(x.shape()[1], groups)};
      for (int axis = 2; axis < x.rank(); ++axis) split.push_back(x.shape()[static_cast<size_t>(axis)]);
      const Tensor grouped = ops::reshape(x, split);
      Axes axes;
      for (int axis = 2; axis < grouped.rank(); ++axis) axes.push_back(axis);
      const Centered row = centered(grouped, axes, call.attribute<double>(1));
      const Tensor normal = row.distance * row.inverse_deviation;
      Shape channels(split.size(), Dim(1));
      channels[1] = split[1];
      channels[2] = split[2];
      const Tensor weight = ops::reshape(ops::cast(call[1], x.dtype()), channels);
      const Tensor bias = ops::reshape(ops::cast(call[2], x.dtype()), channels);
      return std::vector{ops::reshape(normal * weight + bias, x.shape())};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("group_norm(x, weight, bias, groups, epsilon)", 32), .cost = Cost{8},
    .samples = Samples{"randn(2, 6, 4), randn(6), randn(6), groups=3", "randn(2, 4, 3, 3), randn(4), randn(4), groups=4"})

}  // namespace lamella
