// Convolution: checks, layouts and dtypes, and the choice of the kernel.
#include "lamella/kernels/convolution.h"

#include <algorithm>
#include <string>

#include "lamella/base/error.h"
#include "lamella/kernels/convert.h"
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/copy.h"
#include "lamella/kernels/library_dtypes.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// "conv2d"
std::string operation(const TensorView& x) {
  return fmt::format("conv{}d", x.rank() - 2);
}

void check_options(const std::string& name, const ConvolutionOptions& options, uint32_t rank) {
  const auto check = [&](const char* what, const Spatial& values, int64_t lowest) {
    bool fits = values.size() == rank;
    for (int64_t value : values) fits &= value >= lowest;
    if (!fits) {
      fail(ErrorKind::Value, "[{}] {} must be {} numbers of at least {}, got [{}]", name, what,
           rank, lowest, fmt::join(values.begin(), values.end(), ","));
    }
  };
  check("stride", options.stride, 1);
  check("padding before", options.padding_before, 0);
  check("padding after", options.padding_after, 0);
  check("dilation", options.dilation, 1);
  if (options.groups < 1) {
    fail(ErrorKind::Value, "[{}] groups must be at least 1, got {}", name, options.groups);
  }
}

// Checks everything of a convolution or of one of its gradients (where x or weight or y may be the
// cotangent) and describes it.
ConvolutionProblem problem_of(const TensorView& x, const TensorView& weight, const TensorView* bias,
                              const TensorView& y, const ConvolutionOptions& options) {
  if (x.rank() < 3 || x.rank() > 5) {
    fail(ErrorKind::Value, "[convolution] x must have 3 to 5 axes, got {}", text(x));
  }
  const std::string name = operation(x);
  const char* op = name.c_str();
  require_same_dtype(op, "x", x, "weight", weight);
  require_same_dtype(op, "x", x, "y", y);
  if (bias != nullptr) require_same_dtype(op, "x", x, "bias", *bias);
  if (!is_float(x.dtype)) {
    fail(ErrorKind::Type, "[{}] takes float16, bfloat16, float32 or float64, got {}", name,
         lamella::name(x.dtype));
  }
  const uint32_t rank = x.sizes.size() - 2;
  check_options(name, options, rank);
  if (weight.rank() != x.rank()) {
    fail(ErrorKind::Value, "[{}] weight must have {} axes, got {}", name, x.rank(), text(weight));
  }
  const int64_t in_channels = x.sizes[1], out_channels = weight.sizes[0];
  if (in_channels % options.groups != 0 || out_channels % options.groups != 0) {
    fail(ErrorKind::Value,
         "[{}] {} input and {} output channels do not divide into {} groups (x: {}, weight: {})",
         name, in_channels, out_channels, options.groups, text(x), text(weight));
  }
  if (weight.sizes[1] * options.groups != in_channels) {
    fail(ErrorKind::Value,
         "[{}] weight has {} input channels for {} groups, but x has {} (x: {}, weight: {})", name,
         weight.sizes[1] * options.groups, options.groups, in_channels, text(x), text(weight));
  }
  ConvolutionProblem problem{.batch = x.sizes[0],
                             .in_channels = in_channels,
                             .out_channels = out_channels,
                             .groups = options.groups,
                             .stride = options.stride,
                             .before = options.padding_before,
                             .after = options.padding_after,
                             .dilation = options.dilation};
  Axes y_sizes = {x.sizes[0], out_channels};
  for (uint32_t i = 0; i < rank; ++i) {
    problem.in.push_back(x.sizes[i + 2]);
    problem.kernel.push_back(weight.sizes[i + 2]);
    if (weight.sizes[i + 2] < 1) {
      fail(ErrorKind::Value, "[{}] the kernel must not be empty (weight: {})", name, text(weight));
    }
    problem.out.push_back(convolved_size(x.sizes[i + 2], weight.sizes[i + 2], options.stride[i],
                                         options.padding_before[i], options.padding_after[i],
                                         options.dilation[i]));
    y_sizes.push_back(problem.out[i]);
  }
  require_sizes(op, "y", y, y_sizes);
  if (bias != nullptr) require_sizes(op, "bias", *bias, {out_channels});
  return problem;
}

