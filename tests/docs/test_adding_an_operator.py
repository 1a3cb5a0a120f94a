"""The declaration in docs/adding_an_operator.md compiles and passes what every operator passes."""

import os
import pathlib
import re
import subprocess
import sys

import lamella

LIBRARY = pathlib.Path(lamella.__file__).parents[2] / "tests/docs/libhow_to_operator.so"
CONFORMANCE = pathlib.Path(__file__).parents[1] / "conformance"
# A library of operators is loaded before the package, which asks for all that there are.
PROGRAM = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pytest
sys.exit(pytest.main([sys.argv[2], "-q", "-p", "no:cacheprovider", "-k", "squareplus"]))
"""


def test_the_operator_of_the_page_conforms():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.fspath(LIBRARY), os.fspath(CONFORMANCE)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # Its values in four dtypes, its gradients, and batches of both.
    assert re.search(r"\b8 passed", run.stdout), run.stdout
