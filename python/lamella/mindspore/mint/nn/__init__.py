"""mindspore.mint.nn."""

from lamella.mindspore.mint.nn import functional, layers
from lamella.mindspore.mint.nn.layers import *
