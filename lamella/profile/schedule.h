// Which steps of a program are recorded.
#pragma once

#include <cstdint>

#include "lamella/base/api.h"

namespace lamella::profile {

// Steps are passed over `skip_first` times; then cycles follow: `wait` and `warmup` steps that are
// passed over, `active` steps that are recorded. After `repeat` cycles nothing more is; 0 repeats
// for ever.
struct LAMELLA_API Schedule {
  int64_t wait = 0, warmup = 0, active = 1, repeat = 0, skip_first = 0;

  // Throws Value if `active` is below 1 or another number negative.
  void check() const;
  // Whether step `number`, from 0, is recorded, and whether it is the last of its cycle.
  bool records(int64_t number) const;
  bool ends_cycle(int64_t number) const;
};

}  // namespace lamella::profile
