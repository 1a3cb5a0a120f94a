// RandomHorizontalFlip, RandomCrop, Resize: transforms that move pixels.
#include <algorithm>
#include <cmath>

#include "lamella/data/transforms/convert.h"
#include "lamella/data/transforms/vision.h"

namespace lamella::data {

namespace {

struct ImageSize {
  int64_t height, width, channels;
};

ImageSize image_size(const Array& image, std::string_view operation) {
  if (image.rank() != 2 && image.rank() != 3) {
    fail(ErrorKind::Value, "[{}] an image has 2 or 3 axes (height, width, channels), got {}",
         operation, text(image.type()));
  }
  return {image.sizes()[0], image.sizes()[1], image.rank() == 3 ? image.sizes()[2] : 1};
}

Array image_like(const Array& image, int64_t height, int64_t width) {
  Axes sizes = image.sizes();
  sizes[0] = height;
  sizes[1] = width;
  return Array(image.dtype(), sizes);
}

// The pixel of [0, size) that stands for `place` outside it; -1: none.
int64_t inside(int64_t place, int64_t size, Border border) {
  if (place >= 0 && place < size) return place;
  switch (border) {
    case Border::Constant:
      return -1;
    case Border::Edge:
      return std::clamp<int64_t>(place, 0, size - 1);
    case Border::Reflect: {
      if (size == 1) return 0;
      const int64_t period = 2 * (size - 1);
      const int64_t turned = ((place % period) + period) % period;
      return std::min(turned, period - turned);
    }
    case Border::Symmetric: {
      const int64_t period = 2 * size;
      const int64_t turned = ((place % period) + period) % period;
      return std::min(turned, period - 1 - turned);
    }
  }
  return -1;
}

// One pixel of the fill colour, in the image's dtype.
Array fill_pixel(const std::vector<float>& fill, const Array& image, int64_t channels,
                 std::string_view operation) {
  if (fill.size() != 1 && static_cast<int64_t>(fill.size()) != channels) {
    fail(ErrorKind::Value, "[{}] {} fill values were given for an image of {} channels", operation,
         fill.size(), channels);
  }
  Array pixel(DType::Float32, {channels});
  auto values = pixel.writable_as<float>();
  for (size_t c = 0; c < values.size(); ++c) values[c] = fill[fill.size() == 1 ? 0 : c];
  return convert(pixel, image.dtype(), operation);
}

CropSize checked(CropSize size, std::string_view operation) {
  if (size.height < 1 || size.width < 1) {
    fail(ErrorKind::Value, "[{}] the size must be positive, got {} x {}", operation, size.height,
         size.width);
  }
  return size;
}

// Calls `body` with the pixel's size in bytes, as a constant where it is a common one, so that
// copying a pixel is an instruction or two.
template <typename Body>
void with_pixel_bytes(size_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      return body(std::integral_constant<size_t, 1>());
    case 3:
      return body(std::integral_constant<size_t, 3>());
    case 4:
      return body(std::integral_constant<size_t, 4>());
    case 12:
      return body(std::integral_constant<size_t, 12>());
    default:
      return body(bytes);
  }
}

size_t pixel_bytes(const Array& image, const ImageSize& size) {
  return static_cast<size_t>(size.channels * size_of(image.dtype()));
}

// Where each of `count` places along an axis of `size` reads: two neighbours and the weight of the
// second.
struct Tap {
  int64_t first, second;
  float weight;
};

std::vector<Tap> bilinear_taps(int64_t size, int64_t count) {
  std::vector<Tap> taps;
  const double scale = static_cast<double>(size) / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double place = std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0,
                                    static_cast<double>(size - 1));
    const auto first = static_cast<int64_t>(place);
    taps.push_back({first, std::min(first + 1, size - 1),
                    static_cast<float>(place - static_cast<double>(first))});
  }
  return taps;
}

template <typename T>
T rounded(float value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    // Half up, for a mean of uint8 values, which stays within 0 to 255.
    return static_cast<T>(static_cast<int>(2 * value + 1) / 2);
  }
}

