"""Names said by a few operators, against NumPy in float64."""

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
import pytest
from mindspore import Tensor, mint, ops

A = np.array([[0.0, -1.5, 2.0], [np.nan, 3.0, -0.25]], np.float32)
B = np.array([[1.0, np.nan, -2.0], [0.5, 3.0, 4.0]], np.float32)
N = np.array([[1, 2, 3], [-4, 5, 7]], np.int32)
X, Y = (np.random.default_rng(i).normal(size=(4, 3)).astype(np.float32) for i in (0, 1))
LABELS = np.array([1, -1, 1, -1], np.int32)
IMAGE = np.arange(2 * 4 * 2 * 2, dtype=np.float32).reshape(2, 4, 2, 2)


def distance(x, y, eps=1e-6):
    return np.sqrt(((x - y + eps) ** 2).sum(-1))


def cosine(x, y):
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


CASES = {
    "fmax": (lambda: ops.fmax(Tensor(A), Tensor(B)), np.fmax(A, B)),
    "fmin": (lambda: Tensor(A).fmin(Tensor(B)), np.fmin(A, B)),
    "logaddexp2": (lambda: mint.logaddexp2(Tensor(X), Tensor(Y)), np.logaddexp2(X, Y)),
    "heaviside": (lambda: ops.heaviside(Tensor(A), Tensor(B)), np.heaviside(A, B)),
    "numpy.heaviside": (lambda: mnp.heaviside(Tensor(A), 0.5), np.heaviside(A, 0.5)),
    "ldexp": (lambda: ops.ldexp(Tensor(X), Tensor(N[0])), np.ldexp(X, N[0])),
    "sinc": (lambda: ops.sinc(Tensor(A)), np.sinc(A)),
    "fast_gelu": (lambda: ops.fast_gelu(Tensor(X)), X / (1 + np.exp(-1.702 * X))),
    "isreal": (lambda: ops.isreal(Tensor(A)), np.ones_like(A, bool)),
    "left shift": (lambda: ops.bitwise_left_shift(Tensor(N), Tensor([2, 0, 3])),
                   N << np.array([2, 0, 3])),
    "right shift": (lambda: Tensor(N).bitwise_right_shift(1), N >> 1),
    "vdot": (lambda: mint.vdot(Tensor(X), Tensor(Y)), np.vdot(X, Y)),
    "fix": (lambda: mnp.fix(Tensor(X)), np.fix(X)),
    "channel_shuffle": (lambda: ops.channel_shuffle(Tensor(IMAGE), 2), IMAGE[:, [0, 2, 1, 3]]),
    "hinge_embedding_loss": (
        lambda: ops.hinge_embedding_loss(Tensor(X), Tensor(LABELS[:, None]), reduction="none"),
        np.where(LABELS[:, None] == 1, X, np.maximum(0, 1 - X)),
    ),
    "cosine_embedding_loss": (
        lambda: ops.cosine_embedding_loss(Tensor(X), Tensor(Y), Tensor(LABELS), 0.1, "sum"),
        np.where(LABELS == 1, 1 - cosine(X, Y), np.maximum(0, cosine(X, Y) - 0.1)).sum(),
    ),
    "gaussian_nll_loss": (
        lambda: ops.gaussian_nll_loss(Tensor(X), Tensor(Y), Tensor(X * X), full=True),
        (0.5 * (np.log(X * X) + (X - Y) ** 2 / (X * X)) + 0.5 * np.log(2 * np.pi)).mean(),
    ),
    "triplet_margin_loss": (
        lambda: ops.triplet_margin_loss(Tensor(X), Tensor(Y), Tensor(X[::-1].copy())),
        np.maximum(distance(X, Y) - distance(X, X[::-1]) + 1, 0).mean(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_meanings(name):
    compute, expected = CASES[name]
    got = compute().asnumpy()
    assert got.shape == np.shape(expected)
    assert np.allclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fast_gelu_at_infinity_is_its_limit(dtype):
    ends = Tensor(np.array([-np.inf, -4e4, 4e4, np.inf], dtype))
    assert ops.fast_gelu(ends).asnumpy().tolist() == [0, 0, dtype(4e4), np.inf]
    assert ms.grad(ops.fast_gelu)(ends).asnumpy().tolist() == [0, 0, 1, 1]


def test_reductions_are_named():
    with pytest.raises(ValueError, match="hinge_embedding_loss"):
        ops.hinge_embedding_loss(Tensor(X), Tensor(LABELS[:, None]), reduction="all")
    with pytest.raises(ValueError, match="groups"):
        ops.channel_shuffle(Tensor(IMAGE), 3)