// Float64, and what is empty.
bool needs_plain_loops(const TensorView& x, const TensorView& weight, const TensorView& y) {
  return x.dtype == DType::Float64 || x.count() == 0 || weight.count() == 0 || y.count() == 0;
}

enum class Pass { Forward, BackwardData, BackwardWeights };

// The dtype a convolution is computed in.
DType computed_dtype(const ConvolutionProblem& problem, Pass pass, DType dtype) {
  if (!library_takes(dtype)) return compute_dtype(dtype);
  // oneDNN's bfloat16 gradients of some depthwise convolutions are its general ones, many times
  // slower than the float32 ones made for them.
  const auto all_at_most = [](const Spatial& values, int64_t bound) {
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value <= bound; });
  };
  const bool depthwise = problem.groups > 1 && problem.groups == problem.in_channels;
  const bool special =
      all_at_most(problem.dilation, 1) &&
      (pass == Pass::Forward || (pass == Pass::BackwardData && all_at_most(problem.stride, 1)) ||
       (pass == Pass::BackwardWeights && all_at_most(problem.kernel, 3)));
  return depthwise && !special ? compute_dtype(dtype) : dtype;
}

// An operand as the kernels take it: itself, or a copy in scratch memory.
class Operand {
 public:
  enum class Form { Activation, Weight };

  Operand(const TensorView& given, Form form, DType dtype) : given_(given), used_(given) {
    const bool lies_well = form == Form::Activation ? is_channels_last(given) || is_row_major(given)
                                                    : is_row_major(given);
    if (dtype == given.dtype && lies_well) return;
    copied_ = true;
    used_ = row_major_view(nullptr, dtype, given.sizes);
    if (form == Form::Activation && !is_row_major(given)) {
      int64_t stride = given.sizes[1];
      used_.strides[1] = 1;
      for (uint32_t axis = given.sizes.size(); axis-- > 2;) {
        used_.strides[axis] = stride;
        stride *= given.sizes[axis];
      }
      used_.strides[0] = stride;
    }
  }
  int64_t bytes() const { return copied_ ? scratch_aligned(byte_count(used_)) : 0; }
  const TensorView& view() const { return used_; }

  void read(ScratchParts& parts) {
    if (!copied_) return;
    used_.data = parts.take(byte_count(used_));
    given_.dtype == used_.dtype ? copy(given_, used_) : convert(given_, used_);
  }
  void prepare_write(ScratchParts& parts) {
    if (copied_) used_.data = parts.take(byte_count(used_));
  }
  void finish_write() const {
    if (!copied_) return;
    given_.dtype == used_.dtype ? copy(used_, given_) : convert(used_, given_);
  }

 private:
  const TensorView& given_;
  TensorView used_;
  bool copied_ = false;
};

using enum Operand::Form;

}  // namespace

