#include "lamella/profile/explanation.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/ranges.h>

#include "lamella/base/error.h"
#include "lamella/base/remark.h"
#include "lamella/ir/window.h"
#include "lamella/runtime/launch_listener.h"

namespace lamella::profile {

// A launch of one graph at given sizes, for certain layers; the address of the parts stands for
// graph and sizes.
struct Explainer::State {
  explicit State(std::string of) : layer(std::move(of)) {}

  const std::string layer;
  std::mutex mutex;
  std::map<std::string, ExplainedLaunch> launches;
};

namespace {

using Clock = std::chrono::steady_clock;
using State = Explainer::State;

// A launch that runs on this thread.
struct Running {
  std::shared_ptr<State> state;    // null: nobody asked for it
  ExplainedLaunch* sum = nullptr;  // null: it is of another layer
  Clock::time_point start = {};
  double inside = 0;                      // seconds of launches inside
  std::optional<RemarkListener> remarks;  // at the entry's first run
  std::optional<RemarkPause> silence;     // at others, which may be inside a first run
};

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
  return a.layers == b.layers && a.operations == b.operations && a.phases == b.phases &&
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

bool concerns(const State& state, const LaunchEvent& event) {
  return state.layer.empty() ||
         std::any_of(event.parts.begin(), event.parts.end(), [&](const LaunchPart& part) {
           return lies_in(layer_of(event.operation(part)), state.layer);
         });
}

ExplainedLaunch described(const LaunchEvent& event) {
  ExplainedLaunch launch;
  for (const LaunchPart& part : event.parts) {
    const Node& operation = event.operation(part);
    add_once(launch.layers, layer_of(operation));
    add_once(launch.operations, std::string(operation.op().name()));
    add_once(launch.phases, name(operation.provenance().phase));
    launch.flops += part.flops;
  }
  launch.bytes = static_cast<double>(event.bytes);
  return launch;
}

// The listener lives as long as the process; what it hears goes to the explainer of the moment.
class Ear final : public LaunchListener {
 public:
  static Ear& instance() {
    static Ear& ear = *new Ear;
    return ear;
  }

  void listen_for(std::shared_ptr<State> state) {
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
  }

  void begin(const LaunchEvent& event) noexcept override {
    std::deque<Running>& all = running();
    Running& launch = all.emplace_back();
    {
      const std::lock_guard lock(mutex_);
      launch.state = state_;
    }
    if (launch.state && concerns(*launch.state, event)) {
      ExplainedLaunch told = described(event);
      const std::string key = fmt::format(
          "{} {} {} {} {} {}", fmt::ptr(event.parts.data()), fmt::join(told.layers, ","),
          fmt::join(told.operations, ","), fmt::join(told.phases, ","), told.flops, told.bytes);
      const std::lock_guard lock(launch.state->mutex);
      const auto [entry, fresh] = launch.state->launches.try_emplace(key, std::move(told));
      launch.sum = &entry->second;
      if (fresh) launch.remarks.emplace();
    }
    if (!launch.remarks) launch.silence.emplace();
    launch.start = Clock::now();
  }

  void end() noexcept override {
    const auto now = Clock::now();
    std::deque<Running>& all = running();
    if (all.empty()) return;  // begun before it listened
    Running& launch = all.back();
    const double seconds = std::chrono::duration<double>(now - launch.start).count();
    if (launch.sum != nullptr) count(launch, seconds);
    all.pop_back();
    if (!all.empty()) all.back().inside += seconds;
  }

  void arena(const Allocation&, FunctionRef<std::vector<ArenaShare>()>) noexcept override {}

 private:
  // Launches of this thread, each inside the one before.
  static std::deque<Running>& running() {
    thread_local std::deque<Running> all;
    return all;
  }

  static void count(const Running& launch, double seconds) {
    const std::lock_guard lock(launch.state->mutex);
    ExplainedLaunch& sum = *launch.sum;
    const bool first = sum.runs++ == 0;
    if (launch.remarks) sum.remarks = launch.remarks->remarks();
    (first ? sum.first_seconds : sum.later_seconds) += seconds - launch.inside;
    sum.first_runs = 1;
  }

  std::mutex mutex_;
  std::shared_ptr<State> state_;
};

}  // namespace

Explainer::Explainer(std::string layer) : state_(std::make_shared<State>(std::move(layer))) {}

Explainer::~Explainer() {
  if (!listening_) return;
  set_launch_listener(nullptr);
  Ear::instance().listen_for(nullptr);
}

void Explainer::start() {
  if (launch_listener() != nullptr) {
    fail(ErrorKind::Value, "[explain] a profiler or another explanation is running");
  }
  Window::of_thread().flush();  // work is found where it was asked for
  Ear::instance().listen_for(state_);
  set_launch_listener(&Ear::instance());
  listening_ = true;
}

void Explainer::stop() {
  if (!listening_) return;
  listening_ = false;
  const struct Silence {
    ~Silence() {
      set_launch_listener(nullptr);
      Ear::instance().listen_for(nullptr);
    }
  } at_the_end;
  Window::of_thread().flush();
}

std::vector<ExplainedLaunch> Explainer::launches() const {
  std::vector<ExplainedLaunch> all;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [key, launch] : state_->launches) {
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
                        fmt::join(launch.phases, " and "), fmt::join(launch.operations, ", "));
    const bool once = launch.runs == 1;
    text += fmt::format("  {} {}, {:.3g} ms{}\n", launch.runs, once ? "run" : "runs",
                        1e3 * launch.mean_seconds(), once ? "" : " each");
    text += how_well(launch, peak);
    for (const std::string& remark : launch.remarks) text += indented(remark);
    text += "\n";
  }
  if (launches.size() > count)
    text += fmt::format("... and {} launches that took less time\n", launches.size() - count);
  return text;
}

}  // namespace lamella::profile
