// Object: base of the classes that users subclass, also from another language.
//
// The count lives in the object until it is handed over to an object of that language; from then on
// `retain` and `release` are that object's, so that a subclass written there lives while C++ holds
// it, and the other way round.
#pragma once

#include <atomic>
#include <cstdint>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"

namespace lamella {

class LAMELLA_API Object {
 public:
  // How counts that were handed over are kept; each function takes what locks it needs.
  struct Owner {
    void (*retain)(void* owner);
    void (*release)(void* owner);
  };
  static void install_owner(Owner functions);

  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  void retain() const;
  void release() const;
  // Whether references are counted: a variable of the program that nobody refers to has none, and
  // holding it would end with its destruction.
  bool is_held() const { return state_.load(std::memory_order_relaxed) != 1; }
  // Hands the references held so far over to `owner`, once: it is retained for each. From then on
  // the owner destroys this object when it dies itself.
  void hand_over(void* owner);
  // The owner the count was handed over to; null if it is here.
  void* owner() const;

 private:
  // The count shifted left with the low bit set, or the owner's address (its low bit is clear).
  mutable std::atomic<uintptr_t> state_{1};
};

}  // namespace lamella
