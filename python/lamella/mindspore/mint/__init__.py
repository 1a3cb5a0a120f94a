"""mindspore.mint."""

from lamella.mindspore.mint import _functions, nn, optim
from lamella.mindspore.mint._functions import *
from lamella.names import missing

__getattr__ = missing(__name__, lambda: _functions.__all__)
