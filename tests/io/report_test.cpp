// Reports: what the page says and draws. Numbers are read back out of the page.
#include "lamella/io/report.h"

#include <cmath>
#include <numeric>

#include "tests/files.h"

#include "lamella/io/chart_axis.h"

namespace lamella::io {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> labels(const ChartAxis& axis) {
  std::vector<std::string> texts;
  for (const Tick& tick : axis.ticks()) texts.push_back(tick.label);
  return texts;
}

TEST(ChartAxis, TicksAreRound) {
  const auto linear = [](double low, double high, bool whole = false) {
    return labels(ChartAxis(low, high, Scale::Linear, 5, whole));
  };
  EXPECT_THAT(linear(0, 2.3), ElementsAre("0", "0.5", "1.0", "1.5", "2.0"));
  EXPECT_THAT(linear(0.71, 0.93), ElementsAre("0.75", "0.80", "0.85", "0.90"));
  EXPECT_THAT(linear(1, 3, true), ElementsAre("1", "2", "3"));
  EXPECT_THAT(linear(0, 93800), ElementsAre("0", "20k", "40k", "60k", "80k"));
  EXPECT_THAT(linear(-1, 1), ElementsAre("-1.0", "-0.5", "0", "0.5", "1.0"));
  EXPECT_THAT(linear(5, 5), Not(ElementsAre()));
  const auto logarithmic = [](double low, double high) {
    return labels(ChartAxis(low, high, Scale::Logarithmic, 5, false));
  };
  EXPECT_THAT(logarithmic(0.9, 110), ElementsAre("1", "2", "5", "10", "20", "50", "100"));
  EXPECT_THAT(logarithmic(1e-6, 1e-3), ElementsAre("1e-06", "1e-05", "0.0001", "0.001"));
}

TEST(ChartAxis, TicksLieWhereTheirValuesDo) {
  const ChartAxis axis(0, 2.5, Scale::Linear, 5, false);
  EXPECT_DOUBLE_EQ(axis.ticks().at(2).place, 0.4);
  const ChartAxis logarithmic(1, 100, Scale::Logarithmic, 5, false);
  EXPECT_DOUBLE_EQ(logarithmic.place(10), 0.5);
}

Curve line(std::vector<double> y) {
  Curve curve{"curve", {}, std::move(y)};
  curve.x.resize(curve.y.size());
  std::iota(curve.x.begin(), curve.x.end(), 1.0);
  return curve;
}

std::string page_of(Curve curve, Scale scale = Scale::Linear) {
  return render_report({.title = "run", .charts = {{"title", "epoch", "loss", {curve}, scale}}});
}

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++times;
  return times;
}

TEST(Report, HasItsFiguresAndFacts) {
  const std::string page = render_report({.title = "LeNet <1> & \"two\"",
                                          .summary = "Ten epochs.",
                                          .highlights = {{"test accuracy", "90.3 %"}},
                                          .facts = {{"seed", "42"}}});
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>LeNet &lt;1&gt; &amp; &quot;two&quot;</h1>"),
                          HasSubstr("Ten epochs."), HasSubstr("<dd>90.3 %</dd>"),
                          HasSubstr("<dt>seed</dt><dd>42</dd>")));
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("<script")), Not(HasSubstr("http")), Not(HasSubstr("url("))));
}

TEST(Report, DrawsPointsWhereTheyBelong) {
  const std::string page = page_of(line({0, 1, 0.5}));
  // The axis runs from 0 to 1.05, x from 1 to 3.
  EXPECT_THAT(page, HasSubstr("d=\"M0.0 1000.0L500.0 47.6L1000.0 523.8\""));
  EXPECT_THAT(page, HasSubstr("<title>epoch 2: 1</title>"));
  EXPECT_THAT(page, HasSubstr("curve <b>0.5</b>"));
}

TEST(Report, LeavesGapsForWhatIsNotANumber) {
  const std::string page = page_of(line({1, 2, NAN, 3, INFINITY, 2}));
  EXPECT_EQ(count(page, "class=\"line\""), 3u);
  EXPECT_THAT(page, HasSubstr("2 values are NaN or infinite"));
  EXPECT_THAT(page_of(line({1, 0, 10}), Scale::Logarithmic), HasSubstr("1 values are NaN, infi"));
  EXPECT_THAT(page_of(line({NAN, NAN})), HasSubstr("There is nothing to draw."));
  EXPECT_THAT(page_of(line({})), HasSubstr("There is nothing to draw."));
  EXPECT_THAT(page_of(line({7})), HasSubstr("h0"));
  EXPECT_THAT(page_of(line({7, 7, 7})), Not(HasSubstr("nan")));
}

TEST(Report, ShowsTheMeanOfNoisyCurvesAndSmoothOnesAsTheyAre) {
  std::vector<double> noisy, smooth;
  for (int i = 0; i < 100000; ++i) {
    smooth.push_back(std::exp(-i / 20000.0));
    noisy.push_back(smooth.back() + (i % 2 == 0 ? 0.1 : -0.1));
  }
  const std::string page = page_of(line(noisy));
  EXPECT_THAT(page, HasSubstr("mean of 1667 points; faint: each point"));
  EXPECT_LT(page.size(), 60000u);
  const std::string before = "curve <b>";
  const double last = std::stod(page.substr(page.find(before) + before.size(), 10));
  EXPECT_NEAR(last, std::exp(-5.0), 0.001);
  EXPECT_THAT(page_of(line(smooth)), Not(HasSubstr("faint:")));
}

TEST(Report, IsWrittenToAFile) {
  const TemporaryFolder folder;
  const Report report{.title = "run", .charts = {{"t", "x", "y", {line({1, 2})}}}};
  write_report(folder / "report.html", report);
  EXPECT_EQ(read_bytes(folder / "report.html"), render_report(report));
  EXPECT_THROW(write_report(folder / "no/report.html", report), Error);
}

TEST(Report, CurvesNeedAsManyXAsY) {
  const Error error = error_of([] { page_of({"loss", {1, 2}, {1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::Value);
  EXPECT_THAT(error.message(), HasSubstr("curve 'loss' has 2 x values and 1 y values"));
}

}  // namespace
}  // namespace lamella::io
