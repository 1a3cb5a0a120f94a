"""The programs that are measured ("sides") and how they are asked in turn.

Sides stay alive beside each other, and each measurement of one is followed by one of the next: what
the machine does meanwhile hits all alike. A figure is the median of at least five measurements
after warm-up; a target is a ratio of figures. See measure.py for how a side is talked to.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / "build" / "venv" / "bin" / "python"
PEERS_PYTHON = ROOT / "build" / "peers-venv" / "bin" / "python"
THREADS = 2
ROUNDS = 7
SETTLE_SECONDS = 0.02

Commands = Mapping[str, Sequence[str]]

OUR_CPP: Commands = {"Lamella": [str(ROOT / "build/release/bench/lamella_cases")]}
OUR_CPP_WITH_JIT: Commands = {
    **OUR_CPP,
    "Lamella jit": [str(ROOT / "build/release/bench/lamella_cases"), "--jit"],
}
OUR_PYTHON: Commands = {
    "Lamella": [str(PYTHON), str(ROOT / "bench/lamella_cases.py")],
    "Lamella jit": [str(PYTHON), str(ROOT / "bench/lamella_cases.py"), "--jit"],
}
PEERS: Commands = {
    "PyTorch eager": [str(PEERS_PYTHON), str(ROOT / "bench/peers/pytorch.py")],
    "PyTorch compiled": [str(PEERS_PYTHON), str(ROOT / "bench/peers/pytorch.py"), "--compile"],
    "JAX jit": [str(PEERS_PYTHON), str(ROOT / "bench/peers/jax_jit.py")],
    "ONNX Runtime": [str(PEERS_PYTHON), str(ROOT / "bench/peers/onnx_runtime.py")],
}
# The peers that train.
TRAINERS = {name: command for name, command in PEERS.items() if name != "ONNX Runtime"}


def environment(threads: int = THREADS, **more: str) -> dict[str, str]:
    """What a side is started with."""
    package = str(ROOT / "build/release/python")
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": package, **more}


@dataclasses.dataclass(frozen=True)
class Figure:
    """Milliseconds a call, unless it is scaled."""

    median: float
    minimum: float

    def __str__(self) -> str:
        return f"{self.median:.3g} / {self.minimum:.3g}"

    def scaled(self, factor: float) -> "Figure":
        return Figure(self.median * factor, self.minimum * factor)


class Side:
    """A running program that measures a case each time it is asked. What it says on standard error
    is shown only if it ends early."""

    def __init__(self, command: Sequence[str], threads: int = THREADS):
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (close closes it)
        self.process = subprocess.Popen(
            [*command, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env=environment(threads),
        )

    def wait_until_started(self) -> None:
        """Others neither measure nor start up beside a side that still does."""
        assert self.measure("no such case") is None

    def measure(self, case: str) -> float | None:
        """Milliseconds a call, or None where this side does not have the case."""
        # The threads of the side before spin a while for more work, and would take its processor.
        time.sleep(SETTLE_SECONDS)
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.said.seek(0)
            program = " ".join(self.process.args)
            raise RuntimeError(f"{program} ended while it measured {case}:\n{self.said.read()}")
        return json.loads(answer).get("ms")

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.said.close()


@contextlib.contextmanager
def running(commands: Commands, threads: int = THREADS) -> Iterator[dict[str, Side]]:
    with contextlib.ExitStack() as stack:
        sides = {}
        for name, command in commands.items():
            sides[name] = Side(command, threads)
            stack.callback(sides[name].close)
            sides[name].wait_until_started()
        yield sides


def alternate(
    sides: dict[str, Side], case: str | dict[str, str], rounds: int = ROUNDS
) -> dict[str, Figure]:
    """The figures of all sides that have the case: one for all, or one for each."""
    if rounds < 5:
        raise ValueError(f"a median of {rounds} measurements says too little; ask for 5 or more")
    cases = dict.fromkeys(sides, case) if isinstance(case, str) else case
    able = {name: side for name, side in sides.items() if side.measure(cases[name]) is not None}
    times: dict[str, list[float]] = {name: [] for name in able}
    for _ in range(rounds):
        for name, side in able.items():
            times[name].append(side.measure(cases[name]))
    return {name: Figure(statistics.median(t), min(t)) for name, t in times.items()}
