"""Definitions in NumPy, independent of Lamella, that operators' references are written with."""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def axes(given):
    """The axis argument NumPy takes for a list of axes, where none means all."""
    return tuple(given) if len(given) else None


# ---- Random numbers ----


def philox(seed, offset, element, word):
    """A word of Philox4x32-10 as signed 32-bit numbers (Salmon et al., 2011)."""
    mask = np.uint64(0xFFFFFFFF)
    wide = np.uint64(32)
    element = np.asarray(element).astype(np.uint64)
    offset = np.uint64(int(offset) & 0xFFFFFFFFFFFFFFFF)
    key = [int(seed) & 0xFFFFFFFF, (int(seed) >> 32) & 0xFFFFFFFF]
    counter = [element & mask, element >> wide, offset & mask, offset >> wide]
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [
            (right >> wide) ^ counter[1] ^ np.uint64(key[0]),
            right & mask,
            (left >> wide) ^ counter[3] ^ np.uint64(key[1]),
            left & mask,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.broadcast_to(counter[word], element.shape).astype(np.uint32).astype(np.int32)


def _fraction(seed, offset, shape, word, bits=24):
    element = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
    words = philox(seed, offset, element, word).astype(np.int64) & (2**bits - 1)
    return words / 2.0**bits


def uniform(seed, offset, shape, dtype):
    if dtype == "float64":
        low = _fraction(seed, offset, shape, 1)
        return _fraction(seed, offset, shape, 0) + low * 2.0**-24
    bits = {"float16": 11, "bfloat16": 8}.get(dtype, 24)
    return _fraction(seed, offset, shape, 0, bits)


def normal(seed, offset, shape, dtype):
    if dtype == "float64":
        u = uniform(seed, offset, shape, "float64")
        v = _fraction(seed, offset, shape, 2) + _fraction(seed, offset, shape, 3) * 2.0**-24
    else:
        u, v = _fraction(seed, offset, shape, 0), _fraction(seed, offset, shape, 1)
    return np.sqrt(-2 * np.log(1 - u)) * np.cos(2 * np.pi * v)


def permutation(seed, offset, size):
    element = np.arange(size[0])
    low = philox(seed, offset, element, 0).astype(np.uint32).astype(np.uint64)
    high = philox(seed, offset, element, 1).astype(np.uint32).astype(np.uint64)
    return np.argsort(low | high << np.uint64(32), kind="stable")


# ---- Moving elements ----


def narrow(x, start, axis, length, step=1):
    places = start + step * np.arange(length[0])
    return np.take(x, places, axis)


def narrow_update(x, start, part, axis, step=1):
    result = x.copy()
    places = [slice(None)] * x.ndim
    places[axis] = start + step * np.arange(part.shape[axis])
    result[tuple(places)] = part
    return result


def pad(x, value, before, after, mode):
    width = [(max(b, 0), max(a, 0)) for b, a in zip(before, after, strict=True)]
    name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    keywords = {"constant_values": value} if mode == "constant" else {}
    padded = np.pad(x, width, name, **keywords)
    cut = [
        slice(max(-b, 0), size - max(-a, 0))
        for size, b, a in zip(padded.shape, before, after, strict=True)
    ]
    return padded[tuple(cut)]


def pad_backward(cotangent, x_shape, before, after, mode):
    numbers = np.arange(np.prod(x_shape)).reshape(x_shape)
    places = pad(numbers, -1, before, after, mode)
    result = np.zeros(np.prod(x_shape) + 1)
    np.add.at(result, places.ravel(), cotangent.ravel())
    return result[:-1].reshape(x_shape)


def split(x, sizes, axis):
    if len(sizes) == 1:
        return np.split(x, np.arange(sizes[0], x.shape[axis], sizes[0]), axis)
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def flatten(x, begin_axis, end_axis):
    if x.ndim == 0:
        return x.reshape(1)
    begin, end = begin_axis % x.ndim if x.ndim > 1 else 0, end_axis % x.ndim
    joined = int(np.prod(x.shape[begin : end + 1]))
    return x.reshape(*x.shape[:begin], joined, *x.shape[end + 1 :])


def glu(x, axis):
    value, gate = np.split(x, 2, axis)
    return value / (1 + np.exp(-gate))


# ---- Indexing ----

_COMBINE = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def scatter(x, indices, updates, axis, mode):
    result = x.copy()
    moved = np.moveaxis(result, axis, 0)
    lead = tuple(range(axis % x.ndim, axis % x.ndim + indices.ndim))
    changes = np.moveaxis(updates, lead, range(indices.ndim))
    for place in np.ndindex(indices.shape):
        at = indices[place]
        moved[at] = _COMBINE[mode](moved[at], changes[place]) if mode != "set" else changes[place]
    return result


def gather_elements(x, indices, axis):
    result = np.empty(indices.shape, x.dtype)
    for place in np.ndindex(indices.shape):
        source = list(place)
        source[axis] = indices[place]
        result[place] = x[tuple(source)]
    return result


def scatter_elements(x, indices, updates, axis, mode):
    result = x.copy()
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = indices[place]
        target = tuple(target)
        change = updates[place]
        result[target] = change if mode == "set" else _COMBINE[mode](result[target], change)
    return result


def scatter_nd(x, indices, updates, mode):
    result = x.copy()
    for place in np.ndindex(indices.shape[:-1]):
        target = tuple(indices[place])
        change = updates[place]
        result[target] = change if mode == "set" else _COMBINE[mode](result[target], change)
    return result


def one_hot(indices, on, off, depth, axis):
    places = np.moveaxis(np.eye(depth[0])[indices], -1, axis)
    return np.where(places == 1, on, off)


# ---- Order ----


def _order(x, axis, descending):
    if not descending:
        return np.argsort(x, axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(turned, axis)


def sort(x, axis, descending=False):
    positions = _order(x, axis, descending)
    return [np.take_along_axis(x, positions, axis), positions]


def topk(x, k, axis, largest):
    return [np.take(part, np.arange(k), axis) for part in sort(x, axis, largest)]


def median(x, axis, keepdims):
    values, positions = sort(x, axis)
    middle = np.take(positions, [(x.shape[axis] - 1) // 2], axis)
    missing = np.isnan(np.asarray(x, np.float64))
    first = np.expand_dims(np.argmax(missing, axis), axis)
    place = np.where(np.any(missing, axis, keepdims=True), first, middle)
    picked = [np.take_along_axis(x, place, axis), place]
    return picked if keepdims else [np.squeeze(part, axis) for part in picked]


def search_sorted(sequence, values, right):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    result = np.empty(values.shape, np.int64)
    for row in np.ndindex(values.shape[:-1]):
        result[row] = np.searchsorted(sequence[row], values[row], side)
    return result


# ---- Matrices and norms ----


def diag_embed(x, offset, axis1, axis2):
    size = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], size, size), x.dtype)
    for i in range(x.shape[-1]):
        result[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(result, (-2, -1), (axis1, axis2))


def norm(x, order, axis, keepdims):
    size, axis = np.abs(x), axes(axis)
    if np.isinf(order):
        return (np.max if order > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if order == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims)
    return np.sum(size**order, axis=axis, keepdims=keepdims) ** (1 / order)


# ---- Resampling ----


def adaptive_max_pool(x, size):
    values = np.empty((*x.shape[:2], *size))
    places = np.empty(values.shape, np.int64)
    numbers = np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:])
    for place in np.ndindex(values.shape):
        window = tuple(
            slice(i * n // s, -(-(i + 1) * n // s))
            for i, n, s in zip(place[2:], x.shape[2:], size, strict=True)
        )
        found = np.argmax(x[place[:2]][window])
        values[place] = x[place[:2]][window].ravel()[found]
        places[place] = numbers[window].ravel()[found]
    return [values, places]


def resize(x, size, mode, coordinates):
    for axis, to in enumerate(size, 2):
        n, numbers = x.shape[axis], np.arange(to)
        if n == to:
            continue
        at = {
            "half_pixel": (numbers + 0.5) * n / to - 0.5,
            "align_corners": numbers * (n - 1) / max(to - 1, 1),
            "asymmetric": numbers * n / to,
        }[coordinates]
        if mode == "nearest":
            # A hair to the right, so that halves and whole numbers do not hang on rounding.
            shift = 0.0 if coordinates == "asymmetric" else 0.5
            x = np.take(x, np.clip(np.floor(at + shift + 1e-9), 0, n - 1).astype(int), axis)
            continue
        known = np.moveaxis(x, axis, -1)
        rows = [np.interp(at, np.arange(n), row) for row in known.reshape(-1, n)]
        x = np.moveaxis(np.reshape(rows, (*known.shape[:-1], to)), -1, axis)
    return x


# ---- Running results ----


def cumulative(function, start, x, axis, exclusive, reverse):
    x = x if x.dtype == np.float64 else x.astype(np.int64)
    lines = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
    result, total = np.empty_like(lines), np.full(lines.shape[1:], start, x.dtype)
    for i, line in enumerate(lines):
        following = function(total, line)
        result[i] = total if exclusive else following
        total = following
    result = np.moveaxis(result, 0, axis)
    return np.flip(result, axis) if reverse else result


def running_extremum(reaches, x, axis):
    lines = np.moveaxis(x, axis, 0)
    values, positions = lines.copy(), np.zeros(lines.shape, np.int64)
    for i in range(1, len(lines)):
        new = reaches(lines[i], values[i - 1]) | (lines[i] != lines[i])
        values[i] = np.where(new, lines[i], values[i - 1])
        positions[i] = np.where(new, i, positions[i - 1])
    return [np.moveaxis(part, 0, axis) for part in (values, positions)]


def linear_recurrence(factor, addend, axis, reverse):
    turn = (lambda x: np.flip(x, axis)) if reverse else (lambda x: x)
    factors, addends = (np.moveaxis(turn(x), axis, 0) for x in (factor, addend))
    result = addends.copy()
    for i in range(1, len(result)):
        result[i] = addends[i] + factors[i] * result[i - 1]
    return turn(np.moveaxis(result, 0, axis))


# ---- Softmax and losses ----


def log_softmax(x, axis):
    shifted = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis, keepdims=True))


