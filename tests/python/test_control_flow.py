"""Loops and branches from Python, and the recurrent layers built on them."""

import collections

import numpy as np
import pytest
from lamella.mindspore import nn, ops

import lamella
from lamella import Tensor, control_flow
from lamella import mindspore as ms


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_scan_keeps_structures():
    x = numbers(5, 3)

    def body(carry, item):
        total = carry["sum"] + item[0]
        return {"sum": total, "count": carry["count"] + 1}, (total, item[1] * 2)

    init = {"sum": Tensor(np.zeros(3, np.float32)), "count": 0}
    carry, (sums, doubled) = control_flow.scan(body, init, (Tensor(x), Tensor(x)))
    np.testing.assert_allclose(carry["sum"].asnumpy(), x.sum(0), rtol=1e-5)
    assert carry["count"].item() == 5
    np.testing.assert_allclose(sums.asnumpy(), np.cumsum(x, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(doubled.asnumpy(), x * 2)


def test_scan_is_differentiated_with_weights():
    x, w = Tensor(numbers(4, 2, 3)), Tensor(numbers(3, 3, seed=1))

    def loss(w, loop):
        def body(h, item):
            h = ops.tanh(ops.matmul(h, w) + item)
            return h, h

        start = Tensor(np.zeros((2, 3), np.float32))
        if loop:
            return control_flow.scan(body, start, x)[1].sum()
        ys = []
        for t in range(4):
            start, y = body(start, x[t])
            ys.append(y)
        return ops.stack(ys).sum()

    looped = ms.grad(lambda w: loss(w, True))(w)
    unrolled = ms.grad(lambda w: loss(w, False))(w)
    np.testing.assert_allclose(looped.asnumpy(), unrolled.asnumpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("unroll", [True, False])
def test_scan_and_fori_loop_as_primitives(unroll):
    x = numbers(4, 2)
    carry, ys = ops.Scan()(
        lambda c, v: (c + v, c * v), Tensor(np.zeros(2, np.float32)), Tensor(x), unroll=unroll
    )
    np.testing.assert_allclose(carry.asnumpy(), x.sum(0), rtol=1e-5, atol=1e-6)
    before = np.cumsum(x, 0) - x
    np.testing.assert_allclose(ys.asnumpy(), before * x, rtol=1e-4, atol=1e-5)
    total = ops.ForiLoop()(2, 6, lambda i, s: s + i, Tensor(0.0), unroll=unroll)
    assert total.item() == 2 + 3 + 4 + 5


def test_while_loop_and_its_gradient():
    def grown(x):
        return ops.WhileLoop()(lambda v: v.sum() < 100, lambda v: v * 2, x).sum()

    x = Tensor(np.array([1.0, 2.0], np.float32))
    assert grown(x).item() == 192
    assert ms.grad(grown)(x).asnumpy().tolist() == [64, 64]


def test_cond_runs_one_branch():
    x = Tensor(numbers(3))
    for limit, expected in ((-1e9, x.asnumpy() * 2), (1e9, -x.asnumpy())):
        y = control_flow.cond(x.sum() > limit, lambda v: v * 2, lambda v: -v, x)
        np.testing.assert_array_equal(y.asnumpy(), expected)


def test_errors_say_what_is_wrong():
    x = Tensor(numbers(3, 2))
    with pytest.raises(ValueError, match="must give for what it carries"):
        control_flow.scan(lambda c, v: (ops.concat([c, c]), v), Tensor(numbers(2)), x)
    with pytest.raises(ValueError, match="in the structure it was given"):
        control_flow.while_loop(lambda v: v.sum() < 1, lambda v: (v, v), Tensor(numbers(2)))
    with pytest.raises(ValueError, match="no elements that can be read"):
        control_flow.scan(lambda c, v: (c + float(v.sum()), v), Tensor(0.0), x)
    with pytest.raises(TypeError, match="must return a pair"):
        control_flow.scan(lambda c, v: c, Tensor(0.0), x)
    with pytest.raises(ZeroDivisionError):
        control_flow.scan(lambda c, v: (c, 1 / 0), Tensor(0.0), x)
    with pytest.raises(TypeError, match="got str"):
        control_flow.scan(lambda c, v: ("text", v), Tensor(0.0), x)


# ---- Recurrent layers ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(layer, x, h, c):
    p = {k: v.asnumpy().astype(np.float64) for k, v in layer.parameters_dict().items()}
    outputs = []
    for item in x.astype(np.float64):
        gates = item @ p["weight_ih_l0"].T + p["bias_ih_l0"] + h @ p["weight_hh_l0"].T
        i, f, g, o = np.split(gates + p["bias_hh_l0"], 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), h, c


def test_lstm_against_numpy_and_by_its_arguments():
    layer = nn.LSTM(3, 4)
    assert list(layer.parameters_dict()) == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
    ]  # fmt: skip
    x, h, c = numbers(5, 2, 3), numbers(1, 2, 4, seed=1), numbers(1, 2, 4, seed=2)
    output, (hn, cn) = layer(Tensor(x), (Tensor(h), Tensor(c)))
    expected, eh, ec = lstm(layer, x, h[0], c[0])
    np.testing.assert_allclose(output.asnumpy(), expected, atol=1e-5)
    np.testing.assert_allclose(hn.asnumpy()[0], eh, atol=1e-5)
    np.testing.assert_allclose(cn.asnumpy()[0], ec, atol=1e-5)
    alone, _ = layer(Tensor(x))
    np.testing.assert_allclose(
        alone.asnumpy(), lstm(layer, x, np.zeros((2, 4)), np.zeros((2, 4)))[0], atol=1e-5
    )


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_lengths_and_directions(kind):
    layer = kind(3, 4, 2, bidirectional=True, batch_first=True)
    x = Tensor(numbers(2, 5, 3))
    output, _ = layer(x, None, Tensor(np.array([5, 2], np.int32)))
    assert output.shape == (2, 5, 8)
    assert not output.asnumpy()[1, 2:].any()
    short, _ = layer(x[1:, :2])
    np.testing.assert_allclose(output.asnumpy()[1, :2], short.asnumpy()[0], atol=1e-6)


def test_cells_take_states_or_begin_with_zeros():
    x = Tensor(numbers(2, 3))
    h, c = nn.LSTMCell(3, 4)(x, (Tensor(numbers(2, 4)), Tensor(numbers(2, 4))))
    assert h.shape == c.shape == (2, 4)
    assert nn.GRUCell(3, 4)(x, Tensor(numbers(2, 4))).shape == (2, 4)
    assert nn.RNNCell(3, 4, nonlinearity="relu")(x).asnumpy().min() >= 0
    with pytest.raises(ValueError, match="nonlinearity must be 'tanh' or 'relu'"):
        nn.RNN(3, 4, nonlinearity="sine")
    with pytest.raises(ValueError, match=r"\[LSTM\] x must have 3 axes, the last of size 3"):
        nn.LSTM(3, 4)(Tensor(numbers(2, 4)))


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 8, batch_first=True)
        self.dense = nn.Dense(8, 2)

    def construct(self, x):
        return self.dense(self.lstm(x)[1][0][0])


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_an_lstm_learns_in_both_modes(mode):
    ms.set_context(mode=mode)
    try:
        ms.set_seed(1)
        net = Classifier()
        step = nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")),
            nn.Adam(net.trainable_params(), 0.02),
        )
        x = numbers(64, 6, 3)
        labels = (x.sum((1, 2)) > 0).astype(np.int32)
        losses = [step(Tensor(x), Tensor(labels)).item() for _ in range(60)]
        assert losses[-1] < 0.25 * losses[0]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_long_scan_is_a_few_nodes():
    lamella.flush()
    x = Tensor(numbers(1000, 2))
    before = lamella.counters()["flushes"]
    carry, _ = control_flow.scan(lambda c, v: (c * 0.5 + v, None), Tensor(numbers(2)), x)
    assert np.isfinite(carry.asnumpy()).all()
    assert lamella.counters()["flushes"] - before <= 2


