// Running kernels: arguments are packed once, then ranges of rows, elements or blocks are handed
// to the threads.
#include "lamella/tile/cpu/kernel.h"

#include <algorithm>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/base/system/float_environment.h"
#include "lamella/tile/cpu/kernel_code.h"
#include "lamella/tile/cpu/packed_arguments.h"

namespace lamella::tile {

namespace {

// Work below this much is not worth a second thread.
constexpr double kTaskNanoseconds = 8000;

int64_t product(std::span<const int64_t> extents) {
  int64_t result = 1;
  for (const int64_t extent : extents) result *= extent;
  return result;
}

constexpr int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_divide(a, b) * b;
}

// How many units make a task long enough, given the time of one.
int64_t grain_of(double nanoseconds_per_unit) {
  return static_cast<int64_t>(kTaskNanoseconds / std::max(nanoseconds_per_unit, 0.01)) + 1;
}

}  // namespace

// The launch of one kernel with its sizes worked out.
class KernelRun {
 public:
  using Code = Kernel::Code;
  KernelRun(const Kernel::Code& code, const Launch& launch, void* scratch)
      : code_(code),
        arguments_(code.program, code.layout, launch),
        scratch_(static_cast<char*>(scratch)),
        length_(launch.extents.back()),
        rows_(product(std::span(launch.extents).first(launch.extents.size() - 1))) {}

  void elementwise() const {
    if (rows_ == 0 || length_ == 0) return;
    const double row_time = code_.nanoseconds_per_element * static_cast<double>(length_) + 5;
    const int threads = thread_count();
    if (rows_ >= 4 * threads) {
      parallel(rows_, grain_of(row_time), [&](int64_t begin, int64_t end) {
        code_.rows(arguments_.words(), begin, end, 0, length_, nullptr);
      });
      return;
    }
    // Few rows: cut along the vector axis, at multiples of a cache line.
    const int64_t grain =
        round_up(grain_of(code_.nanoseconds_per_element * static_cast<double>(rows_)), 1024);
    parallel(length_, grain, [&](int64_t begin, int64_t end) {
      code_.rows(arguments_.words(), 0, rows_, begin, end, nullptr);
    });
  }

  void rows() const {
    if (rows_ == 0) return;
    const double row_time = 2 * code_.nanoseconds_per_element * static_cast<double>(length_) + 20;
    const int64_t grain = std::max(grain_of(row_time), ceil_divide(rows_, thread_count()));
    const int64_t scratch_bytes = thread_scratch(code_, length_);
    parallel(rows_, grain, [&](int64_t begin, int64_t end) {
      code_.rows(arguments_.words(), begin, end, 0, length_,
                 scratch_ + begin / grain * scratch_bytes);
    });
  }

  void columns(std::span<const int64_t> extents) const {
    const auto kept = static_cast<size_t>(code_.program.outer_rank - code_.program.reduced_rank);
    const int64_t batches = product(extents.first(kept));
    const int64_t reduced = product(extents.subspan(kept, extents.size() - 1 - kept));
    const int64_t blocks = ceil_divide(reduced, 64);
    // A task is one block of rows by one slice of columns; slices keep accumulators in cache.
    const int threads = thread_count();
    int64_t slice = std::min<int64_t>(round_up(std::max<int64_t>(length_, 1), 64), 2048);
    while (slice > 256 && batches * blocks * ceil_divide(length_, slice) < 2 * threads) slice /= 2;
    slice = round_up(slice, 64);
    const int64_t slices = std::max<int64_t>(ceil_divide(length_, slice), 1);
    const auto range = [&](int64_t number) {
      const int64_t begin = number * slice;
      return std::pair(begin, std::min(length_, begin + slice));
    };
    const double element_time = code_.nanoseconds_per_element;
    const double task_time = element_time * static_cast<double>(std::min<int64_t>(reduced, 64) *
                                                                std::min(slice, length_));
    parallel(batches * blocks * slices, grain_of(task_time), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const auto [first, last] = range(task % slices);
        code_.column_block(arguments_.words(), task / slices / blocks, task / slices % blocks,
                           first, last, scratch_);
      }
    });
    const double finish_time = 0.2 * static_cast<double>((blocks + 1) * std::min(slice, length_));
    parallel(batches * slices, grain_of(finish_time), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const auto [first, last] = range(task % slices);
        code_.column_finish(arguments_.words(), task / slices, first, last, scratch_);
      }
    });
  }

  static int64_t thread_scratch(const Kernel::Code& code, int64_t length) {
    return round_up(code.row_scratch_bytes * row_scratch_elements(length), 64);
  }

 private:
  template <typename Body>
  static void parallel(int64_t count, int64_t grain, Body body) {
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      const DefaultFloatEnvironment environment;
      body(begin, end);
    });
  }

  const Kernel::Code& code_;
  PackedArguments arguments_;
  char* scratch_;
  int64_t length_;
  int64_t rows_;
};

Kernel::Kernel(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Kernel::~Kernel() = default;

const Program& Kernel::program() const {
  return code_->program;
}

int64_t Kernel::scratch_bytes(std::span<const int64_t> extents) const {
  const int64_t length = extents.back();
  if (code_->program.reduction == Reduction::Columns) {
    const auto kept = static_cast<size_t>(code_->program.outer_rank - code_->program.reduced_rank);
    const int64_t batches = product(extents.first(kept));
    const int64_t blocks =
        ceil_divide(product(extents.subspan(kept, extents.size() - 1 - kept)), 64);
    return batches * blocks * code_->partial_bytes * round_up(length, kColumnPanel);
  }
  return KernelRun::thread_scratch(*code_, length) * thread_count();
}

void Kernel::run(const Launch& launch, void* scratch) const {
  const KernelRun run(*code_, launch, scratch);
  switch (code_->program.reduction) {
    case Reduction::None:
      return run.elementwise();
    case Reduction::Rows:
      return run.rows();
    case Reduction::Columns:
      return run.columns(launch.extents);
  }
}

void Kernel::run_all(std::span<const Launch> launches) const {
  for (const Launch& launch : launches) run(launch, nullptr);
}

}  // namespace lamella::tile
