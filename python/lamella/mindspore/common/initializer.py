"""mindspore.common.initializer."""

from lamella.nn.initializers import *
from lamella.nn.initializers import initializer
