"""Shapes: splitting, joining, moving axes, in the spellings of the dialects."""

import math

from lamella import _native
from lamella.adapt.arguments import check_axis, flat, integer, size_tuple
from lamella.adapt.creation import astensor

_o = _native.operators_by_name


def permute(x, axes):
    """Axes in another order; none given: reversed."""
    if not axes or axes == (None,):
        return _o.transpose(x)
    return _o.transpose(x, flat(axes))


def transpose(x, axes):
    """Tensor.transpose: two axes to exchange, or an order of all."""
    axes = flat(axes) if axes and axes != (None,) else ()
    if len(axes) == 2 and x.ndim != 2:
        return swap(x, *axes)
    return permute(x, axes)


def swap(x, first, second):
    first, second = check_axis(x, first, "swapaxes"), check_axis(x, second, "swapaxes")
    order = list(range(x.ndim))
    order[first], order[second] = order[second], order[first]
    return _o.transpose(x, tuple(order))


def move_axes(x, source, destination):
    source = [check_axis(x, axis, "moveaxis") for axis in size_tuple(source)]
    destination = [check_axis(x, axis, "moveaxis") for axis in size_tuple(destination)]
    order = [axis for axis in range(x.ndim) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=False)):
        order.insert(place, axis)
    return _o.transpose(x, tuple(order))


def squeeze(x, axis):
    """Axes of another size than 1 stay; none given: all of size 1 go."""
    axes = flat(axis) if isinstance(axis, tuple) and axis != (None,) else size_tuple(axis)
    return _o.squeeze(x, axes)


def flatten(x, start=1, end=-1):
    start = check_axis(x, start, "flatten") if x.ndim else 0
    end = check_axis(x, end, "flatten") if x.ndim else 0
    if x.ndim == 0:
        return _o.reshape(x, (1,))
    if start > end:
        raise ValueError(f"[flatten] start_dim {start} lies behind end_dim {end}")
    shape = x.shape
    return _o.reshape(x, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def flatten_order(x, order="C", start=1, end=-1):
    """ops.flatten: row by row, or column by column for 'F'."""
    if isinstance(order, int):  # Tensor.flatten(start_dim, end_dim)
        return flatten(x, order, start)
    if order not in ("C", "F"):
        raise ValueError(f"[flatten] order must be 'C' or 'F', got {order!r}")
    if order == "F":
        x = permute(x, ())
    if start == 1 and x.ndim < 2:
        return _o.reshape(x, (-1,)) if x.ndim == 0 else x
    return flatten(x, start, end)


def _sections(x, sizes, axis, name):
    axis = check_axis(x, axis, name)
    if sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"[{name}] {tuple(sizes)} do not add up to {x.shape[axis]}, the size of axis {axis}"
        )
    return _native.split_into(x, sizes, axis)


