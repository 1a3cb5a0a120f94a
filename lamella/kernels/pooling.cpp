// Pooling: sizes, checks, and the float32 sums of 16-bit gradients.
#include "lamella/kernels/pooling.h"

#include <string>

#include "lamella/base/error.h"
#include "lamella/kernels/convert.h"
#include "lamella/kernels/pooling_kernels.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

// "max_pool2d"
std::string operation(const char* kind, const TensorView& x) {
  return fmt::format("{}_pool{}d", kind, x.rank() - 2);
}

void check_options(const std::string& name, const PoolingOptions& options, uint32_t rank) {
  const auto check = [&](const char* what, const Spatial& values, int64_t lowest) {
    bool fits = values.size() == rank;
    for (int64_t value : values) fits &= value >= lowest;
    if (!fits) {
      fail(ErrorKind::Value, "[{}] {} must be {} numbers of at least {}, got [{}]", name, what,
           rank, lowest, fmt::join(values.begin(), values.end(), ","));
    }
  };
  check("kernel", options.kernel, 1);
  check("stride", options.stride, 1);
  check("padding before", options.padding_before, 0);
  check("padding after", options.padding_after, 0);
  check("dilation", options.dilation, 1);
}

// Checks x and y, or their cotangents.
void check(const char* kind, const TensorView& x, const TensorView& y,
           const PoolingOptions& options) {
  if (x.rank() < 3 || x.rank() > 5) {
    fail(ErrorKind::Value, "[{}_pool] x must have 3 to 5 axes, got {}", kind, text(x));
  }
  const std::string name = operation(kind, x);
  require_same_dtype(name.c_str(), "x", x, "y", y);
  if (!is_float(x.dtype)) {
    fail(ErrorKind::Type, "[{}] takes float16, bfloat16, float32 or float64, got {}", name,
         lamella::name(x.dtype));
  }
  const uint32_t rank = x.sizes.size() - 2;
  check_options(name, options, rank);
  Axes floor_sizes = {x.sizes[0], x.sizes[1]}, ceil_sizes = floor_sizes;
  bool fits = y.rank() == x.rank() && y.sizes[0] == x.sizes[0] && y.sizes[1] == x.sizes[1];
  for (uint32_t i = 0; i < rank; ++i) {
    const auto size = [&](Rounding rounding) {
      return pooled_size(x.sizes[i + 2], options.kernel[i], options.stride[i],
                         options.padding_before[i], options.padding_after[i], options.dilation[i],
                         rounding);
    };
    floor_sizes.push_back(size(Rounding::Floor));
    ceil_sizes.push_back(size(Rounding::Ceil));
    fits = fits && (y.sizes[i + 2] == floor_sizes.back() || y.sizes[i + 2] == ceil_sizes.back());
  }
  if (!fits) {
    fail(ErrorKind::Value, "[{}] y must have shape [{}], or [{}] rounded up, got {}", name,
         fmt::join(floor_sizes.begin(), floor_sizes.end(), ","),
         fmt::join(ceil_sizes.begin(), ceil_sizes.end(), ","), text(y));
  }
}

void check_average(const TensorView& x, const PoolingOptions& options,
                   const AverageOptions& average) {
  for (int64_t dilation : options.dilation) {
    if (dilation != 1) {
      fail(ErrorKind::Value, "[{}] dilation must be 1, got {}", operation("avg", x), dilation);
    }
  }
  if (average.divisor_override == 0) {
    fail(ErrorKind::Value, "[{}] the divisor must not be 0", operation("avg", x));
  }
}

// Runs gradient(sums) in the accumulators' dtype and stores the sums in dx.
template <typename Gradient>
void accumulate(const TensorView& dx, Scratch scratch, Gradient gradient) {
  if (!is_low_precision(dx.dtype)) return gradient(dx);
  ScratchParts parts(scratch, pooling_backward_scratch_bytes(dx));
  TensorView sums = row_major_view(nullptr, DType::Float32, dx.sizes);
  if (is_channels_last(dx)) sums.strides = dx.strides;
  sums.data = parts.take(byte_count(sums));
  gradient(sums);
  convert(sums, dx);
}

}  // namespace

int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after,
                    int64_t dilation, Rounding rounding) {
  const int64_t room = size + before + after - dilation * (kernel - 1) - 1;
  const int64_t raised = room + (rounding == Rounding::Ceil ? stride - 1 : 0);
  if (raised < 0) return 0;
  const int64_t count = raised / stride + 1;
  const bool last_begins_outside =
      rounding == Rounding::Ceil && (count - 1) * stride >= size + before;
  return last_begins_outside ? count - 1 : count;
}

void max_pool(const TensorView& x, const TensorView& y, const PoolingOptions& options) {
  check("max", x, y, options);
  max_pool_forward(x, y, nullptr, options);
}

void max_pool_with_indices(const TensorView& x, const TensorView& y, const TensorView& indices,
                           const PoolingOptions& options) {
  check("max", x, y, options);
  const std::string name = operation("max", x);
  if (indices.dtype != DType::Int32 && indices.dtype != DType::Int64) {
    fail(ErrorKind::Type, "[{}] indices must be int32 or int64, got {}", name,
         lamella::name(indices.dtype));
  }
  require_sizes(name.c_str(), "indices", indices, y.sizes);
  max_pool_forward(x, y, &indices, options);
}

void max_pool_backward(const TensorView& x, const TensorView& dy, const TensorView& dx,
                       const PoolingOptions& options, Scratch scratch) {
  check("max", x, dy, options);
  require_same_dtype(operation("max", x).c_str(), "x", x, "dx", dx);
  require_sizes(operation("max", x).c_str(), "dx", dx, x.sizes);
  accumulate(dx, scratch, [&](const TensorView& sums) { max_pool_gradient(x, dy, sums, options); });
}

void average_pool(const TensorView& x, const TensorView& y, const PoolingOptions& options,
                  const AverageOptions& average) {
  check("avg", x, y, options);
  check_average(x, options, average);
  average_pool_forward(x, y, options, average);
}

void average_pool_backward(const TensorView& dy, const TensorView& dx,
                           const PoolingOptions& options, const AverageOptions& average,
                           Scratch scratch) {
  check("avg", dx, dy, options);
  check_average(dx, options, average);
  accumulate(dx, scratch,
             [&](const TensorView& sums) { average_pool_gradient(dy, sums, options, average); });
}

int64_t pooling_backward_scratch_bytes(const TensorView& dx) {
  return is_low_precision(dx.dtype) ? scratch_aligned(dx.count() * size_of(DType::Float32)) : 0;
}

}  // namespace lamella::kernels
