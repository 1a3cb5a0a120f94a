// A count that is part of a run's state: a parameter for checkpoints, and its value at hand.
#pragma once

#include <string>

#include "lamella/nn/parameter.h"

namespace lamella::optim {

// Which value of a parameter was read: another one means that it was written or replaced since, by
// a checkpoint that was loaded or a failed run that put the earlier value back.
struct SeenValue {
  const Storage* storage = nullptr;
  uint64_t version = 0;

  static SeenValue of(const nn::Parameter& parameter) {
    return {parameter.tensor().storage().get(), parameter.tensor().storage()->version()};
  }
  friend bool operator==(const SeenValue&, const SeenValue&) = default;
};

// The parameter is int32 of shape (1), and not trained. Reading it costs nothing as long as only
// `set` writes it.
class LAMELLA_API StepCounter {
 public:
  // A counter of 0. The parameter is the caller's, who may keep another under its name.
  static Ref<nn::Parameter> make_parameter(const std::string& name);

  int64_t value(const nn::Parameter& parameter);
  // Records that the parameter gets `value`, in order with the operations of the step.
  void set(const nn::Parameter& parameter, int64_t value);

 private:
  int64_t value_ = 0;
  SeenValue seen_;
};

}  // namespace lamella::optim
