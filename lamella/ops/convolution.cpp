// Convolution over one to three spatial axes, its two gradients, and the transposed convolution.
// Each of the three is linear in both operands and its gradients are the other two, so any order of
// derivative exists.
#include "lamella/kernels/convolution.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// The options of a convolution as attributes, from number `first` on: stride, padding (before and
// after each axis in turn: top, bottom, left, right), dilation, groups.
struct ConvolutionWindow {
  Axes stride, padding, dilation;
  int64_t groups;
};

template <typename Call>
ConvolutionWindow window_of(const Call& call, size_t first) {
  return {call.template attribute<Axes>(first), call.template attribute<Axes>(first + 1),
          call.template attribute<Axes>(first + 2), call.template attribute<int64_t>(first + 3)};
}

kernels::ConvolutionOptions options_of(const ConvolutionWindow& window) {
  kernels::ConvolutionOptions options;
  for (size_t i = 0; i < window.stride.size(); ++i) {
    options.stride.push_back(window.stride[i]);
    options.padding_before.push_back(window.padding[2 * i]);
    options.padding_after.push_back(window.padding[2 * i + 1]);
    options.dilation.push_back(window.dilation[i]);
  }
  options.groups = window.groups;
  return options;
}

void check_window(std::string_view op, const ConvolutionWindow& window, size_t spatial) {
  const auto all_at_least = [](const Axes& values, int64_t least) {
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least; });
  };
  if (window.stride.size() != spatial || !all_at_least(window.stride, 1)) {
    fail(ErrorKind::Value, "[{}] stride takes {} numbers of at least 1, got {}", op, spatial,
         text(AttributeValue(window.stride)));
  }
  if (window.dilation.size() != spatial || !all_at_least(window.dilation, 1)) {
    fail(ErrorKind::Value, "[{}] dilation takes {} numbers of at least 1, got {}", op, spatial,
         text(AttributeValue(window.dilation)));
  }
  if (window.padding.size() != 2 * spatial || !all_at_least(window.padding, 0)) {
    fail(ErrorKind::Value,
         "[{}] padding takes {} numbers of at least 0 (before and after each axis), got {}", op,
         2 * spatial, text(AttributeValue(window.padding)));
  }
  if (window.groups < 1)
    fail(ErrorKind::Value, "[{}] groups must be at least 1, got {}", op, window.groups);
}

template <size_t spatial>
void check_ranks(std::string_view op, const TensorType& x, const TensorType& weight) {
  const bool any = spatial == 0;
  const size_t rank = x.shape.size();
  const bool fits = any ? rank >= 3 && rank <= 5 : rank == spatial + 2;
  if (!fits) {
    fail(ErrorKind::Value, "[{}] x needs {} axes (batch, channels, spatial), got {}", op,
         any ? std::string("3 to 5") : std::to_string(spatial + 2), text(x));
  }
  if (weight.shape.size() != rank) {
    fail(ErrorKind::Value,
         "[{}] weight needs {} axes (output channels, input channels / groups, kernel), got {}", op,
         rank, text(weight));
  }
}

template <size_t spatial>
void infer_convolution(InferCall& call) {
  const TensorType &x = call.operand(0), &weight = call.operand(1);
  const std::string_view name = call.op.name();
  check_ranks<spatial>(name, x, weight);
  const ConvolutionWindow window = window_of(call, 0);
  check_window(name, window, x.shape.size() - 2);
  if (weight.shape[1] * window.groups != x.shape[1]) {
    fail(ErrorKind::Value,
         "[{}] weight has {} input channels in each of {} groups, but x has {} (x: {}, weight: {})",
         name, weight.shape[1].text(), window.groups, x.shape[1].text(), text(x), text(weight));
  }
  if (floor_div(weight.shape[0], window.groups) * window.groups != weight.shape[0]) {
    fail(ErrorKind::Value, "[{}] {} output channels do not divide into {} groups (weight: {})",
         name, weight.shape[0].text(), window.groups, text(weight));
  }
  if (call.operands.size() > 2 && call.operand(2).shape != Shape{weight.shape[0]}) {
    fail(ErrorKind::Value, "[{}] bias must have shape [{}], got {}", name, weight.shape[0].text(),
         text(call.operand(2)));
  }
  TensorType result{x.dtype, Layout::ChannelsLast, Shape{x.shape[0], weight.shape[0]}};
  for (size_t i = 0; i + 2 < x.shape.size(); ++i) {
    const Dim padded = x.shape[i + 2] + (window.padding[2 * i] + window.padding[2 * i + 1]);
    const Dim reach = (weight.shape[i + 2] - 1) * window.dilation[i] + 1;
    if ((padded - reach).certainly_below(0) && !x.shape[i + 2].is(0)) {
      fail(ErrorKind::Value,
           "[{}] the kernel reaches over {} elements of axis {}, which has {} with padding (x: {}, "
           "weight: {})",
           name, reach.text(), i + 2, padded.text(), text(x), text(weight));
    }
    const Dim size = floor_div(padded - reach, window.stride[i]) + 1;
    result.shape.push_back(size.certainly_below(0) ? Dim(0) : size);
  }
  call.results.push_back(result);
}

