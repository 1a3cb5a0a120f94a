"""mindspore.boost."""

from lamella.train import GradientAccumulation
