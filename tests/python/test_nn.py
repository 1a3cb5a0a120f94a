"""Cells, parameters, optimizers and losses in Python and C++, each side holding the other."""

import copy
import gc
import inspect
import pickle
import weakref

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, mint, nn, ops
from mindspore.common.initializer import HeNormal, Normal, One, initializer


class Block(nn.Cell):
    def __init__(self, size):
        super().__init__()
        self.dense = nn.Dense(size, size)
        self.scale = Parameter(Tensor(np.ones(size, np.float32)), name="scale")
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.dense(x)) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.SequentialCell(Block(4), Block(4))
        self.head = nn.Dense(4, 2, has_bias=False)
        self.note = "kept"

    def construct(self, x):
        return self.head(self.blocks(x))


X = Tensor(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))


def test_parameters_are_found_by_attribute_and_named_by_path():
    net = Net()
    assert [name for name, _ in net.parameters_and_names()] == [
        "blocks.0.scale", "blocks.0.dense.weight", "blocks.0.dense.bias",
        "blocks.1.scale", "blocks.1.dense.weight", "blocks.1.dense.bias", "head.weight",
    ]  # fmt: skip
    assert [p.name for p in net.trainable_params()][0] == "blocks.0.scale"
    assert isinstance(net.head.weight, Parameter)
    assert isinstance(net.head.weight, Tensor)
    assert net.head.weight is net.head.weight
    assert net.blocks[0].dense.weight.shape == (4, 4)
    assert [name for name, _ in net.cells_and_names()][:3] == ["", "blocks", "blocks.0"]
    net.head.weight.requires_grad = False
    assert len(net.trainable_params()) == 6
    assert len(net.untrainable_params()) == 1


def test_cells_compute_what_numpy_does():
    net = Net()
    y = X.asnumpy()
    for block in net.blocks:
        y = np.maximum(y @ block.dense.weight.asnumpy().T + block.dense.bias.asnumpy(), 0)
        y = y * block.scale.asnumpy()
    y = y @ net.head.weight.asnumpy().T
    assert np.allclose(net(X).asnumpy(), y, atol=1e-5)


def test_attributes_change_kind():
    net = Net()
    net.head = nn.Dense(4, 5)
    assert net(X).shape == (3, 5)
    net.head = None
    assert net.head is None
    assert "head.weight" not in [name for name, _ in net.parameters_and_names()]
    del net.note
    with pytest.raises(AttributeError, match="note"):
        net.note  # noqa: B018
    with pytest.raises(AttributeError, match="no_such"):
        net.no_such  # noqa: B018


def test_modes_reach_the_whole_tree():
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5))
    assert not net.training
    assert net.set_train() is net
    assert net[1].training
    ms.set_seed(1)
    assert (net(X).asnumpy() == 0).any()
    net.set_train(False)
    assert not net[1].training


def test_gradients_by_parameters():
    net = Net()
    weights = ParameterTuple(net.trainable_params())
    loss, gradients = ms.value_and_grad(lambda x: net(x).sum(), None, weights)(X)
    assert len(gradients) == len(weights)
    assert all(g.shape == w.shape for g, w in zip(gradients, weights, strict=True))
    expected = np.zeros((2, 4)) + net.blocks(X).asnumpy().sum(0)
    assert np.allclose(gradients[-1].asnumpy(), expected, atol=1e-5)
    by_list = ops.GradOperation(get_by_list=True)(net, weights)(X)
    assert np.allclose(by_list[-1].asnumpy(), expected, atol=1e-5)


def test_optimizers_write_the_networks_parameters():
    net = nn.Dense(4, 1, has_bias=False)
    before = net.weight.asnumpy().copy()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.5)
    gradient = Tensor(np.full((1, 4), 2, np.float32))
    optimizer((gradient,))
    assert np.allclose(net.weight.asnumpy(), before - 1)
    assert optimizer.get_lr().item() == 0.5


