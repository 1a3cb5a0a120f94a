// Page mappings through POSIX; huge pages and the cgroup's limit where the system is Linux.
#include "lamella/base/system/pages.h"

#include <algorithm>
#include <fstream>

#include <sys/mman.h>
#include <unistd.h>

namespace lamella {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

char* map(int64_t size) {
  void* pages = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
}

// A number in a file, if there is one.
int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value && value > 0 ? value : 0;
}

}  // namespace

int64_t page_size() {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

int64_t round_to_pages(int64_t size) {
  return (size + page_size() - 1) / page_size() * page_size();
}

void* map_pages(int64_t size) {
  if (size < 2 * kHugePage) return map(size);
  char* pages = map(size + kHugePage);
  if (pages == nullptr) return map(size);
  // Cut the ends off, so that what is left begins at a huge page.
  const int64_t address = static_cast<int64_t>(reinterpret_cast<intptr_t>(pages));
  const int64_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (before > 0) unmap_pages(pages, before);
  if (before < kHugePage) unmap_pages(pages + before + size, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(pages + before, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
  return pages + before;
}

void unmap_pages(void* pages, int64_t size) {
  munmap(pages, static_cast<size_t>(size));
}

void forbid_access(void* pages, int64_t size) {
  mprotect(pages, static_cast<size_t>(size), PROT_NONE);
}

int64_t memory_limit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  int64_t limit = pages > 0 ? pages * page_size() : 0;
  // cgroup v2, v1; "max" or a huge number mean none.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (const int64_t bytes = number_in(path); bytes > 0) {
      limit = limit == 0 ? bytes : std::min(limit, bytes);
    }
  }
  return limit;
}

}  // namespace lamella
