"""What is said of an argument of a wrong type: who refuses it, which it is, what came."""

import importlib
import inspect

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from lamella.explanation import Explanation
from mindspore import Parameter, Tensor, amp, dataset, mint, nn, ops, profiler, train

import lamella
from lamella import control_flow

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
IMAGES = Tensor(np.ones((1, 2, 4, 4), np.float32))
PARAMETERS = nn.Dense(2, 2).trainable_params()
NET = nn.Dense(2, 2)


def pull_back(cotangent):
    return ms.vjp(lambda x: x * 2, X)[1](cotangent)


CASES = {
    "layer": (lambda: nn.Dropout(p="half"), r"\[Dropout\] p must be a float, got 'half'"),
    "native class": (lambda: Explanation(None), r"\[Explainer\] layer must be a str, got None"),
    "native base": (lambda: nn.LossBase(3), r"\[LossBase\] reduction must be a str, got 3"),
    "layer by position": (
        lambda: nn.Dense("4", 2),
        r"\[Dense\] in_channels must be an int, got '4'",
    ),
    "layer of one's own": (
        lambda: type("Mine", (nn.Dense,), {})(2, 2.5),
        r"\[Mine\] out_channels must be an int, got 2.5",
    ),
    "activation": (lambda: nn.LeakyReLU([1]), r"\[LeakyReLU\] alpha must be a float, got list"),
    "window": (lambda: nn.MaxPool2d(None), r"\[MaxPool2d\] kernel_size must be given, got None"),
    "loss": (
        lambda: nn.CrossEntropyLoss("x"),
        r"\[CrossEntropyLoss\] weight must be a Tensor or None",
    ),
    "optimizer": (
        lambda: nn.Adam(PARAMETERS, beta1="x"),
        r"\[Adam\] beta1 must be a float, got 'x'",
    ),
    "parameters": (
        lambda: nn.SGD(None),
        r"\[SGD\] params must be parameters, or groups .* got None",
    ),
    "rate": (lambda: nn.SGD(PARAMETERS, "fast"), r"\[optimizer\] learning_rate .* got str"),
    "rates": (lambda: nn.SGD(PARAMETERS, [0.1, "x"]), r"\[optimizer\] learning_rate .* got list"),
    "a bool as rate": (lambda: nn.SGD(PARAMETERS, True), r"\[optimizer\] .* number .* got bool"),
    "a bool among rates": (lambda: nn.SGD(PARAMETERS, [0.1, True]), r"\[optimizer\] .* got list"),
    "ints as rate": (
        lambda: nn.SGD(PARAMETERS, Tensor(1)),
        r"\[optimizer\] learning_rate .* must be of a float dtype, got int64",
    ),
    "a group's centralization": (
        lambda: nn.SGD([{"params": PARAMETERS, "grad_centralization": "yes"}]),
        r"\[optimizer\] grad_centralization of a group must be a bool, got 'yes'",
    ),
    "a group's steps": (
        lambda: nn.SGD([{"params": PARAMETERS, "accumulation_steps": 1.5}]),
        r"\[optimizer\] accumulation_steps of a group must be an int, got 1\.5",
    ),
    "a group's parameters": (
        lambda: nn.SGD([{"params": 3}]),
        r"\[optimizer\] params of a group must be a list of Parameters, got int",
    ),
    "no option": (lambda: nn.Adam(PARAMETERS, weigth_decay=0.1), "argument 'weigth_decay'"),
    "mint's optimizer": (
        lambda: mint.optim.Adam(PARAMETERS, betas=0.9),
        r"\[Adam\] betas must be two numbers, got 0.9",
    ),
    "mint's layer": (lambda: mint.nn.Dropout("x"), r"\[Dropout\] p must be a number, got 'x'"),
    "schedule": (
        lambda: nn.CosineDecayLR(0.1, 0.2, "ten"),
        r"\[CosineDecayLR\] decay_steps must be an int, got 'ten'",
    ),
    "callback": (
        lambda: train.EarlyStopping(patience="x"),
        r"\[EarlyStopping\] patience must be an int, got 'x'",
    ),
    "callback's text": (
        lambda: train.EarlyStopping(monitor=1.5),
        r"\[EarlyStopping\] monitor must be a str, got 1.5",
    ),
    "checkpoints": (
        lambda: train.ModelCheckpoint(config="often"),
        r"\[ModelCheckpoint\] config must be a CheckpointConfig, got 'often'",
    ),
    "metric": (
        lambda: train.ConfusionMatrix("x"),
        r"\[ConfusionMatrix\] num_classes must be an int, got 'x'",
    ),
    "metrics": (lambda: train.Model(NET, metrics=1.5), r"\[Model\] metrics must be names"),
    "model": (
        lambda: train.Model(NET, loss_fn="mean"),
        r"\[Model\] loss_fn must be a Cell or None, got 'mean'",
    ),
    "step": (
        lambda: nn.TrainOneStepCell(NET, "SGD"),
        r"\[TrainOneStepCell\] optimizer must be a Cell, got 'SGD'",
    ),
    "loss scale": (
        lambda: amp.FixedLossScaleManager("x"),
        r"\[FixedLossScaleManager\] loss_scale must be a number, got 'x'",
    ),
    "dynamic loss scale": (
        lambda: amp.DynamicLossScaleManager(None),
        r"\[DynamicLossScaleUpdateCell\] loss_scale_value must be a number, got None",
    ),
    "precision": (
        lambda: amp.auto_mixed_precision("net"),
        r"\[auto_mixed_precision\] network must be a Cell, got 'net'",
    ),
    "load": (
        lambda: ms.load_param_into_net(NET, [1]),
        r"\[load_param_into_net\] parameter_dict must be a dict of Parameters, got list",
    ),
    "save": (
        lambda: ms.save_checkpoint(3, "never_written"),
        r"\[save_checkpoint\] save_obj must be a Cell, a dict, or a list of",
    ),
    "file": (
        lambda: ms.load_checkpoint(None),
        r"\[load_checkpoint\] ckpt_file_name must be a path",
    ),
    "parameter": (
        lambda: Parameter(Tensor(1.0), name=3),
        r"\[Parameter\] name must be a str or None, got 3",
    ),
    "property": (
        lambda: setattr(nn.Dense(2, 2), "training", "x"),
        r"\[Dense\.training\] .* must be a bool, got 'x'",
    ),
    "gradient": (lambda: ms.grad("f"), r"\[value_and_grad\] fn must be a function or a Cell"),
    "vjp": (lambda: ms.vjp(None), r"\[vjp\] fn must be a function or a Cell, got None"),
    "position of a gradient": (
        lambda: ms.grad(ops.square, grad_position="0"),
        r"\[value_and_grad\] grad_position must be an int, got '0'",
    ),
    "positions of gradients": (
        lambda: ms.value_and_grad(ops.square, (0, 1.0)),
        r"\[value_and_grad\] grad_position must be an int, got 1\.0",
    ),
    "a bool as position": (
        lambda: ms.grad(ops.square, grad_position=True),
        r"grad_position must be an int, got True",
    ),
    "function of a dict": (
        lambda: ms.vjp(lambda x: {"y": x * 2}, X),
        r"\[vjp\] the function must return tuples of Tensors, got a dict",
    ),
    "loss in a dict": (
        lambda: ms.grad(lambda x: (x, [{"y": x * 2}]))(X),
        r"\[value_and_grad\] the function must return tuples of Tensors, got a dict",
    ),
    "function of an int": (
        lambda: ms.vjp(lambda x: 3, X),
        r"\[vjp\] the function must return a float Tensor, got int",
    ),
    "cotangent": (lambda: pull_back(None), r"\[vjp\] a cotangent must be a Tensor.*, got None"),
    "wide cotangent": (
        lambda: pull_back(Tensor(np.ones((2, 3)))),
        r"\[vjp\] the cotangent of result 0 must be f32\[2,3\] like it, got f64\[2,3\]",
    ),
    "array as cotangent": (lambda: pull_back(np.ones((2, 3))), r"like it, got f64\[2,3\]"),
    "seed": (lambda: ms.set_seed(1.5), r"\[set_seed\] seed must be an int, got 1\.5"),
    "a bool as seed": (lambda: ms.set_seed(True), r"\[set_seed\] seed must be an int, got True"),
    "operand": (lambda: ops.softmax(None), r"\[softmax\] x must be a tensor .*, got NoneType"),
    "operands": (
        lambda: ops.concat(3),
        r"\[concat\] .* must be a list or tuple of tensors, got int",
    ),
    "shape": (
        lambda: X.reshape("a"),
        r"\[reshape\] shape must be an int or a tuple of ints, got 'a'",
    ),
    "size": (lambda: X.reshape(3, 2.0), r"\[reshape\] shape must be .*, got 2\.0"),
    "no shape": (lambda: X.reshape(None), r"\[reshape\] shape must be .*, got None"),
    "axes": (lambda: X.permute("a"), r"\[permute\] .* must be an int or .*, got 'a'"),
    "broadcast": (lambda: X.broadcast_to((3, "a")), r"\[broadcast_to\] shape must be .*, got 'a'"),
    "pooling's window": (
        lambda: ops.max_pool2d(IMAGES, 2.5),
        r"\[max_pool2d\] kernel_size must be an int or a tuple of ints, got 2\.5",
    ),
    "pooling's stride": (
        lambda: ops.avg_pool2d(IMAGES, 2, (1, 2.5)),
        r"\[avg_pool2d\] stride must be an int or a tuple of ints, got 2\.5",
    ),
    "primitive's size": (
        lambda: ops.ResizeBilinearV2()(IMAGES, "a"),
        r"\[ResizeBilinearV2\] size must be an int or a tuple of ints, got 'a'",
    ),
    "convolution's stride": (
        lambda: ops.conv2d(IMAGES, Tensor(np.ones((1, 2, 1, 1), np.float32)), stride=2.5),
        r"\[conv2d\] stride must be an int or a tuple of ints, got 2\.5",
    ),
    "gradients": (
        lambda: nn.SGD(PARAMETERS, 0.1)(3),
        r"\[SGD\] gradients must be a tuple of Tensors, got 3",
    ),
    "gradient alone": (
        lambda: nn.Adam(PARAMETERS)(X),
        r"\[Adam\] gradients must be a tuple of Tensors, got Tensor",
    ),
    "mint's gradients": (
        lambda: mint.optim.AdamW(PARAMETERS)(None),
        r"\[AdamW\] gradients must be a tuple of Tensors, got None",
    ),
    "dataset": (
        lambda: train.Model(NET).eval(3),
        r"\[Model\] valid_dataset must be a dataset, got 3",
    ),
    "dataset to train": (
        lambda: train.Model(NET).train(1, 3),
        r"\[Model\] train_dataset must be a dataset, got 3",
    ),
    "dataset to validate": (
        lambda: train.Model(NET).fit(1, dataset.NumpySlicesDataset([1.0]), 0),
        r"\[Model\] valid_dataset must be a dataset, got 0",
    ),
    "objects": (lambda: Tensor([None]), r"\[tensor\] elements must be bools, numbers .* objects"),
    "big ints": (lambda: Tensor([10**30]), r"\[tensor\] elements must be .* at most 64 bits"),
    "trace handler": (
        lambda: profiler.profile(on_trace_ready=3),
        r"\[profile\] on_trace_ready must be a function or None, got 3",
    ),
    "activities": (
        lambda: profiler.profile(activities=["CPU"]),
        r"\[profile\] activities must be a list of ProfilerActivity, got 'CPU'",
    ),
    "profiler's folder": (
        lambda: ms.Profiler(output_path=3),
        r"\[Profiler\] output_path must be a path, got 3",
    ),
    "profiler's level": (
        lambda: ms.Profiler(profiler_level="all"),
        r"\[Profiler\] profiler_level must be a ProfilerLevel or None, got 'all'",
    ),
    "profiler's flag": (
        lambda: profiler.profile(with_stack=3),
        r"\[profile\] with_stack must be a bool or None, got 3",
    ),
    "folder of traces": (
        lambda: profiler.tensorboard_trace_handler(3),
        r"\[tensorboard_trace_handler\] dir_name must be a path or None, got 3",
    ),
    "labels": (
        lambda: ops.cross_entropy(X, Tensor([0.0, 1.9])),
        r"\[cross_entropy\] labels must be .* an integer dtype, got float32",
    ),
    "labels of nll_loss": (
        lambda: ops.nll_loss(X, Tensor([0.0, 1.9])),
        r"\[nll_loss\] labels must be .* an integer dtype, got float32",
    ),
    "labels of a layer": (
        lambda: nn.CrossEntropyLoss()(X, Tensor([0.0, 1.9])),
        r"\[cross_entropy\] labels has dtype float32; accepted: int32, int64",
    ),
    "labels of a sparse layer": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(X, Tensor([0.0, 1.9])),
        r"\[cross_entropy\] labels has dtype float32; accepted: int32, int64",
    ),
    "labels of NLLLoss": (
        lambda: nn.NLLLoss()(X, Tensor([0.0, 1.9])),
        r"\[nll_loss\] labels has dtype float32; accepted: int32, int64",
    ),
    "labels of a primitive": (
        lambda: ops.SparseSoftmaxCrossEntropyWithLogits()(X, X),
        r"\[nll_loss\] labels must be .* an integer dtype, got float32",
    ),
    "classes": (
        lambda: ops.InTopK(2)(X, Tensor([0.0, 1.9])),
        r"\[in_top_k\] classes must be .* an integer dtype, got float32",
    ),
    "numbers to count": (
        lambda: ops.bincount(Tensor([1.5, 2.0])),
        r"\[bincount\] input must be of an integer dtype, got float32",
    ),
    **{
        f"dtype of {kind.__name__}": (
            lambda kind=kind, axes=axes: kind(3, 4)(ops.ones(axes, ms.float16)),
            rf"\[{kind.__name__}\] x must have the dtype of the weights, float32, got f16",
        )
        for kind, axes in [
            *((kind, (2, 1, 3)) for kind in (nn.RNN, nn.LSTM, nn.GRU)),
            *((kind, (2, 3)) for kind in (nn.RNNCell, nn.LSTMCell, nn.GRUCell)),
        ]
    },
    **{
        f"option of {kind.__name__}": (
            lambda kind=kind: kind(3, 4, bidirectinal=True),
            rf"{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'bidirectinal'",
        )
        for kind in (nn.LSTM, nn.GRU, nn.RNN, nn.GRUCell, nn.BatchNorm2d, mint.nn.Conv2d)
    },
    "lengths": (
        lambda: nn.LSTM(3, 4)(X, None, 3),
        r"\[LSTM\] seq_length must be a Tensor or None, got 3",
    ),
    "states": (lambda: nn.GRU(3, 4)(X, 3), r"\[GRU\] hx must be"),
    "mask of attention": (
        lambda: nn.MultiheadAttention(4, 2)(X, X, X, attn_mask=3),
        r"\[MultiheadAttention\] attn_mask must be a Tensor or None, got 3",
    ),
    "mask of a layer": (
        lambda: nn.TransformerEncoderLayer(4, 2)(X, 3),
        r"\[TransformerEncoderLayer\] src_mask must be a Tensor or None, got 3",
    ),
    "mask": (
        lambda: ops.masked_select(X, Tensor([1, 0, 1])),
        r"\[masked_select\] mask must be of dtype bool, got int64",
    ),
    "norm": (
        lambda: ops.clip_by_global_norm((X,), "a"),
        r"\[clip_by_global_norm\] clip_norm must be a number, got 'a'",
    ),
    "finite": (
        lambda: amp.DynamicLossScaler(4, 2, 10).adjust("no"),
        r"\[DynamicLossScaler.adjust\] grads_finite must be a bool or a Tensor, got 'no'",
    ),
    "steps between checkpoints": (
        lambda: train.CheckpointConfig(save_checkpoint_steps=1.5),
        r"\[CheckpointConfig\] save_checkpoint_steps must be an int, got 1\.5",
    ),
    "branch": (
        lambda: control_flow.cond(Tensor(True), X, X),
        r"\[cond\] true_fn must be a function, got Tensor",
    ),
    "one hot": (
        lambda: ops.one_hot(Tensor([0.5]), 2, 1.0, 0.0),
        r"\[one_hot\] indices must be .* an integer dtype, got float32",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_argument_is_named(case):
    make, said = CASES[case]
    with pytest.raises(TypeError, match=said) as raised:
        make()
    assert "incompatible function arguments" not in str(raised.value)


ROWS = Tensor([0, 1])
WITH_AN_INT = {
    "gather axis": lambda n: ops.gather(X, ROWS, n),
    "split split_size_or_sections": lambda n: ops.split(X, n),
    "split axis": lambda n: ops.split(X, 1, n),
    "chunk chunks": lambda n: ops.chunk(X, n),
    "tensor_split indices_or_sections": lambda n: ops.tensor_split(X, n),
    "topk k": lambda n: ops.topk(X, n),
    "eye n": lambda n: ops.eye(n),
    "eye m": lambda n: ops.eye(2, n),
    "linspace steps": lambda n: ops.linspace(0, 1, n),
    "one_hot depth": lambda n: ops.one_hot(ROWS, n, 1.0, 0.0),
    "bincount minlength": lambda n: ops.bincount(ROWS, minlength=n),
    "take axis": lambda n: X.take(ROWS, n),
    "swapaxes axis0": lambda n: ops.swapaxes(X, n, 1),
    "moveaxis source": lambda n: ops.moveaxis(X, n, 1),
    "flatten start_dim": lambda n: ops.flatten(X, start_dim=n),
    "repeat_interleave axis": lambda n: ops.repeat_interleave(X, 2, n),
    "unbind dim": lambda n: ops.unbind(X, n),
    "index_fill axis": lambda n: ops.index_fill(X, n, ROWS, 1.0),
    "select dim": lambda n: mint.select(X, n, 1),
    "unsorted_segment_sum num_segments": lambda n: ops.unsorted_segment_sum(X, ROWS, n),
    "randperm n": lambda n: mint.randperm(n),
    "vander N": lambda n: ops.vander(Tensor([1.0, 2.0]), n),
    "histc bins": lambda n: ops.histc(X, n),
    "fori_loop upper": lambda n: control_flow.fori_loop(0, n, lambda i, x: x, X),
    "fori_loop lower": lambda n: control_flow.fori_loop(n, 2, lambda i, x: x, X),
    "ForiLoop upper": lambda n: ops.ForiLoop()(0, n, lambda i, x: x, X),
    "Scan length": lambda n: ops.Scan()(lambda c, x: (c, c), X, None, n),
}


@pytest.mark.parametrize("case", WITH_AN_INT)
def test_a_fraction_where_an_int_is_due_is_refused(case):
    call, argument = case.split()
    said = rf"\[{call}\] ({argument}|an argument) must be an int"
    for fraction in (0.5, Tensor(1.5)):
        with pytest.raises(TypeError, match=said):
            WITH_AN_INT[case](fraction)
    for one in (1, np.int64(1), Tensor(1)):
        WITH_AN_INT[case](one)


# Of an axis, or of segments, two long.
OUTSIDE = {
    **{
        f"unsorted_segment_{kind}": lambda at, kind=kind: getattr(ops, f"unsorted_segment_{kind}")(
            X, Tensor([at, 0]), 2
        )
        for kind in ("sum", "prod", "max", "min")
    },
    "index_add": lambda at: ops.index_add(Parameter(X), Tensor([at]), X[:1], 0),
    "index_fill": lambda at: ops.index_fill(X, 0, Tensor([at]), 1.0),
    "index_copy": lambda at: X.copy().index_copy_(0, Tensor([at]), X[:1]),
}


@pytest.mark.parametrize("at", [2, 3, 10**9])
@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_is_named_with_its_operator(name, at):
    said = rf"\[{name}\] (index|segment) {at} is out of range for axis 0 of size 2"
    with pytest.raises(IndexError, match=said):
        OUTSIDE[name](at).asnumpy()


def test_negative_segments_are_left_out():
    for name in list(OUTSIDE)[:4]:
        np.testing.assert_array_equal(OUTSIDE[name](-1)[0].asnumpy(), X[1].asnumpy())


NO_VALUES = {
    "int": (lambda: Tensor(10**30), r"\[tensor\] int64 does not hold an int of 100 bits; a float"),
    "negative int": (lambda: Tensor(-(2**63) - 1), r"\[tensor\] int64 does not hold .* 64 bits"),
    "float": (
        lambda: Tensor(10**400, ms.float32),
        r"\[tensor\] float32 does not hold an int of 1329 bits",
    ),
    "unsigned": (lambda: Tensor(2**64, ms.uint64), r"\[tensor\] uint64 does not hold"),
    "rows": (lambda: Tensor([[1], [1, 2]]), r"\[tensor\] the items of a list must be of one shape"),
    "items": (lambda: Tensor([1, [1, 2]]), r"\[tensor\] the items of a list must be of one shape"),
    "pooling": (
        lambda: ops.max_pool2d(X, 2),
        r"\[max_pool2d\] x must have 3 or 4 axes, got shape \(2, 3\)",
    ),
    "adaptive pooling": (
        lambda: ops.adaptive_avg_pool2d(X, 2),
        r"\[adaptive_avg_pool2d\] x must have 3 or 4 axes",
    ),
    "convolution": (
        lambda: ops.conv2d(X, Tensor(np.ones((1, 2, 1, 1), np.float32))),
        r"\[conv2d\] x must have 3 or 4 axes",
    ),
    "group's rate": (
        lambda: nn.Adam([{"params": PARAMETERS, "learning_rate": 1.0}]),
        r"\[optimizer\] .* no key 'learning_rate'; accepted: params, lr, weight_decay, .*order_par",
    ),
    "group's parameters": (
        lambda: nn.SGD([{"parms": PARAMETERS}]),
        r"\[optimizer\] a group of parameters has no key 'parms'; accepted: params",
    ),
    "group of none": (lambda: nn.SGD([{"lr": 0.1}]), r"\[optimizer\] .* needs the key 'params'"),
    "norm": (
        lambda: ops.clip_by_norm(X, -1.0),
        r"\[clip_by_norm\] max_norm must be at least 0, got -1\.0",
    ),
    "norm of all": (
        lambda: ops.clip_by_global_norm((X,), -1.0),
        r"\[clip_by_global_norm\] clip_norm must be at least 0, got -1\.0",
    ),
    "norm of none": (
        lambda: ops.clip_by_global_norm(()),
        r"\[clip_by_global_norm\] x must hold at least one Tensor",
    ),
    "dropout of attention": (
        lambda: nn.MultiheadAttention(4, 2, dropout=2.0),
        r"\[MultiheadAttention\] dropout must be in \[0, 1\], got 2",
    ),
    "checkpoints to keep": (
        lambda: train.CheckpointConfig(keep_checkpoint_max=-1),
        r"\[CheckpointConfig\] keep_checkpoint_max must be at least 0, got -1",
    ),
    "segments": (
        lambda: ops.unsorted_segment_max(X, ROWS, -1),
        r"\[unsorted_segment_max\] num_segments must be at least 0, got -1",
    ),
    "new tensor": (lambda: ops.zeros((2, -1)), r"\[zeros\] size must not have negative sizes"),
    "scattered": (
        lambda: ops.scatter_nd(Tensor([[0]]), Tensor([1.0]), (-3,)),
        r"\[scatter_nd\] shape must not have negative sizes, got \(-3,\)",
    ),
    "turns": (
        lambda: ops.Scan()(lambda c, x: (c, c), X, None, -1),
        r"\[Scan\] length must be at least 0, got -1",
    ),
    "seed": (lambda: ms.set_seed(-1), r"\[set_seed\] seed must be at least 0"),
    "wide seed": (lambda: ms.set_seed(2**64), r"\[set_seed\] seed must be .* below 2\*\*64"),
    "window": (lambda: lamella.set_window(-1), r"\[set_window\] operations must be from 1 to"),
    "probabilities": (
        lambda: ops.cross_entropy(X, X[:, :2]),
        r"\[cross_entropy_with_probabilities\] target must have the shape of logits",
    ),
    "no cotangent": (lambda: ms.vjp(ops.sin, X)[1](), r"\[vjp\] .* 1 float Tensors, got .* for 0"),
}


@pytest.mark.parametrize("case", NO_VALUES)
def test_what_is_accepted_is_said(case):
    make, said = NO_VALUES[case]
    with pytest.raises(ValueError, match=said):
        make()


def test_labels_are_integers_or_probabilities_of_the_shape_of_the_scores():
    numbers = [0, 2]
    expected = ops.cross_entropy(X, Tensor(numbers, ms.int32)).item()
    for dtype in (ms.uint8, ms.int8, ms.int16, ms.int64):
        assert ops.cross_entropy(X, Tensor(numbers, dtype)).item() == expected
    probabilities = Tensor(np.eye(3, dtype=np.float32)[numbers])
    for loss in (ops.cross_entropy, nn.CrossEntropyLoss()):
        np.testing.assert_allclose(loss(X, probabilities).item(), expected, rtol=1e-6)


def test_a_large_unsigned_int_is_held():
    assert Tensor(2**64 - 1, ms.uint64).asnumpy() == np.uint64(2**64 - 1)


@pytest.mark.parametrize("kind", [int, np.int32, np.int64, np.uint8, Tensor])
def test_ints_of_every_class_are_ints(kind):
    assert ms.grad(ops.square, kind(0))(X).shape == (2, 3)
    left, right = ms.grad(lambda x, y: x * y, (kind(0), kind(1)))(X, X + 1)
    np.testing.assert_array_equal(left.asnumpy(), right.asnumpy() + 1)
    ms.set_seed(kind(7))
    drawn = ops.standard_normal((3,)).asnumpy()
    ms.set_seed(7)
    np.testing.assert_array_equal(ops.standard_normal((3,)).asnumpy(), drawn)
    assert type(ms.get_seed()) is int


@pytest.mark.parametrize("given", [None, "x", object()], ids=["None", "a str", "an object"])
@pytest.mark.parametrize("folder", ["ops", "mint", "mint.nn", "numpy"])
def test_what_is_no_tensor_is_refused_by_a_clear_error(folder, given):
    module = importlib.import_module(f"lamella.mindspore.{folder}._functions")
    others = {}
    for name in module.__all__:
        function = getattr(module, name)
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
        try:
            function(*[given] * max(len(needed), 1))  # a few take it: a test of what is a tensor
        except (TypeError, ValueError):
            continue
        except Exception as error:
            others[name] = repr(error)
    assert len(module.__all__) > 20
    assert others == {}


def test_what_is_no_tensor_is_named():
    with pytest.raises(TypeError, match=r"\[flatten\] input must be a Tensor, got None"):
        ops.flatten(None)
    with pytest.raises(TypeError, match=r"\[LayerNorm\] input_x must be a Tensor, got None"):
        ops.LayerNorm()(None, X, X)
    with pytest.raises(TypeError, match=r"\[nll_loss\] an argument must be a Tensor, got None"):
        ops.nll_loss(None, None)
    with pytest.raises(TypeError, match=r"\[einsum\] equation must be a str, got 3"):
        ops.einsum(3, X)


def test_too_many_arguments():
    with pytest.raises(TypeError, match="positional arguments"):
        nn.GELU(True, 1)


def test_the_line_of_the_program_is_named():
    with pytest.raises(TypeError, match=r"got 'x' at .*test_arguments\.py:\d+"):
        nn.Dense(2, "x")


def test_numbers_of_numpy_are_numbers():
    assert nn.Dense(np.int64(2), 3).weight.shape == (3, 2)
    assert nn.Dropout(p=np.float32(0.25)).p == 0.25
    assert amp.FixedLossScaleManager(np.float32(128)).get_loss_scale() == 128
    assert amp.StaticLossScaler(Tensor(4.0)).scale_value.item() == 4


SIZED = {
    "Linear": lambda two: mint.nn.Linear(np.prod((two, 3)), two).weight.shape == (2, 6),
    "Conv2d": lambda two: mint.nn.Conv2d(two, two, (two, two), groups=two)(IMAGES).shape[1] == 2,
    "Conv2d kernel": lambda two: mint.nn.Conv2d(2, 3, two)(IMAGES).shape == (1, 3, 3, 3),
    "ConvTranspose2d": lambda two: mint.nn.ConvTranspose2d(two, 3, two)(IMAGES).shape[1] == 3,
    "Embedding": lambda two: mint.nn.Embedding(two, two).weight.shape == (2, 2),
    "BatchNorm2d": lambda two: mint.nn.BatchNorm2d(two)(IMAGES).shape == IMAGES.shape,
    "LayerNorm": lambda two: mint.nn.LayerNorm((4, two * 2))(IMAGES).shape == IMAGES.shape,
    "GroupNorm": lambda two: mint.nn.GroupNorm(two, two)(IMAGES).shape == IMAGES.shape,
    "PReLU": lambda two: mint.nn.PReLU(two)(IMAGES).shape == IMAGES.shape,
    "TransformerEncoder": lambda two: (
        len(nn.TransformerEncoder(nn.TransformerEncoderLayer(2, 1, 2), two).trainable_params())
        == len(nn.TransformerEncoderLayer(2, 1, 2).trainable_params()) * 2
    ),
}


@pytest.mark.parametrize("case", SIZED)
def test_sizes_of_numpy_are_sizes(case):
    assert SIZED[case](np.int64(2))


@pytest.mark.parametrize("given", [True, np.bool_(True), 2.0, np.float32(2), "2"])
def test_what_is_no_size(given):
    with pytest.raises(TypeError, match=r"\[Linear\] in_features must be an int, got "):
        mint.nn.Linear(given, 2)
