"""The same names as mindspore.ops, under the path that older programs import."""

from lamella.mindspore import ops as _ops
from lamella.mindspore.ops import *


def __getattr__(name):
    return getattr(_ops, name)
