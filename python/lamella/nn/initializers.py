"""Initializers with the arguments MindSpore gives them."""

from lamella import _native
from lamella.adapt import size_tuple

_nn = _native.nn
Initializer = _nn.Initializer


class Constant(_nn.Constant):
    """The same number everywhere."""

    def __init__(self, value):
        super().__init__(float(value))


class Zero(_nn.Zero):
    """Zeros."""

    def __init__(self, **kwargs):
        super().__init__()


class One(_nn.One):
    """Ones."""

    def __init__(self, **kwargs):
        super().__init__()


class Normal(_nn.Normal):
    """Normal numbers of mean `mean` and deviation sigma."""

    def __init__(self, sigma=0.01, mean=0.0):
        super().__init__(sigma, mean)


class Uniform(_nn.Uniform):
    """Uniform numbers in [-scale, scale)."""

    def __init__(self, scale=0.07):
        super().__init__(scale)


class TruncatedNormal(_nn.TruncatedNormal):
    """Normal numbers conditioned on lying within [mean + a sigma, mean + b sigma]."""

    def __init__(self, sigma=0.01, mean=0.0, a=-2.0, b=2.0):
        super().__init__(sigma, mean, a, b)


class XavierUniform(_nn.XavierUniform):
    """Uniform numbers of variance gain^2 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""

    def __init__(self, gain=1):
        super().__init__(float(gain))


class XavierNormal(_nn.XavierNormal):
    """Normal numbers of variance gain^2 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""

    def __init__(self, gain=1):
        super().__init__(float(gain))


class HeUniform(_nn.HeUniform):
    """Uniform numbers of variance gain^2 / fan (He et al., 2015).

    The gain is that of nonlinearity ("relu", "leaky_relu" with negative_slope, ...); mode, "fan_in"
    or "fan_out", says which fan.
    """

    def __init__(self, negative_slope=0, mode="fan_in", nonlinearity="leaky_relu"):
        super().__init__(float(negative_slope), mode, nonlinearity)


class HeNormal(_nn.HeNormal):
    """Normal numbers of variance gain^2 / fan (He et al., 2015).

    The gain is that of nonlinearity ("relu", "leaky_relu" with negative_slope, ...); mode, "fan_in"
    or "fan_out", says which fan.
    """

    def __init__(self, negative_slope=0, mode="fan_in", nonlinearity="leaky_relu"):
        super().__init__(float(negative_slope), mode, nonlinearity)


def initializer(init, shape=None, dtype=_native.float32):
    """A tensor that an initializer, its name, a number or a tensor makes."""
    if isinstance(init, _native.Tensor):
        return init
    return _nn.initial_value(init, size_tuple(shape), dtype)


def _from_initializer(shape, dtype, init):
    """Tensor(shape=, dtype=, init=)."""
    if shape is None or init is None:
        raise TypeError("[Tensor] input_data is missing; without it, shape and init are needed")
    return initializer(init, shape, _native.float32 if dtype is None else dtype)


_native.set_initializer_hook(_from_initializer)
