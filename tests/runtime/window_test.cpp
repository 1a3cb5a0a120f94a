// Wherever and by whomever the window is run, nothing is lost that is still to be used: each
// program holds some of its values in other ways than as Tensors while it records more.
#include "lamella/ir/window.h"

#include <atomic>
#include <cctype>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/window_limits.h"
#include <gtest/gtest.h>

#include "lamella/ir/trace.h"
#include "lamella/nn/dense.h"
#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/optim/adam.h"
#include "lamella/transform/control_flow.h"
#include "lamella/transform/grad.h"

namespace lamella {
namespace {

using Tensors = std::vector<Tensor>;
using Bits = std::vector<std::vector<float>>;

Tensor floats(const std::vector<float>& elements) {
  return Tensor::from_vector<float>({static_cast<int64_t>(elements.size())}, elements);
}

struct NamedProgram {
  const char* name;
  std::function<Tensors()> run;
};

void PrintTo(const NamedProgram& program, std::ostream* out) {
  *out << program.name;
}

Tensors replayed(const std::function<Tensors(const Tensors&)>& function) {
  const Tensors first{floats({0.5F, -1})}, second{floats({0.25F, 2})};
  Ref<Trace> trace;
  {
    Tracer tracer(first, [] { return SourceLocation(); });
    trace = tracer.finish(function(first));
  }
  return trace->replay(storages_of(second));
}

const std::vector<NamedProgram> programs{
    {"casts of two operands",
     [] {
       const Tensor a = Tensor::from_vector<int32_t>({2}, {3, 4});
       const Tensor b = Tensor::from_vector<int32_t>({2}, {5, 7});
       Tensors all;
       for (int i = 0; i < 6; ++i) all.push_back(ops::div(a + b, b));
       return all;
     }},
    {"a trace of a long chain",
     [] {
       return replayed([](const Tensors& given) {
         Tensor x = given[0];
         for (int i = 0; i < 600; ++i) x = ops::tanh(x);
         return Tensors{x};
       });
     }},
    {"a trace with writes and draws",
     [] {
       set_seed(3);
       const Tensor total = floats({1, 1});
       Tensors results = replayed([&](const Tensors& given) {
         const Tensor before = total * 1.5;
         total.assign(total + given[0] * ops::uniform({2}));
         const Tensor between = ops::exp(given[0]) * total;
         total.assign(total * 0.5 + between);
         return Tensors{before + between, total * given[0]};
       });
       results.push_back(total);
       return results;
     }},
    {"a trace that goes on after an optimizer's step",
     [] {
       set_seed(4);
       const auto layer = make_ref<nn::Dense>(2, 2);
       optim::Adam optimizer(layer->trainable_params(), {.learning_rate = 0.05});
       return replayed([&](const Tensors& given) {
         Tensors weights;
         for (const auto& each : layer->trainable_params()) weights.push_back(each->tensor());
         const ValueAndGradients step = value_and_grad(
             [&] {
               return Tensors{ops::mean(ops::square((*layer)(ops::reshape(given[0], {1, 2}))))};
             },
             weights);
         optimizer(step.gradients);
         return Tensors{step.values[0] * 2.0, ops::sum(ops::square(weights[0])),
                        ops::sum(step.gradients[0])};
       });
     }},
    {"a loop's body that computes with tensors of outside",
     [] {
       const Tensor outside = floats({2, 3});
       const ScanResult result = scan(
           [&](const Tensors& carried, const Tensors&) {
             Tensor next = carried[0] + ops::tanh(outside) * 0.5;  // what is dropped at once
             for (int i = 0; i < 4; ++i) next = next * ops::exp(outside * (0.01 * i));
             return ScanResult{{next}, {}};
           },
           {floats({1, 1})}, {}, {.length = 3});
       return result.carried;
     }},
    {"branches that compute with tensors of outside",
     [] {
       const Tensor outside = floats({2, 3});
       const auto branch = [&](double factor) {
         return [&outside, factor] {
           return Tensors{ops::tanh(outside * factor) + ops::exp(outside * -factor)};
         };
       };
       return cond(ops::greater(ops::sum(outside), 1), branch(0.5), branch(2));
     }},
};

class Windows : public testing::TestWithParam<NamedProgram> {};

Bits bits_for(const NamedProgram& program, WindowLimits limits) {
  Window::of_thread().flush();
  const testing_support::ScopedWindowLimits scope(limits);
  Bits bits;
  for (const Tensor& tensor : program.run()) bits.push_back(tensor.to_vector<float>());
  return bits;
}

TEST_P(Windows, LoseNothingWhereverTheyAreCut) {
  const Bits expected = bits_for(GetParam(), {.fixed = 1});
  for (int64_t length = 2; length <= 12; ++length) {
    EXPECT_EQ(bits_for(GetParam(), {.fixed = length}), expected) << "cut after " << length;
    EXPECT_EQ(bits_for(GetParam(), {.loop = length, .most = length}), expected)
        << "run from " << length << " on";
  }
  EXPECT_EQ(bits_for(GetParam(), {}), expected);
}

INSTANTIATE_TEST_SUITE_P(Programs, Windows, testing::ValuesIn(programs), [](const auto& test) {
  std::string name = test.param.name;
  std::erase_if(name, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) == 0; });
  return name;
});

TEST(Window, OfAThreadThatRecordsMayBeRunByAnother) {
  std::mutex mutex;
  Tensor latest = floats({0});
  std::atomic<bool> done{false};
  std::thread reader([&] {
    double before = 0;
    while (!done) {
      std::unique_lock lock(mutex);
      const Tensor seen = latest.snapshot();
      lock.unlock();
      const double now = seen.item();  // runs the other's window
      EXPECT_GE(now, before);
      before = now;
    }
  });
  Tensor sum = floats({0});
  for (int i = 0; i < 20'000; ++i) {
    sum = sum + 1.0;
    const std::lock_guard lock(mutex);
    latest = sum;
  }
  done = true;
  reader.join();
  EXPECT_EQ(sum.item(), 20'000);
}

}  // namespace
}  // namespace lamella
