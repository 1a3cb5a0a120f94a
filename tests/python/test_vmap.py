"""vmap from Python: nested arguments, Cells, gradients, compiled functions, errors."""

import collections

import numpy as np
import pytest
from lamella.mindspore import nn, ops

import lamella
from lamella import Tensor
from lamella import mindspore as ms


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_axes_of_arguments_and_results():
    x, y = numbers(4, 3), numbers(3, seed=1)
    along_columns = ms.vmap(lambda a, b: (a * 2 + b, b), in_axes=(1, 0), out_axes=(1, 0))
    both, same = along_columns(Tensor(x), Tensor(y))
    np.testing.assert_array_equal(both.asnumpy(), x * 2 + y)
    np.testing.assert_array_equal(same.asnumpy(), y)
    shared = ops.vmap(lambda a, b: ops.matmul(b, a), in_axes=(0, None), out_axes=-1)
    z = numbers(5, 3, seed=2)
    np.testing.assert_allclose(shared(Tensor(x), Tensor(z)).asnumpy(), z @ x.T, rtol=1e-5)


def test_structures_go_in_and_out():
    pair = collections.namedtuple("Pair", "left right")
    x, y, z = (Tensor(numbers(2, 3, seed=seed)) for seed in range(3))

    def function(a, b, *, factor):
        return {"sum": a["x"] + b.left * factor, "none": None, "pair": (b.right, a["number"])}

    batched = ms.vmap(function, in_axes=({"x": 0, "number": None}, (0, 1)), out_axes=0)
    result = batched({"x": x, "number": 7}, pair(y, ops.transpose(z, (1, 0))), factor=2)
    np.testing.assert_array_equal(result["sum"].asnumpy(), x.asnumpy() + 2 * y.asnumpy())
    assert result["none"] is None
    np.testing.assert_array_equal(result["pair"][0].asnumpy(), z.asnumpy())
    np.testing.assert_array_equal(result["pair"][1].asnumpy(), [7, 7])


def test_a_result_that_is_the_same_for_all_may_stay_one():
    w = Tensor(numbers(3))
    result = ms.vmap(lambda x: (x + w, w * 2), out_axes=(0, None))(Tensor(numbers(4, 3, seed=1)))
    assert result[0].shape == (4, 3)
    np.testing.assert_array_equal(result[1].asnumpy(), w.asnumpy() * 2)


