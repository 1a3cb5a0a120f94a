"""What Tensor has beside its operators: Python's protocols, properties and conversions."""

import copy

from lamella import _native, _tensor_methods
from lamella._native import Tensor
from lamella.adapt.shapes import permute

_o = _native.operators_by_name


def _iterate(self):
    if self.ndim == 0:
        raise TypeError("[iter] a tensor of rank 0 has no elements to go through")
    return (self[i] for i in range(self.shape[0]))


def _contains(self, value):
    return bool(_o.any(_o.equal(self, value)))


def _array(self, dtype=None, copy=None):
    array = self.asnumpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _deepcopy(self, memo):
    duplicate = type(self)._from_tensor(Tensor(self.asnumpy().copy(), self.dtype))
    duplicate.__dict__.update(copy.deepcopy(self.__dict__, memo)) if self._has_dict() else None
    memo[id(self)] = duplicate
    return duplicate


def _restore(kind, array, dtype, state):
    tensor = kind._from_tensor(Tensor(array, dtype))
    if state:
        tensor.__dict__.update(state)
    return tensor


def _reduce(self):
    state = self.__dict__ if self._has_dict() else None
    return _restore, (type(self), self.asnumpy(), self.dtype, state)


def _format(self, spec):
    return format(self.item(), spec) if self.ndim == 0 and spec else format(str(self), spec)


def _round(self, digits=None):
    return self.round(decimals=digits or 0)


def _strides(self):
    strides, step = [], self.itemsize
    for size in reversed(self.shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _stride(self, dim=None):
    steps = tuple(step // self.itemsize for step in _strides(self))
    return steps if dim is None else steps[dim]


def _transposed_last(self):
    if self.ndim < 2:
        raise ValueError(f"[mT] two axes are needed, this tensor has {self.ndim}")
    return self.swapaxes(-1, -2)


def _from_numpy(array):
    """A tensor over the memory of a C-contiguous array; another array is copied."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise TypeError(f"[from_numpy] a NumPy array is expected, got {type(array).__name__}")
    shareable = array.flags.c_contiguous and array.flags.writeable and array.dtype.isnative
    return _native.tensor_over(array) if shareable else Tensor(array)


def _same(self, *args, **kwargs):
    return self


_PROTOCOLS = {
    "__iter__": _iterate,
    "__contains__": _contains,
    "__array__": _array,
    "__deepcopy__": _deepcopy,
    "__copy__": lambda self: type(self)._from_tensor(self),
    "__reduce__": _reduce,
    "__format__": _format,
    "__round__": _round,
    "_has_dict": lambda self: hasattr(self, "__dict__"),
    "T": property(lambda self: permute(self, ())),
    "H": property(lambda self: permute(self, ())),
    "mT": property(_transposed_last),
    "mH": property(_transposed_last),
    "data": property(lambda self: self),
    "strides": property(_strides),
    "stride": _stride,
    "is_contiguous": lambda self: True,
    "is_complex": lambda self: False,
    "is_signed": lambda self: self.dtype.name not in ("bool", "uint8"),
    "tolist": lambda self: self.asnumpy().tolist(),
    "from_numpy": staticmethod(_from_numpy),
    "value": _same,
    "init_data": _same,
    "flush_from_cache": _same,
    "set_const_arg": _same,
    "has_init": property(lambda self: False),
    "init": property(lambda self: None),
    "const_arg": property(lambda self: False),
    "device": property(lambda self: "CPU"),
    "get_bytes": lambda self: self.asnumpy().tobytes(),
    "itemset": lambda self, *args: self.__setitem__(args[:-1] or Ellipsis, args[-1]),
}


def complete(kind):
    """Adds protocols and methods to the native type."""
    for name, value in _PROTOCOLS.items():
        setattr(kind, name, value)
    for name in _tensor_methods.__all__:
        setattr(kind, name, getattr(_tensor_methods, name))
