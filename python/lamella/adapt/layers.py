"""Convolutions, pooling, normalisation and losses as functions."""

from lamella import _native
from lamella.adapt.arguments import ints, size_tuple
from lamella.adapt.elementwise import class_numbers, is_float, scaled

_o = _native.operators_by_name


def window_padding(x, kernel, stride, dilation, mode, padding):
    """Zeros before and after each spatial axis, in turn."""
    axes = len(kernel)
    if mode == "valid":
        return (0,) * (2 * axes)
    if mode == "same":
        pairs = []
        for i in range(axes):
            length = x.shape[2 + i]
            reach = (kernel[i] - 1) * dilation[i] + 1
            total = max(0, (-(-length // stride[i]) - 1) * stride[i] + reach - length)
            pairs += [total // 2, total - total // 2]
        return tuple(pairs)
    if mode != "pad":
        raise ValueError(f"[conv] pad_mode must be 'same', 'valid' or 'pad', got {mode!r}")
    values = size_tuple(padding)
    if len(values) == 2 * axes:
        return values
    values = values * axes if len(values) == 1 else values
    return tuple(value for value in values for _ in (0, 1))


def conv(x, weight, bias=None, stride=1, mode="pad", padding=0, dilation=1, groups=1):
    if isinstance(padding, str):
        mode, padding = padding, 0
    axes = weight.ndim - 2
    stride, dilation = ints(stride, axes), ints(dilation, axes)
    x, single = _batched(x, axes, f"conv{axes}d")
    pads = window_padding(x, weight.shape[2:], stride, dilation, mode, padding)
    result = _o.convolution(x, weight, bias, stride, pads, dilation, groups)
    return _o.squeeze(result, 0) if single else result


def conv_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    axes = weight.ndim - 2
    pads = tuple(value for value in ints(padding, axes) for _ in (0, 1))
    return _o.convolution_transpose(
        x, weight, bias, ints(stride, axes), pads, ints(output_padding, axes), ints(dilation, axes),
        groups,
    )  # fmt: skip


def _batched(x, axes, name):
    """x with an axis of batches, and whether that was added."""
    if x.ndim not in (axes + 1, axes + 2):
        raise ValueError(f"[{name}] x must have {axes + 1} or {axes + 2} axes, got shape {x.shape}")
    return (x, False) if x.ndim == axes + 2 else (_o.expand_dims(x, 0), True)


def max_pool(axes, x, kernel, stride=None, mode="pad", padding=0, dilation=1, ceil_mode=False,
             return_indices=False):  # fmt: skip
    kernel = ints(kernel, axes)
    stride = kernel if stride is None else ints(stride, axes)
    dilation = ints(dilation, axes)
    x, single = _batched(x, axes, f"max_pool{axes}d")
    pads = window_padding(x, kernel, stride, dilation, mode, padding)
    if return_indices:
        values, places = _o.max_pool_with_indices(x, kernel, stride, pads, dilation, ceil_mode)
        return (_o.squeeze(values, 0), _o.squeeze(places, 0)) if single else (values, places)
    values = _o.max_pool(x, kernel, stride, pads, dilation, ceil_mode)
    return _o.squeeze(values, 0) if single else values


def avg_pool(axes, x, kernel, stride=None, mode="pad", padding=0, ceil_mode=False,
             count_include_pad=True, divisor=None):  # fmt: skip
    kernel = ints(kernel, axes)
    stride = kernel if stride is None else ints(stride, axes)
    x, single = _batched(x, axes, f"avg_pool{axes}d")
    pads = window_padding(x, kernel, stride, (1,) * axes, mode, padding)
    values = _o.avg_pool(x, kernel, stride, pads, ceil_mode, count_include_pad, divisor or 0)
    return _o.squeeze(values, 0) if single else values


def adaptive_pool(axes, x, size):
    sizes = size_tuple(size) if not isinstance(size, (tuple, list)) else tuple(size)
    sizes = sizes * axes if len(sizes) == 1 else sizes
    x, single = _batched(x, axes, f"adaptive_avg_pool{axes}d")
    sizes = tuple(x.shape[2 + i] if size is None else size for i, size in enumerate(sizes))
    values = _o.adaptive_avg_pool(x, sizes)
    return _o.squeeze(values, 0) if single else values


def adaptive_max_pool(axes, x, size, return_indices=False):
    sizes = size_tuple(size) if not isinstance(size, (tuple, list)) else tuple(size)
    sizes = sizes * axes if len(sizes) == 1 else sizes
    x, single = _batched(x, axes, f"adaptive_max_pool{axes}d")
    sizes = tuple(x.shape[2 + i] if size is None else size for i, size in enumerate(sizes))
    results = _o.adaptive_max_pool(x, sizes)
    results = tuple(_o.squeeze(part, 0) for part in results) if single else tuple(results)
    return results if return_indices else results[0]


def conv_backward_data(cotangent, weight, sizes, stride, mode, padding, dilation, groups):
    """What a convolution of `sizes` would have had as input's gradient: Conv2DTranspose."""
    axes = weight.ndim - 2
    sizes, kernel = size_tuple(sizes), weight.shape[2:]
    stride, dilation = ints(stride, axes)[-axes:], ints(dilation, axes)[-axes:]
    pads = window_padding(_Sized(sizes), kernel, stride, dilation, lower(mode), padding)
    extra = tuple(
        sizes[2 + i]
        - ((cotangent.shape[2 + i] - 1) * stride[i] - pads[2 * i] - pads[2 * i + 1])
        - (dilation[i] * (kernel[i] - 1) + 1)
        for i in range(axes)
    )
    return _o.convolution_transpose(cotangent, weight, None, stride, pads, extra, dilation, groups)


class _Sized:
    def __init__(self, shape):
        self.shape = shape


def pad_last(x, padding, mode="constant", value=None):
    """Pairs of amounts, for the last axis first."""
    amounts = size_tuple(padding)
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise ValueError(f"[pad] {x.ndim} axes take pairs of amounts, got {amounts}")
    before, after = [0] * x.ndim, [0] * x.ndim
    for i in range(len(amounts) // 2):
        before[-1 - i], after[-1 - i] = amounts[2 * i], amounts[2 * i + 1]
    return _o.pad(x, 0 if value is None else value, before, after, mode)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    shape = size_tuple(normalized_shape)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise ValueError(f"[layer_norm] x of shape {x.shape} does not end in {shape}")
    weight = _ones(shape, x.dtype) if weight is None else weight
    bias = _zeros(shape, x.dtype) if bias is None else bias
    return _o.layer_norm(x, weight, bias, x.ndim - len(shape), eps)


def _ones(shape, dtype):
    return _o.broadcast_to(_native.Tensor(1, dtype), shape)


def _zeros(shape, dtype):
    return _o.broadcast_to(_native.Tensor(0, dtype), shape)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    channels = (x.shape[1],)
    weight = _ones(channels, x.dtype) if weight is None else weight
    bias = _zeros(channels, x.dtype) if bias is None else bias
    return _o.group_norm(x, weight, bias, groups, eps)


def batch_norm(x, mean, variance, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Training writes the running statistics: running + momentum (batch - running)."""
    channels = (x.shape[1],)
    weight = _ones(channels, x.dtype) if weight is None else weight
    bias = _zeros(channels, x.dtype) if bias is None else bias
    if not training:
        return _o.batch_norm_inference(x, weight, bias, mean, variance, eps)
    result, batch_mean, batch_variance = _o.batch_norm(x, weight, bias, eps)
    count = x.size // x.shape[1]
    unbiased = batch_variance * (count / max(count - 1, 1))
    for running, batch in ((mean, batch_mean), (variance, unbiased)):
        if running is not None:
            updated = running + momentum * (_o.stop_gradient(batch) - running)
            running.assign_value(_o.cast(updated, running.dtype))
    return result


# ---- Losses ----


def reduce_loss(loss, reduction):
    if reduction == "mean":
        return _o.mean(loss)
    if reduction == "sum":
        return _o.sum(loss)
    if reduction == "none":
        return loss
    raise ValueError(f"[loss] reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Targets are classes, or probabilities of x's shape."""
    axis = 1 if x.ndim > 1 else 0
    if is_float(target) and target.ndim == x.ndim:
        return _o.cross_entropy_with_probabilities(
            x, target, weight, axis, label_smoothing, reduction
        )
    labels = class_numbers("cross_entropy", "labels", target)
    return _o.cross_entropy(x, labels, weight, axis, ignore_index, label_smoothing, reduction)


def nll_loss(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    axis = 1 if x.ndim > 1 else 0
    labels = class_numbers("nll_loss", "labels", target)
    loss = _o.nll_loss(x, labels, weight, axis, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    smooth = reduce_loss(-_o.mean(x, axis), reduction)
    return scaled(loss, 1 - label_smoothing) + smooth * label_smoothing


def weighted_bce(x, target, weight=None, reduction="mean"):
    return _o.binary_cross_entropy(x, target, 1.0 if weight is None else weight, reduction)


def weighted_bce_with_logits(x, target, weight=None, pos_weight=None, reduction="mean"):
    return _o.binary_cross_entropy_with_logits(
        x, target, 1.0 if weight is None else weight, 1.0 if pos_weight is None else pos_weight,
        reduction,
    )  # fmt: skip


# ---- What primitives give beside the result ----


def lower(text):
    return text.lower()


def first_of(pairs):
    return tuple(pair[0] for pair in pairs)


def second_of(pairs):
    return tuple(pair[1] for pair in pairs)


def bias_add(x, bias):
    """The bias runs along axis 1."""
    return _o.add(x, _o.reshape(bias, (bias.size, *(1,) * (x.ndim - 2))))


def dropout_with_mask(x, keep_prob):
    kept = _native.random_bernoulli(x.shape, keep_prob, x.dtype)
    return _o.mul(x, _o.mul(kept, 1.0 / keep_prob)), _o.cast(kept, _native.bool_)


def layer_norm_with_statistics(x, weight, bias, begin_axis, epsilon):
    axes = tuple(range(begin_axis % x.ndim, x.ndim))
    result = _o.layer_norm(x, weight, bias, begin_axis, epsilon)
    return result, _o.mean(x, axes, True), _o.var(x, axes, True)


def reduce_sum(x, axis, keepdims, skip):
    """With skip, an empty list of axes reduces nothing."""
    return x if skip and axis in ((), []) else _o.sum(x, axis, keepdims)
