// Whole pages of memory from the operating system.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"

namespace lamella {

LAMELLA_API int64_t page_size();
// `size` rounded up to whole pages.
LAMELLA_API int64_t round_to_pages(int64_t size);

// Readable, writable, zeroed pages; `size` is a multiple of page_size(). Large mappings are aligned
// for huge pages and ask for them. Null if the system refuses.
LAMELLA_API void* map_pages(int64_t size);
LAMELLA_API void unmap_pages(void* pages, int64_t size);
// Makes every access to the pages a fault.
LAMELLA_API void forbid_access(void* pages, int64_t size);

// The memory this process may use: the machine's, or less by its cgroup. 0 if unknown.
LAMELLA_API int64_t memory_limit();

}  // namespace lamella