template <typename T>
void resize_bilinear(const Array& image, Array& result, const ImageSize& from, const CropSize& to) {
  const auto rows = bilinear_taps(from.height, to.height);
  const auto columns = bilinear_taps(from.width, to.width);
  const auto channels = static_cast<size_t>(from.channels);
  const auto width = static_cast<size_t>(to.width) * channels;
  const auto in = image.as<T>();
  auto out = result.writable_as<T>();
  // A row of the image, stretched to the new width.
  const auto stretch = [&](int64_t row, std::vector<float>& line) {
    const size_t start = static_cast<size_t>(row * from.width) * channels;
    for (size_t x = 0; x < columns.size(); ++x) {
      const size_t first = start + static_cast<size_t>(columns[x].first) * channels;
      const size_t second = start + static_cast<size_t>(columns[x].second) * channels;
      for (size_t c = 0; c < channels; ++c) {
        const float a = static_cast<float>(in[first + c]), b = static_cast<float>(in[second + c]);
        line[x * channels + c] = a + (b - a) * columns[x].weight;
      }
    }
  };
  std::vector<float> upper(width), lower(width);
  int64_t upper_row = -1, lower_row = -1;
  for (size_t y = 0; y < rows.size(); ++y) {
    if (rows[y].first == lower_row) {
      std::swap(upper, lower);
      std::swap(upper_row, lower_row);
    }
    if (rows[y].first != upper_row) stretch(upper_row = rows[y].first, upper);
    if (rows[y].second != lower_row) stretch(lower_row = rows[y].second, lower);
    for (size_t i = 0; i < width; ++i) {
      out[y * width + i] = rounded<T>(upper[i] + (lower[i] - upper[i]) * rows[y].weight);
    }
  }
}

void resize_nearest(const Array& image, Array& result, const ImageSize& from, const CropSize& to) {
  std::byte* out = result.writable();
  with_pixel_bytes(pixel_bytes(image, from), [&](auto pixel) {
    for (int64_t y = 0; y < to.height; ++y) {
      const int64_t row = (2 * y + 1) * from.height / (2 * to.height);
      for (int64_t x = 0; x < to.width; ++x, out += pixel) {
        const int64_t column = (2 * x + 1) * from.width / (2 * to.width);
        std::memcpy(out, image.data() + static_cast<size_t>(row * from.width + column) * pixel,
                    pixel);
      }
    }
  });
}

}  // namespace

RandomHorizontalFlip::RandomHorizontalFlip(float probability) : probability_(probability) {
  if (!(probability >= 0.0f && probability <= 1.0f)) {
    fail(ErrorKind::Value, "[RandomHorizontalFlip] prob must be from 0 to 1, got {}", probability);
  }
}

Array RandomHorizontalFlip::apply_array(const Array& image, RandomStream& random) const {
  const ImageSize size = image_size(image, "RandomHorizontalFlip");
  if (random.uniform() >= probability_) return image;
  Array result(image.dtype(), image.sizes());
  const auto width = static_cast<size_t>(size.width);
  with_pixel_bytes(pixel_bytes(image, size), [&](auto pixel) {
    for (size_t y = 0; y < static_cast<size_t>(size.height); ++y) {
      const std::byte* from = image.data() + y * width * pixel;
      std::byte* to = result.writable() + y * width * pixel;
      for (size_t x = 0; x < width; ++x) {
        std::memcpy(to + (width - 1 - x) * pixel, from + x * pixel, pixel);
      }
    }
  });
  return result;
}

RandomCrop::RandomCrop(CropSize size, RandomCropOptions options)
    : size_(checked(size, "RandomCrop")), options_(std::move(options)) {
  const Padding& padding = options_.padding;
  if (padding.left < 0 || padding.top < 0 || padding.right < 0 || padding.bottom < 0) {
    fail(ErrorKind::Value, "[RandomCrop] padding must not be negative");
  }
  if (options_.fill.empty()) fail(ErrorKind::Value, "[RandomCrop] fill_value is empty");
}

