"""Layers with the arguments MindSpore gives them."""

from lamella import _native
from lamella._arguments import number_of
from lamella.nn.cell import Cell, layer

_nn = _native.nn


def _check_format(data_format, name):
    if data_format not in ("NCHW", "NCDHW", "NCL"):
        raise ValueError(f"[{name}] data_format must be 'NCHW', got {data_format!r}")


def _has_bias(self):
    return self._find("bias") is not None


def _set_has_bias(self, has_bias):
    if not has_bias:
        self.bias = None
    elif not _has_bias(self):
        raise ValueError(f"[{type(self).__name__}] has_bias follows from the bias: assign one")


class _WithBias:
    """What layers with an optional bias share: whether there is one says the parameter."""

    has_bias = property(_has_bias, _set_has_bias)

    def _or_none(self, *names):
        for name in names:
            if self._find(name) is None:
                self.__dict__[name] = None


@layer
class Dense(_WithBias, _nn.Dense):
    """activation(x weight^T + bias).

    x: float [..., in_channels]; result [..., out_channels]. Parameters weight [out, in] and, with
    has_bias, bias [out]. activation: a name such as "relu", a cell, or None. Weights and biases
    begin uniform within 1 / sqrt(in_channels) unless an initializer is given. ValueError for sizes
    below 1.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        activation=None,
        dtype=_native.float32,
    ):
        super().__init__(
            in_channels, out_channels, weight_init, bias_init, has_bias, activation, dtype
        )
        self.__dict__.update(in_channels=in_channels, out_channels=out_channels)
        self._or_none("bias", "activation")


@layer
class Embedding(_nn.Embedding):
    """Rows of a table, by their numbers.

    x: int32 or int64 of any shape; result x.shape + [embedding_size]. Parameter embedding_table
    [vocab_size, embedding_size]. The row padding_idx begins as zeros and gets no gradient.
    IndexError, when it runs, for a number outside the table.
    """

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=_native.float32,
        padding_idx=None,
    ):
        super().__init__(vocab_size, embedding_size, embedding_table, padding_idx, dtype)
        self.__dict__.update(
            vocab_size=vocab_size, embedding_size=embedding_size, padding_idx=padding_idx
        )


@layer
class Conv2d(_WithBias, _nn.Conv2d):
    """A convolution over images.

    x: float [N, in_channels, H, W]; result [N, out_channels, H', W']. Parameters weight
    [out, in / group, *kernel] and, with has_bias, bias [out]. pad_mode: "same" (H' = H / stride,
    rounded up), "valid" (none) or "pad" (by padding: one number, or top, bottom, left, right).
    ValueError for sizes below 1, channels that do not divide into groups, and padding without
    pad_mode="pad".
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        data_format="NCHW",
        dtype=_native.float32,
    ):
        _check_format(data_format, "Conv2d")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group,
            has_bias, weight_init, bias_init, dtype,
        )  # fmt: skip
        self.__dict__.update(
            in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size,
            stride=stride, pad_mode=pad_mode, padding=padding, dilation=dilation, group=group,
        )  # fmt: skip
        self._or_none("bias")


