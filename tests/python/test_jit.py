"""jit: what a decorated function gives is what the undecorated one gives, whatever changes."""

import copy
import functools
import gc
import logging
import random
import time
import weakref

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from traces import entered, same, settled, values

X = Tensor(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
Y = Tensor(np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32))
SCALE = 2.0
SIZES = [1.0, 2.0]
TABLE = {"bias": 3.0}
FACTOR = Tensor(2.0, ms.float32)


class Config:
    scale = 4.0


CONFIG = Config()


def test_a_trace_replaces_the_python():
    def function(x, y):
        for _ in range(3):
            x = ops.relu(x * y + 1.5)
        return x, {"sum": x.sum(), "list": [y, None, 3]}

    compiled = settled(function, X, Y)
    same(compiled, function, Y, X)
    assert compiled(X, Y)[1]["list"][0] is Y
    assert compiled.__name__ == "function"


def test_shapes_dtypes_and_structure_choose_the_trace():
    def function(*args, **kwargs):
        first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        return first * len(args) + len(kwargs) + first.shape[0]

    compiled = settled(function, X)
    for args, kwargs in [
        ((Tensor(np.ones((5, 4), np.float32)),), {}), ((Tensor(np.ones((3, 4), np.int32)),), {}),
        ((X, Y), {}), (([X, Y],), {}), (((X, Y),), {}), ((X,), {"a": 1}), ((X,), {"b": X}),
    ]:  # fmt: skip
        same(compiled, function, *args, **kwargs)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (1, 1.0), (1, True), (0.0, -0.0), ("a", "b"),
                                               (None, 0), ((1, 2), (1, 3))])  # fmt: skip
def test_static_arguments_choose_the_trace(first, second):
    def function(x, how):
        if how == "a" or how is None:
            return x * 3
        if isinstance(how, tuple):
            return x * how[1]
        if isinstance(how, str) or how is True:
            return x - 7
        return x / how if isinstance(how, float) else x + how

    compiled = settled(function, X, first)
    same(compiled, function, X, second)
    same(compiled, function, X, first)


def test_globals_are_guarded():
    global SCALE, FACTOR

    def function(x):
        return x * SCALE * FACTOR + len(SIZES) * SIZES[-1] + TABLE["bias"]

    compiled = settled(function, X)
    try:
        SCALE = 5.0
        same(compiled, function, X)
        FACTOR = Tensor(7.0, ms.float32)
        same(compiled, function, X)
        SIZES[-1] = 10.0
        same(compiled, function, X)
        SIZES.append(11.0)
        same(compiled, function, X)
        TABLE["bias"] = -1.0
        same(compiled, function, X)
    finally:
        SCALE, FACTOR = 2.0, Tensor(2.0, ms.float32)
        SIZES[:] = [1.0, 2.0]
        TABLE["bias"] = 3.0


def test_a_global_tensor_may_be_written():
    total = Tensor(np.zeros((3, 4), np.float32))

    def function(x):
        return x + total

    compiled = settled(function, X)
    total += 1
    same(compiled, function, X)


def test_attributes_of_objects_and_classes_are_guarded():
    def function(x):
        return x * CONFIG.scale

    compiled = settled(function, X)
    try:
        Config.scale = 5.0
        same(compiled, function, X)
        CONFIG.scale = 6.0
        same(compiled, function, X)
    finally:
        del CONFIG.scale
        Config.scale = 4.0


def test_closures_defaults_and_functions_called_are_guarded():
    power = 2

    def inner(x, by=1.0):
        return x**power + by

    def function(x):
        return inner(x)

    compiled = settled(function, X)
    power = 3
    same(compiled, function, X)
    inner.__defaults__ = (4.0,)
    same(compiled, function, X)

    def inner(x):
        return x - 1

    same(compiled, function, X)


class Box:
    __slots__ = ("factor",)


BOX = Box()
BOX.factor = 2.0


