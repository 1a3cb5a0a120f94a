// The loops around the microkernel: columns and depth in blocks of B whose packed panels stay in
// cache, rows in blocks of A, then rows and panels of registers.
#include "lamella/tile/cpu/matmul_kernel.h"

#include <cstring>
#include <span>
#include <vector>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/base/remark.h"
#include "lamella/base/system/float_environment.h"
#include "lamella/tile/cpu/kernel_code.h"
#include "lamella/tile/cpu/matmul_plan.h"
#include "lamella/tile/cpu/micro_library.h"
#include "lamella/tile/cpu/packed_arguments.h"
#include "lamella/types/half.h"

namespace lamella::tile {

namespace {

// A matrix with strides in bytes.
struct ByteMatrix {
  char* data;
  int64_t row_stride;
  int64_t column_stride;

  char* at(int64_t row, int64_t column) const {
    return data + row * row_stride + column * column_stride;
  }
};

int64_t batch_count(const MatmulLaunch& launch) {
  int64_t count = 1;
  for (const int64_t size : launch.batch) count *= size;
  return count;
}

// A stride along an axis of one element has no meaning and counts as the one that is fastest.
bool is_adjacent(int64_t stride, int64_t size) {
  return stride == 1 || size <= 1;
}

MatmulTraits traits_of(const MatmulProgram& program, const MatmulLaunch& launch,
                       InstructionSet set) {
  return {.input = program.input,
          .set = set,
          .b_is_row_major = is_adjacent(launch.b.column_stride, launch.columns),
          .a_needs_packing = program.input != product_dtype(program.input) ||
                             !is_adjacent(launch.a.column_stride, launch.depth),
          .has_epilogue = !program.epilogue.body.empty()};
}

MatmulPlan plan_of(const MatmulProgram& program, const MatmulLaunch& launch, InstructionSet set) {
  return MatmulPlan({.batches = batch_count(launch),
                     .rows = launch.rows,
                     .columns = launch.columns,
                     .depth = launch.depth},
                    traits_of(program, launch, set), thread_count());
}

// Packing for strides that no vector code serves.
void pack_element_by_element(DType input, const PackArguments& arguments,
                             int64_t source_column_stride) {
  const int64_t lanes = matmul_lanes(product_dtype(input));
  const int64_t filled = (arguments.columns + lanes - 1) / lanes * lanes;
  const auto row_bytes = static_cast<size_t>(filled * size_of(product_dtype(input)));
  for (int64_t row = 0; row < arguments.rows; ++row) {
    char* to = arguments.target + row * arguments.target_row_stride;
    std::memset(to, 0, row_bytes);
    for (int64_t column = 0; column < arguments.columns; ++column) {
      const char* from =
          arguments.source + row * arguments.source_row_stride + column * source_column_stride;
      if (input == DType::Float64) {
        std::memcpy(to + column * 8, from, 8);
      } else if (input == DType::Float32) {
        std::memcpy(to + column * 4, from, 4);
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, from, 2);
        const float value = input == DType::Float16 ? float_from_float16_bits(bits)
                                                    : float_from_bfloat16_bits(bits);
        std::memcpy(to + column * 4, &value, 4);
      }
    }
  }
}

// Copies rows x columns of a matrix to rows of adjacent elements of the product's dtype.
void pack(const PackFunctions& functions, DType input, const ByteMatrix& source, int64_t rows,
          int64_t columns, char* target, int64_t target_row_stride) {
  const int64_t size = size_of(input);
  PackArguments arguments = {.target = target,
                             .target_row_stride = target_row_stride,
                             .source = source.data,
                             .source_row_stride = source.row_stride,
                             .rows = rows,
                             .columns = columns};
  if (source.column_stride == size || columns == 1) return functions.copy_rows(&arguments);
  if (source.row_stride == size || rows == 1) {
    arguments.source_row_stride = source.column_stride;
    std::swap(arguments.rows, arguments.columns);
    return functions.transpose(&arguments);
  }
  pack_element_by_element(input, arguments, source.column_stride);
}

}  // namespace

