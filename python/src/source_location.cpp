// Finding the caller's line without decoding line tables: each (code object, instruction) is
// decoded once.
#include "python/src/source_location.h"

#include <array>

#include <nanobind/nanobind.h>

// After Python.h:
#include <frameobject.h>

namespace lamella::python {

namespace {

std::string& package_folder() {
  static std::string& folder = *new std::string;
  return folder;
}

struct Entry {
  PyCodeObject* code = nullptr;  // a strong reference, so that its address stays its own
  int instruction = -1;
  bool inside_package = false;
  SourceLocation location;
};

// Direct-mapped: a conflict costs one decoding.
constexpr size_t kEntries = 4096;
std::array<Entry, kEntries>& table() {
  static auto& entries = *new std::array<Entry, kEntries>;
  return entries;
}

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

const Entry& look_up(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);  // a new reference
  const int instruction = instruction_of(frame);
  const auto bits = reinterpret_cast<uintptr_t>(code) / 16;
  Entry& entry = table()[(bits ^ (static_cast<uintptr_t>(instruction) * 0x9E3779B1u)) % kEntries];
  if (entry.code == code && entry.instruction == instruction) [[likely]] {
    Py_DECREF(code);
    return entry;
  }
  Py_XDECREF(entry.code);
  entry.code = code;
  entry.instruction = instruction;
  Py_ssize_t length = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (file == nullptr) {
    PyErr_Clear();
    file = "";
  }
  const std::string_view path(file, static_cast<size_t>(length));
  const std::string& folder = package_folder();
  entry.inside_package =
      (!folder.empty() && path.starts_with(folder)) || path.starts_with("<frozen ");
  entry.location = {intern_file_name(path), PyFrame_GetLineNumber(frame)};
  return entry;
}

}  // namespace

void set_package_folder(std::string folder) {
  package_folder() = std::move(folder);
}

SourceLocation caller_location() {
  PyFrameObject* frame = PyEval_GetFrame();  // borrowed
  if (frame == nullptr) return {};
  const Entry* entry = &look_up(frame);
  if (!entry->inside_package) [[likely]]
    return entry->location;
  SourceLocation location = entry->location;
  frame = PyFrame_GetBack(frame);  // owned from here on
  while (frame != nullptr) {
    entry = &look_up(frame);
    location = entry->location;
    PyFrameObject* next = entry->inside_package ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = next;
  }
  return location;
}

}  // namespace lamella::python
