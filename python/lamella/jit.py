"""jit: a function's operations recorded again without running its Python, while that is safe."""

import functools
import logging
import types

from lamella import _native
from lamella._tracing import Watcher

_MISS = object()
_log = logging.getLogger("lamella")
# Runs that may fail to give a trace before a function stays in dynamic mode.
_MOST_FAILURES = 3
_MOST_RUNS_WITHOUT_A_TRACE = 32
_tracing = _native.jit.tracing


class Traced:
    """The traces of one function, or of one function on one object."""

    __slots__ = ("_site", "_function", "_name", "_failures", "_watched", "_off")

    def __init__(self, function, name):
        self._site = _native.jit.Site()
        self._function, self._name = function, name
        self._failures = self._watched = 0
        self._off = False

    def call(self, args, kwargs):
        """What function(*args, **kwargs) gives."""
        if self._off or _tracing():
            return self._function(*args, **kwargs)
        result = self._site.replay(args, kwargs, _MISS)
        return result if result is not _MISS else self._watch(args, kwargs)

    def _watch(self, args, kwargs):
        result, became = Watcher(self._site, self._function).run(args, kwargs)
        if became == "elsewhere":
            return result
        self._watched += 1
        if became == "kept":
            self._failures = self._watched = 0
        elif became == "again":
            if self._watched > _MOST_RUNS_WITHOUT_A_TRACE:
                self._stay_dynamic(("it is called in a new way every time", "", 0))
        else:
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                self._stay_dynamic(became)
        return result

    def _stay_dynamic(self, reason):
        self._off = True
        why, file, line = reason
        if not file:
            code = getattr(self._function, "__code__", None)
            file, line = (code.co_filename, code.co_firstlineno) if code else ("?", 0)
        _log.warning(
            "[jit] %s runs in dynamic mode: %s (%s, line %s)", self._name, why, file, line
        )  # fmt: skip


def _name_of(function):
    return getattr(function, "__qualname__", type(function).__name__)


def jit(
    function=None,
    *,
    capture_mode="ast",
    jit_level="O0",
    dynamic=0,
    fullgraph=False,
    backend="",
    **options,
):
    """Decorates a function or a method, with or without arguments; takes any callable, or a Cell.

    A Cell is given back, and traced wherever it is called.
    """
    if function is None:
        return functools.partial(jit, capture_mode=capture_mode, jit_level=jit_level)
    if not callable(function):
        raise TypeError(f"[jit] a function is expected, got {type(function).__name__}")
    if isinstance(function, _native.nn.Cell):
        traces_of(function)
        return function
    if isinstance(function, type):
        _log.warning("[jit] the class %s stays as it is: decorate its methods", function.__name__)
        return function
    code = function.__code__ if isinstance(function, types.FunctionType) else None
    is_method = code is not None and code.co_argcount > 0 and code.co_varnames[0] == "self"
    call = _on_objects(function) if is_method else Traced(function, _name_of(function)).call

    @functools.wraps(function, updated=("__dict__",) if code is not None else ())
    def compiled(*args, **kwargs):
        return call(args, kwargs)

    return compiled


class Traces(dict):
    """Traces kept with an object, by function; a copy of the object begins without."""

    def __deepcopy__(self, memo):
        return Traces()

    def __reduce__(self):
        return Traces, ()


def _on_objects(function):
    """Traces for each object a method is called on, kept with the object."""
    name, key = _name_of(function), object()
    # For objects without attributes of their own, and functions that are no methods.
    elsewhere = Traced(function, name)

    def call(args, kwargs):
        attributes = getattr(args[0], "__dict__", None) if args else None
        if not isinstance(attributes, dict):
            return elsewhere.call(args, kwargs)
        traces = attributes.get("_method_traces")
        if traces is None:
            traces = attributes["_method_traces"] = Traces()
        traced = traces.get(key)
        if traced is None:
            traced = traces[key] = Traced(function, name)
        return traced.call(args, kwargs)

    return call


def traces_of(cell):
    """The traces of a cell's whole call, hooks and casts included."""
    traces = cell.__dict__.get("_traces")
    if traces is None:
        traces = cell.__dict__["_traces"] = Traces()
    traced = traces.get("call")
    if traced is None:
        from lamella.nn.cell import call_untraced

        traced = traces["call"] = Traced(call_untraced, type(cell).__name__)
    return traced


ms_function = jit


def jit_class(cls):
    """A class whose objects traced functions may use; any class may be used."""
    if not isinstance(cls, type):
        raise TypeError(f"[jit_class] a class is expected, got {type(cls).__name__}")
    return cls


ms_class = jit_class


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """A function of constants, computed in Python."""
    return constexpr if fn is None else fn


class JitConfig:
    """Options of jit; kept, without effect on results."""

    def __init__(
        self,
        jit_level="",
        exc_mode="auto",
        jit_syntax_level="",
        debug_level="RELEASE",
        infer_boost="off",
        **kwargs,
    ):
        self.jit_config_dict = dict(
            jit_level=jit_level,
            exc_mode=exc_mode,
            jit_syntax_level=jit_syntax_level,
            debug_level=debug_level,
            infer_boost=infer_boost,
            **kwargs,
        )
