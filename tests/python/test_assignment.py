"""Parts of cells that are replaced or taken away: the layer computes with what is there now."""

import copy
import inspect
import pickle

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

RANDOM = np.random.default_rng(0)
ROWS = Tensor(RANDOM.normal(size=(4, 3)).astype(np.float32))
IMAGES = Tensor(RANDOM.normal(size=(2, 3, 4, 4)).astype(np.float32))
INDICES = Tensor([0, 4, 2])
SERIES = Tensor(RANDOM.normal(size=(5, 4, 3)).astype(np.float32))
HIDDEN = Tensor(RANDOM.normal(size=(4, 2)).astype(np.float32))

# Every layer that owns parameters, and what it is called with.
LAYERS = {
    "Dense": (lambda: nn.Dense(3, 2, activation="relu"), ROWS),
    "Embedding": (lambda: nn.Embedding(5, 3), INDICES),
    "Conv2d": (lambda: nn.Conv2d(3, 2, 3, has_bias=True), IMAGES),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), ROWS),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3).set_train(), IMAGES),
    "LayerNorm": (lambda: nn.LayerNorm((3,)), ROWS),
    "GroupNorm": (lambda: nn.GroupNorm(1, 3), IMAGES),
    "Conv2dTranspose": (lambda: nn.Conv2dTranspose(3, 2, 3, has_bias=True), IMAGES),
    "PReLU": (lambda: nn.PReLU(3), ROWS),
    "RNN": (lambda: nn.RNN(3, 2), SERIES),
    "LSTM": (lambda: nn.LSTM(3, 2), SERIES),
    "GRU": (lambda: nn.GRU(3, 2), SERIES),
    "RNNCell": (lambda: nn.RNNCell(3, 2), (ROWS, HIDDEN)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 2), (ROWS, (HIDDEN, HIDDEN))),
    "GRUCell": (lambda: nn.GRUCell(3, 2), (ROWS, HIDDEN)),
}


def first(cell, x):
    """The first tensor that a layer gives."""
    result = cell(*x) if isinstance(x, tuple) else cell(x)
    while isinstance(result, tuple):
        result = result[0]
    return result


def owners():
    """The public layers that have a parameter once they are made."""
    for name in dir(nn):
        kind = getattr(nn, name)
        if (
            isinstance(kind, type)
            and issubclass(kind, nn.Cell)
            and inspect.isfunction(kind.__init__)
        ):
            yield name, kind


def test_the_table_holds_every_layer_with_parameters():
    sizes = {"num_features": 3, "in_channels": 3, "out_channels": 3, "kernel_size": 3,
             "vocab_size": 3, "embedding_size": 3, "normalized_shape": (3,), "num_groups": 1,
             "num_channels": 3, "input_size": 3, "hidden_size": 2}  # fmt: skip
    made = set()
    for name, kind in owners():
        parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
        needed = {
            p.name: sizes.get(p.name)
            for p in parameters
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        }
        if None not in needed.values() and kind(**needed)._own_parameters():
            made.add(name)
    assert made == set(LAYERS)


def other_value(parameter):
    return RANDOM.uniform(0.5, 1.5, parameter.shape).astype(np.float32)


