// Tile programs compiled for the CPU, and the caches that keep them.
#pragma once

#include <memory>
#include <span>

#include "lamella/base/api.h"
#include "lamella/base/ref.h"
#include "lamella/tile/program.h"

namespace lamella::tile {

enum class InstructionSet : uint8_t { Generic, Avx2, Avx512 };

// The widest set this CPU has; LAMELLA_ISA=generic|avx2|avx512 lowers it.
LAMELLA_API InstructionSet native_instruction_set();

class Kernel;

// A launch with its kernel, and scratch memory as Kernel::run wants it.
struct PreparedLaunch {
  const Kernel* kernel;
  const Launch* launch;
  void* scratch;
};

// A compiled program. Immutable and safe to run from several threads at once.
class LAMELLA_API Kernel : public RefCounted<Kernel> {
 public:
  ~Kernel();

  const Program& program() const;
  // Bytes of working memory one launch of these extents needs (partial sums, rows kept between
  // passes); a function of the extents and the thread count.
  int64_t scratch_bytes(std::span<const int64_t> extents) const;
  // Runs the launch over all threads. `scratch` holds scratch_bytes, aligned to 64 bytes.
  void run(const Launch& launch, void* scratch) const;
  // Runs independent launches as one parallel loop, for programs that need no scratch memory.
  void run_all(std::span<const Launch> launches) const;

  // Brings the outer axes of a launch into the order that suits the kernel best, with the same
  // results. Leaves launches alone that reduce, or whose program numbers its outer axes.
  void order_outer_axes(Launch& launch) const;

  // Whether this program of rows and one that sums these rows up as columns can run in turn on each
  // block of rows, with enough blocks for all threads.
  bool meets_columns(std::span<const int64_t> extents, const Kernel& columns,
                     std::span<const int64_t> column_extents) const;
  // Runs a program of rows and then programs of columns that it meets, block by block, so that the
  // later ones find in cache what the first one touched. What a later one reads of an earlier one's
  // results must lie in the same row.
  static void run_by_blocks(std::span<const PreparedLaunch> launches);

 private:
  friend class KernelCache;
  friend class KernelRun;
  friend class MatmulKernel;
  friend class MatmulRun;
  struct Code;
  explicit Kernel(std::unique_ptr<Code> code);
  // The kernel for a launch and what reads its results right away: this one, or one that streams.
  Ref<const Kernel> streaming(const Launch& launch, std::span<const PreparedLaunch> later) const;
  std::unique_ptr<Code> code_;
};

// The kernel of a program: from memory, else from the disk cache, else compiled now.
LAMELLA_API Ref<const Kernel> compile(const Program& program, InstructionSet set);

// The same for many programs, compiled in parallel.
LAMELLA_API std::vector<Ref<const Kernel>> compile_all(std::span<const Program> programs,
                                                       InstructionSet set);

// Counts since the process began.
struct KernelCacheStatistics {
  int64_t memory_hits = 0;
  int64_t disk_hits = 0;
  int64_t compiled = 0;  // by LLVM
  int64_t evicted = 0;
  int64_t code_bytes = 0;  // of the kernels in memory now
};
LAMELLA_API KernelCacheStatistics kernel_cache_statistics();

}  // namespace lamella::tile
