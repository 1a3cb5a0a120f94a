// Adding up what a thread did.
#include "lamella/profile/time_shares.h"

#include <algorithm>
#include <array>

namespace lamella::profile {

namespace {

bool is(const Span& span, Activity activity) {
  return span.launch < 0 && span.activity == activity;
}

// The time of spans that `counts` picks, without those inside another that it picks.
template <typename Counts>
int64_t time_of(const ThreadRecord& thread, Counts counts) {
  int64_t sum = 0, until = 0;
  for (const Span& span : thread.spans) {
    if (span.begin < until || !counts(span)) continue;
    sum += span.duration();
    until = span.end;
  }
  return sum;
}

int64_t window_time(const ThreadRecord& thread) {
  return time_of(thread, [](const Span& span) { return is(span, Activity::Flush); });
}

void add(TimeShares& shares, const ThreadRecord& thread, const Recording& recording) {
  const auto seconds = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; };
  const double windows = seconds(window_time(thread));
  const double kernels = seconds(time_of(thread, [](const Span& s) { return s.launch >= 0; }));
  const double compiling =
      seconds(time_of(thread, [](const Span& span) { return is(span, Activity::GraphCompile); }));
  const double data =
      seconds(time_of(thread, [](const Span& span) { return is(span, Activity::DataWait); }));
  const double whole = seconds(recording.ended - recording.began);
  shares.whole += whole;
  shares.kernels += kernels;
  shares.compiling += compiling;
  shares.runtime += windows - kernels - compiling;
  shares.data += data;
  shares.program += whole - windows - data;
}

}  // namespace

std::vector<Interval> program_intervals(const ThreadRecord& thread, const Recording& recording) {
  if (window_time(thread) == 0) return {};
  std::vector<Interval> intervals;
  int64_t from = recording.began;
  for (const Span& span : thread.spans) {
    if (!is(span, Activity::Flush) && !is(span, Activity::DataWait)) continue;
    if (span.begin > from) intervals.push_back({from, span.begin});
    from = std::max(from, span.end);
  }
  if (recording.ended > from) intervals.push_back({from, recording.ended});
  return intervals;
}

TimeShares time_shares(std::span<const Recording> recordings) {
  TimeShares shares;
  for (const Recording& recording : recordings) {
    const auto busiest = std::max_element(
        recording.threads.begin(), recording.threads.end(),
        [](const auto& a, const auto& b) { return window_time(a) < window_time(b); });
    if (busiest != recording.threads.end()) add(shares, *busiest, recording);
  }
  return shares;
}

std::string text(const TimeShares& shares) {
  if (shares.whole == 0) return "Nothing was recorded.\n";
  struct Row {
    const char* name;
    double seconds;
    const char* verdict;
  };
  const std::array<Row, 5> rows = {{
      {"kernels", shares.kernels, "kernels: the machine computes most of the time"},
      {"compilation", shares.compiling,
       "compilation: graphs or sizes keep changing, or the run is short"},
      {"runtime", shares.runtime, "the runtime around kernels: windows are many and small"},
      {"waiting for data", shares.data,
       "waiting for data: the pipeline is slower than the network"},
      {"the program itself", shares.program, "the program itself: Python between the windows"},
  }};
  std::string lines = fmt::format("Recorded {:.3f} ms, of which\n", shares.whole * 1e3);
  for (const Row& row : rows) {
    lines += fmt::format("  {:<20} {:>12.3f} ms {:>6.1f}%\n", row.name, row.seconds * 1e3,
                         shares.whole > 0 ? row.seconds / shares.whole * 100 : 0);
  }
  const auto largest = std::max_element(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.seconds < b.seconds; });
  return lines + fmt::format("Most time goes to {}.\n", largest->verdict);
}

}  // namespace lamella::profile
