"""Functions of functions: chosen by the types of their arguments, mapped over nested tuples."""

from lamella._native import Tensor
from lamella.autodiff import GradOperation, grad, value_and_grad

_KINDS = {
    "Tensor": Tensor,
    "Number": (int, float),
    "Bool": bool,
    "Tuple": tuple,
    "List": list,
    "String": str,
    "None": type(None),
}


def _fits(kind, value):
    if isinstance(kind, str):
        kind = _KINDS.get(kind, kind)
    if isinstance(kind, (type, tuple)):
        return isinstance(value, kind)
    return isinstance(value, (int, float, Tensor))


class MultitypeFuncGraph:
    """One name for several functions; the first whose types fit is called."""

    def __init__(self, name, read_value=False):
        self.name, self.read_value = name, read_value
        self._functions = []

    def register(self, *type_names):
        def add(function):
            self._functions.append((type_names, function))
            return function

        return add

    def __call__(self, *args):
        for kinds, function in self._functions:
            if len(kinds) == len(args) and all(map(_fits, kinds, args)):
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
        return type(arrays[0])(reversed(mapped) if self.reverse else mapped)


class Map(HyperMap):
    """A function mapped over sequences, one level deep."""

    def _map(self, function, arrays):
        rows = list(zip(*arrays, strict=True))
        mapped = [function(*row) for row in (reversed(rows) if self.reverse else rows)]
        return tuple(reversed(mapped) if self.reverse else mapped)


__all__ = ["GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "grad", "value_and_grad"]
