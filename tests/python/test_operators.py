"""Operators called by name, their binding of arguments, and the line that errors name."""

import inspect
import re

import numpy as np
import pytest
from lamella._native import operators_by_name as ops

import lamella
from lamella import Tensor

LOWERINGS = ("composite", "tile", "reduction", "index", "view", "kernel", "control")


def test_every_operator_describes_itself():
    rows = lamella.operators()
    assert len({row["name"] for row in rows}) == len(rows) > 80
    for row in rows:
        assert row["doc"]
        assert row["lowering"] in LOWERINGS
        function = getattr(ops, row["name"])
        assert list(inspect.signature(function).parameters) == [
            parameter["name"] for parameter in row["parameters"]
        ]


def test_arguments_by_position_by_name_and_left_out():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert ops.sum(x).item() == 15
    assert np.array_equal(ops.sum(x, 0).asnumpy(), [3, 5, 7])
    assert np.array_equal(ops.sum(x=x, axis=(1,), keepdims=True).asnumpy(), [[3], [12]])
    assert np.array_equal(ops.concat([x, x], axis=1).asnumpy(), np.tile(x.asnumpy(), (1, 2)))
    assert ops.cast(x, np.int32).dtype.name == "int32"
    assert lamella.call("mean", x, axis=[0, 1]).item() == 2.5


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {}, "missing required argument: 'x'"),
        (("text",), {}, "x must be a tensor or a number, got str"),
        ((Tensor([1.0]), 0, True, 1), {}, "takes 3 positional arguments but 4"),
        ((Tensor([1.0]),), {"dim": 0}, "unexpected keyword argument 'dim'"),
        ((Tensor([1.0]), 0), {"axis": 0}, "multiple values for argument 'axis'"),
        ((Tensor([1.0]),), {"axis": 1.5}, "axis must be an integer"),
    ],
)
def test_wrong_arguments_are_named(arguments, keywords, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        ops.sum(*arguments, **keywords)


def test_errors_name_the_callers_line():
    x, y = Tensor(np.ones(2, np.float32)), Tensor(np.ones(3, np.float32))
    for failing in (
        lambda: x + y,
        lambda: ops.sum(x, axis="a"),
        lambda: ops.sum(x, axis=3),
        lambda: bool(x),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            failing()
        assert f"{__file__}:{failing.__code__.co_firstlineno}" in str(caught.value)


def test_kinds_of_errors_are_pythons():
    x = Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="sum"):
        ops.sum(x, axis=5)
    with pytest.raises(TypeError, match="dtype"):
        ops.bitwise_and(x, x)
    with pytest.raises(ValueError, match="no operator named"):
        lamella.call("summ", x)


def test_pythons_operators_are_numpys():
    a = np.array([[1.5, -2, 3], [4, 5, -6]], np.float32)
    b = np.array([2, 3, -4], np.float32)
    x, y = Tensor(a), Tensor(b)
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b),
        (-x, -a), (abs(x), abs(a)),
        (2 + x, 2 + a), (2 - x, 2 - a), (2 * x, 2 * a), (2 / x, 2 / a), (+x, a),
        (x @ y, a @ b), (x < y, a < b), (x <= y, a <= b), (x > y, a > b),
        (x >= y, a >= b), (x == y, a == b), (x != y, a != b), (b + x, a + b), (b - x, b - a),
        (~(x > y), ~(a > b)), ((x > 0) & (y > 0), (a > 0) & (b > 0)),
        ((x > 0) | (y > 0), (a > 0) | (b > 0)), ((x > 0) ^ (y > 0), (a > 0) ^ (b > 0)),
    ]  # fmt: skip
    for number, (got, expected) in enumerate(pairs):
        assert np.allclose(got.asnumpy(), expected, rtol=1e-6), number
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True
    with pytest.raises(TypeError):
        x + "text"


def test_in_place_operators_write_through_every_handle():
    x = Tensor(np.ones(3, np.float32))
    alias = x
    x += 1
    x *= 3
    x -= 1
    x /= 2
    assert alias is x
    assert np.array_equal(alias.asnumpy(), [2.5] * 3)
    count = Tensor(np.ones(3, np.int64))
    before = count
    count /= 2
    assert count is not before
    assert count.dtype.name == "float32"
