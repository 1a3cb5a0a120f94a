// The progress of an epoch on the terminal: one line that is drawn anew, with loss, speed and the
// time left; on anything else than a terminal, a plain line now and then.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "lamella/base/api.h"

namespace lamella::io {

enum class ProgressStyle : uint8_t {
  Unicode,  // redrawn in place, with block characters
  Ascii,    // redrawn in place
  Plain,    // lines
};

// Plain unless `stream` is a terminal; Unicode if the environment's locale is UTF-8.
LAMELLA_API ProgressStyle progress_style(std::FILE* stream);

struct ProgressState {
  std::string label;                 // "epoch 3/10"
  int64_t done = 0, total = 0;       // steps; total 0: not known
  std::optional<double> loss = {};   // of the last step, or a mean
  std::optional<double> speed = {};  // samples a second
  std::string unit = "images";
  double seconds = 0;  // since the beginning
};

// The state as one line of at most `width` characters (no limit for Plain). Where room is short,
// the bar gets shorter, then parts are left out from the end.
LAMELLA_API std::string progress_line(const ProgressState& state, int width, ProgressStyle style);

class LAMELLA_API ProgressBar {
 public:
  struct Options {
    std::FILE* stream = stderr;
    std::string unit = "images";
    std::optional<ProgressStyle> style = {};  // that of the stream if not given
    std::function<double()> clock = {};       // seconds; the steady clock if not given
  };

  ProgressBar(std::string label, int64_t total_steps)
      : ProgressBar(std::move(label), total_steps, Options()) {}
  ProgressBar(std::string label, int64_t total_steps, Options options);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  // `done` steps so far, which took `samples` samples; draws ten times a second at most. Plain
  // lines come with a tenth of the way gone and ten seconds passed, both.
  void update(int64_t done, int64_t samples, std::optional<double> loss = {});
  // The last state, for good; later calls do nothing. The destructor calls it.
  void finish();

 private:
  void draw();

  Options options_;
  ProgressStyle style_;
  ProgressState state_;
  double started_, drawn_at_;
  int64_t drawn_tenth_ = 0;
  bool finished_ = false;
};

}  // namespace lamella::io