def softmax(x, axis):
    return np.exp(log_softmax(x, axis))


def logsumexp(x, axis, keepdims):
    largest = np.max(x, axis, keepdims=True, initial=-np.inf)
    largest = np.where(np.isinf(largest), 0, largest)
    total = np.log(np.sum(np.exp(x - largest), axis, keepdims=True)) + largest
    return total if keepdims else np.squeeze(total, axis)


def reduced(loss, reduction):
    return {"none": lambda: loss, "sum": lambda: np.sum(loss), "mean": lambda: np.mean(loss)}[
        reduction
    ]()


def _class_losses(losses, labels, weight, axis, ignore_index, reduction, spread=0.0):
    """losses: what each class would cost; spread: the share of all classes, with their weights."""
    axis = 0 if losses.ndim == 1 else axis
    classes = losses.shape[axis]
    weight = np.ones(classes) if weight is None else weight
    losses = np.moveaxis(losses, axis, -1)
    total, each, count = 0.0, np.zeros(labels.shape), 0.0
    for place in np.ndindex(labels.shape):
        label = labels[place]
        if label == ignore_index:
            continue
        smooth = np.sum(losses[place] * weight) / classes
        each[place] = (1 - spread) * losses[place][label] * weight[label] + spread * smooth
        total += each[place]
        count += weight[label]
    if reduction == "mean":
        return np.float64(total) / count
    return {"none": each, "sum": np.float64(total)}[reduction]


