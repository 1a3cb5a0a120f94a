"""Differences, turns and products of grids, and pictures in other sizes."""

from lamella import _native
from lamella.adapt.arguments import integer, ints, size_tuple
from lamella.adapt.creation import arange, astensor
from lamella.adapt.shapes import move_axes, reverse, swap

_o = _native.operators_by_name


def _step(x, axis):
    size = x.shape[axis]
    parts = (_o.narrow(x, 1, axis, (size - 1,)), _o.narrow(x, 0, axis, (size - 1,)))
    return (_o.not_equal if x.dtype == _native.bool_ else _o.sub)(*parts)


def diff(x, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours, n times."""
    x = astensor(x)
    if x.ndim == 0:
        raise ValueError("[diff] a tensor of rank 0 has no neighbours")
    if n < 0:
        raise ValueError(f"[diff] n must not be negative, got {n}")
    axis %= x.ndim
    beside = []
    for end in (prepend, append):
        if end is not None:
            end = astensor(end)
            if end.ndim == 0:
                shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
                end = _o.broadcast_to(end, shape)
        beside.append(end)
    parts = [part for part in (beside[0], x, beside[1]) if part is not None]
    x = _o.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(min(n, x.shape[axis])):
        x = _step(x, axis)
    return x


def trapezoids(y, x=None, dx=1.0, axis=-1):
    """The integral by the trapezoidal rule."""
    y = astensor(y)
    axis %= y.ndim
    size = y.shape[axis] - 1
    pairs = _o.add(_o.narrow(y, 1, axis, (size,)), _o.narrow(y, 0, axis, (size,)))
    if x is None:
        return _o.mul(_o.sum(pairs, axis), dx / 2.0)
    x = astensor(x)
    widths = diff(x, 1, -1 if x.ndim == 1 else axis)
    if x.ndim == 1:
        widths = _o.reshape(widths, (size, *(1,) * (y.ndim - 1 - axis)))
    return _o.div(_o.sum(_o.mul(pairs, widths), axis), 2.0)


def rot90(x, k=1, axes=(0, 1)):
    """Turned k times from the first of two axes towards the second."""
    first, second = (axis % x.ndim for axis in size_tuple(axes))
    if first == second:
        raise ValueError(f"[rot90] two different axes are needed, got {axes}")
    turns = k % 4
    if turns == 2:
        return reverse(x, (first, second))
    if turns == 1:
        return swap(reverse(x, second), first, second)
    return reverse(swap(x, first, second), second) if turns == 3 else x


def roll_axis(x, axis, start=0):
    axis %= x.ndim
    start = start + x.ndim if start < 0 else start
    return move_axes(x, axis, start - 1 if axis < start else start)


def kron(x, y):
    x, y = astensor(x), astensor(y)
    rank = max(x.ndim, y.ndim)
    xs, ys = ((1,) * (rank - t.ndim) + t.shape for t in (x, y))
    left = _o.reshape(x, tuple(size for n in xs for size in (n, 1)))
    right = _o.reshape(y, tuple(size for n in ys for size in (1, n)))
    return _o.reshape(_o.mul(left, right), tuple(a * b for a, b in zip(xs, ys, strict=True)))


def vander(x, columns=None, increasing=False):
    """Powers of x as columns, the highest first."""
    columns = x.size if columns is None else integer(columns)
    powers = arange(0, columns, 1)
    exponents = powers if increasing else _o.flip(powers)
    return _o.pow(_o.expand_dims(x, 1), _o.cast(exponents, x.dtype))


def cross(x, y, axis=None):
    """The vector product along an axis of size 3; none given: the first such."""
    x, y = astensor(x), astensor(y)
    if axis is None:
        axis = next((i for i, size in enumerate(x.shape) if size == 3), None)
    if axis is None or x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ValueError(f"[cross] an axis of size 3 is needed, got {x.shape} and {y.shape}")
    a, b = ([_o.narrow(t, i, axis, (1,)) for i in range(3)] for t in (x, y))
    parts = [_o.sub(_o.mul(a[i], b[j]), _o.mul(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return _o.concat(parts, axis)


def distances(x, y, p=2.0):
    """The p-norm of each row of x less each row of y."""
    return _o.norm(_o.sub(_o.expand_dims(x, -2), _o.expand_dims(y, -3)), float(p), -1)


def pixel_shuffle(x, factor):
    """Groups of factor^2 channels as squares of pixels."""
    *batch, channels, height, width = x.shape
    if channels % factor**2:
        raise ValueError(f"[pixel_shuffle] {channels} channels do not divide into {factor}^2")
    rank = len(batch)
    split = _o.reshape(x, (*batch, channels // factor**2, factor, factor, height, width))
    order = (*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2)
    shape = (*batch, channels // factor**2, height * factor, width * factor)
    return _o.reshape(_o.transpose(split, order), shape)


def pixel_unshuffle(x, factor):
    *batch, channels, height, width = x.shape
    if height % factor or width % factor:
        raise ValueError(f"[pixel_unshuffle] {height} x {width} does not divide by {factor}")
    rank, rows, columns = len(batch), height // factor, width // factor
    split = _o.reshape(x, (*batch, channels, rows, factor, columns, factor))
    order = (*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3)
    return _o.reshape(_o.transpose(split, order), (*batch, channels * factor**2, rows, columns))


def depth_to_space(x, block):
    """Channels as squares of pixels, the place in the square counted slowest."""
    batch, channels, height, width = x.shape
    split = _o.reshape(x, (batch, block, block, channels // block**2, height, width))
    shape = (batch, channels // block**2, height * block, width * block)
    return _o.reshape(_o.transpose(split, (0, 3, 4, 1, 5, 2)), shape)


def space_to_depth(x, block):
    batch, channels, height, width = x.shape
    rows, columns = height // block, width // block
    split = _o.reshape(x, (batch, channels, rows, block, columns, block))
    shape = (batch, channels * block**2, rows, columns)
    return _o.reshape(_o.transpose(split, (0, 3, 5, 1, 2, 4)), shape)


def resize(x, size, mode, align_corners=False, half_pixel=False):
    """Pictures resampled as the Resize primitives do."""
    if align_corners and half_pixel:
        raise ValueError("[resize] align_corners and half_pixel_centers exclude each other")
    places = "align_corners" if align_corners else "half_pixel" if half_pixel else "asymmetric"
    return _o.resize(x, size_tuple(size), mode, places)


def resize_linear(x, size, transformation):
    """ResizeLinear1D."""
    if transformation not in ("align_corners", "half_pixel", "asymmetric"):
        raise ValueError(f"[resize] unknown coordinate_transformation_mode {transformation!r}")
    return _o.resize(x, size_tuple(size), "linear", transformation)


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Spatial axes resampled to a size or by a factor."""
    axes = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("[interpolate] exactly one of size and scale_factor must be given")
    if size is None:
        factors = scale_factor if isinstance(scale_factor, (tuple, list)) else [scale_factor] * axes
        size = [int(n * factor) for n, factor in zip(x.shape[2:], factors, strict=True)]
    sizes = size_tuple(size)
    sizes = sizes * axes if len(sizes) == 1 else sizes
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}
    if align_corners is not None and mode not in linear.values():
        raise ValueError(
            f"[interpolate] align_corners is for {list(linear.values())}, not {mode!r}"
        )
    if mode == "nearest":
        return _o.resize(x, sizes, "nearest", "asymmetric")
    if mode == "nearest-exact":
        return _o.resize(x, sizes, "nearest", "half_pixel")
    if mode == "area":
        return _o.adaptive_avg_pool(x, sizes)
    if mode == linear.get(axes):
        return _o.resize(x, sizes, "linear", "align_corners" if align_corners else "half_pixel")
    if mode == "bicubic":
        raise NotImplementedError("[interpolate] mode 'bicubic' is not provided")
    raise ValueError(f"[interpolate] mode {mode!r} is not one for {axes} spatial axes")