// Multiplications and additions: for each element of y (a result or operand), the weights of one
// output channel.
double convolution_flops(const Shape& y, const Shape& weight) {
  double flops = 2;
  for (Dim size : y) flops *= size.known() ? static_cast<double>(size.value()) : 0;
  for (size_t i = 1; i < weight.size(); ++i)
    flops *= weight[i].known() ? static_cast<double>(weight[i].value()) : 0;
  return flops;
}

double forward_flops(const Node& node) {
  return convolution_flops(node.result()->type().shape, node.operand(1)->type().shape);
}

void convolution_vjp(VjpCall& call) {
  const Tensor x = call.operand(0), weight = call.operand(1), cotangent = call.cotangent();
  const ConvolutionWindow w = window_of(call, 0);
  if (call.needs(0)) {
    call.give(0, ops::convolution_backward_data(cotangent, weight, x.shape(), w.stride, w.padding,
                                                w.dilation, w.groups));
  }
  if (call.needs(1)) {
    call.give(1, ops::convolution_backward_weights(x, cotangent, weight.shape(), w.stride,
                                                   w.padding, w.dilation, w.groups));
  }
  if (call.node().operands().size() > 2 && call.needs(2)) {
    Axes axes{0};
    for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
    call.give(2, ops::sum(cotangent, axes));
  }
}

Lowering as_convolution() {
  return composite_of_moves([](const CompositeCall& call) {
    const ConvolutionWindow w = window_of(call, 0);
    const Operand bias = call.size() > 2 ? Operand(call[2]) : Operand();
    return std::vector{
        ops::convolution(call[0], call[1], bias, w.stride, w.padding, w.dilation, w.groups)};
  });
}

// ---- Many examples at once ----

// Examples that share the weights are further samples. Where the weights differ, the examples'
// channels are groups of one convolution with as many times the groups.

// An operand [N, C, ...] of each example, with the batch's channels side by side: [N, B C, ...].
Tensor channels_side_by_side(const Tensor& stacked) {
  Axes axes{1, 0};
  for (int axis = 2; axis < stacked.rank(); ++axis) axes.push_back(axis);
  const Tensor turned = ops::transpose(stacked, axes);
  Shape shape = turned.shape();
  shape[2] = shape[1] * shape[2];
  shape.erase(1);
  return ops::reshape(turned, shape);
}

// The way back, to `shape` [B, N, C, ...].
Tensor channels_apart(const Tensor& joined, const Shape& shape) {
  Shape turned = shape;
  std::swap(turned[0], turned[1]);
  Axes axes{1, 0};
  for (int axis = 2; axis < lamella::rank(shape); ++axis) axes.push_back(axis);
  return ops::transpose(ops::reshape(joined, turned), axes);
}

// Weights or a bias [K, ...] of each example as those of one convolution: [B K, ...].
Tensor one_behind_the_other(const Tensor& stacked) {
  Shape shape = stacked.shape();
  shape[1] = shape[0] * shape[1];
  shape.erase(0);
  return ops::reshape(stacked, shape);
}

std::vector<AttributeValue> with_groups(const BatchCall& call) {
  std::vector<AttributeValue> attributes = call.attributes();
  attributes.back() = std::get<int64_t>(attributes.back()) * call.size();
  return attributes;
}