class Plain:
    def __init__(self):
        self.rate = 2.0

    @property
    def doubled(self):
        return self.rate * 2

    @ms.jit
    def apply(self, x):
        return x * self.doubled


def test_functions_made_inside_and_other_ways_to_reach_a_value():
    global SCALE

    def decorate(function, shift=1.0):
        def around(x):
            return function(x) + shift

        return around

    @decorate
    def function(x):
        scaled = (lambda y: y * SCALE)(x)
        return scaled + sum([SCALE * size for size in SIZES]) + BOX.factor

    compiled = settled(function, X)
    try:
        SCALE = 3.0
        same(compiled, function, X)
        BOX.factor = 5.0
        same(compiled, function, X)
    finally:
        SCALE, BOX.factor = 2.0, 2.0


def test_a_method_of_an_object_that_is_no_cell():
    first, second = Plain(), Plain()
    second.rate = 5.0
    for _ in range(4):
        assert values(first.apply(Tensor(1.0))) == 4
        assert values(second.apply(Tensor(1.0))) == 10
    first.rate = 3.0
    assert values(first.apply(Tensor(1.0))) == 6


def free_with_self(self, x):
    return self * x


class Adder:
    def __init__(self, by):
        self.by = by

    def run(self, x):
        return x + self.by

    __call__ = run


class Slotted:
    __slots__ = ("by",)

    def __init__(self, by):
        self.by = by

    @ms.jit
    def run(self, x):
        return x + self.by


@pytest.mark.parametrize("kind", ["bound method", "callable object", "partial", "of a cell"])
def test_callables_of_every_kind_are_traced(kind):
    adder = Net() if kind == "of a cell" else Adder(2.0)
    given, code = {
        "bound method": lambda: (adder.run, Adder.run),
        "callable object": lambda: (adder, Adder.__call__),
        "partial": lambda: (functools.partial(Adder.run, adder), Adder.run),
        "of a cell": lambda: (adder.construct, Net.construct),
    }[kind]()
    compiled = ms.jit(given)
    same(compiled, given, X)
    ran, _ = entered(code, lambda: compiled(X))
    assert not ran
    if kind == "of a cell":
        adder.scale = 5.0
    else:
        adder.by = 5.0
    same(compiled, given, X)


def test_methods_of_objects_without_attributes_and_functions_that_only_look_like_methods():
    first, second = Slotted(2.0), Slotted(5.0)
    for _ in range(4):
        assert values(first.run(Tensor(1.0))) == 3
        assert values(second.run(Tensor(1.0))) == 6
    ran, _ = entered(Slotted.run.__wrapped__, lambda: first.run(Tensor(1.0)))
    assert not ran
    compiled = ms.jit(free_with_self)
    same(compiled, free_with_self, X, Y)
    ran, _ = entered(free_with_self, lambda: compiled(X, Y))
    assert not ran


def test_a_class_that_is_decorated_stays_itself_and_is_told(caplog):
    caplog.set_level(logging.WARNING, "lamella")
    assert ms.jit(Adder) is Adder
    assert "decorate its methods" in caplog.records[0].getMessage()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(p=0.5)
        self.scale = 2.0
        self.steps = [1.0, 2.0]
        self.extra = Parameter(Tensor(np.ones(4, np.float32)))

    def construct(self, x):
        x = self.norm(self.dense(x))
        for step in self.steps:
            x = x * self.scale + step
        if self.training:
            x = x + 100
        return x * self.extra


class Jitted(Net):
    @ms.jit
    def construct(self, x):
        return super().construct(x)


def pair():
    """A cell with a construct that is traced, and one without, of the same values."""
    ms.set_seed(1)
    plain = Net()
    ms.set_seed(1)
    traced = Jitted()
    for _ in range(4):
        assert values(traced(X)) == values(plain(X))
    ran, _ = entered(Net.construct, lambda: traced(X))
    assert not ran, "no trace was kept"
    return traced, plain


