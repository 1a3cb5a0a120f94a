"""New tensors: filled, counted, spaced."""

import math

from lamella import _native
from lamella.adapt.arguments import integer, new_shape

_o = _native.operators_by_name


def astensor(x, dtype=None):
    if isinstance(x, _native.Tensor) and (dtype is None or x.dtype == dtype):
        return x
    return _native.Tensor(x, dtype)


def full(shape, value, dtype=None):
    if isinstance(value, _native.Tensor):
        tensor = value if dtype is None else _o.cast(value, dtype)
        return _o.broadcast_to(tensor, new_shape(shape))
    if dtype is None:
        dtype = _native.Tensor(value).dtype
    return _o.broadcast_to(_native.Tensor(value, dtype), new_shape(shape))


def zeros(shape, dtype=None):
    return full(shape, 0, dtype or _native.float32)


def ones(shape, dtype=None):
    return full(shape, 1, dtype or _native.float32)


def full_like(x, value, dtype=None, shape=None):
    return full(x.shape if shape is None else shape, value, dtype or x.dtype)


def zeros_like(x, dtype=None, shape=None):
    x = astensor(x)
    if dtype is None and shape is None:
        return _o.zeros_like(x)
    return full_like(x, 0, dtype, shape)


def ones_like(x, dtype=None, shape=None):
    x = astensor(x)
    if dtype is None and shape is None:
        return _o.ones_like(x)
    return full_like(x, 1, dtype, shape)


empty_like = zeros_like


def _number(value):
    return value.item() if isinstance(value, _native.Tensor) else value


def arange(start=0, end=None, step=1, dtype=None, integer=None):
    """start, start + step, ... below end."""
    start, end = _number(start), _number(end)
    step = 1 if step is None else _number(step)
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ValueError("[arange] step must not be 0")
    count = max(0, math.ceil((end - start) / step))
    if dtype is None:
        whole = all(isinstance(number, int) for number in (start, end, step))
        dtype = (integer or _native.int64) if whole else _native.float32
    return _o.arange(start, step, (count,), dtype)


def linspace(start, end, steps, dtype=None, endpoint=True):
    """Evenly spaced numbers."""
    start, end, steps = _number(start), _number(end), integer(steps)
    if not endpoint and steps > 0:
        end = end - (end - start) / steps
    return _o.linspace(start, end, (steps,), dtype or _native.float32)


def logspace(start, end, steps, base=10, dtype=None):
    exponents = linspace(start, end, steps, _native.float64)
    return _o.cast(_o.exp(exponents * math.log(base)), dtype or _native.float32)


def eye(rows, columns=None, dtype=None, diagonal=0):
    """Ones on a diagonal."""
    rows = integer(rows)
    columns = rows if columns is None else integer(columns)
    return _o.eye((rows, columns), dtype or _native.float32, diagonal)


def tri(rows, columns=None, diagonal=0, dtype=None):
    """Ones on and below a diagonal."""
    shape = (rows, rows if columns is None else columns)
    return _o.tril(ones(shape, dtype), diagonal)


def meshgrid(tensors, indexing="xy"):
    """Coordinate matrices of coordinate vectors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij', got {indexing!r}")
    tensors = [astensor(tensor) for tensor in tensors]
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[0], order[1] = 1, 0
    shape = [1] * len(tensors)
    for position, tensor in zip(order, tensors, strict=False):
        shape[position] = tensor.size
    grids = []
    for position, tensor in zip(order, tensors, strict=False):
        own = [1] * len(tensors)
        own[position] = tensor.size
        grids.append(_o.broadcast_to(_o.reshape(tensor, tuple(own)), tuple(shape)))
    return tuple(grids)
