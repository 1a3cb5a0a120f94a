// Lists of free memory, one for each thread and size.
#include "lamella/base/free_list.h"

#include <cstdint>
#include <new>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#define LAMELLA_KEEPS_FREE_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LAMELLA_KEEPS_FREE_MEMORY 0
#endif
#endif
#ifndef LAMELLA_KEEPS_FREE_MEMORY
#define LAMELLA_KEEPS_FREE_MEMORY 1
#endif

namespace lamella {

namespace {

constexpr size_t kStep = 32;  // sizes are rounded up to a multiple of it
constexpr size_t kLargest = 256;
constexpr size_t kSizes = kLargest / kStep;
// A list keeps at most this many: 2 MB of the largest.
constexpr uint32_t kMostKept = 8192;

struct Free {
  Free* next;
};

// Trivial, so that it outlives the thread's other objects, which may still let go of memory.
struct Lists {
  Free* first[kSizes];
  uint32_t count[kSizes];
  bool watched;  // whether this thread's end will empty the lists
  bool ended;
};
thread_local Lists lists;

struct AtThreadEnd {
  ~AtThreadEnd() {
    lists.ended = true;
    for (Free*& first : lists.first) {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
  }
};

void watch_thread() {
  thread_local const AtThreadEnd at_end;
  (void)&at_end;
  lists.watched = true;
}

}  // namespace

void* take_small(size_t bytes) {
  if (!LAMELLA_KEEPS_FREE_MEMORY || bytes > kLargest) return ::operator new(bytes);
  const size_t size = (bytes - 1) / kStep;
  Lists& own = lists;
  Free* first = own.first[size];
  if (first == nullptr) return ::operator new((size + 1) * kStep);
  own.first[size] = first->next;
  --own.count[size];
  return first;
}

void give_small(void* memory, size_t bytes) noexcept {
  const size_t size = (bytes - 1) / kStep;
  Lists& own = lists;
  if (!LAMELLA_KEEPS_FREE_MEMORY || bytes > kLargest || own.ended || own.count[size] >= kMostKept) {
    ::operator delete(memory);
    return;
  }
  if (!own.watched) watch_thread();
  own.first[size] = new (memory) Free{own.first[size]};
  ++own.count[size];
}

}  // namespace lamella
