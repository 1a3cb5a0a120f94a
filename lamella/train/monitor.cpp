// Progress, traces and curves.
#include "lamella/train/monitor.h"

#include <bit>
#include <fstream>
#include <sstream>

#include "lamella/base/system/files.h"
#include "lamella/device/pool.h"
#include "lamella/ir/window.h"

namespace lamella::train {

namespace {

void require_interval(std::string_view callback, int64_t every_steps) {
  if (every_steps < 1) {
    fail(ErrorKind::Value, "[{}] every_steps must be at least 1, got {}", callback, every_steps);
  }
}

}  // namespace

ProgressMonitor::ProgressMonitor(int64_t every_steps, io::ProgressBar::Options options)
    : every_steps_(every_steps), options_(std::move(options)) {
  require_interval("ProgressMonitor", every_steps);
}

void ProgressMonitor::on_train_begin(RunContext&) {
  samples_ = 0;
  seconds_ = 0;
}

void ProgressMonitor::on_train_epoch_begin(RunContext& context) {
  const CallbackParams& params = context.original_args();
  const std::string label = fmt::format("epoch {}/{}", params.cur_epoch_num, params.epoch_num);
  bar_ = std::make_unique<io::ProgressBar>(label, params.batch_num, options_);
  epoch_steps_ = timed_steps_ = 0;
  began_ = settled_seconds();
}

void ProgressMonitor::on_train_step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  ++epoch_steps_;
  const bool last = epoch_steps_ == params.batch_num;
  if (epoch_steps_ % every_steps_ != 0 && epoch_steps_ != 1 && !last) return;
  const double loss = loss_of(params);
  const double now = settled_seconds();
  const int64_t batch = params.train_dataset ? params.train_dataset->batch_size() : 1;
  samples_ += (epoch_steps_ - timed_steps_) * batch;
  seconds_ += now - began_;
  timed_steps_ = epoch_steps_;
  began_ = now;
  bar_->update(epoch_steps_, epoch_steps_ * batch, loss);
}

void ProgressMonitor::on_train_epoch_end(RunContext&) {
  bar_->finish();
  bar_.reset();
}

double ProgressMonitor::samples_per_second() const {
  return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0;
}

namespace {

std::string line_of(const LossTrace::Entry& entry) {
  return fmt::format("{} {:08x}\n", entry.step, std::bit_cast<uint32_t>(entry.loss));
}

// The whole lines of steps up to `last`; a line that was cut short ends the file.
std::vector<LossTrace::Entry> read_trace(const std::string& path, int64_t last) {
  std::vector<LossTrace::Entry> entries;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    std::istringstream fields(line);
    int64_t step = 0;
    uint32_t bits = 0;
    if (!(fields >> step >> std::hex >> bits) || step > last) break;
    entries.push_back({step, std::bit_cast<float>(bits)});
  }
  return entries;
}

}  // namespace

void LossTrace::on_train_begin(RunContext& context) {
  const CallbackParams& params = context.original_args();
  entries_.clear();
  if (path_.empty()) return;
  if (params.resumed) entries_ = read_trace(path_, params.cur_step_num);
  atomic_write_file(path_, [&](FileWriter& file) {
    std::string lines;
    for (const Entry& entry : entries_) lines += line_of(entry);
    file.write(lines);
  });
  file_ = std::make_unique<FileWriter>(path_, FileWriter::Start::End);
}

void LossTrace::on_train_step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  entries_.push_back({params.cur_step_num, static_cast<float>(loss_of(params))});
  if (file_) file_->write(line_of(entries_.back()));
}

MemoryMonitor::MemoryMonitor(int64_t interval) : interval_(interval) {
  if (interval < 1) {
    fail(ErrorKind::Value, "[MemoryMonitor] interval must be at least 1, got {}", interval);
  }
}

void MemoryMonitor::on_train_step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  if (params.cur_step_num % interval_ != 0) return;
  Window::of_thread().flush();
  const MemoryStatistics memory = cpu_pool().statistics();
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fmt::print(
      "epoch: {} step: {}, memory used: {:.1f} MiB, peak: {:.1f} MiB, reserved: {:.1f} MiB\n",
      params.cur_epoch_num, params.step_in_epoch(), mebibytes(memory.used),
      mebibytes(memory.peak_used), mebibytes(memory.reserved));
  std::fflush(stdout);
}

SummaryMonitor::SummaryMonitor(const std::string& folder, int64_t every_steps)
    : writer_(folder), every_steps_(every_steps) {
  require_interval("SummaryMonitor", every_steps);
}

void SummaryMonitor::on_train_step_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  if (params.cur_step_num % every_steps_ != 0) return;
  writer_.scalar("loss/train", params.cur_step_num, loss_of(params));
  if (params.optimizer) {
    writer_.scalar("learning_rate", params.cur_step_num, params.optimizer->learning_rate());
  }
}

void SummaryMonitor::on_train_epoch_end(RunContext& context) {
  const CallbackParams& params = context.original_args();
  for (const auto& [name, value] : params.metrics) {
    writer_.scalar(name + "/test", params.cur_step_num, value);
  }
  writer_.flush();
}

}  // namespace lamella::train
