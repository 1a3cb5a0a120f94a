"""mindspore.mint."""

from lamella.mindspore.mint import _functions, nn, optim
from lamella.mindspore.mint._functions import *
