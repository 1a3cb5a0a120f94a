// Memory of small objects: every size, between threads, and after a thread has ended.
#include "lamella/base/free_list.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace lamella {
namespace {

TEST(FreeList, GivesMemoryThatIsNobodyElsesForEverySize) {
  struct Piece {
    unsigned char* memory;
    size_t bytes;
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<Piece> pieces;
    for (size_t bytes = 1; bytes <= 600; ++bytes) {
      pieces.push_back({static_cast<unsigned char*>(take_small(bytes)), bytes});
      std::memset(pieces.back().memory, static_cast<int>(bytes % 251), bytes);
    }
    for (const Piece& piece : pieces) {
      ASSERT_EQ(reinterpret_cast<uintptr_t>(piece.memory) % alignof(std::max_align_t), 0u);
      for (size_t i = 0; i < piece.bytes; ++i) ASSERT_EQ(piece.memory[i], piece.bytes % 251);
      give_small(piece.memory, piece.bytes);
    }
  }
}

// Lets go of memory when its thread has already emptied its lists.
struct LateRelease {
  void* memory = nullptr;
  ~LateRelease() {
    if (memory != nullptr) give_small(memory, 64);
  }
};

TEST(FreeList, TakesMemoryBackFromOtherThreadsAndAtTheirVeryEnd) {
  std::vector<void*> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(take_small(64));
  std::thread([&] {
    thread_local LateRelease late;
    late.memory = taken.back();
    taken.pop_back();
    for (void* memory : taken) give_small(memory, 64);
    give_small(take_small(64), 64);
  }).join();
  give_small(take_small(64), 64);
}

TEST(FreeList, KeepsNoMoreThanItsLimit) {
  std::vector<void*> taken;
  for (int i = 0; i < 20000; ++i) taken.push_back(take_small(32));
  for (void* memory : taken) give_small(memory, 32);
  for (void*& memory : taken) memory = take_small(32);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(std::unique(taken.begin(), taken.end()), taken.end());
  for (void* memory : taken) give_small(memory, 32);
}

}  // namespace
}  // namespace lamella