std::vector<Tensor> batch_convolution(const BatchCall& call) {
  if (!call.any_batched_from(1)) return batch::join_samples(call, 1, batch::kNoShape);
  if (call.size() == 0) return call.one_by_one();
  std::vector<Tensor> operands{channels_side_by_side(call.stacked(0))};
  for (size_t i = 1; i < call.operand_count(); ++i) {
    operands.push_back(one_behind_the_other(call.stacked(i)));
  }
  const Tensor joined = call.record(operands, with_groups(call))[0];
  return {channels_apart(joined, call.result_shape())};
}

std::vector<Tensor> batch_convolution_backward_data(const BatchCall& call) {
  if (!call.any_batched_from(1)) return batch::join_samples(call, 1, 0);
  if (call.size() == 0) return call.one_by_one();
  std::vector<AttributeValue> attributes = with_groups(call);
  Shape& shape = std::get<Shape>(attributes[0]);
  shape[1] = shape[1] * call.size();
  const Tensor joined =
      call.record({channels_side_by_side(call.stacked(0)), one_behind_the_other(call.stacked(1))},
                  std::move(attributes))[0];
  return {channels_apart(joined, call.result_shape())};
}

std::vector<Tensor> batch_convolution_backward_weights(const BatchCall& call) {
  if (call.size() == 0) return call.one_by_one();
  std::vector<AttributeValue> attributes = with_groups(call);
  Shape& shape = std::get<Shape>(attributes[0]);
  shape[0] = shape[0] * call.size();
  const Tensor joined =
      call.record({channels_side_by_side(call.stacked(0)), channels_side_by_side(call.stacked(1))},
                  std::move(attributes))[0];
  return {ops::reshape(joined, call.result_shape())};
}

}  // namespace

