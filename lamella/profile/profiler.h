// Profiler: records a piece of a program and writes where its time and memory went.
//
//   profile::Profiler profiler({.output_path = "profile"});
//   train();
//   profiler.analyse();
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamella/base/object.h"
#include "lamella/profile/recording.h"
#include "lamella/profile/schedule.h"

namespace lamella::profile {

class Profiler;

struct ProfilerOptions {
  std::string output_path = "./data";
  bool profile_memory = false;  // whether allocations are recorded
  bool start_profile = true;    // whether recording starts at once
  // Which steps are recorded: `step` says that one ends. Without it, all from start to stop.
  std::optional<Schedule> schedule = {};
  // Receives what was recorded: each cycle of the schedule before the next step begins, and at the
  // stop what it has not received yet. What it has received is forgotten when recording goes on.
  std::function<void(Profiler&)> on_trace_ready = {};
};

// One profiler records at a time. Starting, stopping and steps run what is pending first, so that
// work is found in the piece of the program that asked for it.
class LAMELLA_API Profiler : public Object {
 public:
  // Throws Value if recording is to start and another profiler records.
  explicit Profiler(ProfilerOptions options = {});
  // Stops; nothing is written.
  ~Profiler() override;

  // Records from now on, beside what was recorded before and on_trace_ready has not received.
  // Nothing if it records already.
  void start();
  // Hands the rest to on_trace_ready. Nothing if it does not record.
  void stop();
  // A step of the program ends and the next begins.
  void step();
  bool recording() const { return recording_; }
  // From start to stop or, without a schedule, analyse.
  bool started() const { return started_; }

  // Stops (under a schedule, only until the next step), and writes what was recorded into the
  // folder output_path, which is made if it is missing:
  //   timeline.json               for ui.perfetto.dev and chrome://tracing
  //   operators, layers, lines    .csv and .txt: time by operator, layer and source line
  //   summary.txt                 shares of kernels, compilation, data, program
  //   memory.csv, memory_peak     over time, and who held it at the peak, with profile_memory
  // Throws Io if a file cannot be written.
  void analyse();
  // The same into another folder.
  void analyse(const std::string& output_path);
  const std::vector<Recording>& recordings() const { return recordings_; }
  const ProfilerOptions& options() const { return options_; }

 private:
  void record_if_scheduled();
  void suspend();
  void deliver();

  const ProfilerOptions options_;
  bool started_ = false;    // by the user
  bool recording_ = false;  // now
  int64_t step_ = 0;
  std::vector<Recording> recordings_;
  bool delivered_ = false;  // all of them, to on_trace_ready
};

}  // namespace lamella::profile
