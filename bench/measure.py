"""One side of a comparison: a program that holds named cases and measures them.

A case is a function that prepares its data and returns the call to be timed. Run as a program, a
side prints one line of JSON a case: {"name", "median_ms", "min_ms"}. With --serve it reads case
names from standard input and answers each with one measurement, {"name", "ms"}, keeping the case
warm in between: so sides can alternate. With --first it calls a case once and says when it is done.
"""

import argparse
import gc
import json
import statistics
import sys
import timeit
from collections.abc import Callable

Call = Callable[[], object]

# The cases of matrix products: rows, depth and columns by name.
MATMULS = {
    f"matmul_{rows}x{depth}x{columns}": (rows, depth, columns)
    for rows, depth, columns in (
        *((size, size, size) for size in (64, 128, 256, 512, 1024, 2048, 4096)),
        *((1, 4096, 4096), (32, 1024, 4096), (4096, 64, 4096)),
    )
}

# A measurement repeats the call for about this long, and reports the mean.
MEASUREMENT_SECONDS = 0.1
MEASUREMENTS = 7


class WarmCase:
    """A prepared case. The first calls, which compile and fill caches, are not measured."""

    def __init__(self, prepare: Callable[[], Call]):
        self.timer = timeit.Timer("call()", globals={"call": prepare()})
        self.repetitions = 1
        # Some frameworks compile twice: first for what they saw, then for what varies.
        for _ in range(5):
            self.milliseconds()

    def milliseconds(self) -> float:
        """A call's mean over about as many as the time holds, going by the last measurement."""
        mean = self.timer.timeit(self.repetitions) / self.repetitions
        self.repetitions = max(1, round(MEASUREMENT_SECONDS / mean))
        return 1e3 * mean


def best_of(*candidates: Callable[[], Call]) -> Call:
    """Prepares several ways of doing the same work and returns the one that is fastest here."""
    calls = [prepare() for prepare in candidates]
    times = []
    for call in calls:
        timer = timeit.Timer("call()", globals={"call": call})
        timer.timeit(3)
        times.append(min(timer.repeat(repeat=5, number=3)))
    return calls[times.index(min(times))]


def serve(cases: dict[str, Callable[[], Call]]) -> None:
    name, warm = "", None
    for line in sys.stdin:
        if line.strip() != name:
            name, warm = line.strip(), None
            gc.collect()  # the data of the case before
            if name not in cases:
                print(json.dumps({"name": name, "error": "no such case"}), flush=True)
                name = ""
                continue
            warm = WarmCase(cases[name])
        print(json.dumps({"name": name, "ms": warm.milliseconds()}), flush=True)


def main(cases: dict[str, Callable[[], Call]], arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--first", action="store_true", help="one call, then a line, and no more")
    parser.add_argument("case", nargs="*", choices=[*cases, []])
    options = parser.parse_args(arguments)
    if options.serve:
        serve(cases)
        return
    if options.first:
        for name in options.case:
            cases[name]()()
            print(name, flush=True)
        return
    for name in options.case or cases:
        warm = WarmCase(cases[name])
        times = [warm.milliseconds() for _ in range(MEASUREMENTS)]
        result = {"name": name, "median_ms": statistics.median(times), "min_ms": min(times)}
        print(json.dumps(result), flush=True)
        del warm
        gc.collect()
