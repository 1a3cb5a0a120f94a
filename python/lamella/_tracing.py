"""What a Python function depends on, found by watching it run: the guards of its trace."""

import builtins
import dis
import functools
import gc
import os
import random
import sys
import types

import numpy as np

from lamella import _native
from lamella._native import Tensor


class _Missing:
    def __repr__(self):
        return "MISSING"


MISSING = _Missing()

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Parts of the package that do more than record operations.
_ACTING = tuple(
    os.path.join(_PACKAGE, part)
    for part in ("train.py", "context.py", "random.py", "dataset" + os.sep, "__main__.py")
)
# Modules whose functions give the same result for the same arguments, and change nothing else.
_PURE = {
    "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "collections",
    "_collections", "_collections_abc", "collections.abc", "typing", "types", "numbers", "abc",
    "_abc", "enum", "copyreg", "contextlib", "fractions", "decimal", "string", "re", "inspect",
    "dataclasses",
}  # fmt: skip
_ACTING_BUILTINS = {"print", "input", "open", "exec", "eval", "compile", "breakpoint", "__import__"}
_PURE_CLASSES = (
    str, bytes, int, float, complex, bool, list, tuple, dict, set, frozenset, range, slice, type,
    type(None), types.MappingProxyType, Tensor, np.ndarray, np.generic, np.ufunc, np.dtype,
    types.ModuleType, property, type({}.keys()), type({}.values()), type({}.items()),
)  # fmt: skip
_GENERATORS = (
    random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator,
    types.GeneratorType, types.CoroutineType,
)  # fmt: skip
_CONSTANTS = (type(None), bool, int, float, str, bytes, type(Ellipsis))
_MOST_GUARDS = 5000


class _UntraceableError(Exception):
    """A reason why no trace is possible."""


@functools.lru_cache(maxsize=4096)
def _names_of(code):
    """(names looked up among globals, names read or written as attributes)."""
    among_globals, attributes = set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname.endswith(("_GLOBAL", "_NAME")):
            among_globals.add(instruction.argval)
        elif instruction.opname.endswith(("_ATTR", "_METHOD")):
            attributes.add(instruction.argval)
    return sorted(among_globals), sorted(attributes)


def _is_numpy(module):
    return module == "numpy" or module.startswith("numpy.")


