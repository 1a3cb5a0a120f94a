"""The layers of mindspore.mint.nn: parameters around the functions of mint.nn.functional."""

import inspect
import math

from lamella import _native
from lamella._arguments import int_of as _int_of
from lamella._arguments import number_of
from lamella.dtypes import dtype_to_pytype
from lamella.mindspore.mint.nn import functional as F
from lamella.nn.cell import Cell, layer
from lamella.nn.initializers import Uniform, initializer
from lamella.nn.layers import Identity
from lamella.nn.parameter import Parameter


def _size(name, argument, value):
    """The int of at least 1 that an argument of a layer is."""
    size = _int_of(name, argument, value)
    if size < 1:
        raise ValueError(f"[{name}] {argument} must be at least 1, got {size}")
    return size


def _sizes(name, **arguments):
    """Those that several are, in order."""
    return [_size(name, argument, value) for argument, value in arguments.items()]


def _float(layer, dtype):
    """The dtype of a layer's parameters: a float's, float32 if none is given."""
    dtype = dtype or _native.float32
    if dtype_to_pytype(dtype) is not float:
        raise TypeError(
            f"[{type(layer).__name__}] dtype must be float16, bfloat16, float32 or float64, "
            f"got {dtype.name}"
        )
    return dtype


def _made(layer, shape, init, dtype, bound=None):
    """A parameter of a layer by an initializer, or uniform within a bound."""
    init = Uniform(bound) if init is None else init
    return Parameter(initializer(init, shape, _float(layer, dtype)))


# ---- Layers with parameters ----


@layer
class Linear(Cell):
    """input weight^T + bias."""

    def __init__(
        self, in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None
    ):
        super().__init__()
        in_features, out_features = _sizes(
            "Linear", in_features=in_features, out_features=out_features
        )
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features)
        self.weight = _made(self, (out_features, in_features), weight_init, dtype, bound)
        self.bias = _made(self, (out_features,), bias_init, dtype, bound) if bias else None

    def construct(self, x):
        return F.linear(x, self.weight, self.bias)

    def extend_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class _Convolution(Cell):
    """What convolutions of all ranks share."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
        padding_mode, dtype, rank,
    ):  # fmt: skip
        super().__init__()
        name = type(self).__name__
        if padding_mode != "zeros":
            raise NotImplementedError(
                f"[{name}] padding_mode must be 'zeros', got {padding_mode!r}"
            )
        in_channels, out_channels, groups = _sizes(
            name, in_channels=in_channels, out_channels=out_channels, groups=groups
        )
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"[{name}] in_channels {in_channels} and out_channels {out_channels} must divide "
                f"into {groups} groups"
            )
        kernel = tuple(kernel_size) if isinstance(kernel_size, (tuple, list)) else (kernel_size,)
        kernel = tuple(_size(name, "kernel_size", size) for size in kernel)
        kernel = kernel * rank if len(kernel) == 1 else kernel
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        shape = self._weight_shape(kernel)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight = _made(self, shape, None, dtype, bound)
        self.bias = _made(self, (out_channels,), None, dtype, bound) if bias else None

    def _weight_shape(self, kernel):
        return (self.out_channels, self.in_channels // self.groups, *kernel)

    def extend_repr(self):
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, groups={self.groups}, "
            f"bias={self.bias is not None}"
        )


def _convolution(name, rank, function):
    def __init__(  # noqa: N807
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        dtype=None,
    ):
        _Convolution.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype, rank,
        )  # fmt: skip

    def construct(self, input):
        return function(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    sizes = ", ".join("DHW"[3 - rank :])
    doc = f"""A convolution over {rank} spatial axes.

    x: float [N, in_channels, {sizes}]. Parameters weight [out, in / groups, *kernel] and, with
    bias, bias [out]; both begin uniform within 1 / sqrt(fan_in). padding: a number for each axis,
    "same" or "valid". ValueError for channels that do not divide into groups.
    """
    members = {"__init__": __init__, "construct": construct, "__module__": __name__, "__doc__": doc}
    return layer(type(name, (_Convolution,), members))


Conv1d = _convolution("Conv1d", 1, F.conv1d)
Conv2d = _convolution("Conv2d", 2, F.conv2d)
Conv3d = _convolution("Conv3d", 3, F.conv3d)


@layer
class ConvTranspose2d(_Convolution):
    """The transposed convolution."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        dtype=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, dtype, 2,
        )  # fmt: skip
        self.output_padding = output_padding

    def _weight_shape(self, kernel):
        return (self.in_channels, self.out_channels // self.groups, *kernel)

    def construct(self, input, output_size=None):
        if output_size is not None:
            raise NotImplementedError("[ConvTranspose2d] output_size: give output_padding")
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.groups, self.dilation,
        )  # fmt: skip


