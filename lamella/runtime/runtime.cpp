// Running windows.
#include "lamella/runtime/runtime.h"

#include <cstring>

#include "lamella/base/activity.h"
#include "lamella/device/pool.h"
#include "lamella/kernels/copy.h"
#include "lamella/runtime/counters.h"

namespace lamella {

namespace {

[[maybe_unused]] const bool installed = (install_runtime(&CpuRuntime::instance()), true);

// Whether only the window's own nodes and journal still refer to a value, so that a run may write
// over its memory.
bool may_be_overwritten(const Value& value, bool kept, int64_t references) {
  return !kept && value.state() == Value::State::Ready && value.handles() == 0 &&
         static_cast<int64_t>(value.reference_count()) == references && value.buffer().allocation &&
         value.buffer().allocation->reference_count() == 1 && !value.buffer().pinned();
}

}  // namespace

CpuRuntime& CpuRuntime::instance() {
  // Never destroyed: threads may still run windows while the process exits.
  static CpuRuntime& runtime = *new CpuRuntime;
  return runtime;
}

void CpuRuntime::run(std::span<const Ref<Node>> nodes,
                     FunctionRef<int64_t(const Value&)> journal_references) {
  const ActivityScope busy(Activity::Flush, static_cast<int64_t>(nodes.size()));
  ++counters().flushes;
  const Capture captured = capture(nodes);
  if (captured.outputs.empty()) return;
  const GraphCache::Found found = graphs_.find_or_compile(captured);
  std::vector<InputArgument> arguments(captured.leaves.size());
  for (size_t i = 0; i < captured.leaves.size(); ++i) {
    Value& leaf = *captured.leaves[i];
    if (leaf.is_number()) {
      arguments[i].bits = leaf.scalar_bits();
      continue;
    }
    const int64_t references = captured.leaf_references[i] + journal_references(leaf);
    arguments[i].donated = may_be_overwritten(leaf, captured.leaf_kept[i], references);
    arguments[i].buffer = leaf.buffer();
  }
  std::vector<Buffer> results = found.executable->run(
      found.bindings, arguments, {.operations = captured.nodes, .outputs = captured.outputs});
  for (size_t i = 0; i < results.size(); ++i) captured.outputs[i]->fulfil(std::move(results[i]));
}

Buffer CpuRuntime::row_major(const Value& value) {
  const TensorType& type = value.type();
  if (value.is_number()) {
    Buffer buffer = allocate(size_of(type.dtype), {"number", {}, type});
    const uint64_t bits = value.scalar_bits();
    std::memcpy(buffer.data(), &bits, static_cast<size_t>(size_of(type.dtype)));
    return buffer;
  }
  if (type.layout == Layout::RowMajor || type.shape.size() < 3) return value.buffer();
  TensorView from{.data = value.buffer().data(), .dtype = type.dtype}, to{.dtype = type.dtype};
  TensorType dense = type;
  dense.layout = Layout::RowMajor;
  for (Dim size : type.shape) from.sizes.push_back(size.value());
  for (Dim stride : strides_of(type)) from.strides.push_back(stride.value());
  to.sizes = from.sizes;
  for (Dim stride : strides_of(dense)) to.strides.push_back(stride.value());
  Buffer buffer = allocate(element_count(type.shape).value() * size_of(type.dtype),
                           {"row-major copy", {}, dense});
  to.data = buffer.data();
  kernels::copy(from, to);
  return buffer;
}

Buffer CpuRuntime::allocate(int64_t bytes, const Holder& holder) {
  return cpu_pool().allocate(bytes, holder);
}

}  // namespace lamella
