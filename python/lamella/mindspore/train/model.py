"""mindspore.train.model."""

from lamella.train import *