def _window_starts(x, kernel, dilation, padding, stride):
    """Sizes of kernel, dilation, padding, stride along two axes, and how many windows there are."""
    kernel, dilation, padding, stride = (ints(v, 2) for v in (kernel, dilation, padding, stride))
    counts = tuple(
        (size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i, size in enumerate(x)
    )
    if min(counts) < 1:
        raise ValueError(f"[unfold] windows of {kernel} do not fit into {tuple(x)}")
    return kernel, dilation, padding, stride, counts


def unfold(x, kernel, dilation=1, padding=0, stride=1):
    """Windows as columns: [batch, channels * window, windows]."""
    batch, channels, *sizes = x.shape
    kernel, dilation, padding, stride, counts = _window_starts(
        sizes, kernel, dilation, padding, stride
    )
    amounts = (0, 0, *padding)
    x = _o.pad(x, 0, amounts, amounts)
    parts = []
    for i in range(kernel[0]):
        rows = _o.narrow(x, i * dilation[0], 2, (counts[0],), stride[0])
        parts += [
            _o.narrow(rows, j * dilation[1], 3, (counts[1],), stride[1]) for j in range(kernel[1])
        ]
    windows = _o.stack(parts, 2)
    return _o.reshape(windows, (batch, channels * len(parts), counts[0] * counts[1]))


def fold(x, size, kernel, dilation=1, padding=0, stride=1):
    """Columns back in their windows, added up where these overlap."""
    size = ints(size, 2)
    kernel, dilation, padding, stride, counts = _window_starts(
        size, kernel, dilation, padding, stride
    )
    batch, rows, _ = x.shape
    channels = rows // (kernel[0] * kernel[1])
    windows = _o.reshape(x, (batch, channels, *kernel, *counts))
    # Along each axis the places of all windows' elements, for one scatter that adds them up.
    whole = tuple(size[i] + 2 * padding[i] for i in range(2))
    places = [
        _o.add(
            _o.reshape(arange(0, kernel[i] * dilation[i], dilation[i]), (kernel[i], 1)),
            _o.reshape(arange(0, counts[i] * stride[i], stride[i]), (1, counts[i])),
        )
        for i in range(2)
    ]
    turned = _o.transpose(windows, (0, 1, 2, 4, 3, 5))
    zeros = _o.broadcast_to(
        _native.Tensor(0, x.dtype), (batch, channels, *places[0].shape, whole[1])
    )
    summed = _o.scatter(zeros, places[1], turned, 4, "add")
    zeros = _o.broadcast_to(_native.Tensor(0, x.dtype), (batch, channels, *whole))
    summed = _o.scatter(zeros, places[0], summed, 2, "add")
    amounts = (0, 0, *(-p for p in padding))
    return _o.pad(summed, 0, amounts, amounts)


def reverse_sequence(x, lengths, axis, batch_axis=0):
    """The first elements of an axis turned round, as many as each batch entry's length says."""
    axis, batch_axis = axis % x.ndim, batch_axis % x.ndim
    size = x.shape[axis]
    along = _o.reshape(arange(size), tuple(size if i == axis else 1 for i in range(x.ndim)))
    count = _o.cast(astensor(lengths), _native.int64)
    shape = tuple(count.size if i == batch_axis else 1 for i in range(x.ndim))
    count = _o.reshape(count, shape)
    places = _o.where(_o.less(along, count), _o.sub(_o.sub(count, 1), along), along)
    return _o.gather_elements(x, _o.broadcast_to(places, x.shape), axis)
