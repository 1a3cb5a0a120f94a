"""mindspore.train."""

from lamella.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from lamella.train import *
from lamella.train import load_checkpoint, load_param_into_net, save_checkpoint