def set_activation(net):
    net.dense.activation = nn.Tanh()


CHANGES = {
    "training": lambda net: net.set_train(),
    "training of a part": lambda net: net.norm.set_train(),
    "number": lambda net: setattr(net, "scale", 3.0),
    "list element": lambda net: net.steps.__setitem__(0, 5.0),
    "list": lambda net: setattr(net, "steps", [7.0]),
    "parameter by set_data": lambda net: net.dense.weight.set_data(
        Tensor(np.full((4, 4), 0.25, np.float32))
    ),
    "parameter by assignment": lambda net: setattr(
        net.dense, "weight", Parameter(Tensor(np.full((4, 4), 0.5, np.float32)))
    ),
    "own parameter": lambda net: setattr(net, "extra", Parameter(Tensor([1.0, 2.0, 3.0, 4.0]))),
    "in place": lambda net: net.extra.__iadd__(1),
    "parameter to None": lambda net: setattr(net.dense, "bias", None),
    "cell": lambda net: setattr(net, "norm", nn.Identity()),
    "cell of a cell": set_activation,
    "dtype": lambda net: net.dense.to_float(ms.float16),
    "hook": lambda net: net.dense.register_forward_hook(lambda cell, inputs, output: output * 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_a_cell(change):
    traced, plain = pair()
    for net in (traced, plain):
        CHANGES[change](net)
    for _ in range(4):
        assert values(traced(X)) == values(plain(X))
    assert values(traced.norm(X)) == values(plain.norm(X)), "statistics must move alike"


def test_dropout_draws_what_dynamic_mode_draws():
    cell = nn.Dropout(p=0.5).set_train()

    def function(x):
        return cell(x) + ops.randn_like(x) if hasattr(ops, "randn_like") else cell(cell(x))

    compiled = settled_draws(function)
    ms.set_seed(7)
    expected = [values(function(X)) for _ in range(3)]
    ms.set_seed(7)
    assert [values(compiled(X)) for _ in range(3)] == expected
    assert expected[0] != expected[1]


def settled_draws(function):
    compiled = ms.jit(function)
    for _ in range(3):
        compiled(X)
    ran, _ = entered(function, lambda: compiled(X))
    assert not ran
    return compiled


def train(jitted, steps=6, order="whole"):
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(4, 8, activation="relu"), nn.BatchNorm1d(8), nn.Dropout(p=0.2),
                            nn.Dense(8, 2)).set_train()  # fmt: skip
    loss_fn = nn.CrossEntropyLoss()
    rates = [0.1 / (1 + i) for i in range(steps)]
    optimizer = nn.Adam(net.trainable_params(), rates, weight_decay=0.01)
    labels = Tensor([0, 1, 1], ms.int32)

    def forward(x):
        return loss_fn(net(x), labels)

    if order == "inner":
        forward = ms.jit(forward) if jitted else forward
    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x):
        loss, grads = gradients(x)
        optimizer(grads)
        return loss

    if order == "whole" and jitted:
        step = ms.jit(step)
    losses = [step(X).item() for _ in range(steps)]
    return losses, [values(p) for p in net.get_parameters()], optimizer.global_step.item()


@pytest.mark.parametrize("order", ["whole", "inner"])
def test_training_steps_are_those_of_dynamic_mode(order):
    assert train(True, order=order) == train(False, order=order)


def test_a_gradient_of_a_trace():
    def function(x):
        return (ops.tanh(x) * x).sum()

    compiled = settled(function, X)
    assert values(ms.grad(compiled)(X)) == values(ms.grad(function)(X))
    twice = [ms.grad(lambda x, f=f: ms.grad(f)(x).sum())(X) for f in (compiled, function)]
    assert values(twice[0]) == values(twice[1])


