"""The package as an installed program sees it: commands, type stubs."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lamella
from lamella import __main__ as program

PACKAGE = Path(lamella.__file__).parent
GENERATED = [
    "lamella.mindspore.ops._functions", "lamella.mindspore.ops._primitives",
    "lamella.mindspore.mint._functions", "lamella.mindspore.mint.nn._functions",
    "lamella.mindspore.numpy._functions", "lamella._tensor_methods",
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "turns"),
    [({}, "20000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_waiting_threads_leave_the_processor_to_others_unless_told(given, turns):
    unset = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    result = subprocess.run(
        [sys.executable, "-c", "import lamella, os; print(os.environ.get('GOMP_SPINCOUNT'))"],
        capture_output=True, text=True, check=True, env=environment | given,
    )  # fmt: skip
    assert result.stdout.strip() == turns


def test_info_says_what_this_build_is(capsys):
    program.main(["info"])
    printed = capsys.readouterr().out
    assert lamella.__version__ in printed
    assert f"{len(lamella.operators())} operators" in printed


def test_unknown_commands_are_refused():
    with pytest.raises(SystemExit):
        program.main(["no-such-command"])


def test_the_module_is_a_program():
    result = subprocess.run(
        [sys.executable, "-m", "lamella", "info"], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("lamella ")


@pytest.mark.parametrize("name", GENERATED)
def test_stubs_hold_every_name_with_its_parameters(name):
    module = importlib.import_module(name)
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    declared = {node.name: node for node in stub.body if hasattr(node, "name")}
    assert set(declared) == set(module.__all__)
    for each, node in declared.items():
        if not isinstance(node, ast.FunctionDef):
            continue
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs,
                 arguments.kwarg]  # fmt: skip
        expected = list(inspect.signature(getattr(module, each)).parameters)
        # Other keywords that a function accepts are not part of what it shows.
        shown = [argument.arg for argument in named if argument is not None]
        assert shown == expected[: len(shown)] or set(shown) <= set(expected), each


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
