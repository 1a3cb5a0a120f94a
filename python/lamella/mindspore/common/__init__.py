"""Tensors and dtypes."""

from lamella.jit import JitConfig, jit, jit_class, ms_class, ms_function
from lamella.mindspore.common import dtype
from lamella.mindspore.common.dtype import *
from lamella.mindspore.common.initializer import initializer
from lamella.mindspore.common.parameter import Parameter, ParameterTuple
from lamella.mindspore.common.tensor import Tensor
from lamella.random import get_seed, set_seed
