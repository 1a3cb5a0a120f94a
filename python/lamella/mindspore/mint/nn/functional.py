"""mindspore.mint.nn.functional."""

from lamella.mindspore.mint.nn import _functions
from lamella.mindspore.mint.nn._functions import *
