"""Lamella: a deep-learning training framework."""

import os

from lamella import _native
from lamella._native import (
    Tensor,
    call,
    counters,
    dtype,
    flush,
    operators,
    set_window,
)

_native.set_package_folder(os.path.dirname(os.path.abspath(__file__)) + os.sep)

__all__ = ["Tensor", "call", "counters", "dtype", "flush", "operators", "set_window"]