class Watcher:
    """Follows the calls of one run."""

    def __init__(self, site, function):
        self._site = site
        self._function = function
        self._codes = {}  # code -> (its globals, values of its free variables when entered)
        self._cells = {}
        self._outer = None

    def run(self, args, kwargs):
        """(result, what became of the trace)."""
        if not self._site.start(args, kwargs):  # another thread is being followed
            return self._function(*args, **kwargs), "again"
        try:
            self._outer = sys.getprofile()
            sys.setprofile(self._event)
            try:
                result = self._function(*args, **kwargs)
            finally:
                sys.setprofile(self._outer)
            try:
                globals_of = {code: among for code, (among, _) in self._codes.items()}
                functions = self._functions()
                guards, cells = _Guards(
                    globals_of, functions, self._cells, args, kwargs
                ).collected()
            except _UntraceableError as reason:
                return result, (str(reason), "", 0)
            return result, self._site.finish(result, guards, cells)
        finally:
            self._site.drop()

    def _event(self, frame, event, arg):
        if callable(self._outer):  # a profiler that was there before
            self._outer(frame, event, arg)
        if event == "call":
            self._entered(frame)
        elif event == "c_call":
            self._called(arg)

    def _entered(self, frame):
        code = frame.f_code
        if code in self._codes:
            return
        path = code.co_filename
        if path.startswith(_PACKAGE):
            if path.startswith(_ACTING):
                _native.jit.cannot_repeat(f"it calls {code.co_name}")
            # A cell that is called: its parts count, whoever led to it.
            if code.co_name == "_call" and "self" in frame.f_locals:
                cell = frame.f_locals["self"]
                self._cells[id(cell)] = cell
            return
        module = frame.f_globals.get("__name__", "")
        if _is_numpy(module):
            if module.startswith("numpy.random"):
                _native.jit.cannot_repeat("it calls numpy.random")
            return
        if module in _PURE or path.startswith("<frozen"):
            return
        if module.partition(".")[0] in sys.stdlib_module_names:
            _native.jit.cannot_repeat(f"it calls {module}.{code.co_name}")
            return
        if code.co_flags & (0x20 | 0x80 | 0x200) and code.co_name not in ("<genexpr>",):
            _native.jit.cannot_repeat(f"it runs the generator {code.co_name}")
        free = tuple(frame.f_locals.get(name) for name in code.co_freevars)
        self._codes[code] = (frame.f_globals, free)

    def _called(self, function):
        name = getattr(function, "__name__", "?")
        owner = getattr(function, "__self__", None)
        module = getattr(function, "__module__", None)
        if owner is builtins or module == "builtins" and owner is None:
            if name in _ACTING_BUILTINS:
                _native.jit.cannot_repeat(f"it calls {name}")
            return
        if isinstance(owner, types.ModuleType):
            module = owner.__name__
        elif owner is not None and isinstance(owner, _PURE_CLASSES):
            return
        if owner is None and isinstance(getattr(function, "__objclass__", None), type):
            if issubclass(function.__objclass__, _PURE_CLASSES):
                return
            module = function.__objclass__.__module__
        module = module or type(owner).__module__
        if module in _PURE or _is_numpy(module) and not module.startswith("numpy.random"):
            return
        if module.startswith(("lamella.", "nanobind")) or module == "builtins":
            return
        if module in ("sys", "_thread") and name in ("setprofile", "getprofile", "_getframe"):
            return
        _native.jit.cannot_repeat(f"it calls {module}.{name}")

    def _functions(self):
        """The function objects behind the code that was entered."""
        # Those made anew by a function that was entered too depend on nothing that it does not.
        made_anew = {
            constant
            for code in self._codes
            for constant in code.co_consts
            if isinstance(constant, types.CodeType)
        }
        sought = [code for code in self._codes if code not in made_anew]
        candidates = {}
        for each in gc.get_referrers(*sought) if sought else ():
            if isinstance(each, types.FunctionType):
                candidates.setdefault(each.__code__, []).append(each)
        found = []
        for code in sought:
            free = [id(value) for value in self._codes[code][1]]
            fitting = [f for f in candidates.get(code, ()) if _free_values(f) == free]
            if not fitting and code.co_freevars:
                raise _UntraceableError(f"the variables around {code.co_name} are not found")
            found += fitting
        return found


def _free_values(function):
    values = []
    for cell in function.__closure__ or ():
        try:
            values.append(id(cell.cell_contents))
        except ValueError:
            values.append(id(None))
    return values


