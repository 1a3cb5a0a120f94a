// The static attributes of a node: axes, shapes, options. They are part of every cache key; what
// changes from step to step (rates, bounds, offsets) is an operand instead.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/hash.h"
#include "lamella/base/ref.h"
#include "lamella/types/tensor_type.h"

namespace lamella {

// An attribute that is an object (a user's gradient function): compared and hashed by identity.
class LAMELLA_API AttributeObject : public RefCounted<AttributeObject> {
 public:
  virtual ~AttributeObject() = default;
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

inline Ref<const Attributes> make_attributes(std::vector<AttributeValue> values) {
  return Ref<const Attributes>(new Attributes(std::move(values)));
}

}  // namespace lamella