def cross_entropy(logits, labels, weight, axis, ignore_index, label_smoothing, reduction):
    axis = 0 if logits.ndim == 1 else axis
    losses = -log_softmax(logits, axis)
    return _class_losses(losses, labels, weight, axis, ignore_index, reduction, label_smoothing)


def nll_loss(log_probabilities, labels, weight, axis, ignore_index, reduction):
    return _class_losses(-log_probabilities, labels, weight, axis, ignore_index, reduction)


def cross_entropy_with_probabilities(logits, target, weight, axis, label_smoothing, reduction):
    classes = logits.shape[axis]
    target = target * (1 - label_smoothing) + label_smoothing / classes
    if weight is not None:
        target = target * weight.reshape([-1 if i == axis else 1 for i in range(logits.ndim)])
    return reduced(-np.sum(target * log_softmax(logits, axis), axis), reduction)


def smooth_l1(x, target, beta, reduction):
    distance = np.abs(x - target)
    return reduced(
        np.where(distance < beta, distance**2 / (2 * beta), distance - beta / 2), reduction
    )


def huber(x, target, delta, reduction):
    distance = np.abs(x - target)
    return reduced(
        np.where(distance <= delta, distance**2 / 2, delta * (distance - delta / 2)), reduction
    )


def bce_with_logits(logits, target, weight, pos_weight, reduction):
    hit, miss = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    return reduced(-(pos_weight * target * hit + (1 - target) * miss) * weight, reduction)


