"""lamella explain, and the context behind it."""

import os
import subprocess
import sys

import lamella.mindspore as ms
import numpy as np
import pytest
from lamella.explanation import Explanation
from lamella.mindspore import Tensor, nn, ops

PROGRAM = """
import sys
import numpy as np
from mindspore import Tensor, nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone = nn.SequentialCell(nn.Dense(8, 4), nn.ReLU())
        self.head = nn.Dense(4, 2)

    def construct(self, x):
        return self.head(self.backbone(x))

net = Net()
for _ in range(int(sys.argv[1])):
    net(Tensor(np.ones((3, 8), np.float32))).asnumpy()
if len(sys.argv) > 2:
    raise RuntimeError(sys.argv[2])
"""


def run(tmp_path, *arguments):
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    before = [argument for argument in arguments if argument.startswith("--layer")]
    after = [argument for argument in arguments if not argument.startswith("--layer")]
    return subprocess.run(
        [sys.executable, "-m", "lamella", "explain", *before, os.fspath(script), *after],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_command_shows_the_tiles_of_a_layer(tmp_path):
    shown = run(tmp_path, "--layer=backbone", "3")
    assert shown.returncode == 0, shown.stderr
    assert "backbone.0, forward: dense" in shown.stdout
    assert "3 runs" in shown.stdout
    assert "matrix product of float32 [3,8] by [8,4]" in shown.stdout
    assert "[3,4] by [4,2]" not in shown.stdout


def test_without_a_layer_it_shows_all(tmp_path):
    shown = run(tmp_path, "1")
    assert "[3,8] by [8,4]" in shown.stdout
    assert "[3,4] by [4,2]" in shown.stdout


def test_a_layer_that_does_not_run(tmp_path):
    assert run(tmp_path, "--layer=neck", "1").stdout == "Nothing ran.\n"


def test_what_ran_is_shown_of_a_program_that_fails(tmp_path):
    shown = run(tmp_path, "1", "out of data")
    assert shown.returncode != 0
    assert "RuntimeError: out of data" in shown.stderr
    assert "[3,8] by [8,4]" in shown.stdout


def test_launches_hold_the_figures_of_a_training_step():
    net = nn.Dense(16, 8)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
    x, y = Tensor(np.ones((4, 16), np.float32)), Tensor(np.ones((4, 8), np.float32))
    with Explanation() as explanation:
        for _ in range(3):
            step(x, y)
    phases = {launch["phase"] for launch in explanation.launches()}
    assert phases >= {"forward", "backward", "update"}
    for launch in explanation.launches():
        assert launch["runs"] >= 1
        assert launch["seconds"] >= launch["seconds_a_run"] > 0
        assert launch["bytes"] > 0


def test_a_profiler_and_an_explanation_exclude_each_other(tmp_path):
    profiler = ms.Profiler(output_path=os.fspath(tmp_path))
    try:
        with pytest.raises(ValueError, match="a profiler or another explanation is running"):
            Explanation().__enter__()
    finally:
        profiler.stop()
    with Explanation() as explanation:
        ops.exp(Tensor([1.0])).asnumpy()
    assert "exp" in str(explanation)
