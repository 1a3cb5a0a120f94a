// Convolution layers: parameters and padding around the operator.
#include "lamella/nn/convolution.h"

#include "lamella/ops/functions.h"

namespace lamella::nn {

namespace {

// What both kinds of layer refuse.
void check(std::string_view layer, int64_t in_channels, int64_t out_channels, int64_t group,
           PadMode mode, const Margins& padding, std::initializer_list<Pair> sizes, DType dtype) {
  require_float(layer, dtype);
  require_positive(layer, "in_channels", in_channels);
  require_positive(layer, "out_channels", out_channels);
  require_positive(layer, "group", group);
  for (Pair pair : sizes) {
    require_positive(layer, "kernel_size, stride and dilation", std::min(pair.height, pair.width));
  }
  if (in_channels % group != 0 || out_channels % group != 0) {
    fail(ErrorKind::Value, "[{}] in_channels {} and out_channels {} must divide into {} groups",
         layer, in_channels, out_channels, group);
  }
  if (mode != PadMode::Pad && !padding.none()) {
    fail(ErrorKind::Value, "[{}] padding is given, so pad_mode must be 'pad'", layer);
  }
}

}  // namespace

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
               const Conv2dOptions& options)
    : in_channels_(in_channels),
      out_channels_(out_channels),
      kernel_size_(kernel_size),
      options_(options) {
  check("Conv2d", in_channels, out_channels, options.group, options.pad_mode, options.padding,
        {kernel_size, options.stride, options.dilation}, options.dtype);
  const Shape shape{out_channels, in_channels / options.group, kernel_size.height,
                    kernel_size.width};
  add_parameter(
      "weight",
      make_ref<Parameter>(
          options.weight_init.or_else(default_weight()).make(shape, options.dtype, "weight")));
  if (options.bias == Bias::Added) {
    add_parameter("bias", make_ref<Parameter>(options.bias_init.or_else(default_bias(shape))
                                                  .make({out_channels}, options.dtype, "bias")));
  }
}

Tensor Conv2d::construct(const Tensor& x) {
  Margins margins = options_.padding;
  if (options_.pad_mode == PadMode::Same) {
    margins = same_margins(x.shape(), kernel_size_, options_.stride, options_.dilation);
  }
  return ops::conv2d(x, use("weight"), use_if_there("bias"), options_.stride.axes(), margins.axes(),
                     options_.dilation.axes(), options_.group);
}

std::string Conv2d::description() const {
  constexpr std::string_view kModes[] = {"same", "valid", "pad"};
  return fmt::format(
      "input_channels={}, output_channels={}, kernel_size=({}, {}), stride=({}, {}), pad_mode={}, "
      "group={}, has_bias={}",
      in_channels_, out_channels_, kernel_size_.height, kernel_size_.width, options_.stride.height,
      options_.stride.width, kModes[static_cast<size_t>(options_.pad_mode)], options_.group,
      bias() ? "True" : "False");
}

Conv2dTranspose::Conv2dTranspose(int64_t in_channels, int64_t out_channels, Pair kernel_size,
                                 const Conv2dTransposeOptions& options)
    : kernel_size_(kernel_size), options_(options) {
  check("Conv2dTranspose", in_channels, out_channels, options.group, options.pad_mode,
        options.padding, {kernel_size, options.stride, options.dilation}, options.dtype);
  const Shape shape{in_channels, out_channels / options.group, kernel_size.height,
                    kernel_size.width};
  add_parameter(
      "weight",
      make_ref<Parameter>(
          options.weight_init.or_else(default_weight()).make(shape, options.dtype, "weight")));
  if (options.bias == Bias::Added) {
    add_parameter("bias", make_ref<Parameter>(options.bias_init.or_else(default_bias(shape))
                                                  .make({out_channels}, options.dtype, "bias")));
  }
}

Tensor Conv2dTranspose::construct(const Tensor& x) {
  Margins margins = options_.padding;
  Pair extra = options_.output_padding;
  if (options_.pad_mode != PadMode::Pad) extra = 0;
  if (options_.pad_mode == PadMode::Same) {
    // The reach of a kernel beyond its stride is cut away; where it falls short, zeros follow.
    const auto cut = [](int64_t kernel, int64_t stride, int64_t dilation) {
      return (kernel - 1) * dilation + 1 - stride;
    };
    const int64_t rows = cut(kernel_size_.height, options_.stride.height, options_.dilation.height);
    const int64_t columns = cut(kernel_size_.width, options_.stride.width, options_.dilation.width);
    const auto some = [](int64_t count) { return std::max<int64_t>(0, count); };
    margins = {some(rows) / 2, some(rows) - some(rows) / 2, some(columns) / 2,
               some(columns) - some(columns) / 2};
    extra = {some(-rows), some(-columns)};
  }
  return ops::convolution_transpose(x, use("weight"), use_if_there("bias"), options_.stride.axes(),
                                    margins.axes(), extra.axes(), options_.dilation.axes(),
                                    options_.group);
}

}  // namespace lamella::nn
