// Running kernels: arguments are packed once, then ranges of rows, elements or blocks are handed
// to the threads.
#include "lamella/tile/cpu/kernel.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <limits>
#include <ranges>
#include <vector>

#include "lamella/base/activity.h"
#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/base/remark.h"
#include "lamella/base/system/float_environment.h"
#include "lamella/tile/cpu/kernel_code.h"
#include "lamella/tile/cpu/packed_arguments.h"
#include "lamella/tile/cpu/reduction_tree.h"
#include "lamella/tile/cpu/streaming.h"

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

// What a program of columns reduces: for each batch `rows` rows of a column. (One row in others.)
struct ColumnSizes {
  int64_t batches, rows;

  ColumnSizes(const Program& program, std::span<const int64_t> extents) {
    const auto kept = static_cast<size_t>(program.outer_rank - program.reduced_rank);
    batches = product(extents.first(kept));
    rows = product(extents.subspan(kept, extents.size() - 1 - kept));
  }
  int64_t blocks() const { return ceil_divide(rows, kRowBlock); }
};

// The launch of one kernel with its sizes worked out.
class KernelRun {
 public:
  using Code = Kernel::Code;
  KernelRun(const Kernel::Code& code, const Launch& launch, void* scratch)
      : code_(code),
        arguments_(code.program, code.layout, launch),
        scratch_(static_cast<char*>(scratch)),
        length_(launch.extents.back()),
        rows_(product(std::span(launch.extents).first(launch.extents.size() - 1))),
        columns_(code.program, launch.extents) {
    if (code.program.reduction == Reduction::Columns) slice_ = columns_of_task();
  }

  void elementwise() const {
    if (rows_ == 0 || length_ == 0) return;
    const double row_time = code_.nanoseconds_per_element * static_cast<double>(length_) + 5;
    const int threads = thread_count();
    if (rows_ >= 4 * threads) {
      parallel(rows_, round_up(grain_of(row_time), row_block(code_)),
               [&](int64_t begin, int64_t end, int64_t) {
                 code_.rows(arguments_.words(), begin, end, 0, length_, nullptr);
               });
      return;
    }
    // Few rows: cut along the vector axis, at multiples of a cache line.
    const int64_t grain =
        round_up(grain_of(code_.nanoseconds_per_element * static_cast<double>(rows_)), 1024);
    parallel(length_, grain, [&](int64_t begin, int64_t end, int64_t) {
      code_.rows(arguments_.words(), 0, rows_, begin, end, nullptr);
    });
  }

  // Rows that a thread's part should consist of a multiple of.
  static int64_t row_block(const Kernel::Code& code) {
    return runs_in_row_blocks(code.program) ? kRowsOfBlock : 1;
  }

  void rows() const {
    if (rows_ == 0) return;
    if (runs_by_chunks(code_, rows_, length_)) return rows_by_chunks();
    const double row_time = 2 * code_.nanoseconds_per_element * static_cast<double>(length_) + 20;
    const int64_t scratch_bytes = thread_scratch(code_, length_);
    parallel(rows_, grain_of(row_time), [&](int64_t begin, int64_t end, int64_t thread) {
      code_.rows(arguments_.words(), begin, end, 0, length_, scratch_ + thread * scratch_bytes);
    });
  }

  // Few long rows of a program that only reduces: their chunks are shared out. The results do not
  // depend on it, only the speed.
  static bool runs_by_chunks(const Kernel::Code& code, int64_t rows, int64_t length) {
    return code.row_chunks && rows < 2 * thread_count() && length > 4 * kChunk;
  }
  static int64_t chunk_bytes(const Kernel::Code& code, int64_t length) {
    return ceil_divide(length, kChunk) * code.partial_bytes;
  }
  void rows_by_chunks() const {
    const int64_t chunks = ceil_divide(length_, kChunk);
    const double chunk_time = code_.nanoseconds_per_element * static_cast<double>(kChunk);
    for (int64_t row = 0; row < rows_; ++row) {
      parallel(chunks, grain_of(chunk_time), [&](int64_t begin, int64_t end, int64_t) {
        code_.row_chunks(arguments_.words(), row, begin, end, scratch_);
      });
      const DefaultFloatEnvironment environment;
      code_.row_finish(arguments_.words(), row, chunks, scratch_);
    }
  }

  void columns() const {
    const int64_t blocks = columns_.blocks(), slices = slice_count();
    const double element_time = code_.nanoseconds_per_element;
    const double task_time = element_time * static_cast<double>(std::min(columns_.rows, kRowBlock) *
                                                                std::min(slice_, length_));
    parallel(columns_.batches * blocks * slices, grain_of(task_time),
             [&](int64_t begin, int64_t end, int64_t) {
               for (int64_t task = begin; task < end; ++task) {
                 reduce_block(task / slices / blocks, task / slices % blocks, task % slices);
               }
             });
    finish_columns();
  }

