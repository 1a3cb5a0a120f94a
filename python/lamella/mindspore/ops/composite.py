"""Functions of functions: chosen by the types of their arguments, mapped over nested tuples."""

from lamella._native import Tensor
from lamella._native import dtype as _dtype
from lamella.autodiff import GradOperation, grad, value_and_grad
from lamella.structures import rebuilt as _rebuilt


def _is(*classes):
    return lambda value: isinstance(value, classes)


_KINDS = {
    "Tensor": _is(Tensor),
    "Number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "Int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Float": _is(float),
    "Bool": _is(bool),
    "Tuple": _is(tuple),
    "List": _is(list),
    "Dictionary": _is(dict),
    "String": _is(str),
    "Slice": _is(slice),
    "Ellipsis": _is(type(...)),
    "Function": callable,
    "None": _is(type(None)),
}


def _test_of(kind, name):
    """Whether a value is of a kind: the name of one, a class, or the dtype of a Tensor."""
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    if isinstance(kind, type):
        return _is(kind)
    if isinstance(kind, _dtype):
        return lambda value: isinstance(value, Tensor) and value.dtype == kind
    raise ValueError(
        f"[{name}] a function is registered for {', '.join(_KINDS)}, for classes and dtypes, "
        f"got {kind!r}"
    )


class MultitypeFuncGraph:
    """One name for several functions; the first whose types fit is called."""

    def __init__(self, name, read_value=False):
        self.name, self.read_value = name, read_value
        self._functions = []

    def register(self, *type_names):
        """Decorates the function for arguments of these kinds, one for each argument."""
        tests = [_test_of(kind, self.name) for kind in type_names]

        def add(function):
            self._functions.append((tests, function))
            return function

        return add

    def __call__(self, *args):
        for tests, function in self._functions:
            if len(tests) == len(args) and all(
                fits(value) for fits, value in zip(tests, args, strict=True)
            ):
                return function(*args)
        kinds = ", ".join(type(value).__name__ for value in args)
        raise TypeError(f"[{self.name}] no function is registered for ({kinds})")


class HyperMap:
    """A function mapped over sequences of equal structure, however deep."""

    def __init__(self, ops=None, reverse=False):
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args):
        function, arrays = (self.ops, args) if self.ops is not None else (args[0], args[1:])
        return self._map(function, arrays)

    def _map(self, function, arrays):
        if not isinstance(arrays[0], (tuple, list)):
            return function(*arrays)
        rows = list(zip(*arrays, strict=True))
        order = reversed(rows) if self.reverse else rows
        mapped = [self._map(function, row) for row in order]
        return _rebuilt(arrays[0], reversed(mapped) if self.reverse else mapped)


class Map(HyperMap):
    """A function mapped over sequences, one level deep."""

    def _map(self, function, arrays):
        rows = list(zip(*arrays, strict=True))
        mapped = [function(*row) for row in (reversed(rows) if self.reverse else rows)]
        return tuple(reversed(mapped) if self.reverse else mapped)


__all__ = ["GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "grad", "value_and_grad"]
