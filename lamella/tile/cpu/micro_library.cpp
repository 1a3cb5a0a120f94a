// Tables of compiled microkernels, filled on demand.
#include "lamella/tile/cpu/micro_library.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/tile/cpu/jit.h"
#include "lamella/tile/cpu/kernel_cache.h"

namespace lamella::tile {

namespace {

constexpr size_t kSetCount = 3;

}  // namespace

// All compiled code of one instruction set; never destroyed, because kernels hold its addresses.
struct MicroLibrary {
  std::mutex mutex;
  std::vector<std::unique_ptr<LinkedCode>> code;
  MicroFunctions micro[2];  // of products in float32 and float64
  std::atomic<bool> has_micro[2] = {false, false};
  std::array<std::atomic<PackFunction*>, kDTypeCount> copy_rows{}, transpose{};

  const LinkedCode& link(const std::string& object) {
    code.push_back(std::make_unique<LinkedCode>(object));
    return *code.back();
  }
  void add_micro_functions(DType product, InstructionSet set, MicroFunctions& functions);
};

namespace {

MicroLibrary& library(InstructionSet set) {
  static auto& libraries = *new std::array<MicroLibrary, kSetCount>;
  return libraries[static_cast<size_t>(set)];
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
  constexpr std::array<int, MicroFunctions::kMostRows + 1> kAvx512 = {1, 8, 8, 6, 6, 4, 4, 3, 3};
  constexpr std::array<int, MicroFunctions::kMostRows + 1> kAvx2 = {1, 6, 3, 2, 1, 1, 1, 1, 1};
  const auto index = std::min(static_cast<size_t>(rows), MicroFunctions::kMostRows);
  if (set == InstructionSet::Avx512) return kAvx512[index];
  return set == InstructionSet::Avx2 ? kAvx2[index] : 1;
}

// One object for each number of rows, compiled side by side.
void MicroLibrary::add_micro_functions(DType product, InstructionSet set,
                                       MicroFunctions& functions) {
  const int most_rows = largest_micro_shape(set).rows;
  std::vector<std::string> objects(static_cast<size_t>(most_rows));
  parallel_for(most_rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int rows = static_cast<int>(i) + 1;
      objects[static_cast<size_t>(i)] = KernelCache::instance().object(
          fmt::format("microkernels {} of {} rows", name(product), rows), set, [&](Ir& ir) {
            for (int vectors = 1; vectors <= widest_panel(set, rows); ++vectors) {
              emit_microkernel(ir, product, {rows, vectors});
            }
          });
    }
  });
  for (int rows = 1; rows <= most_rows; ++rows) {
    const LinkedCode& linked = link(objects[static_cast<size_t>(rows) - 1]);
    for (int vectors = 1; vectors <= widest_panel(set, rows); ++vectors) {
      const MicroShape shape{rows, vectors};
      functions.functions_[static_cast<size_t>(rows)][static_cast<size_t>(vectors)] =
          reinterpret_cast<MicroFunction*>(linked.find(micro_function_name(shape).c_str()));
    }
  }
}

const MicroFunctions& micro_functions(DType product, InstructionSet set) {
  MicroLibrary& known = library(set);
  const size_t kind = product == DType::Float64 ? 1 : 0;
  if (!known.has_micro[kind].load(std::memory_order_acquire)) {
    std::lock_guard lock(known.mutex);
    if (!known.has_micro[kind].load(std::memory_order_acquire)) {
      known.add_micro_functions(product, set, known.micro[kind]);
      known.has_micro[kind].store(true, std::memory_order_release);
    }
  }
  return known.micro[kind];
}

PackFunctions pack_functions(DType input, InstructionSet set) {
  MicroLibrary& known = library(set);
  auto& copy_rows = known.copy_rows[static_cast<size_t>(input)];
  auto& transpose = known.transpose[static_cast<size_t>(input)];
  if (transpose.load(std::memory_order_acquire) == nullptr) {
    std::lock_guard lock(known.mutex);
    if (transpose.load(std::memory_order_acquire) == nullptr) {
      const LinkedCode& code = known.link(KernelCache::instance().object(
          fmt::format("packing {}", name(input)), set, [&](Ir& ir) { emit_packing(ir, input); }));
      copy_rows = reinterpret_cast<PackFunction*>(code.find(kCopyRowsFunction));
      transpose.store(reinterpret_cast<PackFunction*>(code.find(kTransposeFunction)),
                      std::memory_order_release);
    }
  }
  return {copy_rows.load(), transpose.load()};
}

}  // namespace lamella::tile
