// Round ticks.
#include "lamella/io/chart_axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace lamella::io {

namespace {

// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// `value`, a multiple of `step`, with the digits the step needs: "0.25", "1500", "20k", "3M".
std::string tick_label(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e9 || step < 1e-4) return short_number(value);
  for (const auto& [unit, letter] : {std::pair(1e6, 'M'), std::pair(1e3, 'k')}) {
    const double ten_steps = step / unit * 10;
    if (largest >= 10 * unit && std::abs(ten_steps - std::round(ten_steps)) < 1e-9) {
      return fmt::format("{:g}{}", std::round(value / unit * 10) / 10, letter);
    }
  }
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string short_number(double value, int digits) {
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e9 && value == std::floor(value)) {
    return fmt::format("{}", static_cast<int64_t>(value));
  }
  return fmt::format("{:.{}g}", value, digits);
}

ChartAxis::ChartAxis(double low, double high, Scale scale, int intervals, bool whole_numbers)
    : scale_(scale), low_(low), high_(high) {
  if (scale == Scale::Logarithmic) {
    if (low_ == high_) {
      low_ /= 2;
      high_ *= 2;
    }
    add_logarithmic_ticks(intervals);
    return;
  }
  if (low_ == high_) {
    const double around = low_ == 0 ? 1 : std::abs(low_) / 2;
    low_ -= around;
    high_ += around;
  }
  add_linear_ticks(intervals, whole_numbers);
}

double ChartAxis::place(double value) const {
  if (scale_ == Scale::Logarithmic) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

void ChartAxis::add_linear_ticks(int intervals, bool whole_numbers) {
  double step = round_step((high_ - low_) / intervals);
  if (whole_numbers) step = std::max(1.0, step);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  for (double n = std::ceil(low_ / step - 1e-9); n * step <= high_ + step * 1e-9; ++n) {
    add_tick(n * step, tick_label(n * step, step, largest));
  }
}

void ChartAxis::add_logarithmic_ticks(int intervals) {
  const double decades = std::log10(high_ / low_);
  // Few decades get 2 and 5 as well; many only every n-th power of ten.
  const int every = std::max(1, static_cast<int>(std::ceil(decades / intervals)));
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::ceil(std::log10(high_)));
  for (int power = first; power <= last; ++power) {
    for (double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && decades > 2.5) break;
      if (factor == 1 && power % every != 0) continue;
      const double value = factor * std::pow(10.0, power);
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      add_tick(value, short_number(value));
    }
  }
}

void ChartAxis::add_tick(double value, std::string label) {
  ticks_.push_back({place(value), std::move(label)});
}

}  // namespace lamella::io
