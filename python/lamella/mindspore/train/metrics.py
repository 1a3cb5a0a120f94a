"""mindspore.train.metrics."""

from lamella.train import *
