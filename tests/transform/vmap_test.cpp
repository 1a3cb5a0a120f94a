// vmap against the loop over examples, in values, gradients and cost.
#include "lamella/transform/vmap.h"

#include "tests/errors.h"
#include "tests/launch_count.h"
#include "tests/window_limits.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using Tensors = std::vector<Tensor>;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using testing_support::launches_of;

std::vector<float> elements(const Tensor& tensor) {
  return tensor.to_vector<float>();
}

Tensor floats(const Shape& shape, const std::vector<float>& elements) {
  return Tensor::from_vector<float>(shape, elements);
}

Tensor example_of(const Tensor& all, int64_t index) {
  return ops::squeeze(ops::narrow(all, index, 0, Shape{1}), {0});
}

// The function called for one example after another, each of whose tensors lies along axis 0.
Tensor one_by_one(const std::function<Tensor(const Tensors&)>& function, const Tensors& arguments) {
  Tensors results;
  for (int64_t i = 0; i < arguments[0].shape()[0].value(); ++i) {
    Tensors examples;
    for (const Tensor& argument : arguments) examples.push_back(example_of(argument, i));
    results.push_back(function(examples));
  }
  return ops::stack(results, 0);
}

TEST(Vmap, TakesAndGivesExamplesAlongAnyAxis) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), y = floats({2}, {10, 20});
  const auto sum = [](const Tensors& e) { return e[0] + e[1]; };
  EXPECT_THAT(elements(vmap(sum, {x, y})), ElementsAre(11, 12, 13, 24, 25, 26));
  EXPECT_THAT(elements(vmap(sum, {x, y}, {-1, kNotBatched})), ElementsAre(11, 24, 12, 25, 13, 26));
  const ExampleFunction two = [](const Tensors& e) {
    return ExampleResult{.tensors = {e[0] * 2.0, e[1]}, .out_axes = {-1, kNotBatched}};
  };
  const Tensors both = vmap(two, {x, y}, {0, kNotBatched});
  EXPECT_EQ(both[0].shape(), (Shape{3, 2}));
  EXPECT_THAT(elements(both[0]), ElementsAre(2, 8, 4, 10, 6, 12));
  EXPECT_THAT(elements(both[1]), ElementsAre(10, 20));
}

TEST(Vmap, RepeatsWhatIsTheSameForAllExamples) {
  const Tensor x = floats({3}, {1, 2, 3}), constant = floats({2}, {7, 8});
  const Tensor all = vmap([&](const Tensors&) { return constant; }, {x});
  EXPECT_THAT(elements(all), ElementsAre(7, 8, 7, 8, 7, 8));
}

// ---- Cost ----

Tensor small_network(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return ops::tanh(ops::matmul(x, weight) + bias) * 2.0;
}

TEST(Vmap, LaunchesAsManyKernelsForAHundredExamplesAsForThree) {
  set_seed(3);
  const Tensor weight = ops::normal({5, 4}), bias = ops::normal({4});
  const auto launches = [&](int64_t size) {
    const Tensor x = ops::normal({size, 5});
    return launches_of([&] {
      vmap([&](const Tensors& e) { return small_network(e[0], weight, bias); }, {x}).wait();
    });
  };
  EXPECT_LE(launches(3), 2);
  EXPECT_EQ(launches(100), launches(3));
}

TEST(Vmap, TakesOneConvolutionForGradientsOfEveryExample) {
  set_seed(4);
  const Tensor x = ops::normal({7, 1, 2, 6, 6}), weight = ops::normal({3, 2, 3, 3});
  const auto gradient = [&](const Tensors& e) {
    const Tensor wrt[] = {weight};
    return grad([&] { return ops::sum(ops::square(ops::conv2d(e[0], weight))); }, wrt)[0];
  };
  const Tensor all = vmap(gradient, {x});
  EXPECT_THAT(elements(all), Pointwise(FloatNear(1e-4f), elements(one_by_one(gradient, {x}))));
  const int64_t once = launches_of([&] { gradient({example_of(x, 0)}).wait(); });
  EXPECT_LE(launches_of([&] { vmap(gradient, {x}).wait(); }), once + 8);
}

