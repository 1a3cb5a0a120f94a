// The declaration of an operator: all its rules in one place. See docs/adding_an_operator.md.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "lamella/device/tensor_view.h"
#include "lamella/ir/recorder.h"
#include "lamella/ir/tensor.h"
#include "lamella/kernels/scratch.h"
#include "lamella/ops/batching.h"
#include "lamella/ops/parameter.h"
#include "lamella/tile/builder.h"

namespace lamella {

class OpDef;

// A field that every declaration must give: leaving it out does not compile.
template <typename T>
struct Required {
  Required() = delete;
  template <typename U>
    requires std::is_constructible_v<T, U&&>
  Required(U&& given) : value(std::forward<U>(given)) {}  // NOLINT: meant to be implicit
  T value;
};

// ---- Accepted dtypes and promotion ----

struct DTypeSet {
  uint32_t bits = 0;
  constexpr bool has(DType dtype) const { return (bits >> static_cast<int>(dtype)) & 1u; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) { return {a.bits | b.bits}; }
  static constexpr DTypeSet of(std::initializer_list<DType> dtypes) {
    DTypeSet set;
    for (DType dtype : dtypes) set.bits |= 1u << static_cast<int>(dtype);
    return set;
  }
};

inline constexpr DTypeSet kFloats =
    DTypeSet::of({DType::Float16, DType::BFloat16, DType::Float32, DType::Float64});
inline constexpr DTypeSet kIntegers =
    DTypeSet::of({DType::Int8, DType::UInt8, DType::Int16, DType::Int32, DType::Int64});
inline constexpr DTypeSet kBool = DTypeSet::of({DType::Bool});
inline constexpr DTypeSet kNumbers = kFloats | kIntegers;
inline constexpr DTypeSet kAnyDType = kNumbers | kBool;
inline constexpr DTypeSet kIndices = DTypeSet::of({DType::Int32, DType::Int64});

// What happens to the operands' dtypes before the node is made.
enum class Promotion : uint8_t {
  None,      // operands stay as they are; a number becomes int64, float32 or bool
  Common,    // all take their common dtype
  Float,     // all take their common dtype, integers and bool become float32
  Branches,  // the first operand stays (a condition), the others take their common dtype
  First,     // all take the first operand's dtype
};

// ---- Rules ----

using Infer = void (*)(InferCall&);

// A node in the graph being compiled, or a call of a composite: operands as tensors.
struct CompositeCall {
  const Node& node;
  std::vector<Tensor> operands;

  const Tensor& operator[](size_t index) const { return operands[index]; }
  size_t size() const { return operands.size(); }
  const TensorType& result_type(size_t index = 0) const { return node.result(index)->type(); }
  template <typename T>
  const T& attribute(size_t index) const {
    return node.attribute<T>(index);
  }
};

using CompositeFunction = std::vector<Tensor> (*)(const CompositeCall&);
using TileFunction = tile::ValueId (*)(tile::Builder&, std::span<const tile::ValueId> operands,
                                       const Node&);

// How a view's elements lie in its operand: along each result axis, which operand axis moves (-1:
// none, the element repeats) and by how many steps; from which element on.
struct ViewMap {
  InlineVector<int8_t, kMaxRank> source_axis;
  InlineVector<int64_t, kMaxRank> step;
  // Where the view begins on each operand axis: a static start, plus operand `dynamic_start[axis]`
  // of the node (a number) unless that is -1.
  Shape start;
  InlineVector<int8_t, kMaxRank> dynamic_start;
  // Instead of all that: the same elements in row-major order under another shape.
  bool reshape = false;
};
using ViewFunction = ViewMap (*)(const Node&);

struct KernelCall {
  const Node& node;
  std::span<const TensorView> operands;  // a number operand has rank 0 and points to its bits
  std::span<const TensorView> results;
  kernels::Scratch scratch;

  template <typename T>
  const T& attribute(size_t index) const {
    return node.attribute<T>(index);
  }
  // The value of a number operand.
  template <typename T>
  T number(size_t index) const {
    return *static_cast<const T*>(operands[index].data);
  }
};

struct KernelRule {
  void (*run)(const KernelCall&) = nullptr;
  // Bytes of scratch memory; sees sizes and strides, not data. Null: none.
  int64_t (*scratch_bytes)(const KernelCall&) = nullptr;
  // Whether operands may be strided views; otherwise they are made dense in their own layout first.
  bool strided_operands = false;
  // Whether running can fail because of data (an index out of range).
  bool may_fail = false;
};

struct ReductionRule {
  tile::Opcode opcode;
};

// Operators whose regions are compiled as graphs of their own: the runtime runs them in turn.
enum class Control : uint8_t { Scan, Branch, While, WhileBackward };

enum class LoweringKind : uint8_t { Composite, Tile, Reduction, Index, View, Kernel, Control };

// How an operator becomes code.
struct Lowering {
  LoweringKind kind;
  CompositeFunction composite = nullptr;
  // Whether 16-bit floats keep their dtype inside a composite.
  bool keeps_precision = false;
  TileFunction tile = nullptr;
  ReductionRule reduction{};
  ViewFunction view = nullptr;
  KernelRule kernel{};
  Control control{};
};

// Other operators; float16 and bfloat16 operands are computed in float32 inside and the result is
// rounded once.
inline Lowering composite(CompositeFunction function) {
  return {.kind = LoweringKind::Composite, .composite = function};
}
// Other operators that only move elements, or whose kernels accumulate in float32 by themselves:
// nothing is computed that would need more precision inside.
inline Lowering composite_of_moves(CompositeFunction function) {
  return {.kind = LoweringKind::Composite, .composite = function, .keeps_precision = true};
}
// One instruction an element, or a few.
inline Lowering tile_instructions(TileFunction function) {
  return {.kind = LoweringKind::Tile, .tile = function};
}
template <tile::Opcode opcode>
Lowering tile_opcode() {
  return tile_instructions([](tile::Builder& builder, std::span<const tile::ValueId> operands,
                              const Node&) -> tile::ValueId {
    if (operands.size() == 1) return builder.apply(opcode, operands[0]);
    if (operands.size() == 2) return builder.apply(opcode, operands[0], operands[1]);
    return builder.apply(opcode, operands[0], operands[1], operands[2]);
  });
}
inline Lowering tile_reduction(tile::Opcode opcode) {
  return {.kind = LoweringKind::Reduction, .reduction = {opcode}};
}
// The row-major number of each element of the result (attribute 0: Shape), as int64.
inline Lowering element_numbers() {
  return {.kind = LoweringKind::Index};
}
inline Lowering view(ViewFunction function) {
  return {.kind = LoweringKind::View, .view = function};
}
inline Lowering kernel(KernelRule rule) {
  return {.kind = LoweringKind::Kernel, .kernel = rule};
}

inline Lowering control(Control form) {
  return {.kind = LoweringKind::Control, .control = form};
}

// A call of an operator's gradient rule: gives each operand's cotangent from those of the results.
class LAMELLA_API VjpCall {
 public:
  VjpCall(const Node& node, std::vector<Tensor> cotangents, std::vector<bool> needed);

