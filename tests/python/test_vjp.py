"""vjp: one run of the function, differentiated as often as asked."""

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

X = Tensor(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
ONES = Tensor(np.ones((2, 3), np.float32))


def test_the_gradient_is_that_of_the_run_that_gave_the_output():
    x = Tensor(np.ones((64, 64), np.float32))
    output, pull_back = ms.vjp(lambda x: ops.dropout(x, 0.5), x)
    gradient = pull_back(Tensor(np.ones((64, 64), np.float32)))
    np.testing.assert_array_equal(output.asnumpy(), gradient.asnumpy())


def test_the_function_runs_once():
    calls = []

    def function(x):
        calls.append(1)
        return x * x

    output, pull_back = ms.vjp(function, X)
    for scale in (1, 2):
        np.testing.assert_allclose(pull_back(ONES * scale).asnumpy(), X.asnumpy() * 2 * scale)
    np.testing.assert_allclose(output.asnumpy(), X.asnumpy() ** 2)
    assert len(calls) == 1


def test_weights_and_further_outputs():
    net = nn.Dense(3, 2)
    output, pull_back, rest = ms.vjp(
        lambda x: (net(x), "more"), X, weights=net.trainable_params(), has_aux=True
    )
    assert rest == ("more",)
    inputs, (weight, bias) = pull_back(Tensor(np.ones((2, 2), np.float32)))
    np.testing.assert_allclose(inputs.asnumpy(), np.ones((2, 2)) @ net.weight.asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(weight.asnumpy(), np.ones((2, 2)) @ X.asnumpy(), rtol=1e-6)
    assert bias.asnumpy().tolist() == [2, 2]


DIFFERENTIATED = {
    "vjp": lambda function: ms.vjp(function, X, has_aux=True),
    "value_and_grad": lambda function: ms.value_and_grad(function, has_aux=True)(X),
    "grad": lambda function: ms.grad(function, has_aux=True)(X),
}


@pytest.mark.parametrize("returned", [lambda x: x * x, lambda x: {"y": x}, lambda x: ()])
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_further_outputs_come_in_a_tuple(name, returned):
    with pytest.raises(TypeError, match="with has_aux the function must return a tuple"):
        DIFFERENTIATED[name](returned)


def test_values_are_those_of_the_run():
    weight = Parameter(Tensor([2.0]))
    _, pull_back = ms.vjp(lambda x: x * weight, X)
    weight.set_data(Tensor([7.0]))
    np.testing.assert_allclose(pull_back(ONES).asnumpy(), np.full((2, 3), 2.0))


def test_several_outputs_one_input_twice():
    outputs, pull_back = ms.vjp(lambda a, b: (a * b, (a.sum(), 3)), X, X)
    left, right = pull_back(ONES, (Tensor(10.0),))
    np.testing.assert_allclose(left.asnumpy(), X.asnumpy() + 10)
    np.testing.assert_allclose(right.asnumpy(), X.asnumpy())
    with pytest.raises(ValueError, match="returned 2 float Tensors, got cotangents for 1"):
        pull_back(ONES)
    with pytest.raises(ValueError, match=r"cotangent of result 0 must be f32\[2,3\]"):
        pull_back(Tensor([1.0]), Tensor(1.0))


def test_under_grad_vmap_and_jit():
    def slope(x):
        return ms.vjp(ops.sin, x)[1](Tensor(np.ones(x.shape, np.float32)))

    np.testing.assert_allclose(slope(X).asnumpy(), np.cos(X.asnumpy()), rtol=1e-5)
    second = ms.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(second(X).asnumpy(), -np.sin(X.asnumpy()), rtol=1e-5)
    np.testing.assert_allclose(ms.vmap(slope)(X).asnumpy(), np.cos(X.asnumpy()), rtol=1e-5)
    traced = ms.jit(slope)
    for _ in range(4):
        np.testing.assert_array_equal(traced(X).asnumpy(), slope(X).asnumpy())


def test_the_function_for_cotangents_is_mapped_itself():
    x = Tensor([1.0, 2.0, 3.0])
    _, pull_back = ms.vjp(lambda x: ops.sin(x) * x, x)
    jacobian = ms.vmap(pull_back)(Tensor(np.eye(3, dtype=np.float32))).asnumpy()
    slope = np.sin(x.asnumpy()) + x.asnumpy() * np.cos(x.asnumpy())
    np.testing.assert_allclose(jacobian, np.diag(slope), rtol=1e-5)


def test_what_is_kept_of_the_run_goes_with_the_function():
    x = Tensor(np.ones(1 << 20, np.float32))
    before = ms.runtime.memory_allocated()
    output, pull_back = ms.vjp(lambda x: ops.exp(ops.sin(x) * x), x)
    del output
    assert ms.runtime.memory_allocated() > before + x.nbytes // 2
    del pull_back
    assert ms.runtime.memory_allocated() < before + x.nbytes // 2