class Network(nn.Cell):
    """A convolution, a normalisation and two dense layers for one image [2, 6, 6]."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, has_bias=True)
        self.norm = nn.LayerNorm((4,))
        self.dense = nn.Dense(4, 3)

    def construct(self, image):
        features = ops.relu(self.conv(image.expand_dims(0))).mean((2, 3))
        return self.dense(self.norm(features)).squeeze(0)


def loss_of(net):
    return lambda image, label: ops.cross_entropy(net(image).expand_dims(0), label.expand_dims(0))


def images_and_labels(count):
    labels = np.random.default_rng(3).integers(0, 3, count)
    return Tensor(numbers(count, 2, 6, 6)), Tensor(labels.astype(np.int32))


def test_gradients_of_every_example_of_a_network():
    ms.set_seed(1)
    net = Network()
    images, labels = images_and_labels(5)
    weights = net.trainable_params()
    gradients = ms.grad(loss_of(net), grad_position=None, weights=weights)
    each = ms.vmap(gradients)(images, labels)
    assert len(each) == len(weights)
    for index in range(5):
        alone = gradients(images[index], labels[index])
        for batch, one in zip(each, alone, strict=True):
            np.testing.assert_allclose(batch[index].asnumpy(), one.asnumpy(), rtol=2e-4, atol=1e-5)
    # The gradient of the batch's sum is the sum of the gradients.
    total = ms.grad(
        lambda x, y: ms.vmap(loss_of(net))(x, y).sum(), grad_position=None, weights=weights
    )(images, labels)
    for batch, one in zip(each, total, strict=True):
        np.testing.assert_allclose(batch.asnumpy().sum(0), one.asnumpy(), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_inside_of_cells_in_both_modes(mode):
    ms.set_context(mode=mode)
    try:

        class Outer(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net = Network()

            def construct(self, images):
                return ms.vmap(self.net)(images)

        ms.set_seed(2)
        net = Outer()
        for count in (3, 5, 5):
            images, _ = images_and_labels(count)
            expected = np.stack([net.net(images[i]).asnumpy() for i in range(count)])
            np.testing.assert_allclose(net(images).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_under_jit_and_of_jit():
    x, y = Tensor(numbers(3, 4)), Tensor(numbers(3, 4, seed=1))
    function = ms.jit(lambda a, b: ops.tanh(a) * b.sum())
    expected = np.tanh(x.asnumpy()) * y.asnumpy().sum(1, keepdims=True)
    for _ in range(3):
        np.testing.assert_allclose(ms.vmap(function)(x, y).asnumpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(ms.jit(ms.vmap(function))(x, y).asnumpy(), expected, rtol=1e-5)


def test_a_jacobian_by_vmap_of_vjp():
    x = Tensor(numbers(3))
    rows = ms.vmap(lambda direction: ms.vjp(lambda x: ops.sin(x) * x, x)[1](direction))
    jacobian = rows(Tensor(np.eye(3, dtype=np.float32))).asnumpy()
    slope = np.sin(x.asnumpy()) + x.asnumpy() * np.cos(x.asnumpy())
    np.testing.assert_allclose(jacobian, np.diag(slope), rtol=1e-5)


def test_nested():
    x, y = numbers(3, 5), numbers(4, 5, seed=1)
    outer = ms.vmap(ms.vmap(lambda a, b: (a * b).sum(), in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(outer(Tensor(x), Tensor(y)).asnumpy(), x @ y.T, rtol=1e-4, atol=1e-5)


def test_positions_that_differ_from_example_to_example():
    x = numbers(3, 6, 2)
    places = np.array([[0, 5], [1, 1], [3, 2]], np.int64)
    picked = ms.vmap(lambda a, i: a[i])(Tensor(x), Tensor(places)).asnumpy()
    np.testing.assert_array_equal(picked, np.stack([a[i] for a, i in zip(x, places, strict=True)]))

    def written(a, i):
        a = a + 0
        a[i] = 9
        return a

    expected = x.copy()
    for row, i in zip(expected, places, strict=True):
        row[i] = 9
    np.testing.assert_array_equal(ms.vmap(written)(Tensor(x), Tensor(places)).asnumpy(), expected)
    with pytest.raises(IndexError, match="out of range for axis 0 of size 6"):
        ms.vmap(lambda a, i: a[i])(Tensor(x), Tensor(places + 2)).asnumpy()


def test_draws_differ_from_example_to_example():
    ms.set_seed(4)
    drop = nn.Dropout(p=0.5)
    drop.set_train()
    rows = ms.vmap(drop)(Tensor(np.ones((3, 64), np.float32))).asnumpy()
    assert set(np.unique(rows)) == {0, 2}
    assert len({row.tobytes() for row in rows}) == 3


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: ms.vmap(lambda a: a, in_axes=(0, 0))(x), ValueError, "in_axes has 2 axes"),
        (lambda x: ms.vmap(lambda a: a, in_axes=((0, 0),))(x), ValueError, r"arguments\[0\]"),
        (lambda x: ms.vmap(lambda a: a, in_axes=3)(x), ValueError, "not one of the 2 axes"),
        (lambda x: ms.vmap(lambda a: a, in_axes=None)(x), ValueError, "in_axes is None"),
        (lambda x: ms.vmap(lambda a: a, 0, (0, 0))(x), ValueError, "which has one tensor"),
        (lambda x: ms.vmap(lambda a: a, (0, (0, 0)))(x, x), ValueError, "which has one tensor"),
        (lambda x: ms.vmap(lambda: 1)(), ValueError, "must be a tensor .* got 0 arguments"),
        (lambda x: ms.vmap(lambda a: a, in_axes=(None,))(x), ValueError, "at least one"),
        (lambda x: ms.vmap(lambda a: a, in_axes="0")(x), TypeError, "in_axes takes ints"),
        (lambda x: ms.vmap(lambda a: a, out_axes=(0, 0))(x), ValueError, "out_axes has 2 axes"),
        (lambda x: ms.vmap(lambda a: a, out_axes=None)(x), ValueError, "differs from example"),
        (lambda x: ms.vmap(lambda a: "text")(x), TypeError, "got str"),
        (lambda x: ms.vmap(lambda a, b: a)(x, x[:2]), ValueError, "tensor 1 has 2 examples"),
        (lambda x: ms.vmap(lambda a: a.asnumpy())(x), ValueError, "no elements that can be read"),
        (lambda x: ms.vmap(lambda a: a if a.sum() > 0 else -a)(x), ValueError, "can be read"),
        (lambda x: ms.vmap(lambda a: a[a > 0])(x), ValueError, "can be read"),
        (lambda x: ms.vmap(3), TypeError, "must be a function, a Cell"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(Tensor(numbers(3, 2)))


def test_an_ensemble_of_cells():
    ms.set_seed(6)
    cells = nn.CellList([nn.Dense(3, 2) for _ in range(4)])
    x = Tensor(numbers(4, 5, 3))
    expected = np.stack([cell(x[i]).asnumpy() for i, cell in enumerate(cells)], 1)
    np.testing.assert_array_equal(ms.vmap(cells, out_axes=1)(x).asnumpy(), expected)
    shared = ms.vmap(cells, in_axes=None)(x[0]).asnumpy()
    np.testing.assert_array_equal(shared, np.stack([cell(x[0]).asnumpy() for cell in cells]))
    with pytest.raises(ValueError, match="one example for each of the 4 cells"):
        ms.vmap(cells)(x[:3])
    with pytest.raises(TypeError, match="cells of one class"):
        ms.vmap(nn.CellList([nn.Dense(3, 2), nn.ReLU()]))


@pytest.mark.parametrize("name", ["lstm", "attention", "batch_norm", "embedding"])
def test_layers_for_every_example(name):
    ms.set_seed(7)
    x = Tensor(numbers(3, 2, 4, 8))
    if name == "lstm":
        layer = nn.LSTM(8, 5, batch_first=True)
        function = lambda e: layer(e)[0]  # noqa: E731
    elif name == "attention":
        layer = nn.MultiheadAttention(8, 2, batch_first=True)
        function = lambda e: layer(e, e, e)[0]  # noqa: E731
    elif name == "batch_norm":
        layer = nn.BatchNorm1d(8).set_train(False)
        function = lambda e: layer(e.reshape((8, 8)))  # noqa: E731
    else:
        layer = nn.Embedding(9, 4)
        x = Tensor(np.random.default_rng(1).integers(0, 9, (3, 2, 4)).astype(np.int32))
        function = layer
    batch = ms.vmap(function)(x).asnumpy()
    expected = np.stack([function(x[i]).asnumpy() for i in range(3)])
    np.testing.assert_allclose(batch, expected, rtol=1e-4, atol=1e-5)
    weights = layer.trainable_params()
    gradient = ms.grad(lambda e: (function(e) ** 2).sum(), grad_position=None, weights=weights)
    each = ms.vmap(gradient)(x)
    for index in range(3):
        for all_of_them, alone in zip(each, gradient(x[index]), strict=True):
            np.testing.assert_allclose(
                all_of_them[index].asnumpy(), alone.asnumpy(), rtol=1e-3, atol=1e-4
            )


def test_one_kernel_for_all_examples():
    w = Tensor(numbers(8, 8))
    batched = ms.vmap(lambda a: ops.tanh(ops.matmul(a, w)) + 1)

    def launches(count):
        x = Tensor(numbers(count, 8))
        batched(x).asnumpy()
        before = lamella.counters()["launches"]
        batched(x).asnumpy()
        return lamella.counters()["launches"] - before

    assert launches(200) == launches(3) <= 3  # one an operation even in windows of one
