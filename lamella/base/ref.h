// Intrusive reference counting: one pointer wide, and an object can be wrapped again from `this`.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace lamella {

// Base of reference-counted objects. A class that needs another way to die than `delete` (a pool,
// an iterative tear-down) hides `release_last`.
template <typename Derived>
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<Derived*>(static_cast<const Derived*>(this))->release_last();
    }
  }
  uint32_t reference_count() const { return count_.load(std::memory_order_relaxed); }
  void release_last() { delete static_cast<Derived*>(this); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// An owning pointer to a RefCounted object; may be null.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* pointer) : pointer_(pointer) {
    if (pointer_) pointer_->retain();
  }
  Ref(const Ref& other) : Ref(other.pointer_) {}
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) : Ref(other.get()) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : pointer_(other.detach()) {}
  ~Ref() {
    if (pointer_) pointer_->release();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }

  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.pointer_ == b.pointer_; }

  // Gives up ownership without releasing; the caller now owns one count.
  T* detach() { return std::exchange(pointer_, nullptr); }
  void reset() { *this = Ref(); }

 private:
  T* pointer_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace lamella
