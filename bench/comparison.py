"""Sections that measure the same cases of Lamella and its peers: how many times faster we are."""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from measure import MATMULS
from sides import OUR_CPP, OUR_CPP_WITH_JIT, OUR_PYTHON, PEERS, Commands, Figure, alternate, running

# Not read, so Lamella records them and computes nothing, which the peers do at once.
RECORDED_ONLY = ("add_one_element",)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A table with a row a case, a column a side, then the ratio to the fastest peer."""

    cases: Sequence[str]
    ours: Commands = dataclasses.field(default_factory=lambda: OUR_CPP)

    def measure(self, rounds: int, peers: Commands) -> str:
        commands = {**self.ours, **peers}
        with running(commands) as sides:
            results = {case: alternate(sides, case, rounds) for case in self.cases}
        return self.table(results, list(commands))

    def table(self, results: dict[str, dict[str, Figure]], names: Sequence[str]) -> str:
        names = [name for name in names if any(name in figures for figures in results.values())]
        titles = ["case, ms a call: median / min", *names, "fastest peer / ours"]
        lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
        for case, figures in results.items():
            times = self.ratio(figures)
            cells = [case, *(str(figures.get(name, "")) for name in names)]
            lines.append(f"| {' | '.join(cells)} | {f'{times:.2f}' if times else ''} |")
        ratios = {
            case: times
            for case, figures in results.items()
            if case not in RECORDED_ONLY and (times := self.ratio(figures))
        }
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
            left_out = [case for case in RECORDED_ONLY if case in results]
            without = f", without {', '.join(left_out)}" if left_out else ""
            lines += ["", f"Geometric mean of the ratios{without}: {mean:.2f}"]
        return "\n".join(lines)

    def ratio(self, figures: dict[str, Figure]) -> float | None:
        """How many times faster than the fastest peer the fastest of our sides is."""
        ours = [figure.median for name, figure in figures.items() if name in self.ours]
        peers = [figure.median for name, figure in figures.items() if name in PEERS]
        return min(peers) / min(ours) if ours and peers else None


CALLS = Comparison(
    ["add_one_element", "chain_of_10", "chain_of_10_with_gradient", "window_of_3000"],
    OUR_CPP_WITH_JIT,
)
CALLS_FROM_PYTHON = Comparison(CALLS.cases[:3], OUR_PYTHON)
MEMORY_BOUND = Comparison(
    [
        "gelu_2^20",
        "softmax_4096x1024",
        "layer_norm_4096x1024",
        "cross_entropy_4096x1024",
        "adam_200x1000",
        "adam_40x512x1024",
    ]
)
MATRIX_PRODUCTS = Comparison(list(MATMULS))
TRAINING_STEPS = Comparison(
    ["lenet_step", "mlp_step", "lstm_step", "transformer_step"], OUR_CPP_WITH_JIT
)
