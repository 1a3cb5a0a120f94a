// Metrics that count, for each class, what was predicted and what was so.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lamella/train/metric.h"

namespace lamella::train {

// The counts of each class over all batches.
struct ClassCounts {
  std::vector<int64_t> hits, predicted, actual;  // hits: predicted and so
};

// Outputs [N, C] against labels [N] or one-hot [N, C]; with Multilabel, outputs and labels of 0 and
// 1, [N, C], each column a class. Figures are one a class; `eval` gives their mean.
class LAMELLA_API ClassMetric : public Metric {
 public:
  void clear() override { counts_ = {}; }
  void update(const std::vector<Tensor>& inputs) override;
  double eval() override;
  // The figure of each class; 0 where nothing could be counted. Throws Value before a first batch.
  std::vector<double> each_class() const;

 protected:
  ClassMetric(std::string name, AccuracyKind kind) : name_(std::move(name)), kind_(kind) {}
  // The figure of a class from hits, predicted and actual.
  virtual double figure(double hits, double predicted, double actual) const = 0;

 private:
  std::string name_;
  AccuracyKind kind_;
  ClassCounts counts_;
};

// Of what was predicted to be of a class, the share that is.
class LAMELLA_API Precision : public ClassMetric {
 public:
  explicit Precision(AccuracyKind kind = AccuracyKind::Classification)
      : ClassMetric("Precision", kind) {}

 protected:
  double figure(double hits, double predicted, double actual) const override;
};

// Of what is of a class, the share that was predicted to be.
class LAMELLA_API Recall : public ClassMetric {
 public:
  explicit Recall(AccuracyKind kind = AccuracyKind::Classification) : ClassMetric("Recall", kind) {}

 protected:
  double figure(double hits, double predicted, double actual) const override;
};

// (1 + b^2) P R / (b^2 P + R) of precision P and recall R; F1 with b = 1. Throws Value unless b is
// above 0.
class LAMELLA_API Fbeta : public ClassMetric {
 public:
  explicit Fbeta(double beta = 1);

 protected:
  double figure(double hits, double predicted, double actual) const override;

 private:
  double beta_;
};

// How often each class (row) was taken for each (column).
class LAMELLA_API ConfusionMatrix : public Metric {
 public:
  // All: of all samples; Truth: of the row; Prediction: of the column.
  enum class Normalize : uint8_t { None, Truth, Prediction, All };

  // Throws Value for fewer than 2 classes. Outputs [N, C] choose the largest; of outputs [N], those
  // above the threshold are of class 1.
  explicit ConfusionMatrix(int64_t classes, Normalize normalize = Normalize::None,
                           double threshold = 0.5);
  void clear() override;
  // Throws Index for a label that is no class.
  void update(const std::vector<Tensor>& inputs) override;
  // The share of samples on the diagonal.
  double eval() override;
  // Row by row, `classes` times `classes`. Throws Value before a first batch.
  std::vector<double> matrix() const;
  int64_t classes() const { return classes_; }

 private:
  int64_t classes_;
  Normalize normalize_;
  double threshold_;
  std::vector<int64_t> counts_;
};

// The errors of outputs against labels of the same shape: their sum by the number of samples (the
// first axis).
class LAMELLA_API ErrorMetric : public Metric {
 public:
  void clear() override { sum_ = 0, samples_ = 0; }
  void update(const std::vector<Tensor>& inputs) override;
  double eval() override;

 protected:
  explicit ErrorMetric(std::string name) : name_(std::move(name)) {}
  // The error of each element from outputs - labels, in float64.
  virtual Tensor errors(const Tensor& difference) const = 0;

 private:
  std::string name_;
  double sum_ = 0;
  int64_t samples_ = 0;
};

// |outputs - labels|.
class LAMELLA_API MAE : public ErrorMetric {
 public:
  MAE() : ErrorMetric("MAE") {}

 protected:
  Tensor errors(const Tensor& difference) const override;
};

// (outputs - labels)^2.
class LAMELLA_API MSE : public ErrorMetric {
 public:
  MSE() : ErrorMetric("MSE") {}

 protected:
  Tensor errors(const Tensor& difference) const override;
};

}  // namespace lamella::train
