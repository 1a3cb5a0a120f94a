// From two examples of one structure to sizes as expressions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/types/dim.h"

namespace lamella {

// Sizes as expressions over symbols, each bound at one position of the list.
struct SizePattern {
  std::vector<Dim> sizes;
  std::vector<size_t> bound_at;  // symbol i is the size at this position

  // The symbols' values under which every expression gives the size listed; nothing if none do.
  std::optional<std::vector<int64_t>> bind(std::span<const int64_t> concrete) const;
};

// The pattern two lists of sizes share: equal sizes stay; sizes that changed together are one
// symbol, or a multiple of one.
LAMELLA_API SizePattern generalize(std::span<const int64_t> first, std::span<const int64_t> second);

}  // namespace lamella
