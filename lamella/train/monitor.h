// Callbacks that show a run: a progress bar, every step's loss, memory, curves for TensorBoard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamella/base/system/files.h"
#include "lamella/io/event_writer.h"
#include "lamella/io/progress.h"
#include "lamella/train/callback.h"

namespace lamella::train {

// A progress bar for each epoch, on the standard error stream: loss, samples a second, time left.
class LAMELLA_API ProgressMonitor : public Callback {
 public:
  // The loss is read every so many steps.
  explicit ProgressMonitor(int64_t every_steps = 1, io::ProgressBar::Options options = {});
  void on_train_begin(RunContext& context) override;
  void on_train_epoch_begin(RunContext& context) override;
  void on_train_step_end(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;

  // Samples of the steps whose loss was read, and the seconds these took, without evaluation.
  int64_t samples() const { return samples_; }
  double seconds() const { return seconds_; }
  double samples_per_second() const;

 private:
  int64_t every_steps_;
  io::ProgressBar::Options options_;
  std::unique_ptr<io::ProgressBar> bar_;
  int64_t samples_ = 0, epoch_steps_ = 0, timed_steps_ = 0;
  double seconds_ = 0, began_ = 0;
};

// Every step's loss, in the bits of its dtype float32.
class LAMELLA_API LossTrace : public Callback {
 public:
  // With a path, each step is also a line of that file, as soon as it is made: its number and the
  // loss's bits as 8 hexadecimal digits. A resumed run keeps the lines of the steps before it.
  explicit LossTrace(std::string path = {}) : path_(std::move(path)) {}
  // Throws Io if the file cannot be written.
  void on_train_begin(RunContext& context) override;
  void on_train_step_end(RunContext& context) override;

  struct Entry {
    int64_t step;
    float loss;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::string path_;
  std::unique_ptr<FileWriter> file_;
  std::vector<Entry> entries_;
};

// Prints memory in use and its peak every so many steps, in MiB of the pool of host memory.
class LAMELLA_API MemoryMonitor : public Callback {
 public:
  explicit MemoryMonitor(int64_t interval = 1);
  void on_train_step_end(RunContext& context) override;

 private:
  int64_t interval_;
};

// Curves for TensorBoard: "loss/train" and "learning_rate" at steps, the metrics at epochs.
class LAMELLA_API SummaryMonitor : public Callback {
 public:
  explicit SummaryMonitor(const std::string& folder, int64_t every_steps = 10);
  void on_train_step_end(RunContext& context) override;
  void on_train_epoch_end(RunContext& context) override;

  const io::EventWriter& writer() const { return writer_; }

 private:
  io::EventWriter writer_;
  int64_t every_steps_;
};

}  // namespace lamella::train
