// How the gradient rule of a user's function is called; lamella/transform defines it.
#pragma once

#include "lamella/ops/opdef.h"

namespace lamella {

// Runs the rule held by the attribute object. No code is made from it.
class CustomGradientRule : public AttributeObject {
 public:
  Hash128 identity() const override { return {}; }
  virtual void apply(VjpCall& call) const = 0;
};

inline void apply_custom_gradient(const Ref<AttributeObject>& rule, VjpCall& call) {
  static_cast<const CustomGradientRule&>(*rule).apply(call);
}

}  // namespace lamella
