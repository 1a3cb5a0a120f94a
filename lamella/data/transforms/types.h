// Transforms of dtype and of labels.
#pragma once

#include "lamella/data/transforms/transform.h"

namespace lamella::data {

// Any array as `dtype`; see convert.h for how values are rounded.
class LAMELLA_API TypeCast : public BatchTransform {
 public:
  explicit TypeCast(DType dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "TypeCast"; }
  Array apply_batch(const Array& samples) const override;
  std::optional<ChannelAxis> pointwise(ChannelAxis channels) const override { return channels; }

 private:
  DType dtype_;
};

// An integer label, [] or [1], as a vector [classes]: without smoothing 1 at the label and 0
// elsewhere, in the label's dtype; with smoothing s, 1 - s + s / classes at the label and
// s / classes elsewhere, in float32. Throws Index for a label outside [0, classes).
class LAMELLA_API OneHot : public BatchTransform {
 public:
  explicit OneHot(int64_t classes, float smoothing = 0.0f);
  std::string_view name() const override { return "OneHot"; }
  Array apply_batch(const Array& samples) const override;

 private:
  int64_t classes_;
  float smoothing_;
};

}  // namespace lamella::data
