// dtype conversion and one-hot labels.
#include "lamella/data/transforms/types.h"

#include "lamella/data/transforms/convert.h"

namespace lamella::data {

Array TypeCast::apply_batch(const Array& samples) const {
  return convert(samples, dtype_, "TypeCast");
}

OneHot::OneHot(int64_t classes, float smoothing) : classes_(classes), smoothing_(smoothing) {
  if (classes < 1) {
    fail(ErrorKind::Value, "[OneHot] num_classes must be at least 1, got {}", classes);
  }
  if (!(smoothing >= 0.0f && smoothing <= 1.0f)) {
    fail(ErrorKind::Value, "[OneHot] smoothing_rate must be from 0 to 1, got {}", smoothing);
  }
}

Array OneHot::apply_batch(const Array& samples) const {
  const bool single = samples.rank() == 1 || (samples.rank() == 2 && samples.sizes()[1] == 1);
  if (!is_integer(samples.dtype()) || !single) {
    fail(ErrorKind::Type, "[OneHot] a label must be one integer, got {}", text(samples.type()));
  }
  const Array labels = convert(samples, DType::Int64, "OneHot");
  const auto classes = static_cast<size_t>(classes_);
  const float rest = smoothing_ / static_cast<float>(classes_);
  Array vectors(DType::Float32, {labels.count(), classes_});
  auto out = vectors.writable_as<float>();
  std::fill(out.begin(), out.end(), rest);
  for (size_t i = 0; const int64_t label : labels.as<int64_t>()) {
    if (label < 0 || label >= classes_) {
      fail(ErrorKind::Index, "[OneHot] label {} is out of range for {} classes", label, classes_);
    }
    out[i++ * classes + static_cast<size_t>(label)] = 1.0f - smoothing_ + rest;
  }
  return smoothing_ > 0 ? vectors : convert(vectors, samples.dtype(), "OneHot");
}

}  // namespace lamella::data