// ---- Gradients ----

struct Network {
  Tensor first = ops::normal({6, 4}), bias = ops::normal({6}), second = ops::normal({3, 6});
  Tensors parameters() const { return {first, bias, second}; }

  Tensor loss(const Tensor& x, const Tensor& label) const {
    const Tensor hidden = ops::gelu(ops::dense(x, first, bias));
    const Tensor logits = ops::dense(ops::layer_norm(hidden, ops::ones_like(bias), bias), second);
    return ops::cross_entropy(ops::expand_dims(logits, 0), ops::expand_dims(label, 0), {});
  }
};

TEST(Vmap, GivesTheGradientsOfEveryExample) {
  set_seed(5);
  const Network net;
  const Tensors batch{ops::normal({5, 4}), ops::integers({5}, 0, 3)};
  for (size_t parameter = 0; parameter < 3; ++parameter) {
    const auto gradient = [&](const Tensors& e) {
      return grad([&] { return net.loss(e[0], e[1]); }, net.parameters())[parameter];
    };
    const Tensor all = vmap(gradient, batch), loop = one_by_one(gradient, batch);
    EXPECT_EQ(all.shape(), loop.shape());
    EXPECT_THAT(elements(all), Pointwise(FloatNear(1e-5f), elements(loop)));
  }
}

TEST(Vmap, IsDifferentiated) {
  set_seed(6);
  const Network net;
  const Tensors batch{ops::normal({5, 4}), ops::integers({5}, 0, 3)};
  const auto loss = [&](const Tensors& e) { return net.loss(e[0], e[1]); };
  const Tensors all =
      grad([&] { return ops::sum(ops::square(vmap(loss, batch))); }, net.parameters());
  const Tensors loop =
      grad([&] { return ops::sum(ops::square(one_by_one(loss, batch))); }, net.parameters());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_THAT(elements(all[i]), Pointwise(FloatNear(1e-4f), elements(loop[i]))) << i;
  }
}

TEST(Vmap, OfItselfIsAVmapOverTwoAxes) {
  set_seed(7);
  const Tensor x = ops::normal({3, 5}), y = ops::normal({4, 5});
  const auto products = [&](const Tensors& rows) {
    return vmap([&](const Tensors& e) { return ops::sum(ops::tanh(rows[0] * e[0])); }, {y});
  };
  const Tensor all = vmap(products, {x});
  EXPECT_EQ(all.shape(), (Shape{3, 4}));
  EXPECT_EQ(elements(all), elements(one_by_one(products, {x})));
}

TEST(Vmap, MakesJacobiansOfGradients) {
  const Tensor x = floats({3}, {0.5f, -1, 2}),
               directions = floats({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Tensor wrt[] = {x};
  const auto row = [&](const Tensors& e) {
    return value_and_grad([&] { return Tensors{ops::square(x) * x}; }, wrt, e[0]).gradients[0];
  };
  EXPECT_THAT(elements(vmap(row, {directions})), ElementsAre(0.75f, 0, 0, 0, 3, 0, 0, 0, 12));
}

TEST(Vmap, KeepsAGradientRuleOfTheUsers) {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4}), scale = floats({2}, {10, 100});
  const auto doubled_back = [&](const Tensors& e) {
    return custom_gradient(
        {e[0], scale}, [](const Tensors& o) { return Tensors{o[0] * o[1]}; },
        [](const Tensors& o, const Tensors&, const Tensors& c) {
          return Tensors{c[0] * o[1] * 2.0, c[0] * o[0]};
        })[0];
  };
  const Tensor wrt[] = {x, scale};
  const Tensors outside = grad([&] { return ops::sum(vmap(doubled_back, {x})); }, wrt);
  EXPECT_THAT(elements(outside[0]), ElementsAre(20, 200, 20, 200));
  EXPECT_THAT(elements(outside[1]), ElementsAre(4, 6));
  const auto inside = [&](const Tensors& e) {
    const Tensor inner[] = {e[0]};
    return grad([&] { return ops::sum(doubled_back(e)); }, inner)[0];
  };
  EXPECT_THAT(elements(vmap(inside, {x})), ElementsAre(20, 200, 20, 200));
}

