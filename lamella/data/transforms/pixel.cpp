// Rescale, Normalize, HWC2CHW: transforms of each pixel.
#include <algorithm>

#include "lamella/data/transforms/convert.h"
#include "lamella/data/transforms/vision.h"

namespace lamella::data {

namespace {

// Moves elements of `Size` bytes from [pixels, channels] to [channels, pixels].
template <size_t Size>
void channels_first(const std::byte* from, std::byte* to, size_t pixels, size_t channels) {
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < pixels; ++i) {
      std::memcpy(to + (c * pixels + i) * Size, from + (i * channels + c) * Size, Size);
    }
  }
}

}  // namespace

Array Rescale::apply_batch(const Array& samples) const {
  const Array values = convert(samples, DType::Float32, "Rescale");
  Array result(DType::Float32, values.sizes());
  const auto in = values.as<float>();
  const auto out = result.writable_as<float>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = in[i] * rescale_ + shift_;
  return result;
}

Normalize::Normalize(std::vector<float> mean, std::vector<float> std, ChannelAxis channels)
    : mean_(std::move(mean)), std_(std::move(std)), channels_(channels) {
  if (mean_.empty() || mean_.size() != std_.size()) {
    fail(ErrorKind::Value, "[Normalize] mean has {} numbers, std has {}; both need one a channel",
         mean_.size(), std_.size());
  }
  for (float deviation : std_) {
    if (!(deviation > 0.0f)) {
      fail(ErrorKind::Value, "[Normalize] every std must be positive, got {}", deviation);
    }
  }
}

Array Normalize::apply_batch(const Array& samples) const {
  const int rank = samples.rank();
  // An image of one channel may lack the axis.
  const bool axisless = rank == 3 && mean_.size() == 1;
  if (rank != 4 && !axisless) {
    fail(ErrorKind::Value, "[Normalize] an image has 3 axes (or 2 for one channel), got {}",
         text(samples.row(0).type()));
  }
  const int64_t channels = axisless ? 1 : samples.sizes()[channels_ == ChannelAxis::First ? 1 : 3];
  if (channels != static_cast<int64_t>(mean_.size())) {
    fail(ErrorKind::Value,
         "[Normalize] mean and std have {} numbers, but the image {} has {} channels", mean_.size(),
         text(samples.row(0).type()), channels);
  }
  const Array values = convert(samples, DType::Float32, "Normalize");
  Array result(DType::Float32, values.sizes());
  const auto in = values.as<float>();
  const auto out = result.writable_as<float>();
  const size_t count = mean_.size();
  if (count == 1 || channels_ == ChannelAxis::First) {
    const size_t run =
        count == 1
            ? in.size()
            : in.size() / std::max<size_t>(1, static_cast<size_t>(samples.sizes()[0]) * count);
    for (size_t start = 0, c = 0; start < in.size(); start += run, c = (c + 1) % count) {
      const float mean = mean_[c], deviation = std_[c];
      for (size_t i = start; i < start + run; ++i) out[i] = (in[i] - mean) / deviation;
    }
  } else {
    for (size_t i = 0; i < in.size(); i += count) {
      for (size_t c = 0; c < count; ++c) out[i + c] = (in[i + c] - mean_[c]) / std_[c];
    }
  }
  return result;
}

Array HWC2CHW::apply_batch(const Array& samples) const {
  if (samples.rank() != 4) {
    fail(ErrorKind::Value, "[HWC2CHW] an image has the axes height, width, channels; got {}",
         text(samples.row(0).type()));
  }
  const Axes& from = samples.sizes();
  const Axes sizes = {from[0], from[3], from[1], from[2]};
  if (from[3] == 1) return samples.reshaped(sizes);
  Array result(samples.dtype(), sizes);
  const auto pixels = static_cast<size_t>(from[1] * from[2]);
  const auto channels = static_cast<size_t>(from[3]);
  const auto run = [&]<size_t Size>() {
    const size_t bytes = pixels * channels * Size;
    for (size_t i = 0; i < static_cast<size_t>(from[0]); ++i) {
      channels_first<Size>(samples.data() + i * bytes, result.writable() + i * bytes, pixels,
                           channels);
    }
  };
  switch (size_of(samples.dtype())) {
    case 1:
      run.operator()<1>();
      break;
    case 2:
      run.operator()<2>();
      break;
    case 4:
      run.operator()<4>();
      break;
    case 8:
      run.operator()<8>();
      break;
    default:
      run.operator()<16>();
      break;
  }
  return result;
}

}  // namespace lamella::data
