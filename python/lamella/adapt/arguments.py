"""Arguments as programs write them: an integer for several, a list for a tuple, another keyword."""

from lamella import _native

INF = float("inf")


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
    if len(args) == 1 and not isinstance(args[0], int):
        return size_tuple(args[0])
    return size_tuple(args)


def size_tuple(sizes):
    """A tuple of integers from an integer, a sequence or a tensor."""
    if sizes is None:
        return ()
    if isinstance(sizes, _native.Tensor):
        sizes = sizes.asnumpy().tolist()
    if isinstance(sizes, (tuple, list)):
        return tuple(size if type(size) is int else size.__index__() for size in sizes)
    return (sizes.__index__(),)


def ints(value, count):
    """`count` integers from one or from `count`."""
    values = size_tuple(value)
    return values * count if len(values) == 1 else values


def in_place(target, value):
    """Writes a result into a tensor, in its dtype, and gives the tensor back."""
    if value.dtype != target.dtype:
        value = _native.operators_by_name.cast(value, target.dtype)
    return target.assign_value(value)
