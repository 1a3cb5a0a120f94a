// Counting by class, and errors of numbers.
#include "lamella/train/class_metrics.h"

#include <numeric>

#include "lamella/ops/functions.h"
#include "lamella/ops/tensor_operators.h"
#include "lamella/train/metric_inputs.h"

namespace lamella::train {

namespace {

double quotient(double a, double b) {
  return b == 0 ? 0 : a / b;
}

// Adds a column of counts, [C], onto the sums.
void add(std::vector<int64_t>& sums, const Tensor& counts) {
  const std::vector<int64_t> batch = ops::cast(counts, DType::Int64).to_vector<int64_t>();
  if (sums.empty()) sums.resize(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) sums[i] += batch[i];
}

// 1 where a row is of the class of a column.
Tensor one_hot(const Tensor& classes, int64_t count) {
  return ops::equal(ops::expand_dims(classes, -1),
                    ops::arange(int64_t{0}, int64_t{1}, Shape{count}, DType::Int32));
}

}  // namespace

void ClassMetric::update(const std::vector<Tensor>& inputs) {
  require_two(name_, inputs);
  const Tensor &outputs = inputs[0], &labels = inputs[1];
  if (outputs.rank() != 2) {
    fail(ErrorKind::Value, "[{}] outputs must have 2 axes, got {}", name_, text(outputs.type()));
  }
  const int64_t count = outputs.size(1).value();
  if (!counts_.actual.empty() && counts_.actual.size() != static_cast<size_t>(count)) {
    fail(ErrorKind::Value, "[{}] outputs have {} classes, those before had {}", name_, count,
         counts_.actual.size());
  }
  Tensor predicted, actual;
  if (kind_ == AccuracyKind::Multilabel) {
    if (labels.shape() != outputs.shape()) {
      fail(ErrorKind::Value, "[{}] labels {} do not fit outputs {}", name_, text(labels.type()),
           text(outputs.type()));
    }
    predicted = ops::not_equal(outputs, 0.0), actual = ops::not_equal(labels, int64_t{0});
  } else {
    predicted = one_hot(ops::argmax(outputs, 1), count);
    actual = one_hot(class_numbers(outputs, labels, name_), count);
  }
  add(counts_.hits, ops::sum(ops::logical_and(predicted, actual), {0}));
  add(counts_.predicted, ops::sum(predicted, {0}));
  add(counts_.actual, ops::sum(actual, {0}));
}

std::vector<double> ClassMetric::each_class() const {
  if (counts_.actual.empty()) {
    fail(ErrorKind::Value, "[{}] there is no figure before the first batch", name_);
  }
  std::vector<double> figures;
  for (size_t i = 0; i < counts_.actual.size(); ++i) {
    figures.push_back(figure(static_cast<double>(counts_.hits[i]),
                             static_cast<double>(counts_.predicted[i]),
                             static_cast<double>(counts_.actual[i])));
  }
  return figures;
}

double ClassMetric::eval() {
  const std::vector<double> figures = each_class();
  return std::accumulate(figures.begin(), figures.end(), 0.0) / static_cast<double>(figures.size());
}

double Precision::figure(double hits, double predicted, double) const {
  return quotient(hits, predicted);
}

double Recall::figure(double hits, double, double actual) const {
  return quotient(hits, actual);
}

Fbeta::Fbeta(double beta) : ClassMetric("Fbeta", AccuracyKind::Classification), beta_(beta) {
  if (!(beta > 0)) fail(ErrorKind::Value, "[Fbeta] beta must be above 0, got {}", beta);
}

double Fbeta::figure(double hits, double predicted, double actual) const {
  const double square = beta_ * beta_;
  return quotient((1 + square) * hits, square * actual + predicted);
}

ConfusionMatrix::ConfusionMatrix(int64_t classes, Normalize normalize, double threshold)
    : classes_(classes), normalize_(normalize), threshold_(threshold) {
  if (classes < 2) {
    fail(ErrorKind::Value, "[ConfusionMatrix] num_classes must be at least 2, got {}", classes);
  }
}

void ConfusionMatrix::clear() {
  counts_.clear();
}

void ConfusionMatrix::update(const std::vector<Tensor>& inputs) {
  require_two("ConfusionMatrix", inputs);
  const Tensor& outputs = inputs[0];
  const bool chooses = outputs.rank() == 2;
  const Tensor predicted = chooses ? ops::argmax(outputs, 1) : ops::greater(outputs, threshold_);
  const Tensor actual = chooses ? class_numbers(outputs, inputs[1], "ConfusionMatrix") : inputs[1];
  const auto numbers = [](const Tensor& tensor) {
    return ops::cast(ops::flatten(tensor), DType::Int64).to_vector<int64_t>();
  };
  const std::vector<int64_t> rows = numbers(actual), columns = numbers(predicted);
  if (rows.size() != columns.size()) {
    fail(ErrorKind::Value, "[ConfusionMatrix] labels {} do not fit outputs {}",
         text(inputs[1].type()), text(outputs.type()));
  }
  std::vector<int64_t> counts(static_cast<size_t>(classes_ * classes_));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const int64_t number : {rows[i], columns[i]}) {
      if (number >= 0 && number < classes_) continue;
      fail(ErrorKind::Index, "[ConfusionMatrix] class {} is out of range for num_classes {}",
           number, classes_);
    }
    ++counts[static_cast<size_t>(rows[i] * classes_ + columns[i])];
  }
  if (counts_.empty()) counts_.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
}

