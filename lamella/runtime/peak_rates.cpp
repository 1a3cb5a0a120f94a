#include "lamella/runtime/peak_rates.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <vector>

#include "lamella/tile/builder.h"
#include "lamella/tile/cpu/kernel.h"

namespace lamella {

namespace {

// A program runs at least so often and so long: another process may have the processors for a
// while.
constexpr int kRuns = 5;
constexpr double kSeconds = 0.2;

// Not of the pool, whose statistics are the program's.
struct Free {
  void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
  static constexpr std::align_val_t kAlignment{64};
};
using Memory = std::unique_ptr<void, Free>;
Memory allocate(int64_t bytes) {
  return Memory(::operator new(static_cast<size_t>(bytes), Free::kAlignment));
}

// The least seconds that a program takes over `count` float32 elements, from one buffer to another.
double fastest_run(const tile::Program& program, int64_t count) {
  const Ref<const tile::Kernel> kernel = tile::compile(program, tile::native_instruction_set());
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  const Memory from = allocate(bytes), to = allocate(bytes);
  std::fill_n(static_cast<float*>(from.get()), count, 0.5F);
  const tile::Launch launch = {.extents = {count}, .buffers = {{from.get(), {1}}, {to.get(), {1}}}};
  double least = 1e9, all = 0;
  for (int i = 0; i <= kRuns || all < kSeconds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    kernel->run(launch, nullptr);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (i > 0) least = std::min(least, seconds.count());  // the first run touches the pages
    all += seconds.count();
  }
  return least;
}

// Chains of multiply-adds, enough to hide their latency and few enough for AVX2's registers.
double peak_flops() {
  constexpr int kChains = 10, kLength = 40;
  constexpr int64_t kCount = int64_t{1} << 18;
  tile::Builder b("multiply_adds");
  const tile::ValueId x = b.load_input(DType::Float32);
  const tile::ValueId factor = b.constant(DType::Float32, 0.75);
  std::vector<tile::ValueId> chains;
  for (int c = 0; c < kChains; ++c)
    chains.push_back(b.apply(tile::Opcode::Add, x, b.constant(DType::Float32, 0.125 * c)));
  for (int i = 0; i < kLength; ++i) {
    for (tile::ValueId& chain : chains) chain = b.apply(tile::Opcode::Fma, chain, factor, x);
  }
  tile::ValueId sum = chains[0];
  for (int c = 1; c < kChains; ++c)
    sum = b.apply(tile::Opcode::Add, sum, chains[static_cast<size_t>(c)]);
  b.store_output(sum);
  const double seconds = fastest_run(std::move(b).finish(), kCount);
  return 2.0 * kChains * kLength * static_cast<double>(kCount) / seconds;
}

double peak_bytes() {
  constexpr int64_t kCount = int64_t{1} << 25;
  tile::Builder b("copy");
  b.store_output(b.load_input(DType::Float32));
  const double seconds = fastest_run(std::move(b).finish(), kCount);
  return 2.0 * sizeof(float) * static_cast<double>(kCount) / seconds;
}

}  // namespace

const PeakRates& peak_rates() {
  static const PeakRates rates = {.flops = peak_flops(), .bytes = peak_bytes()};
  return rates;
}

}  // namespace lamella
