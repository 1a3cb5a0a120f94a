// Where the time went: one row an operator, a layer or a line of the program.
//
// The time and bytes of a launch that computes several operations are split among them by the
// floating-point operations that their operators declare.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/profile/recording.h"

namespace lamella::profile {

enum class CostKey : uint8_t { Operator, Layer, Line };

struct CostRow {
  std::string name;
  int64_t count = 0;  // operations within launches; one that takes two launches counts twice
  // Seconds. `total` holds what runs inside: a loop's body, a layer's layers. `self` does not, and
  // adds up to the time of all launches over the table.
  double total = 0, self = 0;
  // Of one operation in one launch, with what runs inside it.
  double mean = 0, longest = 0;
  double forward = 0, backward = 0, update = 0;  // parts of `self`
  double bytes = 0;                              // moved; of `self`
  double flops = 0;                              // as declared; of `self`

  // 10^9 floating-point operations a second of `self`; 0 if none are declared.
  double gflops() const { return self > 0 ? flops / self * 1e-9 : 0; }
};

// The rows, the largest `self` first. Operations outside of layers are in the row "(no layer)",
// those whose line is not known in "(unknown)".
LAMELLA_API std::vector<CostRow> cost_table(std::span<const Recording> recordings, CostKey key);

// The table as comma-separated values under a line of names, and as text for people, which begins
// with what the figures mean.
LAMELLA_API std::string csv(const std::vector<CostRow>& rows, CostKey key);
LAMELLA_API std::string text(const std::vector<CostRow>& rows, CostKey key, size_t most = 50);

}  // namespace lamella::profile
