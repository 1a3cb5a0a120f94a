// What a traced Python function depended on, as conditions that are quick to check.
#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "lamella/ir/tensor.h"
#include "lamella/nn/cell.h"

namespace lamella::python {

// Whether both are the same number, string, None, or tuple of such; floats by their bits.
bool same_constant(PyObject* a, PyObject* b);
bool is_static_constant(PyObject* object);

// One condition. Objects are borrowed; whoever made it holds them.
struct Guard {
  enum class Kind : uint8_t {
    Item,       // dictionary `holder` has `expected` under `key` (null: has nothing)
    Cell,       // closure cell `holder` holds `expected`
    Type,       // `expected` is the type of `holder`
    TypeItem,   // looking `key` up in type `holder` gives `expected`
    Attribute,  // reading attribute `key` of `holder` gives `expected`
    Length,     // list or dictionary `holder` has `number` items
    ListItem,   // item `number` of list `holder` is `expected`
    Equal,      // `holder` equals `expected`
    Defaults,   // function `holder` has the defaults `expected` (null: none)
    Keywords,   // as Defaults, of parameters given by keyword
    Code,       // function `holder` has the code `expected`
    Storage,    // tensor `holder` is a handle of the storage `number`
  };
  Kind kind;
  PyObject* holder;
  PyObject* key;
  PyObject* expected;
  int64_t number = 0;

  bool holds() const;
  friend bool operator==(const Guard& a, const Guard& b);
};

// A guard from the tuple (kind's name, holder, key, expected, number).
Guard guard_from(nanobind::handle row);

}  // namespace lamella::python
