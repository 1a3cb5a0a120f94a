// The static attributes of a node: axes, shapes, options. They are part of every cache key; what
// changes from step to step (rates, bounds, offsets) is an operand instead.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/hash.h"
#include "lamella/base/ref.h"
#include "lamella/types/tensor_type.h"

namespace lamella {

// An attribute that is an object: a region, or a user's gradient function.
class LAMELLA_API AttributeObject : public RefCounted<AttributeObject> {
 public:
  virtual ~AttributeObject() = default;

  // Equal for objects that make the same code, and for those that may share code over symbolic
  // sizes.
  virtual Hash128 identity() const = 0;
  virtual Hash128 identity_without_sizes() const { return identity(); }
  // Whether an operation stays the same with the other in its place and all else as it is.
  virtual bool means_the_same(const AttributeObject& other) const { return this == &other; }
  // The sizes it holds, in a fixed order, and the same object with others in their place.
  virtual std::span<const int64_t> sizes() const { return {}; }
  virtual Ref<AttributeObject> with_sizes(std::span<const Dim>) const {
    return Ref<AttributeObject>(const_cast<AttributeObject*>(this));
  }
  // For dumps.
  virtual std::string description() const { return "<object>"; }
};

using AttributeValue =
    std::variant<bool, int64_t, double, DType, std::string, Axes, Shape, Ref<AttributeObject>>;

// "true", "3", "0.5", "f32", "\"same\"", "(0,1)", "[2,s0]"
LAMELLA_API std::string text(const AttributeValue& value);

// An immutable list of attribute values, in the order the operator declares them.
class LAMELLA_API Attributes : public RefCounted<Attributes> {
 public:
  explicit Attributes(std::vector<AttributeValue> values);

  size_t size() const { return values_.size(); }
  const AttributeValue& operator[](size_t index) const { return values_[index]; }
  template <typename T>
  const T& get(size_t index) const {
    return std::get<T>(values_[index]);
  }
  const std::vector<AttributeValue>& values() const { return values_; }

  // A digest of all values; sizes that differ give different digests.
  const Hash128& digest() const { return digest_; }
  // The same with the sizes inside Shape attributes left out: equal for calls that may share a
  // graph over symbolic sizes.
  const Hash128& digest_without_sizes() const { return digest_without_sizes_; }

  friend bool operator==(const Attributes& a, const Attributes& b) {
    return a.digest_ == b.digest_ && a.values_ == b.values_;
  }

 private:
  std::vector<AttributeValue> values_;
  Hash128 digest_, digest_without_sizes_;
};

// Hands out sizes one after another, to put them in place of those a recorded program has.
class SizeReader {
 public:
  explicit SizeReader(std::span<const Dim> sizes) : sizes_(sizes) {}

  Dim next() { return sizes_[next_++]; }
  // As many as `like` has.
  Shape next(const Shape& like) {
    Shape result;
    for (size_t i = 0; i < like.size(); ++i) result.push_back(next());
    return result;
  }
  std::span<const Dim> next(size_t count) {
    next_ += count;
    return sizes_.subspan(next_ - count, count);
  }

 private:
  std::span<const Dim> sizes_;
  size_t next_ = 0;
};

// The sizes inside attributes, appended in their order; `attributes` may be null.
LAMELLA_API void append_sizes(const Attributes* attributes, std::vector<int64_t>& sizes);
// The attributes with the next sizes in place of their own.
LAMELLA_API Ref<const Attributes> with_sizes(const Ref<const Attributes>& attributes,
                                             SizeReader& sizes);

inline Ref<const Attributes> make_attributes(std::vector<AttributeValue> values) {
  return Ref<const Attributes>(new Attributes(std::move(values)));
}

}  // namespace lamella