Array RandomCrop::apply_array(const Array& image, RandomStream& random) const {
  const ImageSize size = image_size(image, "RandomCrop");
  Padding padding = options_.padding;
  int64_t height = size.height + padding.top + padding.bottom;
  int64_t width = size.width + padding.left + padding.right;
  if (options_.pad_if_needed) {
    const int64_t rows = std::max<int64_t>(0, size_.height - height);
    const int64_t columns = std::max<int64_t>(0, size_.width - width);
    padding.top += rows;
    padding.left += columns;
    height += 2 * rows;
    width += 2 * columns;
  }
  if (height < size_.height || width < size_.width || size.height < 1 || size.width < 1) {
    fail(ErrorKind::Value,
         "[RandomCrop] the image is {} x {} with its padding, smaller than the part of {} x {}",
         height, width, size_.height, size_.width);
  }
  const int64_t top = random.below(height - size_.height + 1) - padding.top;
  const int64_t left = random.below(width - size_.width + 1) - padding.left;

  const Array fill = fill_pixel(options_.fill, image, size.channels, "RandomCrop");
  Array result = image_like(image, size_.height, size_.width);
  const size_t pixel = pixel_bytes(image, size);
  // The columns that lie in the image are one piece; those outside are filled one by one.
  const int64_t first = std::clamp<int64_t>(-left, 0, size_.width);
  const int64_t last = std::clamp<int64_t>(size.width - left, first, size_.width);
  std::byte* out = result.writable();
  for (int64_t y = 0; y < size_.height; ++y) {
    const int64_t row = inside(y + top, size.height, options_.border);
    const auto outside = [&](int64_t x) {
      const int64_t column = inside(x + left, size.width, options_.border);
      const std::byte* from =
          row < 0 || column < 0
              ? fill.data()
              : image.data() + static_cast<size_t>(row * size.width + column) * pixel;
      std::memcpy(out + static_cast<size_t>(x) * pixel, from, pixel);
    };
    if (row < 0) {
      for (int64_t x = 0; x < size_.width; ++x) outside(x);
    } else {
      for (int64_t x = 0; x < first; ++x) outside(x);
      if (last > first) {
        std::memcpy(out + static_cast<size_t>(first) * pixel,
                    image.data() + static_cast<size_t>(row * size.width + first + left) * pixel,
                    static_cast<size_t>(last - first) * pixel);
      }
      for (int64_t x = last; x < size_.width; ++x) outside(x);
    }
    out += static_cast<size_t>(size_.width) * pixel;
  }
  return result;
}

Resize::Resize(CropSize size, Interpolation interpolation)
    : size_(checked(size, "Resize")), interpolation_(interpolation) {}

Resize::Resize(int64_t shorter_side, Interpolation interpolation)
    : size_(checked({shorter_side, shorter_side}, "Resize")),
      shorter_side_(shorter_side),
      interpolation_(interpolation) {}

CropSize Resize::size_for(const Axes& image) const {
  if (!shorter_side_) return size_;
  const int64_t height = image[0], width = image[1];
  if (height < width) return {*shorter_side_, *shorter_side_ * width / height};
  return {*shorter_side_ * height / width, *shorter_side_};
}

Array Resize::apply_array(const Array& image, RandomStream&) const {
  const ImageSize from = image_size(image, "Resize");
  if (from.height < 1 || from.width < 1) {
    fail(ErrorKind::Value, "[Resize] the image {} is empty", text(image.type()));
  }
  const CropSize to = size_for(image.sizes());
  if (to.height == from.height && to.width == from.width) return image;
  Array result = image_like(image, to.height, to.width);
  if (interpolation_ == Interpolation::Nearest) {
    resize_nearest(image, result, from, to);
    return result;
  }
  switch (image.dtype()) {
    case DType::UInt8:
      resize_bilinear<uint8_t>(image, result, from, to);
      break;
    case DType::Float32:
      resize_bilinear<float>(image, result, from, to);
      break;
    case DType::Float64:
      resize_bilinear<double>(image, result, from, to);
      break;
    default:
      fail(ErrorKind::Type, "[Resize] bilinear is for uint8, float32 and float64, got {}",
           text(image.type()));
  }
  return result;
}

}  // namespace lamella::data