def kl_div(log_probabilities, target, log_target, reduction):
    if log_target:
        return reduced(np.exp(target) * (target - log_probabilities), reduction)
    entropy = np.where(target == 0, 0, target * np.log(np.where(target == 0, 1, target)))
    return reduced(entropy - target * log_probabilities, reduction)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_backward(x, cotangent, tanh_form):
    if not tanh_form:
        density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
        return cotangent * (0.5 * erfc(-x / np.sqrt(2)) + x * density)
    t = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    inner = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    return cotangent * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


# ---- Optimizers ----


def _moments(moment1, moment2, gradient, beta1, beta2):
    return (
        moment1 + (1 - beta1) * (gradient - moment1),
        moment2 + (1 - beta2) * (gradient**2 - moment2),
    )


def adam_step(parameter, m, v, gradient, rate, beta1, beta2, epsilon, nesterov):
    return amsgrad_step(parameter, m, v, -np.inf, gradient, rate, beta1, beta2, epsilon, nesterov)[
        :3
    ]


def amsgrad_step(parameter, m, v, largest, gradient, rate, beta1, beta2, epsilon, nesterov):
    m, v = _moments(m, v, gradient, beta1, beta2)
    largest = np.maximum(largest, v)
    ahead = _moments(m, v, gradient, beta1, beta2)[0] if nesterov else m
    return [parameter - rate * ahead / (np.sqrt(largest) + epsilon), m, v, largest]


def adam_weight_decay_step(parameter, m, v, gradient, rate, decay, beta1, beta2, epsilon):
    m, v = _moments(m, v, gradient, beta1, beta2)
    decayed = 0 if decay is None else decay * parameter
    return [parameter - rate * (m / (np.sqrt(v) + epsilon) + decayed), m, v]


# ---- Normalisation ----


def _over(begin_axis, x):
    return tuple(range(begin_axis % x.ndim, x.ndim))


def _normal(x, axis, epsilon):
    mean = np.mean(x, axis, keepdims=True)
    return (x - mean) / np.sqrt(np.var(x, axis, keepdims=True) + epsilon)


def layer_norm(x, weight, bias, begin_axis, epsilon):
    return _normal(x, _over(begin_axis, x), epsilon) * weight + bias


def layer_norm_backward(x, weight, cotangent, begin_axis, epsilon):
    """Through the Jacobian of each row."""
    axis = _over(begin_axis, x)
    shape = [int(np.prod(x.shape[: axis[0]])), int(np.prod(x.shape[axis[0] :]))]
    result = np.empty(shape)
    rows, upstream = x.reshape(shape), (cotangent * weight).reshape(shape)
    for row in range(shape[0]):
        n = shape[1]
        deviation = np.sqrt(np.var(rows[row]) + epsilon)
        unit = (rows[row] - np.mean(rows[row])) / deviation
        jacobian = (np.eye(n) - 1 / n - np.outer(unit, unit) / n) / deviation
        result[row] = jacobian @ upstream[row]
    return result.reshape(x.shape)


