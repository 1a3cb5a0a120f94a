// Datasets of numbered rows, and their rows as plain vectors, for the tests of the data layer.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/files.h"
#include <gtest/gtest.h>

#include "lamella/data/config.h"
#include "lamella/data/dataset.h"
#include "lamella/data/iterator.h"
#include "lamella/data/source.h"

namespace lamella::data {

inline const SourceOptions kInOrder = {.shuffle = false};

// Column "id", int64: 0 to count - 1.
inline Ref<Dataset> numbers(int64_t count, const SourceOptions& options = kInOrder) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return make_ref<NumpySlicesDataset>(std::vector<Array>{Array::of<int64_t>(ids, {count})},
                                      std::vector<std::string>{"id"}, options);
}

// A function of one column of int64 numbers.
inline Ref<Transform> function(const std::function<int64_t(int64_t, RandomStream&)>& body) {
  return make_ref<FunctionTransform>([body](std::vector<Array> in, RandomStream& random) {
    std::vector<int64_t> values;
    for (int64_t value : in.at(0).as<int64_t>()) values.push_back(body(value, random));
    return std::vector<Array>{Array::of<int64_t>(values, in[0].sizes())};
  });
}

// All numbers of `column` in the rest of the epoch, batches joined.
inline std::vector<int64_t> read_epoch(Iterator& rows, const std::string& column = "id") {
  std::vector<int64_t> values;
  while (auto row = rows.next()) {
    const auto part = (*row)[column].as<int64_t>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

inline std::vector<int64_t> read(const Ref<Dataset>& dataset, IteratorOptions options = {},
                                 const std::string& column = "id") {
  dataset->reset();
  return read_epoch(*dataset->iterate(std::move(options)), column);
}

inline std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

inline std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> values(static_cast<size_t>(end - begin));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

}  // namespace lamella::data