std::vector<double> ConfusionMatrix::matrix() const {
  if (counts_.empty()) {
    fail(ErrorKind::Value, "[ConfusionMatrix] there is no figure before the first batch");
  }
  const auto n = static_cast<size_t>(classes_);
  std::vector<double> rows(n), columns(n), matrix;
  for (size_t i = 0; i < counts_.size(); ++i) {
    rows[i / n] += static_cast<double>(counts_[i]);
    columns[i % n] += static_cast<double>(counts_[i]);
  }
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double by = normalize_ == Normalize::None    ? 1
                      : normalize_ == Normalize::All   ? all
                      : normalize_ == Normalize::Truth ? rows[i / n]
                                                       : columns[i % n];
    matrix.push_back(quotient(static_cast<double>(counts_[i]), by));
  }
  return matrix;
}

double ConfusionMatrix::eval() {
  (void)matrix();  // throws before a first batch
  int64_t right = 0;
  for (int64_t i = 0; i < classes_; ++i) right += counts_[static_cast<size_t>(i * classes_ + i)];
  return quotient(static_cast<double>(right),
                  static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), int64_t{0})));
}

namespace {

Tensor difference(std::string_view metric, const std::vector<Tensor>& inputs) {
  require_two(metric, inputs);
  if (inputs[0].shape() != inputs[1].shape() || inputs[0].rank() == 0) {
    fail(ErrorKind::Value, "[{}] labels {} do not fit outputs {}", metric, text(inputs[1].type()),
         text(inputs[0].type()));
  }
  return ops::cast(inputs[0], DType::Float64) - ops::cast(inputs[1], DType::Float64);
}

}  // namespace

void ErrorMetric::update(const std::vector<Tensor>& inputs) {
  sum_ += ops::sum(errors(difference(name_, inputs))).item();
  samples_ += inputs[0].size(0).value();
}

double ErrorMetric::eval() {
  if (samples_ == 0) {
    fail(ErrorKind::Value, "[{}] there is no figure before the first batch", name_);
  }
  return sum_ / static_cast<double>(samples_);
}

Tensor MAE::errors(const Tensor& difference) const {
  return ops::abs(difference);
}

Tensor MSE::errors(const Tensor& difference) const {
  return ops::square(difference);
}

}  // namespace lamella::train