def layer_norm_backward_parameters(x, cotangent, begin_axis, epsilon):
    leading = tuple(range(begin_axis % x.ndim))
    unit = _normal(x, _over(begin_axis, x), epsilon)
    return [np.sum(cotangent * unit, leading), np.sum(cotangent, leading)]


def _channels(numbers, x):
    return numbers.reshape([-1 if i == 1 else 1 for i in range(x.ndim)])


def batch_norm(x, weight, bias, epsilon):
    axis = (0, *range(2, x.ndim))
    mean, variance = np.mean(x, axis), np.var(x, axis)
    return [batch_norm_inference(x, weight, bias, mean, variance, epsilon), mean, variance]


def batch_norm_inference(x, weight, bias, mean, variance, epsilon):
    unit = (x - _channels(mean, x)) / np.sqrt(_channels(variance, x) + epsilon)
    return unit * _channels(weight, x) + _channels(bias, x)


def batch_norm_backward(x, weight, mean, variance, cotangent, epsilon):
    axis = (0, *range(2, x.ndim))
    deviation = np.sqrt(_channels(variance, x) + epsilon)
    unit = (x - _channels(mean, x)) / deviation
    dweight, dbias = np.sum(cotangent * unit, axis), np.sum(cotangent, axis)
    count = x.size / x.shape[1]
    inner = cotangent - _channels(dbias, x) / count - unit * _channels(dweight, x) / count
    return [inner * _channels(weight, x) / deviation, dweight, dbias]


def group_norm(x, weight, bias, groups, epsilon):
    grouped = x.reshape(x.shape[0], groups, -1)
    return _normal(grouped, (2,), epsilon).reshape(x.shape) * _channels(weight, x) + _channels(
        bias, x
    )


# ---- Convolution and pooling, over any number of spatial axes ----


def _windows(x, kernel, stride, padding, dilation, count, fill):
    """Yields each offset in the kernel and the elements there, one for each result place."""
    extra = [(0, 0), (0, 0)]
    for i in range(len(kernel)):
        reach = (count[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
        behind = reach - padding[2 * i] - x.shape[i + 2]
        extra.append((padding[2 * i], max(behind, 0)))
    padded = np.pad(x, extra, constant_values=fill)
    for offset in np.ndindex(*kernel):
        places = tuple(
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offset, dilation, count, stride, strict=True)
        )
        yield offset, padded[(slice(None), slice(None), *places)]


def _counts(x, kernel, stride, padding, dilation, ceil_mode=False):
    counts = []
    for i in range(len(kernel)):
        size, before, after = x.shape[i + 2], padding[2 * i], padding[2 * i + 1]
        room = size + before + after - dilation[i] * (kernel[i] - 1) - 1
        count = (-(-room // stride[i]) if ceil_mode else room // stride[i]) + 1
        if ceil_mode and (count - 1) * stride[i] >= size + before:
            count -= 1
        counts.append(count)
    return counts


def convolution(x, weight, bias, stride, padding, dilation, groups):
    kernel = weight.shape[2:]
    count = _counts(x, kernel, stride, padding, dilation)
    result = np.zeros((x.shape[0], weight.shape[0], *count))
    outputs, inputs = weight.shape[0] // groups, weight.shape[1]
    for offset, window in _windows(x, kernel, stride, padding, dilation, count, 0):
        for group in range(groups):
            out = slice(group * outputs, (group + 1) * outputs)
            taken = window[:, group * inputs : (group + 1) * inputs]
            result[:, out] += np.einsum(
                "nc...,kc->nk...", taken, weight[(out, slice(None), *offset)]
            )
    return result if bias is None else result + _channels(bias, result)


def _transpose_of(linear, shape, cotangent):
    """The transpose of a linear map from arrays of `shape`, applied to a cotangent."""
    result = np.empty(int(np.prod(shape)))
    for i in range(result.size):
        unit = np.zeros(result.size)
        unit[i] = 1
        result[i] = np.sum(linear(unit.reshape(shape)) * cotangent)
    return result.reshape(shape)


def convolution_backward_data(cotangent, weight, x_shape, stride, padding, dilation, groups):
    return _transpose_of(
        lambda x: convolution(x, weight, None, stride, padding, dilation, groups),
        x_shape,
        cotangent,
    )


def convolution_backward_weights(x, cotangent, weight_shape, stride, padding, dilation, groups):
    return _transpose_of(
        lambda w: convolution(x, w, None, stride, padding, dilation, groups),
        weight_shape,
        cotangent,
    )


def convolution_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups):
    shape = [x.shape[0], weight.shape[1] * groups]
    for i in range(x.ndim - 2):
        size = (x.shape[i + 2] - 1) * stride[i] + dilation[i] * (weight.shape[i + 2] - 1) + 1
        shape.append(size + output_padding[i] - padding[2 * i] - padding[2 * i + 1])
    result = convolution_backward_data(x, weight, tuple(shape), stride, padding, dilation, groups)
    return result if bias is None else result + _channels(bias, result)


def max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode):
    count = _counts(x, kernel, stride, padding, dilation, ceil_mode)
    numbers = np.broadcast_to(np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:]), x.shape)
    best = np.full((*x.shape[:2], *count), -np.inf)
    at = np.full(best.shape, -1)
    values = _windows(x, kernel, stride, padding, dilation, count, -np.inf)
    places = _windows(numbers, kernel, stride, padding, dilation, count, -1)
    for (_, value), (_, place) in zip(values, places, strict=True):
        better = (place >= 0) & ((at < 0) | (value > best) | (np.isnan(value) & ~np.isnan(best)))
        best, at = np.where(better, value, best), np.where(better, place, at)
    return [best, at]