@layer
class Embedding(Cell):
    """Rows of a table."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        dtype=None,
    ):
        super().__init__()
        if max_norm is not None or scale_grad_by_freq:
            raise NotImplementedError(
                "[Embedding] max_norm and scale_grad_by_freq are not provided"
            )
        num_embeddings, embedding_dim = _sizes(
            "Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim
        )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        if _weight is None:
            _weight = initializer("normal", (num_embeddings, embedding_dim), _float(self, dtype))
            _weight = _native.operators_by_name.mul(_weight, 100.0)  # of deviation 1
            if padding_idx is not None:
                _weight[padding_idx] = 0
        self.weight = Parameter(_weight, requires_grad=not _freeze)

    def construct(self, input):
        return F.embedding(input, self.weight, self.padding_idx)


class _BatchNorm(Cell):
    """Statistics over all axes but the channels."""

    _ranks = ()

    def __init__(
        self,
        num_features,
        eps=1e-05,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        dtype=None,
    ):
        super().__init__()
        if momentum is None:
            raise NotImplementedError(f"[{type(self).__name__}] momentum must be a number")
        num_features = _size(type(self).__name__, "num_features", num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        self.weight = _made(self, shape, "ones", dtype) if affine else None
        self.bias = _made(self, shape, "zeros", dtype) if affine else None
        for name, init in (("running_mean", "zeros"), ("running_var", "ones")):
            tracked = _made(self, shape, init, dtype) if track_running_stats else None
            if tracked is not None:
                tracked.requires_grad = False
            setattr(self, name, tracked)

    def construct(self, input):
        if input.ndim not in self._ranks:
            ranks = " or ".join(map(str, self._ranks))
            raise ValueError(
                f"[{type(self).__name__}] input must have {ranks} axes, got shape {input.shape}"
            )
        by_batch = self.training or not self.track_running_stats
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_batch,
            self.momentum, self.eps,
        )  # fmt: skip


@layer
class BatchNorm1d(_BatchNorm):
    """Channels of x [N, C] or [N, C, L], normalised over the others: see BatchNorm2d."""

    _ranks = (2, 3)


@layer
class BatchNorm2d(_BatchNorm):
    """Each channel of x [N, C, H, W] less its mean, over its deviation, times weight plus bias.

    In training the statistics are the batch's, and running_mean and running_var take a step of the
    size momentum towards them; otherwise those are used, or the batch's if they are not tracked.
    Parameters weight, bias, running_mean, running_var [num_features]. ValueError for another rank.
    """

    _ranks = (4,)


@layer
class BatchNorm3d(_BatchNorm):
    """Channels of x [N, C, D, H, W], normalised over the others: see BatchNorm2d."""

    _ranks = (5,)


@layer
class LayerNorm(Cell):
    """Statistics over the last axes."""

    def __init__(self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, dtype=None):
        super().__init__()
        shape = normalized_shape
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        shape = tuple(_size("LayerNorm", "normalized_shape", size) for size in shape)
        self.normalized_shape, self.eps = shape, eps
        self.weight = _made(self, shape, "ones", dtype) if elementwise_affine else None
        self.bias = _made(self, shape, "zeros", dtype) if elementwise_affine and bias else None

    def construct(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


@layer
class GroupNorm(Cell):
    """Statistics over groups of channels."""

    def __init__(self, num_groups, num_channels, eps=1e-05, affine=True, dtype=None):
        super().__init__()
        num_groups, num_channels = _sizes(
            "GroupNorm", num_groups=num_groups, num_channels=num_channels
        )
        if num_channels % num_groups:
            raise ValueError(
                f"[GroupNorm] {num_channels} channels do not divide into {num_groups} groups"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = _made(self, (num_channels,), "ones", dtype) if affine else None
        self.bias = _made(self, (num_channels,), "zeros", dtype) if affine else None

    def construct(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


@layer
class PReLU(Cell):
    """input where it is positive, else input times a trained weight."""

    def __init__(self, num_parameters=1, init=0.25, dtype=None):
        super().__init__()
        num_parameters = _size("PReLU", "num_parameters", num_parameters)
        init = number_of("PReLU", "init", init)
        self.num_parameters = num_parameters
        self.weight = _made(self, (num_parameters,), init, dtype)

    def construct(self, input):
        return F.prelu(input, self.weight)


@layer
class Dropout(Cell):
    """Elements set to 0 at random, in training."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        p = number_of(type(self).__name__, "p", p)
        if not 0 <= p <= 1:
            raise ValueError(f"[{type(self).__name__}] p must be in [0, 1], got {p}")
        self.p, self.inplace = p, inplace

    def construct(self, input):
        return F.dropout(input, self.p, self.training)