LAMELLA_OP(convolution, (Operand x, Operand weight, OptionalOperand bias, Axes stride = {}, Axes padding = {},
                         Axes dilation = {}, int64_t groups = 1),
    .doc = "The cross-correlation of x [N, C, spatial...] with weight [K, C / groups, kernel...], plus bias "
           "[K]. padding: zeros before and after each axis in turn. The result lies channels-last.",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = infer_convolution<0>,
    .lower = kernel({.run = [](const KernelCall& call) {
                       const TensorView* bias = call.operands.size() > 2 ? &call.operands[2] : nullptr;
                       kernels::convolution(call.operands[0], call.operands[1], bias, call.results[0],
                                            options_of(window_of(call, 0)), call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       const TensorView* bias = call.operands.size() > 2 ? &call.operands[2] : nullptr;
                       return kernels::convolution_scratch_bytes(call.operands[0], call.operands[1], bias,
                                                                 call.results[0], options_of(window_of(call, 0)));
                     }}),
    .vjp = vjp(convolution_vjp),
    .batch = batch::rule(batch_convolution),
    .reference = numpy("convolution(x, weight, bias, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, forward_flops},
    .samples = Samples{"randn(2, 3, 6, 5), randn(4, 3, 3, 3), stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1)",
                       "randn(2, 4, 7, 7), randn(6, 2, 3, 2), randn(6), stride=(2, 1), padding=(0, 1, 1, 0), dilation=(1, 2), groups=2",
                       "randn(2, 3, 9), randn(4, 3, 3), stride=(2,), padding=(1, 1), dilation=(1,)"})

LAMELLA_OP(convolution_backward_data, (Operand cotangent, Operand weight, Shape x_shape, Axes stride, Axes padding,
                                       Axes dilation, int64_t groups),
    .doc = "The cotangent of convolution's x, of shape x_shape; also the transposed convolution.",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &cotangent = call.operand(0), &weight = call.operand(1);
      check_ranks<0>(call.op.name(), cotangent, weight);
      check_window(call.op.name(), window_of(call, 1), cotangent.shape.size() - 2);
      call.results.push_back({cotangent.dtype, Layout::ChannelsLast, call.attribute<Shape>(0)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::convolution_backward_data(call.operands[0], call.operands[1], call.results[0],
                                                          options_of(window_of(call, 1)), call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::convolution_backward_data_scratch_bytes(
                           call.operands[0], call.operands[1], call.results[0], options_of(window_of(call, 1)));
                     }}),
    .vjp = vjp([](VjpCall& call) {
      const Tensor cotangent = call.operand(0), weight = call.operand(1), x = call.cotangent();
      const ConvolutionWindow w = window_of(call, 1);
      if (call.needs(0)) call.give(0, ops::convolution(x, weight, {}, w.stride, w.padding, w.dilation, w.groups));
      if (call.needs(1)) {
        call.give(1, ops::convolution_backward_weights(x, cotangent, weight.shape(), w.stride, w.padding, w.dilation, w.groups));
      }
    }),
    .batch = batch::rule(batch_convolution_backward_data),
    .reference = numpy("convolution_backward_data(cotangent, weight, x_shape, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, [](const Node& node) {
      return convolution_flops(node.operand(0)->type().shape, node.operand(1)->type().shape);
    }},
    .samples = Samples{"randn(2, 4, 6, 5), randn(4, 3, 3, 3), x_shape=(2, 3, 6, 5), stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1"})

LAMELLA_OP(convolution_backward_weights, (Operand x, Operand cotangent, Shape weight_shape, Axes stride, Axes padding,
                                          Axes dilation, int64_t groups),
    .doc = "The cotangent of convolution's weight, of shape weight_shape.",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &cotangent = call.operand(1);
      check_ranks<0>(call.op.name(), x, cotangent);
      check_window(call.op.name(), window_of(call, 1), x.shape.size() - 2);
      call.results.push_back({x.dtype, Layout::RowMajor, call.attribute<Shape>(0)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::convolution_backward_weights(call.operands[0], call.operands[1], call.results[0], nullptr,
                                                             options_of(window_of(call, 1)), call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::convolution_backward_weights_scratch_bytes(
                           call.operands[0], call.operands[1], call.results[0], nullptr, options_of(window_of(call, 1)));
                     }}),
    .vjp = vjp([](VjpCall& call) {
      const Tensor x = call.operand(0), cotangent = call.operand(1), weight = call.cotangent();
      const ConvolutionWindow w = window_of(call, 1);
      if (call.needs(0)) {
        call.give(0, ops::convolution_backward_data(cotangent, weight, x.shape(), w.stride, w.padding, w.dilation, w.groups));
      }
      if (call.needs(1)) call.give(1, ops::convolution(x, weight, {}, w.stride, w.padding, w.dilation, w.groups));
    }),
    .batch = batch::rule(batch_convolution_backward_weights),
    .reference = numpy("convolution_backward_weights(x, cotangent, weight_shape, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, [](const Node& node) {
      return convolution_flops(node.operand(1)->type().shape, node.result()->type().shape);
    }},
    .samples = Samples{"randn(2, 3, 6, 5), randn(2, 4, 6, 5), weight_shape=(4, 3, 3, 3), stride=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1"})

