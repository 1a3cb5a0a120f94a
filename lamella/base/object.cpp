// Counting here, or in the owner the count was handed over to.
#include "lamella/base/object.h"

#include "lamella/base/error.h"

namespace lamella {

namespace {

constexpr uintptr_t kCountedHere = 1;
constexpr uintptr_t kOne = 2;
Object::Owner owner_functions{};

}  // namespace

void Object::install_owner(Owner functions) {
  owner_functions = functions;
}

Object::~Object() = default;

void Object::retain() const {
  uintptr_t state = state_.load(std::memory_order_relaxed);
  while ((state & kCountedHere) != 0) {
    if (state_.compare_exchange_weak(state, state + kOne, std::memory_order_relaxed)) return;
  }
  owner_functions.retain(reinterpret_cast<void*>(state));
}

void Object::release() const {
  uintptr_t state = state_.load(std::memory_order_relaxed);
  while ((state & kCountedHere) != 0) {
    if (state_.compare_exchange_weak(state, state - kOne, std::memory_order_acq_rel)) {
      if (state - kOne == kCountedHere) delete this;
      return;
    }
  }
  owner_functions.release(reinterpret_cast<void*>(state));
}

void Object::hand_over(void* owner) {
  const auto address = reinterpret_cast<uintptr_t>(owner);
  LAMELLA_CHECK((address & kCountedHere) == 0 && owner_functions.retain != nullptr);
  const uintptr_t state = state_.exchange(address, std::memory_order_acq_rel);
  LAMELLA_CHECK((state & kCountedHere) != 0);
  for (uintptr_t count = state / kOne; count > 0; --count) owner_functions.retain(owner);
}

void* Object::owner() const {
  const uintptr_t state = state_.load(std::memory_order_acquire);
  return (state & kCountedHere) != 0 ? nullptr : reinterpret_cast<void*>(state);
}

}  // namespace lamella
