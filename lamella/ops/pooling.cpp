// Maximum and average pooling over one to three spatial axes, their gradients, and the pooling to a
// given output size. Results lie in memory as their operand does.
#include "lamella/kernels/pooling.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// Adaptive pooling makes an operation for each window of an axis.
constexpr int64_t kMostWindows = 4096;

// A pooling's options as attributes, from number `first` on. Average pooling has no dilation.
struct PoolWindow {
  Axes kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

template <typename Call>
PoolWindow max_window(const Call& call, size_t first = 0) {
  return {call.template attribute<Axes>(first), call.template attribute<Axes>(first + 1),
          call.template attribute<Axes>(first + 2), call.template attribute<Axes>(first + 3),
          call.template attribute<bool>(first + 4)};
}

struct AverageWindow {
  PoolWindow window;
  bool count_include_pad;
  int64_t divisor;  // 0: the number of elements

  kernels::AverageOptions options() const {
    kernels::AverageOptions options{.count_include_pad = count_include_pad, .divisor_override = {}};
    if (divisor != 0) options.divisor_override = divisor;
    return options;
  }
};

template <typename Call>
AverageWindow average_window(const Call& call, size_t first = 0) {
  const Axes& kernel = call.template attribute<Axes>(first);
  return {
      {kernel, call.template attribute<Axes>(first + 1), call.template attribute<Axes>(first + 2),
       Axes(kernel.size(), 1), call.template attribute<bool>(first + 3)},
      call.template attribute<bool>(first + 4),
      call.template attribute<int64_t>(first + 5)};
}

kernels::PoolingOptions options_of(const PoolWindow& window) {
  kernels::PoolingOptions options;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    options.kernel.push_back(window.kernel[i]);
    options.stride.push_back(window.stride[i]);
    options.padding_before.push_back(window.padding[2 * i]);
    options.padding_after.push_back(window.padding[2 * i + 1]);
    options.dilation.push_back(window.dilation[i]);
  }
  return options;
}

// The size of one axis of the result, as kernels::pooled_size.
Dim pooled_size(Dim size, const PoolWindow& window, size_t i) {
  const int64_t before = window.padding[2 * i], after = window.padding[2 * i + 1];
  const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1, stride = window.stride[i];
  if (size.known()) {
    return kernels::pooled_size(
        size.value(), window.kernel[i], stride, before, after, window.dilation[i],
        window.ceil_mode ? kernels::Rounding::Ceil : kernels::Rounding::Floor);
  }
  const Dim room = size + (before + after - reach);
  // Of a symbolic size Ceil's last window cannot be told apart unless windows are one apart.
  if (!window.ceil_mode || stride == 1) return floor_div(room, stride) + 1;
  fail(ErrorKind::Value, "[max_pool] ceil_mode needs a known size, got {}", size.text());
}

void infer_pool(InferCall& call, const PoolWindow& window, DType dtype) {
  const TensorType& x = call.operand(0);
  const std::string_view name = call.op.name();
  if (x.shape.size() < 3 || x.shape.size() > 5) {
    fail(ErrorKind::Value, "[{}] x needs 3 to 5 axes (batch, channels, spatial), got {}", name,
         text(x));
  }
  const size_t spatial = x.shape.size() - 2;
  const auto check = [&](const char* what, const Axes& values, size_t count, int64_t least) {
    const bool fits = values.size() == count && std::all_of(values.begin(), values.end(),
                                                            [&](int64_t v) { return v >= least; });
    if (!fits) {
      fail(ErrorKind::Value, "[{}] {} takes {} numbers of at least {}, got {} (x: {})", name, what,
           count, least, text(AttributeValue(values)), text(x));
    }
  };
  check("kernel", window.kernel, spatial, 1);
  check("stride", window.stride, spatial, 1);
  check("padding", window.padding, 2 * spatial, 0);
  check("dilation", window.dilation, spatial, 1);
  TensorType result{dtype, x.layout, Shape{x.shape[0], x.shape[1]}};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    const Dim padded = x.shape[i + 2] + (window.padding[2 * i] + window.padding[2 * i + 1]);
    if ((padded - reach).certainly_below(0) && !x.shape[i + 2].is(0) && !window.ceil_mode) {
      fail(ErrorKind::Value,
           "[{}] the kernel reaches over {} elements of axis {}, which has {} with padding (x: {})",
           name, reach, i + 2, padded.text(), text(x));
    }
    result.shape.push_back(pooled_size(x.shape[i + 2], window, i));
  }
  call.results.push_back(result);
}