  const Node& node() const { return node_; }
  Tensor operand(size_t index) const { return Tensor(node_.operands()[index]); }
  Tensor result(size_t index = 0) const { return Tensor(node_.results()[index]); }
  template <typename T>
  const T& attribute(size_t index) const {
    return node_.attribute<T>(index);
  }
  // The cotangent of a result; zeros if nothing depends on it.
  Tensor cotangent(size_t index = 0) const;
  bool has_cotangent(size_t index) const { return cotangents_[index].defined(); }
  // Whether someone asks for the gradient of this operand.
  bool needs(size_t operand) const { return needed_[operand]; }
  // Gives the cotangent of an operand; summed over the axes along which the operand was broadcast.
  void give(size_t operand, const Tensor& cotangent);

  std::vector<Tensor>& gradients() { return gradients_; }

 private:
  const Node& node_;
  std::vector<Tensor> cotangents_;
  std::vector<bool> needed_;
  std::vector<Tensor> gradients_;
};

using VjpFunction = void (*)(VjpCall&);

struct Gradient {
  VjpFunction function = nullptr;
  bool through_composite = false;
  std::string_view why_not;  // the reason there is none
};

// The gradient of the operators the composite is made of.
inline constexpr Gradient from_composite{.through_composite = true};
inline constexpr Gradient not_differentiable(std::string_view reason) {
  return {.why_not = reason};
}
inline constexpr Gradient vjp(VjpFunction function) {
  return {.function = function};
}

// An independent definition for the tests: a NumPy expression over the parameters' names, computed
// in float64. `np` and the helper names of tests/conformance/reference.py may be used.
struct Reference {
  std::string_view numpy;
  // The largest error accepted, in units of the last place of the result's dtype.
  double ulp = 4;
};
inline constexpr Reference numpy(std::string_view expression, double ulp = 4) {
  return {expression, ulp};
}

// Sample arguments for the tests, as Python text: "randn(3, 5), axis=1".
using Samples = std::vector<std::string_view>;

// An estimate of the work: floating-point operations for each element of the result; kernels whose
// work is not proportional to it give a function.
struct Cost {
  double flops_per_element = 1;
  double (*flops)(const Node&) = nullptr;
};

// ---- The declaration ----

struct OpFields {
  Required<std::string_view> doc;
  Required<DTypeSet> accepts;  // the dtype of operands, after promotion
  Promotion promotion = Promotion::None;
  // For operators whose operands have different jobs (data and indices): the dtypes each accepts.
  std::vector<DTypeSet> accepts_each = {};
  Required<Infer> infer;
  Required<Lowering> lower;
  Required<Gradient> vjp;
  Required<Batching> batch;
  Required<Reference> reference;
  Required<Cost> cost;
  Required<Samples> samples;
};

class LAMELLA_API OpDef final : public Operator {
 public:
  // `parameters` is the C++ text of the parameter list.
  OpDef(std::string_view name, std::string_view parameters, OpFields fields);

  const OpFields& fields() const { return fields_; }
  const Lowering& lowering() const { return fields_.lower.value; }
  std::span<const Parameter> parameters() const { return parameters_; }

  void infer(InferCall& call) const override { fields_.infer.value(call); }
  std::span<const std::string_view> attribute_names() const override { return attribute_names_; }
  // The dtypes operand `index` accepts.
  DTypeSet accepted(size_t index) const;

 private:
  OpFields fields_;
  std::vector<Parameter> parameters_;
  std::vector<std::string_view> attribute_names_;
};

inline const OpDef& opdef(const Operator& op) {
  return static_cast<const OpDef&>(op);
}
inline const OpDef& opdef(const Node& node) {
  return opdef(node.op());
}

// Calls an operator: promotes and checks the operands, infers the result types, records the node.
// An operand that is left out is skipped.
LAMELLA_API Results call_operator(const OpDef& op, std::span<const Operand* const> operands,
                                  Ref<const Attributes> attributes);

// Declares an operator with one result (LAMELLA_OP) or several (LAMELLA_OP_MULTI); its C++ function
// lamella::ops::name(parameters) is generated from this line.
#define LAMELLA_OP(op_name, parameters, ...) \
  extern const OpDef op_name##_definition;   \
  const OpDef op_name##_definition(#op_name, #parameters, OpFields{__VA_ARGS__});
#define LAMELLA_OP_MULTI LAMELLA_OP

}  // namespace lamella
