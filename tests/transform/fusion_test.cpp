// How operators are grouped into kernels, seen by the number of launches and the results.
#include "tests/launch_count.h"
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {
namespace {

using testing_support::launches_of;

Tensor ones(const Shape& shape) {
  const auto count = static_cast<size_t>(element_count(shape).value());
  return Tensor::from_vector<float>(shape, std::vector<float>(count, 1));
}

TEST(Fusion, ARowsResultAndAnotherBranchMeetInOneKernel) {
  const Tensor x = ones({64, 100}), y = ones({64, 100});
  EXPECT_EQ(launches_of([&] {
              const Tensor total = ops::sum(y, {1}, true);
              (y - ops::exp(x) * total).wait();
            }),
            1);
}

TEST(Fusion, AColumnsResultIsNotReadByTheLoopThatMakesIt) {
  const Tensor x = ones({3, 5});
  const Tensor largest = ops::max(x, {0}, true);
  const Tensor total = ops::sum(ops::exp(x - largest), {0}, true);
  for (float element : (ops::log(total) + largest).to_vector<float>()) {
    EXPECT_NEAR(element, 1 + std::log(3.0F), 1e-6);
  }
}

TEST(Fusion, TwoSumsOverOneTensorReadItOnce) {
  const Tensor x = ones({64, 100});
  EXPECT_EQ(launches_of([&] {
              const Tensor first = ops::sum(x * x, {0}), second = ops::sum(x, {0});
              Window::of_thread().flush();
              EXPECT_EQ(first.to_vector<float>(), std::vector<float>(100, 64));
              EXPECT_EQ(second.to_vector<float>(), std::vector<float>(100, 64));
            }),
            1);
}

TEST(Fusion, TwoFunctionsOfOneResultShareAKernel) {
  const Tensor x = ones({64, 100}), y = ones({100});
  EXPECT_EQ(launches_of([&] {
              const Tensor total = ops::sum(x, {0});
              const Tensor first = total * y, second = total + y;
              Window::of_thread().flush();
              EXPECT_EQ(first.to_vector<float>(), std::vector<float>(100, 64));
              EXPECT_EQ(second.to_vector<float>(), std::vector<float>(100, 65));
            }),
            2);
}

TEST(Fusion, AReductionOfSingleElementsIsNone) {
  const Tensor x = ones({3, 1});
  EXPECT_EQ(ops::softmax(x).to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(ops::reduce_prod(ones({1, 4}), {0}).to_vector<float>(), (std::vector<float>(4, 1)));
}

TEST(Lowering, ACompositeGivesTheLayoutItsTypeRulePromises) {
  const Tensor x = ops::with_layout(ones({2, 3, 4}), 1);
  const Tensor weight = ones({4});
  const Tensor y = ops::layer_norm(x, weight, weight);
  EXPECT_EQ(y.type().layout, Layout::RowMajor);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(24, 1));
}

}  // namespace
}  // namespace lamella
