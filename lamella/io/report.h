// A training run as one HTML page: curves, key figures and facts, without a server, scripts or
// other files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lamella/base/api.h"

namespace lamella::io {

// Points (x, y) with rising x. Values that are not finite leave a gap and are counted below the
// chart. A curve of many points is drawn as its moving mean, over the points themselves in a faint
// line.
struct Curve {
  std::string name;
  std::vector<double> x, y;
};

enum class Scale : uint8_t { Linear, Logarithmic };

// Curves over one pair of axes. On a logarithmic scale, values that are not positive leave gaps.
struct Chart {
  std::string title;
  std::string x_label, y_label;
  std::vector<Curve> curves;
  Scale y_scale = Scale::Linear;
};

// A named figure or statement: {"test accuracy", "90.3 %"}, {"seed", "42"}.
struct Fact {
  std::string name, value;
};

struct Report {
  std::string title;
  std::string summary;           // one sentence under the title; may be empty
  std::vector<Fact> highlights;  // shown large, at most about six
  std::vector<Chart> charts;
  std::vector<Fact> facts;  // dataset, parameters, machine, seed, ...
};

// The page, in UTF-8. Throws Value for curves whose x and y differ in length.
LAMELLA_API std::string render_report(const Report& report);
// Writes the page atomically; throws Io if it cannot.
LAMELLA_API void write_report(const std::string& path, const Report& report);

}  // namespace lamella::io
