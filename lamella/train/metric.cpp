// How batches add up to figures.
#include "lamella/train/metric.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/train/class_metrics.h"
#include "lamella/train/metric_inputs.h"

namespace lamella::train {

void require_two(std::string_view metric, const std::vector<Tensor>& inputs) {
  if (inputs.size() != 2) {
    fail(ErrorKind::Value, "[{}] update needs outputs and labels, got {} inputs", metric,
         inputs.size());
  }
}

Tensor class_numbers(const Tensor& outputs, const Tensor& labels, std::string_view metric) {
  if (labels.rank() == outputs.rank() && labels.shape() == outputs.shape()) {
    return ops::argmax(labels, 1);
  }
  if (labels.rank() != outputs.rank() - 1) {
    fail(ErrorKind::Value, "[{}] labels {} do not fit outputs {}", metric, text(labels.type()),
         text(outputs.type()));
  }
  if (element_count(labels.shape()).value() * outputs.size(1).value() !=
      element_count(outputs.shape()).value()) {
    fail(ErrorKind::Value, "[{}] labels {} do not fit outputs {}", metric, text(labels.type()),
         text(outputs.type()));
  }
  if (element_count(labels.shape()).is(0)) return labels;
  const auto least = static_cast<int64_t>(ops::min(labels).item());
  const auto largest = static_cast<int64_t>(ops::max(labels).item());
  const int64_t classes = outputs.size(1).value();
  if (least < 0 || largest >= classes) {
    fail(ErrorKind::Index, "[{}] label {} is out of range for {} classes", metric,
         least < 0 ? least : largest, classes);
  }
  return labels;
}

namespace {

double share(std::string_view metric, int64_t right, int64_t total) {
  if (total == 0) fail(ErrorKind::Value, "[{}] there is no figure before the first batch", metric);
  return static_cast<double>(right) / static_cast<double>(total);
}

int64_t count(const Tensor& truths) {
  return static_cast<int64_t>(ops::sum(truths).item());
}

}  // namespace

void Accuracy::clear() {
  right_ = total_ = 0;
}

void Accuracy::update(const std::vector<Tensor>& inputs) {
  require_two("Accuracy", inputs);
  const Tensor &outputs = inputs[0], &labels = inputs[1];
  if (kind_ == AccuracyKind::Multilabel) {
    Axes axes;
    for (int axis = 1; axis < outputs.rank(); ++axis) axes.push_back(axis);
    const Tensor equal = ops::equal(outputs, labels);
    right_ += count(axes.empty() ? equal : ops::all(equal, axes));
    total_ += outputs.size(0).value();
    return;
  }
  const Tensor expected = class_numbers(outputs, labels, "Accuracy");
  right_ += count(ops::equal(ops::argmax(outputs, 1), expected));
  total_ += element_count(expected.shape()).value();
}

double Accuracy::eval() {
  return share("Accuracy", right_, total_);
}

void Loss::clear() {
  sum_ = 0;
  batches_ = 0;
}

void Loss::update(const std::vector<Tensor>& inputs) {
  if (inputs.size() != 1) {
    fail(ErrorKind::Value, "[Loss] update needs the loss, got {} inputs", inputs.size());
  }
  sum_ += inputs[0].rank() == 0 ? inputs[0].item() : ops::mean(inputs[0]).item();
  ++batches_;
}

double Loss::eval() {
  if (batches_ == 0) fail(ErrorKind::Value, "[Loss] there is no figure before the first batch");
  return sum_ / static_cast<double>(batches_);
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(int64_t k) : k_(k) {
  if (k < 1) fail(ErrorKind::Value, "[TopKCategoricalAccuracy] k must be at least 1, got {}", k);
}

void TopKCategoricalAccuracy::clear() {
  right_ = total_ = 0;
}

void TopKCategoricalAccuracy::update(const std::vector<Tensor>& inputs) {
  require_two("TopKCategoricalAccuracy", inputs);
  const Tensor outputs =
      is_float(inputs[0].dtype()) ? inputs[0] : ops::cast(inputs[0], DType::Float64);
  if (outputs.rank() != 2) {
    fail(ErrorKind::Value, "[TopKCategoricalAccuracy] outputs must have 2 axes, got {}",
         text(outputs.type()));
  }
  const Tensor expected =
      ops::expand_dims(class_numbers(outputs, inputs[1], "TopKCategoricalAccuracy"), 1);
  // The label is among the k largest if fewer than k outputs beat its own.
  const Tensor is_label = ops::equal(ops::element_numbers({1, outputs.size(1)}), expected);
  const Tensor own = ops::sum(ops::where(is_label, outputs, 0.0), {1}, true);
  // Of equal outputs the first is the largest, as in argmax; NaN is larger than any number.
  const Tensor numbers = ops::element_numbers({1, outputs.size(1)});
  const Tensor earlier = ops::logical_and(ops::equal(outputs, own), ops::less(numbers, expected));
  const Tensor beats =
      ops::logical_or(ops::greater(outputs, own), ops::logical_or(earlier, ops::isnan(outputs)));
  const Tensor better = ops::sum(beats, {1});
  const Tensor is_number = ops::equal(ops::squeeze(own, {1}), ops::squeeze(own, {1}));
  right_ += count(ops::logical_and(ops::less(better, k_), is_number));
  total_ += outputs.size(0).value();
}

double TopKCategoricalAccuracy::eval() {
  return share("TopKCategoricalAccuracy", right_, total_);
}

namespace {

using Make = Ref<Metric> (*)();

template <typename M>
Ref<Metric> made() {
  return Ref<Metric>(new M);
}

constexpr std::pair<std::string_view, Make> kMetrics[] = {
    {"accuracy", made<Accuracy>},
    {"acc", made<Accuracy>},
    {"precision", made<Precision>},
    {"recall", made<Recall>},
    {"F1", made<Fbeta>},
    {"loss", made<Loss>},
    {"mae", made<MAE>},
    {"mse", made<MSE>},
    {"top_1_accuracy", [] { return Ref<Metric>(new TopKCategoricalAccuracy(1)); }},
    {"top_5_accuracy", [] { return Ref<Metric>(new TopKCategoricalAccuracy(5)); }},
};

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kMetrics) names.emplace_back(name);
  return names;
}

Ref<Metric> get_metric(const std::string& name) {
  for (const auto& [known, make] : kMetrics) {
    if (known == name) return make();
  }
  fail(ErrorKind::Value, "[metrics] there is no metric '{}'; there are {}", name,
       fmt::join(metric_names(), ", "));
}

}  // namespace lamella::train
