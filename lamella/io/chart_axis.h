// Axes of charts: a range of values, where its ticks are and how they are written.
#pragma once

#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/io/report.h"

namespace lamella::io {

struct Tick {
  double place;  // 0 at the low end of the axis, 1 at the high end
  std::string label;
};

class LAMELLA_API ChartAxis {
 public:
  // An axis over at least [low, high], both finite (and positive on a logarithmic scale), with
  // about `intervals` intervals at round numbers; `whole_numbers` keeps ticks at whole numbers.
  ChartAxis(double low, double high, Scale scale, int intervals, bool whole_numbers);

  // Where `value` lies, 0 to 1 for values in range.
  double place(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  void add_linear_ticks(int intervals, bool whole_numbers);
  void add_logarithmic_ticks(int intervals);
  void add_tick(double value, std::string label);

  Scale scale_;
  double low_, high_;
  std::vector<Tick> ticks_;
};

// A value in few characters, with `digits` significant digits: "0.0123", "1.5e-07", "12500".
LAMELLA_API std::string short_number(double value, int digits = 4);

}  // namespace lamella::io
