// Losses. Class labels stay indices: a row compares the number of each element with its label, so
// no one-hot tensor is made.
#include "lamella/ops/functions.h"
#include "lamella/ops/infer_rules.h"
#include "lamella/ops/tensor_operators.h"

namespace lamella {

namespace {

void check_reduction(std::string_view op, const std::string& reduction) {
  if (reduction != "none" && reduction != "mean" && reduction != "sum") {
    fail(ErrorKind::Value, "[{}] reduction must be 'none', 'mean' or 'sum', got '{}'", op,
         reduction);
  }
}

// The result of a loss whose elements have type `each`.
TensorType reduced_type(std::string_view op, TensorType each, const std::string& reduction) {
  check_reduction(op, reduction);
  if (reduction != "none") each = {each.dtype, Layout::RowMajor, {}};
  return each;
}

Tensor reduced(const Tensor& loss, const std::string& reduction) {
  if (reduction == "none") return loss;
  return reduction == "sum" ? ops::sum(loss) : ops::mean(loss);
}

// A loss element by element of operands that broadcast; attribute `index` is the reduction.
template <size_t index>
void infer_elementwise_loss(InferCall& call) {
  infer::elementwise(call);
  call.results[0] =
      reduced_type(call.op.name(), call.results[0], call.attribute<std::string>(index));
}

// ---- Losses over classes: operand 0 scores [N, C, ...], operand 1 targets; attribute 0 the axis C
// ----

size_t class_axis(const Shape& scores, int64_t axis, std::string_view op) {
  if (scores.size() == 1) return 0;  // one sample: its scores are the only axis
  return static_cast<size_t>(normalize_axis(axis, rank(scores), op));
}

void check_weight(const InferCall& call, Dim classes) {
  if (call.operands.size() > 2 && call.operand(2).shape != Shape{classes}) {
    fail(ErrorKind::Value, "[{}] weight must have shape [{}], one a class, got {}", call.op.name(),
         classes.text(), text(call.operand(2)));
  }
}

template <size_t reduction>
void infer_class_loss(InferCall& call) {
  const TensorType &scores = call.operand(0), &labels = call.operand(1);
  const std::string_view name = call.op.name();
  if (scores.shape.empty()) fail(ErrorKind::Value, "[{}] needs at least 1 axis of scores", name);
  const size_t axis = class_axis(scores.shape, call.attribute<int64_t>(0), name);
  Shape each = scores.shape;
  each.erase(static_cast<uint32_t>(axis));
  if (labels.shape != each) {
    fail(ErrorKind::Value,
         "[{}] labels must have shape {}: that of the scores without axis {} (scores: {}, labels: "
         "{})",
         name, text(each), axis, text(scores), text(labels));
  }
  check_weight(call, scores.shape[axis]);
  call.results.push_back(reduced_type(name, {scores.dtype, Layout::RowMajor, each},
                                      call.attribute<std::string>(reduction)));
}

// The shape of one number a class, to broadcast against the scores.
Shape along_classes(const Shape& scores, size_t axis) {
  Shape shape(scores.size(), Dim(1));
  shape[axis] = scores[axis];
  return shape;
}

// A class loss in progress: everything with the class axis kept at size 1.
struct Classes {
  Axes axes;       // the class axis
  Tensor numbers;  // 0 ... C-1 along it
  Tensor labels;   // checked
  Tensor counted;  // bool: not ignored
  Tensor weight;   // one a class, may be undefined