@layer
class Conv2dTranspose(_WithBias, _nn.Conv2dTranspose):
    """The transposed convolution: the gradient of Conv2d with respect to its input.

    x: float [N, in_channels, H, W]; result [N, out_channels, H', W']. Parameters weight
    [in, out / group, *kernel] and, with has_bias, bias [out]. Arguments and errors as in Conv2d;
    output_padding adds to H' and W'.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        output_padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        dtype=_native.float32,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, output_padding,
            dilation, group, has_bias, weight_init, bias_init, dtype,
        )  # fmt: skip
        self.__dict__.update(
            in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size,
            stride=stride, pad_mode=pad_mode, padding=padding, dilation=dilation, group=group,
        )  # fmt: skip
        self._or_none("bias")


def _batch_norm(native, name, shape, with_format=True):
    if with_format:

        def __init__(  # noqa: N807
            self,
            num_features,
            eps=1e-05,
            momentum=0.9,
            affine=True,
            gamma_init="ones",
            beta_init="zeros",
            moving_mean_init="zeros",
            moving_var_init="ones",
            use_batch_statistics=None,
            data_format="NCHW",
            dtype=_native.float32,
        ):
            _check_format(data_format, name)
            native.__init__(
                self, num_features, eps, momentum, affine, gamma_init, beta_init,
                moving_mean_init, moving_var_init, use_batch_statistics, dtype,
            )  # fmt: skip
            self.__dict__.update(num_features=num_features, eps=eps, momentum=momentum)

    doc = f"""Each channel less its mean, over its deviation, times gamma plus beta.

    x: float {shape}. In training the statistics are the batch's, and the moving ones become
    momentum times the old value plus the rest of the new; otherwise the moving ones are used.
    use_batch_statistics, if given, says which. Parameters moving_mean, moving_variance (not
    trained), gamma, beta [num_features]. ValueError for x of another rank. (Ioffe, Szegedy, 2015)
    """
    members = {"__init__": __init__, "__module__": __name__, "__doc__": doc}
    return layer(type(name, (native,), members))


BatchNorm1d = _batch_norm(_nn.BatchNorm1d, "BatchNorm1d", "[N, C] or [N, C, L]")
BatchNorm2d = _batch_norm(_nn.BatchNorm2d, "BatchNorm2d", "[N, C, H, W]")


@layer
class LayerNorm(_nn.LayerNorm):
    """Each sample less its mean, over its deviation, times gamma plus beta (Ba et al., 2016).

    Statistics are those of the axes from begin_norm_axis on, whose sizes are normalized_shape (a
    tuple); x is a float tensor that ends in these sizes. Parameters gamma, beta of that shape.
    """

    def __init__(
        self,
        normalized_shape,
        begin_norm_axis=-1,
        begin_params_axis=-1,
        gamma_init="ones",
        beta_init="zeros",
        epsilon=1e-07,
        dtype=_native.float32,
    ):
        super().__init__(normalized_shape, begin_norm_axis, gamma_init, beta_init, epsilon, dtype)
        self.__dict__.update(normalized_shape=normalized_shape, epsilon=epsilon)


@layer
class GroupNorm(_nn.GroupNorm):
    """Channels in groups, each normalised in each sample (Wu and He, 2018).

    x: float [N, num_channels, ...]. Parameters gamma, beta [num_channels]. ValueError for channels
    that do not divide into the groups.
    """

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-05,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=_native.float32,
    ):
        super().__init__(num_groups, num_channels, eps, affine, gamma_init, beta_init, dtype)
        self.__dict__.update(num_groups=num_groups, num_channels=num_channels, eps=eps)


@layer
class Dropout(_nn.Dropout):
    """Elements set to 0 at random in training, the others divided by the probability of staying.

    x: float of any shape. p is the probability of becoming 0; keep_prob, the first argument, that
    of staying, and counts if p is not given. Does nothing outside of training. ValueError for
    probabilities outside [0, 1].
    """

    def __init__(self, keep_prob=0.5, p=None, dtype=_native.float32):
        p = 1 - number_of("Dropout", "keep_prob", keep_prob) if p is None else p
        super().__init__(p)
        self.__dict__.update(p=p, keep_prob=1 - p)


@layer
class Flatten(_nn.Flatten):
    """The axes from start_dim to end_dim, both included, as one: [N, C, H, W] to [N, C H W]."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__(start_dim, end_dim)


@layer
class MaxPool2d(_nn.MaxPool2d):
    """The largest element of each window.

    x: [N, C, H, W]; result [N, C, H', W']. pad_mode: "valid", "same", or "pad" by padding; with
    ceil_mode a last window may reach over the end. NotImplementedError for return_indices:
    ops.max_pool2d gives them.
    """

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
        data_format="NCHW",
    ):
        _check_format(data_format, "MaxPool2d")
        if return_indices:
            raise NotImplementedError("[MaxPool2d] return_indices: use ops.max_pool2d")
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, ceil_mode)


@layer
class AvgPool2d(_nn.AvgPool2d):
    """The mean of each window.

    x: float [N, C, H, W]; result [N, C, H', W']. pad_mode: "valid", "same", or "pad" by padding;
    with count_include_pad padding counts in the number divided by, divisor_override replaces it.
    """

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
        data_format="NCHW",
    ):
        _check_format(data_format, "AvgPool2d")
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override
        )


@layer
class AdaptiveAvgPool2d(_nn.AdaptiveAvgPool2d):
    """The mean of windows that divide the image into output_size parts.

    x: float [N, C, H, W]; result [N, C, *output_size]. output_size: one number or two.
    """

    def __init__(self, output_size):
        super().__init__(output_size)


def _plain(name, operator):
    native = getattr(_nn, name)
    says = getattr(_native.operators_by_name, operator).__doc__

    def __init__(self):  # noqa: N807
        native.__init__(self)

    doc = f"{says}\n\nx: float of any shape."
    members = {"__init__": __init__, "__module__": __name__, "__doc__": doc}
    return layer(type(name, (native,), members))


