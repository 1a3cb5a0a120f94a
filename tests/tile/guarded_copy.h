// Arrays beside memory that cannot be accessed.
#pragma once

#include <algorithm>

#include "tests/tile/tile_testing.h"

#include "lamella/base/system/pages.h"

namespace lamella::tile {

enum class Edge : uint8_t { End, Begin };

// A copy of an array whose last (or first) byte lies beside a forbidden page.
class GuardedCopy {
 public:
  GuardedCopy(const Array& array, Edge edge) {
    const auto bytes = static_cast<int64_t>(array.bytes.size());
    const int64_t room = std::max(round_to_pages(bytes), page_size());
    size_ = room + 2 * page_size();
    pages_ = static_cast<uint8_t*>(map_pages(size_));
    forbid_access(pages_, page_size());
    forbid_access(pages_ + size_ - page_size(), page_size());
    data_ = edge == Edge::End ? pages_ + page_size() + room - bytes : pages_ + page_size();
    std::copy(array.bytes.begin(), array.bytes.end(), data_);
  }
  ~GuardedCopy() { unmap_pages(pages_, size_); }
  GuardedCopy(const GuardedCopy&) = delete;
  GuardedCopy& operator=(const GuardedCopy&) = delete;

  uint8_t* data() const { return data_; }
  void copy_back(Array& array) const {
    std::copy_n(data_, array.bytes.size(), array.bytes.begin());
  }

 private:
  uint8_t* pages_;
  uint8_t* data_;
  int64_t size_;
};

}  // namespace lamella::tile
