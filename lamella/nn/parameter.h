// Parameter: a named tensor that a network owns and an optimizer writes.
#pragma once

#include <string>
#include <vector>

#include "lamella/base/object.h"
#include "lamella/ir/tensor.h"

namespace lamella::nn {

// What an optimizer and a parallel context may do with a parameter.
struct ParameterOptions {
  bool requires_grad = true;        // whether it is trained
  bool layerwise_parallel = false;  // whether data parallelism leaves its gradient alone
  bool parallel_optimizer = true;   // whether optimizer sharding may split it
};

// Grows with every change of a cell's parts, modes or hooks, and of what a parameter is for: who
// has seen the number need not look again until it is another.
LAMELLA_API uint64_t changes();
LAMELLA_API void note_change();

class LAMELLA_API Parameter : public Object {
 public:
  // The name a parameter has until one is given; a Cell then gives that of its attribute.
  static constexpr std::string_view kUnnamed = "Parameter";

  // Has a Storage of its own: writing the parameter leaves `value`'s other handles alone. Throws
  // Value if `value` holds nothing.
  explicit Parameter(const Tensor& value, std::string name = std::string(kUnnamed),
                     ParameterOptions options = {});

  // The handle on the value: operators read it, `assign` writes it, and whoever holds a copy of it
  // sees every write.
  const Tensor& tensor() const { return tensor_; }
  const TensorType& type() const { return tensor_.type(); }
  const Shape& shape() const { return tensor_.shape(); }
  DType dtype() const { return tensor_.dtype(); }

  const std::string& name() const { return name_; }
  void set_name(std::string name);
  bool requires_grad() const { return options_.requires_grad; }
  void set_requires_grad(bool requires_grad) {
    options_.requires_grad = requires_grad;
    note_change();
  }
  const ParameterOptions& options() const { return options_; }
  void set_options(ParameterOptions options) { options_ = options; }

  // Writes a value of the same shape, cast to the parameter's dtype if it has another. Throws Value
  // naming the parameter and both shapes.
  void set_data(const Tensor& value) const;

 private:
  void label() const;

  Tensor tensor_;
  std::string name_;
  ParameterOptions options_;
};

using Parameters = std::vector<Ref<Parameter>>;

}  // namespace lamella::nn
