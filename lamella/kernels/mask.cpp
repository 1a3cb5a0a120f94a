// Counting and numbering the true elements of a mask, piece by piece.
#include "lamella/kernels/mask.h"

#include <vector>

#include "lamella/base/parallel.h"
#include "lamella/kernels/strided_loop.h"

namespace lamella::kernels {

int64_t mask_positions(const TensorView& mask, const TensorView& out) {
  constexpr int64_t kPiece = int64_t{1} << 15;
  const auto loop = StridedLoop<1>::in_order(mask.sizes, {&mask.strides});
  const int64_t count = mask.count(), pieces = (count + kPiece - 1) / kPiece;
  const auto* elements = mask.as<uint8_t>();
  std::vector<int64_t> starts(static_cast<size_t>(pieces) + 1, 0);
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      int64_t found = 0;
      loop.walk(piece * kPiece, std::min(count, (piece + 1) * kPiece),
                [&](const auto& at) { found += elements[at[0]] != 0; });
      starts[static_cast<size_t>(piece) + 1] = found;
    }
  });
  for (size_t piece = 1; piece < starts.size(); ++piece) starts[piece] += starts[piece - 1];
  const int64_t total = starts.back(), room = out.count();
  auto* numbers = out.as<int64_t>();
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      int64_t next = starts[static_cast<size_t>(piece)], number = piece * kPiece;
      loop.walk(number, std::min(count, number + kPiece), [&](const auto& at) {
        if (elements[at[0]] != 0 && next < room) numbers[next++] = number;
        ++number;
      });
    }
  });
  return total;
}

}  // namespace lamella::kernels
