"""Indexing: NumPy's result in reading, writing and gradients."""

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest

from lamella import Tensor

ARRAY = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

KEYS = [
    0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, None), slice(None, None, -1), slice(5, 1),
    slice(-2, None), (slice(None), slice(3, 0, -2)), Ellipsis, (Ellipsis, 1), (0, Ellipsis),
    None, (slice(None), None, 1), (None, Ellipsis, None), (slice(0, 0),), (1, slice(None), [0, 2]),
    [0, 2], [[0, 1], [2, 0]], ([0, 1], [1, 2]), (slice(None), [3, 0, 3]), ([0, 2], slice(None), 1),
    ([0, 2], slice(None), [1, 4]), (np.array([True, False, True]),), (slice(None), [-1, -4]),
    np.int64(1), (np.array([2, 0]), 1),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_is_numpys(key):
    got = Tensor(ARRAY)[key]
    assert np.array_equal(got.asnumpy(), ARRAY[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_writing_is_numpys(key):
    x, expected = Tensor(ARRAY), ARRAY.copy()
    x[key] = 7
    expected[key] = 7
    assert np.array_equal(x.asnumpy(), expected)
    part = np.random.default_rng(1).normal(size=expected[key].shape).astype(np.float32)
    x[key] = Tensor(part)
    expected[key] = part
    assert np.array_equal(x.asnumpy(), expected)


def test_masks():
    x, expected = Tensor(ARRAY), ARRAY.copy()
    assert np.array_equal(x[x > 30].asnumpy(), ARRAY[ARRAY > 30])
    x[x > 30] += 1
    expected[expected > 30] += 1
    assert np.array_equal(x.asnumpy(), expected)
    x[x < 5] = 0
    expected[expected < 5] = 0
    assert np.array_equal(x.asnumpy(), expected)


def test_repeated_indices_add_up_in_gradients_and_the_last_write_stays():
    x = Tensor(np.array([1, 2, 3], np.float32))
    gradient = ms.grad(lambda x: x[[0, 0, 2]].sum())(x)
    assert np.array_equal(gradient.asnumpy(), [2, 0, 1])
    x[[1, 1]] = Tensor(np.array([8, 9], np.float32))
    assert x.asnumpy()[1] == 9


def test_gradients_of_writes():
    def loss(x, value):
        y = x * 2
        y[1] = value
        return (y * y).sum()

    x, value = Tensor(np.array([1, 2, 3], np.float32)), Tensor(5.0)
    by_x, by_value = ms.grad(loss, (0, 1))(x, value)
    assert np.array_equal(by_x.asnumpy(), [8, 0, 24])
    assert by_value.item() == 10


def test_indices_outside_are_index_errors():
    x = Tensor(ARRAY)
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises((IndexError, ValueError)):
        x[0, 0, 0, 0]
    with pytest.raises(IndexError):
        x[Tensor([0, 3])].asnumpy()
    with pytest.raises(IndexError):
        x["text"]


def test_iterating_ends():
    assert [row.shape for row in Tensor(ARRAY)] == [(4, 5)] * 3
    assert len(Tensor(ARRAY)) == 3
    with pytest.raises(TypeError):
        len(Tensor(1.0))
