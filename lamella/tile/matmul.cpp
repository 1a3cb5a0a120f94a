// The rules of matrix programs and their definition in plain loops.
#include "lamella/tile/matmul.h"

#include <cmath>
#include <cstring>

#include "lamella/base/error.h"
#include "lamella/base/system/float_environment.h"
#include "lamella/tile/interpreter.h"
#include "lamella/types/half.h"

namespace lamella::tile {

namespace {

template <typename T>
T load_as(DType dtype, const char* address) {
  const auto read = [&]<typename S>(S value) {
    std::memcpy(&value, address, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Float16:
      return static_cast<T>(float_from_float16_bits(read(uint16_t{})));
    case DType::BFloat16:
      return static_cast<T>(float_from_bfloat16_bits(read(uint16_t{})));
    default:
      return read(T{});
  }
}

const char* element(const MatmulLaunch::Matrix& matrix, DType dtype,
                    const std::vector<int64_t>& batch, int64_t row, int64_t column) {
  int64_t offset = row * matrix.row_stride + column * matrix.column_stride;
  for (size_t axis = 0; axis < batch.size(); ++axis) {
    offset += batch[axis] * matrix.batch_strides[axis];
  }
  return static_cast<const char*>(matrix.data) + offset * size_of(dtype);
}

int64_t batch_count(const MatmulLaunch& launch) {
  int64_t count = 1;
  for (const int64_t size : launch.batch) count *= size;
  return count;
}

// The dense product of all batches.
template <typename T>
std::vector<T> multiply(DType dtype, const MatmulLaunch& launch) {
  std::vector<T> product;
  std::vector<int64_t> batch(launch.batch.size(), 0);
  for (int64_t number = batch_count(launch); number > 0; --number) {
    for (int64_t row = 0; row < launch.rows; ++row) {
      for (int64_t column = 0; column < launch.columns; ++column) {
        T sum = 0;
        for (int64_t k = 0; k < launch.depth; ++k) {
          sum = std::fma(load_as<T>(dtype, element(launch.a, dtype, batch, row, k)),
                         load_as<T>(dtype, element(launch.b, dtype, batch, k, column)), sum);
        }
        product.push_back(sum);
      }
    }
    for (size_t axis = batch.size(); axis-- > 0;) {
      if (++batch[axis] < launch.batch[axis]) break;
      batch[axis] = 0;
    }
  }
  return product;
}

template <typename T>
void interpret_as(const MatmulProgram& program, const MatmulLaunch& launch) {
  std::vector<T> product = multiply<T>(program.input, launch);
  Launch tail = {
      .extents = launch.batch, .buffers = {{product.data(), {}}}, .scalars = launch.scalars};
  tail.extents.insert(tail.extents.end(), {launch.rows, launch.columns});
  // Strides of the dense product.
  int64_t stride = 1;
  for (size_t axis = tail.extents.size(); axis-- > 0;) {
    tail.buffers[0].strides.insert(tail.buffers[0].strides.begin(), stride);
    stride *= tail.extents[axis];
  }
  tail.buffers.insert(tail.buffers.end(), launch.buffers.begin(), launch.buffers.end());
  if (!program.epilogue.body.empty()) return interpret(program.epilogue, tail);

  const DType dtype = product_dtype(program.input);
  Program copy = {.name = "copy", .outer_rank = program.batch_rank + 1};
  copy.buffers = {{.dtype = dtype, .vector_stride = VectorStride::Any},
                  {.dtype = dtype, .access = Access::Write, .vector_stride = VectorStride::Any}};
  copy.body = {{.opcode = Opcode::Load, .dtype = dtype},
               {.opcode = Opcode::Store, .dtype = dtype, .operands = {0, -1, -1}, .index = 1}};
  Launch::Buffer result = {launch.product.data, launch.product.batch_strides};
  result.strides.insert(result.strides.end(),
                        {launch.product.row_stride, launch.product.column_stride});
  tail.buffers = {tail.buffers[0], result};
  tail.scalars.clear();
  interpret(copy, tail);
}

}  // namespace

void verify(const MatmulProgram& program) {
  const auto require = [](bool condition, const std::string& rule) {
    if (!condition) fail(ErrorKind::Internal, "[tile] matrix program: {}", rule);
  };
  require(is_float(program.input) && is_computable(program.input), "A and B must be floats");
  require(program.batch_rank >= 0 && program.batch_rank <= 4, "at most 4 batch axes are supported");
  const Program& epilogue = program.epilogue;
  if (epilogue.body.empty()) return;
  verify(epilogue);
  require(epilogue.reduction == Reduction::None, "the epilogue must not reduce");
  require(epilogue.outer_rank == program.batch_rank + 1,
          "the epilogue's outer axes must be the batch axes and the rows");
  require(!epilogue.buffers.empty() && epilogue.buffers[0].access == Access::Read &&
              epilogue.buffers[0].vector_stride == VectorStride::Unit &&
              epilogue.buffers[0].dtype == product_dtype(program.input),
          "buffer 0 of the epilogue must read the product");
}

void interpret(const MatmulProgram& program, const MatmulLaunch& launch) {
  verify(program);
  const DefaultFloatEnvironment environment;
  if (program.input == DType::Float64) {
    interpret_as<double>(program, launch);
  } else {
    interpret_as<float>(program, launch);
  }
}

}  // namespace lamella::tile
