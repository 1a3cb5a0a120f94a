// Random permutations: Philox words, divided into buckets by their upper bits, each bucket sorted.
#include "lamella/kernels/permutation.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"
#include "lamella/base/philox.h"
#include "lamella/device/pool.h"
#include "lamella/kernels/view.h"

namespace lamella::kernels {

namespace {

struct Entry {
  uint64_t key;
  int64_t index;
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.index < b.index;
  }
};

uint64_t key_of(uint64_t seed, uint64_t offset, int64_t index) {
  const PhiloxCounter words = philox_at(seed, offset, static_cast<uint64_t>(index));
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

constexpr int64_t kBucketSize = 1024;

// Fills `sorted` with the n entries in order; `entries` is working memory.
void sort_keys(uint64_t seed, uint64_t offset, int64_t n, Entry* entries, Entry* sorted) {
  const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(n / kBucketSize)));
  const auto bucket_of = [bits](uint64_t key) {
    return bits == 0 ? 0 : static_cast<size_t>(key >> (64 - bits));
  };
  std::vector<int64_t> bounds((size_t{1} << bits) + 1, 0);
  parallel_for(n, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) entries[i] = {key_of(seed, offset, i), i};
  });
  for (int64_t i = 0; i < n; ++i) ++bounds[bucket_of(entries[i].key) + 1];
  for (size_t bucket = 1; bucket < bounds.size(); ++bucket) bounds[bucket] += bounds[bucket - 1];
  std::vector<int64_t> next(bounds.begin(), bounds.end() - 1);
  for (int64_t i = 0; i < n; ++i) sorted[next[bucket_of(entries[i].key)]++] = entries[i];
  parallel_for(static_cast<int64_t>(next.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t bucket = begin; bucket < end; ++bucket) {
      std::sort(sorted + bounds[static_cast<size_t>(bucket)],
                sorted + bounds[static_cast<size_t>(bucket) + 1]);
    }
  });
}

template <typename T>
void write(const Entry* sorted, const TensorView& out) {
  for (int64_t i = 0; i < out.sizes[0]; ++i) {
    out.as<T>()[i * out.strides[0]] = static_cast<T>(sorted[i].index);
  }
}

}  // namespace

void permutation(uint64_t seed, uint64_t offset, const TensorView& out) {
  if (out.rank() != 1) {
    fail(ErrorKind::Value, "[permutation] out must have 1 axis, got {}", text(out));
  }
  if (out.dtype != DType::Int32 && out.dtype != DType::Int64) {
    fail(ErrorKind::Type, "[permutation] out must be int32 or int64, got {}", name(out.dtype));
  }
  const int64_t n = out.sizes[0];
  if (out.dtype == DType::Int32 && n - 1 > std::numeric_limits<int32_t>::max()) {
    fail(ErrorKind::Value, "[permutation] int32 cannot number {} elements", n);
  }
  const int64_t bytes = n * static_cast<int64_t>(sizeof(Entry));
  const Ref<Allocation> memory = cpu_pool().allocate(2 * bytes, "permutation");
  Entry* entries = static_cast<Entry*>(memory->data());
  sort_keys(seed, offset, n, entries, entries + n);
  out.dtype == DType::Int32 ? write<int32_t>(entries + n, out) : write<int64_t>(entries + n, out);
}

}  // namespace lamella::kernels
