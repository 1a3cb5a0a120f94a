// The data gradient of a convolution with few input channels. One matrix product gives what each
// position of dy adds to the elements of dx that it touches; those of one row of taps lie beside
// each other, so they are added in whole vectors. (A convolution whose vectors hold channels, as
// the library's, has most of its lanes empty here.)
#include <cstring>

#include "lamella/base/parallel.h"
#include "lamella/base/remark.h"
#include "lamella/kernels/convolution_problem.h"
#include "lamella/kernels/matmul.h"
#include "lamella/kernels/vectorized.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

constexpr int64_t kLanes = 16;
// From half a vector of channels on the library keeps up.
constexpr int64_t kMostChannels = 8;
// With fewer channels of dy, products cost more to move than to make.
constexpr int64_t kLeastDepth = 16;
// Images are what threads share.
constexpr int64_t kLeastImages = 8;
// Products that wait to be added.
constexpr int64_t kBlockFloats = 32 << 10;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using Mask = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

struct Geometry {
  int64_t run;                 // adjacent contributions: the taps of a row times the channels
  int64_t run_step;            // the same in whole vectors
  int64_t columns;             // of the product: a run for each row of taps
  int64_t height, row_floats;  // dx with all that windows reach, rows of as many floats
  int64_t block_rows;          // rows of dy whose products are made at once

  explicit Geometry(const ConvolutionProblem& problem) {
    const int64_t channels = problem.in_channels;
    run = problem.kernel[1] * channels;
    run_step = (run + kLanes - 1) / kLanes * kLanes;
    columns = problem.kernel[0] * run_step;
    const auto reached = [&](uint32_t axis) {
      return std::max(problem.in[axis] + problem.before[axis],
                      (problem.out[axis] - 1) * problem.stride[axis] + problem.kernel[axis]);
    };
    height = reached(0);
    row_floats = reached(1) * channels;
    block_rows = std::clamp<int64_t>(kBlockFloats / (problem.out[1] * columns), 1, problem.out[0]);
  }
  int64_t image_floats() const { return height * row_floats + kLanes; }
};

// A matrix of adjacent rows.
TensorView dense(float* data, int64_t rows, int64_t columns) {
  return {data, DType::Float32, Axes{rows, columns}, Axes{columns, 1}};
}

// The weights as [K, kernel rows, run, in whole vectors].
void arrange_weights(const ConvolutionProblem& problem, const Geometry& geometry,
                     const TensorView& weight, float* to) {
  std::fill_n(to, problem.out_channels * geometry.columns, 0.0f);
  for (int64_t k = 0; k < problem.out_channels; ++k) {
    for (int64_t i = 0; i < problem.kernel[0]; ++i, to += geometry.run_step) {
      for (int64_t j = 0; j < problem.kernel[1]; ++j) {
        for (int64_t c = 0; c < problem.in_channels; ++c) {
          to[j * problem.in_channels + c] =
              weight.as<float>()[k * weight.strides[0] + c * weight.strides[1] +
                                 i * weight.strides[2] + j * weight.strides[3]];
        }
      }
    }
  }
}

// Adds `count` runs, whose products are `product_step` apart, to places `step` apart. Beyond a run
// lie products with no weight, which may be NaN: they count as 0.
LAMELLA_VECTORIZED void add_runs(const float* products, int64_t product_step, int64_t count,
                                 int64_t run, float* to, int64_t step) {
  const int64_t whole = run / kLanes * kLanes;
  Mask rest;
  for (int64_t lane = 0; lane < kLanes; ++lane) rest[lane] = whole + lane < run ? -1 : 0;
  for (int64_t x = 0; x < count; ++x, products += product_step, to += step) {
    Vector sum, added;
    for (int64_t i = 0; i < whole; i += kLanes) {
      std::memcpy(&sum, to + i, sizeof sum);
      std::memcpy(&added, products + i, sizeof added);
      sum += added;
      std::memcpy(to + i, &sum, sizeof sum);
    }
    if (whole == run) continue;
    Mask bits;
    std::memcpy(&sum, to + whole, sizeof sum);
    std::memcpy(&bits, products + whole, sizeof bits);
    bits &= rest;
    std::memcpy(&added, &bits, sizeof added);
    sum += added;
    std::memcpy(to + whole, &sum, sizeof sum);
  }
}

// The working memory of one thread.
struct Workplace {
  float* products;
  float* image;
  Scratch matmul;
};

class OverlapGradient {
 public:
  OverlapGradient(const ConvolutionProblem& problem, const TensorView& dy, const TensorView& dx)
      : problem_(problem), geometry_(problem), dy_(dy), dx_(dx) {}

