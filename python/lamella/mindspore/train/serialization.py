"""mindspore.train.serialization."""

from lamella.train import *
