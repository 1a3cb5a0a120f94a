// Register-blocked products and packing, in LLVM's vectors.
#include "lamella/tile/cpu/microkernel_emitter.h"

#include <array>

#include "lamella/tile/cpu/memory.h"
#include "lamella/tile/cpu/value.h"

namespace lamella::tile {

namespace {

// Fields of an argument structure, all of 8 bytes.
LLVMValueRef field(Ir& ir, LLVMTypeRef type, size_t offset) {
  return ir.load(type, ir.address(ir.parameter(0), ir.word(static_cast<int64_t>(offset))), 8);
}

class MicroEmitter {
 public:
  MicroEmitter(Ir& ir, DType product, MicroShape shape)
      : ir_(ir),
        shape_(shape),
        element_(product == DType::Float64 ? ir.f64 : ir.f32),
        bytes_(size_of(product)),
        lanes_(matmul_lanes(product)),
        vector_(LLVMVectorType(element_, static_cast<unsigned>(lanes_))) {}

  void run() {
    const std::array parameters = {ir_.pointer};
    ir_.begin_function(micro_function_name(shape_).c_str(), parameters, nullptr, false);
    const auto word = [&](size_t offset) { return field(ir_, ir_.i64, offset); };
    const LLVMValueRef a = field(ir_, ir_.pointer, offsetof(MicroArguments, a));
    const LLVMValueRef a_stride = word(offsetof(MicroArguments, a_row_stride));
    b_ = field(ir_, ir_.pointer, offsetof(MicroArguments, b));
    b_stride_ = word(offsetof(MicroArguments, b_row_stride));
    product_ = field(ir_, ir_.pointer, offsetof(MicroArguments, product));
    product_stride_ = word(offsetof(MicroArguments, product_row_stride));
    const LLVMValueRef depth = word(offsetof(MicroArguments, depth));
    const LLVMValueRef lanes = word(offsetof(MicroArguments, lanes));
    tail_ = make_tail(ir_, lanes, lanes_);
    for (int row = 0; row < shape_.rows; ++row) {
      rows_.push_back(ir_.address(a, ir_.mul(a_stride, ir_.word(row))));
    }

    const Ir::Values zeros(static_cast<size_t>(shape_.rows * shape_.vectors),
                           LLVMConstNull(vector_));
    const LLVMValueRef accumulates =
        ir_.icmp(LLVMIntNE, word(offsetof(MicroArguments, accumulate)), ir_.word(0));
    Ir::Values sums = ir_.if_then(accumulates, zeros, [&] { return load_product(); });
    prefetch_next_product();
    // A masked load takes a multiplier's turn, so whole vectors are read without.
    const LLVMValueRef whole =
        ir_.bit_or(ir_.icmp(LLVMIntEQ, lanes, ir_.word(lanes_)),
                   ir_.icmp(LLVMIntNE, word(offsetof(MicroArguments, b_is_padded)), ir_.word(0)));
    const int steps = steps_per_turn();
    const LLVMValueRef paced = ir_.select(whole, ir_.bit_and(depth, ir_.word(-steps)), ir_.word(0));
    sums = ir_.loop(ir_.word(0), paced, ir_.word(steps), sums,
                    [&](LLVMValueRef k, Ir::Values updated) {
                      for (int step = 0; step < steps; ++step) {
                        updated = multiply(ir_.add(k, ir_.word(step)), {}, updated);
                      }
                      return updated;
                    });
    sums = ir_.loop(
        paced, depth, ir_.word(1), sums,
        [&](LLVMValueRef k, const Ir::Values& carried) { return multiply(k, tail_, carried); });
    store_product(sums);
    ir_.return_void();
  }