// One launch: what its tasks share.
class MatmulRun {
 public:
  MatmulRun(const MatmulProgram& program, const Kernel::Code* epilogue, const MatmulLaunch& launch,
            InstructionSet set, void* scratch)
      : program_(program),
        launch_(launch),
        set_(set),
        product_(product_dtype(program.input)),
        plan_(plan_of(program, launch, set)),
        epilogue_(epilogue),
        micro_(micro_functions(product_, set)),
        scratch_(static_cast<char*>(scratch)) {
    needs_packing_ = traits_of(program, launch, set).a_needs_packing;
    if (needs_packing_ || plan_.packs_b) packing_ = pack_functions(program.input, set);
  }

  void run() const {
    if (launch_.rows == 0 || launch_.columns == 0 || plan_.tasks == 0) return;
    remark([&] { return description(); });
    const auto run_tasks = [&](int64_t begin, int64_t end, int64_t thread) {
      const DefaultFloatEnvironment environment;
      char* memory = scratch_ + thread * plan_.thread_bytes();
      for (int64_t task = begin; task < end; ++task) run_task(task, memory);
    };
    parallel_for_threads(plan_.tasks, 1, run_tasks, plan_.threads_used);
  }

 private:
  std::string description() const {
    return fmt::format(
        "matrix product of {} [{},{}] by [{},{}]{}: {} task{}; "
        "tiles of {} rows by {} vectors of {} in registers, "
        "in blocks of {} rows, {} columns and depth {}; the second matrix {}{}{}",
        name(program_.input), launch_.rows, launch_.depth, launch_.depth, launch_.columns,
        launch_.batch.empty() ? "" : fmt::format(", {} times", batch_count(launch_)), plan_.tasks,
        plan_.tasks == 1 ? "" : "s", plan_.max_rows, plan_.max_vectors, plan_.lanes,
        plan_.block_rows, plan_.panel_columns, plan_.block_depth,
        plan_.packs_b ? "packed" : "read in place", needs_packing_ ? ", the first one packed" : "",
        epilogue_ ? ", then\n" + print(epilogue_->program) : "");
  }

  struct Task {
    int64_t batch;
    Range rows, columns;
    ByteMatrix a, b, product;
    char *b_memory, *a_memory, *product_memory;
  };

  ByteMatrix matrix(const MatmulLaunch::Matrix& given, DType dtype, int64_t batch) const {
    int64_t offset = 0;
    for (size_t axis = launch_.batch.size(); axis-- > 0;) {
      offset += batch % launch_.batch[axis] * given.batch_strides[axis];
      batch /= launch_.batch[axis];
    }
    const int64_t size = size_of(dtype);
    return {static_cast<char*>(given.data) + offset * size, given.row_stride * size,
            given.column_stride * size};
  }

  void run_task(int64_t number, char* memory) const {
    const int64_t column_part = number % plan_.column_parts;
    const int64_t row_part = number / plan_.column_parts % plan_.row_parts;
    const int64_t batch = number / plan_.column_parts / plan_.row_parts;
    Task task = {.batch = batch,
                 .rows = part(launch_.rows, plan_.row_parts, row_part),
                 .columns = plan_.columns_of_part(launch_.columns, column_part),
                 .a = matrix(launch_.a, program_.input, batch),
                 .b = matrix(launch_.b, program_.input, batch),
                 .product = {},
                 .b_memory = memory,
                 .a_memory = memory + plan_.b_bytes,
                 .product_memory = memory + plan_.b_bytes + plan_.a_bytes};
    if (!epilogue_) task.product = matrix(launch_.product, product_, batch);
    const Range rows = task.rows;
    for (int64_t row = rows.begin; row < rows.end; row += plan_.product_rows) {
      task.rows = {row, std::min(rows.end, row + plan_.product_rows)};
      const int64_t end = task.columns.end;
      for (int64_t column = task.columns.begin; column < end; column += plan_.panel_columns) {
        run_columns(task, {column, std::min(end, column + plan_.panel_columns)});
      }
    }
  }