void infer_max_pool(InferCall& call) {
  infer_pool(call, max_window(call), call.operand(0).dtype);
}

void infer_average_pool(InferCall& call) {
  infer_pool(call, average_window(call).window, call.operand(0).dtype);
}

double pool_flops(const Node& node) {
  double flops = 1;
  for (int64_t size : node.attribute<Axes>(0)) flops *= static_cast<double>(size);
  for (Dim size : node.result()->type().shape)
    flops *= size.known() ? static_cast<double>(size.value()) : 0;
  return flops;
}

Tensor max_pool_cotangent(VjpCall& call) {
  const PoolWindow w = max_window(call);
  return ops::max_pool_backward(call.operand(0), call.cotangent(), w.kernel, w.stride, w.padding,
                                w.dilation, w.ceil_mode);
}

// The spatial axes as one.
Tensor flat_spatial(const Tensor& x) {
  Dim count = 1;
  for (size_t i = 2; i < x.shape().size(); ++i) count = count * x.shape()[i];
  return ops::reshape(x, Shape{x.shape()[0], x.shape()[1], count});
}

}  // namespace

LAMELLA_OP(max_pool, (Operand x, Axes kernel, Axes stride, Axes padding, Axes dilation, bool ceil_mode = false),
    .doc = "The largest element of each window over the spatial axes of x [N, C, spatial...]; NaN if any "
           "is NaN. Padding never wins. The gradient goes to the first maximum of each window.",
    .accepts = kFloats, .infer = infer_max_pool,
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::max_pool(call.operands[0], call.results[0], options_of(max_window(call)));
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) { call.give(0, max_pool_cotangent(call)); }),
    .batch = batch::joined_samples<1>,
    .reference = numpy("max_pool(x, kernel, stride, padding, dilation, ceil_mode)", 0), .cost = Cost{0, pool_flops},
    .samples = Samples{"randn(2, 3, 6, 5), kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0), dilation=(1, 1)",
                       "randn(2, 3, 7, 7), kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1), dilation=(1, 1), ceil_mode=True",
                       "randn(2, 3, 9), kernel=(3,), stride=(1,), padding=(1, 1), dilation=(2,)"})

LAMELLA_OP_MULTI(max_pool_with_indices, (Operand x, Axes kernel, Axes stride, Axes padding, Axes dilation, bool ceil_mode = false),
    .doc = "max_pool, and the place of each maximum in x's row-major spatial extent (-1 for a window "
           "without elements), int64.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      infer_pool(call, max_window(call), call.operand(0).dtype);
      infer_pool(call, max_window(call), DType::Int64);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::max_pool_with_indices(call.operands[0], call.results[0], call.results[1],
                                                      options_of(max_window(call)));
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      if (call.has_cotangent(0)) call.give(0, max_pool_cotangent(call));
    }),
    .batch = batch::joined_samples<1>,
    .reference = numpy("max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode)", 0),
    .cost = Cost{0, pool_flops},
    .samples = Samples{"randn(2, 3, 6, 5), kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0), dilation=(1, 1)"})

