"""mindspore.mint.nn."""

from lamella.mindspore.mint.nn import functional, layers
from lamella.mindspore.mint.nn.layers import *
from lamella.names import missing

__getattr__ = missing(__name__, lambda: layers.__all__)
