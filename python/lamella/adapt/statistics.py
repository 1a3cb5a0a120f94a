"""Counting, searching, quantiles, reductions that leave NaN out, and sets."""

from lamella import _native
from lamella.adapt.arguments import integer, size_tuple
from lamella.adapt.creation import astensor, linspace, ones, zeros
from lamella.adapt.elementwise import as_dtype, class_numbers, is_float

_o = _native.operators_by_name
_NAN, _INF = float("nan"), float("inf")


# ---- Searching and counting ----


def search_sorted(sequence, values, right=False, side=None, sorter=None, dtype=None):
    if side not in (None, "left", "right"):
        raise ValueError(f"[searchsorted] side must be 'left' or 'right', got {side!r}")
    sequence = astensor(sequence)
    if sorter is not None:
        sequence = _o.take_along_axis(sequence, astensor(sorter), -1)
    places = _o.search_sorted(sequence, astensor(values), right or side == "right")
    return as_dtype(places, dtype)


def digitize(x, bins, right=False):
    """The bin of each element; bins ascend or descend."""
    x, bins = astensor(x), astensor(bins)
    if bins.size > 1 and bins[0].item() > bins[-1].item():
        turned = _o.flip(bins)
        return _o.sub(bins.size, _o.search_sorted(turned, x, not right))
    return _o.search_sorted(bins, x, not right)


def bincount(x, weights=None, minlength=0, length=None):
    """How often, or with which weight, each number from 0 on occurs."""
    x = astensor(x)
    if is_float(x):
        raise TypeError(f"[bincount] input must be of an integer dtype, got {x.dtype.name}")
    count = max(integer(minlength), int(_o.max(x)) + 1 if x.size else 0)
    count = count if length is None else integer(length)
    each = ones(x.shape, _native.int64) if weights is None else astensor(weights)
    x = as_dtype(x, _native.int64)
    return _o.scatter(zeros((count,), each.dtype), x, each, 0, "add", operation="bincount")


def _bounds(x, low, high):
    if low == high and x.size:
        low, high = _o.min(x).item(), _o.max(x).item()
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _counts(x, bins, low, high, weights):
    """What falls into bins of equal width; the last one holds its upper bound too."""
    x = _o.reshape(x, (-1,))
    place = _o.floor(_o.mul(_o.sub(x, low), bins / (high - low)))
    place = _o.clip(_o.cast(place, _native.int64), 0, bins - 1)
    inside = _o.logical_and(_o.greater_equal(x, low), _o.less_equal(x, high))
    kept = _o.where(inside, weights, _native.Tensor(0, weights.dtype))
    return _o.scatter(zeros((bins,), weights.dtype), place, kept, 0, "add")


def histc(x, bins=100, low=0, high=0):
    low, high = _bounds(x, low, high)
    numbers = x if is_float(x) else _o.cast(x, _native.float32)
    counts = _counts(numbers, integer(bins), low, high, ones((x.size,), _native.float32))
    return _o.cast(counts, x.dtype)


def histogram_edges(x, bins=10, range=None):
    if not isinstance(bins, int):
        return as_dtype(astensor(bins), _native.float32)
    low, high = _bounds(astensor(x), *((0, 0) if range is None else range))
    return linspace(low, high, bins + 1)


def histogram(x, bins=10, range=None, weights=None, density=False):
    """(what falls into each bin, the bins' edges)."""
    x = as_dtype(astensor(x), _native.float32)
    edges = histogram_edges(x, bins, range)
    count = edges.size - 1
    if weights is None:
        weights = ones((x.size,), _native.float32)
    weights = _o.reshape(as_dtype(astensor(weights), _native.float32), (-1,))
    if isinstance(bins, int):
        low, high = edges[0].item(), edges[-1].item()
        counts = _counts(x, count, low, high, weights)
    else:
        flat = _o.reshape(x, (-1,))
        place = _o.sub(_o.search_sorted(edges, flat, True), 1)
        place = _o.where(_o.equal(flat, edges[-1]), count - 1, place)
        inside = _o.logical_and(_o.greater_equal(place, 0), _o.less(place, count))
        kept = _o.where(inside, weights, 0.0)
        counts = _o.scatter(zeros((count,)), _o.clip(place, 0, count - 1), kept, 0, "add")
    if density:
        widths = _o.sub(_o.narrow(edges, 1, 0, (count,)), _o.narrow(edges, 0, 0, (count,)))
        counts = _o.div(_o.div(counts, widths), _o.sum(counts))
    return counts, edges


# ---- Without NaN ----


def _filled(x, value):
    x = astensor(x)
    return _o.where(_o.isnan(x), _native.Tensor(value, x.dtype), x)


def _kept(x, axis, keepdims):
    """How many elements are numbers."""
    return _o.sum(_o.logical_not(_o.isnan(x)), axis, keepdims)


def nan_sum(x, axis=None, keepdims=False, dtype=None):
    return _o.sum(as_dtype(_filled(x, 0), dtype), axis, keepdims)