def max_pool(x, kernel, stride, padding, dilation, ceil_mode):
    return max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode)[0]


def max_pool_backward(x, cotangent, kernel, stride, padding, dilation, ceil_mode):
    at = max_pool_with_indices(x, kernel, stride, padding, dilation, ceil_mode)[1]
    result = np.zeros((*x.shape[:2], int(np.prod(x.shape[2:]))))
    for n, c in np.ndindex(*x.shape[:2]):
        np.add.at(result[n, c], at[n, c].ravel(), cotangent[n, c].ravel())
    return result.reshape(x.shape)


def avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    ones = (1,) * len(kernel)
    count = _counts(x, kernel, stride, padding, ones, ceil_mode)
    if count_include_pad:  # what lies in the padding counts, what Ceil adds does not
        widths = [(padding[2 * i], padding[2 * i + 1]) for i in range(len(kernel))]
        inside = np.pad(np.ones(x.shape[2:]), widths, constant_values=1)
        counted = _windows(inside[None, None], kernel, stride, (0,) * len(padding), ones, count, 0)
    else:
        counted = _windows(np.ones((1, 1, *x.shape[2:])), kernel, stride, padding, ones, count, 0)
    number = sum(window for _, window in counted)
    total = sum(window for _, window in _windows(x, kernel, stride, padding, ones, count, 0))
    return total / divisor if divisor else total / np.maximum(number, 1)


def avg_pool_backward(cotangent, x_shape, kernel, stride, padding, count_include_pad, divisor):
    def pooled(x):
        ceil_mode = _counts(x, kernel, stride, padding, (1,) * len(kernel)) != list(
            cotangent.shape[2:]
        )
        return avg_pool(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor)

    return _transpose_of(pooled, x_shape, cotangent)


def adaptive_avg_pool(x, size):
    for i, parts in enumerate(size):
        n = x.shape[i + 2]
        bounds = [(p * n // parts, -(-(p + 1) * n // parts)) for p in range(parts)]
        means = [np.mean(narrow(x, b, i + 2, [e - b]), i + 2, keepdims=True) for b, e in bounds]
        x = np.concatenate(means, i + 2)
    return x


def astype(x, dtype):
    """Floats to integers by truncation, held inside the range, NaN as 0; to floats unrounded."""
    if dtype == "bool":
        return x != 0
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        whole = np.trunc(np.nan_to_num(x, nan=0)) if x.dtype.kind == "f" else x
        return (
            np.clip(whole, limits.min, limits.max) if x.dtype.kind == "f" else whole.astype(dtype)
        )
    return x.astype(np.float64)