def test_a_trace_within_a_trace():
    inner = ms.jit(lambda x: x * SCALE)

    def function(x):
        return inner(x) + inner(x + 1)

    global SCALE
    compiled = settled(function, X)
    try:
        SCALE = 3.0
        same(compiled, function, X)
    finally:
        SCALE = 2.0


def test_writes_to_arguments_and_parameters():
    weight = Parameter(Tensor(np.zeros(4, np.float32)))

    def function(x):
        x += 1
        ops.assign_add(weight, x.sum(0))
        return x * weight

    compiled = ms.jit(function)
    expected_x, expected_weight = X.asnumpy().copy(), np.zeros(4, np.float32)
    x = Tensor(X.asnumpy().copy())
    for _ in range(6):
        result = compiled(x)
        expected_x = expected_x + 1
        expected_weight = expected_weight + expected_x.sum(0)
        assert np.allclose(x.asnumpy(), expected_x)
        assert np.allclose(weight.asnumpy(), expected_weight, rtol=1e-5)
        assert np.allclose(result.asnumpy(), expected_x * expected_weight, rtol=1e-5)
    ran, _ = entered(function, lambda: compiled(x))
    assert not ran


def test_arguments_that_are_one_tensor():
    def function(x, y):
        x += 1
        return x * y

    compiled = ms.jit(function)
    for twice in (False, True, False, True):
        for _ in range(3):
            x = Tensor([1.0, 2.0])
            y = x if twice else Tensor([1.0, 2.0])
            expected = [4.0, 9.0] if twice else [2.0, 6.0]
            assert values(compiled(x, y)) == expected


def test_a_view_of_an_argument():
    def function(x):
        x[0] = x[1] * 2
        return x

    compiled = ms.jit(function)
    for i in range(5):
        x = Tensor([[1.0, float(i)], [3.0, 4.0]])
        assert values(compiled(x)) == [[6.0, 8.0], [3.0, 4.0]]
        assert values(x) == [[6.0, 8.0], [3.0, 4.0]]


def random_call(x):
    return x * random.random()


def numpy_random_call(x):
    return x * float(np.random.rand())


def clock_call(x):
    return x * (time.time() % 7)


def branch_on_value(x):
    return x * 2 if x.sum() > 0 else x - 1


def item_call(x):
    return x * x.sum().item()


def print_call(x):
    print("called")
    return x


def array_made(x):
    return x + Tensor(ARRAY)


ARRAY = np.ones(4, np.float32)
COUNTS = {"calls": 0}
LOG = []


def counter(x):
    COUNTS["calls"] += 1
    return x * COUNTS["calls"]


def appending(x):
    LOG.append(len(LOG))
    return x


UNREPEATABLE = {
    random_call: "random", numpy_random_call: "random", clock_call: "time",
    branch_on_value: "value", item_call: "value", print_call: "print", array_made: "array",
    counter: "calls", appending: "LOG",
}  # fmt: skip


@pytest.mark.parametrize("function", UNREPEATABLE, ids=lambda f: f.__name__)
def test_what_cannot_be_repeated_stays_dynamic_and_is_said_once(function, caplog):
    caplog.set_level(logging.WARNING, "lamella")
    compiled = ms.jit(function)
    for x in [X, -X, X, -X, X, -X]:
        ran, result = entered(function, lambda x=x: compiled(x))
        assert ran, "a trace took the place of what it cannot repeat"
        if function in (branch_on_value, item_call):
            assert values(result) == values(function(x))
    assert len(caplog.records) == 1
    message = caplog.records[0].getMessage()
    assert UNREPEATABLE[function] in message
    assert "test_jit.py" in message


def itself(kind):
    """A list or dictionary that contains itself."""
    held = kind()
    if kind is list:
        held.append(held)
    else:
        held["held"] = held
    return held


def nested(kind, depth, twice=False):
    held = kind()
    for _ in range(depth):
        held = kind((held, held) if twice else (held,))
    return held