ReLU = _plain("ReLU", "relu")
ReLU6 = _plain("ReLU6", "relu6")
Sigmoid = _plain("Sigmoid", "sigmoid")
Tanh = _plain("Tanh", "tanh")
SiLU = _plain("SiLU", "silu")
Mish = _plain("Mish", "mish")
HSigmoid = _plain("HSigmoid", "hardsigmoid")
HSwish = _plain("HSwish", "hardswish")
LogSigmoid = _plain("LogSigmoid", "logsigmoid")
SeLU = _plain("SeLU", "selu")
SoftSign = Softsign = _plain("SoftSign", "softsign")
Softplus = _plain("Softplus", "softplus")
Tanhshrink = _plain("Tanhshrink", "tanhshrink")


@layer
class Identity(_nn.Identity):
    """The input itself; arguments are accepted and mean nothing."""

    def __init__(self, *args, **kwargs):
        super().__init__()


@layer
class LeakyReLU(_nn.LeakyReLU):
    """x where x > 0, else alpha x. x: float of any shape."""

    def __init__(self, alpha=0.2):
        super().__init__(alpha)


@layer
class ELU(_nn.ELU):
    """x where x > 0, else alpha (exp(x) - 1). x: float of any shape."""

    def __init__(self, alpha=1.0):
        super().__init__(alpha)


@layer
class CELU(_nn.CELU):
    """x where x > 0, else alpha (exp(x / alpha) - 1). x: float of any shape."""

    def __init__(self, alpha=1.0):
        super().__init__(alpha)


@layer
class HShrink(_nn.HShrink):
    """x where |x| > lambd, else 0. x: float of any shape."""

    def __init__(self, lambd=0.5):
        super().__init__(lambd)


@layer
class SoftShrink(_nn.SoftShrink):
    """x moved towards 0 by lambd, and 0 where it would pass it. x: float of any shape."""

    def __init__(self, lambd=0.5):
        super().__init__(lambd)


@layer
class GELU(_nn.GELU):
    """x times the normal distribution function of x; with approximate in its tanh form."""

    def __init__(self, approximate=True):
        super().__init__(approximate)


@layer
class Softmax(_nn.Softmax):
    """exp(x) divided by its sum along axis. x: float of any shape."""

    def __init__(self, axis=-1):
        super().__init__(axis)


@layer
class LogSoftmax(_nn.LogSoftmax):
    """The logarithm of softmax along axis. x: float of any shape."""

    def __init__(self, axis=-1):
        super().__init__(axis)


@layer
class PReLU(_nn.PReLU):
    """x where x > 0, else x times a trained weight.

    x: float. Parameter weight [channel], one number for all or one for each channel (axis 1), which
    begins as w: a number, or a tensor of that shape.
    """

    def __init__(self, channel=1, w=0.25):
        super().__init__(channel, w)


def get_activation(name, prim_name=None):
    """The activation of a name; None for no name."""
    return _nn.get_activation(name) if name else None


@layer
class MatMul(Cell):
    """The product of two matrices, or batches of them, either transposed first.

    x1 [..., n, k], x2 [..., k, m]; result [..., n, m]. ValueError for sizes that do not fit.
    """

    def __init__(self, transpose_x1=False, transpose_x2=False):
        super().__init__()
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1, x2):
        from lamella.adapt import batch_matmul

        return batch_matmul(x1, x2, self.transpose_x1, self.transpose_x2)


@layer
class OneHot(Cell):
    """Indices as vectors: on_value at the index, off_value elsewhere.

    indices: int32 or int64 of any shape; result with a new axis of size depth at `axis`.
    """

    def __init__(self, axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=_native.float32):
        super().__init__()
        self.axis, self.depth, self.dtype = axis, depth, dtype
        self.on_value, self.off_value = on_value, off_value

    def construct(self, indices):
        from lamella.adapt import one_hot

        return one_hot(indices, self.depth, self.on_value, self.off_value, self.axis, self.dtype)


@layer
class Pad(Cell):
    """Elements around x.

    paddings: (before, after) for each axis. mode: "CONSTANT" (zeros), "REFLECT" (mirrored without
    the border) or "SYMMETRIC" (mirrored with it).
    """

    def __init__(self, paddings, mode="CONSTANT"):
        super().__init__()
        self.paddings, self.mode = paddings, mode

    def construct(self, x):
        modes = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
        if self.mode not in modes:
            raise ValueError(f"[Pad] mode must be one of {', '.join(modes)}, got {self.mode!r}")
        before, after = zip(*self.paddings, strict=True)
        return _native.operators_by_name.pad(x, 0, before, after, modes[self.mode])
