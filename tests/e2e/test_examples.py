"""The examples beside the main one learn something from real data."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import lamella

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(lamella.__file__).parents[2]
CPP = [os.fspath(BUILD / "examples/char_transformer")]
PYTHON = [sys.executable, "-m", "lamella", "run", os.fspath(ROOT / "examples/char_transformer.py")]


def result_of(*command):
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def text():
    return subprocess.check_output([ROOT / "tools/example_text"], text=True).strip()


def losses(program, text, folder, steps, *options):
    path = folder / "losses.txt"
    result = result_of(
        *program, "--data", text, "--steps", str(steps), "--batch-size", "16", "--write", "20",
        "--output", os.fspath(folder), "--dump-losses", os.fspath(path), *options,
    )  # fmt: skip
    assert result["steps"] == steps
    return path.read_text().splitlines(), result["train_loss"]


def test_letters_are_learned_alike_in_both_languages(text, tmp_path):
    (tmp_path / "cpp").mkdir()
    expected, loss = losses(CPP, text, tmp_path / "cpp", 60)
    assert loss < 3.3, "the letters' frequencies alone give about 3.0, no knowledge 4.3"
    (tmp_path / "python").mkdir()
    assert losses(PYTHON, text, tmp_path / "python", 60)[0] == expected


@pytest.mark.parametrize("program", [CPP, PYTHON], ids=["cpp", "python"])
def test_a_stopped_run_goes_on_with_the_same_bits(program, text, tmp_path):
    # The rate falls over all steps, so the run that stops must know how many there are.
    whole, _ = losses(program, text, tmp_path, 24, "--save-steps", "7")
    checkpoints = sorted(
        (tmp_path / "checkpoints").iterdir(), key=lambda path: path.stat().st_mtime
    )
    checkpoints[-1].unlink()  # as if it had been killed after step 21
    (tmp_path / "losses.txt").write_text("\n".join(whole[:22]) + "\n")
    again, _ = losses(program, text, tmp_path, 24, "--save-steps", "7", "--resume")
    assert again == whole


def test_the_forecaster_beats_the_seasonal_naive_forecast():
    program = ROOT / "examples/forecaster.py"
    result = result_of(sys.executable, "-m", "lamella", "run", program, "--epochs", "30")
    assert result["rmse"] < 0.85 * result["seasonal_naive_rmse"]
