"""Initializers with the arguments MindSpore gives them."""

from lamella import _native
from lamella.adapt import size_tuple

_nn = _native.nn
Initializer = _nn.Initializer


class Constant(_nn.Constant):
    def __init__(self, value):
        super().__init__(float(value))


class Zero(_nn.Zero):
    def __init__(self, **kwargs):
        super().__init__()


class One(_nn.One):
    def __init__(self, **kwargs):
        super().__init__()


class Normal(_nn.Normal):
    def __init__(self, sigma=0.01, mean=0.0):
        super().__init__(sigma, mean)


class Uniform(_nn.Uniform):
    def __init__(self, scale=0.07):
        super().__init__(scale)


class TruncatedNormal(_nn.TruncatedNormal):
    def __init__(self, sigma=0.01, mean=0.0, a=-2.0, b=2.0):
        super().__init__(sigma, mean, a, b)


class XavierUniform(_nn.XavierUniform):
    def __init__(self, gain=1):
        super().__init__(float(gain))


class XavierNormal(_nn.XavierNormal):
    def __init__(self, gain=1):
        super().__init__(float(gain))


class HeUniform(_nn.HeUniform):
    def __init__(self, negative_slope=0, mode="fan_in", nonlinearity="leaky_relu"):
        super().__init__(float(negative_slope), mode, nonlinearity)


class HeNormal(_nn.HeNormal):
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