  struct Panel {
    int vectors;
    Range columns;
    int64_t first_vector;  // counted from the first panel's
  };
  // Groups of adjacent vectors of columns, nearly equal in width.
  std::vector<Panel> panels_of(const Range& columns) const {
    const int64_t all = (columns.size() + plan_.lanes - 1) / plan_.lanes;
    const int64_t count = (all + plan_.max_vectors - 1) / plan_.max_vectors;
    std::vector<Panel> panels;
    for (int64_t i = 0; i < count; ++i) {
      const Range vectors = part(all, count, i);
      panels.push_back({static_cast<int>(vectors.size()),
                        {columns.begin + vectors.begin * plan_.lanes,
                         std::min(columns.end, columns.begin + vectors.end * plan_.lanes)},
                        vectors.begin});
    }
    return panels;
  }
  char* packed_panel(const Task& task, const Panel& panel, const Range& depth) const {
    return task.b_memory + panel.first_vector * plan_.lanes * depth.size() * plan_.element_bytes;
  }
  int64_t packed_row_stride(const Panel& panel) const {
    return panel.vectors * plan_.lanes * plan_.element_bytes;
  }

  // The task's rows by some of its columns, over the whole depth.
  void run_columns(const Task& task, const Range& columns) const {
    ByteMatrix product = task.product;
    if (epilogue_) {  // a dense block in scratch memory, addressed like the whole product
      const int64_t stride = plan_.product_row_elements * plan_.element_bytes;
      product = {
          task.product_memory - task.rows.begin * stride - columns.begin * plan_.element_bytes,
          stride, plan_.element_bytes};
    }
    const std::vector<Panel> panels = panels_of(columns);
    int64_t depth = 0;
    do {
      const Range range = {depth, std::min(launch_.depth, depth + plan_.block_depth)};
      if (plan_.packs_b) pack_b(task, panels, range);
      // Blocks of rows, nearly equal in height.
      const int64_t groups = (task.rows.size() + plan_.max_rows - 1) / plan_.max_rows;
      const int64_t groups_per_block = plan_.block_rows / plan_.max_rows;
      for (int64_t group = 0; group < groups; group += groups_per_block) {
        multiply_block(task, panels, groups, {group, std::min(groups, group + groups_per_block)},
                       range, product);
      }
      depth = range.end;
    } while (depth < launch_.depth);
    if (epilogue_) run_epilogue(task, product, task.rows, columns);
  }

  void pack_b(const Task& task, std::span<const Panel> panels, const Range& depth) const {
    // A few rows of all panels at a time where rows are adjacent, so that memory is read in order.
    const bool row_major = task.b.column_stride == size_of(program_.input);
    const int64_t step = row_major ? 8 : std::max<int64_t>(depth.size(), 1);
    for (int64_t begin = depth.begin; begin < depth.end; begin += step) {
      for (const Panel& p : panels) {
        const int64_t stride = packed_row_stride(p);
        pack(packing_, program_.input,
             {task.b.at(begin, p.columns.begin), task.b.row_stride, task.b.column_stride},
             std::min(step, depth.end - begin), p.columns.size(),
             packed_panel(task, p, depth) + (begin - depth.begin) * stride, stride);
      }
    }
  }

  // The rows of one group: what one microkernel call computes.
  Range group_rows(const Task& task, int64_t groups, int64_t group) const {
    const Range rows = part(task.rows.size(), groups, group);
    return {task.rows.begin + rows.begin, task.rows.begin + rows.end};
  }

