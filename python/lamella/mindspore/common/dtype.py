"""The dtypes under the names programs use, and their counterparts in NumPy and Python."""

from lamella import _native
from lamella._arguments import require as _require

bool_ = _native.bool_
int8 = byte = _native.int8
int16 = short = _native.int16
int32 = intc = _native.int32
int64 = long = intp = _native.int64
uint8 = ubyte = _native.uint8
uint16 = ushort = _native.uint16
uint32 = uintc = _native.uint32
uint64 = uintp = _native.uint64
float16 = half = _native.float16
bfloat16 = _native.bfloat16
float32 = single = _native.float32
float64 = double = _native.float64
complex64 = _native.complex64
complex128 = _native.complex128
type_none = type(None)
tensor_type = tensor = _native.Tensor

number_type = (
    int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    complex64, complex128,
)  # fmt: skip
int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)
Type = _native.dtype


def dtype_to_nptype(type_):
    """The NumPy scalar type of a dtype."""
    import numpy

    _require("dtype_to_nptype", "type_", type_, Type, "a dtype")
    if type_ == bfloat16:
        try:
            from ml_dtypes import bfloat16 as scalar
        except ImportError:
            return numpy.float32
        return scalar
    return getattr(numpy, "bool_" if type_ == bool_ else type_.name)


def dtype_to_pytype(type_):
    """The Python type of a dtype's elements."""
    _require("dtype_to_pytype", "type_", type_, Type, "a dtype")
    if type_ == bool_:
        return bool
    if type_.name.startswith("complex"):
        return complex
    return float if type_.name.startswith(("float", "bfloat")) else int


def pytype_to_dtype(obj):
    """The dtype of a Python type."""
    return _native.dtype_from_name(obj)


_nptype_to_dtype = _native.dtype_from_name
np_dtype_to_mstype = _native.dtype_from_name


def issubclass_(type_, dtype):
    """Whether a dtype is another one, or one of a tuple."""
    return type_ == dtype or (isinstance(dtype, tuple) and type_ in dtype)


__all__ = [
    "bool_", "int8", "byte", "int16", "short", "int32", "intc", "int64", "long", "intp", "uint8",
    "ubyte", "uint16", "ushort", "uint32", "uintc", "uint64", "uintp", "float16", "half",
    "bfloat16", "float32", "single", "float64", "double", "complex64", "complex128", "number_type",
    "int_type", "uint_type", "float_type", "dtype_to_nptype", "dtype_to_pytype", "pytype_to_dtype",
    "issubclass_",
]  # fmt: skip