# ---- Bodies that use the rest of the framework ----


@ms.jit
def doubled(x):
    return ops.tanh(x) * 2


def test_traced_functions_and_cells_run_plainly_in_a_body():
    w = Tensor(numbers(3))
    for _ in range(4):
        expected = doubled(doubled(doubled(w)))
    looped, _ = control_flow.scan(lambda c, _: (doubled(c), None), w, None, 3)
    np.testing.assert_array_equal(looped.asnumpy(), expected.asnumpy())
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        dense = nn.Dense(3, 3)
        x = Tensor(numbers(2, 3))
        for _ in range(4):
            expected = dense(dense(x))
        looped, _ = control_flow.scan(lambda c, _: (dense(c), None), x, None, 2)
        np.testing.assert_array_equal(looped.asnumpy(), expected.asnumpy())
        taken = control_flow.cond(Tensor(True), lambda: dense(x), lambda: x)
        np.testing.assert_array_equal(taken.asnumpy(), dense(x).asnumpy())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


class Summed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def construct(self, x):
        return self.lstm(x)[0].sum()


def test_a_trace_made_without_gradients_is_not_used_with_them():
    x = Tensor(numbers(5, 2, 3))
    net = Summed()
    expected = ms.value_and_grad(net, None, net.trainable_params())(x)[1]
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for _ in range(4):
            net(x)
        for _ in range(4):
            gradients = ms.value_and_grad(net, None, net.trainable_params())(x)[1]
            for a, b in zip(gradients, expected, strict=True):
                np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_gradient_of_a_loop_may_be_taken_in_a_loop():
    w = Tensor(numbers(3))

    def inner(v):
        return control_flow.scan(lambda c, _: (ops.tanh(c * v + 0.1), None), v, None, 3)[0].sum()

    looped, _ = control_flow.scan(lambda c, _: (c - 0.1 * ms.grad(inner)(c), None), w, None, 4)
    for _ in range(4):
        w = w - 0.1 * ms.grad(inner)(w)
    np.testing.assert_allclose(looped.asnumpy(), w.asnumpy(), rtol=1e-5)


