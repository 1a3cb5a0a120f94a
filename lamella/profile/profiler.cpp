// Recording pieces, writing files.
#include "lamella/profile/profiler.h"

#include <filesystem>

#include "lamella/base/system/files.h"
#include "lamella/ir/window.h"
#include "lamella/profile/cost_table.h"
#include "lamella/profile/memory_history.h"
#include "lamella/profile/recorder.h"
#include "lamella/profile/time_shares.h"
#include "lamella/profile/timeline.h"

namespace lamella::profile {

namespace {

void write(const std::filesystem::path& folder, const char* name, const std::string& content) {
  atomic_write_file((folder / name).string(), [&](FileWriter& file) { file.write(content); });
}

void write_tables(const std::filesystem::path& folder, std::span<const Recording> recordings) {
  const auto table = [&](CostKey key, const std::string& name) {
    const std::vector<CostRow> rows = cost_table(recordings, key);
    write(folder, (name + ".csv").c_str(), csv(rows, key));
    write(folder, (name + ".txt").c_str(), text(rows, key));
  };
  table(CostKey::Operator, "operators");
  table(CostKey::Layer, "layers");
  table(CostKey::Line, "lines");
}

}  // namespace

Profiler::Profiler(ProfilerOptions options) : options_(std::move(options)) {
  if (options_.schedule) options_.schedule->check();
  if (options_.start_profile) start();
}

Profiler::~Profiler() {
  if (recording_) std::ignore = stop_recording();
}

void Profiler::start() {
  if (started_) return;
  Window::of_thread().flush();
  started_ = true;
  try {
    record_if_scheduled();
  } catch (...) {
    started_ = false;
    throw;
  }
}

void Profiler::stop() {
  started_ = false;
  suspend();
  deliver();
}

void Profiler::step() {
  Window::of_thread().flush();
  const bool ended = started_ && options_.schedule && options_.schedule->ends_cycle(step_);
  ++step_;
  if (ended) {
    suspend();
    deliver();
  }
  const bool goes_on = recording_;
  record_if_scheduled();
  if (goes_on && recording_) record_step(step_);
}

// Starts or stops, whichever the present step asks for.
void Profiler::record_if_scheduled() {
  const bool wanted = started_ && (!options_.schedule || options_.schedule->records(step_));
  if (!wanted) return suspend();
  if (recording_) return;
  start_recording(options_.profile_memory ? Memory::Recorded : Memory::Ignored);
  if (delivered_) recordings_.clear();
  delivered_ = false;
  recording_ = true;
  record_step(step_);
}

void Profiler::suspend() {
  if (!recording_) return;
  Window::of_thread().flush();
  recording_ = false;
  recordings_.push_back(stop_recording());
}

void Profiler::deliver() {
  if (!options_.on_trace_ready || recordings_.empty() || delivered_) return;
  delivered_ = true;
  options_.on_trace_ready(*this);
}

void Profiler::analyse() {
  analyse(options_.output_path);
}

void Profiler::analyse(const std::string& output_path) {
  if (!options_.schedule) started_ = false;
  suspend();
  const std::filesystem::path folder(output_path);
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    fail(ErrorKind::Io, "[Profiler] the folder {} cannot be made: {}", output_path,
         failure.message());
  }
  write(folder, "timeline.json", timeline_json(recordings_));
  write_tables(folder, recordings_);
  write(folder, "summary.txt", text(time_shares(recordings_)));
  if (options_.profile_memory) {
    const MemoryPeak peak = memory_peak(recordings_);
    write(folder, "memory.csv", csv(recordings_));
    write(folder, "memory_peak.csv", csv(peak));
    write(folder, "memory_peak.txt", text(peak));
  }
}

}  // namespace lamella::profile
