// Padding arithmetic.
#include "lamella/nn/window.h"

#include "lamella/base/error.h"

namespace lamella::nn {

PadMode pad_mode_from_name(std::string_view name, std::string_view layer) {
  std::string lower(name);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
  if (lower == "same") return PadMode::Same;
  if (lower == "valid") return PadMode::Valid;
  if (lower == "pad") return PadMode::Pad;
  fail(ErrorKind::Value, "[{}] pad_mode must be same, valid or pad, got '{}'", layer, name);
}

namespace {

int64_t same_total(int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t windows = (size + stride - 1) / stride;
  const int64_t reach = (windows - 1) * stride + (kernel - 1) * dilation + 1;
  return std::max<int64_t>(0, reach - size);
}

}  // namespace

Margins same_margins(const Shape& x, Pair kernel, Pair stride, Pair dilation) {
  if (x.size() != 4) {
    fail(ErrorKind::Value, "[pad_mode] 'same' needs x of four axes (N, C, H, W), got shape {}",
         text(x));
  }
  const int64_t rows = same_total(x[2].value(), kernel.height, stride.height, dilation.height);
  const int64_t columns = same_total(x[3].value(), kernel.width, stride.width, dilation.width);
  return {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2};
}

}  // namespace lamella::nn