def test_what_escapes_a_body_is_an_error_that_hurts_nothing_else():
    kept = []
    control_flow.scan(lambda c, _: (kept.append(c * 2) or c, None), Tensor(numbers(2)), None, 2)
    good = Tensor([1.0, 2.0]) * 2
    with pytest.raises(ValueError, match="only what is returned exists"):
        kept[0] + 1
    with pytest.raises(ValueError, match="of another loop's or branch's body"):
        control_flow.scan(lambda c, _: (c + kept[0], None), Tensor(numbers(2)), None, 2)
    assert good.asnumpy().tolist() == [2, 4]


def test_nested_loops_and_branches_draw_anew():
    start = Tensor(numbers(2))

    def in_cond(c, _):
        return c, control_flow.cond(Tensor(True), lambda: ops.rand(3), lambda: ops.zeros(3))

    def in_scan(c, _):
        return c, control_flow.scan(lambda d, _: (d, ops.rand(3)), c, None, 2)[1]

    for body in (in_cond, in_scan):
        drawn = control_flow.scan(body, start, None, 20)[1].asnumpy()
        assert len(np.unique(drawn)) == drawn.size


class Squared(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * x * 2.0,)


def test_a_gradient_rule_of_the_users_works_in_a_scan():
    square, w = Squared(), Tensor(np.array([0.5, 1.5], np.float32))
    gradient = ms.grad(
        lambda v: control_flow.scan(lambda c, _: (square(c) * 0.5, None), v, None, 2)[0].sum()
    )(w)
    # ((w^2 / 2)^2 / 2)' = w^3 / 2
    np.testing.assert_allclose(gradient.asnumpy(), w.asnumpy() ** 3 / 2, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="gradient rule of the user's"):
        ms.grad(
            lambda v: control_flow.while_loop(
                lambda c: c.sum() < 9, lambda c: square(c) * 3, v
            ).sum()
        )(w)


def test_a_failing_operation_runs_only_if_a_turn_is_made():
    table, start = Tensor(numbers(3)), Tensor(numbers(2))

    def body(c, _):
        return c + ops.gather(table, Tensor([9]), 0)[0], None

    assert control_flow.scan(body, start, None, 0)[0].shape == (2,)
    with pytest.raises(IndexError):
        control_flow.scan(body, start, None, 1)[0].asnumpy()


def test_dictionaries_in_any_order_and_arrays():
    carry, _ = control_flow.scan(
        lambda c, _: ({"b": c["b"] * 2, "a": c["a"] + 1}, None),
        {"a": np.zeros(2, np.float32), "b": np.ones(2, np.float32)}, None, 3,
    )  # fmt: skip
    assert carry["a"].asnumpy().tolist() == [3, 3]
    assert carry["b"].asnumpy().tolist() == [8, 8]