@layer
class Dropout2d(Dropout):
    """Channels set to 0 at random, in training."""

    def construct(self, input):
        return F.dropout2d(input, self.p, self.training)


# ---- Layers without ----


def _plain(name, signature, compute):
    """A layer that keeps its settings and calls compute(layer, *inputs)."""
    parameters = inspect.signature(eval(f"lambda {signature}: 0")).parameters
    shown = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters.values()]
    )

    def __init__(self, *args, **kwargs):  # noqa: N807
        Cell.__init__(self)
        bound = shown.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for setting in parameters:
            if setting not in ("auto_prefix", "flags"):
                setattr(self, setting, bound.arguments[setting])

    __init__.__signature__ = shown

    def construct(self, *inputs):
        return compute(self, *inputs)

    # What the function says that the layer calls.
    called = [used for used in compute.__code__.co_names if used in F._functions.__all__]
    says = getattr(F, called[0]).__doc__.partition("\n\nMeans ")[0]
    says = "" if says.startswith("Means ") else f"{says}\n\n"
    members = {
        "__init__": __init__,
        "construct": construct,
        "__module__": __name__,
        "__doc__": f"{says}The layer of mint.nn.functional.{called[0]}, with its arguments.",
    }
    return layer(type(name, (Cell,), members))


_IN_PLACE = "inplace=False"
ReLU = _plain("ReLU", "", lambda s, x: F.relu(x))
ReLU6 = _plain("ReLU6", _IN_PLACE, lambda s, x: F.relu6(x))
SiLU = _plain("SiLU", _IN_PLACE, lambda s, x: F.silu(x))
Sigmoid = _plain("Sigmoid", "", lambda s, x: F.sigmoid(x))
LogSigmoid = _plain("LogSigmoid", "", lambda s, x: F.logsigmoid(x))
Tanh = _plain("Tanh", "", lambda s, x: F.tanh(x))
Mish = _plain("Mish", "auto_prefix=True, flags=None", lambda s, x: F.mish(x))
SELU = _plain("SELU", "auto_prefix=True, flags=None", lambda s, x: F.selu(x))
Hardsigmoid = _plain("Hardsigmoid", "", lambda s, x: F.hardsigmoid(x))
Hardswish = _plain("Hardswish", "", lambda s, x: F.hardswish(x))
Hardshrink = _plain("Hardshrink", "lambd=0.5", lambda s, x: F.hardshrink(x, s.lambd))
Softshrink = _plain("Softshrink", "lambd=0.5", lambda s, x: F.softshrink(x, s.lambd))
ELU = _plain("ELU", f"alpha=1.0, {_IN_PLACE}", lambda s, x: F.elu(x, s.alpha))
GELU = _plain("GELU", "approximate='none'", lambda s, x: F.gelu(x, approximate=s.approximate))
GLU = _plain("GLU", "dim=-1", lambda s, x: F.glu(x, s.dim))
Softmax = _plain("Softmax", "dim=None", lambda s, x: F.softmax(x, s.dim))
LogSoftmax = _plain("LogSoftmax", "dim=None", lambda s, x: F.log_softmax(x, s.dim))
Hardtanh = _plain(
    "Hardtanh", f"min_val=-1.0, max_val=1.0, {_IN_PLACE}",
    lambda s, x: F.hardtanh(x, s.min_val, s.max_val),
)  # fmt: skip
Threshold = _plain(
    "Threshold", f"threshold, value, {_IN_PLACE}", lambda s, x: F.threshold(x, s.threshold, s.value)
)
Flatten = _plain(
    "Flatten", "start_dim=1, end_dim=-1", lambda s, x: F.flatten(x, s.start_dim, s.end_dim)
)

# ---- Pooling and padding ----

