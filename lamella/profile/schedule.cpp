// Counting steps.
#include "lamella/profile/schedule.h"

#include "lamella/base/error.h"

namespace lamella::profile {

void Schedule::check() const {
  if (active < 1) fail(ErrorKind::Value, "[schedule] active must be at least 1, got {}", active);
  for (const auto& [name, steps] :
       {std::pair{"wait", wait}, std::pair{"warmup", warmup}, std::pair{"repeat", repeat},
        std::pair{"skip_first", skip_first}}) {
    if (steps < 0)
      fail(ErrorKind::Value, "[schedule] {} must not be negative, got {}", name, steps);
  }
}

bool Schedule::records(int64_t number) const {
  const int64_t step = number - skip_first, cycle = wait + warmup + active;
  if (step < 0 || (repeat > 0 && step / cycle >= repeat)) return false;
  return step % cycle >= wait + warmup;
}

bool Schedule::ends_cycle(int64_t number) const {
  const int64_t step = number - skip_first, cycle = wait + warmup + active;
  return records(number) && step % cycle == cycle - 1;
}

}  // namespace lamella::profile
