"""Picking and placing elements, in the spellings of the dialects."""

from lamella import _native
from lamella.adapt.arguments import check_axis, integer
from lamella.adapt.creation import astensor, full, full_like
from lamella.adapt.elementwise import as_dtype, class_numbers

_o = _native.operators_by_name

_MODES = {"none": "set", "add": "add", "mul": "mul", "multiply": "mul", "max": "max", "min": "min"}


def gather(x, indices, axis, batch_dims=0):
    """Slices of an axis; with batch_dims, each batch picks by indices of its own."""
    indices = astensor(indices)
    axis = check_axis(x, axis, "gather")
    if batch_dims == 0:
        return _o.gather(x, indices, axis)
    if batch_dims < 0:
        batch_dims += indices.ndim
    batch = 1
    for size in x.shape[:batch_dims]:
        batch *= size
    rows = [
        _o.gather(
            _o.reshape(x, (batch, *x.shape[batch_dims:]))[i],
            _o.reshape(indices, (batch, *indices.shape[batch_dims:]))[i],
            axis - batch_dims,
        )
        for i in range(batch)
    ]
    stacked = _o.stack(rows, 0)
    return _o.reshape(stacked, x.shape[:batch_dims] + stacked.shape[1:])


def gather_along(args, kwargs):
    """Tensor.gather: (dim, index), or (input_indices, axis, batch_dims)."""
    x, *rest = args
    names = ("dim", "index") if rest and isinstance(rest[0], int) else None
    if names or "dim" in kwargs or "index" in kwargs:
        values = dict(zip(("dim", "index"), rest, strict=False), **kwargs)
        return _o.gather_elements(x, values["index"], values["dim"])
    values = dict(zip(("input_indices", "axis", "batch_dims"), rest, strict=False), **kwargs)
    return gather(x, values["input_indices"], values["axis"], values.get("batch_dims", 0))


def scatter_into(x, axis, indices, updates, reduction="none"):
    """x with elements placed along an axis."""
    if reduction not in _MODES:
        raise ValueError(f"[scatter] reduction must be one of {sorted(_MODES)}, got {reduction!r}")
    if not isinstance(updates, _native.Tensor):
        updates = full_like(indices, updates, x.dtype)
    updates = as_dtype(updates, x.dtype)
    if updates.shape != indices.shape:  # more updates than indices: the first ones count
        for dim, size in enumerate(indices.shape):
            updates = _o.narrow(updates, 0, dim, (size,))
    return _o.scatter_elements(x, indices, updates, axis, _MODES[reduction])


def take(x, indices, axis=None, mode="clip"):
    indices = astensor(indices)
    if axis is None:
        x, axis = _o.reshape(x, (-1,)), 0
    axis = check_axis(x, axis, "take")
    size = x.shape[axis]
    if mode == "wrap":
        indices = _o.mod(indices, size)
    elif mode == "clip":
        indices = _o.clip(indices, 0, size - 1)
    return _o.gather(x, indices, axis, mode == "raise")


def index_add(x, axis, indices, source, alpha=1):
    if not (type(alpha) in (int, float) and alpha == 1):
        source = _o.mul(source, alpha)
    source = as_dtype(source, x.dtype)
    return _o.scatter(x, indices, source, axis, "add", operation="index_add")


def index_fill(x, axis, indices, value):
    indices = astensor(indices)
    axis = check_axis(x, axis, "index_fill")
    shape = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    updates = _o.broadcast_to(as_dtype(astensor(value), x.dtype), shape)
    return _o.scatter(x, _o.reshape(indices, (-1,)), updates, axis, operation="index_fill")


def select_index(x, axis, index):
    """The slice of an axis at one place."""
    axis = check_axis(x, axis, "select")
    return x[(slice(None),) * axis + (index,)]


def embedding(indices, table, padding_idx=None, max_norm=None, scale_grad_by_freq=False):
    """Rows of a table; the row of padding_idx gets no gradient."""
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("[embedding] max_norm and scale_grad_by_freq are not provided")
    if padding_idx is not None:
        rows = table.shape[0]
        if not -rows <= padding_idx < rows:
            raise ValueError(f"[embedding] padding_idx {padding_idx} is outside of {rows} rows")
        numbers = _o.reshape(_o.arange(0, 1, (rows,), _native.int64), (rows, 1))
        is_padding = _o.equal(numbers, padding_idx % rows)
        table = _o.where(is_padding, _o.stop_gradient(table), table)
    return _o.embedding(indices, table)


def where(condition, *branches):
    """One of two by a condition; with a condition alone, the places where it holds."""
    if not branches:
        return nonzero(condition, True)
    if condition.dtype != _native.bool_:
        condition = _o.cast(condition, _native.bool_)
    return _o.where(condition, *branches)


def nonzero(x, as_tuple=False):
    """Places of the elements that are not 0, as rows, or a tensor for each axis."""
    return _native.nonzero_by_axis(x) if as_tuple else _native.nonzero(x)


def masked_select(x, mask):
    if mask.dtype != _native.bool_:
        raise TypeError(f"[masked_select] mask must be of dtype bool, got {mask.dtype.name}")
    return _native.masked_select(x, mask)


def unique(x, return_inverse=False, return_counts=False, axis=None, operation="unique"):
    """Different elements in ascending order; alone, or with their places and counts."""
    if axis is not None:
        raise NotImplementedError(
            f"[{operation}] slices of an axis cannot be compared, only elements"
        )
    x = astensor(x)
    values, inverse, counts = getattr(_native, operation)(x)
    if not return_inverse and not return_counts:
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


def unique_consecutive(x, return_inverse=False, return_counts=False, axis=None):
    return unique(x, return_inverse, return_counts, axis, "unique_consecutive")


def unique_with_pad(x, value):
    """The different elements and, behind them, the value, as many as x; and their places."""
    values, inverse = unique(_o.reshape(x, (-1,)), True)
    padding = full_like(x, value, None, (x.size - values.size,))
    return _o.concat([values, padding], 0), as_dtype(inverse, x.dtype)


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1, dtype=None):
    indices = class_numbers("one_hot", "indices", astensor(indices))
    depth = integer(depth)
    if depth < 0:
        depth = int(_o.max(indices)) + 1
    if dtype is None:
        dtype = on_value.dtype if isinstance(on_value, _native.Tensor) else None
    if dtype is None:
        dtype = _native.float32 if isinstance(on_value, float) else _native.int64
    return _o.one_hot(indices, on_value, off_value, (depth,), dtype, axis)


def diag(x, offset=0):
    """The matrix with x on a diagonal, or the diagonal of a matrix."""
    if x.ndim not in (1, 2):
        raise ValueError(f"[diag] expected 1 or 2 axes, got {x.ndim}")
    return _o.diagonal(x, offset) if x.ndim == 2 else _o.diag_embed(x, offset)


def triangle_indices(rows, columns, offset, dtype, operation):
    """Places of a triangle of a matrix: rows and columns."""
    kept = getattr(_o, operation)(full((rows, columns), True, _native.bool_), offset)
    places = _native.nonzero_by_axis(kept)
    return tuple(as_dtype(place, dtype) for place in places)
