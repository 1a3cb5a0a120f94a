"""Random tensors. Draws come from the process's generator, in program order."""

from lamella import _native
from lamella.adapt.arguments import flat, integer, size_tuple
from lamella.adapt.creation import astensor

_o = _native.operators_by_name


def uniform(shape, low=0.0, high=1.0, dtype=None):
    return _native.random_uniform(size_tuple(shape), low, high, dtype or _native.float32)


def standard_normal(shape, mean=0.0, sigma=1.0, dtype=None):
    return _native.random_normal(size_tuple(shape), mean, sigma, dtype or _native.float32)


def rand(size, dtype=None):
    return uniform(flat(size), 0.0, 1.0, dtype)


def randn(size, dtype=None):
    return standard_normal(flat(size), 0.0, 1.0, dtype)


def randint(args, size=None, dtype=None, kwargs=None):
    """(low, high, size), (high, size), with any of them by keyword."""
    kwargs = kwargs or {}
    numbers = list(args)
    size = kwargs.get("size", size)
    if size is None and numbers and not isinstance(numbers[-1], int):
        size = numbers.pop()
    low, high = (0, numbers[0]) if len(numbers) == 1 else (numbers + [None, None])[:2]
    low, high = kwargs.get("low", low), kwargs.get("high", high)
    return _native.random_integers(size_tuple(size), low or 0, high, dtype or _native.int64)


def random_like(kind, x, dtype=None):
    return (rand if kind == "uniform" else randn)((x.shape,), dtype or x.dtype)


def randperm(n, dtype=None):
    return _native.random_permutation(integer(n), dtype or _native.int64)


def bernoulli(x, p=None):
    """Ones with the probability given, or with those that x holds."""
    return _native.random_bernoulli(x.shape, x if p is None else p, x.dtype)


def dropout(x, p=0.5, training=True):
    return _native.dropout(x, p) if training and p != 0 else x


def dropout_channels(x, p=0.5, training=True):
    """Whole channels (axis 1) at a time."""
    if not training or p == 0:
        return x
    shape = (*x.shape[:2], *(1,) * (x.ndim - 2))
    kept = _native.random_bernoulli(shape, 1.0 - p, x.dtype)
    return _o.mul(x, _o.mul(kept, 1.0 / (1.0 - p) if p < 1 else 0.0))


def multinomial(x, num_samples, replacement=True):
    """Numbers of categories drawn by the weights in rows."""
    import numpy as np

    weights = np.asarray(astensor(x).asnumpy(), np.float64)
    draws = uniform((*weights.shape[:-1], num_samples if replacement else weights.shape[-1]),
                    dtype=_native.float64).asnumpy()  # fmt: skip
    if replacement:
        edges = np.cumsum(weights / weights.sum(-1, keepdims=True), -1)
        picked = (draws[..., None] >= edges[..., None, :]).sum(-1)
        return _native.Tensor(np.minimum(picked, weights.shape[-1] - 1).astype(np.int64))
    # Without replacement: the largest log(u) / weight, as in Efraimidis and Spirakis (2006).
    with np.errstate(divide="ignore"):
        keys = np.where(weights > 0, np.log(draws) / np.maximum(weights, 1e-300), -np.inf)
    order = np.argsort(-keys, -1, kind="stable")[..., :num_samples]
    return _native.Tensor(order.astype(np.int64))


def shuffle(x):
    return _o.gather(x, randperm(x.shape[0]), 0)
