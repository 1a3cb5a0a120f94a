"""Ctrl-C in the middle of training: it ends soon, and what was trained are whole steps."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import hashlib, signal, sys
import numpy as np
import lamella.alias
import mindspore as ms
from mindspore import Model, Tensor, nn

signal.signal(signal.SIGINT, signal.default_int_handler)
ms.set_seed(3)
rng = np.random.default_rng(1)
x = Tensor(rng.normal(size=(256, 400)).astype(np.float32))
y = Tensor(rng.integers(10, size=256).astype(np.int32))
net = nn.SequentialCell(
    nn.Dense(400, 600), nn.ReLU(), nn.Dropout(p=0.3), nn.BatchNorm1d(600), nn.Dense(600, 10)
)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Adam(net.trainable_params(), 1e-3)
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()

def state():
    digest = hashlib.sha256()
    for parameter in step.get_parameters():
        digest.update(parameter.asnumpy().tobytes())
    return f"{int(optimizer.global_step.asnumpy())} {digest.hexdigest()}"

limit = int(sys.argv[1])
try:
    for number in range(limit):
        step(x, y)
        if number == 3:
            step(x, y).asnumpy()
            print("begin", flush=True)
    raise KeyboardInterrupt
except KeyboardInterrupt:
    print(state(), flush=True)
    # And it goes on.
    assert np.isfinite(float(step(x, y).asnumpy()))
"""


def start(limit):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(limit)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_what_was_trained_is_whole(seed):
    process = start(1_000_000)
    assert process.stdout.readline().strip() == "begin"
    time.sleep(random.Random(seed).uniform(0.0, 0.2))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    steps, digest = out.split()
    # A run that makes as many steps by itself; the one that reads begins with the fifth.
    again = start(int(steps) - 1)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert out.split()[-2:] == [steps, digest]
