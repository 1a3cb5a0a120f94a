"""Loops as primitives: unrolled in Python, or recorded once."""

from lamella import control_flow, structures
from lamella._arguments import int_of
from lamella.adapt import Primitive
from lamella.mindspore.ops import _functions


def _turns(sequences, length):
    """How often the body of a scan runs."""
    turns = {x.shape[0] if x.shape else None for x in sequences}
    if length is not None:
        length = int_of("Scan", "length", length)
        if length < 0:
            raise ValueError(f"[Scan] length must be at least 0, got {length}")
        turns.add(length)
    if not turns:
        raise ValueError("[Scan] a length is needed where xs holds no tensor")
    if len(turns) > 1 or None in turns:
        shapes = ", ".join(str(x.shape) for x in sequences)
        given = "" if length is None else f" and a length of {length}"
        raise ValueError(f"[Scan] sequences of shapes {shapes}{given} do not fit each other")
    return turns.pop()


class Scan(Primitive):
    """loop_func(carry, x) -> (carry, y) over the first axis of xs: (carry, stacked y)."""

    def __init__(self):
        super().__init__("Scan")

    def __call__(self, loop_func, init, xs, length=None, unroll=True):
        if not unroll:
            return control_flow.scan(loop_func, init, xs, length)
        sequences, structure = structures.flat(xs, "Scan")
        turns = _turns(sequences, length)
        if turns == 0:
            return control_flow.scan(loop_func, init, xs, length)
        carry, rows = init, []
        for i in range(turns):
            carry, y = loop_func(carry, structures.restore(structure, [x[i] for x in sequences]))
            row, y_structure = structures.flat(y, "Scan")
            rows.append(row)
        columns = zip(*rows, strict=True)
        return carry, structures.restore(
            y_structure, [_functions.stack(list(each), 0) for each in columns]
        )


class ForiLoop(Primitive):
    """loop_func(i, carried) for i from lower to upper - 1."""

    def __init__(self):
        super().__init__("ForiLoop")

    def __call__(self, lower, upper, loop_func, init_val, unroll=True):
        if not unroll:
            return control_flow.fori_loop(lower, upper, loop_func, init_val)
        lower, upper = int_of("ForiLoop", "lower", lower), int_of("ForiLoop", "upper", upper)
        for i in range(lower, upper):
            init_val = loop_func(i, init_val)
        return init_val


class WhileLoop(Primitive):
    """loop_func as long as cond_func holds for what is carried."""

    def __init__(self):
        super().__init__("WhileLoop")

    def __call__(self, cond_func, loop_func, init_val):
        return control_flow.while_loop(cond_func, loop_func, init_val)