  static bool can_run_by_blocks(const Kernel::Code& rows, std::span<const int64_t> extents,
                                const Kernel::Code& columns,
                                std::span<const int64_t> column_extents) {
    const int64_t count = product(extents.first(extents.size() - 1));
    return rows.program.reduction == Reduction::Rows &&
           columns.program.reduction == Reduction::Columns &&
           columns.program.outer_rank == columns.program.reduced_rank &&
           std::ranges::equal(extents, column_extents) && count >= 2 * kRowBlock * thread_count() &&
           !runs_by_chunks(rows, count, extents.back());
  }
  static void rows_and_columns(const std::deque<KernelRun>& runs) {
    const KernelRun& rows = runs.front();
    const auto columns = std::ranges::subrange(runs.begin() + 1, runs.end());
    double element_time = 0;
    for (const KernelRun& run : runs) element_time += run.code_.nanoseconds_per_element;
    const double block_time = element_time * static_cast<double>(kRowBlock * rows.length_);
    const int64_t blocks = ceil_divide(rows.rows_, kRowBlock);
    const int64_t scratch_bytes = thread_scratch(rows.code_, rows.length_);
    parallel(blocks, grain_of(block_time), [&](int64_t begin, int64_t end, int64_t thread) {
      char* scratch = rows.scratch_ + thread * scratch_bytes;
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kRowBlock, last = std::min(rows.rows_, first + kRowBlock);
        rows.code_.rows(rows.arguments_.words(), first, last, 0, rows.length_, scratch);
        for (const KernelRun& run : columns) {
          for (int64_t slice = 0; slice < run.slice_count(); ++slice) {
            run.reduce_block(0, block, slice);
          }
        }
      }
    });
    for (const KernelRun& run : columns) run.finish_columns();
  }

  // Several launches as one loop.
  static void elementwise_together(const Kernel::Code& code, std::span<const Launch> launches);

  static int64_t thread_scratch(const Kernel::Code& code, int64_t length) {
    return round_up(code.row_scratch_bytes * row_scratch_elements(length), 64);
  }

 private:
  // A task is one block of rows by one slice of columns; slices keep accumulators in cache.
  int64_t columns_of_task() const {
    const int threads = thread_count();
    int64_t slice = std::min<int64_t>(round_up(std::max<int64_t>(length_, 1), kColumnPanel), 2048);
    while (slice > 256 &&
           columns_.batches * columns_.blocks() * ceil_divide(length_, slice) < 2 * threads) {
      slice /= 2;
    }
    return round_up(slice, kColumnPanel);
  }
  int64_t slice_count() const { return std::max<int64_t>(ceil_divide(length_, slice_), 1); }
  // The first column of a slice and the end of its columns.
  std::pair<int64_t, int64_t> slice_at(int64_t number) const {
    const int64_t begin = number * slice_;
    return {begin, std::min(length_, begin + slice_)};
  }

  void reduce_block(int64_t batch, int64_t block, int64_t slice) const {
    const auto [first, last] = slice_at(slice);
    code_.column_block(arguments_.words(), batch, block, first, last, scratch_);
  }
  void finish_columns() const {
    const int64_t slices = slice_count();
    const double finish_time =
        0.2 * static_cast<double>((columns_.blocks() + 1) * std::min(slice_, length_));
    parallel(columns_.batches * slices, grain_of(finish_time),
             [&](int64_t begin, int64_t end, int64_t) {
               for (int64_t task = begin; task < end; ++task) {
                 const auto [first, last] = slice_at(task % slices);
                 code_.column_finish(arguments_.words(), task / slices, first, last, scratch_);
               }
             });
  }

  template <typename Body>
  static void parallel(int64_t count, int64_t grain, Body body) {
    const auto in_environment = [&](int64_t begin, int64_t end, int64_t thread) {
      const DefaultFloatEnvironment environment;
      body(begin, end, thread);
    };
    parallel_for_threads(count, grain, in_environment, thread_count());
  }

  const Kernel::Code& code_;
  PackedArguments arguments_;
  char* scratch_;
  int64_t length_;
  int64_t rows_;
  ColumnSizes columns_;
  int64_t slice_ = 1;  // columns of a task, in a program that reduces them
};

// A part of one of several launches: some rows, or some elements of its only row.
struct LaunchPart {
  size_t launch;
  int64_t row_begin, row_end, begin, end;
};

// Cuts all launches into parts of about `elements` elements, of a multiple of `row_block` rows.
std::vector<LaunchPart> cut_launches(std::span<const Launch> launches, int64_t elements,
                                     int64_t row_block) {
  std::vector<LaunchPart> parts;
  for (size_t i = 0; i < launches.size(); ++i) {
    const std::span extents(launches[i].extents);
    const int64_t length = extents.back(), rows = product(extents.first(extents.size() - 1));
    if (length == 0) continue;
    if (rows == 1) {
      for (int64_t begin = 0; begin < length; begin += elements) {
        parts.push_back({i, 0, 1, begin, std::min(length, begin + elements)});
      }
      continue;
    }
    const int64_t step = round_up(std::max<int64_t>(elements / length, 1), row_block);
    for (int64_t row = 0; row < rows; row += step) {
      parts.push_back({i, row, std::min(rows, row + step), 0, length});
    }
  }
  return parts;
}

