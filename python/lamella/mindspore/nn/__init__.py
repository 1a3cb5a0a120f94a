"""mindspore.nn."""

from lamella.amp import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
from lamella.nn.cell import Cell
from lamella.nn.containers import CellDict, CellList, SequentialCell
from lamella.nn.layers import *
from lamella.nn.layers import get_activation
from lamella.nn.losses import *
from lamella.nn.optimizers import *
from lamella.nn.recurrent import *
from lamella.nn.transformer import *
from lamella.train import (
    TrainOneStepCell,
    TrainOneStepWithLossScaleCell,
    WithEvalCell,
    WithLossCell,
)
