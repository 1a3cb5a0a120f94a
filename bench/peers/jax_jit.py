"""The cases of the benchmarks in JAX, each compiled by jax.jit."""

import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from measure import MATMULS, Call, main

random = np.random.default_rng(0)


def randn(*shape: int) -> jax.Array:
    return jnp.asarray(random.standard_normal(shape, dtype=np.float32))


def labels(count: int, classes: int) -> jax.Array:
    return jnp.asarray(random.integers(classes, size=count))


def finished(function, *operands) -> Call:
    """JAX returns before the work is done: wait for it."""
    return lambda: jax.block_until_ready(function(*operands))


def add_one_element() -> Call:
    return finished(jnp.add, jnp.ones(1), jnp.ones(1))


def ten_operations(x, y):
    for _ in range(5):
        x = jnp.tanh(x * y)
    return x


def chain_of_10() -> Call:
    x, y = randn(64), randn(64)
    chain = jax.jit(ten_operations)
    return lambda: np.asarray(chain(x, y))


def chain_of_10_with_gradient() -> Call:
    x, y = randn(64), randn(64)
    gradient = jax.jit(jax.grad(lambda x, y: ten_operations(x, y).sum()))
    return lambda: np.asarray(gradient(x, y))


def forward_and_backward(function, *operands, shape) -> Call:
    """The result and the gradients of all operands, for a cotangent that is an argument."""

    @jax.jit
    def both(cotangent, *operands):
        result, pullback = jax.vjp(function, *operands)
        return result, pullback(cotangent)

    return finished(both, randn(*shape), *operands)


def gelu() -> Call:
    exact = lambda x: jax.nn.gelu(x, approximate=False)  # noqa: E731
    return forward_and_backward(exact, randn(2**20), shape=(2**20,))


def softmax() -> Call:
    return forward_and_backward(jax.nn.softmax, randn(4096, 1024), shape=(4096, 1024))


def normalised(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * weight + bias


def layer_norm() -> Call:
    return forward_and_backward(
        normalised, randn(4096, 1024), randn(1024), randn(1024), shape=(4096, 1024)
    )


def mean_cross_entropy(logits, classes):
    chosen = jnp.take_along_axis(logits, classes[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - chosen).mean()


def cross_entropy() -> Call:
    both = jax.jit(jax.value_and_grad(mean_cross_entropy))
    return finished(both, randn(4096, 1024), labels(4096, 1024))


def matmul(rows: int, inner: int, columns: int) -> Call:
    return finished(jax.jit(jnp.matmul), randn(rows, inner), randn(inner, columns))


def adam_update(parameters, gradients, state, rate=1e-3, decay=0.0):
    """One step of Adam (AdamW if decay is not 0) on trees of arrays."""
    step, first, second = state
    step = step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    scale1, scale2 = 1 / (1 - 0.9**step), 1 / (1 - 0.999**step)

    def updated(p, m, v):
        return p - rate * (m * scale1 / (jnp.sqrt(v * scale2) + 1e-8) + decay * p)

    return jax.tree.map(updated, parameters, first, second), (step, first, second)


def adam_state(parameters):
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return jnp.float32(0), zeros, jax.tree.map(jnp.zeros_like, parameters)


def adam(shapes: list[tuple[int, ...]]) -> Call:
    parameters = [randn(*shape) for shape in shapes]
    gradients = [randn(*shape) for shape in shapes]
    update = jax.jit(adam_update, donate_argnums=(0, 2))
    carried = [parameters, adam_state(parameters)]

    def call() -> None:
        carried[:] = jax.block_until_ready(update(carried[0], gradients, carried[1]))

    return call


def training_step(loss_of, parameters, *batch, decay=0.0) -> Call:
    """Forward, loss, backward, update; the loss is read at the end."""

    def step(parameters, state, *batch):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, *batch)
        return loss, *adam_update(parameters, gradients, state, decay=decay)

    compiled = jax.jit(step, donate_argnums=(0, 1))
    carried = [parameters, adam_state(parameters)]

    def call() -> float:
        loss, *carried[:] = compiled(*carried, *batch)
        return float(loss)

    return call


def dense(inputs: int, outputs: int):
    return inputs**-0.5 * randn(inputs, outputs), jnp.zeros(outputs)


def apply_dense(layer, x):
    return x @ layer[0] + layer[1]


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def convolved(x, weight, bias, padding):
    names = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, weight, (1, 1), padding, dimension_numbers=names) + bias


