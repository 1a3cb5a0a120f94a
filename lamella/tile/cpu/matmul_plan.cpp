// The choice of blocks. Constants are for caches of 32 to 48 KiB and 1 to 2 MiB.
#include "lamella/tile/cpu/matmul_plan.h"

#include "lamella/tile/cpu/micro_library.h"

namespace lamella::tile {

namespace {

constexpr int64_t kBlockDepth = 512;         // rows of A stay near; the product is rarely visited
constexpr int64_t kBlockRows = 96;           // A's block of 96 x 512 stays in the second cache
constexpr int64_t kPackedBytes = 800 << 10;  // a block of B stays in the second cache
constexpr int64_t kProductRows = 768;        // waiting for the epilogue
// Where all of A fits beside B's block, that may be small and be written again while it is still in
// the cache. Fewer rows do not make up for reading A more often.
constexpr int64_t kBytesForSmallBlock = 800 << 10;
constexpr int64_t kRowsForSmallBlock = 64;
constexpr int64_t kSmallBlock = 96 << 10;
// A row-major B is read in place for few rows, and if it is too large for the caches only for very
// few: then the time goes into reading it once.
constexpr int64_t kUnpackedRows = 96;
constexpr int64_t kUnpackedBytes = int64_t{8} << 20;
// It is then read in short pieces of as many rows as the processor can fetch ahead side by side.
constexpr int64_t kOnceReadDepth = 32;
constexpr double kFlopsWorthAThread = 1e6;
constexpr double kBytesWorthAThread = 256 << 10;  // of B, for products that wait for memory

constexpr int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_divide(a, b) * b;
}

}  // namespace

MatmulPlan::MatmulPlan(const MatmulSizes& sizes, const MatmulTraits& traits, int threads) {
  const DType product = compute_dtype(traits.input);
  lanes = matmul_lanes(product);
  element_bytes = size_of(product);
  const MicroShape largest = largest_micro_shape(traits.set);

  const double flops = 2.0 * static_cast<double>(sizes.batches) * static_cast<double>(sizes.rows) *
                       static_cast<double>(sizes.columns) * static_cast<double>(sizes.depth);
  const int64_t b_matrix_bytes = sizes.depth * sizes.columns * element_bytes;
  const double b_bytes_read =
      static_cast<double>(sizes.batches) * static_cast<double>(b_matrix_bytes);
  const auto useful =
      std::min<int64_t>(threads, static_cast<int64_t>(std::max(flops / kFlopsWorthAThread,
                                                               b_bytes_read / kBytesWorthAThread)) +
                                     1);
  const bool readable_in_place = traits.b_is_row_major && traits.input == product;

  // Tasks: batches first; then columns, because every part of the rows packs its own B. But where A
  // has to be packed and B is small, parts of so few rows that they read B in place.
  if (useful > 1 && sizes.batches % useful != 0 && sizes.batches < 4 * useful) {
    if (traits.a_needs_packing && readable_in_place && b_matrix_bytes <= kPackedBytes &&
        sizes.rows >= useful * kUnpackedRows) {
      row_parts = round_up(ceil_divide(sizes.rows, kUnpackedRows), useful);
    } else {
      const int64_t wide = std::max<int64_t>(sizes.columns / (2 * largest.vectors * lanes), 1);
      column_parts = std::min(useful, wide);
      const int64_t tall = std::max<int64_t>(sizes.rows / largest.rows, 1);
      row_parts = std::min(ceil_divide(useful, column_parts), tall);
    }
  }
  tasks = sizes.batches * row_parts * column_parts;
  threads_used = std::min(useful, tasks);

  const int64_t task_rows = std::max<int64_t>(ceil_divide(sizes.rows, row_parts), 1);
  const int64_t task_columns =
      std::max<int64_t>(ceil_divide(ceil_divide(sizes.columns, lanes), column_parts) * lanes, 1);
  max_rows = static_cast<int>(std::min<int64_t>(largest.rows, task_rows));
  max_vectors = widest_panel(traits.set, max_rows);
  const bool is_large = b_matrix_bytes > kUnpackedBytes;
  packs_b =
      !readable_in_place || task_rows > kUnpackedRows || (is_large && task_rows > kRowsReadingOnce);
  const bool reads_b_once = is_large && !packs_b;
  if (reads_b_once) max_vectors = std::min(max_vectors, kVectorsReadOnce);
  block_depth =
      std::min(reads_b_once ? kOnceReadDepth : kBlockDepth, std::max<int64_t>(sizes.depth, 1));
  product_rows = traits.has_epilogue ? std::min(task_rows, kProductRows) : task_rows;
  block_rows = std::min(round_up(kBlockRows, max_rows), round_up(task_rows, max_rows));

  const int64_t panel = max_vectors * lanes;
  const bool is_small = packs_b && !traits.a_needs_packing && task_rows >= kRowsForSmallBlock &&
                        task_rows * sizes.depth * element_bytes <= kBytesForSmallBlock;
  const int64_t fitting =
      (is_small ? kSmallBlock : kPackedBytes) / (block_depth * element_bytes) / panel * panel;
  panel_columns = std::min(round_up(task_columns, panel), std::max(fitting, panel));

  b_bytes = packs_b ? round_up(panel_columns * block_depth * element_bytes, 64) : 0;
  a_bytes =
      traits.a_needs_packing ? round_up(block_rows * (block_depth + lanes) * element_bytes, 64) : 0;
  product_row_elements = panel_columns + lanes;
  product_bytes =
      traits.has_epilogue ? round_up(product_rows * product_row_elements * element_bytes, 64) : 0;
}

}  // namespace lamella::tile
