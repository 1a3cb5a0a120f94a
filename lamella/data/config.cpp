// The process's data settings.
#include "lamella/data/config.h"

#include <algorithm>
#include <atomic>

#include "lamella/base/error.h"
#include "lamella/base/parallel.h"

namespace lamella::data::config {

namespace {

constexpr int64_t kLargestPrefetch = 1 << 20;

std::atomic<int64_t> configured_seed{5489};
std::atomic<uint64_t> generation{0};
std::atomic<int> configured_workers{0};
std::atomic<int> configured_prefetch{16};

int checked(const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) {
    fail(ErrorKind::Value, "[dataset.config] {} must be from 1 to {}, got {}", what, most, value);
  }
  return static_cast<int>(value);
}

}  // namespace

void set_seed(int64_t seed) {
  if (seed < 0 || seed > 0xFFFFFFFFll) {
    fail(ErrorKind::Value, "[dataset.config] the seed must be from 0 to 4294967295, got {}", seed);
  }
  configured_seed = seed;
  ++generation;
}

int64_t seed() {
  return configured_seed;
}

uint64_t seed_generation() {
  return generation;
}

void set_num_parallel_workers(int64_t count) {
  configured_workers = checked("num_parallel_workers", count, kMostWorkers);
}

int num_parallel_workers() {
  const int count = configured_workers;
  return count > 0 ? count : std::min(8, thread_count());
}

void set_prefetch_size(int64_t size) {
  configured_prefetch = checked("prefetch_size", size, kLargestPrefetch);
}

int prefetch_size() {
  return configured_prefetch;
}

void check_workers(std::optional<int> workers, std::string_view operation) {
  if (!workers || (*workers >= 1 && *workers <= kMostWorkers)) return;
  fail(ErrorKind::Value, "[{}] num_parallel_workers must be 1 to {}, got {}", operation,
       kMostWorkers, *workers);
}

}  // namespace lamella::data::config
