"""What dtypes are in NumPy and in Python."""

import numpy as np

from lamella import _native


def dtype_to_nptype(type_):
    """The NumPy scalar type of a dtype."""
    if type_ == _native.bfloat16:
        try:
            from ml_dtypes import bfloat16 as scalar
        except ImportError:
            return np.float32
        return scalar
    return getattr(np, "bool_" if type_ == _native.bool_ else type_.name)


def dtype_to_pytype(type_):
    """The Python type of a dtype's elements."""
    if type_ == _native.bool_:
        return bool
    if type_.name.startswith("complex"):
        return complex
    return float if type_.name.startswith(("float", "bfloat")) else int
