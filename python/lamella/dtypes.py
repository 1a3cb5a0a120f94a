"""What dtypes are in NumPy and in Python."""

import numpy as np

from lamella import _native
from lamella._arguments import require


def dtype_to_nptype(type_):
    """The NumPy scalar type of a dtype."""
    require("dtype_to_nptype", "type_", type_, _native.dtype, "a dtype")
    if type_ == _native.bfloat16:
        try:
            from ml_dtypes import bfloat16 as scalar
        except ImportError:
            return np.float32
        return scalar
    return getattr(np, "bool_" if type_ == _native.bool_ else type_.name)


def dtype_to_pytype(type_):
    """The Python type of a dtype's elements."""
    require("dtype_to_pytype", "type_", type_, _native.dtype, "a dtype")
    if type_ == _native.bool_:
        return bool
    if type_.name.startswith("complex"):
        return complex
    return float if type_.name.startswith(("float", "bfloat")) else int
