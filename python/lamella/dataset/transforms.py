"""Transforms as objects: applied by a dataset's workers, or called on an array at once."""

import enum

import numpy as np

from lamella._native import data as _data
from lamella.dataset import functions


class Inter(enum.IntEnum):
    """How pixels between pixels are computed."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """How added pixels are filled."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class Transform:
    """Base: `_handle` is the native transform."""

    _handle = None

    def __call__(self, *arrays):
        outputs = self._handle.apply(*(np.asarray(array) for array in arrays))
        return outputs[0] if len(outputs) == 1 else outputs


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def _interpolation(inter):
    return {0: "nearest", 2: "bilinear"}.get(int(inter), Inter(inter).name.lower())


class TypeCast(Transform):
    """An array in another dtype."""

    def __init__(self, data_type):
        self._handle = _data.type_cast(data_type)


class OneHot(Transform):
    """A label as a vector."""

    def __init__(self, num_classes, smoothing_rate=0.0):
        self._handle = _data.one_hot(num_classes, smoothing_rate)


class Compose(Transform):
    """Transforms one after the other."""

    def __init__(self, transforms):
        self.transforms = list(transforms)
        self._handle = _data.compose([made(transform) for transform in self.transforms])


class Rescale(Transform):
    """x * rescale + shift."""

    def __init__(self, rescale, shift):
        self._handle = _data.rescale(rescale, shift)


class Normalize(Transform):
    """(x - mean) / std for each channel."""

    def __init__(self, mean, std, is_hwc=True):
        self._handle = _data.normalize(list(mean), list(std), is_hwc)


class HWC2CHW(Transform):
    """Channels to the front."""

    def __init__(self):
        self._handle = _data.hwc_to_chw()


class RandomHorizontalFlip(Transform):
    """Left and right exchanged with a probability."""

    def __init__(self, prob=0.5):
        self._handle = _data.random_horizontal_flip(prob)


class RandomCrop(Transform):
    """A part at a random place."""

    def __init__(
        self,
        size,
        padding=None,
        pad_if_needed=False,
        fill_value=0,
        padding_mode=Border.CONSTANT,
    ):
        height, width = _pair(size)
        if padding is None:
            sides = []
        elif isinstance(padding, int):
            sides = [padding] * 4
        else:
            sides = list(padding) if len(padding) == 4 else [padding[0], padding[1]] * 2
        fill = [fill_value] if isinstance(fill_value, (int, float)) else list(fill_value)
        mode = Border(padding_mode).value
        self._handle = _data.random_crop(height, width, sides, pad_if_needed, fill, mode)


class Resize(Transform):
    """To a size; one number is the shorter side's."""

    def __init__(self, size, interpolation=Inter.BILINEAR):
        how = _interpolation(interpolation)
        if isinstance(size, int):
            self._handle = _data.resize_shorter_side(size, how)
        else:
            self._handle = _data.resize(*size, how)


def calls_python(operation):
    """Whether the operation calls a user's function."""
    if isinstance(operation, Compose):
        return any(calls_python(transform) for transform in operation.transforms)
    return not isinstance(operation, Transform)


def made(operation, shared=None):
    """The native transform of an object of this module or of any callable. With `shared`, users'
    functions run in worker processes (functions.shared_bytes)."""
    if isinstance(operation, Compose) and shared is not None:
        return _data.compose([made(transform, shared) for transform in operation.transforms])
    if isinstance(operation, Transform):
        return operation._handle
    if not callable(operation):
        raise TypeError(f"[map] an operation is a callable, got {type(operation).__name__}")
    return _data.function_transform(functions.of_rows(operation, shared))
