"""Python's operators between tensors and numbers, in every dtype, against NumPy."""

import operator

import numpy as np
import pytest

from lamella import Tensor, _native

FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "int32", "int64"]
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
}  # fmt: skip
COMPARISONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip
IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "//=": operator.ifloordiv,
    "%=": operator.imod,
}  # fmt: skip


def values(dtype):
    low = 0 if dtype == "uint8" else -5
    return np.arange(low, low + 12).reshape(3, 4).astype(dtype)


def close(got, expected, dtype):
    tolerance = {"float16": 4e-3, "float32": 1e-5}.get(str(np.dtype(dtype)), 1e-12)
    return np.allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance,
        equal_nan=True,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [2, 3])
def test_integers_on_the_right_keep_the_dtype(name, dtype, number):
    array = values(dtype)
    got = BINARY[name](Tensor(array), number)
    if name == "/" and dtype in INTEGERS:
        assert got.dtype.name == "float32"
        expected = array / np.float64(number)
    else:
        assert got.dtype.name == dtype
        expected = BINARY[name](array.astype(np.float64), number).astype(dtype)
        if dtype in INTEGERS and name == "**":
            expected = BINARY[name](array, array.dtype.type(number))
    assert close(got.asnumpy(), expected, got.dtype.name)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", ["+", "-", "*", "/", "//", "%"])
def test_numbers_on_the_left(name, dtype):
    array = values(dtype) + np.array(6, dtype)  # no zero
    got = BINARY[name](7, Tensor(array))
    expected = BINARY[name](7.0, array.astype(np.float64))
    assert close(got.asnumpy(), expected.astype(got.dtype.name), got.dtype.name)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["+", "-", "*", "/", "//", "%"])
def test_float_numbers_never_raise_a_float_dtype(name, dtype):
    array = values(dtype)
    got = BINARY[name](Tensor(array), 1.5)
    assert got.dtype.name == dtype
    assert close(got.asnumpy(), BINARY[name](array.astype(np.float64), 1.5), dtype)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_numbers_and_tensors(name, dtype):
    array = values(dtype)
    compare = COMPARISONS[name]
    assert np.array_equal(compare(Tensor(array), 2).asnumpy(), compare(array, 2))
    assert np.array_equal(compare(2, Tensor(array)).asnumpy(), compare(2, array))
    got = compare(Tensor(array), Tensor(array[::-1].copy()))
    assert got.dtype == _native.bool_
    assert np.array_equal(got.asnumpy(), compare(array, array[::-1]))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_operators_write_into_the_tensor(name, dtype):
    array = values(dtype)
    tensor = Tensor(array)
    alias = tensor
    result = IN_PLACE[name](tensor, 3)
    assert result is tensor
    expected = IN_PLACE[name](array.copy(), array.dtype.type(3))
    assert close(alias.asnumpy(), expected, dtype)
    assert alias.dtype.name == dtype


@pytest.mark.parametrize("name", ["/=", "**="])
def test_division_and_power_in_place(name):
    tensor = Tensor(np.array([1.0, 4.0], np.float32))
    alias = tensor
    if name == "/=":
        tensor /= 2
    else:
        tensor **= 0.5
    expected = [0.5, 2.0] if name == "/=" else [1.0, 2.0]
    assert alias.asnumpy().tolist() == expected
    whole = Tensor([3, 4])
    whole /= 2  # a float result does not fit into an integer tensor
    assert whole.asnumpy().tolist() == [1.5, 2.0]


@pytest.mark.parametrize("dtype", FLOATS + ["int32", "int64"])
def test_matrix_products(dtype):
    a, b = values(dtype), values(dtype).T.copy()
    got = Tensor(a) @ Tensor(b)
    assert got.dtype.name == dtype
    assert close(got.asnumpy(), a.astype(np.float64) @ b.astype(np.float64), dtype)
    with pytest.raises((TypeError, ValueError)):
        Tensor(a) @ 2  # noqa: B018


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_bits(dtype):
    a, b = (values("int8") > 0, values("int8") % 2 == 0) if dtype == "bool" else (
        values(dtype), np.array(3, dtype))  # fmt: skip
    for operation in (operator.and_, operator.or_, operator.xor):
        assert np.array_equal(operation(Tensor(a), Tensor(b)).asnumpy(), operation(a, b))
    assert np.array_equal((~Tensor(a)).asnumpy(), ~a)


def test_what_is_no_operand_is_refused():
    for operation in BINARY.values():
        with pytest.raises(TypeError):
            operation(Tensor([1.0]), "text")
        with pytest.raises(TypeError):
            operation(object(), Tensor([1.0]))
