// The weight gradient of a depthwise convolution: channels side by side in vectors, one row of taps
// in registers. The library's own takes up to ten times as long for 5x5 kernels.
#include <cstring>

#include "lamella/base/parallel.h"
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/element.h"
#include "lamella/kernels/vectorized.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kMostBlocks = 16;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using Bits = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using HalfBits = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// A vector of adjacent channels. (It is no result: how one is returned depends on the instruction
// set.)
[[gnu::always_inline]] inline void load(const float* from, Vector& to) {
  std::memcpy(&to, from, sizeof to);
}
[[gnu::always_inline]] inline void load(const BFloat16* from, Vector& to) {
  HalfBits half;
  std::memcpy(&half, from, sizeof half);
  const Bits bits = __builtin_convertvector(half, Bits) << 16;
  std::memcpy(&to, &bits, sizeof to);
}

// A row of x and one of dy, of one image and some neighbouring channels.
struct Row {
  int64_t lanes;     // channels, at most those of a group
  int64_t channels;  // from a place to the next, in elements
  int64_t in, out;   // places
  int64_t stride, before, dilation;
  int64_t chunk_floats;  // from the sums of one vector of channels to those of the next
};

// Vectors of channels computed side by side: as many as leave their sums in registers.
constexpr int64_t group_of(int64_t taps) {
  return taps == 7 ? 2 : 4;
}

// sums[chunk][tap][lane] += x at the tap's place times dy, for the places [begin, end), whose taps
// all lie inside x, and `Chunks` whole vectors.
template <int Taps, int Chunks, typename T>
[[gnu::always_inline]] inline void add_inner_places(const Row& row, int64_t begin, int64_t end,
                                                    const T* x, const T* dy, float* sums) {
  Vector taps[Chunks][Taps];
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    std::memcpy(taps[chunk], sums + chunk * row.chunk_floats, sizeof taps[chunk]);
  }
  const int64_t x_step = row.stride * row.channels, tap_step = row.dilation * row.channels;
  x += (begin * row.stride - row.before) * row.channels;
  dy += begin * row.channels;
  for (int64_t place = begin; place < end; ++place, x += x_step, dy += row.channels) {
#pragma GCC unroll 4
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      Vector cotangent;
      load(dy + chunk * kLanes, cotangent);
#pragma GCC unroll 8
      for (int tap = 0; tap < Taps; ++tap) {
        Vector value;
        load(x + tap * tap_step + chunk * kLanes, value);
        taps[chunk][tap] += value * cotangent;
      }
    }
  }
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    std::memcpy(sums + chunk * row.chunk_floats, taps[chunk], sizeof taps[chunk]);
  }
}

// The same for places of which some taps lie outside, and any number of channels.
template <typename T>
[[gnu::always_inline]] inline void add_any_places(int64_t taps, const Row& row, int64_t begin,
                                                  int64_t end, const T* x, const T* dy,
                                                  float* sums) {
  for (int64_t place = begin; place < end; ++place) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t at = place * row.stride - row.before + tap * row.dilation;
      if (at < 0 || at >= row.in) continue;
      const T* from_x = x + at * row.channels;
      const T* from_dy = dy + place * row.channels;
      float* to = sums + tap * kLanes;
      int64_t lane = 0;
      for (; lane + kLanes <= row.lanes; lane += kLanes, to += row.chunk_floats) {
        Vector value, cotangent, sum;
        load(from_x + lane, value);
        load(from_dy + lane, cotangent);
        load(to, sum);
        sum += value * cotangent;
        std::memcpy(to, &sum, sizeof sum);
      }
      for (int64_t i = 0; lane + i < row.lanes; ++i) {
        to[i] += static_cast<float>(from_x[lane + i]) * static_cast<float>(from_dy[lane + i]);
      }
    }
  }
}

template <int Taps, typename T>
[[gnu::always_inline]] inline void add_row(const Row& row, const T* x, const T* dy, float* sums) {
  constexpr int kGroup = static_cast<int>(group_of(Taps));
  const int64_t room = row.in - 1 + row.before - (Taps - 1) * row.dilation;
  const int64_t begin = std::min((row.before + row.stride - 1) / row.stride, row.out);
  const int64_t end = room < 0 ? begin : std::clamp(room / row.stride + 1, begin, row.out);
  add_any_places(Taps, row, 0, begin, x, dy, sums);
  int64_t lane = 0;
  if (row.lanes == kGroup * kLanes) {
    add_inner_places<Taps, kGroup>(row, begin, end, x, dy, sums);
    lane = row.lanes;
  }
  for (; lane + kLanes <= row.lanes; lane += kLanes) {
    add_inner_places<Taps, 1>(row, begin, end, x + lane, dy + lane,
                              sums + lane / kLanes * row.chunk_floats);
  }
  Row rest = row;
  rest.lanes = row.lanes - lane;
  add_any_places(Taps, rest, begin, end, x + lane, dy + lane,
                 sums + lane / kLanes * row.chunk_floats);
  add_any_places(Taps, row, end, row.out, x, dy, sums);
}

template <typename T>
[[gnu::always_inline]] inline void add_row_of_taps(int64_t taps, const Row& row, const T* x,
                                                   const T* dy, float* sums) {
  switch (taps) {
    case 3:
      return add_row<3>(row, x, dy, sums);
    case 5:
      return add_row<5>(row, x, dy, sums);
    default:
      return add_row<7>(row, x, dy, sums);
  }
}

LAMELLA_VECTORIZED void add_row_any(int64_t taps, const Row& row, const float* x, const float* dy,
                                    float* sums) {
  add_row_of_taps(taps, row, x, dy, sums);
}
LAMELLA_VECTORIZED void add_row_any(int64_t taps, const Row& row, const BFloat16* x,
                                    const BFloat16* dy, float* sums) {
  add_row_of_taps(taps, row, x, dy, sums);
}