 private:
  // In a longer body LLVM moves loads ahead until the registers do not suffice.
  int steps_per_turn() const { return ir_.set() == InstructionSet::Avx512 ? 2 : 1; }
  bool is_last(int vector) const { return vector == shape_.vectors - 1; }
  LLVMValueRef load_vector(LLVMValueRef row, int vector, const Tail& tail) {
    const LLVMValueRef address = ir_.address(row, ir_.word(vector * lanes_ * bytes_));
    return load_piece(ir_, element_, address, is_last(vector) ? tail : Tail{}, lanes_);
  }
  LLVMValueRef product_row(int row) {
    return ir_.address(product_, ir_.mul(product_stride_, ir_.word(row)));
  }

  Ir::Values load_product() {
    Ir::Values sums;
    for (int row = 0; row < shape_.rows; ++row) {
      for (int vector = 0; vector < shape_.vectors; ++vector) {
        sums.push_back(load_vector(product_row(row), vector, tail_));
      }
    }
    return sums;
  }
  void store_product(const Ir::Values& sums) {
    for (int row = 0; row < shape_.rows; ++row) {
      for (int vector = 0; vector < shape_.vectors; ++vector) {
        const LLVMValueRef address =
            ir_.address(product_row(row), ir_.word(vector * lanes_ * bytes_));
        store_piece(ir_, sums[static_cast<size_t>(row * shape_.vectors + vector)], address,
                    is_last(vector) ? tail_ : Tail{});
      }
    }
  }

  void prefetch_next_product() {
    const LLVMValueRef next = field(ir_, ir_.pointer, offsetof(MicroArguments, next_product));
    for (int row = 0; row < shape_.rows; ++row) {
      const LLVMValueRef start = ir_.address(next, ir_.mul(product_stride_, ir_.word(row)));
      for (int64_t byte = 0; byte < shape_.vectors * lanes_ * bytes_; byte += 64) {
        ir_.prefetch_for_writing(ir_.address(start, ir_.word(byte)));
      }
    }
  }

  // One step along k for the whole block; `tail` is for b's last vector.
  Ir::Values multiply(LLVMValueRef k, const Tail& tail, const Ir::Values& sums) {
    const LLVMValueRef b_row = ir_.address(b_, ir_.mul(k, b_stride_));
    Ir::Values b;
    for (int vector = 0; vector < shape_.vectors; ++vector) {
      b.push_back(load_vector(b_row, vector, tail));
      // The rows of b are too short and too many for the processor to fetch them ahead by itself.
      constexpr int64_t kBytesAhead = 2048;
      if (shape_.rows <= kRowsReadingOnce && shape_.vectors == kVectorsReadOnce) {
        ir_.prefetch_for_reading(
            ir_.address(b_row, ir_.word(vector * lanes_ * bytes_ + kBytesAhead)));
      }
    }
    const LLVMValueRef offset = ir_.mul(k, ir_.word(bytes_));
    Ir::Values updated = sums;
    for (int row = 0; row < shape_.rows; ++row) {
      const LLVMValueRef scalar =
          ir_.load(element_, ir_.address(rows_[static_cast<size_t>(row)], offset),
                   static_cast<unsigned>(bytes_));
      const LLVMValueRef a = ir_.splat(scalar, static_cast<int>(lanes_));
      for (int vector = 0; vector < shape_.vectors; ++vector) {
        LLVMValueRef& sum = updated[static_cast<size_t>(row * shape_.vectors + vector)];
        sum = ir_.fma(a, b[static_cast<size_t>(vector)], sum);
      }
    }
    return updated;
  }

