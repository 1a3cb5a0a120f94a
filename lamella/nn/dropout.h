// Dropout.
#pragma once

#include "lamella/nn/cell.h"

namespace lamella::nn {

// The probability that an element is set to 0, stated either way round.
struct DropProbability {
  double drop = 0.5;
  static DropProbability of_keeping(double keep_prob) { return {1 - keep_prob}; }
  static DropProbability of_dropping(double p) { return {p}; }
};

// Srivastava et al., "Dropout", 2014: in training, elements are set to 0 at random and the others
// divided by the probability of keeping one; otherwise x as it is. Throws Value for a probability
// outside [0, 1].
class LAMELLA_API Dropout : public Layer {
 public:
  explicit Dropout(DropProbability probability = {});
  std::string class_name() const override { return "Dropout"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  double probability_;
};

}  // namespace lamella::nn