@pytest.mark.parametrize("name", LAYERS)
def test_a_replaced_parameter_computes_as_a_written_one(name):
    make, x = LAYERS[name]
    written, replaced = make(), make()
    for each, parameter in written._own_parameters():
        value = other_value(parameter)
        parameter.set_data(Tensor(value))
        other = Parameter(Tensor(value), requires_grad=parameter.requires_grad)
        setattr(replaced, each, other)
        assert getattr(replaced, each) is other
        assert other.name == each
    assert np.array_equal(first(replaced, x).asnumpy(), first(written, x).asnumpy())
    weights = replaced.trainable_params()
    gradients = [
        ms.grad(lambda cell=cell: first(cell, x).sum(), None, cell.trainable_params())()
        for cell in (written, replaced)
    ]
    assert len(gradients[0]) == len(weights)
    for expected, got in zip(*gradients, strict=True):
        assert np.array_equal(got.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("way", ["None", "del"])
def test_a_parameter_taken_away_is_missed_by_name(name, way):
    make, x = LAYERS[name]
    for each, _ in make()._own_parameters():
        cell = make()
        if way == "None":
            setattr(cell, each, None)
            assert getattr(cell, each) is None
        else:
            delattr(cell, each)
            assert not hasattr(cell, each)
        assert each not in [n for n, _ in cell.parameters_and_names()]
        if each.startswith("bias"):  # what a layer computes without
            assert each != "bias" or not cell.has_bias
            first(cell, x).asnumpy()
        else:
            with pytest.raises(ValueError, match=each):
                first(cell, x)


@pytest.mark.parametrize("name", LAYERS)
def test_insert_param_to_cell_replaces(name):
    make, x = LAYERS[name]
    cell, other = make(), make()
    for each, parameter in other._own_parameters():
        parameter.set_data(Tensor(other_value(parameter)))
        cell.insert_param_to_cell(each, parameter)
    assert np.array_equal(first(cell, x).asnumpy(), first(other, x).asnumpy())


class Tied(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.decoder = nn.Dense(3, 5, has_bias=False)
        self.decoder.weight = self.embedding.embedding_table

    def construct(self, x):
        return self.decoder(self.embedding(x))


def test_tied_weights_are_one_parameter_with_one_gradient():
    net = nn.SequentialCell(Tied())
    parameters = net.trainable_params()
    assert [p.name for p in parameters] == ["0.embedding.embedding_table"]
    table = parameters[0]
    assert net[0].decoder.weight is table
    got = ms.grad(lambda: ops.square(net(INDICES)).sum(), None, parameters)()
    apart = ms.grad(
        lambda rows, weight: ops.square(ops.dense(ops.gather(rows, INDICES, 0), weight)).sum(),
        (0, 1),
    )(Tensor(table.asnumpy().copy()), Tensor(table.asnumpy().copy()))
    expected = apart[0].asnumpy() + apart[1].asnumpy()
    assert np.allclose(got[0].asnumpy(), expected, rtol=1e-5, atol=1e-9)
    before = table.asnumpy().copy()
    nn.SGD(parameters, 0.5)(got)
    assert np.allclose(table.asnumpy(), before - 0.5 * expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_keep_what_was_replaced(way):
    net = nn.SequentialCell(Tied(), nn.Dense(5, 2, activation="relu"))
    net[1].bias = None
    net[1].activation = nn.Tanh()
    net[1].weight = Parameter(Tensor(np.ones((7, 5), np.float32)), name="mine")
    expected = net(INDICES).asnumpy()
    ms.set_seed(3)
    twin = way(net)
    drawn = ops.randn(2).asnumpy()
    ms.set_seed(3)
    assert np.array_equal(drawn, ops.randn(2).asnumpy()), "a copy moved the generator"
    assert twin[0].decoder.weight is twin[0].embedding.embedding_table
    assert twin[0].decoder.weight is not net[0].decoder.weight
    assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]
    assert np.array_equal(twin(INDICES).asnumpy(), expected)


def test_copies_of_optimizers_follow_their_parameters():
    net = nn.Dense(3, 1)
    optimizer = nn.Adam((p for p in net.trainable_params()), 0.1)
    gradients = tuple(ops.ones_like(p) for p in net.trainable_params())
    optimizer(gradients)
    twin_net, twin = copy.deepcopy((net, optimizer))
    assert all(a is b for a, b in zip(twin.parameters, twin_net.trainable_params(), strict=True))
    optimizer(gradients)
    twin(gradients)
    assert np.array_equal(net.weight.asnumpy(), twin_net.weight.asnumpy())
    assert twin.global_step.asnumpy() == 2


def test_a_subcell_replaced_keeps_its_place_and_is_named_by_its_path():
    net = nn.SequentialCell(Tied(), nn.Dense(5, 2))
    net[0].decoder = nn.Dense(3, 5)
    net[0].extra = Parameter(Tensor([1.0]))
    net[0].embedding.embedding_table = Parameter(Tensor(np.ones((5, 3), np.float32)))
    assert [p.name for p in net.get_parameters()] == [
        "0.extra", "0.embedding.embedding_table", "0.decoder.weight", "0.decoder.bias",
        "1.weight", "1.bias",
    ]  # fmt: skip
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    assert len(optimizer.parameters) == 6


def test_training_steps_use_the_network_and_optimizer_assigned():
    def made():
        return nn.Dense(1, 1, weight_init="ones", has_bias=False)

    first, second = made(), made()
    step = nn.TrainOneStepCell(first, nn.SGD(first.trainable_params(), 1.0))
    step.network = second
    step.optimizer = nn.SGD(second.trainable_params(), 0.25)
    step(Tensor([[1.0]]))
    assert first.weight.asnumpy() == 1
    assert second.weight.asnumpy() == 0.75


def test_an_optimizers_rate_can_be_replaced():
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    optimizer = nn.SGD(net.trainable_params(), 1.0)
    optimizer.learning_rate = Parameter(Tensor(0.25, ms.float32), name="learning_rate")
    optimizer((Tensor([[1.0]]),))
    assert net.weight.asnumpy() == 0.75


def test_modes_of_parts_survive_a_copy():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.BatchNorm1d(2)).set_train()
    net[1].set_train(False)
    twin = copy.deepcopy(net)
    assert twin.training
    assert twin[0].training
    assert not twin[1].training
