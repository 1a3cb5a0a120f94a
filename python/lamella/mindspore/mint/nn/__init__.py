"""mindspore.mint.nn."""

from lamella.mindspore.mint.nn import functional
from lamella.names import missing

__getattr__ = missing(__name__)
