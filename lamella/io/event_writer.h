// Scalars over time for TensorBoard: an event file in a folder that `tensorboard --logdir` reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lamella/base/api.h"
#include "lamella/base/system/files.h"

namespace lamella::io {

// Not for several threads at once. Events are kept in memory until `flush`, the destructor, or
// 64 KiB of them.
class LAMELLA_API EventWriter {
 public:
  // Makes the folder if there is none, and in it a file of its own, so that several runs can write
  // to one folder. Throws Io if that fails.
  explicit EventWriter(const std::string& folder);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  // Writes what is left; a failure is logged.
  ~EventWriter();

  // `value` at `step` of the curve `tag`, such as "loss/train"; now, or at `wall_time` in seconds
  // since 1970.
  void scalar(std::string_view tag, int64_t step, double value);
  void scalar(std::string_view tag, int64_t step, double value, double wall_time);
  // Hands the events so far to the operating system, for a reader that watches the file.
  void flush();

  const std::string& path() const { return path_; }

 private:
  void add(std::string_view event);

  std::string path_;
  FileWriter file_;
  std::string pending_;
};

}  // namespace lamella::io