// ---- Loops and branches ----

Tensor recurrence(const Tensor& x, const Tensor& weight, const Tensor& start) {
  const ScanResult result = scan(
      [&](const Tensors& carried, const Tensors& slices) {
        const Tensor h = ops::tanh(ops::matmul(carried[0], weight) + slices[0]);
        return ScanResult{{h, carried[1] + 1.0}, {h * carried[1]}};
      },
      {start, floats({}, {0})}, {x});
  return ops::sum(result.stacked[0], {0}) + result.carried[0];
}

TEST(Vmap, RunsOneLoopForAllExamples) {
  set_seed(8);
  const Tensor x = ops::normal({3, 6, 4}), weight = ops::normal({4, 4}) * 0.5;
  const Tensor start = ops::normal({4});
  const auto function = [&](const Tensors& e) { return recurrence(e[0], weight, start); };
  EXPECT_THAT(elements(vmap(function, {x})),
              Pointwise(FloatNear(1e-5f), elements(one_by_one(function, {x}))));
  const auto launches = [&](int64_t size) {
    const Tensor many = ops::normal({size, 6, 4});
    return launches_of([&] { vmap(function, {many}).wait(); });
  };
  EXPECT_EQ(launches(3), launches(50));
  // Gradients of every example, and of the sum of them.
  const auto gradient = [&](const Tensors& e) {
    const Tensor wrt[] = {weight};
    return grad([&] { return ops::sum(function(e)); }, wrt)[0];
  };
  const Tensor each = vmap(gradient, {x});
  EXPECT_THAT(elements(each), Pointwise(FloatNear(1e-4f), elements(one_by_one(gradient, {x}))));
  const Tensor wrt[] = {weight};
  const Tensor total = grad([&] { return ops::sum(vmap(function, {x})); }, wrt)[0];
  EXPECT_THAT(elements(total), Pointwise(FloatNear(1e-4f), elements(ops::sum(each, {0}))));
}

TEST(Vmap, TakesEachExampleItsOwnWay) {
  const Tensor x = floats({4}, {-2, -0.5f, 3, 0.25f});
  const auto branched = [](const Tensors& e) {
    return cond(
        ops::greater(e[0], 0), [&] { return Tensors{ops::log(e[0])}; },
        [&] { return Tensors{e[0] * 10.0}; })[0];
  };
  EXPECT_EQ(elements(vmap(branched, {x})), elements(one_by_one(branched, {x})));
  const auto turns = [](const Tensors& e) {
    return while_loop([](const Tensors& c) { return ops::less(c[0], 4.0); },
                      [](const Tensors& c) { return Tensors{c[0] * c[0] + 1.0}; }, {e[0]})[0];
  };
  EXPECT_EQ(elements(vmap(turns, {x})), elements(one_by_one(turns, {x})));
  const auto slope = [&](const Tensors& e) {
    const Tensor wrt[] = {e[0]};
    return grad([&] { return branched(e) + turns(e); }, wrt)[0];
  };
  EXPECT_EQ(elements(vmap(slope, {x})), elements(one_by_one(slope, {x})));
}

TEST(Vmap, RunsBothBranchesOnceWhereAllGoTheSameWay) {
  const Tensor x = floats({3, 2}, {1, 2, 3, 4, 5, 6}), yes = Tensor::scalar(DType::Bool, 1);
  const auto branched = [&](const Tensors& e) {
    return cond(yes, [&] { return Tensors{e[0] * 2.0}; }, [&] { return Tensors{-e[0]}; })[0];
  };
  EXPECT_THAT(elements(vmap(branched, {x})), ElementsAre(2, 4, 6, 8, 10, 12));
}

// ---- Random numbers ----