LAMELLA_OP(max_pool_backward, (Operand x, Operand cotangent, Axes kernel, Axes stride, Axes padding, Axes dilation, bool ceil_mode),
    .doc = "The cotangent of max_pool's x.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      infer_pool(call, max_window(call), call.operand(0).dtype);
      if (call.operand(1).shape != call.results[0].shape) {
        fail(ErrorKind::Value, "[max_pool_backward] cotangent must have the pooled shape {}, got {} (x: {})",
             text(call.results[0].shape), text(call.operand(1)), text(call.operand(0)));
      }
      call.results[0] = call.operand(0);
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       kernels::max_pool_backward(call.operands[0], call.operands[1], call.results[0],
                                                  options_of(max_window(call)), call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::pooling_backward_scratch_bytes(call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      // Linear in the cotangent, and constant in x but for its jumps.
      if (!call.needs(1)) return;
      const PoolWindow w = max_window(call);
      const Tensor indices = ops::max_pool_with_indices(call.operand(0), w.kernel, w.stride, w.padding,
                                                        w.dilation, w.ceil_mode)[1];
      const Tensor picked = ops::gather_elements(flat_spatial(call.cotangent()), flat_spatial(indices), 2);
      call.give(1, ops::reshape(picked, call.operand(1).shape()));
    }),
    .batch = batch::joined_samples<2>,
    .reference = numpy("max_pool_backward(x, cotangent, kernel, stride, padding, dilation, ceil_mode)", 4),
    .cost = Cost{0, pool_flops},
    .samples = Samples{"randn(2, 3, 6, 4), randn(2, 3, 3, 2), kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0), dilation=(1, 1), ceil_mode=False"})

LAMELLA_OP(avg_pool, (Operand x, Axes kernel, Axes stride, Axes padding, bool ceil_mode = false,
                      bool count_include_pad = true, int64_t divisor = 0),
    .doc = "The mean of each window over the spatial axes of x [N, C, spatial...]. It divides by the number "
           "of elements, padding counted if count_include_pad (what ceil_mode adds behind it never is), or "
           "by divisor unless that is 0.",
    .accepts = kFloats, .infer = infer_average_pool,
    .lower = kernel({.run = [](const KernelCall& call) {
                       const AverageWindow average = average_window(call);
                       kernels::average_pool(call.operands[0], call.results[0], options_of(average.window), average.options());
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      const AverageWindow a = average_window(call);
      call.give(0, ops::avg_pool_backward(call.cotangent(), call.operand(0).shape(),
                                          static_cast<int64_t>(call.operand(0).type().layout), a.window.kernel,
                                          a.window.stride, a.window.padding, a.count_include_pad, a.divisor));
    }),
    .batch = batch::joined_samples<1>,
    .reference = numpy("avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor)", 8),
    .cost = Cost{0, pool_flops},
    .samples = Samples{"randn(2, 3, 6, 5), kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0)",
                       "randn(2, 3, 7, 7), kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1), ceil_mode=True, count_include_pad=False",
                       "randn(2, 3, 9), kernel=(3,), stride=(2,), padding=(1, 1), divisor=2"})

LAMELLA_OP(avg_pool_backward, (Operand cotangent, Shape x_shape, int64_t x_layout, Axes kernel, Axes stride, Axes padding,
                               bool count_include_pad, int64_t divisor),
    .doc = "The cotangent of avg_pool's x, of shape x_shape in memory order x_layout.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      call.results.push_back({call.operand(0).dtype, static_cast<Layout>(call.attribute<int64_t>(1)), call.attribute<Shape>(0)});
    },
    .lower = kernel({.run = [](const KernelCall& call) {
                       const Axes& kernel = call.attribute<Axes>(2);
                       const AverageWindow average{
                           {kernel, call.attribute<Axes>(3), call.attribute<Axes>(4), Axes(kernel.size(), 1)},
                           call.attribute<bool>(5), call.attribute<int64_t>(6)};
                       kernels::average_pool_backward(call.operands[0], call.results[0], options_of(average.window),
                                                      average.options(), call.scratch);
                     },
                     .scratch_bytes = [](const KernelCall& call) {
                       return kernels::pooling_backward_scratch_bytes(call.results[0]);
                     },
                     .strided_operands = true}),
    .vjp = vjp([](VjpCall& call) {
      // The transpose of a linear map; the operand's sizes tell whether windows were rounded up.
      const Tensor cotangent = call.cotangent();
      const Axes &kernel = call.attribute<Axes>(2), &stride = call.attribute<Axes>(3), &padding = call.attribute<Axes>(4);
      bool ceil_mode = false;
      for (size_t i = 0; i < kernel.size(); ++i) {
        const PoolWindow floor{kernel, stride, padding, Axes(kernel.size(), 1), false};
        ceil_mode = ceil_mode || pooled_size(cotangent.shape()[i + 2], floor, i) != call.operand(0).shape()[i + 2];
      }
      call.give(0, ops::avg_pool(cotangent, kernel, stride, padding, ceil_mode, call.attribute<bool>(5), call.attribute<int64_t>(6)));
    }),
    .batch = batch::joined_samples<1, 0>,
    .reference = numpy("avg_pool_backward(cotangent, x_shape, kernel, stride, padding, count_include_pad, divisor)", 16),
    .cost = Cost{4},
    .samples = Samples{"randn(2, 3, 3, 2), x_shape=(2, 3, 6, 4), x_layout=0, kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0), count_include_pad=True, divisor=0"})