  int64_t weight_bytes() const {
    return scratch_aligned(problem_.out_channels * geometry_.columns * 4);
  }
  int64_t product_bytes() const {
    return scratch_aligned(geometry_.block_rows * problem_.out[1] * geometry_.columns * 4);
  }
  int64_t image_bytes() const { return scratch_aligned(geometry_.image_floats() * 4); }
  int64_t matmul_bytes() const {
    const TensorView a = positions(0, 0, geometry_.block_rows), b = weights(nullptr);
    return scratch_aligned(
        matmul_scratch_bytes(a, b, nullptr, dense(nullptr, a.sizes[0], geometry_.columns)));
  }
  int64_t thread_bytes() const { return product_bytes() + image_bytes() + matmul_bytes(); }
  int64_t bytes() const { return weight_bytes() + thread_count() * thread_bytes(); }

  void run(const TensorView& weight, Scratch scratch) const {
    remark([&] {
      return fmt::format(
          "own kernel: for each of {} images and {} rows at a time the product [{},{}] by [{},{}], "
          "whose rows are added where they overlap",
          problem_.batch, geometry_.block_rows, geometry_.block_rows * problem_.out[1],
          problem_.out_channels, problem_.out_channels, geometry_.columns);
    });
    const RemarkPause silence;  // of the products
    ScratchParts parts(scratch, bytes());
    auto* arranged = static_cast<float*>(parts.take(weight_bytes()));
    arrange_weights(problem_, geometry_, weight, arranged);
    auto* memory = static_cast<char*>(parts.rest().data);
    const int64_t each = thread_bytes();
    const auto run_images = [&](int64_t begin, int64_t end, int64_t thread) {
      char* own = memory + thread * each;
      const Workplace place = {.products = reinterpret_cast<float*>(own),
                               .image = reinterpret_cast<float*>(own + product_bytes()),
                               .matmul = {own + product_bytes() + image_bytes(), matmul_bytes()}};
      for (int64_t n = begin; n < end; ++n) run_image(n, weights(arranged), place);
    };
    parallel_for_threads(problem_.batch, 1, run_images, thread_count());
  }

 private:
  // The positions of rows of dy: [positions, K].
  TensorView positions(int64_t image, int64_t row, int64_t rows) const {
    return dense(dy_.as<float>() + image * dy_.strides[0] + row * dy_.strides[2],
                 rows * problem_.out[1], problem_.out_channels);
  }
  TensorView weights(float* arranged) const {
    return dense(arranged, problem_.out_channels, geometry_.columns);
  }

  void run_image(int64_t image, const TensorView& weights, const Workplace& place) const {
    std::fill_n(place.image, geometry_.image_floats(), 0.0f);
    for (int64_t row = 0; row < problem_.out[0]; row += geometry_.block_rows) {
      const int64_t rows = std::min(geometry_.block_rows, problem_.out[0] - row);
      const TensorView a = positions(image, row, rows);
      matmul(a, weights, nullptr, dense(place.products, a.sizes[0], geometry_.columns),
             place.matmul);
      for (int64_t i = 0; i < rows; ++i) add_row(row + i, i, place);
    }
    const int64_t channels = problem_.in_channels, in_row = problem_.in[1] * channels;
    const float* from =
        place.image + problem_.before[0] * geometry_.row_floats + problem_.before[1] * channels;
    float* to = dx_.as<float>() + image * dx_.strides[0];
    for (int64_t i = 0; i < problem_.in[0]; ++i, from += geometry_.row_floats, to += in_row)
      std::copy_n(from, in_row, to);
  }

  // Adds the products of one row of dy, the `number`-th of its block.
  void add_row(int64_t row, int64_t number, const Workplace& place) const {
    const float* products = place.products + number * problem_.out[1] * geometry_.columns;
    float* to = place.image + row * problem_.stride[0] * geometry_.row_floats;
    for (int64_t i = 0; i < problem_.kernel[0]; ++i, to += geometry_.row_floats) {
      add_runs(products + i * geometry_.run_step, geometry_.columns, problem_.out[1], geometry_.run,
               to, problem_.stride[1] * problem_.in_channels);
    }
  }

  const ConvolutionProblem& problem_;
  const Geometry geometry_;
  const TensorView &dy_, &dx_;
};

}  // namespace

bool takes_overlapping_data(const ConvolutionProblem& problem, const TensorView& dy,
                            const TensorView& dx) {
  return problem.spatial_rank() == 2 && problem.groups == 1 &&
         problem.in_channels <= kMostChannels && problem.out_channels >= kLeastDepth &&
         problem.batch >= kLeastImages && problem.kernel[0] * problem.kernel[1] > 1 &&
         problem.dilation[0] == 1 && problem.dilation[1] == 1 && dx.dtype == DType::Float32 &&
         dx.count() > 0 && dy.count() > 0 && is_channels_last(dx) && is_channels_last(dy);
}

int64_t convolution_backward_data_overlapping_scratch_bytes(const ConvolutionProblem& problem,
                                                            const TensorView& dy,
                                                            const TensorView& dx) {
  return OverlapGradient(problem, dy, dx).bytes();
}

void convolution_backward_data_overlapping(const ConvolutionProblem& problem, const TensorView& dy,
                                           const TensorView& weight, const TensorView& dx,
                                           Scratch scratch) {
  OverlapGradient(problem, dy, dx).run(weight, scratch);
}

}  // namespace lamella::kernels
