"""Losses with the arguments MindSpore gives them."""

from lamella import _native
from lamella.nn.cell import layer

_nn = _native.nn
_o = _native.operators_by_name
LossBase = _nn.LossBase
LossBase.__doc__ = """Base of losses: get_loss(losses, weights=1.0) reduces what subclasses compute.

reduction: "mean", "sum" or "none".
"""


@layer
class MSELoss(_nn.MSELoss):
    """(logits - labels)^2.

    Float tensors of shapes that broadcast; reduction: "mean", "sum" or "none".
    """

    def __init__(self, reduction="mean"):
        super().__init__(reduction)


@layer
class L1Loss(_nn.L1Loss):
    """|logits - labels|.

    Float tensors of shapes that broadcast; reduction: "mean", "sum" or "none".
    """

    def __init__(self, reduction="mean"):
        super().__init__(reduction)


@layer
class SmoothL1Loss(_nn.SmoothL1Loss):
    """d^2 / (2 beta) where d = |logits - labels| < beta, else d - beta / 2.

    Float tensors of one shape; the result has that shape unless a reduction is asked for.
    """

    def __init__(self, beta=1.0, reduction="none"):
        super().__init__(beta, reduction)


@layer
class SoftmaxCrossEntropyWithLogits(_nn.SoftmaxCrossEntropyWithLogits):
    """-log(softmax(logits)) at the labels.

    logits: float [N, C]. labels: with sparse, int32 or int64 [N], the numbers of the classes; else
    of logits' shape and dtype, a distribution over the classes. Result [N] unless reduction is
    "mean" or "sum". IndexError, when it runs, for a class outside [0, C).
    """

    def __init__(self, sparse=False, reduction="none"):
        super().__init__(sparse, reduction)


@layer
class CrossEntropyLoss(_nn.CrossEntropyLoss):
    """Cross entropy of logits and labels.

    logits: float [N, C, ...]. labels: class numbers, int32 or int64 [N, ...], or probabilities of
    logits' shape. weight: of each class, [C]. Samples of the class ignore_index do not count;
    label_smoothing in [0, 1] mixes in the uniform distribution. Result a number, [N, ...] with
    reduction="none".
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(weight, ignore_index, reduction, label_smoothing)


@layer
class BCEWithLogitsLoss(_nn.BCEWithLogitsLoss):
    """Binary cross entropy of sigmoid(input), computed without overflow.

    input, target: float, of one shape. weight (of each element) and pos_weight (of the positive
    part) broadcast.
    """

    def __init__(self, reduction="mean", weight=None, pos_weight=None):
        super().__init__(reduction, weight, pos_weight)


@layer
class NLLLoss(_nn.NLLLoss):
    """-logits at the labels, for logits that are logarithms of probabilities.

    logits: float [N, C, ...]; labels: int32 or int64 [N, ...]; weight: of each class, [C].
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(weight, ignore_index, reduction)


@layer
class BCELoss(_nn.BCELoss):
    """-(label log(logit) + (1 - label) log(1 - logit)), for probabilities.

    Float tensors of one shape; weight broadcasts.
    """

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(weight, reduction)


@layer
class HuberLoss(_nn.HuberLoss):
    """d^2 / 2 where d = |logits - labels| <= delta, else delta (d - delta / 2)."""

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction, delta)


@layer
class RMSELoss(_nn.RMSELoss):
    """sqrt(mean((logits - labels)^2)), a number."""

    def __init__(self):
        super().__init__()


@layer
class MAELoss(LossBase):
    """|logits - label|. Float tensors of shapes that broadcast."""

    def __init__(self, reduction="mean"):
        super().__init__(reduction)

    def construct(self, logits, label):
        return self.get_loss(_o.abs(_o.sub(logits, label)))


@layer
class KLDivLoss(LossBase):
    """label (log(label) - logits), for logits that are logarithms of probabilities.

    Float tensors of one shape; reduction: "mean", "sum" or "none".
    """

    def __init__(self, reduction="mean"):
        super().__init__("mean")
        self.reduction = reduction

    def construct(self, logits, labels):
        from lamella.mindspore.ops import kl_div

        return kl_div(logits, labels, self.reduction)


@layer
class SoftMarginLoss(LossBase):
    """log(1 + exp(-label logit)), for labels of -1 and 1. Float tensors of one shape."""

    def __init__(self, reduction="mean"):
        super().__init__(reduction)
        self.reduction = reduction

    def construct(self, logits, labels):
        from lamella.mindspore.ops import soft_margin_loss

        return soft_margin_loss(logits, labels, self.reduction)
