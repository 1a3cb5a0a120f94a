// Names, trees, modes and calls of cells.
#include "lamella/nn/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamella/ir/window.h"
#include "lamella/nn/container.h"
#include "lamella/nn/convolution.h"
#include "lamella/nn/normalization.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/transform/grad.h"

namespace lamella::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor floats(const Shape& shape, std::vector<float> elements) {
  return Tensor::from_vector<float>(shape, elements);
}

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter->name());
  return names;
}

class Block : public Cell {
 public:
  Block() {
    add("conv", make_ref<Conv2d>(1, 2, 3));
    add("bn", make_ref<BatchNorm2d>(2));
  }
};

TEST(Cell, NamesParametersByTheirPathMovingStatisticsFirst) {
  Cell net;
  net.add("block", make_ref<Block>());
  net.add("head", make_ref<Dense>(2, 3));
  EXPECT_THAT(names_of(net.get_parameters()),
              ElementsAre("block.conv.weight", "block.bn.moving_mean", "block.bn.moving_variance",
                          "block.bn.gamma", "block.bn.beta", "head.weight", "head.bias"));
  EXPECT_THAT(names_of(net.trainable_params()),
              ElementsAre("block.conv.weight", "block.bn.gamma", "block.bn.beta", "head.weight",
                          "head.bias"));
  EXPECT_THAT(names_of(net.untrainable_params()),
              ElementsAre("block.bn.moving_mean", "block.bn.moving_variance"));
}

TEST(Cell, ListsEachCellOnceBeforeItsChildren) {
  Cell net;
  const auto shared = make_ref<Dense>(2, 2);
  net.add("first", make_ref<SequentialCell>(std::vector<Ref<Cell>>{shared}));
  net.add("second", shared);
  std::vector<std::string> paths;
  for (const auto& [path, cell] : net.cells_and_names()) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre("", "first", "first.0"));
  EXPECT_EQ(net.get_parameters().size(), 2u);
}

TEST(Cell, RefusesANameThatIsTakenOrHoldsADot) {
  Cell net;
  net.add("dense", make_ref<Dense>(2, 2));
  EXPECT_THROW(net.add("dense", make_ref<Dense>(2, 2)), Error);
  EXPECT_THROW(net.add("a.b", make_ref<Dense>(2, 2)), Error);
  EXPECT_THROW(net.add("", make_ref<Dense>(2, 2)), Error);
  net.add_parameter("scale", make_ref<Parameter>(floats({1}, {1})));
  EXPECT_THROW(net.add_parameter("scale", make_ref<Parameter>(floats({1}, {1}))), Error);
  EXPECT_EQ(net.parameter("scale")->name(), "scale");
}

TEST(Cell, SaysWhichParametersShareAName) {
  Cell net;
  net.add_parameter("a", make_ref<Parameter>(floats({1}, {1}), "same"));
  net.add_parameter("b", make_ref<Parameter>(floats({1}, {1}), "same"));
  try {
    net.check_names();
    FAIL() << "two parameters named 'same' must not pass";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a and b have the same name 'same'"));
  }
}

TEST(Cell, SetsModesForTheWholeTree) {
  Cell net;
  const auto block = net.add("block", make_ref<Block>());
  EXPECT_FALSE(net.training());
  net.set_train();
  EXPECT_TRUE(block->child("bn")->training());
  net.set_train(false);
  EXPECT_FALSE(block->child("bn")->training());
  net.set_grad();
  EXPECT_TRUE(block->requires_grad());
}

TEST(Cell, ReplacingAChildKeepsItsPlace) {
  Cell net;
  net.add("a", make_ref<Dense>(2, 2));
  net.add("b", make_ref<Dense>(2, 2));
  net.set_cell("a", make_ref<Dense>(3, 3));
  EXPECT_EQ(net.children()[0].first, "a");
  EXPECT_EQ(net.parameters_and_names()[0].second->shape(), (Shape{3, 3}));
  EXPECT_TRUE(net.remove("a"));
  EXPECT_FALSE(net.remove("a"));
}

TEST(Cell, NodesKnowTheirLayer) {
  class Probe : public Cell {
   public:
    using Cell::construct;
    Tensor construct(const Tensor& x) override {
      seen = current_layer() == nullptr ? "" : current_layer();
      return x;
    }
    std::string seen;
  };
  Cell net;
  class Outer : public Cell {
   public:
    Outer() { probe = add("probe", make_ref<Probe>()); }
    using Cell::construct;
    Tensor construct(const Tensor& x) override { return (*probe)(x); }
    Ref<Probe> probe;
  };
  const auto outer = make_ref<Outer>();
  const auto root = make_ref<SequentialCell>(std::vector<Ref<Cell>>{outer});
  (*root)(floats({1}, {1}));
  EXPECT_EQ(outer->probe->seen, "0.probe");
  EXPECT_EQ(current_layer(), nullptr);
}