@pytest.mark.parametrize(
    "held",
    [
        itself(list),
        itself(dict),
        nested(list, 100_000),
        nested(tuple, 100_000),
        nested(list, 64, twice=True),
    ],
    ids=["list in itself", "dict in itself", "deep list", "deep tuple", "one list very often"],
)
def test_containers_without_end_are_given_and_returned(held):
    compiled = ms.jit(lambda x, given: [x * 2, given])
    for _ in range(5):
        result = compiled(X, held)
        assert values(result[0]) == values(X * 2)
        assert result[1] is held

    @ms.jit
    def keeping(x):
        result = [x, held]
        result.append(result)
        return result

    for _ in range(5):
        result = keeping(X)
        assert result[2] is result


@pytest.mark.parametrize("build", [list, tuple])
def test_nested_arguments_are_traced(build):
    def function(x, given):
        while given:
            given = given[0]
            x = x + 1
        return x

    same(ms.jit(function), function, X, nested(build, 20))


def test_seeded_random_calls_give_what_the_function_gives():
    compiled = ms.jit(random_call)
    random.seed(1)
    expected = [values(random_call(X)) for _ in range(5)]
    random.seed(1)
    assert [values(compiled(X)) for _ in range(5)] == expected


def test_an_attribute_written_at_every_call():
    class Counting(nn.Cell):
        def __init__(self):
            super().__init__()
            self.calls = 0

        @ms.jit
        def construct(self, x):
            self.calls += 1
            return x * self.calls

    net = Counting()
    assert [values(net(Tensor(1.0))) for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    assert net.calls == 6


def test_what_is_set_up_at_the_first_call():
    class Lazy(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = None

        @ms.jit
        def construct(self, x):
            if self.scale is None:
                self.scale = 3.0
            return x * self.scale

    net = Lazy()
    assert [values(net(Tensor(1.0))) for _ in range(5)] == [3] * 5
    ran, _ = entered(Lazy.construct.__wrapped__, lambda: net(Tensor(1.0)))
    assert not ran


def test_errors_are_those_of_the_function():
    def function(x, y):
        return ops.gather(x, y, 0)

    compiled = settled(function, X, Tensor([0, 1]))
    with pytest.raises(IndexError):
        compiled(X, Tensor([0, 9])).asnumpy()
    same(compiled, function, X, Tensor([2, 1]))
    with pytest.raises(TypeError):
        compiled(X)


def test_graph_mode_traces_cells():
    ms.set_seed(1)
    net = Net()
    expected = values(net(X))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for _ in range(3):
            assert values(net(X)) == expected
        ran, result = entered(Net.construct, lambda: net(X))
        assert not ran
        assert values(result) == expected
        net.scale = 5.0
        changed = values(net(X))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert changed == values(net(X)) != expected


def test_a_cell_given_to_jit():
    ms.set_seed(1)
    net = Net()
    expected = values(net(X))
    assert ms.jit(net) is net
    for _ in range(3):
        assert values(net(X)) == expected
    ran, _ = entered(Net.construct, lambda: net(X))
    assert not ran
    twin = copy.deepcopy(net)
    twin.scale = 3.0
    assert values(twin(X)) != expected
    assert values(net(X)) == expected


def test_traces_do_not_keep_cells_alive():
    net = Jitted()
    for _ in range(4):
        net(X)
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("window", [0, 1, 7])
@pytest.mark.parametrize("turns", [5, 600])
def test_windows_cut_elsewhere_give_the_same_bits(window, turns):
    def function(x, y):
        for _ in range(turns):
            x = ops.tanh(x * y + 0.1) / 3.0
        return x.mean()

    expected = values(function(X, Y))
    ms.set_context(pynative_synchronize=False)
    from lamella import _native

    _native.set_window(window)
    try:
        compiled = ms.jit(function)
        for _ in range(4):
            assert values(compiled(X, Y)) == expected
    finally:
        _native.set_window(0)
