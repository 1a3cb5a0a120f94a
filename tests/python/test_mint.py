"""mindspore.mint.nn and mindspore.mint.optim: layers and steps against NumPy in float64."""

import copy
import inspect

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(4, 6)).astype(np.float32)
IMAGES = RANDOM.normal(size=(2, 4, 6, 6)).astype(np.float32)


def normalised(x, axes, eps=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


LAYERS = {
    "Linear": (lambda: mint.nn.Linear(6, 3), ROWS,
               lambda x, p: x @ p["weight"].T + p["bias"]),
    "BatchNorm1d": (lambda: mint.nn.BatchNorm1d(6).set_train(), ROWS,
                    lambda x, p: normalised(x, 0)),
    "BatchNorm2d": (lambda: mint.nn.BatchNorm2d(4).set_train(), IMAGES,
                    lambda x, p: normalised(x, (0, 2, 3))),
    "LayerNorm": (lambda: mint.nn.LayerNorm(6), ROWS, lambda x, p: normalised(x, -1)),
    "GroupNorm": (lambda: mint.nn.GroupNorm(4, 4), IMAGES, lambda x, p: normalised(x, (2, 3))),
    "PReLU": (lambda: mint.nn.PReLU(), ROWS, lambda x, p: np.where(x > 0, x, 0.25 * x)),
    "ReLU6": (lambda: mint.nn.ReLU6(), ROWS, lambda x, p: x.clip(0, 6)),
    "Softmax": (lambda: mint.nn.Softmax(dim=1), ROWS,
                lambda x, p: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "Hardtanh": (lambda: mint.nn.Hardtanh(-0.5, 0.5), ROWS, lambda x, p: x.clip(-0.5, 0.5)),
    "Threshold": (lambda: mint.nn.Threshold(0.1, 7.0), ROWS,
                  lambda x, p: np.where(x > 0.1, x, 7)),
    "Flatten": (lambda: mint.nn.Flatten(), IMAGES, lambda x, p: x.reshape(2, -1)),
    "MaxPool2d": (lambda: mint.nn.MaxPool2d(2), IMAGES,
                  lambda x, p: x.reshape(2, 4, 3, 2, 3, 2).max((3, 5))),
    "AvgPool2d": (lambda: mint.nn.AvgPool2d(2), IMAGES,
                  lambda x, p: x.reshape(2, 4, 3, 2, 3, 2).mean((3, 5))),
    "AdaptiveAvgPool2d": (lambda: mint.nn.AdaptiveAvgPool2d(1), IMAGES,
                          lambda x, p: x.mean((2, 3), keepdims=True)),
    "ZeroPad2d": (lambda: mint.nn.ZeroPad2d((1, 2, 0, 1)), IMAGES,
                  lambda x, p: np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 2)))),
    "ReflectionPad1d": (lambda: mint.nn.ReflectionPad1d(2), ROWS,
                        lambda x, p: np.pad(x, ((0, 0), (2, 2)), "reflect")),
    "ConstantPad2d": (lambda: mint.nn.ConstantPad2d(1, 3.0), IMAGES,
                      lambda x, p: np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)),
                                          constant_values=3)),
    "Conv2d": (lambda: mint.nn.Conv2d(4, 2, 1), IMAGES,
               lambda x, p: np.einsum("nchw,oc->nohw", x, p["weight"][:, :, 0, 0])
               + p["bias"][:, None, None]),
    "ConvTranspose2d": (lambda: mint.nn.ConvTranspose2d(4, 2, 1), IMAGES,
                        lambda x, p: np.einsum("nchw,co->nohw", x, p["weight"][:, :, 0, 0])
                        + p["bias"][:, None, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_compute_what_numpy_does(name):
    make, x, expected = LAYERS[name]
    cell = make()
    parameters = {n: p.asnumpy().astype(np.float64) for n, p in cell.parameters_and_names()}
    got = cell(Tensor(x)).asnumpy()
    assert np.allclose(got, expected(x, parameters), rtol=1e-4, atol=1e-5)
    twin = copy.deepcopy(cell)
    assert twin(Tensor(x)).shape == got.shape
    assert isinstance(repr(cell), str)


def test_parameters_have_the_names_that_torch_knows():
    def names(cell):
        return [p.name for p in cell.get_parameters()]

    assert names(mint.nn.Linear(2, 2)) == ["weight", "bias"]
    assert names(mint.nn.Linear(2, 2, bias=False)) == ["weight"]
    assert names(mint.nn.Embedding(2, 2)) == ["weight"]
    assert names(mint.nn.BatchNorm2d(2)) == ["weight", "bias", "running_mean", "running_var"]
    assert names(mint.nn.LayerNorm(2, bias=False)) == ["weight"]
    assert mint.nn.Identity is nn.Identity
    assert str(inspect.signature(mint.nn.Softmax)) == "(dim=None)"


def test_batch_norm_moves_its_statistics_by_the_share_of_the_new():
    cell = mint.nn.BatchNorm1d(6, momentum=0.3).set_train()
    cell(Tensor(ROWS))
    assert np.allclose(cell.running_mean.asnumpy(), 0.3 * ROWS.mean(0), atol=1e-6)
    assert np.allclose(cell.running_var.asnumpy(), 0.7 + 0.3 * ROWS.var(0, ddof=1), atol=1e-5)
    cell.set_train(False)
    scale = np.sqrt(cell.running_var.asnumpy() + 1e-5)
    expected = (ROWS - cell.running_mean.asnumpy()) / scale
    assert np.allclose(cell(Tensor(ROWS)).asnumpy(), expected, atol=1e-5)


def test_embedding_and_dropout():
    cell = mint.nn.Embedding(5, 3, padding_idx=1)
    assert (cell.weight.asnumpy()[1] == 0).all()
    gradient = ms.grad(lambda: cell(Tensor([[0, 1], [2, 2]])).sum(), None, cell.weight)()
    assert gradient.asnumpy()[:, 0].tolist() == [1, 0, 2, 0, 0]
    drop = mint.nn.Dropout(0.5)
    assert np.array_equal(drop(Tensor(ROWS)).asnumpy(), ROWS)
    assert (drop.set_train()(Tensor(ROWS)).asnumpy() == 0).any()


def test_losses():
    x, y = Tensor(ROWS), Tensor(ROWS * 0.5)
    assert np.isclose(mint.nn.MSELoss()(x, y).item(), (ROWS**2).mean() / 4, rtol=1e-5)
    assert np.isclose(mint.nn.L1Loss("sum")(x, y).item(), np.abs(ROWS).sum() / 2, rtol=1e-5)
    labels = Tensor([0, 1, 2, 3])
    logs = ROWS - np.log(np.exp(ROWS).sum(1, keepdims=True))
    expected = -logs[np.arange(4), np.arange(4)].mean()
    assert np.isclose(mint.nn.CrossEntropyLoss()(x, labels).item(), expected, rtol=1e-5)
    assert np.isclose(mint.nn.NLLLoss()(Tensor(logs), labels).item(), expected, rtol=1e-5)


def adam_reference(p, gradients, lr, eps, decay, decoupled, amsgrad):
    m = v = largest = np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        if decoupled:
            p = p * (1 - lr * decay)
        else:
            g = g + decay * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        largest = np.maximum(largest, v)
        spread = largest if amsgrad else v
        p = p - lr * (m / (1 - 0.9**t)) / (np.sqrt(spread / (1 - 0.999**t)) + eps)
    return p


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("kind", [mint.optim.Adam, mint.optim.AdamW])
def test_adam_steps(kind, amsgrad):
    start = RANDOM.normal(size=(3, 2))
    gradients = RANDOM.normal(size=(5, 3, 2))
    parameter = Parameter(Tensor(start, ms.float64), name="beta")
    optimizer = kind([parameter], lr=0.125, eps=0.25, weight_decay=0.25, amsgrad=amsgrad)
    for gradient in gradients:
        optimizer((Tensor(gradient),))
    decoupled = kind is mint.optim.AdamW
    expected = adam_reference(start, gradients, 0.125, 0.25, 0.25, decoupled, amsgrad)
    assert np.allclose(parameter.asnumpy(), expected, rtol=1e-6, atol=1e-9)
    twin_parameter, twin = copy.deepcopy((parameter, optimizer))
    for each in (optimizer, twin):
        each((Tensor(gradients[0]),))
    assert np.array_equal(twin_parameter.asnumpy(), parameter.asnumpy())


def test_sgd_steps_and_groups():
    first, second = (Parameter(Tensor([1.0, 2.0]), name=n) for n in ("a", "b"))
    groups = [{"params": [first], "lr": 0.5}, {"params": [second]}]
    optimizer = mint.optim.SGD(groups, lr=0.25, weight_decay=0.5)
    optimizer((Tensor([1.0, 1.0]), Tensor([1.0, 1.0])))
    assert np.allclose(first.asnumpy(), [1 - 0.5 * 1.5, 2 - 0.5 * 2])
    assert np.allclose(second.asnumpy(), [1 - 0.25 * 1.5, 2 - 0.25 * 2])
    with pytest.raises(NotImplementedError, match="maximize"):
        mint.optim.SGD([first], 0.1, maximize=True)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: mint.nn.Linear(0, 4), "in_features"),
        (lambda: mint.nn.Linear(4, 0), "out_features"),
        (lambda: mint.nn.Conv1d(0, 4, 3), "in_channels"),
        (lambda: mint.nn.Conv2d(4, 0, 3), "out_channels"),
        (lambda: mint.nn.Conv2d(4, 4, 3, groups=0), "groups"),
        (lambda: mint.nn.Conv3d(4, 4, (3, 0, 3)), "kernel_size"),
        (lambda: mint.nn.ConvTranspose2d(4, 4, 0), "kernel_size"),
        (lambda: mint.nn.Embedding(0, 4), "num_embeddings"),
        (lambda: mint.nn.BatchNorm2d(0), "num_features"),
        (lambda: mint.nn.LayerNorm(0), "normalized_shape"),
        (lambda: mint.nn.GroupNorm(0, 4), "num_groups"),
        (lambda: mint.nn.GroupNorm(2, 0), "num_channels"),
        (lambda: mint.nn.PReLU(0), "num_parameters"),
    ],
)
def test_sizes_of_layers_are_at_least_one(make, argument):
    with pytest.raises(ValueError, match=rf"^\[\w+\] {argument} must be at least 1, got 0"):
        make()


def test_sizes_of_layers_are_ints():
    with pytest.raises(TypeError, match=r"\[Linear\] in_features must be an int, got '4'"):
        mint.nn.Linear("4", 4)