def lenet_step() -> Call:
    parameters = {
        "conv1": (0.2 * randn(5, 5, 1, 6), jnp.zeros(6)),
        "conv2": (0.1 * randn(5, 5, 6, 16), jnp.zeros(16)),
        "dense": [dense(400, 120), dense(120, 84), dense(84, 10)],
    }

    def loss_of(parameters, x, classes):
        x = max_pool(jax.nn.relu(convolved(x, *parameters["conv1"], "SAME")))
        x = max_pool(jax.nn.relu(convolved(x, *parameters["conv2"], "VALID")))
        x = x.reshape(x.shape[0], -1)
        for layer in parameters["dense"][:-1]:
            x = jax.nn.relu(apply_dense(layer, x))
        return mean_cross_entropy(apply_dense(parameters["dense"][-1], x), classes)

    return training_step(loss_of, parameters, randn(64, 28, 28, 1), labels(64, 10))


def mlp_step() -> Call:
    parameters = [dense(784, 512), dense(512, 512), dense(512, 10)]

    def loss_of(parameters, x, classes):
        for layer in parameters[:-1]:
            x = jax.nn.relu(apply_dense(layer, x))
        return mean_cross_entropy(apply_dense(parameters[-1], x), classes)

    return training_step(loss_of, parameters, randn(128, 784), labels(128, 10))


def lstm_step() -> Call:
    parameters = {
        "input": dense(128, 1024),
        "hidden": 256**-0.5 * randn(256, 1024),
        "dense": dense(256, 10),
    }

    def loss_of(parameters, x, classes):
        projected = apply_dense(parameters["input"], x)

        def cell(carry, projected_now):
            hidden, memory = carry
            i, f, g, o = jnp.split(projected_now + hidden @ parameters["hidden"], 4, axis=-1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(memory), memory), None

        start = jnp.zeros((x.shape[1], 256))
        (hidden, _), _ = lax.scan(cell, (start, start), projected)
        return mean_cross_entropy(apply_dense(parameters["dense"], hidden), classes)

    return training_step(loss_of, parameters, randn(128, 32, 128), labels(32, 10))


def transformer_step() -> Call:
    width, heads, length, vocabulary = 512, 8, 256, 8192

    def norm():
        return jnp.ones(width), jnp.zeros(width)

    def block():
        return {
            "norms": (norm(), norm()),
            "qkv": dense(width, 3 * width),
            "out": dense(width, width),
            "up": dense(width, 4 * width),
            "down": dense(4 * width, width),
        }

    parameters = {
        "tokens": randn(vocabulary, width),
        "positions": 0.02 * randn(length, width),
        "blocks": [block() for _ in range(4)],
        "norm": norm(),
        "head": width**-0.5 * randn(width, vocabulary),
    }

    def attended(layer, x):
        batch = x.shape[0]
        qkv = apply_dense(layer["qkv"], x).reshape(batch, length, 3, heads, width // heads)
        q, k, v = (qkv[:, :, part] for part in range(3))
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return apply_dense(layer["out"], mixed.reshape(batch, length, width))

    def loss_of(parameters, tokens, following):
        x = parameters["tokens"][tokens] + parameters["positions"]
        for layer in parameters["blocks"]:
            x = x + attended(layer, normalised(x, *layer["norms"][0]))
            inner = apply_dense(layer["up"], normalised(x, *layer["norms"][1]))
            x = x + apply_dense(layer["down"], jax.nn.gelu(inner, approximate=False))
        logits = normalised(x, *parameters["norm"]) @ parameters["head"]
        return mean_cross_entropy(logits, following)

    tokens = jnp.asarray(random.integers(vocabulary, size=(8, length)))
    following = jnp.asarray(random.integers(vocabulary, size=(8, length)))
    return training_step(loss_of, parameters, tokens, following, decay=0.01)


CASES = {
    "add_one_element": add_one_element,
    "chain_of_10": chain_of_10,
    "chain_of_10_with_gradient": chain_of_10_with_gradient,
    "gelu_2^20": gelu,
    "softmax_4096x1024": softmax,
    "layer_norm_4096x1024": layer_norm,
    "cross_entropy_4096x1024": cross_entropy,
    "adam_200x1000": lambda: adam([(1000,)] * 200),
    "adam_40x512x1024": lambda: adam([(512, 1024)] * 40),
    **{name: functools.partial(matmul, *shape) for name, shape in MATMULS.items()},
    "lenet_step": lenet_step,
    "mlp_step": mlp_step,
    "lstm_step": lstm_step,
    "transformer_step": transformer_step,
}

main(CASES, sys.argv[1:])
