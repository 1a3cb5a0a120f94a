// What the program's threads spent their time on, as a whole: kernels, compilation, waiting for
// data, the program itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/profile/recording.h"

namespace lamella::profile {

struct Interval {
  int64_t begin = 0, end = 0;
};

// When a thread that runs windows was neither in one nor waiting for data: recording operations,
// and whatever else the program does. Nothing for other threads.
LAMELLA_API std::vector<Interval> program_intervals(const ThreadRecord& thread,
                                                    const Recording& recording);

// Seconds of the thread that spent most time in windows. They add up to `whole`.
struct TimeShares {
  double whole = 0;
  double kernels = 0;
  double compiling = 0;  // of graphs and kernels
  double runtime = 0;    // of windows, beside both
  double data = 0;       // waiting
  double program = 0;
};
LAMELLA_API TimeShares time_shares(std::span<const Recording> recordings);

// The shares in words, and which is the largest; or that there are none.
LAMELLA_API std::string text(const TimeShares& shares);

}  // namespace lamella::profile
