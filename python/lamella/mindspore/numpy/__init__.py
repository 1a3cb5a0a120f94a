"""mindspore.numpy."""

import math

from lamella import _native
from lamella._native import Tensor
from lamella.mindspore.numpy import _functions
from lamella.mindspore.numpy._functions import *

bool_ = _native.bool_
int8, int16, int64 = _native.int8, _native.int16, _native.int64
int32 = int_ = _native.int32
uint8, uint16, uint64 = _native.uint8, _native.uint16, _native.uint64
uint32 = uint = _native.uint32
float16, float64 = _native.float16, _native.float64
float32 = float_ = _native.float32
pi, inf, nan = math.pi, math.inf, math.nan
PINF, NINF = math.inf, -math.inf
newaxis = None
