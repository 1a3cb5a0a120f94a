"""What tensors say of themselves, and conversions between their kinds."""

from lamella import _native
from lamella.adapt.arguments import flat, size_tuple
from lamella.adapt.indexing import select_index, where
from lamella.adapt.reductions import reduce
from lamella.adapt.shapes import flatten_order

_o = _native.operators_by_name


def shape_of(x):
    return x.shape


def rank_of(x):
    return x.ndim


def size_of(x):
    return x.size


def dtype_of(x):
    return x.dtype


def dtype_name(x):
    return repr(x.dtype)


def shape_tensor(x):
    return _native.Tensor(list(x.shape), _native.int64)


def is_scalar(x):
    return isinstance(x, (int, float, bool)) or (isinstance(x, _native.Tensor) and x.ndim == 0)


def identity_of(x):
    """The same value with a storage of its own."""
    return _native.Tensor(x)


def all_equal(x, y):
    return x.shape == y.shape and bool(_o.all(_o.equal(x, y)))


def array_of(data, dtype=None):
    """A tensor of numbers; nested lists may hold tensors."""
    return _native.Tensor(data, dtype)


def slice_of(x, begin, size):
    begin = size_tuple(begin)
    sizes = [s if s != -1 else x.shape[i] - begin[i] for i, s in enumerate(size_tuple(size))]
    for axis, (start, length) in enumerate(zip(begin, sizes, strict=True)):
        if start != 0 or length != x.shape[axis]:
            x = _o.narrow(x, start, axis, (length,))
    return x


def view_of(x, args):
    """Tensor.view: another shape; a dtype reads the bits anew."""
    if len(args) == 1 and isinstance(args[0], _native.dtype):
        import numpy as np

        return _native.Tensor(x.asnumpy().view(np.dtype(args[0].name)))
    return _o.reshape(x, flat(args))


def flatten_tensor(x, order="C", end=-1):
    if isinstance(order, int):
        return flatten_order(x, "C", order, end)
    return flatten_order(x, order, 0, end)


def sum_of_axis(x, axis, dtype, keepdims, initial):
    """Tensor.sum takes (axis, keepdim) and (axis, dtype, keepdims) by position."""
    if isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    return reduce("sum", x, axis, keepdims, dtype, initial)


def select_or_choose(x, dim, index):
    """Tensor.select: (dim, index), or (condition, y)."""
    return where(dim, x, index) if isinstance(dim, _native.Tensor) else select_index(x, dim, index)


def converted(x, args, kwargs):
    """Tensor.to: a dtype, a device, or another tensor's dtype."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, _native.Tensor):
            return _o.cast(x, value.dtype)
        if isinstance(value, _native.dtype):
            return _o.cast(x, value)
    return x
