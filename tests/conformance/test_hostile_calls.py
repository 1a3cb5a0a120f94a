"""Random calls of every operator give a result or an error of the user, never a crash.

A result is the same, to the bit, when the call is made again and each operation runs by itself; its
gradient can be asked for. LAMELLA_HOSTILE_CALLS says how many calls are made.
"""

import os
import random

import numpy as np

import lamella

from .test_operators import INTERNAL

CALLS = int(os.environ.get("LAMELLA_HOSTILE_CALLS", "1200"))
SEED = 20
SIZES = [0, 1, 2, 3, 5, 17]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-45, 2.0**31, -(2.0**63)]
NUMBERS = [0, 1, -1, 3.5, 2**40, float("nan")]
INTEGERS = [-100, -2, -1, 0, 1, 2, 3, 7, 2**31, 2**62]
REALS = [0.0, 1.0, -1.0, 1e-5, float("nan"), float("inf")]
WORDS = ["mean", "none", "sum", "", "constant", "reflect", "no such word"]
USER_ERRORS = (TypeError, ValueError, IndexError, NotImplementedError, MemoryError)


class Arguments:
    """Draws arguments of any kind without regard to what fits."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def tensor(self):
        rank = self.random.choice([0, 1, 1, 2, 2, 3, 4, 5])
        data = self.numbers.standard_normal([self.random.choice(SIZES) for _ in range(rank)])
        data = np.asarray(data * self.random.choice([1, 10, 1000, np.nan]))
        if data.size and self.random.random() < 0.2:
            data.flat[self.random.randrange(data.size)] = self.random.choice(SPECIAL)
        with np.errstate(all="ignore"):
            made = lamella.Tensor(data.astype(self.random.choice(DTYPES)))
        if self.random.random() < 0.1:
            made = lamella.call("cast", made, "bfloat16")
        if rank > 1 and self.random.random() < 0.2:
            made = lamella.call("transpose", made, ())  # a view with other strides
        return made

    def of_kind(self, kind):
        choose = self.random.choice
        match kind:
            case "tensor" | "optional tensor":
                return choose([self.tensor, self.tensor, self.tensor, lambda: choose(NUMBERS)])()
            case "tensors":
                return [self.tensor() for _ in range(self.random.randrange(4))]
            case "bool":
                return choose([True, False])
            case "int":
                return choose(INTEGERS)
            case "float":
                return choose(REALS)
            case "str":
                return choose(WORDS)
            case "axes" | "shape":
                sizes = [-5, -1, 0, 1, 2, 3, 2**33]
                return tuple(choose(sizes) for _ in range(self.random.randrange(5)))
            case _:
                return None


def results_of(name, given):
    results = lamella.call(name, *given)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def elements(results):
    """The bits of every result; one NaN is as good as another."""
    values = [lamella.call("cast", result, "float64").asnumpy() for result in results]
    return [np.where(np.isnan(each), np.nan, each).tobytes() for each in values]


def check(row, given):
    """Whether the call gives a result; then the same once more, one operation a window."""
    state = lamella._native.random_state()
    try:
        first = elements(results_of(row["name"], given))
    except USER_ERRORS:
        return False
    lamella._native.set_random_state(*state)
    window = lamella._native.window()
    lamella.set_window(1)
    try:
        again = elements(results_of(row["name"], given))
    finally:
        lamella.set_window(window)
    assert first == again, "another window gives other bits"
    floats = [x for x in given if isinstance(x, lamella.Tensor) and x.is_floating_point()]
    if row["has_gradient"] and floats:
        try:
            _, gradients = lamella._native.differentiate(
                lambda: (None, results_of(row["name"], given)[0]), floats, None
            )
            elements(gradients)
        except USER_ERRORS:
            pass
    return True


def test_random_calls():
    arguments = Arguments(SEED)
    rows = [row for row in lamella.operators() if row["name"] not in INTERNAL]
    computed = 0
    for number in range(CALLS):
        row = arguments.random.choice(rows)
        given = [arguments.of_kind(parameter["kind"]) for parameter in row["parameters"]]
        try:
            computed += check(row, given)
        except Exception as error:
            error.add_note(f"call {number}: {row['name']}({given})")
            raise
    assert computed > CALLS // 6
