// Progress lines for terminals of any width, and how often they are drawn.
#include "lamella/io/progress.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace lamella::io {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ProgressState half_way() {
  return {.label = "epoch 3/10",
          .done = 469,
          .total = 938,
          .loss = 0.213412,
          .speed = 13721.4,
          .seconds = 12.2};
}

TEST(ProgressLine, ShowsLossSpeedAndTimeLeft) {
  EXPECT_EQ(progress_line(half_way(), 91, ProgressStyle::Ascii),
            "epoch 3/10  [##########..........]   50 %  469/938  loss 0.2134  13 721 images/s  "
            "0:12 left");
  EXPECT_EQ(progress_line(half_way(), 0, ProgressStyle::Plain),
            "epoch 3/10   50 %  469/938  loss 0.2134  13 721 images/s  0:12 left");
}

TEST(ProgressLine, ShowsTheTimeTakenAtTheEnd) {
  ProgressState state = half_way();
  state.done = 938;
  state.seconds = 3725;
  EXPECT_THAT(progress_line(state, 120, ProgressStyle::Unicode),
              HasSubstr("▕████████████████████████████████▏  100 %  938/938"));
  EXPECT_THAT(progress_line(state, 120, ProgressStyle::Unicode), HasSubstr("  1:02:05"));
}

TEST(ProgressLine, DrawsEighthsOfACell) {
  ProgressState state{.done = 3, .total = 16, .seconds = 1};
  // Eight cells: one and a half of them are full.
  EXPECT_THAT(progress_line(state, 36, ProgressStyle::Unicode), HasSubstr("▕█▌      ▏"));
}

TEST(ProgressLine, FitsAnyWidth) {
  for (auto style : {ProgressStyle::Ascii, ProgressStyle::Unicode}) {
    for (int width = 0; width < 130; ++width) {
      const std::string line = progress_line(half_way(), width, style);
      const auto shown =
          std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(shown, width);
    }
  }
  EXPECT_THAT(progress_line(half_way(), 50, ProgressStyle::Ascii), StartsWith("epoch 3/10  [#"));
}

TEST(ProgressLine, HandlesUnknownTotalsAndOddNumbers) {
  EXPECT_EQ(progress_line({.label = "warm up", .done = 7, .loss = NAN, .seconds = 61}, 80,
                          ProgressStyle::Ascii),
            "warm up  step 7  loss nan  1:01");
  EXPECT_THAT(progress_line({.done = 9, .total = 3, .seconds = 1}, 80, ProgressStyle::Ascii),
              HasSubstr("100 %  9/3"));
  EXPECT_THAT(progress_line({.done = 0, .total = 3}, 80, ProgressStyle::Ascii),
              HasSubstr("  0 %  0/3  0:00"));
}

// What a bar writes while `run` moves it through time.
template <typename Run>
std::string written(ProgressStyle style, Run run) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  double now = 100;
  {
    ProgressBar bar("epoch 1", 100,
                    {.stream = stream, .style = style, .clock = [&] { return now; }});
    run(bar, now);
  }
  std::fclose(stream);
  const std::string result(text, size);
  std::free(text);
  return result;
}

TEST(ProgressBar, RedrawsTenTimesASecondAtMost) {
  const std::string text = written(ProgressStyle::Ascii, [](ProgressBar& bar, double& now) {
    for (int i = 1; i <= 100; ++i) {
      now += 0.01;
      bar.update(i, i * 64, 1.0 / i);
    }
  });
  const auto drawings = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(drawings, 10);
  EXPECT_LE(drawings, 12);
  EXPECT_THAT(text, HasSubstr("100 %  100/100"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(ProgressBar, WritesFewPlainLines) {
  const std::string quick = written(ProgressStyle::Plain, [](ProgressBar& bar, double& now) {
    for (int i = 1; i <= 100; ++i) {
      now += 0.01;
      bar.update(i, i * 64);
    }
  });
  EXPECT_EQ(quick, "epoch 1  100 %  100/100  6 400 images/s  0:01\n");
  const std::string slow = written(ProgressStyle::Plain, [](ProgressBar& bar, double& now) {
    for (int i = 1; i <= 100; ++i) {
      now += 2;
      bar.update(i, i * 64);
    }
  });
  EXPECT_EQ(std::count(slow.begin(), slow.end(), '\n'), 11);
  EXPECT_EQ(slow.find('\r'), std::string::npos);
}

TEST(ProgressBar, IsPlainWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(progress_style(file), ProgressStyle::Plain);
  std::fclose(file);
}

}  // namespace
}  // namespace lamella::io
