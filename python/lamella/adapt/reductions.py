"""Reductions with the options the dialects have: dtypes, initial values, masks, positions."""

from lamella import _native
from lamella.adapt.arguments import integer, size_tuple
from lamella.adapt.elementwise import as_dtype

_o = _native.operators_by_name


def reduce(operator, x, axis=None, keepdims=False, dtype=None, initial=None):
    """A reduction in a dtype, combined with an initial value."""
    result = getattr(_o, operator)(as_dtype(x, dtype), axis, keepdims)
    if initial is None:
        return result
    combine = {"sum": _o.add, "prod": _o.mul, "max": _o.maximum, "min": _o.minimum}[operator]
    return combine(result, initial)


def prod(x, axis=None, keepdims=False, dtype=None):
    return _o.prod(as_dtype(x, dtype), axis, keepdims)


def arg_reduce(operator, x, axis=None, keepdims=False, dtype=None):
    """argmax and argmin; over all elements if no axis is given."""
    function = getattr(_o, operator)
    if axis is None:
        position = function(_o.reshape(x, (-1,)), 0, False)
        if keepdims:
            position = _o.reshape(position, (1,) * x.ndim)
    else:
        position = function(x, axis, keepdims)
    return as_dtype(position, dtype)


def with_index(operator, x, axis, keepdims=False, dtype=None):
    """(values, positions) along an axis, or over all elements."""
    positions = arg_reduce("arg" + operator, x, axis, keepdims, dtype)
    return getattr(_o, operator)(x, axis, keepdims), positions


def _masked(x, where, initial, operator):
    if where is None or where is True:
        return x
    if initial is None:
        raise ValueError(f"[{operator}] initial is needed where a mask is given")
    return _o.where(where, x, initial)


def _along(operator, x, axis, keepdims, initial, where):
    result = getattr(_o, operator)(_masked(x, where, initial, operator), axis, keepdims)
    if initial is None:
        return result
    return (_o.maximum if operator == "max" else _o.minimum)(result, initial)


def maximum_along(x, axis=None, keepdims=False, initial=None, where=None):
    return _along("max", x, axis, keepdims, initial, where)


def minimum_along(x, axis=None, keepdims=False, initial=None, where=None):
    return _along("min", x, axis, keepdims, initial, where)


def _overload(operator, args, kwargs):
    """max and min in mint and on tensors: of all, along an axis, or of two tensors."""
    names = {"dim", "keepdim", "other", "axis", "keepdims", "initial", "where", "return_indices"}
    for keyword in kwargs:
        if keyword not in names:
            raise TypeError(f"{operator}() got an unexpected keyword argument {keyword!r}")
    x, *rest = args
    binary = _o.maximum if operator == "max" else _o.minimum
    if "other" in kwargs or (rest and isinstance(rest[0], _native.Tensor) and rest[0].ndim > 0):
        return binary(x, rest[0] if rest else kwargs["other"])
    if "dim" in kwargs or (rest and isinstance(rest[0], int)):
        axis = rest[0] if rest else kwargs["dim"]
        keep = rest[1] if len(rest) > 1 else kwargs.get("keepdim", kwargs.get("keepdims", False))
        return with_index(operator, x, axis, keep)
    axis = rest[0] if rest else kwargs.get("axis")
    keep = rest[1] if len(rest) > 1 else kwargs.get("keepdims", kwargs.get("keepdim", False))
    if kwargs.get("return_indices"):
        return with_index(operator, x, axis, keep)
    return _along(operator, x, axis, keep, kwargs.get("initial"), kwargs.get("where"))


def overload_max(args, kwargs):
    return _overload("max", args, kwargs)


def overload_min(args, kwargs):
    return _overload("min", args, kwargs)


def var_mean(x, axis=None, ddof=0, keepdims=False):
    return _o.var(x, axis, keepdims, ddof), _o.mean(x, axis, keepdims)


def std_mean(x, axis=None, ddof=0, keepdims=False):
    return _o.std(x, axis, keepdims, ddof), _o.mean(x, axis, keepdims)


def average(x, axis=None, weights=None, returned=False):
    if weights is None:
        mean = _o.mean(x, axis)
        count = x.size // max(mean.size, 1)
        return (mean, _o.broadcast_to(float(count), mean.shape)) if returned else mean
    total = _o.sum(weights, axis)
    mean = _o.div(_o.sum(_o.mul(x, weights), axis), total)
    return (mean, total) if returned else mean


def cumulative(operator, x, axis=None, dtype=None):
    x = as_dtype(x, dtype)
    if axis is None:
        x, axis = _o.reshape(x, (-1,)), 0
    return getattr(_o, operator)(x, axis)


def sort(x, axis=-1, descending=False, index_dtype=None):
    """(sorted values, their positions)."""
    values, positions = _o.sort(x, axis, descending)
    return values, as_dtype(positions, index_dtype)


def argsort(x, axis=-1, descending=False, index_dtype=None):
    return sort(x, axis, descending, index_dtype)[1]


def topk(x, k, axis=-1, largest=True, index_dtype=None):
    """The k largest or smallest, in order; so also where a program does not ask for an order."""
    values, positions = _o.topk(x, (integer(k),), -1 if axis is None else axis, largest)
    return values, as_dtype(positions, index_dtype)


def median(x, axis=None, keepdims=False):
    """(lower median, its position) along an axis; the value alone over all elements."""
    if axis is None:
        value = _o.median(_o.reshape(x, (-1,)))[0]
        return _o.reshape(value, (1,) * x.ndim) if keepdims else value
    return tuple(_o.median(x, size_tuple(axis)[0], keepdims))
