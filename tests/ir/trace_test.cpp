// Traces: recorded once, recorded again with other values.
#include "lamella/ir/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const std::vector<float>& elements) {
  return Tensor::from_vector<float>({static_cast<int64_t>(elements.size())}, elements);
}

SourceLocation nowhere() {
  return {};
}

template <typename Function>
Ref<Trace> traced(const std::vector<Tensor>& arguments, const Function& function) {
  Tracer tracer(arguments, nowhere);
  const std::vector<Tensor> outputs = function(arguments);
  return tracer.finish(outputs);
}

std::vector<Tensor> again(const Ref<Trace>& trace, const std::vector<Tensor>& arguments) {
  return trace->replay(storages_of(arguments));
}

TEST(Trace, ComputesWithOtherArguments) {
  const auto trace = traced({floats({1, 2}), floats({3, 4})}, [](const auto& given) {
    return std::vector{given[0] * given[1] + 1.0, given[0] * 2.0};
  });
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->size(), 3u);
  const auto outputs = again(trace, {floats({5, 6}), floats({7, 8})});
  EXPECT_THAT(outputs[0].to_vector<float>(), ElementsAre(36, 49));
  EXPECT_THAT(outputs[1].to_vector<float>(), ElementsAre(10, 12));
}

TEST(Trace, ReadsStoragesWhereTheProgramReadThem) {
  const Tensor weight = floats({1});
  const auto step = [&](const std::vector<Tensor>& given) {
    const Tensor before = weight * 10.0;
    weight.assign(weight + given[0]);
    return std::vector{before, weight * 10.0};
  };
  const auto trace = traced({floats({1})}, step);
  ASSERT_TRUE(trace);
  EXPECT_EQ(weight.item(), 2);
  const auto outputs = again(trace, {floats({3})});
  EXPECT_EQ(outputs[0].item(), 20);
  EXPECT_EQ(outputs[1].item(), 50);
  EXPECT_EQ(weight.item(), 5);
}

TEST(Trace, TakesNoArgumentThatItHoldsIfItWrites) {
  const Tensor held = floats({1}), other = floats({2});
  const auto write = [&](const std::vector<Tensor>& given) {
    given[0].assign(given[0] + held);
    return std::vector<Tensor>{};
  };
  const auto read = [&](const std::vector<Tensor>& given) { return std::vector{given[0] + held}; };
  const auto writing = traced({floats({3})}, write), reading = traced({floats({3})}, read);
  EXPECT_TRUE(writing->takes(std::vector{other.storage()}));
  EXPECT_FALSE(writing->takes(std::vector{held.storage()}));
  EXPECT_TRUE(reading->takes(std::vector{held.storage()}));
}

TEST(Trace, WritesToAnArgument) {
  const auto change = [](const std::vector<Tensor>& given) {
    given[0].assign(given[0] + 1.0);
    return std::vector{given[0] * 1.0};
  };
  const auto trace = traced({floats({1, 2})}, change);
  const Tensor other = floats({5, 6});
  const auto outputs = again(trace, {other});
  EXPECT_THAT(other.to_vector<float>(), ElementsAre(6, 7));
  EXPECT_THAT(outputs[0].to_vector<float>(), ElementsAre(6, 7));
}

TEST(Trace, LeavesOutWhatNobodyUses) {
  const auto trace = traced({floats({1})}, [](const auto& given) {
    (void)(given[0] * 3.0);
    return std::vector{given[0] + 1.0};
  });
  EXPECT_EQ(trace->size(), 1u);
}

TEST(Trace, DrawsAnew) {
  set_seed(5);
  const auto draw = [](const std::vector<Tensor>&) { return std::vector{ops::uniform({4})}; };
  const auto trace = traced({}, draw);
  set_seed(5);
  const std::vector<float> first = draw({})[0].to_vector<float>();
  const std::vector<float> second = draw({})[0].to_vector<float>();
  set_seed(5);
  EXPECT_EQ(again(trace, {})[0].to_vector<float>(), first);
  EXPECT_EQ(again(trace, {})[0].to_vector<float>(), second);
}

TEST(Trace, IsDifferentiatedLikeAnyProgram) {
  const auto trace = traced(
      {floats({2})}, [](const auto& given) { return std::vector{given[0] * given[0] * given[0]}; });
  const Tensor x = floats({3});
  const Tensor wrt[] = {x};
  EXPECT_EQ(grad([&] { return again(trace, {x})[0]; }, wrt)[0].item(), 27);
}

TEST(Trace, HoldsGradientsTakenInside) {
  const auto trace = traced({floats({2})}, [](const std::vector<Tensor>& given) {
    return grad([&] { return given[0] * given[0]; }, given);
  });
  ASSERT_TRUE(trace);
  EXPECT_EQ(again(trace, {floats({5})})[0].item(), 10);
}

TEST(Trace, OutputsOfOneTensorStayOne) {
  const auto trace = traced({floats({2})}, [](const auto& given) {
    const Tensor sum = given[0] + 1.0;
    return std::vector{sum, sum, sum.snapshot()};
  });
  const auto outputs = again(trace, {floats({5})});
  outputs[0].assign(floats({0}));
  EXPECT_EQ(outputs[1].item(), 0);
  EXPECT_EQ(outputs[2].item(), 6);
}

TEST(Trace, SaysWhyThereIsNone) {
  const auto reason_of = [](const auto& function) {
    const Tensor x = floats({1}), y = x.snapshot();
    Tracer tracer(std::vector{x}, nowhere);
    function(x, y);
    EXPECT_FALSE(tracer.finish({}));
    return tracer.reason()->why;
  };
  EXPECT_THAT(reason_of([](const Tensor& x, const Tensor&) { (void)x.item(); }),
              HasSubstr("reads"));
  EXPECT_THAT(reason_of([](const Tensor&, const Tensor&) { set_seed(1); }), HasSubstr("random"));
  EXPECT_THAT(reason_of([](const Tensor& x, const Tensor& y) { (void)(x + y); }),
              HasSubstr("share one value"));
}

}  // namespace
}  // namespace lamella
