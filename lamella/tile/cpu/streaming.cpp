// Which buffers of a launch are streamed.
#include "lamella/tile/cpu/streaming.h"

#include <algorithm>

#include "lamella/base/system/cpu_limits.h"

namespace lamella::tile {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kLargestElement = 8;
// Of a larger cache a virtual machine of a few processors was measured to have no more than this.
constexpr int64_t kMostCache = int64_t{128} << 20;

int64_t cache_bytes() {
  return std::min(last_level_cache_bytes(), kMostCache);
}

// Distinct bytes that the launch reads or writes in a buffer.
int64_t bytes_touched(const BufferParameter& buffer, const Launch::Buffer& memory,
                      std::span<const int64_t> extents) {
  int64_t bytes = size_of(buffer.dtype);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (memory.strides[axis] != 0) bytes *= extents[axis];
  }
  return bytes;
}

bool begins_at_lines(const BufferParameter& buffer, const Launch::Buffer& memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data);
  return address % kLine == 0 &&
         std::all_of(memory.strides.begin(), memory.strides.end() - 1,
                     [&](int64_t stride) { return stride * size_of(buffer.dtype) % kLine == 0; });
}

bool reads(const Program& program, const Launch& launch, const void* data) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].access == Access::Read && launch.buffers[i].data == data) return true;
  }
  return false;
}

}  // namespace

bool may_stream(const Program& program, const Launch& launch) {
  auto most = static_cast<double>(program.buffers.size() * kLargestElement);
  for (const int64_t extent : launch.extents) most *= static_cast<double>(extent);
  return program.reduction != Reduction::Columns && most > static_cast<double>(cache_bytes());
}

Program streamed(const Program& program, const Launch& launch,
                 std::span<const PreparedLaunch> later) {
  int64_t bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    bytes += bytes_touched(program.buffers[i], launch.buffers[i], launch.extents);
  }
  Program result = program;
  if (bytes <= cache_bytes()) return result;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    BufferParameter& buffer = result.buffers[i];
    const Launch::Buffer& memory = launch.buffers[i];
    buffer.streamed = buffer.access == Access::Write &&
                      buffer.vector_stride == VectorStride::Unit &&
                      begins_at_lines(buffer, memory) && !reads(program, launch, memory.data) &&
                      std::none_of(later.begin(), later.end(), [&](const PreparedLaunch& reader) {
                        return reads(reader.kernel->program(), *reader.launch, memory.data);
                      });
  }
  return result;
}

}  // namespace lamella::tile
