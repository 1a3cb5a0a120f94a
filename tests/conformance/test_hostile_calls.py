"""Random calls of every operator give a result or an error of the user, never a crash."""

import random

import numpy as np

import lamella

from .test_operators import INTERNAL

SEED, CALLS = 20, 1200
SIZES = [0, 1, 2, 3, 5, 17]
DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
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
        with np.errstate(all="ignore"):
            return lamella.Tensor(data.astype(self.random.choice(DTYPES)))

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


def test_random_calls():
    arguments = Arguments(SEED)
    rows = [row for row in lamella.operators() if row["name"] not in INTERNAL]
    computed = 0
    for number in range(CALLS):
        row = arguments.random.choice(rows)
        given = [arguments.of_kind(parameter["kind"]) for parameter in row["parameters"]]
        try:
            results = lamella.call(row["name"], *given)
            for result in results if isinstance(results, (list, tuple)) else [results]:
                result.asnumpy()
            computed += 1
        except USER_ERRORS:
            pass
        except Exception as error:
            error.add_note(f"call {number}: {row['name']}({given})")
            raise
    assert computed > CALLS // 5