@pytest.mark.parametrize("kind", [nn.SGD, nn.Momentum, nn.Adam, nn.AdamWeightDecay])
def test_training_lowers_the_loss(kind):
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(4, 8, activation="relu"), nn.Dense(8, 2))
    loss_fn = nn.CrossEntropyLoss()
    arguments = {"momentum": 0.9} if kind is nn.Momentum else {}
    rate = 0.5 if kind is nn.SGD else 0.05
    optimizer = kind(net.trainable_params(), learning_rate=rate, **arguments)
    data = np.random.default_rng(1).normal(size=(64, 4)).astype(np.float32)
    labels = Tensor((data.sum(1) > 0).astype(np.int32))
    step = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    losses = []
    for _ in range(40):
        loss, gradients = step(Tensor(data), labels)
        optimizer(gradients)
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_groups_of_parameters():
    net = Net()
    head = net.head.trainable_params()
    rest = [p for p in net.trainable_params() if p.name != "head.weight"]
    optimizer = nn.Adam(
        [{"params": head, "lr": 0.5, "weight_decay": 0.1}, {"params": rest}], learning_rate=0.1
    )
    assert [round(rate.item(), 6) for rate in optimizer.get_lr()][:2] == [0.5, 0.1]


def test_an_optimizer_written_in_python():
    class Half(nn.Optimizer):
        def construct(self, gradients):
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                ops.assign_sub(parameter, gradient * self.get_lr() * 0.5)
            return True

    net = nn.Dense(2, 1, has_bias=False)
    before = net.weight.asnumpy().copy()
    Half(1.0, net.trainable_params())((Tensor(np.ones((1, 2), np.float32)),))
    assert np.allclose(net.weight.asnumpy(), before - 0.5)


def test_a_loss_written_in_python():
    class Absolute(nn.LossBase):
        def construct(self, base, target):
            return self.get_loss(ops.abs(base - target))

    assert Absolute("sum")(X, X + 1).item() == pytest.approx(12, rel=1e-5)


def test_a_cell_with_a_gradient_of_its_own():
    class Twice(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (dout * 100,)

    cell = Twice()
    assert np.allclose(cell(X).asnumpy(), X.asnumpy() * 2)
    assert (ms.grad(lambda x: cell(x).sum())(X).asnumpy() == 100).all()


def test_hooks():
    cell, seen = nn.Dense(4, 4), []
    first = cell.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 0,))
    second = cell.register_forward_hook(lambda cell, inputs, output: seen.append(output.shape))
    assert np.allclose(cell(X).asnumpy(), np.broadcast_to(cell.bias.asnumpy(), (3, 4)))
    first.remove()
    second.remove()
    cell(X)
    assert seen == [(3, 4)]


@pytest.mark.parametrize("make", [lambda: nn.Dense(4, 4), lambda: Block(4)])
def test_backward_hooks(make):
    cell, seen = make(), []
    plain = ms.grad(lambda x: (cell(x) * 2).sum())(X).asnumpy()

    def look(cell, inputs, outputs):
        seen.append((inputs[0].asnumpy(), outputs[0].asnumpy()))
        return (inputs[0] + 1,)

    first = cell.register_backward_hook(look)
    second = cell.register_backward_pre_hook(lambda cell, outputs: (outputs[0] * 10,))
    got = ms.grad(lambda x: (cell(x) * 2).sum())(X).asnumpy()
    assert np.allclose(got, plain * 10 + 1, rtol=1e-5)
    assert np.allclose(seen[0][0], plain * 10, rtol=1e-5)
    assert (seen[0][1] == 20).all()
    twin = copy.deepcopy(cell)
    first.remove()
    second.remove()
    assert np.array_equal(ms.grad(lambda x: (cell(x) * 2).sum())(X).asnumpy(), plain)
    assert np.allclose(
        ms.grad(lambda x: (twin(x) * 2).sum())(X).asnumpy(), plain * 10 + 1, rtol=1e-5
    )


