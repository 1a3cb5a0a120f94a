"""mindspore.runtime."""

from lamella.names import missing
from lamella.runtime import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_memory,
    synchronize,
)

__getattr__ = missing(__name__, lambda: globals())
