"""What is said of an argument of a wrong type: who refuses it, which it is, what came."""

import lamella.alias  # noqa: F401
import mindspore as ms
import numpy as np
import pytest
from lamella.explanation import Explanation
from mindspore import Parameter, Tensor, amp, mint, nn, train

PARAMETERS = nn.Dense(2, 2).trainable_params()
NET = nn.Dense(2, 2)
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
}


@pytest.mark.parametrize("case", CASES)
def test_the_argument_is_named(case):
    make, said = CASES[case]
    with pytest.raises(TypeError, match=said) as raised:
        make()
    assert "incompatible function arguments" not in str(raised.value)


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


IMAGES = Tensor(np.ones((1, 2, 4, 4), np.float32))
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