  Ir& ir_;
  MicroShape shape_;
  LLVMTypeRef element_;
  int64_t bytes_, lanes_;
  LLVMTypeRef vector_;
  LLVMValueRef b_ = nullptr, b_stride_ = nullptr;
  LLVMValueRef product_ = nullptr, product_stride_ = nullptr;
  Tail tail_;
  std::vector<LLVMValueRef> rows_;
};

// Rows and columns of a matrix in kLanes vectors exchanged: log2(kLanes) rounds, each interleaving
// vectors that lie half the matrix apart.
Ir::Values transpose_block(Ir& ir, Ir::Values rows) {
  constexpr int kHalf = kLanes / 2;
  std::array<int, kLanes> low, high;
  for (int i = 0; i < kHalf; ++i) {
    low[static_cast<size_t>(2 * i)] = i;
    low[static_cast<size_t>(2 * i + 1)] = kLanes + i;
    high[static_cast<size_t>(2 * i)] = kHalf + i;
    high[static_cast<size_t>(2 * i + 1)] = kLanes + kHalf + i;
  }
  for (int round = 1; round < kLanes; round *= 2) {
    Ir::Values next(static_cast<size_t>(kLanes));
    for (size_t i = 0; i < static_cast<size_t>(kHalf); ++i) {
      next[2 * i] = ir.shuffle(rows[i], rows[i + kHalf], low);
      next[2 * i + 1] = ir.shuffle(rows[i], rows[i + kHalf], high);
    }
    rows = std::move(next);
  }
  return rows;
}

class PackEmitter {
 public:
  PackEmitter(Ir& ir, DType input)
      : ir_(ir),
        input_(input),
        source_element_(storage_type(ir, input)),
        source_bytes_(size_of(input)),
        target_bytes_(size_of(compute_dtype(input))) {}

  void emit_copy_rows() {
    begin(kCopyRowsFunction);
    ir_.loop(ir_.word(0), rows_, ir_.word(1), [&](LLVMValueRef row) {
      const LLVMValueRef from = source_row(row), to = target_row(row);
      const LLVMValueRef whole = ir_.bit_and(columns_, ir_.word(-kLanes));
      ir_.loop(ir_.word(0), whole, ir_.word(kLanes),
               [&](LLVMValueRef column) { copy(from, to, column, {}); });
      ir_.if_then(ir_.icmp(LLVMIntSLT, whole, columns_),
                  [&] { copy(from, to, whole, make_tail(ir_, ir_.sub(columns_, whole))); });
    });
    ir_.return_void();
  }

  void emit_transpose() {
    begin(kTransposeFunction);
    const LLVMValueRef step = ir_.word(kLanes);
    ir_.loop(ir_.word(0), rows_, step, [&](LLVMValueRef row) {
      const LLVMValueRef row_count = at_most_lanes(ir_.sub(rows_, row));
      ir_.loop(ir_.word(0), columns_, step, [&](LLVMValueRef column) {
        transpose(row, row_count, column, at_most_lanes(ir_.sub(columns_, column)));
      });
    });
    ir_.return_void();
  }

 private:
  void begin(const char* name) {
    const std::array parameters = {ir_.pointer};
    ir_.begin_function(name, parameters, nullptr, false);
    target_ = field(ir_, ir_.pointer, offsetof(PackArguments, target));
    target_stride_ = field(ir_, ir_.i64, offsetof(PackArguments, target_row_stride));
    source_ = field(ir_, ir_.pointer, offsetof(PackArguments, source));
    source_stride_ = field(ir_, ir_.i64, offsetof(PackArguments, source_row_stride));
    rows_ = field(ir_, ir_.i64, offsetof(PackArguments, rows));
    columns_ = field(ir_, ir_.i64, offsetof(PackArguments, columns));
  }
  LLVMValueRef at_most_lanes(LLVMValueRef count) {
    return ir_.intrinsic("llvm.smin", {count, ir_.word(kLanes)});
  }
  LLVMValueRef source_row(LLVMValueRef row) {
    return ir_.address(source_, ir_.mul(row, source_stride_));
  }
  LLVMValueRef target_row(LLVMValueRef row) {
    return ir_.address(target_, ir_.mul(row, target_stride_));
  }
  LLVMValueRef load(LLVMValueRef row, LLVMValueRef column, const Tail& tail) {
    const LLVMValueRef address = ir_.address(row, ir_.mul(column, ir_.word(source_bytes_)));
    Value value = {.stored = load_piece(ir_, source_element_, address, tail)};
    return computed(ir_, input_, value);
  }
  void store(LLVMValueRef value, LLVMValueRef row, LLVMValueRef column, const Tail& tail) {
    store_piece(ir_, value, ir_.address(row, ir_.mul(column, ir_.word(target_bytes_))),
                tail ? filled_up(tail) : tail);
  }
  // Up to whole vectors of the product.
  Tail filled_up(const Tail& tail) {
    const int64_t lanes = matmul_lanes(compute_dtype(input_));
    if (lanes == kLanes) return {};
    return make_tail(ir_, ir_.bit_and(ir_.add(tail.count, ir_.word(lanes - 1)), ir_.word(-lanes)));
  }
  void copy(LLVMValueRef from, LLVMValueRef to, LLVMValueRef column, const Tail& tail) {
    store(load(from, column, tail), to, column, tail);
  }

