"""Random indices of every kind together: NumPy's result in reading, writing and adding up."""

import random

import numpy as np
import pytest

import lamella
from lamella import Tensor

SEEDS = 12
KEYS_A_SEED = 60


def random_slice(draw, size):
    bound = [None, *range(-size - 2, size + 3)]
    step = draw.choice([None, 1, 2, 3, -1, -2, -3])
    return slice(draw.choice(bound), draw.choice(bound), step)


def random_positions(draw, size, shape):
    count = int(np.prod(shape))
    if size == 0:
        return np.zeros((0,), np.int64)
    picks = np.array([draw.randrange(-size, size) for _ in range(count)])
    return picks.reshape(shape).astype(draw.choice([np.int32, np.int64]))


def random_mask(draw, sizes):
    return np.array([draw.random() < 0.4 for _ in range(int(np.prod(sizes)))], bool).reshape(sizes)


def random_key(draw, shape):
    """A tuple of indices for an array of `shape`."""
    key, axis = [], 0
    common = draw.choice([(2,), (3,), (2, 2), (1,), ()])
    masks = False
    ellipsis_at = draw.randrange(len(shape) + 1) if draw.random() < 0.3 else -1
    while axis < len(shape):
        if len(key) == ellipsis_at:
            key.append(Ellipsis)
            axis += draw.randrange(len(shape) - axis + 1)
            continue
        kind = draw.choice(["integer", "slice", "slice", "positions", "none", "mask", "end"])
        size = shape[axis]
        if kind == "end":
            break
        if kind == "none":
            if len(key) < 5:
                key.append(None)
            continue
        if kind == "mask" and not masks and common in ((), (1,)):
            span = draw.randrange(1, len(shape) - axis + 1)
            key.append(random_mask(draw, shape[axis : axis + span]))
            masks = True
            axis += span
            continue
        if kind == "integer" and size:
            key.append(draw.randrange(-size, size))
        elif kind == "positions" and size:
            key.append(random_positions(draw, size, common))
        else:
            key.append(random_slice(draw, size))
        axis += 1
    return tuple(key)


def as_given(draw, key):
    """The same key as a program writes it: tensors or arrays, a lone index without its tuple."""
    made = tuple(
        Tensor(item) if isinstance(item, np.ndarray) and draw.random() < 0.5 else item
        for item in key
    )
    return made[0] if len(made) == 1 and draw.random() < 0.5 else made


def keys(seed):
    draw = random.Random(seed)
    for _ in range(KEYS_A_SEED):
        shape = tuple(draw.choice([0, 1, 2, 3, 4, 5]) for _ in range(draw.randrange(1, 5)))
        yield draw, shape, random_key(draw, shape)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_reading_and_writing(seed):
    numbers = np.random.default_rng(seed)
    tried = 0
    for draw, shape, key in keys(seed):
        array = numbers.normal(size=shape).astype(np.float32)
        try:
            expected = array[key]
        except IndexError:
            with pytest.raises((IndexError, ValueError)):
                Tensor(array)[as_given(draw, key)].asnumpy()
            continue
        if expected.ndim > 8:
            continue
        tried += 1
        told = f"shape {shape}, key {key}"
        given = Tensor(array)[as_given(draw, key)].asnumpy()
        assert given.shape == expected.shape, told
        assert np.array_equal(given, expected), told

        written, x = array.copy(), Tensor(array)
        part_shape = expected.shape
        if part_shape and draw.random() < 0.4:  # broadcast
            part_shape = tuple(1 if draw.random() < 0.5 else size for size in part_shape)
        part = numbers.normal(size=part_shape).astype(np.float32)
        written[key] = part
        x[as_given(draw, key)] = Tensor(part) if draw.random() < 0.5 else part
        assert np.array_equal(x.asnumpy(), written), told

        added = array.copy()
        np.add.at(added, key, part)
        total = lamella._native.index_update(
            Tensor(array), as_given(draw, key), Tensor(part), "add"
        )
        assert np.allclose(total.asnumpy(), added, atol=1e-5), told
    assert tried > KEYS_A_SEED // 2


def slopes(x, key, weight):
    """The gradient of the weighted sum of x[key]."""
    return lamella._native.differentiate(lambda: (None, (x[key] * weight).sum()), [x])[1][0]


@pytest.mark.parametrize("seed", range(3))
def test_gradients(seed):
    numbers = np.random.default_rng(seed)
    for draw, shape, key in keys(100 + seed):
        array = numbers.normal(size=shape)
        try:
            weight = numbers.normal(size=array[key].shape)
        except IndexError:
            continue
        if weight.ndim > 8:
            continue
        gradient = slopes(Tensor(array), as_given(draw, key), Tensor(weight))
        expected = np.zeros(shape)
        np.add.at(expected, key, weight)
        assert np.allclose(gradient.asnumpy(), expected), f"shape {shape}, key {key}"
