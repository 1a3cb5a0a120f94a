// The number protocol, each slot one call of an operator.
#include "python/src/tensor_arithmetic.h"

#include <array>

#include "python/src/arguments.h"
#include "python/src/errors.h"
#include "python/src/source_location.h"
#include "python/src/tensor_object.h"

#include "lamella/ops/opdef.h"

namespace lamella::python {

namespace {

enum Slot : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDivide,
  kMod,
  kPow,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kNeg,
  kAbs,
  kNot,
  kSlotCount
};

constexpr std::array<std::string_view, kSlotCount> kOperatorNames = {
    "add",         "sub",           "mul",        "div",         "floor_divide",
    "mod",         "pow",           "matmul",     "bitwise_and", "bitwise_or",
    "bitwise_xor", "less",          "less_equal", "equal",       "not_equal",
    "greater",     "greater_equal", "neg",        "abs",         "bitwise_not"};

const OpDef& operator_of(Slot slot) {
  static const auto table = [] {
    std::array<const OpDef*, kSlotCount> made{};
    for (size_t i = 0; i < kSlotCount; ++i) made[i] = &opdef(find_operator(kOperatorNames[i]));
    return made;
  }();
  return *table[slot];
}

// Null without an error if an operand is neither tensor nor number.
PyObject* try_binary(Slot slot, PyObject* left, PyObject* right) {
  const SourceLocation location = caller_location();
  Operand x, y;
  if (!to_operand(left, location, x) || !to_operand(right, location, y)) return nullptr;
  const std::array<const Operand*, 2> operands = {&x, &y};
  return wrap(call_operator(operator_of(slot), operands, nullptr));
}

template <Slot slot>
PyObject* binary(PyObject* left, PyObject* right) {
  return guarded([&]() -> PyObject* {
    if (PyObject* result = try_binary(slot, left, right)) return result;
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NOTIMPLEMENTED;
  });
}

PyObject* power(PyObject* base, PyObject* exponent, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<kPow>(base, exponent);
}

template <Slot slot>
PyObject* unary(PyObject* self) {
  return guarded([&] {
    Operand x(tensor_of(self));
    x.set_location(caller_location());
    const std::array<const Operand*, 1> operands = {&x};
    return wrap(call_operator(operator_of(slot), operands, nullptr));
  });
}

// x += y writes into x, so that every handle of it sees the sum; where the result has another type
// or shape, the name is bound to a new tensor instead.
template <Slot slot>
PyObject* in_place(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    PyObject* result = try_binary(slot, self, other);
    if (result == nullptr) {
      if (PyErr_Occurred()) return nullptr;
      Py_RETURN_NOTIMPLEMENTED;
    }
    const Tensor& made = tensor_of(result);
    const Tensor& target = tensor_of(self);
    if (made.dtype() != target.dtype() || made.shape() != target.shape()) return result;
    target.assign(made);
    Py_DECREF(result);
    return Py_NewRef(self);
  });
}
PyObject* in_place_power(PyObject* self, PyObject* exponent, PyObject*) {
  return in_place<kPow>(self, exponent);
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  switch (operation) {
    case Py_LT:
      return binary<kLess>(self, other);
    case Py_LE:
      return binary<kLessEqual>(self, other);
    case Py_EQ:
      return binary<kEqual>(self, other);
    case Py_NE:
      return binary<kNotEqual>(self, other);
    case Py_GT:
      return binary<kGreater>(self, other);
    default:
      return binary<kGreaterEqual>(self, other);
  }
}

PyObject* positive(PyObject* self) {
  return Py_NewRef(self);
}

template <typename Function>
void* slot_pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void append_arithmetic_slots(std::vector<PyType_Slot>& slots) {
  slots.insert(slots.end(), {{Py_nb_add, slot_pointer(binary<kAdd>)},
                             {Py_nb_subtract, slot_pointer(binary<kSub>)},
                             {Py_nb_multiply, slot_pointer(binary<kMul>)},
                             {Py_nb_true_divide, slot_pointer(binary<kDiv>)},
                             {Py_nb_floor_divide, slot_pointer(binary<kFloorDivide>)},
                             {Py_nb_remainder, slot_pointer(binary<kMod>)},
                             {Py_nb_power, slot_pointer(power)},
                             {Py_nb_matrix_multiply, slot_pointer(binary<kMatmul>)},
                             {Py_nb_and, slot_pointer(binary<kAnd>)},
                             {Py_nb_or, slot_pointer(binary<kOr>)},
                             {Py_nb_xor, slot_pointer(binary<kXor>)},
                             {Py_nb_inplace_add, slot_pointer(in_place<kAdd>)},
                             {Py_nb_inplace_subtract, slot_pointer(in_place<kSub>)},
                             {Py_nb_inplace_multiply, slot_pointer(in_place<kMul>)},
                             {Py_nb_inplace_true_divide, slot_pointer(in_place<kDiv>)},
                             {Py_nb_inplace_floor_divide, slot_pointer(in_place<kFloorDivide>)},
                             {Py_nb_inplace_remainder, slot_pointer(in_place<kMod>)},
                             {Py_nb_inplace_power, slot_pointer(in_place_power)},
                             {Py_nb_negative, slot_pointer(unary<kNeg>)},
                             {Py_nb_positive, slot_pointer(positive)},
                             {Py_nb_absolute, slot_pointer(unary<kAbs>)},
                             {Py_nb_invert, slot_pointer(unary<kNot>)},
                             {Py_tp_richcompare, slot_pointer(compare)}});
}

}  // namespace lamella::python
