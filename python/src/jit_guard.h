// What a traced Python function depended on, as conditions that are quick to check.
#pragma once

#include <string_view>

#include <nanobind/nanobind.h>

#include "lamella/ir/tensor.h"

namespace lamella::python {

// Whether both are the same number, string, None, or tuple of such; floats by their bits.
bool same_constant(PyObject* a, PyObject* b);
bool is_static_constant(PyObject* object);
// Whether two tuples hold the same objects, or constants that are the same.
bool same_items(PyObject* a, PyObject* b);

struct Guard;

// What a guard says of its holder. The kinds, with their names, are a table in jit_guard.cpp.
struct GuardKind {
  std::string_view name;
  bool (*holds)(const Guard& guard);
};

// One condition. Objects are borrowed; whoever made it holds them.
struct Guard {
  const GuardKind* kind;
  PyObject* holder;
  PyObject* key;
  PyObject* expected;
  int64_t number;

  bool holds() const { return kind->holds(*this); }
  // The storage of a guard that a tensor is a handle of it; null for others.
  const Storage* storage() const;
  friend bool operator==(const Guard& a, const Guard& b);
};

// A guard from the tuple (kind's name, holder, key, expected, number). An unknown name is an
// InternalError.
Guard guard_from(nanobind::handle row);

// Whether a class is written in Python: all that its objects have of it are attributes.
bool defined_in_python(PyTypeObject* type);

}  // namespace lamella::python