def split(x, size_or_sections, axis=0):
    """Pieces of a size, the last one smaller, or pieces of the sizes listed."""
    if isinstance(size_or_sections, (tuple, list)):
        return _sections(x, size_or_sections, axis, "split")
    size = integer(size_or_sections)
    if size <= 0:
        raise ValueError(f"[split] the size of the pieces must be positive, got {size}")
    length = x.shape[check_axis(x, axis, "split")]
    sizes = [size] * (length // size) + ([length % size] if length % size else [])
    return _sections(x, sizes or [0], axis, "split")


def chunk(x, chunks, axis=0):
    length, chunks = x.shape[check_axis(x, axis, "chunk")], integer(chunks)
    if chunks <= 0:
        raise ValueError(f"[chunk] the number of chunks must be positive, got {chunks}")
    return split(x, max(1, -(-length // chunks)), axis)


def tensor_split(x, indices_or_sections, axis=0, equal=False):
    """So many pieces whose sizes differ by at most one, or pieces cut at the places listed."""
    x = astensor(x)
    length = x.shape[check_axis(x, axis, "split")]
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [0, *(min(max(c + length if c < 0 else c, 0), length) for c in indices_or_sections)]
        sizes = [max(0, b - a) for a, b in zip(cuts, [*cuts[1:], length], strict=False)]
        return _sections(x, sizes, axis, "split")
    count = integer(indices_or_sections)
    if equal and length % count:
        raise ValueError(f"[split] axis of size {length} does not divide into {count} equal pieces")
    sizes = [length // count + (i < length % count) for i in range(count)]
    return _sections(x, sizes, axis, "split")


def array_split(x, indices_or_sections, axis=0):
    return tensor_split(x, indices_or_sections, axis)


def unstack(x, axis=0):
    return tuple(_o.unstack(x, check_axis(x, axis, "unstack")))


def tile(x, repeats):
    """x repeated along each axis."""
    x = astensor(x)
    repeats = size_tuple(repeats)
    shape = (1,) * (len(repeats) - x.ndim) + x.shape
    repeats = (1,) * (len(shape) - len(repeats)) + repeats
    between = tuple(size for pair in zip((1,) * len(shape), shape, strict=False) for size in pair)
    spread = tuple(size for pair in zip(repeats, shape, strict=False) for size in pair)
    if len(between) > 8:
        for axis, count in enumerate(repeats):
            if count != 1:
                x = _o.concat([_o.reshape(x, shape)] * count, axis)
                shape = x.shape
        return _o.reshape(x, shape)
    wide = _o.broadcast_to(_o.reshape(x, between), spread)
    return _o.reshape(
        wide, tuple(size * count for size, count in zip(shape, repeats, strict=False))
    )


def repeat_elements(x, count, axis=0):
    """Each slice of an axis several times in a row."""
    axis = check_axis(x, axis, "repeat_interleave")
    shape = x.shape
    inner = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    joined = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    return _o.reshape(_o.broadcast_to(_o.reshape(x, inner), wide), joined)


def repeat(x, repeats, axis=None):
    """As NumPy's repeat: one count, or one for each slice."""
    x = astensor(x)
    if axis is None:
        x, axis = _o.reshape(x, (-1,)), 0
    counts = size_tuple(repeats)
    if len(counts) == 1:
        return repeat_elements(x, counts[0], axis)
    axis = check_axis(x, axis, "repeat_interleave")
    positions = [i for i, count in enumerate(counts) for _ in range(count)]
    return _o.gather(x, _native.Tensor(positions), axis)


def roll(x, shifts, axes=None):
    shape = x.shape
    if axes is None:
        x, axes = _o.reshape(x, (-1,)), (0,)
    for shift, axis in zip(size_tuple(shifts), size_tuple(axes), strict=False):
        length = x.shape[axis]
        cut = (-shift) % length if length else 0
        if cut:
            parts = [_o.narrow(x, cut, axis, (length - cut,)), _o.narrow(x, 0, axis, (cut,))]
            x = _o.concat(parts, axis)
    return x if x.shape == shape else _o.reshape(x, shape)


def reverse(x, axes=None):
    """Elements in the opposite order along axes."""
    if axes is None:
        return _o.flip(x)
    axes = size_tuple(axes)
    return _o.flip(x, axes) if axes else x


def at_least(tensors, rank):
    """Tensors of at least so many axes, as NumPy's atleast_1d, 2d and 3d."""
    made = []
    for tensor in tensors:
        x = astensor(tensor)
        if rank == 3 and x.ndim in (1, 2):
            x = _o.reshape(x, (1, x.size, 1) if x.ndim == 1 else (*x.shape, 1))
        while x.ndim < rank:
            x = _o.expand_dims(x, 0)
        made.append(x)
    return made[0] if len(made) == 1 else made


def stack_rows(tensors, kind):
    """hstack, vstack, dstack and column_stack."""
    tensors = [astensor(tensor) for tensor in tensors]
    if kind == "v":
        return _o.concat([at_least([t], 2) for t in tensors], 0)
    if kind == "d":
        return _o.concat([at_least([t], 3) for t in tensors], 2)
    if kind == "column":
        columns = [_o.reshape(t, (t.size, 1)) if t.ndim < 2 else t for t in tensors]
        return _o.concat(columns, 1)
    tensors = [at_least([t], 1) for t in tensors]
    return _o.concat(tensors, 0 if tensors[0].ndim == 1 else 1)


def strided_slice(x, begin, end, strides, masks=(0, 0, 0, 0, 0)):
    """A slice per axis; mask bits leave bounds out, add axes and take single elements."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    key = []
    for i, (start, stop, step) in enumerate(
        zip(size_tuple(begin), size_tuple(end), size_tuple(strides), strict=False)
    ):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(start)
        else:
            key.append(
                slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step)
            )
    return x[tuple(key)]
