// Random numbers: the documented words, state, and independence of how they are computed.
#include "lamella/ops/random.h"

#include "tests/ops/gradients.h"

#include "lamella/runtime/counters.h"

namespace lamella::test {
namespace {

TEST(Random, UniformsAreTheDocumentedBits) {
  set_seed(42);
  set_random_state({.seed = 42, .offset = 7});
  const auto drawn = ops::uniform({3, 5}).to_vector<float>();
  for (size_t i = 0; i < drawn.size(); ++i)
    EXPECT_EQ(drawn[i], uniform_from_bits(philox_at(42, 7, i)[0]));
  EXPECT_EQ(random_state(), (RandomState{42, 8}));
}

TEST(Random, NormalsFollowBoxAndMuller) {
  set_random_state({.seed = 42, .offset = 7});
  const auto drawn = ops::normal({100}).to_vector<float>();
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto words = philox_at(42, 7, i);
    const double u = uniform_from_bits(words[0]), v = uniform_from_bits(words[1]);
    EXPECT_NEAR(drawn[i], std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v), 1e-5);
  }
}

TEST(Random, MomentsAreRight) {
  set_seed(1);
  const Tensor uniform = ops::uniform({100000}, -1.0, 3.0),
               normal = ops::normal({100000}, 2.0, 0.5);
  EXPECT_NEAR(ops::mean(uniform).item(), 1, 0.02);
  EXPECT_NEAR(ops::var(uniform).item(), 16.0 / 12, 0.03);
  EXPECT_NEAR(ops::mean(normal).item(), 2, 0.01);
  EXPECT_NEAR(ops::std(normal).item(), 0.5, 0.01);
  EXPECT_NEAR(ops::mean(ops::bernoulli({100000}, 0.3)).item(), 0.3, 0.01);
  const Tensor whole = ops::integers({10000}, -2, 3);
  EXPECT_EQ(ops::min(whole).item(), -2);
  EXPECT_EQ(ops::max(whole).item(), 2);
}

TEST(Random, OffsetsAreTakenInProgramOrder) {
  set_seed(3);
  const Tensor a = ops::uniform({4}), b = ops::uniform({4});
  const auto later = b.to_vector<float>(), first = a.to_vector<float>();  // run in the other order
  set_seed(3);
  EXPECT_EQ(ops::uniform({4}).to_vector<float>(), first);
  EXPECT_EQ(ops::uniform({4}).to_vector<float>(), later);
  EXPECT_NE(first, later);
}

TEST(Random, ManyDrawsAreOneGraph) {
  set_seed(3);
  const Tensor x = floats({4}, {1, 2, 3, 4});
  ops::dropout(x, 0.5).wait();
  ops::dropout(x, 0.5).wait();
  const int64_t graphs = counters().graphs;
  for (int i = 0; i < 5; ++i) ops::dropout(x, 0.1 * i).wait();
  EXPECT_EQ(counters().graphs, graphs);
}

TEST(Random, DropoutScalesWhatStaysAndItsGradientUsesTheSameMask) {
  set_seed(5);
  const Tensor x = doubles({1000}, std::vector<double>(1000, 2));
  const Tensor wrt[] = {x};
  const auto both = value_and_grad([&] { return std::vector{ops::dropout(x, 0.25)}; }, wrt);
  const auto y = both.values[0].to_vector<double>(), g = both.gradients[0].to_vector<double>();
  int kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], 2 * g[i], 1e-12);
    EXPECT_TRUE(y[i] == 0 || std::abs(y[i] - 2 / 0.75) < 1e-12);
    kept += y[i] != 0;
  }
  EXPECT_NEAR(kept, 750, 60);
  EXPECT_EQ(ops::sum(ops::dropout(x, 1.0)).item(), 0);
  EXPECT_EQ(ops::sum(ops::dropout(x, 0.0)).item(), 2000);
  expect_error(ErrorKind::Value, "[dropout] p must be in [0, 1], got 1.5",
               [&] { ops::dropout(x, 1.5); });
}

TEST(Random, PermutationsHoldEachNumberOnce) {
  set_seed(5);
  auto order = ops::permutation(100).to_vector<int64_t>();
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace lamella::test