LAMELLA_OP(global_avg_pool, (Operand x),
    .doc = "The mean over all spatial axes of x [N, C, spatial...], which keep size 1.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      if (result.shape.size() < 3) fail(ErrorKind::Value, "[global_avg_pool] x needs at least 3 axes, got {}", text(result));
      for (size_t i = 2; i < result.shape.size(); ++i) result.shape[i] = 1;
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      Axes axes;
      for (int axis = 2; axis < call[0].rank(); ++axis) axes.push_back(axis);
      return std::vector{ops::mean(call[0], axes, true)};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("np.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)", 16), .cost = Cost{1},
    .samples = Samples{"randn(2, 3, 4, 5)", "randn(2, 3, 7)"})

LAMELLA_OP(adaptive_avg_pool, (Operand x, Axes size),
    .doc = "The mean of windows that divide each spatial axis into `size` parts: part i of a size n reaches "
           "from floor(i n / size) to ceil((i + 1) n / size).",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const Axes& size = call.attribute<Axes>(0);
      if (result.shape.size() < 3 || size.size() != result.shape.size() - 2) {
        fail(ErrorKind::Value, "[adaptive_avg_pool] size must have one number a spatial axis, got {} (x: {})",
             text(AttributeValue(size)), text(result));
      }
      for (size_t i = 0; i < size.size(); ++i) {
        if (size[i] < 1 || size[i] > kMostWindows) {
          fail(ErrorKind::Value, "[adaptive_avg_pool] sizes must be from 1 to {}, got {}", kMostWindows, size[i]);
        }
        if (!result.shape[i + 2].known() && size[i] != 1) {
          fail(ErrorKind::Value, "[adaptive_avg_pool] needs known sizes unless it pools to 1 (x: {})", text(result));
        }
        result.shape[i + 2] = size[i];
      }
      call.results.push_back(result);
    },
    .lower = composite([](const CompositeCall& call) {
      const Axes& size = call.attribute<Axes>(0);
      Tensor x = call[0];
      Axes whole;
      for (size_t i = 0; i < size.size(); ++i) {
        if (size[i] == 1) whole.push_back(static_cast<int64_t>(i + 2));
      }
      if (!whole.empty()) x = ops::mean(x, whole, true);
      // One axis at a time: the mean over a window is the mean of means over its rows.
      for (size_t i = 0; i < size.size(); ++i) {
        const auto axis = static_cast<int64_t>(i + 2);
        if (size[i] == 1) continue;
        const int64_t n = x.shape()[i + 2].value();
        if (n % size[i] == 0) {
          if (n == size[i]) continue;
          Axes kernel(size.size(), 1), padding(2 * size.size(), 0);
          kernel[i] = n / size[i];
          x = ops::avg_pool(x, kernel, kernel, padding);
          continue;
        }
        std::vector<Tensor> parts;
        for (int64_t part = 0; part < size[i]; ++part) {
          const int64_t begin = part * n / size[i], end = ((part + 1) * n + size[i] - 1) / size[i];
          parts.push_back(ops::mean(ops::narrow(x, begin, axis, Shape{end - begin}), {axis}, true));
        }
        x = ops::concat(parts, axis);
      }
      return std::vector{x};
    }),
    .vjp = from_composite,
    .batch = batch::joined_samples<1>,
    .reference = numpy("adaptive_avg_pool(x, size)", 16), .cost = Cost{4},
    .samples = Samples{"randn(2, 3, 6, 8), size=(3, 2)", "randn(2, 3, 7, 5), size=(3, 4)", "randn(2, 3, 7, 5), size=(1, 1)"})

