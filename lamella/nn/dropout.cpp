// Dropout.
#include "lamella/nn/dropout.h"

#include "lamella/ops/functions.h"
#include "lamella/ops/random.h"

namespace lamella::nn {

Dropout::Dropout(DropProbability probability) : probability_(probability.drop) {
  if (!(probability_ >= 0 && probability_ <= 1)) {
    fail(ErrorKind::Value, "[Dropout] the probability of dropping must be in [0, 1], got {}",
         probability_);
  }
}

Tensor Dropout::construct(const Tensor& x) {
  return training() && probability_ > 0 ? ops::dropout(x, probability_) : x;
}

std::string Dropout::description() const {
  return fmt::format("p={}", probability_);
}

}  // namespace lamella::nn
