"""mindspore.common.api."""

from lamella.jit import JitConfig, jit, jit_class, ms_class, ms_function
