"""mindspore.train."""

from lamella.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from lamella.names import missing
from lamella.train import *
from lamella.train import load_checkpoint, load_param_into_net, save_checkpoint

__getattr__ = missing(__name__, lambda: globals())
