"""lamella explain, and the context behind it."""

import os
import subprocess
import sys
import threading

import lamella.mindspore as ms
import numpy as np
import pytest
from lamella.explanation import Explanation
from lamella.mindspore import Tensor, nn, ops, runtime

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
    before = [argument for argument in arguments if argument.startswith("--")]
    after = [argument for argument in arguments if not argument.startswith("--")]
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
    phases = {phase for launch in explanation.launches() for phase in launch["phases"]}
    assert phases >= {"forward", "backward", "update"}
    for launch in explanation.launches():
        assert launch["runs"] >= 1
        assert launch["seconds"] >= launch["seconds_a_run"] > 0
        assert launch["bytes"] > 0


def test_layers_that_share_a_compiled_graph_are_told_apart():
    net = nn.SequentialCell(nn.Dense(8, 8), nn.Dense(8, 8))
    x = Tensor(np.ones((4, 8), np.float32))
    with Explanation() as explanation:
        for _ in range(3):
            net[0](x).asnumpy()
            net[1](x).asnumpy()
    dense = [launch for launch in explanation.launches() if launch["operations"] == ["dense"]]
    assert sorted((launch["layers"], launch["runs"]) for launch in dense) == [
        (["0"], 3),
        (["1"], 3),
    ]


def test_every_size_is_a_launch_of_its_own():
    net = nn.Dense(8, 8)
    with Explanation() as explanation:
        for size in range(1, 81):
            net(Tensor(np.ones((size, 8), np.float32))).asnumpy()
    dense = [launch for launch in explanation.launches() if launch["operations"] == ["dense"]]
    assert len(dense) == 80
    assert all(launch["runs"] == 1 for launch in dense)


def test_other_extents_of_one_program_are_other_launches():
    with Explanation() as explanation:
        for shape in ((4, 600), (600, 4)):
            for _ in range(3):
                ops.softmax(Tensor(np.ones(shape, np.float32)), -1).asnumpy()
    assert [launch["runs"] for launch in explanation.launches()] == [3, 3]


def test_the_programs_own_error_leaves_the_context():
    def run():
        lost = []
        with Explanation():
            lost.append(ops.gather(Tensor(np.ones((3, 4), np.float32)), Tensor(np.array([77])), 0))
            raise KeyError("mine")

    with pytest.warns(UserWarning, match="what was pending failed"):  # noqa: SIM117
        with pytest.raises(KeyError, match="mine"):
            run()


def test_an_explanation_is_not_entered_twice():
    explanation = Explanation()
    with explanation:
        with pytest.raises(ValueError, match="another explanation is running"):
            explanation.__enter__()
        ops.tanh(Tensor([1.0])).asnumpy()
    assert len(explanation.launches()) == 1


def test_an_explanation_may_end_while_another_thread_computes():
    stop = threading.Event()

    def compute():
        x = Tensor(np.ones((64, 64), np.float32))
        while not stop.is_set():
            ops.exp(ops.matmul(x, x) * 0.01).asnumpy()

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        for _ in range(50):
            with Explanation() as explanation:
                ops.tanh(Tensor([1.0])).asnumpy()
            assert any("tanh" in launch["operations"] for launch in explanation.launches())
            del explanation
    finally:
        stop.set()
        thread.join()


def test_measuring_the_machine_leaves_the_statistics_of_memory_alone():
    runtime.reset_peak_memory_stats()
    with Explanation() as explanation:
        ops.exp(Tensor([1.0])).asnumpy()
    str(explanation)
    assert runtime.max_memory_allocated() < 1 << 24


def test_the_number_of_launches_is_checked_before_the_program_runs(tmp_path):
    shown = run(tmp_path, "--layer=backbone", "--count=0", "3")
    assert shown.returncode == 2
    assert "--count: must be at least 1, got 0" in shown.stderr


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
