"""The cases of the benchmarks in PyTorch: eager, or with --compile through torch.compile.

Every case gives PyTorch the best it has: fused optimizers, and channels-last where that is faster.
"""

import functools
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from measure import MATMULS, Call, best_of, main

torch.manual_seed(0)
torch.set_num_threads(2)
compiling = "--compile" in sys.argv


def maybe_compiled(function):
    if not compiling:
        return function
    # What earlier cases compiled must not make this one generic in its sizes.
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


def add_one_element() -> Call:
    a, b = torch.ones(1), torch.ones(1)
    return lambda: torch.add(a, b)


def ten_operations(x, y):
    """Ten elementwise operations, the work of the chain cases."""
    for _ in range(5):
        x = torch.tanh(x * y)
    return x


def chain_of_10() -> Call:
    x, y = torch.randn(64), torch.randn(64)
    chain = maybe_compiled(ten_operations)
    return lambda: chain(x, y).numpy()


def chain_of_10_with_gradient() -> Call:
    x, y = torch.randn(64, requires_grad=True), torch.randn(64)
    chain = maybe_compiled(ten_operations)

    def call():
        (gradient,) = torch.autograd.grad(chain(x, y).sum(), x)
        return gradient.numpy()

    return call


def forward_and_backward(function, *shape: int) -> Call:
    x, cotangent = torch.randn(shape, requires_grad=True), torch.randn(shape)
    function = maybe_compiled(function)
    return lambda: torch.autograd.grad(function(x), x, cotangent)


def gelu() -> Call:
    return forward_and_backward(functional.gelu, 2**20)


def softmax() -> Call:
    return forward_and_backward(lambda x: functional.softmax(x, dim=-1), 4096, 1024)


def layer_norm() -> Call:
    weight = torch.randn(1024, requires_grad=True)
    bias = torch.randn(1024, requires_grad=True)
    x, cotangent = torch.randn(4096, 1024, requires_grad=True), torch.randn(4096, 1024)
    function = maybe_compiled(lambda x: functional.layer_norm(x, (1024,), weight, bias))
    return lambda: torch.autograd.grad(function(x), (x, weight, bias), cotangent)


def cross_entropy() -> Call:
    x = torch.randn(4096, 1024, requires_grad=True)
    labels = torch.randint(1024, (4096,))
    function = maybe_compiled(functional.cross_entropy)
    return lambda: torch.autograd.grad(function(x, labels), x)


def matmul(rows: int, inner: int, columns: int) -> Call:
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    return lambda: torch.matmul(a, b)


def adam(shapes: list[tuple[int, ...]]) -> Call:
    def with_options(**options) -> Call:
        parameters = [torch.randn(shape, requires_grad=True) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer = torch.optim.Adam(parameters, lr=1e-4, **options)
        return maybe_compiled(optimizer.step)

    if compiling:
        return with_options()
    return best_of(lambda: with_options(fused=True), lambda: with_options(foreach=True))


def training_step(network, loss_of, *batch, optimizer=torch.optim.Adam) -> Call:
    """Forward, loss, backward, update; the loss is read at the end."""
    updater = optimizer(network.parameters(), lr=1e-3, fused=True)
    loss_of = maybe_compiled(loss_of)

    def call() -> float:
        updater.zero_grad(set_to_none=True)
        loss = loss_of(network, *batch)
        loss.backward()
        updater.step()
        return loss.item()

    return call


def classification_loss(network, x, labels):
    return functional.cross_entropy(network(x), labels)


def lenet_step() -> Call:
    def with_format(memory_format) -> Call:
        network = nn.Sequential(
            *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
        ).to(memory_format=memory_format)
        x = torch.randn(64, 1, 28, 28).to(memory_format=memory_format)
        return training_step(network, classification_loss, x, torch.randint(10, (64,)))

    return best_of(
        lambda: with_format(torch.contiguous_format), lambda: with_format(torch.channels_last)
    )


def mlp_step() -> Call:
    network = nn.Sequential(
        *(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    )
    return training_step(
        network, classification_loss, torch.randn(128, 784), torch.randint(10, (128,))
    )


class LastStateClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(128, 256)
        self.dense = nn.Linear(256, 10)

    def forward(self, x):
        return self.dense(self.recurrent(x)[0][-1])


def lstm_step() -> Call:
    return training_step(
        LastStateClassifier(),
        classification_loss,
        torch.randn(128, 32, 128),
        torch.randint(10, (32,)),
    )


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int, heads: int, layers: int):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def transformer_step() -> Call:
    def loss_of(network, tokens, labels):
        return functional.cross_entropy(network(tokens).flatten(0, 1), labels.flatten())

    tokens, labels = torch.randint(8192, (8, 256)), torch.randint(8192, (8, 256))
    network = Transformer(vocabulary=8192, length=256, width=512, heads=8, layers=4)
    return training_step(network, loss_of, tokens, labels, optimizer=torch.optim.AdamW)


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

if compiling:
    # A call of one operation is not what compilation is for.
    CASES = {
        name: case
        for name, case in CASES.items()
        if not name.startswith(("add_one_element", "matmul"))
    }

main(CASES, [argument for argument in sys.argv[1:] if argument != "--compile"])
