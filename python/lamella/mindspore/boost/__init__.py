"""mindspore.boost."""

from lamella.names import missing
from lamella.train import GradientAccumulation

__getattr__ = missing(__name__, lambda: globals())
