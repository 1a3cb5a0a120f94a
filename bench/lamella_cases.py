"""The cases of the benchmarks in Lamella's Python interface: dynamic mode, or with --jit."""

import pathlib
import sys

import lamella.mindspore as ms
import numpy as np
from lamella.mindspore import nn, ops

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from measure import Call, main

jit = ms.jit if "--jit" in sys.argv else lambda function: function


def randn(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def add_one_element() -> Call:
    a, b = randn(1), randn(1)
    return lambda: a + b


def ten_operations(x, y):
    for _ in range(5):
        x = ops.tanh(x * y)
    return x


def chain_of_10() -> Call:
    x, y = randn(64), randn(64)
    chain = jit(ten_operations)
    return lambda: chain(x, y).asnumpy()


def chain_of_10_with_gradient() -> Call:
    x, y = randn(64), randn(64)
    gradient = jit(ms.grad(lambda x, y: ten_operations(x, y).sum()))
    return lambda: gradient(x, y).asnumpy()


def lenet_step() -> Call:
    network = nn.SequentialCell(
        *(nn.Conv2d(1, 6, 5, pad_mode="same", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU()),
        nn.Dense(84, 10),
    )
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(network.trainable_params(), 1e-3)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, loss), optimizer)
    step.set_train()
    x = randn(64, 1, 28, 28)
    labels = ms.Tensor(np.random.default_rng(0).integers(10, size=64, dtype=np.int32))
    return lambda: step(x, labels).asnumpy()


CASES = {
    "add_one_element": add_one_element,
    "chain_of_10": chain_of_10,
    "chain_of_10_with_gradient": chain_of_10_with_gradient,
    "lenet_step": lenet_step,
}
if "--jit" in sys.argv:
    del CASES["add_one_element"]

main(CASES, [argument for argument in sys.argv[1:] if argument != "--jit"])