  void multiply_block(const Task& task, std::span<const Panel> panels, int64_t group_count,
                      const Range& groups, const Range& depth, const ByteMatrix& product) const {
    ByteMatrix a = {task.a.at(0, depth.begin), task.a.row_stride, task.a.column_stride};
    if (needs_packing_) a = pack_a(task, group_count, groups, depth);
    // Along the rows of the product, so that it is written in order; A's few rows stay near.
    for (int64_t group = groups.begin; group < groups.end; ++group) {
      const Range rows = group_rows(task, group_count, group);
      for (size_t i = 0; i < panels.size(); ++i) {
        const Panel& p = panels[i];
        const auto tile_of = [&](int64_t row, int64_t column) {
          return product.data + row * product.row_stride + column * plan_.element_bytes;
        };
        MicroArguments arguments = {
            .a = a.data + rows.begin * a.row_stride,
            .a_row_stride = a.row_stride,
            .b = task.b.at(depth.begin, p.columns.begin),
            .b_row_stride = task.b.row_stride,
            .product = tile_of(rows.begin, p.columns.begin),
            .next_product = i + 1 < panels.size()
                                ? tile_of(rows.begin, next_columns(p, panels[i + 1]))
                                : tile_of(rows.end, next_columns(p, panels[0])),
            .product_row_stride = product.row_stride,
            .depth = depth.size(),
            .lanes = p.columns.size() - (p.vectors - 1) * plan_.lanes,
            .b_is_padded = plan_.packs_b ? 1 : 0,
            .accumulate = depth.begin > 0 ? 1 : 0};
        if (plan_.packs_b) {
          arguments.b_row_stride = packed_row_stride(p);
          arguments.b = packed_panel(task, p, depth);
        }
        micro_.at({static_cast<int>(rows.size()), p.vectors})(&arguments);
      }
    }
  }

  // Where as many columns begin as a panel has that end with the next panel: other threads write
  // behind it.
  int64_t next_columns(const Panel& now, const Panel& next) const {
    return next.columns.begin + std::min(next.vectors - now.vectors, 0) * plan_.lanes;
  }

  // The block of A, converted and adjacent along its depth, addressed like the whole matrix.
  ByteMatrix pack_a(const Task& task, int64_t group_count, const Range& groups,
                    const Range& depth) const {
    const Range rows = {group_rows(task, group_count, groups.begin).begin,
                        group_rows(task, group_count, groups.end - 1).end};
    // An odd number of lines between rows spreads them over the cache's sets.
    const int64_t stride = (plan_.block_depth + plan_.lanes) * plan_.element_bytes;
    pack(packing_, program_.input,
         {task.a.at(rows.begin, depth.begin), task.a.row_stride, task.a.column_stride}, rows.size(),
         depth.size(), task.a_memory, stride);
    return {task.a_memory - rows.begin * stride, stride, plan_.element_bytes};
  }

  void run_epilogue(const Task& task, const ByteMatrix& product, const Range& rows,
                    const Range& columns) const {
    Launch tail = {.extents = launch_.batch, .scalars = launch_.scalars};
    tail.extents.insert(tail.extents.end(), {launch_.rows, launch_.columns});
    Launch::Buffer buffer = {product.data, std::vector<int64_t>(launch_.batch.size(), 0)};
    buffer.strides.insert(buffer.strides.end(), {plan_.product_row_elements, 1});
    tail.buffers.push_back(std::move(buffer));
    tail.buffers.insert(tail.buffers.end(), launch_.buffers.begin(), launch_.buffers.end());
    const PackedArguments arguments(epilogue_->program, epilogue_->layout, tail);
    const int64_t first = task.batch * launch_.rows;
    epilogue_->rows(arguments.words(), first + rows.begin, first + rows.end, columns.begin,
                    columns.end, nullptr);
  }

  const MatmulProgram& program_;
  const MatmulLaunch& launch_;
  InstructionSet set_;
  DType product_;
  MatmulPlan plan_;
  const Kernel::Code* epilogue_;
  const MicroFunctions& micro_;
  char* scratch_;
  bool needs_packing_ = false;
  PackFunctions packing_;
};

MatmulKernel::MatmulKernel(MatmulProgram program, InstructionSet set)
    : program_(std::move(program)), set_(set) {
  verify(program_);
  if (!program_.epilogue.body.empty()) epilogue_ = compile(program_.epilogue, set);
}

int64_t MatmulKernel::scratch_bytes(const MatmulLaunch& launch) const {
  const MatmulPlan plan = plan_of(program_, launch, set_);
  return plan.thread_bytes() * plan.threads_used;
}

void MatmulKernel::run(const MatmulLaunch& launch, void* scratch) const {
  MatmulRun(program_, epilogue_ ? epilogue_->code_.get() : nullptr, launch, set_, scratch).run();
}

}  // namespace lamella::tile
