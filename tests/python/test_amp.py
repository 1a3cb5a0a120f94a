"""Mixed precision: loss scales, steps that are left out, precision by cell, accumulation."""

import copy

import lamella.alias  # noqa: F401
import mindspore as ms
import mindspore.dataset as ds
import numpy as np
import pytest
from mindspore import Model, Tensor, amp, boost, nn, ops, train
from mindspore.train import DynamicLossScaleManager, FixedLossScaleManager

RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(48, 4)).astype(np.float32)
LABELS = (DATA.sum(1) > 0).astype(np.int32)


def one_weight():
    """A network whose gradient is its input."""
    net = nn.Dense(1, 1, weight_init=0.0, has_bias=False)
    return net, nn.SGD(net.trainable_params(), 1.0)


def of(x):
    return Tensor(np.array([[x]], np.float32))


def test_a_dynamic_scaler_grows_with_every_finite_step():
    """Scale 4, window 1, factor 2, rate 1, gradient 1: scales 4, 8, 16 and exact steps of 1."""
    net, optimizer = one_weight()
    scaler = amp.DynamicLossScaler(scale_value=4, scale_factor=2, scale_window=1)
    step = ms.value_and_grad(lambda x: scaler.scale(net(x)), None, net.trainable_params())
    scales, weights = [], []
    for _ in range(3):
        scales.append(float(scaler.scale_value.asnumpy()))
        _, gradients = step(of(1))
        finite = amp.all_finite(gradients)
        if finite:
            optimizer(scaler.unscale(gradients))
        scaler.adjust(finite)
        weights.append(net.weight.asnumpy().item())
    assert scales == [4, 8, 16]
    assert weights == [-1, -2, -3]


def test_a_scaler_falls_but_not_below_one():
    scaler = amp.DynamicLossScaler(4, 4, 2)
    after = []
    for finite in (True, False, True, True, False, False, False):
        assert scaler.adjust(Tensor(finite)) is True
        after.append(float(scaler.scale_value.asnumpy()))
    assert after == [4, 1, 1, 4, 1, 1, 1]
    scaler.adjust(True)
    assert scaler.counter.asnumpy() == 1
    scaler = amp.DynamicLossScaler(8, 2, 2)
    scaler.adjust(scaler_update=True)
    assert scaler.scale_value.asnumpy() == 4
    with pytest.raises(TypeError, match="grads_finite"):
        scaler.adjust()


@pytest.mark.parametrize(
    "make", [lambda: amp.DynamicLossScaler(8, 2, 9), lambda: amp.StaticLossScaler(8)]
)
def test_scaling_and_unscaling_keep_structure(make):
    scaler = make()
    x, half = Tensor([1.0, 2.0]), Tensor(np.array([3.0], np.float16))
    scaled = scaler.scale((x, [half]))
    assert scaled[1][0].dtype == ms.float16
    np.testing.assert_array_equal(scaled[0].asnumpy(), [8, 16])
    first, (second,) = scaler.unscale(scaled)
    np.testing.assert_array_equal(first.asnumpy(), [1, 2])
    assert second.dtype == ms.float32, "a small quotient must not become zero in float16"
    np.testing.assert_array_equal(second.asnumpy(), [3])


def test_a_static_scale_stays():
    scaler = amp.StaticLossScaler(1024)
    scaler.adjust(False)
    assert scaler.scale_value.asnumpy() == 1024


def test_all_finite():
    good = Tensor(np.ones(3, np.float16))
    assert bool(amp.all_finite((good, {"deep": [Tensor([1])]})))
    assert amp.all_finite(good).dtype == ms.bool_
    for bad in (np.inf, -np.inf, np.nan):
        assert not amp.all_finite((good, (Tensor([0.0, bad]),)))
    with pytest.raises(TypeError, match="must be tensors"):
        amp.all_finite((good, 3.0))


def test_a_step_that_is_not_finite_is_left_out():
    net, optimizer = one_weight()
    update = nn.DynamicLossScaleUpdateCell(loss_scale_value=16, scale_factor=2, scale_window=100)
    step = nn.TrainOneStepWithLossScaleCell(net, optimizer, update)
    seen = []
    for x in (1, np.inf, 2):
        loss, overflow, scale = step(of(x))
        seen.append((bool(overflow), float(scale.asnumpy()), net.weight.asnumpy().item()))
    assert seen == [(False, 16, -1), (True, 16, -1), (False, 8, -3)]
    assert optimizer.global_step.asnumpy() == 2
    step.set_sense_scale(64)
    assert step(of(0))[2].asnumpy() == 64


