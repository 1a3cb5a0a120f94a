"""mindspore.ops: functions, primitives and higher-order functions."""

from lamella.adapt import Primitive
from lamella.autodiff import GradOperation, grad, value_and_grad, vjp
from lamella.jit import constexpr
from lamella.mindspore.ops import _functions, _primitives
from lamella.mindspore.ops._functions import *
from lamella.mindspore.ops._primitives import *
from lamella.mindspore.ops.composite import HyperMap, Map, MultitypeFuncGraph
from lamella.mindspore.ops.loops import ForiLoop, Scan, WhileLoop
from lamella.profiler import Profiler
from lamella.vectorize import vmap


def is_tensor(obj):
    """Whether an object is a Tensor."""
    from lamella import Tensor

    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether the elements are floats."""
    return input.is_floating_point()


def depend(value, expr):
    """value: what is written before is run before in any mode."""
    return value


def print_(*input_x):
    """Prints values when they are computed."""
    print(*input_x)


def mixed_precision_cast(dst_dtype, x):
    """x in another dtype, if it is of a float dtype."""
    return x.astype(dst_dtype) if x.is_floating_point() else x


def _instances():
    made = {
        "reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
        "reduce_mean": "ReduceMean", "identity": "Identity", "dtype": "DType", "shape_": "Shape",
        "tensor_add": "Add", "tensor_sub": "Sub", "tensor_mul": "Mul", "tensor_div": "RealDiv",
        "tensor_pow": "Pow", "tensor_floordiv": "FloorDiv", "tensor_mod": "FloorMod",
    }  # fmt: skip
    return {name: getattr(_primitives, kind)() for name, kind in made.items()}


globals().update(_instances())
