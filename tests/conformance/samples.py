"""Sample arguments of operators: the names that the declarations' samples are written with.

Data comes as float64 arrays marked Data, to be turned into each dtype that an operator accepts;
indices, masks and plain numbers stay as they are. A mode changes the shapes or the values that all
of them are made with, so that one sample gives the ordinary case and its edges.
"""

import contextlib
import zlib

import numpy as np


class Data(np.ndarray):
    """Elements of no dtype in particular."""


MODES = ("ordinary", "single", "empty", "special")
_mode = "ordinary"
_made = 0
_example = 0

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 6e-8, 0.5, 2.0], np.float64
)


@contextlib.contextmanager
def mode(name, example=0):
    """Makes samples of another kind, or other elements of the same kind, while it is open."""
    global _mode, _made, _example
    outer, _mode, _made, _example = _mode, name, 0, example
    try:
        yield
    finally:
        _mode, _example = outer, 0


def _shape(shape):
    if _mode == "single":
        return (1,) * len(shape)
    if _mode == "empty":
        return (0, *shape[1:])
    return shape


def _data(shape, make):
    global _made
    _made += 1
    shape = _shape(shape)
    seed = (shape, _made, _example) if _example else (shape, _made)
    generator = np.random.default_rng(zlib.crc32(repr(seed).encode()))
    array = np.asarray(make(generator, shape), np.float64)
    if _mode == "special" and _made == 1:
        array = np.resize(SPECIAL, shape)
    return array.view(Data)


def randn(*shape):
    return _data(shape, lambda g, s: np.round(g.standard_normal(s), 4))


def rand(*shape):
    return _data(shape, lambda g, s: np.round(g.random(s), 4))


def positive(*shape):
    return _data(shape, lambda g, s: np.round(0.1 + 2 * g.random(s), 4))


def away_from_zero(*shape):
    """Magnitudes of at least 0.1, so that quotients are tame and kinks at 0 are not met."""
    return _data(
        shape,
        lambda g, s: np.round((0.1 + 2 * g.random(s)) * g.choice([-1.0, 1.0], s), 4),
    )


def distinct(*shape):
    """Multiples of 1/16, no two alike, so that there is one order and no step changes it."""
    return _data(
        shape, lambda g, s: (g.permutation(int(np.prod(s))).reshape(s) - np.prod(s) // 2) / 16
    )


def integers(*shape):
    return _data(shape, lambda g, s: g.integers(-4, 5, s))


def special(count):
    return np.resize(SPECIAL, (count,)).view(Data)


def bools(*shape):
    shape = _shape(shape)
    return np.random.default_rng(7 + _example).random(shape) < 0.5


def labels(*shape, below):
    shape = _shape(shape)
    return np.random.default_rng(8 + _example).integers(0, below, shape)


def rounded(array, dtype):
    """The elements that a tensor of `dtype` can hold; floats as float64."""
    if dtype == "bool":
        return array > 0
    if dtype.startswith(("int", "uint")):
        finite = np.nan_to_num(array, nan=0, posinf=5, neginf=-5)
        whole = np.where(array == np.trunc(array), finite, np.round(finite * 3))
        whole = np.where((whole == 0) & (finite != 0), 1, whole)
        return (np.abs(whole) if dtype[0] == "u" else whole).astype(dtype)
    return round_float(np.asarray(array, np.float64), dtype)


def round_float(array, dtype):
    """float64 elements rounded once to a float dtype, as float64."""
    with np.errstate(all="ignore"):
        if dtype == "float64":
            return array
        if dtype != "bfloat16":
            return array.astype(dtype).astype(np.float64)
        # Round to 8 significant bits, half to even; bfloat16 has float32's exponents.
        mantissa, exponent = np.frexp(array)
        digits = np.minimum(8, exponent + 133)  # fewer for subnormals, whose spacing is 2^-133
        scale = np.ldexp(1.0, digits)
        result = np.ldexp(np.rint(mantissa * scale) / scale, exponent)
        result = np.where(np.abs(result) >= 2.0**128, np.sign(result) * np.inf, result)
        return np.where(np.isfinite(array), result, array)


def spacing(values, dtype):
    """The distance from one element of a float dtype to the next, at each value."""
    with np.errstate(all="ignore"):
        magnitude = np.abs(values)
        if dtype == "bfloat16":
            exponent = np.maximum(np.frexp(magnitude)[1] - 8, -133)
            return np.ldexp(1.0, exponent)
        largest = np.finfo(dtype).max
        return np.spacing(np.minimum(magnitude, largest).astype(dtype)).astype(np.float64)