def test_a_fixed_scale_may_be_a_tensor():
    net, optimizer = one_weight()
    step = nn.TrainOneStepWithLossScaleCell(net, optimizer, Tensor(128.0))
    assert not step(of(1))[1]
    assert step(of(np.nan))[1]
    assert step(of(1))[2].asnumpy() == 128
    assert net.weight.asnumpy() == -2


def test_managers():
    fixed = FixedLossScaleManager(64, drop_overflow_update=False)
    assert fixed.get_loss_scale() == 64
    assert fixed.get_update_cell() is None
    assert FixedLossScaleManager(64).get_update_cell().get_loss_scale() == 64
    dynamic = DynamicLossScaleManager(16, 2, 2)
    scales = []
    for overflow in (False, False, True, True):
        dynamic.update_loss_scale(overflow)
        scales.append(dynamic.get_loss_scale())
    assert scales == [16, 32, 16, 8]
    assert dynamic.get_update_cell().get_loss_scale() == 16


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: amp.DynamicLossScaler(0, 2, 1), "at least 1"),
        (lambda: amp.DynamicLossScaler(4, 1, 1), "scale_factor"),
        (lambda: amp.DynamicLossScaler(4, 2, 0), "scale_window"),
        (lambda: amp.StaticLossScaler(np.nan), "at least 1"),
        (lambda: FixedLossScaleManager(0.5), "at least 1"),
        (lambda: amp.auto_mixed_precision(nn.Dense(1, 1), "O9"), "O0"),
        (lambda: amp.custom_mixed_precision(nn.Dense(1, 1)), "white_list"),
        (lambda: Model(nn.Dense(1, 1), amp_level="high"), "O0"),
        (lambda: Model(nn.Dense(1, 1), loss_scale=3), "unknown arguments: loss_scale"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---- Precision by cell ----


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 8)
        self.norm = nn.LayerNorm((8,))
        self.relu = nn.ReLU()
        self.out = nn.Dense(8, 2)

    def construct(self, x):
        return self.out(self.relu(self.norm(self.dense(x))))


def dtypes_inside(net):
    """The dtypes that each layer is given and computes in."""
    seen = {}
    for name in ("dense", "norm", "relu", "out"):

        def note(cell, inputs, output, name=name):
            seen[name] = (str(inputs[0].dtype), str(output.dtype))

        getattr(net, name).register_forward_hook(note)
    seen["net"] = str(net(Tensor(DATA)).dtype)
    return {k: v if isinstance(v, str) else v[1] for k, v in seen.items()}


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_levels(dtype):
    narrow = str(dtype)
    wide = str(ms.float32)
    assert dtypes_inside(amp.auto_mixed_precision(Net(), "O0", dtype))["dense"] == wide
    one = dtypes_inside(amp.auto_mixed_precision(Net(), "O1", dtype))
    assert one == {"dense": wide, "norm": wide, "relu": wide, "out": wide, "net": wide}
    two = dtypes_inside(amp.auto_mixed_precision(Net(), "O2", dtype))
    assert two == {"dense": narrow, "norm": wide, "relu": narrow, "out": narrow, "net": wide}
    three = dtypes_inside(amp.auto_mixed_precision(Net(), "O3", dtype))
    assert three == {"dense": narrow, "norm": narrow, "relu": narrow, "out": narrow, "net": wide}


def test_o1_computes_in_16_bits():
    net = nn.Dense(4, 1, weight_init=1.0, has_bias=False)
    x = np.array([[1000, 0.4, 0, 0]], np.float32)
    assert amp.auto_mixed_precision(net, "O1")(Tensor(x)).asnumpy() == np.float16(1000.4)


def test_lists_of_classes():
    assert nn.Dense in amp.get_white_list()
    assert nn.LayerNorm in amp.get_black_list()
    white = amp.custom_mixed_precision(Net(), white_list=[nn.LayerNorm])
    assert white.norm._compute_dtype == ms.float16
    assert white.dense._compute_dtype is None
    black = amp.custom_mixed_precision(Net(), black_list=[nn.Dense], dtype=ms.bfloat16)
    assert black.dense._compute_dtype == ms.float32
    assert black.norm._compute_dtype == ms.bfloat16


def test_copies_keep_their_precision():
    net = copy.deepcopy(amp.auto_mixed_precision(Net(), "O2"))
    assert net(Tensor(DATA)).dtype == ms.float32
    assert net.dense._compute_dtype == ms.float16


