// Which buffers of a launch are streamed.
#include "lamella/tile/cpu/streaming.h"

#include <algorithm>

#include "lamella/base/system/cpu_limits.h"
#include "lamella/tile/cpu/row_emitter.h"

namespace lamella::tile {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kLargestElement = 8;
// Of a larger cache a virtual machine of a few processors was measured to have no more than this.
constexpr int64_t kMostCache = int64_t{128} << 20;

int64_t cache_bytes() {
  return std::min(last_level_cache_bytes(), kMostCache);
}

// Whether the program fills one line after the other. Blocks of rows begin as many lines as there
// are rows, and processors collect only a few until they are full.
bool fills_lines(const Program& program, const BufferParameter& buffer) {
  return !runs_in_row_blocks(program) || kLanes * size_of(buffer.dtype) >= kLine;
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
    bytes += elements_touched(launch, i) * size_of(program.buffers[i].dtype);
  }
  Program result = program;
  if (bytes <= cache_bytes()) return result;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    BufferParameter& buffer = result.buffers[i];
    const Launch::Buffer& memory = launch.buffers[i];
    buffer.streamed = buffer.access == Access::Write &&
                      buffer.vector_stride == VectorStride::Unit && fills_lines(program, buffer) &&
                      begins_at_lines(buffer, memory) && !reads(program, launch, memory.data) &&
                      std::none_of(later.begin(), later.end(), [&](const PreparedLaunch& reader) {
                        return reads(reader.kernel->program(), *reader.launch, memory.data);
                      });
  }
  return result;
}

}  // namespace lamella::tile
