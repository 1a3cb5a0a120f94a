"""Attention and transformers from Python, against NumPy."""

import numpy as np
import pytest
from lamella.mindspore import nn

from lamella import Tensor
from lamella import mindspore as ms


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(layer, q, k, v, added):
    """[T, B, E] inputs, in float64; (result, weights of each head)."""
    p = {n: x.asnumpy().astype(np.float64) for n, x in layer.parameters_dict().items()}
    weights = np.split(p["in_proj_weight"], 3)
    biases = np.split(p["in_proj_bias"], 3)
    heads, size = layer.num_heads, layer.embed_dim // layer.num_heads

    def projected(x, i):
        y = x @ weights[i].T + biases[i]
        return y.reshape(*x.shape[:2], heads, size).transpose(1, 2, 0, 3)

    qh, kh, vh = projected(q, 0), projected(k, 1), projected(v, 2)
    w = softmax(qh @ kh.transpose(0, 1, 3, 2) / np.sqrt(size) + added)
    mixed = (w @ vh).transpose(2, 0, 1, 3).reshape(q.shape)
    return mixed @ p["out_proj.weight"].T + p["out_proj.bias"], w


def test_multihead_attention_against_numpy():
    layer = nn.MultiheadAttention(8, 2)
    q, k, v = numbers(4, 3, 8), numbers(5, 3, 8, seed=1), numbers(5, 3, 8, seed=2)
    padding = np.zeros((3, 5), bool)
    padding[0, 3:] = True
    mask = numbers(4, 5, seed=3)
    added = mask + np.where(padding, -np.inf, 0)[:, None, None, :]
    expected, weights = attention(layer, q, k, v, added)
    arguments = (Tensor(q), Tensor(k), Tensor(v), Tensor(padding))
    result, averaged = layer(*arguments, attn_mask=Tensor(mask))
    np.testing.assert_allclose(result.asnumpy(), expected, atol=1e-5)
    np.testing.assert_allclose(averaged.asnumpy(), weights.mean(1), atol=1e-5)
    _, each = layer(*arguments, attn_mask=Tensor(mask), average_attn_weights=False)
    np.testing.assert_allclose(each.asnumpy(), weights, atol=1e-5)
    result, none = layer(*arguments, need_weights=False, attn_mask=Tensor(mask))
    np.testing.assert_allclose(result.asnumpy(), expected, atol=1e-5)
    assert none is None


def norm(layer, name, x):
    p = layer.parameters_dict()
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    unit = (x - mean) / np.sqrt(var + 1e-5)
    return unit * p[f"{name}.gamma"].asnumpy() + p[f"{name}.beta"].asnumpy()


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_is_what_its_cells_are(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="relu", norm_first=norm_first)
    x = Tensor(numbers(4, 3, 8))

    def attend(y):
        return layer.self_attn(y, y, y, need_weights=False)[0]

    def feed(y):
        return layer.linear2(ms.ops.relu(layer.linear1(y)))

    if norm_first:
        y = x + attend(layer.norm1(x))
        expected = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + attend(x))
        expected = layer.norm2(y + feed(y))
    np.testing.assert_allclose(layer(x).asnumpy(), expected.asnumpy(), atol=1e-5)
    unit = norm(layer, "norm1", x.asnumpy().astype(np.float64))
    np.testing.assert_allclose(layer.norm1(x).asnumpy(), unit, atol=1e-5)


def test_a_transformer_runs_with_masks_and_learns():
    ms.set_seed(2)
    net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    assert len(net.parameters_dict()) == len({p.name for p in net.get_parameters()})
    source, target = Tensor(numbers(3, 5, 8)), Tensor(numbers(3, 4, 8, seed=1))
    causal = Tensor(np.triu(np.ones((4, 4), bool), 1))
    first = net(source, target, tgt_mask=causal).asnumpy()
    changed = target.asnumpy().copy()
    changed[:, 3:] += 1
    again = net(source, Tensor(changed), tgt_mask=causal).asnumpy()
    np.testing.assert_array_equal(first[:, :3], again[:, :3])
    assert not np.array_equal(first[:, 3], again[:, 3])
    optimizer = nn.Adam(net.trainable_params(), 0.01)

    def loss():
        return ((net(source, target) - source[:, :4]) ** 2).mean()

    step = ms.value_and_grad(loss, None, optimizer.parameters)
    losses = []
    for _ in range(30):
        value, gradients = step()
        optimizer(gradients)
        losses.append(value.item())
    assert losses[-1] < 0.6 * losses[0]


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="num_heads must divide embed_dim, got 3 and 8"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(NotImplementedError, match="add_bias_kv=True is not provided"):
        nn.MultiheadAttention(8, 2, add_bias_kv=True)
    layer = nn.MultiheadAttention(8, 2)
    x = Tensor(numbers(4, 3, 8))
    with pytest.raises(ValueError, match="key_padding_mask must have shape"):
        layer(x, x, x, Tensor(np.zeros((4, 3), bool)))
    with pytest.raises(ValueError, match="query must have shape"):
        layer(x[0], x[0], x[0])
