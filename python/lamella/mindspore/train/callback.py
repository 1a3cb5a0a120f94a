"""mindspore.train.callback."""

from lamella.train import *
