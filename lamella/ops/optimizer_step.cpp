// Updates of a parameter by its gradient: an optimizer's arithmetic for one tensor as one node.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

// The first `states` operands, the parameter and its state, become new values of their own types;
// the operand after them is the gradient.
template <size_t states>
void infer_step(InferCall& call) {
  const TensorType& parameter = call.operand(0);
  for (size_t i = 1; i <= states; ++i) {
    if (call.operand(i).shape == parameter.shape) continue;
    fail(ErrorKind::Value, "[{}] {} must have the parameter's shape {}, got {}", call.op.name(),
         opdef(call.op).parameters()[i].name, text(parameter.shape), text(call.operand(i)));
  }
  // The rate, and decays: what makes the result larger is no step of this parameter.
  for (size_t i = states + 1; i < call.operands.size(); ++i) {
    if (call.operand(i).shape.empty()) continue;
    fail(ErrorKind::Value, "[{}] {} must be a number, got {}", call.op.name(),
         opdef(call.op).parameters()[i].name, text(call.operand(i)));
  }
  for (size_t i = 0; i < states; ++i) call.results.push_back(call.operand(i));
}

Tensor moved(const Tensor& moment, double beta, const Tensor& towards) {
  return moment * beta + towards * (1 - beta);
}

// The moments of operands 1 and 2 moved towards the gradient and its square.
struct Moments {
  Tensor first, second;
};

Moments moved_moments(const CompositeCall& call, const Tensor& gradient) {
  const double beta1 = call.attribute<double>(0), beta2 = call.attribute<double>(1);
  return {moved(call[1], beta1, gradient), moved(call[2], beta2, ops::square(gradient))};
}

// The parameter less rate times the first moment over the root of `second`.
Tensor adam_parameter(const CompositeCall& call, const Tensor& first, const Tensor& second,
                      const Tensor& gradient, const Tensor& rate) {
  const bool nesterov = call.attribute<bool>(3);
  const Tensor direction = nesterov ? moved(first, call.attribute<double>(0), gradient) : first;
  return call[0] - direction * rate / (ops::sqrt(second) + call.attribute<double>(2));
}

}  // namespace

LAMELLA_OP_MULTI(adam_step, (Operand parameter, Operand moment1, Operand moment2, Operand gradient, Operand rate,
                             double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-08, bool nesterov = false),
    .doc = "Adam (Kingma and Ba, 2015) for one parameter: m = beta1 moment1 + (1 - beta1) gradient, "
           "v = beta2 moment2 + (1 - beta2) gradient^2; gives parameter - rate m / (sqrt(v) + epsilon), m "
           "and v. rate holds the correction of the moments' bias. With nesterov, m is moved towards the "
           "gradient once more in the first result.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer_step<3>,
    .lower = composite([](const CompositeCall& call) {
      const auto [first, second] = moved_moments(call, call[3]);
      return std::vector{adam_parameter(call, first, second, call[3], call[4]), first, second};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("adam_step(parameter, moment1, moment2, gradient, rate, beta1, beta2, epsilon, nesterov)", 8),
    .cost = Cost{14},
    .samples = Samples{"randn(3, 5), randn(3, 5), positive(3, 5), randn(3, 5), 0.01",
                       "randn(4), randn(4), positive(4), randn(4), 0.5, epsilon=0.1, nesterov=True"})

LAMELLA_OP_MULTI(amsgrad_step, (Operand parameter, Operand moment1, Operand moment2, Operand largest, Operand gradient,
                                Operand rate, double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-08,
                                bool nesterov = false),
    .doc = "adam_step with the largest second moment so far in place of the second moment (Reddi et al., 2018), "
           "which is the fourth result.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer_step<4>,
    .lower = composite([](const CompositeCall& call) {
      const auto [first, second] = moved_moments(call, call[4]);
      const Tensor largest = ops::maximum(call[3], second);
      return std::vector{adam_parameter(call, first, largest, call[4], call[5]), first, second, largest};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("amsgrad_step(parameter, moment1, moment2, largest, gradient, rate, beta1, beta2, epsilon, nesterov)", 8),
    .cost = Cost{15},
    .samples = Samples{"randn(3, 5), randn(3, 5), positive(3, 5), positive(3, 5), randn(3, 5), 0.01"})

LAMELLA_OP_MULTI(adam_weight_decay_step, (Operand parameter, Operand moment1, Operand moment2, Operand gradient,
                                          Operand rate, OptionalOperand decay, double beta1 = 0.9,
                                          double beta2 = 0.999, double epsilon = 1e-06),
    .doc = "Adam with decoupled weight decay (Loshchilov and Hutter, 2019) for one parameter, moments m and v as "
           "in adam_step, without correction of their bias: gives parameter - rate (m / (sqrt(v) + epsilon) + "
           "decay parameter), m and v. Without decay, its term is left out.",
    .accepts = kFloats, .promotion = Promotion::First, .infer = infer_step<3>,
    .lower = composite([](const CompositeCall& call) {
      const auto [first, second] = moved_moments(call, call[3]);
      Tensor direction = first / (ops::sqrt(second) + call.attribute<double>(2));
      if (call.size() > 5) direction = direction + call[0] * call[5];
      return std::vector{call[0] - direction * call[4], first, second};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("adam_weight_decay_step(parameter, moment1, moment2, gradient, rate, decay, beta1, beta2, epsilon)", 8),
    .cost = Cost{14},
    .samples = Samples{"randn(3, 5), randn(3, 5), positive(3, 5), randn(3, 5), 0.01, 0.1",
                       "randn(4), randn(4), positive(4), randn(4), 0.5, None, epsilon=0.1"})

}  // namespace lamella
