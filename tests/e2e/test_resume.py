"""A training run that is killed at any moment and goes on makes the losses it would have made.

Shuffling, dropout, a falling rate, a loss scale that changes and steps of two batches are on.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

import lamella

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(lamella.__file__).parents[2]
PROGRAMS = {
    "cpp": [os.fspath(BUILD / "examples/fashion_mnist")],
    "python": [
        sys.executable,
        "-m",
        "lamella",
        "run",
        os.fspath(ROOT / "examples/fashion_mnist.py"),
    ],
}
STEPS = 74  # two epochs of 37 batches: the last step of each is made of one
OPTIONS = [
    *("--epochs", "2", "--batch-size", "100", "--images", "3700"),
    *("--loss-scale", "1024", "--accumulate", "2"),
]


def start(program, folder, *options):
    return subprocess.Popen(
        [*PROGRAMS[program], *OPTIONS, *options, "--output", os.fspath(folder),
         "--dump-losses", os.fspath(folder / "losses.txt")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finished(process):
    output, _ = process.communicate()
    assert process.returncode == 0, output


def lines_of(folder):
    path = folder / "losses.txt"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    finished(start("cpp", folder))
    lines = lines_of(folder)
    assert len(lines) == STEPS
    return lines


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_killed_run_goes_on_with_the_same_bits(program, expected, tmp_path):
    steps = sorted(random.Random(program).sample(range(2, STEPS - 2), 3))
    for number, step in enumerate(steps):
        process = start(program, tmp_path, "--save-steps", "3", *["--resume"] * (number > 0))
        deadline = time.monotonic() + 120
        while len(lines_of(tmp_path)) < step and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        made = lines_of(tmp_path)
        assert step <= len(made) < STEPS
        assert made == expected[: len(made)]
    finished(start(program, tmp_path, "--save-steps", "3", "--resume"))
    assert lines_of(tmp_path) == expected
