"""Tensors: making, reading, sharing memory with NumPy."""

import gc

import numpy as np
import pytest

import lamella
from lamella import Tensor, _native

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_dtype_come_back_as_they_went_in(dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    tensor = Tensor(array)
    assert tensor.shape == (3, 4)
    assert tensor.dtype.name == dtype
    assert np.array_equal(tensor.asnumpy(), array)
    assert tensor.asnumpy().dtype == array.dtype
    assert np.array_equal(Tensor(array.T).asnumpy(), array.T)
    assert np.array_equal(Tensor(array[:, ::-2]).asnumpy(), array[:, ::-2])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,) * 8])
def test_shapes_without_elements_and_of_every_rank(shape):
    array = np.ones(shape, np.float32)
    assert Tensor(array).asnumpy().shape == shape
    assert np.array_equal((Tensor(array) + 1).asnumpy(), array + 1)


def test_bfloat16_is_read_as_float32_where_numpy_has_none():
    tensor = Tensor([1.0, 2.5], _native.bfloat16)
    assert tensor.dtype == _native.bfloat16
    assert np.array_equal(np.asarray(tensor.asnumpy(), np.float32), [1, 2.5])


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (True, "bool"),
        (3, "int64"),
        (3.5, "float32"),
        ([1, 2], "int64"),
        ([1.0, 2], "float32"),
        ([True], "bool"),
        (np.float64(2), "float64"),
        (np.float16(2), "float16"),
        (np.array([1.0]), "float64"),
    ],
)
def test_the_dtype_that_data_gives(data, dtype):
    assert Tensor(data).dtype.name == dtype


def test_numbers_out_of_tensors():
    assert float(Tensor(2.5)) == 2.5
    assert int(Tensor(7)) == 7
    assert bool(Tensor([0.0])) is False
    assert Tensor(2**62 + 1).item() == 2**62 + 1
    assert [10, 20, 30][Tensor(1)] == 20
    with pytest.raises(ValueError, match="one element"):
        bool(Tensor([1, 2]))
    with pytest.raises(TypeError, match="integer"):
        [10, 20][Tensor(1.0)]


def test_a_reader_sees_what_it_writes_and_earlier_results_do_not():
    x = Tensor(np.arange(4, dtype=np.float32))
    y = x.asnumpy()
    z = x * 2
    y[0] = 11
    assert np.array_equal(z.asnumpy(), [0, 2, 4, 6])
    assert np.array_equal((x * 1).asnumpy(), [11, 1, 2, 3])
    assert np.array_equal(x.asnumpy(), [11, 1, 2, 3])
    y[1] = 12
    assert x.asnumpy()[1] == 12
    del y
    gc.collect()
    assert np.array_equal((x + 0).asnumpy(), [11, 12, 2, 3])


def test_a_write_to_the_tensor_leaves_the_array_alone():
    x = Tensor(np.zeros(3, np.float32))
    y = x.asnumpy()
    x += 1
    x += 1
    assert np.array_equal(x.asnumpy(), [2, 2, 2])
    assert np.array_equal(y, [0, 0, 0])


def test_the_array_outlives_the_tensor():
    array = (Tensor(np.ones(1000, np.float32)) + 1).asnumpy()
    for _ in range(10):
        lamella.Tensor(np.zeros(1000, np.float32)).asnumpy()
    assert np.array_equal(array, np.full(1000, 2, np.float32))


def test_another_handle_of_the_same_value_does_not_see_writes():
    x = Tensor(np.zeros(3, np.float32))
    copy = Tensor(x)
    x.asnumpy()[0] = 5
    assert np.array_equal(x.asnumpy(), [5, 0, 0])
    assert np.array_equal(copy.asnumpy(), [0, 0, 0])


def test_an_array_whose_memory_is_shared():
    array = np.zeros(3, np.float32)
    x = _native.tensor_over(array)
    array[0] = 1
    y = x + 1
    array[1] = 1
    assert np.array_equal(y.asnumpy(), [2, 1, 1])
    assert np.array_equal((x + 0).asnumpy(), [1, 1, 0])


def test_printing():
    assert repr(Tensor([1, 2])) == "Tensor(shape=[2], dtype=Int64, value= [1, 2])"
    assert str(Tensor(2.5)) == "2.5"


def test_gradients_survive_an_export():
    total = _native.operators_by_name.sum
    x = Tensor(np.array([1, 2], np.float32))
    kept = x.asnumpy()

    def loss():
        value = total(x * x)
        return value, value

    _, (gradient,) = _native.differentiate(loss, [x])
    assert np.array_equal(gradient.asnumpy(), [2, 4])
    assert np.array_equal(kept, [1, 2])
