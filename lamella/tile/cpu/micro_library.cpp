// Tables of compiled microkernels, filled on demand.
#include "lamella/tile/cpu/micro_library.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "lamella/base/error.h"
#include "lamella/tile/cpu/jit.h"
#include "lamella/tile/cpu/kernel_cache.h"

namespace lamella::tile {

namespace {

constexpr size_t kMaxRows = 8;
constexpr size_t kMaxVectors = 8;
constexpr size_t kSetCount = 3;

// All compiled code of one instruction set; never destroyed, because kernels hold its addresses.
struct Library {
  std::mutex mutex;
  std::vector<std::unique_ptr<LinkedCode>> code;
  // [product is float64][rows][vectors]
  std::array<std::array<std::array<std::atomic<MicroFunction*>, kMaxVectors + 1>, kMaxRows + 1>, 2>
      micro{};
  std::array<std::atomic<PackFunction*>, kDTypeCount> copy_rows{}, transpose{};
};

Library& library(InstructionSet set) {
  static auto& libraries = *new std::array<Library, kSetCount>;
  return libraries[static_cast<size_t>(set)];
}

const LinkedCode& link(Library& library, std::string_view source, InstructionSet set,
                       FunctionRef<void(Ir&)> emit) {
  const std::string object = KernelCache::instance().object(source, set, emit);
  library.code.push_back(std::make_unique<LinkedCode>(object));
  return *library.code.back();
}

}  // namespace

MicroShape largest_micro_shape(InstructionSet set) {
  switch (set) {
    case InstructionSet::Avx512:
      return {8, 3};  // 24 of 32 registers
    case InstructionSet::Avx2:
      return {6, 1};  // 12 of 16 registers: a vector takes two
    default:
      return {2, 1};
  }
}

int widest_panel(InstructionSet set, int rows) {
  constexpr std::array<int, kMaxRows + 1> kAvx512 = {1, 8, 8, 6, 6, 4, 4, 3, 3};
  constexpr std::array<int, kMaxRows + 1> kAvx2 = {1, 6, 3, 2, 1, 1, 1, 1, 1};
  const auto index = std::min(static_cast<size_t>(rows), kMaxRows);
  if (set == InstructionSet::Avx512) return kAvx512[index];
  return set == InstructionSet::Avx2 ? kAvx2[index] : 1;
}

MicroFunction* micro_function(DType product, MicroShape shape, InstructionSet set) {
  Library& known = library(set);
  auto& entry = known.micro[product == DType::Float64 ? 1 : 0][static_cast<size_t>(shape.rows)]
                           [static_cast<size_t>(shape.vectors)];
  if (MicroFunction* function = entry.load(std::memory_order_acquire)) return function;
  std::lock_guard lock(known.mutex);
  if (MicroFunction* function = entry.load(std::memory_order_acquire)) return function;
  const std::string source =
      fmt::format("microkernel {} {}x{}", name(product), shape.rows, shape.vectors);
  const LinkedCode& code =
      link(known, source, set, [&](Ir& ir) { emit_microkernel(ir, product, shape); });
  auto* function = reinterpret_cast<MicroFunction*>(code.find(kMicroFunction));
  entry.store(function, std::memory_order_release);
  return function;
}

PackFunctions pack_functions(DType input, InstructionSet set) {
  Library& known = library(set);
  auto& copy_rows = known.copy_rows[static_cast<size_t>(input)];
  auto& transpose = known.transpose[static_cast<size_t>(input)];
  if (transpose.load(std::memory_order_acquire) == nullptr) {
    std::lock_guard lock(known.mutex);
    if (transpose.load(std::memory_order_acquire) == nullptr) {
      const LinkedCode& code = link(known, fmt::format("packing {}", name(input)), set,
                                    [&](Ir& ir) { emit_packing(ir, input); });
      copy_rows = reinterpret_cast<PackFunction*>(code.find(kCopyRowsFunction));
      transpose.store(reinterpret_cast<PackFunction*>(code.find(kTransposeFunction)),
                      std::memory_order_release);
    }
  }
  return {copy_rows.load(), transpose.load()};
}

}  // namespace lamella::tile
