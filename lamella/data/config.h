// Settings that hold for every dataset of the process until changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lamella/base/api.h"

namespace lamella::data::config {

// The seed of every shuffle and random transform, in [0, 2^32); 5489 until set, so a program that
// sets none repeats. Setting it also lets the next iterator of each dataset begin at epoch 0.
LAMELLA_API void set_seed(int64_t seed);
LAMELLA_API int64_t seed();
// How often set_seed was called.
LAMELLA_API uint64_t seed_generation();

// Threads an iterator loads with where an operation does not say: at least 1; until set, the
// threads of parallel_for, at most 8. The result never depends on it.
LAMELLA_API void set_num_parallel_workers(int64_t count);
LAMELLA_API int num_parallel_workers();

// The most threads or processes that any operation may ask for.
inline constexpr int64_t kMostWorkers = 1024;
// Throws Value, in the name of the operation, unless there are 1 to kMostWorkers.
void check_workers(std::optional<int> workers, std::string_view operation);

// Rows or batches an iterator keeps ready ahead of the reader: at least 1; 16 until set.
LAMELLA_API void set_prefetch_size(int64_t size);
LAMELLA_API int prefetch_size();

}  // namespace lamella::data::config
