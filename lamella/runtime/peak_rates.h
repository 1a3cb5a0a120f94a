// What this machine can do at most, measured when asked: the two bounds of a roofline.
#pragma once

#include "lamella/base/api.h"

namespace lamella {

struct PeakRates {
  double flops = 0;  // float32 operations a second, in fused multiply-adds on registers
  double bytes = 0;  // a second, read and written together, of a copy that no cache holds
};

// The best of several measurements on all threads, which take about half a second and 256 MiB
// beside the memory pool; made once in a process.
LAMELLA_API const PeakRates& peak_rates();

}  // namespace lamella