  // The element of each row at its label.
  Tensor at_label(const Tensor& x) const {
    return ops::sum(ops::where(ops::equal(numbers, labels), x, 0.0), axes, true);
  }
};

Classes classes_of(const CompositeCall& call, int64_t ignore_index, const char* name) {
  const Tensor scores = call[0];
  const size_t axis = class_axis(scores.shape(), call.attribute<int64_t>(0), name);
  Classes classes;
  classes.axes = {static_cast<int64_t>(axis)};
  const Shape along = along_classes(scores.shape(), axis);
  classes.numbers = ops::element_numbers(along);
  const Tensor checked =
      ops::check_indices(call[1], Tensor(Value::size(DType::Int64, scores.shape()[axis])),
                         ignore_index, static_cast<int64_t>(axis), false, name, "label");
  classes.labels = ops::expand_dims(checked, static_cast<int64_t>(axis));
  classes.counted = ops::not_equal(classes.labels, ignore_index);
  if (call.size() > 2) classes.weight = ops::reshape(ops::cast(call[2], scores.dtype()), along);
  return classes;
}

// Losses [.., 1, ..] and the weight of each, reduced and brought to the result's shape.
Tensor finish_class_loss(const CompositeCall& call, const Classes& classes, const Tensor& loss,
                         const std::string& reduction) {
  const Tensor kept = ops::where(classes.counted, loss, 0.0);
  if (reduction == "none") return ops::reshape(kept, call.result_type().shape);
  Tensor total = ops::sum(kept);
  if (reduction == "sum") return total;
  Tensor weight = ops::cast(classes.counted, loss.dtype());
  if (classes.weight.defined())
    weight = ops::where(classes.counted, classes.at_label(classes.weight), 0.0);
  return total / ops::sum(weight);
}

}  // namespace

LAMELLA_OP(cross_entropy, (Operand logits, Operand labels, OptionalOperand weight, int64_t axis = 1,
                           int64_t ignore_index = -100, double label_smoothing = 0.0,
                           std::string reduction = "mean"),
    .doc = "-log(softmax(logits)) at each label, times the weight of its class. Labels equal to "
           "ignore_index give 0 and do not count; the mean divides by the weights that count. With "
           "label_smoothing, that share of the target is spread over all classes.",
    .accepts = kFloats, .accepts_each = {kFloats, kIndices, kFloats},
    .infer = infer_class_loss<3>,
    .lower = composite([](const CompositeCall& call) {
      const Classes classes = classes_of(call, call.attribute<int64_t>(1), "cross_entropy");
      const Tensor shifted = call[0] - ops::stop_gradient(ops::reduce_max(call[0], classes.axes));
      const Tensor total = ops::log(ops::sum(ops::exp(shifted), classes.axes, true));
      Tensor loss = total - classes.at_label(shifted);
      if (classes.weight.defined()) loss = loss * classes.at_label(classes.weight);
      if (const double smoothing = call.attribute<double>(2); smoothing != 0) {
        Tensor each = total - shifted;
        if (classes.weight.defined()) each = each * classes.weight;
        const Tensor spread = ops::sum(each, classes.axes, true) /
                              ops::size_as(loss.dtype(), call[0].shape(), classes.axes);
        loss = loss * (1 - smoothing) + spread * smoothing;
      }
      return std::vector{finish_class_loss(call, classes, loss, call.attribute<std::string>(3))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("cross_entropy(logits, labels, weight, axis, ignore_index, label_smoothing, reduction)", 16),
    .cost = Cost{16},
    .samples = Samples{"randn(4, 5), labels(4, below=5)", "randn(4, 5), labels(4, below=5), positive(5), reduction='sum'",
                       "randn(2, 5, 3), labels(2, 3, below=5), positive(5), label_smoothing=0.1",
                       "randn(4, 5), np.array([1, -100, 3, 0]), reduction='none'"})

LAMELLA_OP(cross_entropy_with_probabilities, (Operand logits, Operand target, OptionalOperand weight,
                                              int64_t axis = 1, double label_smoothing = 0.0,
                                              std::string reduction = "mean"),
    .doc = "-sum(target * log(softmax(logits))) along the class axis, each class times its weight; the "
           "mean divides by the number of rows.",
    .accepts = kFloats,
    .infer = [](InferCall& call) {
      const TensorType &logits = call.operand(0), &target = call.operand(1);
      const std::string_view name = call.op.name();
      if (logits.shape.empty() || target.shape != logits.shape) {
        fail(ErrorKind::Value, "[{}] target must have the shape of logits (logits: {}, target: {})", name,
             text(logits), text(target));
      }
      const size_t axis = class_axis(logits.shape, call.attribute<int64_t>(0), name);
      check_weight(call, logits.shape[axis]);
      TensorType each{logits.dtype, Layout::RowMajor, logits.shape};
      each.shape.erase(static_cast<uint32_t>(axis));
      call.results.push_back(reduced_type(name, each, call.attribute<std::string>(2)));
    },
    .lower = composite([](const CompositeCall& call) {
      const Tensor logits = call[0];
      const size_t axis = class_axis(logits.shape(), call.attribute<int64_t>(0), "cross_entropy");
      const Axes axes{static_cast<int64_t>(axis)};
      Tensor target = ops::cast(call[1], logits.dtype());
      if (const double smoothing = call.attribute<double>(1); smoothing != 0) {
        const Tensor classes = ops::size_as(logits.dtype(), logits.shape(), axes);
        target = target * (1 - smoothing) + smoothing / classes;
      }
      if (call.size() > 2) {
        target = target * ops::reshape(ops::cast(call[2], logits.dtype()), along_classes(logits.shape(), axis));
      }
      const Tensor shifted = logits - ops::stop_gradient(ops::reduce_max(logits, axes));
      const Tensor total = ops::log(ops::sum(ops::exp(shifted), axes, true));
      const Tensor loss = ops::sum(target * (total - shifted), axes);
      return std::vector{reduced(loss, call.attribute<std::string>(2))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("cross_entropy_with_probabilities(logits, target, weight, axis, label_smoothing, reduction)", 16),
    .cost = Cost{16},
    .samples = Samples{"randn(4, 5), softmax(randn(4, 5), 1)",
                       "randn(2, 5, 3), softmax(randn(2, 5, 3), 1), positive(5), label_smoothing=0.1, reduction='none'"})

LAMELLA_OP(nll_loss, (Operand log_probabilities, Operand labels, OptionalOperand weight, int64_t axis = 1,
                      int64_t ignore_index = -100, std::string reduction = "mean"),
    .doc = "-log_probabilities at each label, times the weight of its class; ignored labels and the mean "
           "as in cross_entropy.",
    .accepts = kFloats, .accepts_each = {kFloats, kIndices, kFloats},
    .infer = infer_class_loss<2>,
    .lower = composite([](const CompositeCall& call) {
      const Classes classes = classes_of(call, call.attribute<int64_t>(1), "nll_loss");
      Tensor loss = -classes.at_label(call[0]);
      if (classes.weight.defined()) loss = loss * classes.at_label(classes.weight);
      return std::vector{finish_class_loss(call, classes, loss, call.attribute<std::string>(2))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("nll_loss(log_probabilities, labels, weight, axis, ignore_index, reduction)", 8),
    .cost = Cost{4},
    .samples = Samples{"-positive(4, 5), labels(4, below=5)",
                       "-positive(2, 5, 3), labels(2, 3, below=5), positive(5), reduction='none'"})

LAMELLA_OP(mse_loss, (Operand x, Operand target, std::string reduction = "mean"),
    .doc = "(x - target)^2.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{reduced(ops::square(call[0] - call[1]), call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("reduced((x - target) ** 2, reduction)", 16), .cost = Cost{3},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(3, 5), randn(5), reduction='none'"})

LAMELLA_OP(l1_loss, (Operand x, Operand target, std::string reduction = "mean"),
    .doc = "|x - target|.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      return std::vector{reduced(ops::abs(call[0] - call[1]), call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("reduced(np.abs(x - target), reduction)", 16), .cost = Cost{3},
    .samples = Samples{"randn(3, 5), randn(3, 5)", "randn(3, 5), randn(5), reduction='sum'"})

LAMELLA_OP(smooth_l1_loss, (Operand x, Operand target, Operand beta, std::string reduction = "mean"),
    .doc = "d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor distance = ops::abs(call[0] - call[1]), beta = call[2];
      // Not divided where it is not taken, so that beta = 0 is the plain distance.
      const Tensor near = ops::less(distance, beta);
      const Tensor curved = ops::square(distance) * 0.5 / ops::where(near, beta, 1.0);
      return std::vector{reduced(ops::where(near, curved, distance - beta * 0.5), call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("smooth_l1(x, target, beta, reduction)", 16), .cost = Cost{7},
    .samples = Samples{"randn(3, 5), randn(3, 5), 1.0", "randn(3, 5), randn(5), 0.5, reduction='none'"})

LAMELLA_OP(huber_loss, (Operand x, Operand target, Operand delta, std::string reduction = "mean"),
    .doc = "d^2 / 2 where d = |x - target| <= delta, else delta (d - delta / 2).",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor distance = ops::abs(call[0] - call[1]), delta = call[2];
      const Tensor loss = ops::where(ops::less_equal(distance, delta), ops::square(distance) * 0.5,
                                     delta * (distance - delta * 0.5));
      return std::vector{reduced(loss, call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("huber(x, target, delta, reduction)", 16), .cost = Cost{7},
    .samples = Samples{"randn(3, 5), randn(3, 5), 1.0", "randn(3, 5), randn(5), 0.5, reduction='none'"})

LAMELLA_OP(binary_cross_entropy, (Operand x, Operand target, Operand weight, std::string reduction = "mean"),
    .doc = "-(target log(x) + (1 - target) log(1 - x)) times weight; the logarithms are held above -100.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor hit = ops::clamp_min(ops::log(call[0]), -100.0);
      const Tensor miss = ops::clamp_min(ops::log1p(-call[0]), -100.0);
      const Tensor loss = -(call[1] * hit + (1.0 - call[1]) * miss);
      return std::vector{reduced(loss * call[2], call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("reduced(-(target * np.log(x) + (1 - target) * np.log1p(-x)) * weight, reduction)", 16),
    .cost = Cost{28},
    .samples = Samples{"rand(3, 5) * 0.8 + 0.1, rand(3, 5), 1.0", "rand(3, 5) * 0.8 + 0.1, rand(3, 5), positive(5), reduction='none'"})

LAMELLA_OP(binary_cross_entropy_with_logits, (Operand logits, Operand target, Operand weight, Operand pos_weight,
                                              std::string reduction = "mean"),
    .doc = "binary_cross_entropy of sigmoid(logits), without overflow; the term of the target is times "
           "pos_weight, the whole times weight.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<0>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor x = call[0], target = call[1];
      const Tensor emphasis = (call[3] - 1.0) * target + 1.0;
      const Tensor loss = (1.0 - target) * x + emphasis * ops::softplus(-x);
      return std::vector{reduced(loss * call[2], call.attribute<std::string>(0))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("bce_with_logits(logits, target, weight, pos_weight, reduction)", 32), .cost = Cost{26},
    .samples = Samples{"randn(3, 5), rand(3, 5), 1.0, 1.0", "randn(3, 5), rand(3, 5), positive(5), positive(5), reduction='none'"})

LAMELLA_OP(kl_div, (Operand log_probabilities, Operand target, bool log_target = false, std::string reduction = "mean"),
    .doc = "target (log(target) - log_probabilities), the divergence of Kullback and Leibler; with "
           "log_target the target is given as its logarithm.",
    .accepts = kFloats, .promotion = Promotion::Common, .infer = infer_elementwise_loss<1>,
    .lower = composite([](const CompositeCall& call) {
      const Tensor target = call[1];
      const Tensor loss = call.attribute<bool>(0) ? ops::exp(target) * (target - call[0])
                                                  : ops::xlogy(target, target) - target * call[0];
      return std::vector{reduced(loss, call.attribute<std::string>(1))};
    }),
    .vjp = from_composite,
    .batch = batch::through_composite,
    .reference = numpy("kl_div(log_probabilities, target, log_target, reduction)", 32), .cost = Cost{14},
    .samples = Samples{"-positive(3, 5), positive(3, 5)", "-positive(3, 5), -positive(3, 5), log_target=True, reduction='sum'"})

}  // namespace lamella