def test_networks_train_at_every_level():
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    for level in ("O0", "O1", "O2", "O3"):
        ms.set_seed(3)
        net = Net()
        step = amp.build_train_network(
            net, nn.Adam(net.trainable_params(), 0.02), loss, level=level
        )
        losses = []
        for _ in range(30):
            outputs = step(Tensor(DATA), Tensor(LABELS))
            losses.append(float((outputs[0] if isinstance(outputs, tuple) else outputs).asnumpy()))
        assert losses[-1] < losses[0] * 0.8, level
        assert net.dense.weight.dtype == ms.float32


# ---- Accumulation ----


def rows(batch, shuffle=False):
    return ds.NumpySlicesDataset((DATA, LABELS), ["x", "y"], shuffle=shuffle).batch(batch)


def trained(batch, **options):
    ms.set_seed(7)
    net = nn.SequentialCell(nn.Dense(4, 8, activation="relu"), nn.Dense(8, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, nn.Adam(net.trainable_params(), 0.02), **options)
    model.train(3, rows(batch))
    return [p.asnumpy() for p in net.get_parameters()]


@pytest.mark.parametrize(
    "options",
    [
        {"accumulation_steps": 4},
        {
            "boost_level": "O1",
            "boost_config_dict": {
                "boost": {"mode": "manual", "grad_accumulation": True},
                "grad_accumulation": {"grad_accumulation_step": 4},
            },
        },
        {"accumulation_steps": 4, "loss_scale_manager": FixedLossScaleManager(256)},
    ],
)
def test_micro_batches_equal_the_full_batch(options):
    for a, b in zip(trained(6, **options), trained(24), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_accumulation_by_hand_and_by_object_are_the_same():
    def run(accumulate):
        ms.set_seed(7)
        net = nn.Dense(4, 2)
        optimizer = nn.Adam(net.trainable_params(), 0.02)
        step = ms.value_and_grad(
            lambda x, y: ops.cross_entropy(net(x), y), None, net.trainable_params()
        )
        by_object = boost.GradientAccumulation(3, optimizer)
        sums = [ops.zeros_like(p) for p in net.trainable_params()]
        for i, (x, y) in enumerate(rows(8), 1):
            loss, gradients = step(x, y)
            if accumulate:
                assert by_object(loss, gradients) is loss
                continue
            sums = [a + b for a, b in zip(sums, gradients, strict=True)]
            if i % 3 == 0:
                optimizer(tuple(a * (1 / 3) for a in sums))
                sums = [ops.zeros_like(p) for p in net.trainable_params()]
        return net.weight.asnumpy()

    np.testing.assert_array_equal(run(True), run(False))


def test_groups_have_their_own_number_of_micro_batches():
    a, b = ms.Parameter(Tensor([0.0]), name="a"), ms.Parameter(Tensor([0.0]), name="b")
    groups = [{"params": [a], "accumulation_steps": 1}, {"params": [b], "accumulation_steps": 2}]
    sums = boost.GradientAccumulation(1, nn.SGD(groups, 1.0))
    for i in range(1, 4):
        sums((Tensor([1.0]), Tensor([float(i)])))
    assert a.asnumpy() == -3
    assert b.asnumpy() == -1.5
    sums.finish()
    assert b.asnumpy() == -4.5


def test_a_run_goes_on_with_its_scale_and_sums(tmp_path):
    def made():
        net = nn.SequentialCell(nn.Dense(4, 8), nn.Dropout(p=0.3), nn.Dense(8, 2))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Adam(net.trainable_params(), nn.CosineDecayLR(0.0, 0.02, 20))
        return Model(
            net, loss, optimizer, accumulation_steps=2,
            loss_scale_manager=DynamicLossScaleManager(16, 2, 3),
        )  # fmt: skip

    class Losses(train.Callback):
        def __init__(self, stop=0):
            super().__init__()
            self.values, self.stop = [], stop

        def on_train_step_end(self, run_context):
            params = run_context.original_args()
            self.values.append(params.net_outputs[0].asnumpy().tobytes())
            if params.cur_step_num == self.stop:
                run_context.request_stop()

    def seeded():
        ms.set_seed(4)
        ds.config.set_seed(5)

    seeded()
    whole = Losses()
    made().train(3, rows(8, True), callbacks=[whole])
    seeded()
    begun = Losses(stop=9)
    save = train.ModelCheckpoint("run", str(tmp_path), train.CheckpointConfig(3, async_save=True))
    made().train(3, rows(8, True), callbacks=[begun, save])
    ms.set_seed(99)
    rest = Losses()
    made().train(3, rows(8, True), callbacks=[rest], resume_from=tmp_path)
    assert begun.values + rest.values == whole.values
    with pytest.raises(OSError, match="resume_from"):
        made().train(3, rows(8), resume_from=tmp_path / "nothing")
