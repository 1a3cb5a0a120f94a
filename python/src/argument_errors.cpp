// What bound functions say of arguments that they refuse.
#include "python/src/argument_errors.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/errors.h"
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace lamella::python {

namespace {

// nanobind calls a function in one of a few ways, as its parameters are. Each is followed by a look
// at its error, which costs a successful call one jump.
constexpr size_t kMostWays = 8;
std::array<vectorcallfunc, kMostWays> ways{};

bool refuses_arguments(std::string_view text) {
  return text.find("incompatible function arguments") != text.npos || text == "std::bad_cast";
}

// The number of positional arguments of a call. nanobind, which makes an object and then calls its
// __init__, marks that call with the flag next to Python's own.
size_t count_of(size_t flags) {
  constexpr size_t kTrustedSelf = PY_VECTORCALL_ARGUMENTS_OFFSET >> 1;
  return static_cast<size_t>(PyVectorcall_NARGS(flags & ~kTrustedSelf));
}

// Replaces the error that is set, if it is one of arguments.
void explain(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_RuntimeError)) {
    return;
  }
  nb::python_error error;  // takes it
  try {
    const std::string text = nb::cast<std::string>(nb::str(error.value()));
    if (!refuses_arguments(text)) {
      error.restore();
      return;
    }
    nb::list given;
    for (size_t i = 0; i < count; ++i) given.append(nb::handle(args[i]));
    nb::dict named;
    const Py_ssize_t others = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < others; ++i) {
      named[nb::handle(PyTuple_GET_ITEM(keywords, i))] =
          nb::handle(args[count + static_cast<size_t>(i)]);
    }
    const nb::object said = nb::module_::import_("lamella._arguments")
                                .attr("explained")(nb::handle(function), given, named, text);
    fail(ErrorKind::Type, "{}", nb::cast<std::string>(said));
  } catch (...) {
    set_python_error();
  }
}

template <size_t kWay>
PyObject* call(PyObject* function, PyObject* const* args, size_t flags, PyObject* keywords) {
  PyObject* result = ways[kWay](function, args, flags, keywords);
  if (result == nullptr) {
    explain(function, args, count_of(flags), keywords);
  }
  return result;
}

template <size_t... kWays>
constexpr std::array<vectorcallfunc, sizeof...(kWays)> calls(std::index_sequence<kWays...>) {
  return {call<kWays>...};
}

bool is_bound(nb::handle object) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  return type == "nanobind.nb_func" || type == "nanobind.nb_method";
}

void explain_function(nb::handle function) {
  constexpr auto kCalls = calls(std::make_index_sequence<kMostWays>());
  char* const object = reinterpret_cast<char*>(function.ptr());
  auto& way =
      *reinterpret_cast<vectorcallfunc*>(object + Py_TYPE(function.ptr())->tp_vectorcall_offset);
  if (std::ranges::find(kCalls, way) != kCalls.end()) return;  // found under another name before
  const auto place = std::ranges::find_if(
      ways, [&](vectorcallfunc known) { return known == way || known == nullptr; });
  LAMELLA_CHECK(place != ways.end());
  *place = way;
  way = kCalls[static_cast<size_t>(place - ways.begin())];
}

// Whether an object is a class or a module of ours that lies below another one.
bool is_own(nb::handle object) {
  const bool is_class = PyType_Check(object.ptr()) != 0;
  if (!is_class && PyModule_Check(object.ptr()) == 0) return false;
  const char* attribute = is_class ? "__module__" : "__name__";
  const auto name = nb::cast<std::string>(nb::str(nb::getattr(object, attribute, nb::none())));
  return name.starts_with("lamella");
}

void explain_members(nb::handle owner) {
  const nb::object members = owner.attr("__dict__");
  for (nb::handle member : nb::list(members.attr("values")())) {
    if (is_bound(member)) {
      explain_function(member);
    } else if (Py_TYPE(member.ptr()) == &PyProperty_Type) {
      for (const char* accessor : {"fget", "fset"}) {
        const nb::object function = member.attr(accessor);
        if (is_bound(function)) explain_function(function);
      }
    } else if (is_own(member)) {
      explain_members(member);
    }
  }
}

}  // namespace

void explain_arguments(nb::module_& module) {
  explain_members(module);
}

}  // namespace lamella::python
