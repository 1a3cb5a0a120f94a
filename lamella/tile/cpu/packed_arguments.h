// A launch's arguments in the layout that compiled code reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "lamella/base/error.h"
#include "lamella/tile/cpu/arguments.h"

namespace lamella::tile {

// Writes layout.words() words. Throws Internal if the launch does not fit the program.
inline void pack_arguments(const Program& program, const ArgumentLayout& layout,
                           const Launch& launch, int64_t* words) {
  const auto axes = static_cast<size_t>(layout.axes);
  LAMELLA_CHECK(launch.extents.size() == axes && launch.buffers.size() == program.buffers.size() &&
                launch.scalars.size() == program.scalars.size());
  words = std::copy(launch.extents.begin(), launch.extents.end(), words);
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const Launch::Buffer& buffer = launch.buffers[i];
    LAMELLA_CHECK(buffer.strides.size() == axes);
    *words++ = static_cast<int64_t>(reinterpret_cast<intptr_t>(buffer.data));
    const int64_t size = size_of(program.buffers[i].dtype);
    for (const int64_t stride : buffer.strides) *words++ = stride * size;
  }
  for (const uint64_t scalar : launch.scalars) *words++ = static_cast<int64_t>(scalar);
}

// The words of one launch; on the stack unless a program has very many buffers.
class PackedArguments {
 public:
  PackedArguments(const Program& program, const ArgumentLayout& layout, const Launch& launch) {
    const auto count = static_cast<size_t>(layout.words());
    if (count > inline_words_.size()) {
      heap_words_ = std::make_unique<int64_t[]>(count);
      words_ = heap_words_.get();
    }
    pack_arguments(program, layout, launch, words_);
  }
  PackedArguments(const PackedArguments&) = delete;
  PackedArguments& operator=(const PackedArguments&) = delete;

  const int64_t* words() const { return words_; }

 private:
  std::array<int64_t, 96> inline_words_;
  std::unique_ptr<int64_t[]> heap_words_;
  int64_t* words_ = inline_words_.data();
};

}  // namespace lamella::tile