  // One block of at most kLanes rows and columns.
  void transpose(LLVMValueRef row, LLVMValueRef row_count, LLVMValueRef column,
                 LLVMValueRef column_count) {
    const LLVMValueRef full_rows = ir_.icmp(LLVMIntEQ, row_count, ir_.word(kLanes));
    const LLVMValueRef full_columns = ir_.icmp(LLVMIntEQ, column_count, ir_.word(kLanes));
    const LLVMValueRef full = ir_.bit_and(full_rows, full_columns);
    ir_.if_then(full, [&] { transpose_block_at(row, column, {}, {}, nullptr, nullptr); });
    ir_.if_then(ir_.bit_not(full), [&] {
      transpose_block_at(row, column, make_tail(ir_, row_count), make_tail(ir_, column_count),
                         row_count, column_count);
    });
  }
  void transpose_block_at(LLVMValueRef row, LLVMValueRef column, const Tail& row_tail,
                          const Tail& column_tail, LLVMValueRef row_count,
                          LLVMValueRef column_count) {
    const LLVMTypeRef element = compute_type(ir_, input_);
    Ir::Values block;
    for (int i = 0; i < kLanes; ++i) {
      const auto read = [&] {
        return load(source_row(ir_.add(row, ir_.word(i))), column, column_tail);
      };
      if (!row_count) {
        block.push_back(read());
        continue;
      }
      const LLVMValueRef exists = ir_.icmp(LLVMIntSLT, ir_.word(i), row_count);
      block.push_back(ir_.if_then(exists, {LLVMConstNull(Ir::vector(element))},
                                  [&] { return Ir::Values{read()}; })[0]);
    }
    block = transpose_block(ir_, std::move(block));
    for (int i = 0; i < kLanes; ++i) {
      const auto write = [&] {
        store(block[static_cast<size_t>(i)], target_row(ir_.add(column, ir_.word(i))), row,
              row_tail);
      };
      if (!column_count) {
        write();
      } else {
        ir_.if_then(ir_.icmp(LLVMIntSLT, ir_.word(i), column_count), write);
      }
    }
  }

  Ir& ir_;
  DType input_;
  LLVMTypeRef source_element_;
  int64_t source_bytes_, target_bytes_;
  LLVMValueRef target_ = nullptr, target_stride_ = nullptr;
  LLVMValueRef source_ = nullptr, source_stride_ = nullptr;
  LLVMValueRef rows_ = nullptr, columns_ = nullptr;
};

}  // namespace

std::string micro_function_name(MicroShape shape) {
  return fmt::format("lamella_micro_{}x{}", shape.rows, shape.vectors);
}

void emit_microkernel(Ir& ir, DType product, MicroShape shape) {
  MicroEmitter(ir, product, shape).run();
}

void emit_packing(Ir& ir, DType input) {
  PackEmitter emitter(ir, input);
  emitter.emit_copy_rows();
  emitter.emit_transpose();
}

}  // namespace lamella::tile