def nan_mean(x, axis=None, keepdims=False, dtype=None):
    x = as_dtype(astensor(x), dtype)
    return _o.div(nan_sum(x, axis, keepdims), as_dtype(_kept(x, axis, keepdims), x.dtype))


def nan_variance(x, axis=None, ddof=0, keepdims=False, dtype=None):
    x = as_dtype(astensor(x), dtype)
    distance = _o.square(_o.sub(x, nan_mean(x, axis, True)))
    count = _o.sub(_kept(x, axis, keepdims), ddof)
    return _o.div(nan_sum(distance, axis, keepdims), as_dtype(count, x.dtype))


def nan_deviation(x, axis=None, ddof=0, keepdims=False, dtype=None):
    return _o.sqrt(nan_variance(x, axis, ddof, keepdims, dtype))


def nan_extremum(operator, x, axis=None, keepdims=False, dtype=None):
    x = as_dtype(astensor(x), dtype)
    extremum = getattr(_o, operator)(
        _filled(x, -_INF if operator == "max" else _INF), axis, keepdims
    )
    return _o.where(_o.equal(_kept(x, axis, keepdims), 0), _NAN, extremum)


def nan_cumsum(x, axis=None, dtype=None):
    from lamella.adapt.reductions import cumulative

    return cumulative("cumsum", _filled(x, 0), axis, dtype)


def nan_median(x, axis=-1, keepdims=False):
    """The median of what is a number, and its position; NaN if nothing is."""
    values, positions = _o.sort(x, axis)
    middle = _o.floor_divide(_o.sub(_kept(x, axis, True), 1), 2)
    middle = _o.maximum(middle, 0)
    parts = [_o.gather_elements(part, middle, axis) for part in (values, positions)]
    return tuple(parts if keepdims else [_o.squeeze(part, axis) for part in parts])


def quantile(x, q, axis=None, keepdims=False, skip_nan=False):
    """Linearly between the two elements around place q (n - 1) of the order."""
    rank = x.ndim
    if axis is None:
        x, axis = _o.reshape(x, (-1,)), 0
        kept_shape = (1,) * rank
    else:
        axis = size_tuple(axis)[0] % rank
        kept_shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    many = isinstance(q, _native.Tensor) and q.ndim > 0
    fractions = q.asnumpy().reshape(-1).tolist() if isinstance(q, _native.Tensor) else [q]
    if any(not 0 <= fraction <= 1 for fraction in fractions):
        raise ValueError(f"[quantile] q must be between 0 and 1, got {fractions}")
    order = _o.sort(x, axis)[0]
    count = _kept(x, axis, True)
    missing = _o.equal(count, 0) if skip_nan else _o.less(count, x.shape[axis])
    results = []
    for fraction in fractions:
        at = _o.mul(_o.cast(_o.maximum(_o.sub(count, 1), 0), _native.float64), fraction)
        before = _o.cast(_o.floor(at), _native.int64)
        after = _o.minimum(_o.add(before, 1), _o.maximum(_o.sub(count, 1), 0))
        low, high = (_o.gather_elements(order, place, axis) for place in (before, after))
        between = _o.lerp(low, high, _o.cast(_o.sub(at, _o.floor(at)), x.dtype))
        between = _o.where(missing, _NAN, between)
        results.append(_o.reshape(between, kept_shape) if keepdims else _o.squeeze(between, axis))
    return _o.stack(results, 0) if many else results[0]


def min_max(x, axis=None, keepdims=False):
    return _o.min(x, axis, keepdims), _o.max(x, axis, keepdims)


# ---- Sets ----


def is_in(x, values, invert=False):
    """Whether each element is among the values."""
    x, values = astensor(x), _o.reshape(astensor(values), (-1,))
    if values.size == 0:
        found = _o.not_equal(x, x)
        return _o.logical_not(found) if invert else found
    order = _o.sort(values)[0]
    place = _o.minimum(_o.search_sorted(order, x), values.size - 1)
    found = _o.equal(_o.gather(order, place), x)
    return _o.logical_not(found) if invert else found


def intersection(x, y, assume_unique=False, return_indices=False):
    """The elements of both, in order."""
    if return_indices:
        raise NotImplementedError("[intersect1d] return_indices is not provided")
    x = _o.reshape(astensor(x), (-1,)) if assume_unique else _native.unique(astensor(x))[0]
    common = _native.masked_select(x, is_in(x, y))
    return _o.sort(common)[0]


def difference_of_sets(x, y, assume_unique=False):
    """The elements of x that are not in y."""
    x = _o.reshape(astensor(x), (-1,)) if assume_unique else _native.unique(astensor(x))[0]
    return _native.masked_select(x, is_in(x, y, True))


def in_top_k(scores, classes, k):
    """Whether fewer than k classes have a higher score than the one named."""
    classes = _o.expand_dims(class_numbers("in_top_k", "classes", classes), 1)
    own = _o.gather_elements(scores, classes, 1)
    higher = _o.sum(_o.cast(_o.greater(scores, own), _native.int64), 1)
    return _o.logical_and(_o.less(higher, k), _o.isfinite(_o.squeeze(own, 1)))