TEST(Cell, ErrorsNameTheLineThatCallsTheLayer) {
  const auto net =
      make_ref<SequentialCell>(std::vector<Ref<Cell>>{make_ref<ReLU>(), make_ref<Dense>(3, 2)});
  const Tensor x = floats({1, 4}, {1, 2, 3, 4});
  const int line = __LINE__ + 2;
  try {
    (*net)(x);
    FAIL() << "4 features do not fit a layer of 3";
  } catch (const Error& error) {
    EXPECT_EQ(error.location().line, line);
    EXPECT_THAT(error.location().file, HasSubstr("cell_test.cpp"));
  }
}

TEST(Cell, HooksSeeAndReplaceInputsAndOutputs) {
  const auto dense = make_ref<Identity>();
  dense->add_forward_pre_hook(
      [](Cell&, const Tensors& inputs) { return Tensors{inputs[0] + 1.0}; });
  dense->add_forward_hook(
      [](Cell&, const Tensors&, const Tensors& outputs) { return Tensors{outputs[0] * 10.0}; });
  EXPECT_EQ((*dense)(floats({1}, {2})).item(), 30);
}

TEST(Cell, BackwardHooksSeeAndReplaceGradients) {
  const auto cell =
      make_ref<Dense>(1, 1, DenseOptions{.weight_init = floats({1, 1}, {3}), .bias = Bias::None});
  cell->add_backward_pre_hook(
      [](Cell&, const Tensors& outputs) { return Tensors{outputs[0] * 10.0}; });
  std::vector<float> seen;
  cell->add_backward_hook([&](Cell&, const Tensors& inputs, const Tensors& outputs) {
    seen = {static_cast<float>(inputs[0].item()), static_cast<float>(outputs[0].item())};
    return Tensors{inputs[0] + 1.0};
  });
  const Tensor x = floats({1, 1}, {5});
  const Tensor wrt[] = {x, cell->weight()->tensor()};
  const auto gradients = grad([&] { return ops::sum((*cell)(x)); }, wrt);
  EXPECT_EQ(seen, (std::vector<float>{30, 10}));
  EXPECT_EQ(gradients[0].item(), 31);
  EXPECT_EQ(gradients[1].item(), 50);
}

TEST(Cell, ToFloatComputesInThatDtypeAndKeepsParameters) {
  const auto dense = make_ref<Dense>(2, 2);
  dense->to_float(DType::BFloat16);
  EXPECT_EQ((*dense)(floats({1, 2}, {1, 2})).dtype(), DType::BFloat16);
  EXPECT_EQ(dense->weight()->dtype(), DType::Float32);
  EXPECT_THROW(dense->to_float(DType::Int32), Error);
}

TEST(Cell, SaysWhatItCannotConstruct) {
  Cell net;
  try {
    net(floats({1}, {1}));
    FAIL() << "a cell without construct must not be callable";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  }
}

TEST(CellList, IsIndexedFromBothEnds) {
  const CellList list({make_ref<ReLU>(), make_ref<Tanh>()});
  EXPECT_EQ(list[-1]->class_name(), "Tanh");
  EXPECT_THROW(list[2], Error);
}

TEST(Parameter, WritesAreSeenByEveryHandleButNotByTheFirstValue) {
  const Tensor first = floats({2}, {1, 2});
  const auto parameter = make_ref<Parameter>(first);
  const Tensor handle = parameter->tensor();
  parameter->set_data(floats({2}, {5, 6}));
  EXPECT_EQ(handle.to_vector<float>(), (std::vector<float>{5, 6}));
  EXPECT_EQ(first.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_THROW(parameter->set_data(floats({3}, {1, 2, 3})), Error);
}

TEST(Object, HandsItsCountOver) {
  struct Owner {
    int count = 0;
  };
  static Owner owner;
  Object::install_owner({.retain = [](void* o) { ++static_cast<Owner*>(o)->count; },
                         .release = [](void* o) { --static_cast<Owner*>(o)->count; }});
  ReLU cell;
  {
    const Ref<Cell> first(&cell);
    const Ref<Cell> second(&cell);
    cell.hand_over(&owner);
    EXPECT_EQ(owner.count, 2);
    const Ref<Cell> third(&cell);
    EXPECT_EQ(owner.count, 3);
    EXPECT_EQ(cell.owner(), &owner);
  }
  EXPECT_EQ(owner.count, 0);
  Object::install_owner({});
}

}  // namespace
}  // namespace lamella::nn
