"""mindspore.mint.nn.functional."""

from lamella.mindspore.mint.nn import _functions
from lamella.mindspore.mint.nn._functions import *
from lamella.names import missing

__getattr__ = missing(__name__, lambda: _functions.__all__)
