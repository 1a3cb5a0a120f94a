"""Tensor, and functions that make one."""

from lamella._native import Tensor


def tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False):
    """A Tensor of data, or of an initializer."""
    return Tensor(input_data, dtype, shape, init, const_arg)


def from_numpy(array):
    """A Tensor over the memory of an array."""
    return Tensor.from_numpy(array)


def is_tensor(obj):
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)
