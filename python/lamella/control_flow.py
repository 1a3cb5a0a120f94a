"""Loops and branches that are recorded once: scan, cond, while_loop, fori_loop.

A body is called once, with placeholders for what is carried. What is carried may be a tensor, or
tuples, lists and dictionaries of tensors; its structure stays the same from turn to turn.
"""

from collections.abc import Callable

import numpy as np

from lamella import _native
from lamella._arguments import int_of, require
from lamella._native import Tensor
from lamella.structures import flat, restore

_control = _native.control_flow


def _same_structure(name, given, returned):
    if given != returned:
        raise ValueError(
            f"[{name}] the body must give what it carries in the structure it was given"
        )


def scan(body, init, xs=None, length=None, reverse=False):
    """Runs body(carry, x) -> (carry, y) for each index of the first axis of xs's tensors.

    Gives what is carried after the last turn and all y, stacked along a new first axis. Without xs,
    `length` says the number of turns. With reverse, from the last index to the first.
    """
    initial, carry_structure = flat(init, "scan")
    sequences, x_structure = flat(xs, "scan")
    y_structure = None

    def turn(carried, slices):
        nonlocal y_structure
        returned = body(restore(carry_structure, carried), restore(x_structure, slices))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise TypeError("[scan] the body must return a pair: what is carried, what is stacked")
        after, structure = flat(returned[0], "scan", carry_structure)
        _same_structure("scan", carry_structure, structure)
        stacked, y_structure = flat(returned[1], "scan")
        return after, stacked

    carried, stacked = _control.scan(turn, initial, sequences, length, bool(reverse))
    return restore(carry_structure, carried), restore(y_structure, stacked)


def cond(condition, true_fn, false_fn, *operands):
    """true_fn(*operands) where condition, one bool, holds, else false_fn(*operands).

    Both are recorded and give the same structure, shapes and dtypes; one is run.
    """
    structures = []

    def branch(function):
        def run():
            like = structures[0] if structures else None
            tensors, structure = flat(function(*operands), "cond", like)
            structures.append(structure)
            if structures[0] != structure:
                raise ValueError("[cond] both branches must give the same structure")
            return tensors

        return run

    if isinstance(condition, (bool, np.bool_)):
        condition = Tensor(bool(condition))
    if not isinstance(condition, Tensor):
        kind = type(condition).__name__
        raise TypeError(f"[cond] the condition must be a Tensor or a bool, got {kind}")
    for name, branch_fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        require("cond", name, branch_fn, Callable, "a function")
    results = _control.cond(condition, branch(true_fn), branch(false_fn))
    return restore(structures[0], results)


def while_loop(cond_func, loop_func, init_val):
    """loop_func again and again as long as cond_func, one bool, holds for what is carried."""
    initial, structure = flat(init_val, "while_loop")

    def condition(carried):
        goes_on = cond_func(restore(structure, carried))
        return [goes_on if isinstance(goes_on, Tensor) else Tensor(bool(goes_on))]

    def body(carried):
        tensors, after = flat(loop_func(restore(structure, carried)), "while_loop", structure)
        _same_structure("while_loop", structure, after)
        return tensors

    return restore(structure, _control.while_loop(condition, body, initial))


def fori_loop(lower, upper, loop_func, init_val):
    """loop_func(i, carried) for i from lower to upper - 1; i is a tensor."""
    start, end = int_of("fori_loop", "lower", lower), int_of("fori_loop", "upper", upper)

    def turn(carry, _):
        i, carried = carry
        return (i + 1, loop_func(i, carried)), None

    length = max(end - start, 0)
    (_, carried), _ = scan(turn, (Tensor(start), init_val), None, length)
    return carried
