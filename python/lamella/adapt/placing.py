"""Placing elements: the scatters, segments, fills and updates of the dialects."""

from lamella import _native
from lamella.adapt.arguments import integer, size_tuple
from lamella.adapt.creation import arange, astensor, full, ones_like, zeros
from lamella.adapt.elementwise import as_dtype, div, is_float

_o = _native.operators_by_name


def _combined(place, x, updates, mode):
    """place(target, updates, mode) with subtraction and division among the modes."""
    updates = as_dtype(astensor(updates), x.dtype)
    if mode == "sub":
        return place(x, _o.neg(updates), "add")
    if mode == "div":
        whole = not is_float(x)
        return div(x, place(ones_like(x), updates, "mul"), "trunc" if whole else None)
    return place(x, updates, mode)


def scatter_rows(x, indices, updates, mode):
    """Slices of the first axis combined with updates, at indices of any shape."""
    indices = astensor(indices)
    return _combined(lambda t, u, m: _o.scatter(t, indices, u, 0, m), x, updates, mode)


def scatter_places(x, indices, updates, mode):
    """Parts named by rows of indices combined with updates."""
    return _combined(lambda t, u, m: _o.scatter_nd(t, indices, u, m), x, updates, mode)


def scatter_add_to(args, kwargs):
    """Tensor.scatter_add: (dim, index, src) along an axis, or (indices, updates) by places."""
    from lamella.adapt.indexing import scatter_into

    x, *rest = args
    if len(rest) + len(kwargs) == 2:
        values = dict(zip(("indices", "updates"), rest, strict=False), **kwargs)
        return scatter_places(x, values["indices"], values["updates"], "add")
    values = dict(zip(("dim", "index", "src"), rest, strict=False), **kwargs)
    return scatter_into(x, values["dim"], values["index"], values["src"], "add")


def update_rows(x, indices, values, mode):
    """x[indices] combined with values, for an index or a tuple of them."""
    return scatter_rows(x, _native.Tensor(list(size_tuple(indices))), values, mode)


def unsorted_segment(mode, x, segments, count):
    """x combined by segment numbers below the count; negative ones are left out."""
    operation = "unsorted_segment_" + {"add": "sum", "mul": "prod"}.get(mode, mode)
    count = integer(count)
    if count < 0:
        raise ValueError(f"[{operation}] num_segments must be at least 0, got {count}")
    segments = _o.check_indices(
        _o.maximum(astensor(segments), -1), count, -1, operation=operation, kind="segment"
    )
    rest = x.shape[segments.ndim :]
    if mode in ("min", "max"):
        import numpy as np

        name = "float32" if x.dtype.name == "bfloat16" else x.dtype.name
        limits = np.finfo(name) if "float" in name else np.iinfo(name)
        start = (limits.max if mode == "min" else limits.min).item()
    else:
        start = 1 if mode == "mul" else 0
    # What is left out goes to a segment of its own, which is cut off.
    where = _o.where(_o.less(segments, 0), count, segments)
    result = _o.scatter(full((count + 1, *rest), start, x.dtype), where, x, 0, mode)
    return _o.narrow(result, 0, 0, (count,))


def index_put(x, indices, values, accumulate=False):
    key = tuple(indices) if isinstance(indices, (list, tuple)) else (indices,)
    return _native.index_update(x, key, values, "add" if accumulate else "set")


def put(x, index, source, accumulate=False):
    """Elements of the flat tensor."""
    flat = index_put(
        _o.reshape(x, (-1,)), (_o.reshape(astensor(index), (-1,)),),
        _o.reshape(astensor(source), (-1,)), accumulate,
    )  # fmt: skip
    return _o.reshape(flat, x.shape)


def index_copy(x, axis, index, source):
    source = as_dtype(source, x.dtype)
    return _o.scatter(x, astensor(index), source, axis, operation="index_copy")


def masked_scatter(x, mask, source):
    """The first elements of source, in order, where the mask holds."""
    mask = _o.reshape(_o.broadcast_to(as_dtype(mask, _native.bool_), x.shape), (-1,))
    places = _native.nonzero_by_axis(mask)[0]
    if source.size < places.size:
        raise ValueError(
            f"[masked_scatter] the mask picks {places.size} elements, source has {source.size}"
        )
    values = _o.narrow(_o.reshape(as_dtype(source, x.dtype), (-1,)), 0, 0, (places.size,))
    return _o.reshape(_o.scatter(_o.reshape(x, (-1,)), places, values), x.shape)


def select_scatter(x, source, axis, index):
    axis %= x.ndim
    return _native.index_update(x, (slice(None),) * axis + (index,), source, "set")


def diagonal_scatter(x, source, offset=0, axis1=0, axis2=1):
    numbers = _o.diagonal(_o.reshape(arange(x.size), x.shape), offset, axis1, axis2)
    if source.shape != numbers.shape:
        raise ValueError(
            f"[diagonal_scatter] src has shape {source.shape}, the diagonal {numbers.shape}"
        )
    return put(x, numbers, as_dtype(source, x.dtype))


def fill_diagonal(x, value, wrap=False):
    """The value where all places are equal; with wrap, a tall matrix begins anew below."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(f"[fill_diagonal] expected a matrix or equal axes, got shape {x.shape}")
    columns = x.shape[1]
    step = columns + 1 if x.ndim == 2 else sum(columns**i for i in range(x.ndim))
    end = columns * columns if x.ndim == 2 and not wrap else x.size
    places = arange(0, min(end, x.size), step)
    return put(x, places, full(places.shape, value, x.dtype))


def sum_to_size(x, sizes):
    """Summed over the axes along which the sizes were broadcast."""
    sizes = size_tuple(sizes[0] if len(sizes) == 1 else sizes)
    extra = x.ndim - len(sizes)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, size in enumerate(sizes) if size == 1 and x.shape[extra + i] != 1
    )
    summed = _o.sum(x, axes, True) if axes else x
    return _o.reshape(summed, sizes)


def block_diagonal(matrices):
    """Matrices one behind the other along the diagonal, zeros beside them."""
    from lamella.adapt.shapes import at_least

    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = matrices[0]
    matrices = [at_least((matrix,), 2) for matrix in matrices]
    width, before, rows = sum(matrix.shape[1] for matrix in matrices), 0, []
    for matrix in matrices:
        behind = width - before - matrix.shape[1]
        rows.append(_o.pad(matrix, 0, (0, before), (0, behind)))
        before += matrix.shape[1]
    return _o.concat(rows, 0) if rows else zeros((0, 0))