TEST(Vmap, DrawsAnewForEachExampleAsAScanDoes) {
  const Tensor x = floats({3, 4}, std::vector<float>(12, 1));
  const auto noisy = [](const Tensor& e) { return ops::dropout(e, 0.5) + ops::normal({4}); };
  set_seed(9);
  const Tensor batch = vmap([&](const Tensors& e) { return noisy(e[0]); }, {x});
  set_seed(9);
  const Tensor loop =
      scan([&](const Tensors&, const Tensors& s) { return ScanResult{{}, {noisy(s[0])}}; }, {}, {x})
          .stacked[0];
  EXPECT_EQ(elements(batch), elements(loop));
  EXPECT_NE(elements(example_of(batch, 0)), elements(example_of(batch, 1)));
  set_seed(9);
  EXPECT_EQ(elements(vmap([&](const Tensors& e) { return noisy(e[0]); }, {x})), elements(batch));
}

TEST(Vmap, DrawsAnewInEveryTurnOfEveryExample) {
  const Tensor x = floats({2, 3, 4}, std::vector<float>(24, 1));
  const auto sums = [](const Tensor& sequence) {
    return scan(
               [](const Tensors&, const Tensors& s) {
                 return ScanResult{{}, {ops::dropout(s[0] * 2.0, 0.5) + ops::uniform({4})}};
               },
               {}, {sequence})
        .stacked[0];
  };
  set_seed(10);
  const Tensor batch = vmap([&](const Tensors& e) { return sums(e[0]); }, {x});
  set_seed(10);
  const Tensor loop =
      scan([&](const Tensors&, const Tensors& s) { return ScanResult{{}, {sums(s[0])}}; }, {}, {x})
          .stacked[0];
  EXPECT_EQ(elements(batch), elements(loop));
  std::vector<float> all = elements(batch);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "two draws are the same";
}

// ---- Errors ----

TEST(Vmap, SaysWhichTensorDoesNotFit) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), y = floats({3}, {1, 2, 3});
  const auto sum = [](const Tensors& e) { return e[0] + e[1]; };
  EXPECT_THAT(message_of([&] { vmap(sum, {x, y}); }),
              HasSubstr("tensor 1 has 3 examples along its axis 0 (f32[3]), but tensor 0 has 2 "
                        "(f32[2,3])"));
  EXPECT_THAT(message_of([&] { vmap(sum, {x, y}, {2, 0}); }),
              HasSubstr("in_axes of tensor 0 is 2, which is not one of the 2 axes of f32[2,3]"));
  EXPECT_THAT(message_of([&] { vmap(sum, {x, y}, {0, 0, 0}); }),
              HasSubstr("in_axes has 3 axes for 2 tensors"));
  EXPECT_THAT(message_of([&] { vmap(sum, {x, y}, {kNotBatched}); }),
              HasSubstr("at least one must have an axis"));
  EXPECT_THAT(message_of([&] { vmap(sum, {}); }), HasSubstr("there is no tensor"));
  const ExampleFunction no_axis = [](const Tensors& e) {
    return ExampleResult{.tensors = {e[0]}, .out_axes = {kNotBatched}};
  };
  EXPECT_THAT(message_of([&] { vmap(no_axis, {x}); }),
              HasSubstr("out_axes of tensor 0 is None, but it differs from example to example"));
}

TEST(Vmap, RefusesToReadAnExample) {
  const Tensor x = floats({2}, {1, 2}), outside = floats({}, {3});
  const auto reads = [](const Tensors& e) { return e[0] * e[0].item(); };
  EXPECT_THAT(message_of([&] { vmap(reads, {x}); }), HasSubstr("has no elements that can be read"));
  // What is the same for all examples has elements.
  const auto reads_outside = [&](const Tensors& e) { return e[0] * (outside * 2.0).item(); };
  EXPECT_THAT(elements(vmap(reads_outside, {x})), ElementsAre(6, 12));
  const auto writes = [&](const Tensors& e) {
    outside.assign(e[0]);
    return e[0];
  };
  EXPECT_THAT(message_of([&] { vmap(writes, {x}); }),
              HasSubstr("a function in vmap cannot write a tensor of outside"));
}

}  // namespace
}  // namespace lamella