def test_errors_bear_the_callers_line():
    with pytest.raises(TypeError, match=r"the condition must be one bool.*test_control_flow.py"):
        control_flow.cond(Tensor(1.0), lambda: Tensor(1.0), lambda: Tensor(1.0))
    with pytest.raises(ValueError, match=r"\[LSTM\] takes 2 initial states, got 1"):
        nn.LSTM(3, 4)(Tensor(numbers(5, 2, 3)), Tensor(numbers(1, 2, 4)))
    with pytest.raises(TypeError, match=r"\[LSTM\] x must have the dtype of the weights"):
        nn.LSTM(3, 4)(Tensor(numbers(5, 2, 3)).astype(ms.float16))
    states = (Tensor(numbers(1, 2, 4)), Tensor(numbers(1, 2, 4)))
    half = nn.LSTM(3, 4).to_float(ms.float16)(Tensor(numbers(5, 2, 3)), states)[0]
    assert half.dtype == ms.float16


def test_compiled_loops_do_not_keep_what_they_captured():
    import gc
    import resource

    def run(k):
        big = Tensor(np.ones(5_000_000, np.float32))  # 20 MB

        def body(c, _):
            r = c + (big * c[0]).sum()
            for _ in range(k):
                r = r * c + c
            return r, None

        control_flow.scan(body, Tensor(np.ones(3, np.float32)), None, 2)[0].asnumpy()

    run(1)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(2, 12):
        run(k)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # of 200 MB


Pair = collections.namedtuple("Pair", "left right")


@pytest.mark.parametrize("unroll", [True, False])
def test_a_scan_over_named_tuples(unroll):
    xs = Pair(Tensor([1.0, 2.0]), {"k": Tensor([3.0, 4.0])})

    def body(carry, x):
        assert isinstance(x, Pair)
        return carry + x.left, Pair(carry, [x.right["k"]])

    carry, ys = ops.Scan()(body, Tensor(10.0), xs, unroll=unroll)
    assert carry.item() == 13
    assert isinstance(ys, Pair)
    assert ys.left.asnumpy().tolist() == [10, 11]
    assert ys.right[0].asnumpy().tolist() == [3, 4]


@pytest.mark.parametrize("unroll", [True, False])
def test_a_scan_over_nothing_has_the_length_it_is_given(unroll):
    carry, ys = ops.Scan()(lambda c, x: (c + 1, c), Tensor(0.0), (), 3, unroll=unroll)
    assert carry.item() == 3
    assert ys.asnumpy().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="length"):
        ops.Scan()(lambda c, x: (c, c), Tensor(0.0), (), unroll=unroll)


def test_a_scan_over_sequences_that_do_not_fit():
    xs = (Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"\[Scan\] sequences of shapes \(2,\), \(3,\) do not fit"):
        ops.Scan()(lambda c, x: (c, c), Tensor(0.0), xs)
    with pytest.raises(ValueError, match=r"\[Scan\] .* a length of 3"):
        ops.Scan()(lambda c, x: (c, c), Tensor(0.0), xs[0], 3)


@pytest.mark.parametrize("reverse", [True, False])
def test_a_map_over_named_tuples(reverse):
    given = Pair(Tensor(1.0), [Pair(Tensor(2.0), Tensor(3.0))])
    mapped = ops.HyperMap(reverse=reverse)(lambda x: x * 10, given)
    assert isinstance(mapped, Pair)
    assert isinstance(mapped.right[0], Pair)
    assert [mapped.left.item(), *(x.item() for x in mapped.right[0])] == [10, 20, 30]


def test_functions_by_the_kinds_of_their_arguments():
    graph = ops.MultitypeFuncGraph("kinds")
    for kind in ("Number", "Bool", "Tensor", "String", "None", "Tuple", "Dictionary", "Function"):
        graph.register(kind)(lambda value, kind=kind: kind)
    given = [1, 2.5, True, Tensor(1.0), "text", None, (1,), {}, len]
    expected = ["Number", "Number", "Bool", "Tensor", "String", "None", "Tuple", "Dictionary",
                "Function"]  # fmt: skip
    assert [graph(value) for value in given] == expected
    with pytest.raises(TypeError, match=r"\[kinds\] no function is registered for \(list\)"):
        graph([1])


def test_functions_by_class_and_dtype():
    graph = ops.MultitypeFuncGraph("kinds")
    graph.register(ms.float32)(lambda value: "float32")
    graph.register(list)(lambda value: "list")
    assert [graph(Tensor(1.0)), graph([])] == ["float32", "list"]
    with pytest.raises(TypeError, match="no function"):
        graph(Tensor(1))


@pytest.mark.parametrize("kind", ["mstype.tensor", "Tensr", "", 3])
def test_a_kind_that_does_not_exist_is_refused(kind):
    with pytest.raises(ValueError, match=r"\[kinds\] a function is registered for Tensor, Number"):
        ops.MultitypeFuncGraph("kinds").register("Tensor", kind)
