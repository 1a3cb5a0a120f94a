"""The training example gives the same losses, to the last bit, in every mode and in both languages.

Dropout, shuffling and a changing learning rate are on; the data is real.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import lamella

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(lamella.__file__).parents[2]
CPP = [os.fspath(BUILD / "examples/fashion_mnist")]
PYTHON = [sys.executable, "-m", "lamella", "run", os.fspath(ROOT / "examples/fashion_mnist.py")]
STEPS = 25
WAYS = {
    "python": PYTHON,
    "python-graph": [*PYTHON, "--mode", "graph"],
    "python-window-1": [*PYTHON, "--window", "1"],
    "python-loop": [*PYTHON, "--loop"],
    "cpp-window-7": [*CPP, "--window", "7"],
    "cpp-loop": [*CPP, "--loop"],
}


def losses(command, folder):
    path = folder / "losses.txt"
    options = [
        "--steps",
        str(STEPS),
        "--output",
        os.fspath(folder),
        "--dump-losses",
        os.fspath(path),
    ]
    run = subprocess.run([*command, *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = path.read_text().splitlines()
    assert len(lines) == STEPS
    return lines


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return losses(CPP, tmp_path_factory.mktemp("cpp"))


@pytest.mark.parametrize("way", WAYS)
def test_losses_are_those_of_the_cpp_program(way, expected, tmp_path):
    assert losses(WAYS[way], tmp_path) == expected


def test_the_losses_fall(expected):
    first, last = (bytes.fromhex(line.split()[1]) for line in (expected[0], expected[-1]))
    assert last < first  # positive floats compare as their bits do
