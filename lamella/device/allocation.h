// Device memory under reference counts: an Allocation is one piece of memory, a Buffer a range of
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "lamella/base/api.h"
#include "lamella/base/error.h"
#include "lamella/base/ref.h"
#include "lamella/types/tensor_type.h"

namespace lamella {

class Allocation;

// Who memory is for: kept with every allocation, named when memory runs out and in profiles.
struct Holder {
  const char* name =
      nullptr;              // an operator, a parameter or a purpose; lives as long as the process
  SourceLocation location;  // the line of the user's program
  bool has_type = false;
  TensorType type;  // of the tensor, if it has one

  Holder() = default;
  Holder(const char* purpose) : name(purpose) {}  // NOLINT: a purpose names a holder
  Holder(const char* holder, SourceLocation line, const TensorType& tensor)
      : name(holder), location(line), has_type(true), type(tensor) {}
};
// "conv2d f32[8,6,24,24] (train.py:31)".
LAMELLA_API std::string text(const Holder& holder);

// Where an allocation goes when its last reference is dropped.
class AllocationOwner {
 public:
  virtual void reclaim(Allocation& allocation) noexcept = 0;
  // An owner that lists its allocations keeps the list still meanwhile.
  virtual void change_holder(Allocation& allocation, const Holder& holder) {
    assign_holder(allocation, holder);
  }

 protected:
  ~AllocationOwner() = default;
  static void assign_holder(Allocation& allocation, const Holder& holder);
};

// One piece of memory. It dies by going back to its owner, which may hand the same object out
// again. Contents are undefined until written.
//
// Pins count the readers outside of Lamella (a NumPy array over the same memory). While an
// allocation is pinned nobody may write it in place, not even its only holder.
class LAMELLA_API Allocation : public RefCounted<Allocation> {
 public:
  void* data() const { return data_; }
  // The bytes asked for; the memory behind may be larger.
  int64_t size() const { return size_; }
  const Holder& holder() const { return holder_; }
  // The memory is for something else from now on. One thread at a time may say so.
  void set_holder(const Holder& holder) { owner_->change_holder(*this, holder); }
  void rename_holder(const char* name) {
    Holder renamed = holder_;
    renamed.name = name;
    set_holder(renamed);
  }

  void pin() { pins_.fetch_add(1, std::memory_order_relaxed); }
  void unpin() { pins_.fetch_sub(1, std::memory_order_release); }
  bool pinned() const { return pins_.load(std::memory_order_acquire) != 0; }

  void release_last() { owner_->reclaim(*this); }

 protected:
  explicit Allocation(AllocationOwner& owner) : owner_(&owner) {}
  ~Allocation() = default;

  void* data_ = nullptr;
  int64_t size_ = 0;
  Holder holder_;

 private:
  friend class AllocationOwner;
  AllocationOwner* owner_;
  std::atomic<int32_t> pins_{0};
};

inline void AllocationOwner::assign_holder(Allocation& allocation, const Holder& holder) {
  allocation.holder_ = holder;
}

// Memory that belongs to someone else (a NumPy array, a mapped file); `release` runs once, when the
// last reference is dropped, in whichever thread drops it.
LAMELLA_API Ref<Allocation> wrap_external(void* data, int64_t size, std::function<void()> release);

// A range of an allocation; keeps it alive. A default Buffer is empty and points nowhere.
struct Buffer {
  Ref<Allocation> allocation;
  int64_t offset = 0;  // bytes from the allocation's first
  int64_t size = 0;    // bytes

  Buffer() = default;
  Buffer(Ref<Allocation> whole)  // NOLINT: an allocation is the range of all of it
      : allocation(std::move(whole)), size(allocation ? allocation->size() : 0) {}
  Buffer(Ref<Allocation> part_of, int64_t first, int64_t bytes)
      : allocation(std::move(part_of)), offset(first), size(bytes) {}

  explicit operator bool() const { return static_cast<bool>(allocation); }
  void* data() const {
    return allocation ? static_cast<char*>(allocation->data()) + offset : nullptr;
  }
  // A part of this range, `first` bytes from its start.
  Buffer range(int64_t first, int64_t bytes) const { return {allocation, offset + first, bytes}; }

  void pin() const { allocation->pin(); }
  void unpin() const { allocation->unpin(); }
  bool pinned() const { return allocation && allocation->pinned(); }
};

}  // namespace lamella
