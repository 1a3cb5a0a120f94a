// Anti-unification of size lists.
#include "lamella/runtime/size_pattern.h"

#include <algorithm>
#include <map>

namespace lamella {

SizePattern generalize(std::span<const int64_t> first, std::span<const int64_t> second) {
  // Pairs that differ, the smallest first, so that multiples find what they are multiples of.
  std::map<std::pair<int64_t, int64_t>, size_t> positions;
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] != second[i]) positions.try_emplace({first[i], second[i]}, i);
  }
  SizePattern pattern;
  std::map<std::pair<int64_t, int64_t>, Dim> expressions;
  for (const auto& [pair, position] : positions) {
    std::optional<Dim> expression;
    for (const auto& [known, dim] : expressions) {
      const int64_t factor = known.first == 0 ? 0 : pair.first / known.first;
      if (factor > 1 && known.first * factor == pair.first &&
          known.second * factor == pair.second) {
        expression = dim * factor;
        break;
      }
    }
    if (!expression) {
      expression = Dim::symbol(static_cast<int>(pattern.bound_at.size()));
      pattern.bound_at.push_back(position);
    }
    expressions[pair] = *expression;
  }
  for (size_t i = 0; i < first.size(); ++i) {
    pattern.sizes.push_back(first[i] == second[i] ? Dim(first[i])
                                                  : expressions[{first[i], second[i]}]);
  }
  return pattern;
}

std::optional<std::vector<int64_t>> SizePattern::bind(std::span<const int64_t> concrete) const {
  if (concrete.size() != sizes.size()) return std::nullopt;
  std::vector<int64_t> bindings;
  for (size_t position : bound_at) bindings.push_back(concrete[position]);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].evaluate(bindings) != concrete[i]) return std::nullopt;
  }
  return bindings;
}

}  // namespace lamella
