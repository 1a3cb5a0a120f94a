// What the graph needs to know of an operator. The operators themselves live in lamella/ops.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/ir/attributes.h"

namespace lamella {

class Operator;

// The result types of one call: a few in place, many on the heap.
class ResultTypes {
 public:
  void push_back(const TensorType& type) {
    if (many_.empty() && few_.size() < few_.capacity()) {
      few_.push_back(type);
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(type);
  }
  size_t size() const { return many_.empty() ? few_.size() : many_.size(); }
  const TensorType* data() const { return many_.empty() ? few_.data() : many_.data(); }
  TensorType& operator[](size_t i) { return many_.empty() ? few_[i] : many_[i]; }
  const TensorType& operator[](size_t i) const { return data()[i]; }

 private:
  InlineVector<TensorType, 4> few_;
  std::vector<TensorType> many_;
};

// The arguments of a type rule: operand types and attributes in, result types out. Sizes may be
// expressions. A rule throws Error kind Type or Value whose message begins with "[operator] ".
struct InferCall {
  const Operator& op;
  std::span<const TensorType* const> operands;
  const Attributes* attributes;  // null if the operator declares none
  ResultTypes results;

  const TensorType& operand(size_t index) const { return *operands[index]; }
  template <typename T>
  const T& attribute(size_t index) const {
    return attributes->get<T>(index);
  }
};

class LAMELLA_API Operator {
 public:
  explicit Operator(std::string_view name);
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  std::string_view name() const { return name_; }
  // A number unique in this process, in order of registration.
  uint32_t id() const { return id_; }

  virtual void infer(InferCall& call) const = 0;
  // Names of the attributes, in order.
  virtual std::span<const std::string_view> attribute_names() const = 0;

 private:
  std::string_view name_;
  uint32_t id_;
};

// The operator of that name; throws Value naming close matches if there is none.
LAMELLA_API const Operator& find_operator(std::string_view name);
LAMELLA_API std::vector<const Operator*> all_operators();

}  // namespace lamella