LAMELLA_OP(conv1d, (Operand x, Operand weight, OptionalOperand bias, Axes stride = {1}, Axes padding = {0, 0},
                    Axes dilation = {1}, int64_t groups = 1),
    .doc = "convolution over one spatial axis. padding: before, after.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_convolution<1>,
    .lower = as_convolution(), .vjp = vjp(convolution_vjp),
    .batch = batch::joined_samples<1>,
    .reference = numpy("convolution(x, weight, bias, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, forward_flops},
    .samples = Samples{"randn(2, 3, 9), randn(4, 3, 3), randn(4), stride=(2,), padding=(1, 1)"})

LAMELLA_OP(conv2d, (Operand x, Operand weight, OptionalOperand bias, Axes stride = {1, 1}, Axes padding = {0, 0, 0, 0},
                    Axes dilation = {1, 1}, int64_t groups = 1),
    .doc = "convolution over two spatial axes. padding: top, bottom, left, right.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_convolution<2>,
    .lower = as_convolution(), .vjp = vjp(convolution_vjp),
    .batch = batch::joined_samples<1>,
    .reference = numpy("convolution(x, weight, bias, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, forward_flops},
    .samples = Samples{"randn(2, 3, 6, 5), randn(4, 3, 3, 3)", "randn(2, 4, 5, 5), randn(4, 1, 3, 3), randn(4), padding=(1, 1, 1, 1), groups=4"})

LAMELLA_OP(conv3d, (Operand x, Operand weight, OptionalOperand bias, Axes stride = {1, 1, 1},
                    Axes padding = {0, 0, 0, 0, 0, 0}, Axes dilation = {1, 1, 1}, int64_t groups = 1),
    .doc = "convolution over three spatial axes. padding: before and after each axis in turn.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_convolution<3>,
    .lower = as_convolution(), .vjp = vjp(convolution_vjp),
    .batch = batch::joined_samples<1>,
    .reference = numpy("convolution(x, weight, bias, stride, padding, dilation, groups)", 64),
    .cost = Cost{0, forward_flops},
    .samples = Samples{"randn(2, 2, 4, 5, 4), randn(3, 2, 3, 3, 3), padding=(1, 1, 1, 1, 1, 1)"})

LAMELLA_OP(convolution_transpose, (Operand x, Operand weight, OptionalOperand bias, Axes stride = {},
                                   Axes padding = {}, Axes output_padding = {}, Axes dilation = {}, int64_t groups = 1),
    .doc = "The transposed convolution of x [N, C, spatial...] with weight [C, K / groups, kernel...], plus "
           "bias [K]: each element of x spreads over a window of the result. padding cuts the result before "
           "and after each axis, output_padding extends it behind.",
    .accepts = kFloats, .promotion = Promotion::Common,
    .infer = [](InferCall& call) {
      const TensorType &x = call.operand(0), &weight = call.operand(1);
      const std::string_view name = call.op.name();
      check_ranks<0>(name, x, weight);
      const ConvolutionWindow window{call.attribute<Axes>(0), call.attribute<Axes>(1), call.attribute<Axes>(3), call.attribute<int64_t>(4)};
      const Axes& extra = call.attribute<Axes>(2);
      check_window(name, window, x.shape.size() - 2);
      if (weight.shape[0] != x.shape[1]) {
        fail(ErrorKind::Value, "[{}] weight takes {} input channels, but x has {} (x: {}, weight: {})", name,
             weight.shape[0].text(), x.shape[1].text(), text(x), text(weight));
      }
      const Dim channels = weight.shape[1] * window.groups;
      if (call.operands.size() > 2 && call.operand(2).shape != Shape{channels}) {
        fail(ErrorKind::Value, "[{}] bias must have shape [{}], got {}", name, channels.text(), text(call.operand(2)));
      }
      TensorType result{x.dtype, Layout::ChannelsLast, Shape{x.shape[0], channels}};
      for (size_t i = 0; i + 2 < x.shape.size(); ++i) {
        const int64_t added = i < extra.size() ? extra[i] : 0;
        if (added < 0 || added >= std::max(window.stride[i], window.dilation[i])) {
          fail(ErrorKind::Value, "[{}] output_padding must be at least 0 and below stride or dilation, got {}", name, added);
        }
        result.shape.push_back((x.shape[i + 2] - 1) * window.stride[i] + (weight.shape[i + 2] - 1) * window.dilation[i] + 1 +
                               (added - window.padding[2 * i] - window.padding[2 * i + 1]));
      }
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Shape shape = call.result_type().shape;
      const Tensor y = ops::convolution_backward_data(call[0], call[1], shape, call.attribute<Axes>(0),
                                                      call.attribute<Axes>(1), call.attribute<Axes>(3),
                                                      call.attribute<int64_t>(4));
      if (call.size() < 3) return std::vector{y};
      Shape channels(shape.size(), Dim(1));
      channels[1] = shape[1];
      return std::vector{y + ops::reshape(call[2], channels)};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("convolution_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups)", 64),
    .cost = Cost{0, [](const Node& node) {
      return convolution_flops(node.operand(0)->type().shape, node.operand(1)->type().shape);
    }},
    .samples = Samples{"randn(2, 4, 3, 5), randn(4, 2, 3, 3), randn(2), stride=(2, 1), padding=(1, 1, 0, 1), output_padding=(1, 0), dilation=(1, 1)"})

}  // namespace lamella
