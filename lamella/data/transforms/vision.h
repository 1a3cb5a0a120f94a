// Transforms of images. An image is [height, width] or [height, width, channels], of any real dtype
// unless said otherwise.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "lamella/data/transforms/transform.h"

namespace lamella::data {

// x * rescale + shift, in float32: x converted, one rounding after the product, one after the sum.
class LAMELLA_API Rescale : public BatchTransform {
 public:
  Rescale(float rescale, float shift) : rescale_(rescale), shift_(shift) {}
  std::string_view name() const override { return "Rescale"; }
  Array apply_batch(const Array& samples) const override;
  std::optional<ChannelAxis> pointwise(ChannelAxis channels) const override { return channels; }

 private:
  float rescale_, shift_;
};

// (x - mean) / std for each channel, in float32: x converted, one rounding after the difference,
// one after the quotient. The image has a channel axis, of as many channels as `mean` and `std`.
class LAMELLA_API Normalize : public BatchTransform {
 public:
  Normalize(std::vector<float> mean, std::vector<float> std,
            ChannelAxis channels = ChannelAxis::Last);
  std::string_view name() const override { return "Normalize"; }
  Array apply_batch(const Array& samples) const override;
  std::optional<ChannelAxis> pointwise(ChannelAxis channels) const override {
    return channels == channels_ ? std::optional(channels) : std::nullopt;
  }

 private:
  std::vector<float> mean_, std_;
  ChannelAxis channels_;
};

// [height, width, channels] to [channels, height, width].
class LAMELLA_API HWC2CHW : public BatchTransform {
 public:
  std::string_view name() const override { return "HWC2CHW"; }
  Array apply_batch(const Array& samples) const override;
  std::optional<ChannelAxis> pointwise(ChannelAxis channels) const override {
    return channels == ChannelAxis::Last ? std::optional(ChannelAxis::First) : std::nullopt;
  }
};

// Mirrors left and right with probability `probability`.
class LAMELLA_API RandomHorizontalFlip : public ArrayTransform {
 public:
  explicit RandomHorizontalFlip(float probability = 0.5f);
  std::string_view name() const override { return "RandomHorizontalFlip"; }
  Array apply_array(const Array& image, RandomStream& random) const override;

 private:
  float probability_;
};

// Rows or columns added on each side.
struct Padding {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// How added pixels are filled: with a constant; with the nearest pixel of the image; mirrored at
// the edge pixel, which is (symmetric) or is not (reflect) repeated.
enum class Border : uint8_t { Constant, Edge, Reflect, Symmetric };

struct CropSize {
  int64_t height = 0, width = 0;
};

struct RandomCropOptions {
  Padding padding = {};
  bool pad_if_needed = false;        // on both sides, where the image is still too small
  std::vector<float> fill = {0.0f};  // for every channel, or one each
  Border border = Border::Constant;
};

// Pads, then cuts a part of `size` at a random place. Throws Value if the image is too small.
class LAMELLA_API RandomCrop : public ArrayTransform {
 public:
  explicit RandomCrop(CropSize size, RandomCropOptions options = {});
  std::string_view name() const override { return "RandomCrop"; }
  Array apply_array(const Array& image, RandomStream& random) const override;

 private:
  CropSize size_;
  RandomCropOptions options_;
};

enum class Interpolation : uint8_t { Nearest, Bilinear };

// To another size. Pixel centres are aligned: pixel i of the result lies at (i + 0.5) * s - 0.5 in
// the image, where s is the ratio of the sizes. Bilinear computes in float32, first along the
// width, and rounds integers to nearest; places beyond the outermost centres take the edge pixel.
// For uint8, float32 and float64.
class LAMELLA_API Resize : public ArrayTransform {
 public:
  explicit Resize(CropSize size, Interpolation interpolation = Interpolation::Bilinear);
  // The shorter side becomes `shorter_side`; the other keeps the ratio, rounded down.
  explicit Resize(int64_t shorter_side, Interpolation interpolation = Interpolation::Bilinear);
  std::string_view name() const override { return "Resize"; }
  Array apply_array(const Array& image, RandomStream& random) const override;

 private:
  CropSize size_for(const Axes& image) const;

  CropSize size_;
  std::optional<int64_t> shorter_side_;
  Interpolation interpolation_;
};

}  // namespace lamella::data
