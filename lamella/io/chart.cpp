// Drawing curves: gaps, moving means, ticks, legend.
#include "lamella/io/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lamella/base/error.h"
#include "lamella/io/chart_axis.h"

namespace lamella::io {

namespace {

// The drawing's own coordinates; the page stretches them.
constexpr double kWidth = 1000, kHeight = 1000;
constexpr int kColours = 8;  // --curve-0 to --curve-7 of the style
// Curves beyond this many points are shown as means; up to the second number, points get dots.
constexpr size_t kManyPoints = 240, kFewPoints = 60;
// A moving mean takes this share of a curve; a faint line has at most this many extremes.
constexpr size_t kMeanShare = 60, kFaintBuckets = 400;
// Points that lie closer to their mean than this share of the height make no band.
constexpr double kVisible = 0.004;

using Points = std::vector<std::pair<double, double>>;

struct Frame {
  ChartAxis x, y;
  std::string at(double px, double py) const {
    return fmt::format("{:.1f} {:.1f}", x.place(px) * kWidth, (1 - y.place(py)) * kHeight);
  }
};

bool drawable(double x, double y, Scale scale) {
  return std::isfinite(x) && std::isfinite(y) && (scale == Scale::Linear || y > 0);
}

// Points without a gap between them, after a gap of `gap` points that cannot be drawn.
struct Run {
  Points points;
  size_t gap = 0;
};

struct Runs {
  std::vector<Run> runs;
  size_t points = 0, gaps = 0;
};

Runs runs_of(const Curve& curve, Scale scale) {
  if (curve.x.size() != curve.y.size()) {
    fail(ErrorKind::Value, "[report] curve '{}' has {} x values and {} y values", curve.name,
         curve.x.size(), curve.y.size());
  }
  Runs result;
  size_t gap = 0;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if (!drawable(curve.x[i], curve.y[i], scale)) {
      ++gap;
      ++result.gaps;
      continue;
    }
    if (gap > 0 || result.runs.empty()) result.runs.push_back({{}, std::exchange(gap, 0)});
    result.runs.back().points.emplace_back(curve.x[i], curve.y[i]);
    ++result.points;
  }
  return result;
}

// The runs that a mean of `width` points goes over: it bridges gaps shorter than itself.
std::vector<Points> bridged(const Runs& runs, size_t width) {
  std::vector<Points> joined;
  for (const Run& run : runs.runs) {
    if (joined.empty() || run.gap >= width) joined.emplace_back();
    joined.back().insert(joined.back().end(), run.points.begin(), run.points.end());
  }
  return joined;
}

// The mean of the `width` points around each of about kManyPoints points of the run; fewer at its
// ends.
Points moving_mean(const Points& run, size_t width) {
  std::vector<double> sums = {0};
  for (const auto& point : run) sums.push_back(sums.back() + point.second);
  const size_t stride = std::max<size_t>(1, run.size() / kManyPoints);
  Points means;
  for (size_t i = 0; i < run.size(); i += stride) {
    if (i + stride >= run.size()) i = run.size() - 1;
    const size_t begin = i - std::min(i, width / 2);
    const size_t end = std::min(i + width / 2 + 1, run.size());
    means.emplace_back(run[i].first, (sums[end] - sums[begin]) / static_cast<double>(end - begin));
  }
  return means;
}

// The lowest and the highest point of each of at most kFaintBuckets stretches, in order of x.
Points extremes(const Points& run) {
  if (run.size() <= 2 * kFaintBuckets) return run;
  Points kept;
  for (size_t bucket = 0; bucket < kFaintBuckets; ++bucket) {
    const auto begin = run.begin() + static_cast<long>(bucket * run.size() / kFaintBuckets);
    const auto end = run.begin() + static_cast<long>((bucket + 1) * run.size() / kFaintBuckets);
    const auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    kept.push_back(std::min(*low, *high));
    if (low != high) kept.push_back(std::max(*low, *high));
  }
  return kept;
}

std::string path(const Frame& frame, const Points& points, std::string_view style) {
  std::string line;
  for (const auto& [x, y] : points) {
    line += line.empty() ? 'M' : 'L';
    line += frame.at(x, y);
  }
  if (points.size() == 1) line += "h0";  // a line of no length is a dot
  return fmt::format("<path class=\"{}\" d=\"{}\"/>", style, line);
}

// Dots that show their values under the pointer. A line of no length with round ends stays round
// when the drawing is stretched.
std::string dots(const Frame& frame, const Points& points, const Chart& chart) {
  std::string text;
  for (const auto& [x, y] : points) {
    text += fmt::format("<path class=\"dot\" d=\"M{}h0\"><title>{} {}: {}</title></path>",
                        frame.at(x, y), escape_html(chart.x_label), short_number(x, 9),
                        short_number(y));
  }
  return text;
}

struct Drawn {
  std::string lines, legend;
};

// Whether the points scatter around their means visibly, for the eye that sees the chart.
bool is_noisy(const Frame& frame, const Points& run, const Points& means) {
  double sum = 0;
  size_t count = 0;
  auto mean = means.begin();
  for (const auto& [x, y] : run) {
    while (mean != means.end() && mean->first < x) ++mean;
    if (mean == means.end() || mean->first != x) continue;
    sum += std::abs(frame.y.place(y) - frame.y.place(mean->second));
    ++count;
  }
  return sum > kVisible * static_cast<double>(count);
}

Drawn draw_curve(const Frame& frame, const Chart& chart, const Curve& curve, size_t number) {
  const Runs runs = runs_of(curve, chart.y_scale);
  std::string lines, note;
  double last = runs.runs.empty() ? NAN : runs.runs.back().points.back().second;
  for (const Run& run : runs.runs) lines += path(frame, extremes(run.points), "line");
  if (runs.points > kManyPoints) {
    const size_t width = std::max<size_t>(3, runs.points / kMeanShare) | 1;
    bool noisy = false;
    std::string means_lines;
    for (const Points& run : bridged(runs, width)) {
      const Points means = moving_mean(run, width);
      noisy = noisy || is_noisy(frame, run, means);
      means_lines += path(frame, means, "line");
      if (noisy) last = means.back().second;
    }
    if (noisy) {
      lines = fmt::format("<g class=\"faint\">{}</g>{}", lines, means_lines);
      note = fmt::format(" <small>mean of {} points; faint: each point</small>", width);
    }
  } else if (runs.points <= kFewPoints) {
    for (const Run& run : runs.runs) lines += dots(frame, run.points, chart);
  }
  const size_t colour = number % kColours;
  return {fmt::format("<g style=\"--curve:var(--curve-{})\">{}</g>", colour, lines),
          fmt::format("<li style=\"--curve:var(--curve-{})\"><i></i>{} <b>{}</b>{}</li>", colour,
                      escape_html(curve.name), std::isnan(last) ? "" : short_number(last), note)};
}

// Axes over all drawable points; nothing if there are none.
std::optional<Frame> frame_of(const Chart& chart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double left = kInfinity, right = -kInfinity, low = kInfinity, high = -kInfinity;
  bool whole = true;
  for (const Curve& curve : chart.curves) {
    for (const Run& run : runs_of(curve, chart.y_scale).runs) {
      for (const auto& [x, y] : run.points) {
        left = std::min(left, x);
        right = std::max(right, x);
        low = std::min(low, y);
        high = std::max(high, y);
        whole = whole && x == std::floor(x);
      }
    }
  }
  if (left > right) return std::nullopt;
  // Some air above and below, but none below zero for curves that never are.
  if (chart.y_scale == Scale::Linear) {
    const double air = (high - low) * 0.05;
    low = low >= 0 && low - air < 0 ? 0 : low - air;
    high += air;
  } else {
    const double air = std::pow(high / low, 0.05);
    low /= air;
    high *= air;
  }
  return Frame{ChartAxis(left, right, Scale::Linear, 5, whole),
               ChartAxis(low, high, chart.y_scale, 5, false)};
}

std::string grid_lines(const Frame& frame) {
  std::string lines;
  for (const Tick& tick : frame.y.ticks()) {
    lines += fmt::format("<path class=\"grid\" d=\"M0 {:.1f}H{:g}\"/>", (1 - tick.place) * kHeight,
                         kWidth);
  }
  for (const Tick& tick : frame.x.ticks()) {
    lines +=
        fmt::format("<path class=\"grid\" d=\"M{:.1f} 0V{:g}\"/>", tick.place * kWidth, kHeight);
  }
  return lines;
}

std::string tick_labels(const ChartAxis& axis, std::string_view side) {
  std::string labels;
  for (const Tick& tick : axis.ticks()) {
    labels += fmt::format("<span style=\"{}:{:.2f}%\">{}</span>", side, tick.place * 100,
                          escape_html(tick.label));
  }
  return labels;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string render_chart(const Chart& chart) {
  const std::optional<Frame> frame = frame_of(chart);
  if (!frame) {
    return fmt::format(
        "<figure><figcaption>{}</figcaption><p>There is nothing to draw.</p></figure>",
        escape_html(chart.title));
  }
  std::string lines, legend;
  size_t gaps = 0;
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    const Drawn drawn = draw_curve(*frame, chart, chart.curves[i], i);
    lines += drawn.lines;
    legend += drawn.legend;
    gaps += runs_of(chart.curves[i], chart.y_scale).gaps;
  }
  std::string widest;
  for (const Tick& tick : frame->y.ticks()) {
    if (tick.label.size() > widest.size()) widest = tick.label;
  }
  std::string note;
  if (gaps > 0) {
    note = fmt::format("<p class=\"note\">{} {} not drawn.</p>", gaps,
                       chart.y_scale == Scale::Linear
                           ? "values are NaN or infinite, and"
                           : "values are NaN, infinite or not positive, and");
  }
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><ul class=\"legend\">{1}</ul>"
      "<div class=\"plot\"><div class=\"y-name\">{2}</div>"
      "<div class=\"y-ticks\"><i>{3}</i>{4}</div>"
      "<svg viewBox=\"0 0 {5:g} {6:g}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{0}\">{7}{8}</svg>"
      "<div class=\"x-ticks\">{9}</div><div class=\"x-name\">{10}</div></div>{11}</figure>",
      escape_html(chart.title), legend, escape_html(chart.y_label), escape_html(widest),
      tick_labels(frame->y, "bottom"), kWidth, kHeight, grid_lines(*frame), lines,
      tick_labels(frame->x, "left"), escape_html(chart.x_label), note);
}

}  // namespace lamella::io
