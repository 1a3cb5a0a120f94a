// Metrics: figures over a whole dataset, from the outputs of each batch.
#pragma once

#include <map>
#include <string>

#include "lamella/base/object.h"
#include "lamella/ir/tensor.h"

namespace lamella::train {

class LAMELLA_API Metric : public Object {
 public:
  virtual void clear() = 0;
  // Takes in one batch: by default what WithEvalCell gives without the loss, (outputs, label).
  virtual void update(const std::vector<Tensor>& inputs) = 0;
  // The figure so far. Throws Value if there was no batch.
  virtual double eval() = 0;
  // Whether `update` is given the loss instead of outputs and label.
  virtual bool takes_loss() const { return false; }
};

// What predictions are: one class a sample, or any number of labels.
enum class AccuracyKind : uint8_t { Classification, Multilabel };

// The share of right predictions. Classification: outputs [N, C, ...] against labels [N, ...] or
// one-hot [N, C, ...]. Multilabel: outputs and labels of 0 and 1, a sample counts if all agree.
class LAMELLA_API Accuracy : public Metric {
 public:
  explicit Accuracy(AccuracyKind kind = AccuracyKind::Classification) : kind_(kind) {}
  void clear() override;
  void update(const std::vector<Tensor>& inputs) override;
  double eval() override;

 private:
  AccuracyKind kind_;
  int64_t right_ = 0, total_ = 0;
};

// The mean loss of the batches.
class LAMELLA_API Loss : public Metric {
 public:
  void clear() override;
  void update(const std::vector<Tensor>& inputs) override;
  double eval() override;
  bool takes_loss() const override { return true; }

 private:
  double sum_ = 0;
  int64_t batches_ = 0;
};

// The share of samples whose label is among the k largest outputs.
class LAMELLA_API TopKCategoricalAccuracy : public Metric {
 public:
  explicit TopKCategoricalAccuracy(int64_t k);
  void clear() override;
  void update(const std::vector<Tensor>& inputs) override;
  double eval() override;

 private:
  int64_t k_;
  int64_t right_ = 0, total_ = 0;
};

using Metrics = std::map<std::string, Ref<Metric>>;

// The names that get_metric knows.
LAMELLA_API std::vector<std::string> metric_names();
// A metric by its name: "accuracy", "precision", "F1", "loss", ... Throws Value listing them.
LAMELLA_API Ref<Metric> get_metric(const std::string& name);

}  // namespace lamella::train
