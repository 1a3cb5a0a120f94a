"""Element by element: casts, scalings and options that operators do not have."""

from lamella import _native
from lamella._arguments import number_of

_o = _native.operators_by_name


def as_dtype(x, dtype):
    """x, cast if a dtype is given."""
    if dtype is None or (isinstance(x, _native.Tensor) and x.dtype == dtype):
        return x
    return _o.cast(x, dtype)


def is_float(x):
    return x.dtype.name.startswith(("float", "bfloat"))


def class_numbers(call, argument, numbers):
    """Integers of any dtype, as operators take them."""
    if is_float(numbers):
        raise TypeError(
            f"[{call}] {argument} must be numbers of classes, of an integer dtype, got "
            f"{numbers.dtype.name}"
        )
    kinds = (_native.int32, _native.int64)
    return numbers if numbers.dtype in kinds else _o.cast(numbers, _native.int64)


def scaled(x, factor):
    return x if type(factor) in (int, float) and factor == 1 else _o.mul(x, factor)


def div(x, y, rounding_mode=None):
    if rounding_mode is None:
        return _o.div(x, y)
    if rounding_mode == "floor":
        return _o.floor_divide(x, y)
    if rounding_mode == "trunc":
        quotient = _o.trunc(_o.div(x, y))
        whole = all(not is_float(t) for t in (x, y) if isinstance(t, _native.Tensor))
        return _o.cast(quotient, x.dtype) if whole and isinstance(x, _native.Tensor) else quotient
    raise ValueError(f"[div] rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")


def clip(x, low, high):
    """Bounds may be left out; a list or tuple of tensors is clipped one by one."""
    if isinstance(x, (list, tuple)):
        return type(x)(clip(item, low, high) for item in x)
    if low is None and high is None:
        raise ValueError("[clip] one of the two bounds must be given")
    if low is None:
        return _o.clamp_max(x, high)
    if high is None:
        return _o.clamp_min(x, low)
    return _o.clip(x, low, high)


def hardtanh(x, low, high):
    return _o.clip(x, low, high)


def gelu(x, approximate):
    if approximate not in ("none", "tanh"):
        raise ValueError(f"[gelu] approximate must be 'none' or 'tanh', got {approximate!r}")
    return _o.gelu(x, approximate == "tanh")


def softplus(x, beta=1, threshold=20):
    smooth = _o.softplus(x) if beta == 1 else _o.div(_o.softplus(_o.mul(x, beta)), beta)
    return _o.where(_o.greater(_o.mul(x, beta), threshold), x, smooth)


def round_to(x, decimals):
    if decimals == 0:
        return _o.round(x)
    power = 10.0**decimals
    return _o.div(_o.round(_o.mul(x, power)), power)


def nan_to_num(x, nan, posinf, neginf):
    import numpy as np

    name = "float32" if x.dtype.name == "bfloat16" else x.dtype.name
    largest = float(np.finfo(name).max) if "float" in name else 0.0
    return _o.nan_to_num(
        x,
        0.0 if nan is None else nan,
        largest if posinf is None else posinf,
        -largest if neginf is None else neginf,
    )


def allclose(x, y, rtol, atol, equal_nan):
    return bool(_o.all(_o.isclose(x, y, rtol, atol, equal_nan)))


def _check_clip(call, argument, norm, x):
    if not isinstance(norm, _native.Tensor) and not number_of(call, argument, norm) >= 0:
        raise ValueError(f"[{call}] {argument} must be at least 0, got {norm}")
    if isinstance(x, (list, tuple)) and not x:
        raise ValueError(f"[{call}] x must hold at least one Tensor, got none")


def clip_by_norm(x, max_norm, norm_type=2.0):
    """Tensors scaled together so that their joint norm is at most max_norm."""
    _check_clip("clip_by_norm", "max_norm", max_norm, x)
    tensors = x if isinstance(x, (list, tuple)) else [x]
    parts = [_o.cast(_o.sum(_o.pow(_o.abs(t), norm_type)), _native.float32) for t in tensors]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    factor = _o.minimum(max_norm / (total ** (1.0 / norm_type) + 1e-6), 1.0)
    clipped = [_o.cast(t * factor, t.dtype) for t in tensors]
    return type(x)(clipped) if isinstance(x, (list, tuple)) else clipped[0]


def clip_by_global_norm(x, clip_norm, use_norm=None):
    """x * clip_norm / max(norm of all, clip_norm)."""
    _check_clip("clip_by_global_norm", "clip_norm", clip_norm, x)
    if use_norm is None:
        total = None
        for tensor in x:
            part = _o.sum(_o.square(_o.cast(tensor, _native.float32)))
            total = part if total is None else total + part
        use_norm = _o.sqrt(total)
    factor = clip_norm / _o.maximum(use_norm, clip_norm)
    return tuple(_o.cast(tensor * factor, tensor.dtype) for tensor in x)


def true_div(x, y):
    return _o.div(x, y)


def relu_in_place(x, inplace=False):
    return x.assign_value(_o.relu(x)) if inplace else _o.relu(x)


def threshold_of(x, threshold, value):
    return _o.threshold(x, threshold, value)


def sum_of(tensors):
    total = tensors[0]
    for tensor in tensors[1:]:
        total = _o.add(total, tensor)
    return total


def cosine_similarity(x, y, axis=1, eps=1e-8):
    scale = _o.mul(
        _o.maximum(_o.sqrt(_o.sum(_o.square(x), axis)), eps),
        _o.maximum(_o.sqrt(_o.sum(_o.square(y), axis)), eps),
    )
    return _o.div(_o.sum(_o.mul(x, y), axis), scale)