struct Geometry {
  int64_t height_taps, width_taps, taps;
  int64_t chunks;          // of channels
  int64_t images, blocks;  // images of a block
  int64_t block_floats;    // sums of one block

  explicit Geometry(const ConvolutionProblem& problem)
      : height_taps(problem.kernel[0]),
        width_taps(problem.kernel[1]),
        taps(height_taps * width_taps),
        chunks((problem.in_channels + kLanes - 1) / kLanes),
        images((problem.batch + kMostBlocks - 1) / kMostBlocks),
        blocks((problem.batch + images - 1) / images),
        block_floats(chunks * taps * kLanes) {}
};

// All images of a block for the chunks [first, last): row after row, so that memory is read in
// order.
template <typename T>
void add_block(const ConvolutionProblem& problem, const Geometry& geometry, int64_t block,
               int64_t first, int64_t last, const T* x, const T* dy, float* block_sums) {
  const int64_t channels = problem.in_channels, chunk_floats = geometry.taps * kLanes;
  const int64_t group = group_of(geometry.width_taps);
  Row row{.lanes = 0,
          .channels = channels,
          .in = problem.in[1],
          .out = problem.out[1],
          .stride = problem.stride[1],
          .before = problem.before[1],
          .dilation = problem.dilation[1],
          .chunk_floats = chunk_floats};
  std::fill(block_sums + first * chunk_floats, block_sums + last * chunk_floats, 0.0f);
  const int64_t last_image = std::min((block + 1) * geometry.images, problem.batch);
  for (int64_t n = block * geometry.images; n < last_image; ++n) {
    for (int64_t h = 0; h < problem.out[0]; ++h) {
      const T* dy_row = dy + (n * problem.out[0] + h) * row.out * channels;
      for (int64_t chunk = first; chunk < last; chunk += group) {
        row.lanes = std::min(std::min(chunk + group, last) * kLanes, channels) - chunk * kLanes;
        for (int64_t tap = 0; tap < geometry.height_taps; ++tap) {
          const int64_t at = h * problem.stride[0] - problem.before[0] + tap * problem.dilation[0];
          if (at < 0 || at >= problem.in[0]) continue;
          const T* x_row = x + (n * problem.in[0] + at) * row.in * channels;
          add_row_any(geometry.width_taps, row, x_row + chunk * kLanes, dy_row + chunk * kLanes,
                      block_sums + chunk * chunk_floats + tap * geometry.width_taps * kLanes);
        }
      }
    }
  }
}

template <typename T>
void run(const ConvolutionProblem& problem, const T* x, const T* dy, const TensorView& dweight,
         float* sums) {
  const Geometry geometry(problem);
  // Channels are divided only where there are too few images for the threads.
  const int64_t parts = std::min(geometry.chunks, (2 * thread_count() - 1) / geometry.blocks + 1);
  parallel_for(geometry.blocks * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task / parts, part = task % parts;
      add_block(problem, geometry, block, part * geometry.chunks / parts,
                (part + 1) * geometry.chunks / parts, x, dy, sums + block * geometry.block_floats);
    }
  });
  for (int64_t channel = 0; channel < problem.in_channels; ++channel) {
    for (int64_t tap = 0; tap < geometry.taps; ++tap) {
      const float* from =
          sums + (channel / kLanes * geometry.taps + tap) * kLanes + channel % kLanes;
      float sum = from[0];
      for (int64_t block = 1; block < geometry.blocks; ++block) {
        sum += from[block * geometry.block_floats];
      }
      dweight
          .as<T>()[channel * dweight.strides[0] + tap / geometry.width_taps * dweight.strides[2] +
                   tap % geometry.width_taps * dweight.strides[3]] = T(sum);
    }
  }
}

}  // namespace

bool takes_depthwise_weights(const ConvolutionProblem& problem, const TensorView& x,
                             const TensorView& dy) {
  if (problem.spatial_rank() != 2 || problem.groups != problem.in_channels ||
      problem.groups != problem.out_channels || problem.batch == 0) {
    return false;
  }
  // The library has a kernel of its own for 3x3 without dilation, which is faster.
  const bool small = std::max(problem.kernel[0], problem.kernel[1]) <= 3;
  if (small && problem.dilation[0] == 1 && problem.dilation[1] == 1) return false;
  const int64_t taps = problem.kernel[1];
  return (taps == 3 || taps == 5 || taps == 7) &&
         (x.dtype == DType::Float32 || x.dtype == DType::BFloat16) && is_channels_last(x) &&
         is_channels_last(dy);
}

int64_t convolution_depthwise_weights_scratch_bytes(const ConvolutionProblem& problem) {
  const Geometry geometry(problem);
  return scratch_aligned(geometry.blocks * geometry.block_floats *
                         static_cast<int64_t>(sizeof(float)));
}

void convolution_depthwise_weights(const ConvolutionProblem& problem, const TensorView& x,
                                   const TensorView& dy, const TensorView& dweight,
                                   Scratch scratch) {
  const int64_t bytes = convolution_depthwise_weights_scratch_bytes(problem);
  ScratchParts parts(scratch, bytes);
  float* sums = static_cast<float*>(parts.take(bytes));
  if (x.dtype == DType::Float32) {
    run(problem, x.as<float>(), dy.as<float>(), dweight, sums);
  } else {
    run(problem, x.as<BFloat16>(), dy.as<BFloat16>(), dweight, sums);
  }
}

}  // namespace lamella::kernels