class _Guards:
    """Gathers the conditions under which functions would run the same way again."""

    def __init__(self, globals_of, functions, cells, args, kwargs):
        self._rows, self._cells, self._seen, self._queue = [], dict(cells), set(), []
        self._attributes, self._known = set(), set()
        for code in globals_of:
            self._attributes.update(_names_of(code)[1])
        for code, among in globals_of.items():
            for variable in _names_of(code)[0]:
                value = among.get(variable, MISSING)
                self._add("item", among, variable, value, 0, f"the global {variable}")
                self._visit(value, f"the global {variable}", False)
        for function in functions:
            self._guard_function(function)
        for argument in (*args, *kwargs.values()):
            self._visit(argument, "an argument", True)
        for cell in list(self._cells.values()):
            self._visit(cell, type(cell).__name__, False)
        while self._queue:
            self._look_into(*self._queue.pop())

    def collected(self):
        return self._rows, list(self._cells.values())

    def _add(self, kind, holder, key, expected, number, name):
        key_of_row = (kind, id(holder), key, number)
        if key_of_row in self._known:
            return
        self._known.add(key_of_row)
        self._rows.append((kind, holder, key, expected, number, name))
        if len(self._rows) > _MOST_GUARDS:
            raise _UntraceableError("it depends on too many Python objects")

    def _guard_function(self, function):
        name, code = function.__name__, function.__code__
        self._add("code", function, None, code, 0, f"the code of {name}")
        defaults = function.__defaults__
        self._add("defaults", function, None, MISSING if defaults is None else defaults, 0,
                  f"a default of {name}")  # fmt: skip
        for value in defaults or ():
            self._visit(value, f"a default of {name}", False)
        keywords = function.__kwdefaults__
        self._add("keywords", function, None, MISSING if keywords is None else keywords, 0,
                  f"a default of {name}")  # fmt: skip
        if keywords:
            self._visit(keywords, f"a default of {name}", False)
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._add("cell", cell, None, value, 0, f"the variable {variable}")
            self._visit(value, f"the variable {variable}", False)

    def _visit(self, value, name, is_argument):
        if isinstance(value, _CONSTANTS) or value is MISSING or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._queue.append((value, name, is_argument))

    def _look_into(self, value, name, is_argument):
        if isinstance(value, Tensor):
            if not is_argument:
                self._add("storage", value, None, None, 0, name)
        elif isinstance(value, np.ndarray):
            raise _UntraceableError(
                f"it uses a NumPy array, {name}, whose elements are not watched"
            )
        elif isinstance(value, _GENERATORS):
            raise _UntraceableError(f"it uses {name}, which is of class {type(value).__name__}")
        elif isinstance(value, list):
            if not is_argument:
                self._add("length", value, None, None, len(value), name)
            for i, item in enumerate(value):
                if not is_argument:
                    self._add("list item", value, None, item, i, f"{name}[{i}]")
                self._visit(item, f"{name}[{i}]", is_argument)
        elif isinstance(value, dict):
            if not is_argument:
                self._add("length", value, None, None, len(value), name)
            for key, item in value.items():
                if not is_argument:
                    self._add("item", value, key, item, 0, f"{name}[{key!r}]")
                self._visit(item, f"{name}[{key!r}]", is_argument)
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                self._visit(item, f"{name}[{i}]", is_argument)
        elif isinstance(value, (set, frozenset)):
            self._add("equal", value, None, set(value), 0, name)
        elif isinstance(getattr(value, "__self__", None), _GENERATORS):
            raise _UntraceableError(f"it uses {name}, which draws random numbers")
        elif isinstance(value, types.MethodType):
            self._visit(value.__self__, name, False)
        elif str(getattr(value, "__module__", "")).startswith("numpy.random") or (
            value is np and "random" in self._attributes
        ):
            raise _UntraceableError("it uses numpy.random")
        elif not isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.CodeType)):
            self._look_at_attributes(value, name)

    def _look_at_attributes(self, value, name):
        kind = type(value)
        module = value.__name__ if isinstance(value, types.ModuleType) else (
            value.__module__ if isinstance(value, type) else kind.__module__
        )  # fmt: skip
        if isinstance(value, _native.nn.Cell):
            self._cells[id(value)] = value
            for child_name, child in value._children():
                self._visit(child, f"{name}.{child_name}", False)
        elif str(module).startswith(("lamella", "mindspore", "numpy")) or module in _PURE:
            return
        if not isinstance(value, (types.ModuleType, type)):
            self._add("type", value, None, kind, 0, f"the class of {name}")
        own = getattr(value, "__dict__", None)
        for attribute in sorted(self._attributes):
            described = f"{name}.{attribute}"
            if isinstance(own, dict):
                found = own.get(attribute, MISSING)
                self._add("item", own, attribute, found, 0, described)
                if found is not MISSING:
                    self._visit(found, described, False)
                    continue
            self._look_at_class(value, kind, attribute, described)

    def _look_at_class(self, value, kind, attribute, described):
        """An attribute that the object itself does not hold."""
        if isinstance(value, types.ModuleType):
            return
        owner = value if isinstance(value, type) else kind
        found = next(
            (c.__dict__[attribute] for c in owner.__mro__ if attribute in c.__dict__), None
        )
        if found is None:
            return
        if isinstance(found, types.MemberDescriptorType) and not isinstance(value, type):
            held = getattr(value, attribute, MISSING)
            self._add("attribute", value, attribute, held, 0, described)
            self._visit(held, described, False)
            return
        self._add("type item", owner, attribute, found, 0, described)
        if not callable(found):
            self._visit(found, described, False)
