"""Names that a few operators say: numbers with special cases, losses, channels in another order."""

import math

from lamella import _native
from lamella.adapt.elementwise import as_dtype

_o = _native.operators_by_name
_LOG_2 = math.log(2)


def fmax(x, y):
    """The larger, and where one is NaN the other."""
    return _o.where(_o.isnan(x), y, _o.where(_o.isnan(y), x, _o.maximum(x, y)))


def fmin(x, y):
    """The smaller, and where one is NaN the other."""
    return _o.where(_o.isnan(x), y, _o.where(_o.isnan(y), x, _o.minimum(x, y)))


def logaddexp2(x, y):
    """log2(2^x + 2^y)."""
    return _o.div(_o.logaddexp(_o.mul(x, _LOG_2), _o.mul(y, _LOG_2)), _LOG_2)


def heaviside(x, at_zero):
    """0 below 0, 1 above, `at_zero` there; NaN stays."""
    step = _o.where(_o.less(x, 0), _o.zeros_like(x), _o.ones_like(x))
    step = _o.where(_o.equal(x, 0), as_dtype(at_zero, x.dtype), step)
    return _o.where(_o.isnan(x), x, step)


def ldexp(x, exponent):
    """x 2^exponent."""
    return _o.mul(x, _o.exp2(exponent))


def fast_gelu(x):
    """x sigmoid(1.702 x). Beyond 500 that is 0 or x, so that nothing infinite is multiplied."""
    bounded = _o.clip(x, -500, 500)
    gated = _o.mul(bounded, _o.sigmoid(_o.mul(bounded, 1.702)))
    return _o.where(_o.less_equal(x, 500), gated, x)


def sinc(x):
    """sin(pi x) / (pi x), 1 at 0."""
    at_zero = _o.equal(x, 0)
    angle = _o.mul(_o.where(at_zero, 1, x), math.pi)
    return _o.where(at_zero, 1.0, _o.div(_o.sin(angle), angle))


def isreal(x):
    """True: every dtype is of real numbers."""
    return _o.cast(_o.ones_like(x), _native.bool_)


def left_shift(x, bits):
    """x 2^bits, for whole numbers."""
    return _o.mul(x, _o.pow(as_dtype(_o.ones_like(x) * 2, x.dtype), bits))


def right_shift(x, bits):
    """The floor of x / 2^bits, for whole numbers."""
    return _o.floor_divide(x, _o.pow(as_dtype(_o.ones_like(x) * 2, x.dtype), bits))


def vdot(x, y):
    """The sum of products of all elements."""
    return _o.sum(_o.mul(_o.reshape(x, (-1,)), _o.reshape(y, (-1,))))


def channel_shuffle(x, groups):
    """Channels (axis 1) of equal groups, one of each group in turn."""
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        raise ValueError(
            f"[channel_shuffle] {channels} channels do not divide into {groups} groups"
        )
    rest = x.shape[2:]
    parts = _o.reshape(x, (x.shape[0], groups, channels // groups, *rest))
    return _o.reshape(_o.swapaxes(parts, 1, 2), x.shape)


# ---- Losses ----


def reduced(losses, reduction, name):
    """Losses as they are, their mean or their sum."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ValueError(f"[{name}] reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return _o.mean(losses) if reduction == "mean" else _o.sum(losses)


def hinge_embedding_loss(x, targets, margin=1.0, reduction="mean"):
    """x where the target is 1, max(0, margin - x) where it is -1."""
    losses = _o.where(_o.equal(targets, 1), x, _o.relu(_o.sub(margin, x)))
    return reduced(losses, reduction, "hinge_embedding_loss")


def cosine_embedding_loss(x, y, targets, margin=0.0, reduction="mean"):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    tiny = 1e-12
    axis = x.ndim - 1
    product = _o.sum(_o.mul(x, y), axis)
    squares = _o.mul(
        _o.add(_o.sum(_o.square(x), axis), tiny), _o.add(_o.sum(_o.square(y), axis), tiny)
    )
    cosine = _o.div(product, _o.sqrt(squares))
    losses = _o.where(_o.equal(targets, 1), _o.sub(1.0, cosine), _o.relu(_o.sub(cosine, margin)))
    return reduced(losses, reduction, "cosine_embedding_loss")


def gaussian_nll_loss(x, target, var, full=False, eps=1e-06, reduction="mean"):
    """(log(var) + (x - target)^2 / var) / 2, var not below eps."""
    var = _o.maximum(var, eps)
    losses = _o.mul(_o.add(_o.log(var), _o.div(_o.square(_o.sub(x, target)), var)), 0.5)
    if full:
        losses = _o.add(losses, 0.5 * math.log(2 * math.pi))
    return reduced(losses, reduction, "gaussian_nll_loss")


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction="mean"
):
    """max(0, |anchor - positive| - |anchor - negative| + margin), in the norm p."""

    def distance(x, y):
        powers = _o.pow(_o.abs(_o.add(_o.sub(x, y), eps)), float(p))
        return _o.pow(_o.sum(powers, x.ndim - 1), 1.0 / p)

    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _o.minimum(far, distance(positive, negative))
    losses = _o.relu(_o.add(_o.sub(near, far), margin))
    return reduced(losses, reduction, "triplet_margin_loss")
