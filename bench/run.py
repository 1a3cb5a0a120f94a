"""Measures sections of figures and keeps them in bench/RESULTS.md."""

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

import comparison
from functions import Functions
from memory import Memory
from sides import OUR_CPP, PEERS, PEERS_PYTHON, ROOT, ROUNDS, THREADS
from start import Start
from traffic import Traffic

RESULTS = ROOT / "bench" / "RESULTS.md"
SECTIONS = {
    "Calls and chains": comparison.CALLS,
    "Calls and chains from Python": comparison.CALLS_FROM_PYTHON,
    "Memory-bound kernels": comparison.MEMORY_BOUND,
    "Share of copy traffic": Traffic(),
    "Elementary functions": Functions(),
    "Matrix products": comparison.MATRIX_PRODUCTS,
    "Training steps": comparison.TRAINING_STEPS,
    "Start": Start(),
    "Memory of a step": Memory(),
}


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
        'print(f\'PyTorch {v("torch")}, JAX {v("jax")}, ONNX Runtime {v("onnxruntime")}, \''
        "f'NumPy {v(\"numpy\")}')",
    )
    commit = output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    return (
        f"{datetime.date.today()}, {cpu[1] if cpu else platform.machine()}, "
        f"{os.cpu_count()} cores, {memory:.0f} GiB, {THREADS} threads; Lamella at {commit}, "
        f"g++ {output_of('g++', '-dumpfullversion', '-dumpversion')}; "
        f"{versions or 'no peers installed'}"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="*", help=f"of: {', '.join(SECTIONS)}; default all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if unknown := set(options.section) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}")
    program = OUR_CPP["Lamella"][0]
    if not pathlib.Path(program).exists():
        sys.exit(f"bench: {program} is missing; run `make build` first")
    peers = PEERS if PEERS_PYTHON.exists() else {}
    if not peers:
        print("bench: the peers are not installed (make bench-peers); measuring Lamella alone")

    # All sides share the same processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    measured_under = conditions()  # before the results of the first section change the tree
    for title in options.section or SECTIONS:
        body = f"{measured_under}\n\n{SECTIONS[title].measure(options.rounds, peers)}"
        print(f"\n## {title}\n\n{body}", flush=True)
        write_section(RESULTS, title, body)


if __name__ == "__main__":
    main()
