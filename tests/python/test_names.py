"""The names of the MindSpore API: signatures of the tables, meanings against NumPy."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.mint as mint
import mindspore.numpy as mnp
import numpy as np
import pytest
import tomllib
from mindspore import Tensor, ops
from mindspore.mint.nn import functional

TABLES = Path(__file__).parents[2] / "python/names"
MODULES = [
    ("ops", "functions", ops),
    ("mint", "functions", mint),
    ("mint", "nn_functional", functional),
    ("numpy", "functions", mnp),
]


def rows(file, table):
    return tomllib.loads((TABLES / f"{file}.toml").read_text())[table]


def described(signature):
    """(name, kind, whether it has a default) of each parameter."""
    found, keyword = [], False
    text = signature.strip()[1:-1]
    depth, current, parts = 0, "", []
    for char in text + ",":
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
            continue
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        current += char
    for part in filter(None, parts):
        name, equals, _ = part.partition("=")
        name = name.split("|")[0]
        if name == "*":
            keyword = True
        elif name.startswith("**"):
            found.append((name[2:], "VAR_KEYWORD", False))
        elif name.startswith("*"):
            found.append((name[1:], "VAR_POSITIONAL", False))
            keyword = True
        else:
            kind = "KEYWORD_ONLY" if keyword else "POSITIONAL_OR_KEYWORD"
            found.append((name, kind, bool(equals)))
    return found


def shown(function):
    return [
        (p.name, p.kind.name, p.default is not inspect.Parameter.empty)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(("file", "table", "module"), MODULES)
def test_signatures_are_those_of_the_tables(file, table, module):
    for name, row in rows(file, table).items():
        assert shown(getattr(module, name)) == described(row[0]), name


def test_every_row_has_its_operator():
    from lamella.mindspore.mint.nn import _functions as functional
    from lamella.mindspore.ops import _functions, _primitives

    from lamella import _tensor_methods

    for module in (_functions, _primitives, functional, _tensor_methods):
        assert module.MISSING == []


def test_names_that_are_missing_are_named():
    with pytest.raises(AttributeError, match="mindspore.ops.no_such_name is not provided"):
        ops.no_such_name  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="mindspore.no_such_module"):
        __import__("mindspore.no_such_module")
    assert not hasattr(Tensor, "no_such_method")


def modules_of_the_alias():
    import lamella.mindspore as package

    rows = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    names = [package.__name__, *(row.name for row in rows)]
    return [name for name in names if not any(part.startswith("_") for part in name.split("."))]


@pytest.mark.parametrize("name", modules_of_the_alias())
def test_every_module_says_what_it_does_not_have(name):
    module = importlib.import_module(name)
    said = r"^mindspore(\.\w+)*\.no_such_name is not provided by Lamella"
    with pytest.raises(AttributeError, match=said):
        module.no_such_name  # noqa: B018
    assert not hasattr(module, "__no_such_name__")


def test_missing_names_that_are_close_to_others():
    with pytest.raises(AttributeError, match="close to it: .*Tensor"):
        ms.common.Tensr  # noqa: B018
    with pytest.raises(AttributeError, match="close to it: .*relu"):
        ops.rellu  # noqa: B018


A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
X = Tensor(A)

CASES = {
    "ops.add": (lambda: ops.add(X, 2), A + 2),
    "ops.add by keyword": (lambda: ops.add(other=X, input=1), A + 1),
    "ops.sum": (lambda: ops.sum(X, dim=1, keepdim=True), A.sum(1, keepdims=True)),
    "ops.mean": (lambda: ops.mean(X, 0), A.mean(0)),
    "ops.max": (lambda: ops.max(X, 1)[0], A.max(1)),
    "ops.max index": (lambda: ops.max(X, 1)[1], A.argmax(1)),
    "ops.argmax": (lambda: ops.argmax(X), A.argmax()),
    "ops.std": (lambda: ops.std(X, 1), A.std(1)),
    "mint.std": (lambda: mint.std(X, 1), A.std(1, ddof=1)),
    "mint.max": (lambda: mint.max(X), A.max()),
    "mint.max dim": (lambda: mint.max(X, dim=0)[0], A.max(0)),
    "mint.max other": (lambda: mint.max(X, Tensor(-A)), np.maximum(A, -A)),
    "Tensor.max": (lambda: X.max(axis=0), A.max(0)),
    "Tensor.max 0": (lambda: X.max(0)[1], A.argmax(0)),
    "Tensor.sum": (lambda: X.sum(1, keepdims=True), A.sum(1, keepdims=True)),
    "Tensor.sum dim": (lambda: X.sum(dim=0), A.sum(0)),
    "ops.transpose": (lambda: ops.transpose(X, (1, 0)), A.T),
    "mint.transpose": (lambda: mint.transpose(X, 0, 1), A.T),
    "Tensor.transpose": (lambda: X.transpose(), A.T),
    "Tensor.permute": (lambda: X.permute(1, 0), A.T),
    "Tensor.T": (lambda: X.T, A.T),
    "Tensor.reshape": (lambda: X.reshape(2, 6), A.reshape(2, 6)),
    "Tensor.view": (lambda: X.view((-1,)), A.reshape(-1)),
    "ops.flatten": (lambda: ops.flatten(X), A),
    "mint.flatten": (lambda: mint.flatten(X), A.reshape(-1)),
    "ops.split": (lambda: ops.split(X, 2)[1], A[2:]),
    "numpy.split": (lambda: mnp.split(X, 3)[1], A[1:2]),
    "ops.chunk": (lambda: ops.chunk(X, 2, 1)[1], A[:, 2:]),
    "ops.concat": (lambda: ops.concat([X, X], axis=1), np.concatenate([A, A], 1)),
    "ops.stack": (lambda: ops.stack((X, X)), np.stack([A, A])),
    "ops.tile": (lambda: ops.tile(X, (2, 1)), np.tile(A, (2, 1))),
    "numpy.tile": (lambda: mnp.tile(X, 2), np.tile(A, 2)),
    "ops.repeat_interleave": (lambda: ops.repeat_interleave(X, 2, 0), np.repeat(A, 2, 0)),
    "numpy.repeat": (lambda: mnp.repeat(X, [1, 0, 2], 0), np.repeat(A, [1, 0, 2], 0)),
    "ops.roll": (lambda: ops.roll(X, 1, 0), np.roll(A, 1, 0)),
    "ops.flip of no axis": (lambda: ops.flip(X, ()), A),
    "numpy.flip": (lambda: mnp.flip(X), A[::-1, ::-1]),
    "ops.flip": (lambda: ops.flip(X, (0, 1)), A[::-1, ::-1]),
    "ops.where": (lambda: ops.where(X > 0, X, 0.0), np.where(A > 0, A, 0)),
    "ops.clip": (lambda: ops.clip(X, -0.5, 0.5), A.clip(-0.5, 0.5)),
    "ops.clamp": (lambda: ops.clamp(X, max=0.5), A.clip(None, 0.5)),
    "ops.arange": (lambda: ops.arange(1, 10, 3), np.arange(1, 10, 3)),
    "numpy.arange": (lambda: mnp.arange(5), np.arange(5)),
    "ops.linspace": (lambda: ops.linspace(0, 1, 5), np.linspace(0, 1, 5)),
    "ops.eye": (lambda: ops.eye(3, 4), np.eye(3, 4)),
    "ops.one_hot": (lambda: ops.one_hot(Tensor([1, 0]), 3, 1.0, 0.0), np.eye(3)[[1, 0]]),
    "ops.gather": (lambda: ops.gather(X, Tensor([2, 0]), 0), A[[2, 0]]),
    "ops.matmul": (lambda: ops.matmul(X, X.T), A @ A.T),
    "ops.einsum": (lambda: ops.einsum("ij,kj->ik", X, X), A @ A.T),
    "ops.einsum sum": (lambda: ops.einsum("ij->j", X), A.sum(0)),
    "numpy.tensordot": (lambda: mnp.tensordot(X, X, ((1,), (1,))), A @ A.T),
    "ops.norm": (lambda: ops.norm(X), np.linalg.norm(A)),
    "ops.diagonal": (lambda: ops.diagonal(X, 1), np.diagonal(A, 1)),
    "ops.diag": (lambda: ops.diag(Tensor([1.0, 2.0])), np.diag([1, 2])),
    "ops.tril": (lambda: ops.tril(X), np.tril(A)),
    "numpy.tri": (lambda: mnp.tri(3, 4), np.tri(3, 4)),
    "ops.meshgrid": (lambda: ops.meshgrid(Tensor([1, 2]), Tensor([3, 4, 5]))[1],
                     np.meshgrid([1, 2], [3, 4, 5])[1]),
    "numpy.dot": (lambda: mnp.dot(X, X.T), A @ A.T),
    "ops.ReduceSum": (lambda: ops.ReduceSum(keep_dims=True)(X, 1), A.sum(1, keepdims=True)),
    "ops.MatMul": (lambda: ops.MatMul(transpose_b=True)(X, X), A @ A.T),
    "ops.Concat": (lambda: ops.Concat(1)((X, X)), np.concatenate([A, A], 1)),
    "ops.addn": (lambda: ops.addn([X, X, X]), A * 3),
    "ops.count_nonzero": (lambda: ops.count_nonzero(X > 0), (A > 0).sum()),
    "ops.select": (lambda: ops.select(X > 0, X, -X), np.abs(A)),
    "ops.zeros_like": (lambda: ops.zeros_like(X), np.zeros_like(A)),
    "ops.pad": (lambda: ops.pad(X, (1, 2)), np.pad(A, ((0, 0), (1, 2)))),
    "Tensor.astype": (lambda: X.astype(ms.int32), A.astype(np.int32)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_meanings(name):
    compute, expected = CASES[name]
    got = compute().asnumpy()
    assert got.shape == np.shape(expected)
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_dtypes_of_results():
    assert ops.arange(3).dtype == ms.int64
    assert mnp.arange(3).dtype == ms.int32
    assert ops.argmax(X).dtype == ms.int64
    assert ops.Argmax()(X).dtype == ms.int32
    assert repr(ms.float32) == "Float32"


def test_gradients_by_position_and_weight():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    value, (by_x, by_y) = ms.value_and_grad(lambda x, y: (x * y).sum(), (0, 1))(x, y)
    assert value.item() == 11
    assert np.array_equal(by_x.asnumpy(), [3, 4])
    assert np.array_equal(by_y.asnumpy(), [1, 2])
    same = ms.grad(lambda a, b: (a * b * b).sum(), (0, 1))(x, x)
    assert np.array_equal(same[0].asnumpy(), [1, 4])
    assert np.array_equal(same[1].asnumpy(), [2, 8])
    (loss, aux), gradient = ms.value_and_grad(lambda x: ((x * x).sum(), x), has_aux=True)(x)
    assert loss.item() == 5
    assert np.array_equal(gradient.asnumpy(), [2, 4])
    scaled = ops.GradOperation(sens_param=True)(lambda x: x * x)(x, Tensor([10.0, 100.0]))
    assert np.array_equal(scaled.asnumpy(), [20, 400])


def test_context():
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
    ms.set_context(mode=ms.GRAPH_MODE)
    assert ms.get_context("mode") == ms.GRAPH_MODE
    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="no_such"):
        ms.set_context(no_such=1)


@pytest.mark.parametrize("refused", [{"device_target": "TPU"}, {"no_such": 1}, {"mode": 7},
                                     {"max_device_memory": "much"}])  # fmt: skip
def test_a_context_that_is_refused_changes_nothing(refused):
    given = {"mode": ms.GRAPH_MODE, "pynative_synchronize": True, "device_id": 3} | refused
    for ordered in (given, dict(reversed(given.items()))):
        with pytest.raises(ValueError, match=r"\[set_context\]"):
            ms.set_context(**ordered)
        assert ms.get_context("mode") == ms.PYNATIVE_MODE
        assert ms.get_context("device_id") == 0
        assert ms.get_context("device_target") == "CPU"
    with pytest.raises(ValueError, match="no_such"):
        ms.set_auto_parallel_context(device_num=8, no_such=1)
    assert ms.get_auto_parallel_context("device_num") == 1


def test_random_repeats_under_a_seed():
    ms.set_seed(5)
    first = ops.randn(4).asnumpy()
    ms.set_seed(5)
    assert np.array_equal(ops.randn(4).asnumpy(), first)
    assert not np.array_equal(ops.randn(4).asnumpy(), first)
