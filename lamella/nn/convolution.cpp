// Convolution layers: parameters and padding around the operator.
#include "lamella/nn/convolution.h"

#include "lamella/ops/functions.h"

namespace lamella::nn {

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size,
               const Conv2dOptions& options)
    : in_channels_(in_channels),
      out_channels_(out_channels),
      kernel_size_(kernel_size),
      options_(options) {
  require_positive("Conv2d", "in_channels", in_channels);
  require_positive("Conv2d", "out_channels", out_channels);
  for (const auto& [name, pair] : {std::pair<std::string_view, Pair>{"kernel_size", kernel_size},
                                   {"stride", options.stride},
                                   {"dilation", options.dilation}}) {
    require_positive("Conv2d", name, std::min(pair.height, pair.width));
  }
  require_positive("Conv2d", "group", options.group);
  if (in_channels % options.group != 0 || out_channels % options.group != 0) {
    fail(ErrorKind::Value, "[Conv2d] in_channels {} and out_channels {} must divide into {} groups",
         in_channels, out_channels, options.group);
  }
  if (options.pad_mode != PadMode::Pad && !options.padding.none()) {
    fail(ErrorKind::Value, "[Conv2d] padding is given, so pad_mode must be 'pad'");
  }
  const Shape shape{out_channels, in_channels / options.group, kernel_size.height,
                    kernel_size.width};
  weight_ = add_parameter(
      "weight",
      make_ref<Parameter>(
          options.weight_init.or_else(default_weight()).make(shape, options.dtype, "weight")));
  if (options.bias == Bias::Added) {
    bias_ = add_parameter("bias",
                          make_ref<Parameter>(options.bias_init.or_else(default_bias(shape))
                                                  .make({out_channels}, options.dtype, "bias")));
  }
}

Tensor Conv2d::construct(const Tensor& x) {
  Margins margins = options_.padding;
  if (options_.pad_mode == PadMode::Same) {
    margins = same_margins(x.shape(), kernel_size_, options_.stride, options_.dilation);
  }
  return ops::conv2d(x, use(weight_), bias_ ? Operand(use(bias_)) : Operand(),
                     options_.stride.axes(), margins.axes(), options_.dilation.axes(),
                     options_.group);
}

std::string Conv2d::description() const {
  constexpr std::string_view kModes[] = {"same", "valid", "pad"};
  return fmt::format(
      "input_channels={}, output_channels={}, kernel_size=({}, {}), stride=({}, {}), pad_mode={}, "
      "group={}, has_bias={}",
      in_channels_, out_channels_, kernel_size_.height, kernel_size_.width, options_.stride.height,
      options_.stride.width, kModes[static_cast<size_t>(options_.pad_mode)], options_.group,
      bias_ ? "True" : "False");
}

}  // namespace lamella::nn
