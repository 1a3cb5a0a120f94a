// The one way into oneDNN: cached plans of primitives, run over plain pointers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "lamella/base/function_ref.h"
#include "lamella/base/inline_vector.h"
#include "lamella/device/tensor_view.h"

namespace lamella::kernels::onednn {

dnnl::engine& engine();

// A descriptor of sizes and strides; float32 or bfloat16.
dnnl::memory::desc plain(DType dtype, const Axes& sizes, const Axes& strides);
// A descriptor whose layout the primitive chooses.
dnnl::memory::desc any_layout(DType dtype, const Axes& sizes);
// Attributes of every primitive: the caller brings the scratchpad, float32 is not shortened.
dnnl::primitive_attr attributes();

// Everything a plan depends on, as words. The thread count is added by the cache.
using Signature = InlineVector<int64_t, 64>;
void append(Signature& signature, const TensorView& view);

// Primitives that run one after the other over numbered slots: first the caller's pointers, then
// places in the scratch memory. Immutable once built; runs from several threads at once.
class Plan {
 public:
  Plan() = default;
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Building. Slots of the caller's come first.
  int caller_slot(const dnnl::memory::desc& desc);
  int scratch_slot(const dnnl::memory::desc& desc);
  void add(const dnnl::primitive& primitive, std::vector<std::pair<int, int>> arguments_to_slots);
  // A slot that holds `slot` in the layout `wanted`: itself, or a reorder into scratch memory.
  int in_layout(int slot, const dnnl::memory::desc& wanted);
  // Adds the reorder back; nothing if the two slots are one.
  void reorder(int from, int to);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // `pointers` are those of the caller's slots; `scratch` has scratch_bytes, 64-byte aligned.
  void run(std::span<void* const> pointers, void* scratch) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<std::pair<int, int>> arguments_to_slots;
  };
  struct Slot {
    dnnl::memory::desc desc;
    int64_t scratch_offset;  // -1: the caller's
  };
  struct Context;

  std::unique_ptr<Context> make_context() const;
  // The primitives and their implementations, for people.
  std::string description() const;

  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  int64_t scratch_bytes_ = 0;
  // One set of memory objects kept for the next run; a second run at the same time makes its own.
  mutable std::atomic<Context*> idle_{nullptr};
};

// The plan of a signature, built at its first use and kept in a bounded cache (the least recently
// used go first). Also sets oneDNN's thread number for the calling thread.
std::shared_ptr<const Plan> plan_for(const Signature& signature, FunctionRef<void(Plan&)> build);

}  // namespace lamella::kernels::onednn
