"""mindspore.dataset.vision."""

from lamella.dataset.transforms import (
    HWC2CHW,
    Border,
    Inter,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    Rescale,
    Resize,
)
from lamella.names import missing

__getattr__ = missing(__name__, lambda: globals())
