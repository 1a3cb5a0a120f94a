"""Following one run of a Python function: what it enters and calls, for the guards of its trace."""

import builtins
import os
import sys
import types

import numpy as np

from lamella import _native
from lamella._code import attribute_given, facts_of
from lamella._guards import (
    BY_NAME,
    PURE_MODULES,
    Guards,
    Run,
    UntraceableError,
    is_numpy,
    is_package,
    root_of,
)
from lamella._native import Tensor

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Parts of the package that do more than record operations.
_ACTING = tuple(
    os.path.join(_PACKAGE, part)
    for part in ("train.py", "context.py", "random.py", "dataset" + os.sep, "__main__.py")
)
_ACTING_BUILTINS = {"print", "input", "open", "exec", "eval", "compile", "breakpoint", "__import__"}
# Those that tell what no guard watches: all names, or which object an argument is.
_TELLING_BUILTINS = {"vars", "globals", "dir", "id"}
_PURE_CLASSES = (
    str, bytes, int, float, complex, bool, list, tuple, dict, set, frozenset, range, slice,
    type(None), types.MappingProxyType, Tensor, np.ndarray, np.generic, np.ufunc, np.dtype,
    types.ModuleType, property, type({}.keys()), type({}.values()), type({}.items()),
)  # fmt: skip
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200


class Watcher:
    """Follows the calls of one run."""

    def __init__(self, site, function):
        self._site = site
        self._function = function
        self._run = Run()
        self._outer = None

    def run(self, args, kwargs):
        """(result, what became of the trace)."""
        if not self._site.start(args, kwargs):  # another thread is being followed
            return self._function(*args, **kwargs), "elsewhere"
        try:
            self._outer = sys.getprofile()
            sys.setprofile(self._event)
            try:
                result = self._function(*args, **kwargs)
            finally:
                sys.setprofile(self._outer)
            try:
                guards = Guards(self._run, self._function, args, kwargs)
                return result, self._site.finish(result, guards.rows, guards.cells())
            except UntraceableError as reason:
                return result, (str(reason), "", 0)
            except Exception as error:  # of a method of the user's objects
                return result, (f"looking at what it uses raises {error!r}", "", 0)
        finally:
            self._site.drop()

    def _event(self, frame, event, arg):
        if callable(self._outer):  # a profiler that was there before
            self._outer(frame, event, arg)
        if event == "call":
            self._entered(frame)
        elif event == "c_call":
            self._called(frame, arg)

    def _entered(self, frame):
        code = frame.f_code
        path = code.co_filename
        if path.startswith(_PACKAGE):
            self._entered_package(frame)
            return
        if code in self._run.globals:
            if code.co_freevars:
                self._run.enter(frame)
            return
        module = frame.f_globals.get("__name__", "")
        if is_numpy(module):
            if module.startswith("numpy.random"):
                _native.jit.cannot_repeat("it calls numpy.random")
            return
        if module in PURE_MODULES:
            return
        if root_of(module) in sys.stdlib_module_names:
            _native.jit.cannot_repeat(f"it calls {module}.{code.co_name}")
            return
        if code.co_flags & _GENERATOR_FLAGS and code.co_name != "<genexpr>":
            _native.jit.cannot_repeat(f"it runs the generator {code.co_name}")
        self._run.enter(frame)

    def _entered_package(self, frame):
        code = frame.f_code
        if code.co_filename.startswith(_ACTING):
            _native.jit.cannot_repeat(f"it calls {code.co_name}")
        self._run.package_names.update(facts_of(code).attributes)
        # A cell that is called: its parts count, whoever led to it.
        if code.co_name == "_call" and "self" in frame.f_locals:
            cell = frame.f_locals["self"]
            self._run.cells[id(cell)] = cell

    def _called(self, frame, function):
        name = function.__name__
        owner, module = function.__self__, function.__module__
        if owner is builtins:
            self._called_builtin(frame, function)
            return
        if isinstance(owner, types.ModuleType):
            module = owner.__name__
        elif isinstance(owner, type):  # a class's method, such as datetime.now
            module = owner.__module__
        elif owner is not None and isinstance(owner, _PURE_CLASSES):
            return
        module = module or type(owner).__module__
        if module in PURE_MODULES or is_numpy(module) and not module.startswith("numpy.random"):
            return
        if is_package(module) or module in ("nanobind", "builtins"):
            return
        if module in ("sys", "_thread") and name in ("setprofile", "getprofile", "_getframe"):
            return
        _native.jit.cannot_repeat(f"it calls {module}.{name}")

    def _called_builtin(self, frame, function):
        name = function.__name__
        if name in _ACTING_BUILTINS:
            _native.jit.cannot_repeat(f"it calls {name}")
        if frame.f_code not in self._run.globals:  # the package, NumPy, the standard library
            return
        if name in _TELLING_BUILTINS:
            _native.jit.cannot_repeat(f"it calls {name}")
        elif function in BY_NAME:
            attribute = attribute_given(frame)
            if attribute is None:
                _native.jit.cannot_repeat(f"it calls {name} with a name made for the call")
            else:
                self._run.names_by_call.add(attribute)
