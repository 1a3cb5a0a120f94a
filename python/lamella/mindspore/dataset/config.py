"""mindspore.dataset.config: settings of every dataset of the process, as functions and values."""

import sys
import types

from lamella._native import data as _data
from lamella.dataset import functions as _functions
from lamella.dataset.functions import get_enable_shared_mem, set_enable_shared_mem

_accepted = {"dynamic_shape": False, "auto_num_workers": False}

set_seed = _data.config.set_seed
get_seed = _data.config.seed
set_num_parallel_workers = _data.config.set_num_parallel_workers
get_num_parallel_workers = _data.config.num_parallel_workers
set_prefetch_size = _data.config.set_prefetch_size
get_prefetch_size = _data.config.prefetch_size


def set_dynamic_shape(is_dynamic):
    """Accepted: graphs follow the sizes of batches by themselves."""
    _accepted["dynamic_shape"] = is_dynamic


def get_dynamic_shape():
    """What set_dynamic_shape was given."""
    return _accepted["dynamic_shape"]


def set_auto_num_workers(enable):
    """Accepted: workers are as many as processors, at most 8, unless a program says otherwise."""
    if not isinstance(enable, bool):
        raise TypeError(f"[set_auto_num_workers] enable must be a bool, got {enable!r}")
    _accepted["auto_num_workers"] = enable


def get_auto_num_workers():
    """What set_auto_num_workers was given."""
    return _accepted["auto_num_workers"]


def set_multiprocessing_start_method(start_method="fork"):
    """How worker processes start; only by fork, since users' functions need not pickle."""
    if start_method != "fork":
        raise NotImplementedError(
            f"[set_multiprocessing_start_method] only 'fork' is supported, got {start_method!r}"
        )


def get_multiprocessing_start_method():
    """How worker processes start: "fork"."""
    return "fork"


class _Settings(types.ModuleType):
    """Settings that may also be assigned: config.prefetch_size = 32."""

    prefetch_size = property(
        lambda self: get_prefetch_size(), lambda self, size: set_prefetch_size(size)
    )
    max_rowsize = property(
        lambda self: _functions.get_max_rowsize(),
        lambda self, size: _functions.set_max_rowsize(size),
    )
    dynamic_shape = property(
        lambda self: get_dynamic_shape(), lambda self, value: set_dynamic_shape(value)
    )


sys.modules[__name__].__class__ = _Settings
