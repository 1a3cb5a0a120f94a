#include "lamella/profile/explanation.h"

#include <algorithm>
#include <memory>

#include <fmt/ranges.h>

#include "lamella/base/error.h"
#include "lamella/ir/window.h"

namespace lamella::profile {

namespace {

using Clock = std::chrono::steady_clock;

// A launch that runs on this thread.
struct Running {
  std::pair<const LaunchPart*, size_t> key;
  bool concerns;
  Clock::time_point start;
  double inside = 0;                        // seconds of launches inside
  std::unique_ptr<RemarkListener> remarks;  // at the first run
  std::unique_ptr<RemarkPause> silence;     // at later ones, which may be inside a first run
};

thread_local std::vector<Running> running;

bool lies_in(std::string_view layer, std::string_view outer) {
  return outer.empty() || layer == outer ||
         (layer.starts_with(outer) && layer.size() > outer.size() && layer[outer.size()] == '.');
}

std::string layer_of(const Node& node) {
  const char* layer = node.provenance().layer;
  return layer == nullptr ? "" : layer;
}

void add_once(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

bool do_the_same(const ExplainedLaunch& a, const ExplainedLaunch& b) {
  return a.layers == b.layers && a.operations == b.operations && a.phase == b.phase &&
         a.remarks == b.remarks && a.flops == b.flops && a.bytes == b.bytes;
}

void add(ExplainedLaunch& sum, const ExplainedLaunch& launch) {
  sum.runs += launch.runs;
  sum.first_runs += launch.first_runs;
  sum.first_seconds += launch.first_seconds;
  sum.later_seconds += launch.later_seconds;
}

// "12.3 M"
std::string scaled(double number) {
  static constexpr std::array kPrefixes = {"", " k", " M", " G", " T"};
  size_t prefix = 0;
  while (number >= 1000 && prefix + 1 < kPrefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}", number, prefix == 0 ? " " : kPrefixes[prefix]);
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (const char c : text) {
    result += c;
    if (c == '\n') result += "    ";
  }
  while (!result.empty() && (result.back() == ' ' || result.back() == '\n')) result.pop_back();
  return result + "\n";
}

std::string how_well(const ExplainedLaunch& launch, const PeakRates& peak) {
  const double seconds = launch.mean_seconds();
  const double intensity = launch.bytes > 0 ? launch.flops / launch.bytes : 0;
  const bool by_memory = launch.flops * peak.bytes < launch.bytes * peak.flops;
  std::string text = fmt::format("  {}FLOP, {}B: {:.3g} FLOP a byte\n", scaled(launch.flops),
                                 scaled(launch.bytes), intensity);
  const double rate = (by_memory ? launch.bytes : launch.flops) / seconds;
  const double most = by_memory ? peak.bytes : peak.flops;
  const char* unit = by_memory ? "B/s" : "FLOP/s";
  text +=
      fmt::format("  {}{}: {:.0f} % of the {} peak of {}{}\n", scaled(rate), unit,
                  100 * rate / most, by_memory ? "memory's" : "arithmetic's", scaled(most), unit);
  return text;
}

}  // namespace

Explainer::~Explainer() {
  if (listening_) set_launch_listener(nullptr);
}

void Explainer::start() {
  if (listening_) return;
  if (launch_listener() != nullptr) {
    fail(ErrorKind::Value, "[explain] a profiler or another explanation is running");
  }
  Window::of_thread().flush();  // work is found where it was asked for
  set_launch_listener(this);
  listening_ = true;
}

void Explainer::stop() {
  if (!listening_) return;
  listening_ = false;
  try {
    Window::of_thread().flush();
  } catch (...) {
    set_launch_listener(nullptr);
    throw;
  }
  set_launch_listener(nullptr);
}

bool Explainer::concerns(const LaunchEvent& event) const {
  return layer_.empty() ||
         std::any_of(event.parts.begin(), event.parts.end(), [&](const LaunchPart& part) {
           return lies_in(layer_of(event.operation(part)), layer_);
         });
}

void Explainer::begin(const LaunchEvent& event) noexcept {
  Running launch{.key = {event.parts.data(), event.parts.size()},
                 .concerns = concerns(event),
                 .start = {},
                 .remarks = {},
                 .silence = {}};
  if (launch.concerns) {
    const std::lock_guard lock(mutex_);
    const auto [entry, fresh] = launches_.try_emplace(launch.key);
    if (fresh) {
      ExplainedLaunch& explained = entry->second;
      for (const LaunchPart& part : event.parts) {
        const Node& operation = event.operation(part);
        add_once(explained.layers, layer_of(operation));
        add_once(explained.operations, std::string(operation.op().name()));
        explained.phase = operation.provenance().phase;
        explained.flops += part.flops;
      }
      explained.bytes = static_cast<double>(event.bytes);
      launch.remarks = std::make_unique<RemarkListener>();
    }
  }
  if (!launch.remarks) launch.silence = std::make_unique<RemarkPause>();
  running.push_back(std::move(launch));
  running.back().start = Clock::now();
}

void Explainer::end() noexcept {
  const auto now = Clock::now();
  if (running.empty()) return;  // begun before it listened
  Running launch = std::move(running.back());
  running.pop_back();
  const double seconds = std::chrono::duration<double>(now - launch.start).count();
  if (!running.empty()) running.back().inside += seconds;
  if (!launch.concerns) return;
  const std::lock_guard lock(mutex_);
  ExplainedLaunch& explained = launches_[launch.key];
  if (launch.remarks) {
    explained.remarks = launch.remarks->remarks();
  }
  double& sum = explained.runs == 0 ? explained.first_seconds : explained.later_seconds;
  sum += seconds - launch.inside;
  ++explained.runs;
  explained.first_runs = 1;
}

std::vector<ExplainedLaunch> Explainer::launches() const {
  std::vector<ExplainedLaunch> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, launch] : launches_) {
      if (launch.runs == 0) continue;
      const auto equal = std::find_if(all.begin(), all.end(), [&](const ExplainedLaunch& other) {
        return do_the_same(launch, other);
      });
      if (equal == all.end()) {
        all.push_back(launch);
      } else {
        add(*equal, launch);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ExplainedLaunch& a, const ExplainedLaunch& b) {
    return a.total_seconds() > b.total_seconds();
  });
  return all;
}

std::string explanation(const std::vector<ExplainedLaunch>& launches, const PeakRates& peak,
                        size_t count) {
  if (launches.empty()) return "Nothing ran.\n";
  std::string text;
  for (size_t i = 0; i < std::min(count, launches.size()); ++i) {
    const ExplainedLaunch& launch = launches[i];
    std::vector<std::string> layers = launch.layers;
    std::erase(layers, "");
    text += fmt::format("{}{}{}: {}\n", fmt::join(layers, ", "), layers.empty() ? "" : ", ",
                        name(launch.phase), fmt::join(launch.operations, ", "));
    const char* each = launch.runs == 1 ? "run, {:.3g} ms\n" : "runs, {:.3g} ms each\n";
    text += fmt::format("  {} ", launch.runs) +
            fmt::format(fmt::runtime(each), 1e3 * launch.mean_seconds());
    text += how_well(launch, peak);
    for (const std::string& remark : launch.remarks) text += indented(remark);
    text += "\n";
  }
  if (launches.size() > count)
    text += fmt::format("... and {} launches that took less time\n", launches.size() - count);
  return text;
}

}  // namespace lamella::profile