int64_t convolved_size(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after,
                       int64_t dilation) {
  const int64_t room = size + before + after - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

int64_t convolution_scratch_bytes(const TensorView& x, const TensorView& weight,
                                  const TensorView* bias, const TensorView& y,
                                  const ConvolutionOptions& options) {
  const ConvolutionProblem problem = problem_of(x, weight, bias, y, options);
  if (needs_plain_loops(x, weight, y)) return 0;
  const DType dtype = computed_dtype(problem, Pass::Forward, x.dtype);
  const Operand used_x(x, Activation, dtype), used_weight(weight, Weight, dtype),
      used_y(y, Activation, dtype);
  const int64_t bias_bytes = bias != nullptr ? Operand(*bias, Weight, dtype).bytes() : 0;
  return used_x.bytes() + used_weight.bytes() + used_y.bytes() + bias_bytes +
         scratch_aligned(convolution_onednn_scratch_bytes(problem, used_x.view(),
                                                          used_weight.view(), bias, used_y.view()));
}

void convolution(const TensorView& x, const TensorView& weight, const TensorView* bias,
                 const TensorView& y, const ConvolutionOptions& options, Scratch scratch) {
  const ConvolutionProblem problem = problem_of(x, weight, bias, y, options);
  if (needs_plain_loops(x, weight, y)) return convolution_native(problem, x, weight, bias, y);
  const DType dtype = computed_dtype(problem, Pass::Forward, x.dtype);
  Operand used_x(x, Activation, dtype), used_weight(weight, Weight, dtype),
      used_y(y, Activation, dtype);
  Operand used_bias(bias != nullptr ? *bias : weight, Weight, dtype);
  const int64_t copies = used_x.bytes() + used_weight.bytes() + used_y.bytes() +
                         (bias != nullptr ? used_bias.bytes() : 0);
  if (copies == 0) return convolution_onednn(problem, x, weight, bias, y, scratch);
  ScratchParts parts(scratch, convolution_scratch_bytes(x, weight, bias, y, options));
  used_x.read(parts);
  used_weight.read(parts);
  if (bias != nullptr) used_bias.read(parts);
  used_y.prepare_write(parts);
  convolution_onednn(problem, used_x.view(), used_weight.view(),
                     bias != nullptr ? &used_bias.view() : nullptr, used_y.view(), parts.rest());
  used_y.finish_write();
}

namespace {

// The operands and the kernel of a data gradient, chosen by shapes, layouts and dtype.
struct DataGradient {
  ConvolutionProblem problem;
  DType dtype;
  Operand dy, weight, dx;

  DataGradient(const ConvolutionProblem& described, const TensorView& given_dy,
               const TensorView& given_weight, const TensorView& given_dx)
      : problem(described),
        dtype(computed_dtype(problem, Pass::BackwardData, given_dy.dtype)),
        dy(given_dy, Activation, dtype),
        weight(given_weight, Weight, dtype),
        dx(given_dx, Activation, dtype) {}

  int64_t copied_bytes() const { return dy.bytes() + weight.bytes() + dx.bytes(); }

  int64_t inner_bytes() const {
    return scratch_aligned(
        takes_overlapping_data(problem, dy.view(), dx.view())
            ? convolution_backward_data_overlapping_scratch_bytes(problem, dy.view(), dx.view())
            : convolution_backward_data_onednn_scratch_bytes(problem, dy.view(), weight.view(),
                                                             dx.view()));
  }

  void run(Scratch scratch) const {
    if (takes_overlapping_data(problem, dy.view(), dx.view())) {
      convolution_backward_data_overlapping(problem, dy.view(), weight.view(), dx.view(), scratch);
    } else {
      convolution_backward_data_onednn(problem, dy.view(), weight.view(), dx.view(), scratch);
    }
  }
};

}  // namespace

int64_t convolution_backward_data_scratch_bytes(const TensorView& dy, const TensorView& weight,
                                                const TensorView& dx,
                                                const ConvolutionOptions& options) {
  const ConvolutionProblem problem = problem_of(dx, weight, nullptr, dy, options);
  if (needs_plain_loops(dx, weight, dy)) return 0;
  const DataGradient gradient(problem, dy, weight, dx);
  return gradient.copied_bytes() + gradient.inner_bytes();
}

void convolution_backward_data(const TensorView& dy, const TensorView& weight, const TensorView& dx,
                               const ConvolutionOptions& options, Scratch scratch) {
  const ConvolutionProblem problem = problem_of(dx, weight, nullptr, dy, options);
  if (needs_plain_loops(dx, weight, dy)) {
    return convolution_backward_data_native(problem, dy, weight, dx);
  }
  DataGradient gradient(problem, dy, weight, dx);
  if (gradient.copied_bytes() == 0) return gradient.run(scratch);
  ScratchParts parts(scratch, gradient.copied_bytes() + gradient.inner_bytes());
  gradient.dy.read(parts);
  gradient.weight.read(parts);
  gradient.dx.prepare_write(parts);
  gradient.run(parts.rest());
  gradient.dx.finish_write();
}

namespace {

// The operands and the kernel of a weight gradient, chosen by shapes, layouts and dtype.
struct WeightGradient {
  ConvolutionProblem problem;
  DType dtype;
  Operand x, dy, dweight;

  WeightGradient(const ConvolutionProblem& described, const TensorView& given_x,
                 const TensorView& given_dy, const TensorView& given_dweight)
      : problem(described),
        dtype(takes_depthwise_weights(problem, given_x, given_dy)
                  ? given_x.dtype
                  : computed_dtype(problem, Pass::BackwardWeights, given_x.dtype)),
        x(given_x, Activation, dtype),
        dy(given_dy, Activation, dtype),
        dweight(given_dweight, Weight, dtype) {}

  int64_t copied_bytes() const { return x.bytes() + dy.bytes() + dweight.bytes(); }

  int64_t inner_bytes() const {
    if (takes_depthwise_weights(problem, x.view(), dy.view())) {
      return convolution_depthwise_weights_scratch_bytes(problem);
    }
    if (needs_plain_loops(x.view(), dweight.view(), dy.view())) return 0;
    return scratch_aligned(convolution_backward_weights_onednn_scratch_bytes(
        problem, x.view(), dy.view(), dweight.view()));
  }

  void run(Scratch scratch) const {
    if (takes_depthwise_weights(problem, x.view(), dy.view())) {
      convolution_depthwise_weights(problem, x.view(), dy.view(), dweight.view(), scratch);
    } else if (needs_plain_loops(x.view(), dweight.view(), dy.view())) {
      convolution_backward_weights_native(problem, x.view(), dy.view(), dweight.view());
    } else {
      convolution_backward_weights_onednn(problem, x.view(), dy.view(), dweight.view(), scratch);
    }
  }
};

}  // namespace

int64_t convolution_backward_weights_scratch_bytes(const TensorView& x, const TensorView& dy,
                                                   const TensorView& dweight,
                                                   const TensorView* dbias,
                                                   const ConvolutionOptions& options) {
  const WeightGradient gradient(problem_of(x, dweight, dbias, dy, options), x, dy, dweight);
  int64_t bytes = gradient.copied_bytes(), inner = gradient.inner_bytes();
  if (dbias != nullptr) {
    bytes += Operand(*dbias, Weight, gradient.dtype).bytes();
    inner = std::max(inner, convolution_bias_gradient_scratch_bytes(gradient.dy.view()));
  }
  return bytes + inner;
}

void convolution_backward_weights(const TensorView& x, const TensorView& dy,
                                  const TensorView& dweight, const TensorView* dbias,
                                  const ConvolutionOptions& options, Scratch scratch) {
  WeightGradient gradient(problem_of(x, dweight, dbias, dy, options), x, dy, dweight);
  ScratchParts parts(scratch,
                     convolution_backward_weights_scratch_bytes(x, dy, dweight, dbias, options));
  gradient.x.read(parts);
  gradient.dy.read(parts);
  gradient.dweight.prepare_write(parts);
  gradient.run(parts.rest());
  gradient.dweight.finish_write();
  if (dbias == nullptr) return;
  Operand used_dbias(*dbias, Weight, gradient.dtype);
  used_dbias.prepare_write(parts);
  convolution_bias_gradient(gradient.dy.view(), used_dbias.view(), parts.rest());
  used_dbias.finish_write();
}

}  // namespace lamella::kernels