void KernelRun::elementwise_together(const Kernel::Code& code, std::span<const Launch> launches) {
  const auto words = static_cast<size_t>(code.layout.words());
  std::vector<int64_t> arguments(launches.size() * words);
  for (size_t i = 0; i < launches.size(); ++i) {
    pack_arguments(code.program, code.layout, launches[i], arguments.data() + i * words);
  }
  const int64_t elements = round_up(grain_of(code.nanoseconds_per_element), 1024);
  const std::vector<LaunchPart> parts = cut_launches(launches, elements, row_block(code));
  parallel(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end, int64_t) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const LaunchPart& part = parts[i];
      code.rows(arguments.data() + part.launch * words, part.row_begin, part.row_end, part.begin,
                part.end, nullptr);
    }
  });
}

Kernel::Kernel(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Kernel::~Kernel() = default;

const Program& Kernel::program() const {
  return code_->program;
}

int64_t Kernel::scratch_bytes(std::span<const int64_t> extents) const {
  const int64_t length = extents.back();
  if (code_->program.reduction == Reduction::Columns) {
    const ColumnSizes sizes(code_->program, extents);
    return sizes.batches * sizes.blocks() * code_->partial_bytes * round_up(length, kColumnPanel);
  }
  const int64_t rows = product(extents.first(extents.size() - 1));
  if (KernelRun::runs_by_chunks(*code_, rows, length)) {
    return KernelRun::chunk_bytes(*code_, length);
  }
  return KernelRun::thread_scratch(*code_, length) * thread_count();
}

Ref<const Kernel> Kernel::streaming(const Launch& launch,
                                    std::span<const PreparedLaunch> later) const {
  if (!may_stream(program(), launch)) return Ref<const Kernel>(this);
  const Program wanted = streamed(program(), launch, later);
  if (wanted == program()) return Ref<const Kernel>(this);
  remark([] { return std::string("some results go past the caches, which would not hold them"); });
  const std::lock_guard lock(code_->streaming_mutex);
  for (const Ref<const Kernel>& known : code_->streaming) {
    if (known->program() == wanted) return known;
  }
  const ActivityScope busy(Activity::KernelCompile);
  code_->streaming.push_back(compile(wanted, code_->instruction_set));
  return code_->streaming.back();
}

void Kernel::run(const Launch& launch, void* scratch) const {
  const Ref<const Kernel> kernel = streaming(launch, {});
  const KernelRun run(*kernel->code_, launch, scratch);
  switch (code_->program.reduction) {
    case Reduction::None:
      return run.elementwise();
    case Reduction::Rows:
      return run.rows();
    case Reduction::Columns:
      return run.columns();
  }
}

void Kernel::run_all(std::span<const Launch> launches) const {
  LAMELLA_CHECK(code_->program.reduction == Reduction::None);
  KernelRun::elementwise_together(*code_, launches);
}

void Kernel::order_outer_axes(Launch& launch) const {
  const Program& p = program();
  const bool numbers_axes = std::ranges::any_of(p.body, [&](const Instruction& instruction) {
    return instruction.opcode == Opcode::Iota && instruction.index < p.outer_rank;
  });
  if (!runs_in_row_blocks(p) || numbers_axes) return;
  // Last, where rows are side by side in a block, the axis along which the elements that are not
  // adjacent within a row lie nearest to each other.
  const auto outer = static_cast<size_t>(p.outer_rank);
  size_t last = outer - 1;
  int64_t nearest = std::numeric_limits<int64_t>::max();
  for (size_t axis = outer; axis-- > 0;) {
    if (launch.extents[axis] == 1) continue;
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      const int64_t distance = std::abs(launch.buffers[i].strides[axis]);
      if (p.buffers[i].vector_stride != VectorStride::Any || distance == 0) continue;
      if (distance < nearest) {
        nearest = distance;
        last = axis;
      }
    }
  }
  const auto bring_last = [&](std::vector<int64_t>& of_axes) {
    const auto axis = of_axes.begin() + static_cast<ptrdiff_t>(last);
    std::rotate(axis, axis + 1, of_axes.begin() + static_cast<ptrdiff_t>(outer));
  };
  bring_last(launch.extents);
  for (Launch::Buffer& buffer : launch.buffers) bring_last(buffer.strides);
}

bool Kernel::meets_columns(std::span<const int64_t> extents, const Kernel& columns,
                           std::span<const int64_t> column_extents) const {
  return KernelRun::can_run_by_blocks(*code_, extents, *columns.code_, column_extents);
}

void Kernel::run_by_blocks(std::span<const PreparedLaunch> launches) {
  std::deque<KernelRun> runs;
  const auto& [first, first_launch, first_scratch] = launches.front();
  const Ref<const Kernel> rows = first->streaming(*first_launch, launches.subspan(1));
  runs.emplace_back(*rows->code_, *first_launch, first_scratch);
  for (const auto& [kernel, launch, scratch] : launches.subspan(1)) {
    runs.emplace_back(*kernel->code_, *launch, scratch);
  }
  KernelRun::rows_and_columns(runs);
}

}  // namespace lamella::tile
