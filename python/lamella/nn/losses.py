"""Losses with the arguments MindSpore gives them."""

from lamella import _native
from lamella.nn.cell import layer

_nn = _native.nn
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
