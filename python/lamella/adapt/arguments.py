"""Arguments as programs write them: an integer for several, a list for a tuple, another keyword."""

import operator
import sys

from lamella import _native
from lamella._arguments import require

INF = float("inf")
_SIZES = "an int or a tuple of ints"


class _Unset:
    """A keyword that was not given."""

    def __repr__(self):
        return "<not given>"

    def __bool__(self):
        return False


UNSET = _Unset()


class Primitive:
    """An operator as an object: made with its settings, called with its operands."""

    def __init__(self, name):
        self.name = name
        self.attrs = {}

    def add_prim_attr(self, name, value):
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    def set_device(self, device_target):
        return self.add_prim_attr("primitive_target", device_target)

    def shard(self, in_strategy=None, out_strategy=None):
        self.in_strategy, self.out_strategy = in_strategy, out_strategy
        return self

    def set_stage(self, stage):
        return self.add_prim_attr("stage", stage)

    def recompute(self, mode=True):
        return self

    def __repr__(self):
        return f"Prim[{self.name}]"


def either(keyword, other, value):
    """The value given under another keyword, if it was."""
    return value if other is UNSET else other


def flat(args):
    """The sizes or axes of f(2, 3), f((2, 3)) and f([2, 3])."""
    several = len(args) == 1 and isinstance(args[0], (tuple, list, _native.Tensor))
    return size_tuple(args[0] if several else args)


def _holds(given, value):
    nested = given if isinstance(given, (tuple, list)) else ()
    return given is value or any(_holds(each, value) for each in nested)


def _receiver(value):
    """The public function that a value was given to, the first caller outside of this package, and
    the arguments that are the value or have it among their items."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(__package__):
        frame = frame.f_back
    given = frame.f_locals
    primitive = isinstance(given.get("self"), Primitive)
    call = given["self"].name if primitive else frame.f_code.co_name
    return call, {name: each for name, each in given.items() if _holds(each, value)}


def _refuse(value, accepted):
    """Raises TypeError for what is not an integer."""
    call, arguments = _receiver(value)
    argument = next(iter(arguments)) if len(arguments) == 1 else "an argument"
    require(call, argument, value, (), accepted)


def explain(error):
    """Raises TypeError if an AttributeError is that of an argument which should be a tensor."""
    value, name = getattr(error, "obj", None), getattr(error, "name", None)
    if isinstance(value, _native.Tensor) or not hasattr(_native.Tensor, name or ""):
        return
    call, arguments = _receiver(value)
    if len(arguments) == 1:
        [(argument, given)] = arguments.items()
        argument = argument if given is value else f"an item of {argument}"
        require(call, argument, value, (), "a Tensor")
    elif arguments:
        require(call, "an argument", value, (), "a Tensor")


def integer(value, accepted="an int"):
    """The int that an argument is, of any class of ints; TypeError naming the argument."""
    if type(value) is int:
        return value
    try:
        single = isinstance(value, _native.Tensor) and value.size == 1
        return operator.index(value.item() if single else value)
    except TypeError:
        _refuse(value, accepted)


def check_axis(x, axis, name):
    """An axis of a tensor, counted from the front."""
    axis = integer(axis)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"[{name}] axis {axis} is outside of a tensor with {x.ndim} axes")
    return axis % x.ndim


def size_tuple(sizes):
    """A tuple of integers from an integer, a sequence or a tensor."""
    if sizes is None:
        return ()
    if isinstance(sizes, _native.Tensor):
        sizes = sizes.asnumpy().tolist()
    if isinstance(sizes, (tuple, list)):
        return tuple(integer(size, _SIZES) for size in sizes)
    return (integer(sizes, _SIZES),)


def new_shape(sizes):
    """The shape of a new tensor; ValueError for a negative size."""
    shape = size_tuple(sizes)
    if any(size < 0 for size in shape):
        call, arguments = _receiver(sizes)
        argument = next(iter(arguments)) if len(arguments) == 1 else "a shape"
        raise ValueError(f"[{call}] {argument} must not have negative sizes, got {shape}")
    return shape


def ints(value, count):
    """`count` integers from one or from `count`."""
    values = size_tuple(value)
    return values * count if len(values) == 1 else values


def in_place(target, value):
    """Writes a result into a tensor, in its dtype, and gives the tensor back."""
    if value.dtype != target.dtype:
        value = _native.operators_by_name.cast(value, target.dtype)
    return target.assign_value(value)