ADAPTIVE = {
    nn.RMSProp: {}, nn.Adagrad: {}, nn.AdaMax: {}, nn.Lamb: {"learning_rate": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("kind", ADAPTIVE)
def test_optimizers_with_a_rate_for_each_element(kind):
    net = nn.Dense(3, 1, has_bias=False, weight_init="ones")
    rate = ADAPTIVE[kind].get("learning_rate", 0.1)
    optimizer = kind(net.trainable_params(), learning_rate=rate)
    g = np.array([[1.0, 2.0, -4.0]])
    optimizer((Tensor(g, ms.float32),))
    expected = {
        nn.RMSProp: 1 - 0.1 * g / np.sqrt(0.9 + 0.1 * g * g),
        nn.Adagrad: 1 - 0.1 * g / np.sqrt(0.1 + g * g),
        nn.AdaMax: 1 - 0.1 * np.sign(g),
        nn.Lamb: 1 - 0.1 * np.sign(g),
    }[kind]
    assert np.allclose(net.weight.asnumpy(), expected, rtol=1e-4)
    assert isinstance(copy.deepcopy(optimizer), kind)


def test_mixed_precision():
    cell = nn.Dense(4, 4).to_float(ms.float16)
    assert cell(X).dtype == ms.float16
    assert cell.weight.dtype == ms.float32


def test_copies_and_pickles():
    net = Net()
    net.set_train()
    expected = net(X).asnumpy()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.note == "kept"
        assert twin.training
        assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]
        assert np.array_equal(twin(X).asnumpy(), expected)
        twin.head.weight.set_data(ops.zeros_like(twin.head.weight))
        assert np.array_equal(net(X).asnumpy(), expected)


def test_python_subclasses_live_while_cpp_holds_them():
    outer = nn.SequentialCell()
    inner = Block(4)
    inner.own = [1, 2]
    outer.append(inner)
    del inner
    gc.collect()
    assert outer[0].own == [1, 2]
    assert type(outer[0]) is Block


def test_cycles_are_collected():
    net = Net()
    net.myself = [net]
    net.blocks[0].parent = [net]
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_parameters():
    p = Parameter(np.zeros((2, 3), np.float32), name="p")
    p += 1
    assert type(p) is Parameter
    assert (p.asnumpy() == 1).all()
    assert p.name == "p"
    assert type(p * 2) is Tensor
    p.set_data(Tensor(np.full((2, 3), 5, np.float64)))
    assert p.dtype == ms.float32
    with pytest.raises(ValueError, match="shape"):
        p.set_data(Tensor(np.zeros(4, np.float32)))
    twin = p.clone()
    twin += 1
    assert (p.asnumpy() == 5).all()
    assert pickle.loads(pickle.dumps(p)).name == "p"
    assert "requires_grad=True" in repr(p)


def test_initializers():
    ms.set_seed(2)
    assert (initializer("ones", [2, 2]).asnumpy() == 1).all()
    assert (initializer(One(), (3,)).asnumpy() == 1).all()
    assert abs(initializer(Normal(0.5), (1000,)).asnumpy().std() - 0.5) < 0.05
    assert initializer(HeNormal(), (8, 4), ms.float16).dtype == ms.float16
    weight = nn.Dense(3, 2, weight_init="zeros").weight
    assert (weight.asnumpy() == 0).all()
    assert (Tensor(shape=(2,), dtype=ms.float32, init=One()).asnumpy() == 1).all()


# What a layer is made with, and the shapes that it takes.
OF_A_DTYPE = {
    nn.Dense: ((4, 2), [(3, 4)]),
    nn.Embedding: ((3, 4), []),
    nn.Conv2d: ((2, 4, 3), [(3, 2, 4, 4)]),
    nn.Conv2dTranspose: ((2, 4, 3), [(3, 2, 4, 4)]),
    nn.BatchNorm1d: ((4,), [(3, 4)]),
    nn.BatchNorm2d: ((2,), [(3, 2, 4, 4)]),
    nn.LayerNorm: (((4,),), [(3, 4)]),
    nn.GroupNorm: ((2, 2), [(3, 2, 4, 4)]),
    nn.RNN: ((4, 2), [(3, 2, 4)]),
    nn.LSTM: ((4, 2), [(3, 2, 4)]),
    nn.GRU: ((4, 2), [(3, 2, 4)]),
    nn.RNNCell: ((4, 2), [(3, 4)]),
    nn.LSTMCell: ((4, 2), [(3, 4)]),
    nn.GRUCell: ((4, 2), [(3, 4)]),
    nn.MultiheadAttention: ((4, 2), [(3, 2, 4)] * 3),
    nn.TransformerEncoderLayer: ((4, 2, 8), [(3, 2, 4)]),
    nn.TransformerDecoderLayer: ((4, 2, 8), [(3, 2, 4)] * 2),
    mint.nn.Linear: ((4, 2), [(3, 4)]),
    mint.nn.Conv2d: ((2, 4, 3), [(3, 2, 4, 4)]),
    mint.nn.ConvTranspose2d: ((2, 4, 3), [(3, 2, 4, 4)]),
    mint.nn.Embedding: ((3, 4), []),
    mint.nn.BatchNorm2d: ((2,), [(3, 2, 4, 4)]),
    mint.nn.LayerNorm: ((4,), [(3, 4)]),
    mint.nn.GroupNorm: ((2, 2), [(3, 2, 4, 4)]),
    mint.nn.PReLU: ((), [(3, 4)]),
}


@pytest.mark.parametrize("kind", OF_A_DTYPE)
def test_layers_are_of_the_dtype_that_they_are_made_with(kind):
    sizes, shapes = OF_A_DTYPE[kind]
    for dtype in (ms.float16, ms.bfloat16, ms.float64):
        net = kind(*sizes, dtype=dtype)
        assert {p.dtype for p in net.get_parameters()} == {dtype}
        result = net(*[ops.ones(shape, dtype) for shape in shapes] or [Tensor([0, 2])])
        assert (result[0] if isinstance(result, tuple) else result).dtype == dtype
    with pytest.raises(TypeError, match=r"^\[\w+\] dtype must be float16, .*, got int32"):
        kind(*sizes, dtype=ms.int32)


def test_signatures():
    assert str(inspect.signature(nn.MSELoss)) == "(reduction='mean')"
    names = list(inspect.signature(nn.Conv2d).parameters)
    assert names[:6] == [
        "in_channels", "out_channels", "kernel_size", "stride", "pad_mode", "padding",
    ]  # fmt: skip
    assert list(inspect.signature(Parameter).parameters)[:3] == [
        "default_input", "name", "requires_grad",
    ]  # fmt: skip


def test_printing_shows_the_tree():
    text = repr(Net())
    assert text.startswith("Net(")
    assert "(head): Dense(" in text


def test_every_layer_can_be_made_and_called():
    image = Tensor(np.random.default_rng(0).normal(size=(2, 4, 8, 8)).astype(np.float32))
    layers = [
        nn.Conv2d(4, 6, 3), nn.Conv2d(4, 6, (3, 1), pad_mode="valid", has_bias=True),
        nn.Conv2d(4, 4, 3, pad_mode="pad", padding=1, group=4), nn.BatchNorm2d(4),
        nn.MaxPool2d(2, 2), nn.AvgPool2d(2, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.LayerNorm((8,)), nn.Dropout(p=0.5), nn.PReLU(4), nn.Identity(), nn.GELU(),
        nn.Softmax(), nn.LogSoftmax(1), nn.LeakyReLU(), nn.ELU(), nn.CELU(), nn.HShrink(),
        nn.SoftShrink(), nn.ReLU(), nn.ReLU6(), nn.Sigmoid(), nn.Tanh(), nn.SiLU(), nn.Mish(),
        nn.HSigmoid(), nn.HSwish(), nn.LogSigmoid(), nn.SeLU(), nn.SoftSign(), nn.Softplus(),
        nn.GroupNorm(2, 4), nn.Conv2dTranspose(4, 6, 3, has_bias=True),
        nn.Tanhshrink(), nn.Pad(((0, 0), (0, 0), (1, 1), (1, 1))),
    ]  # fmt: skip
    for layer in layers:
        result = layer(image)
        assert np.isfinite(result.asnumpy()).all(), layer
        assert type(copy.deepcopy(layer)) is type(layer)
    assert nn.Embedding(10, 3)(Tensor([[1, 2]])).shape == (1, 2, 3)
    assert nn.Conv2d(4, 6, 3)(image).shape == (2, 6, 8, 8)
    assert nn.L1Loss()(X, X).item() == 0
    assert nn.SmoothL1Loss()(X, X).shape == (3, 4)
    assert nn.RMSELoss()(X, X + 2).item() == pytest.approx(2)
    assert nn.HuberLoss(delta=0.5)(X, X + 2).item() == pytest.approx(0.5 * (2 - 0.25))
    assert nn.MAELoss()(X, X + 2).item() == pytest.approx(2)
    assert nn.BCELoss()(ops.sigmoid(X), ops.ones_like(X)).item() > 0
    assert nn.NLLLoss()(ops.log_softmax(X), Tensor([0, 1, 2])).item() > 0
    assert nn.BCEWithLogitsLoss()(X, ops.zeros_like(X)).item() > 0


def test_batch_norm_keeps_its_statistics_in_training():
    cell = nn.BatchNorm1d(4, momentum=0.5).set_train()
    cell(X)
    assert np.allclose(cell.moving_mean.asnumpy(), X.asnumpy().mean(0) / 2, atol=1e-6)
    assert [p.name for p in cell.get_parameters()] == [
        "moving_mean", "moving_variance", "gamma", "beta",
    ]  # fmt: skip