AvgPool1d = _plain(
    "AvgPool1d", "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
    lambda s, x: F.avg_pool1d(
        x, s.kernel_size, s.stride, s.padding, s.ceil_mode, s.count_include_pad
    ),
)  # fmt: skip
_AVERAGE = (
    "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=None"
)
AvgPool2d = _plain(
    "AvgPool2d", _AVERAGE,
    lambda s, x: F.avg_pool2d(
        x, s.kernel_size, s.stride, s.padding, s.ceil_mode, s.count_include_pad, s.divisor_override
    ),
)  # fmt: skip
AvgPool3d = _plain(
    "AvgPool3d", _AVERAGE,
    lambda s, x: F.avg_pool3d(
        x, s.kernel_size, s.stride, s.padding, s.ceil_mode, s.count_include_pad, s.divisor_override
    ),
)  # fmt: skip
MaxPool2d = _plain(
    "MaxPool2d",
    "kernel_size=1, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
    lambda s, x: F.max_pool2d(
        x, s.kernel_size, s.stride, s.padding, s.dilation, ceil_mode=s.ceil_mode,
        return_indices=s.return_indices,
    ),
)  # fmt: skip
AdaptiveAvgPool1d = _plain(
    "AdaptiveAvgPool1d", "output_size", lambda s, x: F.adaptive_avg_pool1d(x, s.output_size)
)
AdaptiveAvgPool2d = _plain(
    "AdaptiveAvgPool2d", "output_size", lambda s, x: F.adaptive_avg_pool2d(x, s.output_size)
)
AdaptiveAvgPool3d = _plain(
    "AdaptiveAvgPool3d", "output_size", lambda s, x: F.adaptive_avg_pool3d(x, s.output_size)
)


def _padding(name, rank, mode, with_value=False):
    def compute(self, x):
        around = self.padding
        around = tuple(around) if isinstance(around, (tuple, list)) else (around,) * (2 * rank)
        if mode == "constant":
            return F.pad(x, around, mode, self.value if with_value else 0.0)
        return F.pad(x, around, mode)

    return _plain(name, "padding, value" if with_value else "padding", compute)


ConstantPad1d = _padding("ConstantPad1d", 1, "constant", True)
ConstantPad2d = _padding("ConstantPad2d", 2, "constant", True)
ConstantPad3d = _padding("ConstantPad3d", 3, "constant", True)
ZeroPad1d = _padding("ZeroPad1d", 1, "constant")
ZeroPad2d = _padding("ZeroPad2d", 2, "constant")
ZeroPad3d = _padding("ZeroPad3d", 3, "constant")
ReflectionPad1d = _padding("ReflectionPad1d", 1, "reflect")
ReflectionPad2d = _padding("ReflectionPad2d", 2, "reflect")
ReflectionPad3d = _padding("ReflectionPad3d", 3, "reflect")
ReplicationPad1d = _padding("ReplicationPad1d", 1, "replicate")
ReplicationPad2d = _padding("ReplicationPad2d", 2, "replicate")
ReplicationPad3d = _padding("ReplicationPad3d", 3, "replicate")

# ---- Losses ----

_REDUCED = "reduction='mean'"
L1Loss = _plain("L1Loss", _REDUCED, lambda s, x, y: F.l1_loss(x, y, s.reduction))
MSELoss = _plain("MSELoss", _REDUCED, lambda s, x, y: F.mse_loss(x, y, s.reduction))
SoftMarginLoss = _plain(
    "SoftMarginLoss", _REDUCED, lambda s, x, y: F.soft_margin_loss(x, y, s.reduction)
)
SmoothL1Loss = _plain(
    "SmoothL1Loss", f"{_REDUCED}, beta=1.0",
    lambda s, x, y: F.smooth_l1_loss(x, y, s.reduction, s.beta),
)  # fmt: skip
KLDivLoss = _plain(
    "KLDivLoss", f"{_REDUCED}, log_target=False",
    lambda s, x, y: F.kl_div(x, y, s.reduction, s.log_target),
)  # fmt: skip
BCELoss = _plain(
    "BCELoss", f"weight=None, {_REDUCED}",
    lambda s, x, y: F.binary_cross_entropy(x, y, s.weight, s.reduction),
)  # fmt: skip
BCEWithLogitsLoss = _plain(
    "BCEWithLogitsLoss", f"weight=None, {_REDUCED}, pos_weight=None",
    lambda s, x, y: F.binary_cross_entropy_with_logits(x, y, s.weight, s.reduction, s.pos_weight),
)  # fmt: skip
CrossEntropyLoss = _plain(
    "CrossEntropyLoss", f"weight=None, ignore_index=-100, {_REDUCED}, label_smoothing=0.0",
    lambda s, x, y: F.cross_entropy(
        x, y, s.weight, s.ignore_index, s.reduction, s.label_smoothing
    ),
)  # fmt: skip
NLLLoss = _plain(
    "NLLLoss", f"weight=None, ignore_index=-100, {_REDUCED}",
    lambda s, x, y: F.nll_loss(x, y, s.weight, s.ignore_index, s.reduction),
)  # fmt: skip

__all__ = [
    name
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Cell) and not name.startswith("_")
    and value is not Cell
]  # fmt: skip
