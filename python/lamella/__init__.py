"""Lamella: a deep-learning training framework.

Operators, layers and optimizers live in C++; this package names them. `lamella.mindspore` is the
API that MindSpore programs are written against; `lamella run program.py` puts it on the import path
as `mindspore`, and so does `import lamella.alias`.
"""

import os

from lamella import _environment, _native  # noqa: F401 (what is set first, _native's loading reads)
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

from lamella import tensor  # noqa: E402 (frames of the package are known by its folder)

tensor.complete(Tensor)

__version__ = _native.version()
__all__ = ["Tensor", "call", "counters", "dtype", "flush", "operators", "set_window"]
