"""Loops as primitives: unrolled in Python, or recorded once."""

from lamella import control_flow
from lamella.adapt import Primitive
from lamella.mindspore.ops import _functions


def _structured(function, *structures):
    """function over tensors that stand at the same place of equal structures."""
    first = structures[0]
    if isinstance(first, (tuple, list)):
        items = [_structured(function, *parts) for parts in zip(*structures, strict=True)]
        return type(first)(items)
    if isinstance(first, dict):
        return {key: _structured(function, *(s[key] for s in structures)) for key in first}
    return None if first is None else function(*structures)


def _length(xs):
    if isinstance(xs, dict):
        xs = list(xs.values())
    return _length(xs[0]) if isinstance(xs, (tuple, list)) else xs.shape[0]


class Scan(Primitive):
    """loop_func(carry, x) -> (carry, y) over the first axis of xs: (carry, stacked y)."""

    def __init__(self):
        super().__init__("Scan")

    def __call__(self, loop_func, init, xs, length=None, unroll=True):
        if not unroll:
            return control_flow.scan(loop_func, init, xs, length)
        turns = length if xs is None else _length(xs)
        if turns is None:
            raise ValueError("[Scan] a length is needed where xs is None")
        if length is not None and xs is not None and length != turns:
            raise ValueError(f"[Scan] a sequence of {turns} does not fit a length of {length}")
        if turns == 0:
            return control_flow.scan(loop_func, init, xs, length)
        carry, stacked = init, []
        for i in range(turns):
            carry, y = loop_func(carry, _structured(lambda x, i=i: x[i], xs))
            stacked.append(y)
        return carry, _structured(lambda *ys: _functions.stack(list(ys), 0), *stacked)


class ForiLoop(Primitive):
    """loop_func(i, carried) for i from lower to upper - 1."""

    def __init__(self):
        super().__init__("ForiLoop")

    def __call__(self, lower, upper, loop_func, init_val, unroll=True):
        if not unroll:
            return control_flow.fori_loop(lower, upper, loop_func, init_val)
        for i in range(int(lower), int(upper)):
            init_val = loop_func(i, init_val)
        return init_val


class WhileLoop(Primitive):
    """loop_func as long as cond_func holds for what is carried."""

    def __init__(self):
        super().__init__("WhileLoop")

    def __call__(self, cond_func, loop_func, init_val):
        return control_flow.while_loop(cond_func, loop_func, init_val)
