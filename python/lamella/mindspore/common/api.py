"""mindspore.common.api."""

from lamella.jit import JitConfig, jit
