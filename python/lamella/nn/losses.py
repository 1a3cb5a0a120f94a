"""Losses with the arguments MindSpore gives them."""

from lamella import _native
from lamella.nn.cell import layer

_nn = _native.nn
_o = _native.operators_by_name
LossBase = _nn.LossBase


@layer
class MSELoss(_nn.MSELoss):
    def __init__(self, reduction="mean"):
        super().__init__(reduction)


@layer
class L1Loss(_nn.L1Loss):
    def __init__(self, reduction="mean"):
        super().__init__(reduction)


@layer
class SmoothL1Loss(_nn.SmoothL1Loss):
    def __init__(self, beta=1.0, reduction="none"):
        super().__init__(beta, reduction)


@layer
class SoftmaxCrossEntropyWithLogits(_nn.SoftmaxCrossEntropyWithLogits):
    def __init__(self, sparse=False, reduction="none"):
        super().__init__(sparse, reduction)


@layer
class CrossEntropyLoss(_nn.CrossEntropyLoss):
    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(weight, ignore_index, reduction, label_smoothing)


@layer
class BCEWithLogitsLoss(_nn.BCEWithLogitsLoss):
    def __init__(self, reduction="mean", weight=None, pos_weight=None):
        super().__init__(reduction, weight, pos_weight)


@layer
class NLLLoss(_nn.NLLLoss):
    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(weight, ignore_index, reduction)


@layer
class BCELoss(_nn.BCELoss):
    def __init__(self, weight=None, reduction="mean"):
        super().__init__(weight, reduction)


@layer
class HuberLoss(_nn.HuberLoss):
    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction, delta)


@layer
class RMSELoss(_nn.RMSELoss):
    def __init__(self):
        super().__init__()


@layer
class MAELoss(LossBase):
    """The absolute difference."""

    def __init__(self, reduction="mean"):
        super().__init__(reduction)

    def construct(self, logits, label):
        return self.get_loss(_o.abs(_o.sub(logits, label)))


@layer
class KLDivLoss(LossBase):
    """label (log(label) - logits), for logits that are logarithms of probabilities."""

    def __init__(self, reduction="mean"):
        super().__init__("mean")
        self.reduction = reduction

    def construct(self, logits, labels):
        from lamella.mindspore.ops import kl_div

        return kl_div(logits, labels, self.reduction)


@layer
class SoftMarginLoss(LossBase):
    """log(1 + exp(-label logit))."""

    def __init__(self, reduction="mean"):
        super().__init__(reduction)
        self.reduction = reduction

    def construct(self, logits, labels):
        from lamella.mindspore.ops import soft_margin_loss

        return soft_margin_loss(logits, labels, self.reduction)
