"""Lets several programs measure the same cases in turn and keeps the figures in bench/RESULTS.md.

The programs ("sides", see measure.py for how they are talked to) stay alive side by side, and each
measurement of one is followed by one of the next: what the machine does meanwhile hits all alike.
A figure is the median of at least five measurements after warm-up; a target is a ratio of figures.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "RESULTS.md"
PEERS_PYTHON = ROOT / "build" / "peers-venv" / "bin" / "python"
OURS = "Lamella"
THREADS = 2
ROUNDS = 7
SETTLE_SECONDS = 0.02

# The programs that answer for Lamella, C++ first; a case is asked of the first that knows it.
OUR_COMMANDS = [
    [str(ROOT / "build/release/bench/lamella_cases")],
    [str(ROOT / "build/venv/bin/python"), str(ROOT / "bench/lamella_cases.py")],
]
PEER_COMMANDS = {
    "PyTorch eager": [str(PEERS_PYTHON), str(ROOT / "bench/peers/pytorch.py")],
    "PyTorch compiled": [str(PEERS_PYTHON), str(ROOT / "bench/peers/pytorch.py"), "--compile"],
    "JAX jit": [str(PEERS_PYTHON), str(ROOT / "bench/peers/jax_jit.py")],
}


@dataclasses.dataclass(frozen=True)
class Figure:
    """Milliseconds a call."""

    median: float
    minimum: float

    def __str__(self) -> str:
        return f"{self.median:.3g} / {self.minimum:.3g}"


class Side:
    """A running program that measures a case each time it is asked."""

    def __init__(self, command: Sequence[str]):
        self.process = subprocess.Popen(
            [*command, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        )

    def measure(self, case: str) -> float | None:
        """Milliseconds a call, or None where this side does not have the case."""
        # The threads of the side before spin a while for more work, and would take its processor.
        time.sleep(SETTLE_SECONDS)
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args[0:2]} ended while it measured {case}")
        return json.loads(answer).get("ms")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def running(commands: dict[str, Sequence[str]]) -> Iterator[dict[str, Side]]:
    sides = {name: Side(command) for name, command in commands.items()}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.close()


def alternate(sides: dict[str, Side], case: str, rounds: int = ROUNDS) -> dict[str, Figure]:
    """The figures of all sides that have the case."""
    if rounds < 5:
        raise ValueError(f"a median of {rounds} measurements says too little; ask for 5 or more")
    able = {name: side for name, side in sides.items() if side.measure(case) is not None}
    times: dict[str, list[float]] = {name: [] for name in able}
    for _ in range(rounds):
        for name, side in able.items():
            times[name].append(side.measure(case))
    return {name: Figure(statistics.median(t), min(t)) for name, t in times.items()}


def ratio(figures: dict[str, Figure]) -> float | None:
    """How many times faster than the fastest peer we are."""
    peers = [figure.median for name, figure in figures.items() if name != OURS]
    return min(peers) / figures[OURS].median if OURS in figures and peers else None


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def table(results: dict[str, dict[str, Figure]]) -> str:
    """A table in Markdown: a row a case, a column a side, then the ratio to the fastest peer."""
    names = [OURS, *PEER_COMMANDS]
    names = [name for name in names if any(name in figures for figures in results.values())]
    lines = ["| case, ms a call: median / min | " + " | ".join(names) + " | fastest peer / ours |"]
    lines.append("|---" * (len(names) + 2) + "|")
    for case, figures in results.items():
        times = ratio(figures)
        cells = [str(figures.get(name, "")) for name in names]
        lines.append(f"| {case} | " + " | ".join(cells) + f" | {f'{times:.2f}' if times else ''} |")
    ratios = [times for figures in results.values() if (times := ratio(figures))]
    if ratios:
        lines += ["", f"Geometric mean of the ratios: {geometric_mean(ratios):.2f}"]
    return "\n".join(lines)


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def conditions() -> str:
    """When, where and with what a section was measured."""
    cpu = re.search(r"model name\s*: (.+)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = output_of(
        str(PEERS_PYTHON),
        "-c",
        "from importlib.metadata import version as v;"
        "print('PyTorch', v('torch') + ', JAX', v('jax') + ', NumPy', v('numpy'))",
    )
    commit = output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    return (
        f"{datetime.date.today()}, {cpu[1] if cpu else platform.machine()}, "
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {THREADS} threads; Lamella at {commit}, "
        f"{output_of('g++', '--version').splitlines()[0]}; {versions or 'no peers installed'}"
    )


def write_section(path: pathlib.Path, title: str, body: str) -> None:
    """Puts a section into the file in place of the one of that title; the others stay."""
    text = path.read_text() if path.exists() else "# Measured\n"
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    section = f"## {title}\n\n{body}\n"
    titles = [old.split("\n")[0] for old in sections]
    if f"## {title}" in titles:
        sections[titles.index(f"## {title}")] = section
    else:
        sections.append(section)
    path.write_text("\n".join(part.rstrip("\n") + "\n" for part in [head, *sections]))


SECTIONS = {
    "Calls and chains": ["add_one_element", "chain_of_10", "chain_of_10_with_gradient"],
    "Memory-bound kernels": [
        "gelu_2^20",
        "softmax_4096x1024",
        "layer_norm_4096x1024",
        "cross_entropy_4096x1024",
        "adam_200x1000",
        "adam_40x512x1024",
    ],
    "Matrix products": [
        *(f"matmul_{size}x{size}x{size}" for size in (64, 128, 256, 512, 1024, 2048, 4096)),
        *("matmul_1x4096x4096", "matmul_32x1024x4096", "matmul_4096x64x4096"),
    ],
    "Training steps": ["lenet_step", "mlp_step", "lstm_step", "transformer_step"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="*", help=f"of: {', '.join(SECTIONS)}; default all")
    parser.add_argument("--peers-only", action="store_true", help="do not ask for Lamella's side")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if unknown := set(options.section) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}")

    ours = [command for command in OUR_COMMANDS if pathlib.Path(command[-1]).exists()]
    if not ours and not options.peers_only:
        looked = " or ".join(command[-1] for command in OUR_COMMANDS)
        sys.exit(f"bench: this tree has no cases of Lamella itself (looked for {looked})")
    commands = {} if options.peers_only else {f"{OURS} {i}": c for i, c in enumerate(ours)}
    if PEERS_PYTHON.exists():
        commands |= PEER_COMMANDS
    else:
        print("bench: the peers are not installed (make bench-peers); measuring Lamella alone")

    # All sides share the same processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    for title in options.section or SECTIONS:
        results: dict[str, dict[str, Figure]] = {}
        with running(commands) as sides:
            for case in SECTIONS[title]:
                figures = alternate(sides, case, options.rounds)
                own = [figures.pop(name) for name in list(figures) if name.startswith(OURS)]
                results[case] = {OURS: own[0], **figures} if own else figures
        body = f"{conditions()}\n\n{table(results)}"
        print(f"\n## {title}\n\n{body}", flush=True)
        write_section(RESULTS, title, body)


if __name__ == "__main__":
    main()