LAMELLA_OP_MULTI(adaptive_max_pool, (Operand x, Axes size),
    .doc = "The maxima of the windows of adaptive_avg_pool, and their row-major places (int64) in x's spatial axes, the "
           "first of equal ones; a NaN is a maximum.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      TensorType result = call.operand(0);
      const Axes& size = call.attribute<Axes>(0);
      if (result.shape.size() < 3 || size.size() != result.shape.size() - 2) {
        fail(ErrorKind::Value, "[adaptive_max_pool] size must have one number a spatial axis, got {} (x: {})",
             text(AttributeValue(size)), text(result));
      }
      for (size_t i = 0; i < size.size(); ++i) {
        if (size[i] < 1 || size[i] > kMostWindows || result.shape[i + 2].is(0)) {
          fail(ErrorKind::Value, "[adaptive_max_pool] cannot divide axis {} into {} windows (x: {})", i + 2, size[i],
               text(call.operand(0)));
        }
        result.shape[i + 2] = size[i];
      }
      result.layout = Layout::RowMajor;
      call.results.push_back(result);
      result.dtype = DType::Int64;
      call.results.push_back(result);
    },
    .lower = composite_of_moves([](const CompositeCall& call) {
      const Axes& size = call.attribute<Axes>(0);
      Tensor values = call[0];
      Shape plane(call[0].shape().begin() + 2, call[0].shape().end());
      Tensor places = ops::broadcast_to(ops::element_numbers(plane), values.shape());
      // The last axis first, so that of equal maxima the first row's first one is kept.
      for (size_t i = size.size(); i-- > 0;) {
        const auto axis = static_cast<int64_t>(i + 2);
        const int64_t n = values.shape()[i + 2].value();
        std::vector<Tensor> maxima, origins;
        for (int64_t part = 0; part < size[i]; ++part) {
          const int64_t begin = part * n / size[i], end = ((part + 1) * n + size[i] - 1) / size[i];
          const Tensor window = ops::narrow(values, begin, axis, Shape{end - begin});
          const Tensor first = ops::argmax(window, axis, true);
          maxima.push_back(ops::gather_elements(window, first, axis, false, "adaptive_max_pool"));
          origins.push_back(ops::gather_elements(ops::narrow(places, begin, axis, Shape{end - begin}), first, axis, false,
                                                 "adaptive_max_pool"));
        }
        values = ops::concat(maxima, axis);
        places = ops::concat(origins, axis);
      }
      return std::vector{values, places};
    }),
    .vjp = vjp([](VjpCall& call) {
      const TensorType& x = call.node().operand(0)->type();
      const auto flat = [](const Shape& shape) {
        const Shape spatial(shape.begin() + 2, shape.end());
        return Shape{shape[0], shape[1], element_count(spatial)};
      };
      const Tensor places = ops::reshape(call.result(1), flat(call.result(1).shape()));
      const Tensor cotangent = ops::reshape(call.cotangent(0), flat(call.result(1).shape()));
      const Tensor zeros = ops::zeros_of({x.dtype, Layout::RowMajor, flat(x.shape)});
      call.give(0, ops::reshape(ops::scatter_elements(zeros, places, cotangent, 2, "add", false, "adaptive_max_pool"), x.shape));
    }),
    .batch = batch::joined_samples<1>,
    .reference = numpy("adaptive_max_pool(x, size)", 0), .cost = Cost{4},
    .samples = Samples{"distinct(2, 3, 6, 8), size=(3, 2)", "distinct(2, 3, 7, 5), size=(3, 4)", "distinct(2, 3, 7), size=(2,)"})

}  // namespace lamella
