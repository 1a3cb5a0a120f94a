// Activations as layers; each computes the operator of its name in lamella/ops, on a float tensor
// of any shape.
#pragma once

#include "lamella/nn/cell.h"

namespace lamella::nn {

#define LAMELLA_ACTIVATION(Name)                \
  class LAMELLA_API Name : public Layer {       \
   public:                                      \
    std::string class_name() const override {   \
      return #Name;                             \
    }                                           \
    using Cell::construct;                      \
    Tensor construct(const Tensor& x) override; \
  };
LAMELLA_ACTIVATION(ReLU)
LAMELLA_ACTIVATION(ReLU6)
LAMELLA_ACTIVATION(Sigmoid)
LAMELLA_ACTIVATION(Tanh)
LAMELLA_ACTIVATION(SiLU)
LAMELLA_ACTIVATION(Mish)
LAMELLA_ACTIVATION(HSigmoid)
LAMELLA_ACTIVATION(HSwish)
LAMELLA_ACTIVATION(LogSigmoid)
LAMELLA_ACTIVATION(SeLU)
LAMELLA_ACTIVATION(SoftSign)
LAMELLA_ACTIVATION(Softplus)
LAMELLA_ACTIVATION(Tanhshrink)
LAMELLA_ACTIVATION(Identity)
#undef LAMELLA_ACTIVATION

// Activations with one number: its meaning is that of the operator's argument.
#define LAMELLA_ACTIVATION_WITH(Name, argument, fallback)                \
  class LAMELLA_API Name : public Layer {                                \
   public:                                                               \
    explicit Name(double argument = fallback) : argument##_(argument) {} \
    std::string class_name() const override {                            \
      return #Name;                                                      \
    }                                                                    \
    std::string description() const override;                            \
    using Cell::construct;                                               \
    Tensor construct(const Tensor& x) override;                          \
                                                                         \
   private:                                                              \
    double argument##_;                                                  \
  };
LAMELLA_ACTIVATION_WITH(LeakyReLU, alpha, 0.2)
LAMELLA_ACTIVATION_WITH(ELU, alpha, 1.0)
LAMELLA_ACTIVATION_WITH(CELU, alpha, 1.0)
LAMELLA_ACTIVATION_WITH(HShrink, lambd, 0.5)
LAMELLA_ACTIVATION_WITH(SoftShrink, lambd, 0.5)
#undef LAMELLA_ACTIVATION_WITH

// x times the normal distribution function of x, as a rule in its tanh form.
enum class GeluForm : uint8_t { Tanh, Exact };
class LAMELLA_API GELU : public Layer {
 public:
  explicit GELU(GeluForm form = GeluForm::Tanh) : form_(form) {}
  std::string class_name() const override { return "GELU"; }
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  GeluForm form_;
};

class LAMELLA_API Softmax : public Layer {
 public:
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  std::string class_name() const override { return "Softmax"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t axis_;
};

class LAMELLA_API LogSoftmax : public Layer {
 public:
  explicit LogSoftmax(int64_t axis = -1) : axis_(axis) {}
  std::string class_name() const override { return "LogSoftmax"; }
  std::string description() const override;
  using Cell::construct;
  Tensor construct(const Tensor& x) override;

 private:
  int64_t axis_;
};

// x where x > 0, else x times a trained weight: one number, or one a channel (axis 1).
class LAMELLA_API PReLU : public Layer {
 public:
  explicit PReLU(int64_t channels = 1, double weight = 0.25);
  std::string class_name() const override { return "PReLU"; }
  using Cell::construct;
  Tensor construct(const Tensor& x) override;
};

// The activation of a name ("relu", "gelu", "leakyrelu", …), or null for an empty one. Throws Value
// listing the names.
LAMELLA_API Ref<Cell> get_activation(std::string_view name);

}  // namespace lamella::nn
