// Writing trace events.
#include "lamella/profile/timeline.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "lamella/profile/memory_history.h"
#include "lamella/profile/time_shares.h"

namespace lamella::profile {

namespace {

using nlohmann::json;

// Numbers of the tracks that are no threads', beside those of thread n.
constexpr int kTracksOfThread = 4;
enum class Track : int { Activities, Steps, Phases, Program };

class Timeline {
 public:
  explicit Timeline(int64_t start) : start_(start) { metadata("process_name", 0, "Lamella"); }

  void add(const Recording& recording) {
    for (const ThreadRecord& thread : recording.threads) add(thread, recording);
    for (const MemoryPoint& point : memory_points(recording)) {
      event({{"ph", "C"},
             {"name", "memory"},
             {"pid", 1},
             {"ts", microseconds(point.time - start_)},
             {"args", {{"used", point.used}, {"reserved", point.reserved}}}});
    }
  }

  std::string finish() && { return std::move(text_) + "\n],\"displayTimeUnit\":\"ms\"}\n"; }

 private:
  // Three digits after the point: nanoseconds, so that what nests still nests when it is read.
  static double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

  void event(const json& event) {
    text_ += text_.empty() ? "{\"traceEvents\":[\n" : ",\n";
    text_ += event.dump();
  }

  void metadata(const char* what, int track, const std::string& name) {
    event({{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", track}, {"args", {{"name", name}}}});
  }

  static int track_of(const ThreadRecord& thread, Track track) {
    return thread.id * kTracksOfThread + static_cast<int>(track) + 1;
  }

  void name_track(const ThreadRecord& thread, Track track, const std::string& name) {
    const int number = track_of(thread, track);
    if (!named_.try_emplace(number, name).second) return;
    metadata("thread_name", number, name);
    event({{"ph", "M"},
           {"name", "thread_sort_index"},
           {"pid", 1},
           {"tid", number},
           {"args", {{"sort_index", number}}}});
  }

  void slice(const ThreadRecord& thread, Track track, const std::string& name, const char* category,
             int64_t begin, int64_t end, json args = json::object()) {
    event({{"ph", "X"},
           {"name", name},
           {"cat", category},
           {"pid", 1},
           {"tid", track_of(thread, track)},
           {"ts", microseconds(begin - start_)},
           {"dur", microseconds(end - begin)},
           {"args", std::move(args)}});
  }

  void add(const ThreadRecord& thread, const Recording& recording) {
    const bool loads = std::any_of(thread.spans.begin(), thread.spans.end(), [](const Span& span) {
      return span.launch < 0 && span.activity == Activity::DataLoad;
    });
    name_track(thread, Track::Activities,
               fmt::format("{} (thread {})", loads ? "data loader" : "program", thread.id));
    std::vector<json> kinds;
    for (const LaunchKind& kind : thread.launches) kinds.push_back(arguments_of(kind));
    for (const Span& span : thread.spans) {
      if (span.launch >= 0) {
        const auto kind = static_cast<size_t>(span.launch);
        slice(thread, Track::Activities, name_of(thread.launches[kind]), "kernel", span.begin,
              span.end, kinds[kind]);
      } else if (span.activity == Activity::Step) {
        name_track(thread, Track::Steps, "steps");
        slice(thread, Track::Steps, fmt::format("step {}", span.amount), "step", span.begin,
              span.end);
      } else {
        slice(thread, Track::Activities, name(span.activity), "runtime", span.begin, span.end,
              {{"amount", span.amount}});
      }
    }
    add_phases(thread);
    for (const Interval& interval : program_intervals(thread, recording)) {
      name_track(thread, Track::Program, "the program itself");
      slice(thread, Track::Program, "program", "host", interval.begin, interval.end);
    }
  }

  static json arguments_of(const LaunchKind& kind) {
    json operations = json::array(), layers = json::array();
    double flops = 0;
    for (const OperationShare& operation : kind.operations) {
      std::string line;
      if (operation.line.known()) {
        line = fmt::format("{}:{}", operation.line.file, operation.line.line);
      }
      operations.push_back(
          {{"operator", operation.op->name()},
           {"layer", operation.provenance.layer == nullptr ? "" : operation.provenance.layer},
           {"phase", name(operation.provenance.phase)},
           {"line", line},
           {"share", operation.share}});
      flops += operation.flops;
      const char* layer = operation.provenance.layer;
      if (layer != nullptr && std::find(layers.begin(), layers.end(), layer) == layers.end()) {
        layers.push_back(layer);
      }
    }
    return {
        {"operations", operations}, {"layers", layers}, {"bytes", kind.bytes}, {"flops", flops}};
  }

  // Launches that follow each other in one phase are one slice.
  void add_phases(const ThreadRecord& thread) {
    std::optional<Phase> phase;
    Interval interval;
    const auto close = [&] {
      if (!phase) return;
      name_track(thread, Track::Phases, "phases of training");
      slice(thread, Track::Phases, name(*phase), "phase", interval.begin, interval.end);
      phase.reset();
    };
    for (const Span& span : thread.spans) {
      if (span.launch < 0) {
        if (span.activity == Activity::Flush) close();
        continue;
      }
      const LaunchKind& kind = thread.launches[static_cast<size_t>(span.launch)];
      if (phase && span.begin < interval.end) continue;  // inside a loop
      const Phase now = main_operation(kind).provenance.phase;
      if (phase != now) {
        close();
        phase = now;
        interval.begin = span.begin;
      }
      interval.end = span.end;
    }
    close();
  }

  const int64_t start_;
  std::string text_;
  std::map<int, std::string> named_;
};

}  // namespace

std::string timeline_json(std::span<const Recording> recordings) {
  Timeline timeline(recordings.empty() ? 0 : recordings.front().began);
  for (const Recording& recording : recordings) timeline.add(recording);
  return std::move(timeline).finish();
}

}  // namespace lamella::profile
