// Drawing progress.
#include "lamella/io/progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "lamella/base/env.h"
#include "lamella/base/system/process.h"

namespace lamella::io {

namespace {

constexpr double kSecondsBetweenDrawings = 0.1, kSecondsBetweenLines = 10;
constexpr int kLongestBar = 32, kShortestBar = 8;
// The bar's length is a multiple of this, so that it does not jump with the digits beside it.
constexpr int kBarUnit = 4;

std::string clock_time(double seconds) {
  // More than a hundred days is no estimate.
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 8640000.0));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

// "12 345", "96.4", "0.52"
std::string speed_text(double speed) {
  if (speed < 10) return fmt::format("{:.2f}", speed);
  if (speed < 100) return fmt::format("{:.1f}", speed);
  const std::string digits = fmt::format("{:.0f}", std::min(speed, 1e15));
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ' ';
    grouped += digits[i];
  }
  return grouped;
}

std::string bar(double part, int cells, ProgressStyle style) {
  const int eighths = static_cast<int>(part * cells * 8);
  if (style == ProgressStyle::Ascii) {
    std::string text(static_cast<size_t>(cells), '.');
    std::fill_n(text.begin(), eighths / 8, '#');
    return fmt::format("[{}]", text);
  }
  constexpr const char* kPartial[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string text = "▕";
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  int used = eighths / 8;
  if (eighths % 8 != 0) {
    text += kPartial[eighths % 8];
    ++used;
  }
  text.append(static_cast<size_t>(cells - used), ' ');
  return text + "▏";
}

// Characters of UTF-8 text: bytes that do not continue one.
int characters(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressStyle progress_style(std::FILE* stream) {
  if (!is_terminal(stream) || environment("TERM").value_or("") == "dumb") {
    return ProgressStyle::Plain;
  }
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto locale = environment(name);
    if (!locale) continue;
    const bool utf8 =
        locale->find("UTF-8") != std::string::npos || locale->find("utf8") != std::string::npos;
    return utf8 ? ProgressStyle::Unicode : ProgressStyle::Ascii;
  }
  return ProgressStyle::Ascii;
}

std::string progress_line(const ProgressState& state, int width, ProgressStyle style) {
  const bool bounded = state.total > 0;
  const double part =
      bounded
          ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0)
          : 0.0;
  const bool ended = bounded && state.done >= state.total;
  std::vector<std::string> parts;
  if (bounded) {
    parts.push_back(fmt::format("{:3.0f} %", std::floor(part * 100)));
    parts.push_back(fmt::format("{}/{}", state.done, state.total));
  } else {
    parts.push_back(fmt::format("step {}", state.done));
  }
  if (state.loss) parts.push_back(fmt::format("loss {:.4g}", *state.loss));
  if (state.speed) parts.push_back(fmt::format("{} {}/s", speed_text(*state.speed), state.unit));
  if (bounded && !ended && state.done > 0) {
    const double left = state.seconds * (1 / part - 1);
    parts.push_back(fmt::format("{} left", clock_time(left)));
  } else {
    parts.push_back(clock_time(state.seconds));
  }
  if (!state.label.empty()) parts.insert(parts.begin(), state.label);
  const auto line = [&] { return fmt::format("{}", fmt::join(parts, "  ")); };
  if (style == ProgressStyle::Plain) return line();
  // Two spaces and two frame characters go with a bar.
  const auto room = [&] { return width - characters(line()) - 4; };
  const auto least = bounded ? kShortestBar : -4;
  while (parts.size() > 2 && room() < least) parts.pop_back();
  if (bounded && room() >= kShortestBar) {
    const auto place = parts.begin() + (state.label.empty() ? 0 : 1);
    parts.insert(place, bar(part, std::min(room() / kBarUnit * kBarUnit, kLongestBar), style));
  }
  // Whatever is still too long is mostly a label.
  std::string result = line();
  while (characters(result) > std::max(width, 0)) result.pop_back();
  return result;
}

ProgressBar::ProgressBar(std::string label, int64_t total_steps, Options options)
    : options_(std::move(options)),
      style_(options_.style.value_or(progress_style(options_.stream))) {
  if (!options_.clock) options_.clock = steady_seconds;
  state_.label = std::move(label);
  state_.total = total_steps;
  state_.unit = options_.unit;
  started_ = options_.clock();
  drawn_at_ = style_ == ProgressStyle::Plain ? started_ : -std::numeric_limits<double>::infinity();
}

ProgressBar::~ProgressBar() {
  finish();
}

void ProgressBar::update(int64_t done, int64_t samples, std::optional<double> loss) {
  if (finished_) return;
  const double now = options_.clock();
  state_.done = done;
  state_.loss = loss;
  state_.seconds = now - started_;
  if (state_.seconds > 0) state_.speed = static_cast<double>(samples) / state_.seconds;
  if (style_ == ProgressStyle::Plain) {
    const int64_t tenth = state_.total > 0 ? done * 10 / state_.total : 0;
    const bool further = state_.total <= 0 || tenth > drawn_tenth_;
    if (!further || now - drawn_at_ < kSecondsBetweenLines) return;
    drawn_tenth_ = tenth;
  } else if (now - drawn_at_ < kSecondsBetweenDrawings) {
    return;
  }
  drawn_at_ = now;
  draw();
}

void ProgressBar::finish() {
  if (finished_) return;
  finished_ = true;
  draw();
  if (style_ != ProgressStyle::Plain) std::fputc('\n', options_.stream);
  std::fflush(options_.stream);
}

void ProgressBar::draw() {
  if (style_ == ProgressStyle::Plain) {
    fmt::print(options_.stream, "{}\n", progress_line(state_, 0, style_));
  } else {
    // One column less, because terminals wrap at the last; then clear what was longer before.
    const int width = terminal_width(options_.stream) - 1;
    fmt::print(options_.stream, "\r{}\x1b[K", progress_line(state_, width, style_));
  }
  std::fflush(options_.stream);
}

}  // namespace lamella::io
