"""Memory of the process's tensors: what is used, reserved and was at most; limits; the cache.

Sizes are bytes of the pool of host memory that all tensors come from. Functions that read a figure
run what is pending first, so that it is that of the program up to the call.
"""

import re

from lamella import _native

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_memory",
    "synchronize",
]

_memory = _native.memory


def _now():
    _native.flush()
    return _memory.statistics()


def memory_allocated():
    """Bytes in tensors that exist."""
    return _now()["used"]


def memory_reserved():
    """Bytes held from the system: in tensors, or kept for the next ones."""
    return _now()["reserved"]


def max_memory_allocated():
    """The largest memory_allocated since the start or its reset."""
    return _now()["peak_used"]


def max_memory_reserved():
    """The largest memory_reserved since the start or its reset."""
    return _now()["peak_reserved"]


def reset_max_memory_allocated():
    """Lets max_memory_allocated begin at the present value."""
    _native.flush()
    _memory.reset_peak_used()


def reset_max_memory_reserved():
    """Lets max_memory_reserved begin at the present value."""
    _native.flush()
    _memory.reset_peak_reserved()


def reset_peak_memory_stats():
    """Lets both maxima begin at the present values."""
    reset_max_memory_allocated()
    reset_max_memory_reserved()


def memory_stats():
    """All figures by name; also how fragmented the pool is, and what windows need at least.

    planned_temporaries is what the last window's temporaries took, least_temporaries what lives of
    them at one step at most, which no plan can do with less than.
    """
    now = _now()
    counters = _native.counters()
    return {
        "total_reserved_memory": now["reserved"],
        "total_allocated_memory": now["used"],
        "total_idle_memory": now["reserved"] - now["used"],
        "max_reserved_memory": now["peak_reserved"],
        "max_allocated_memory": now["peak_used"],
        "allocation_count": now["allocation_count"],
        "fragmentation": now["fragmentation"],
        "planned_temporaries": counters["arena_bytes"],
        "least_temporaries": counters["arena_lower_bound"],
    }


def memory_summary():
    """The figures and the largest holders, as text."""
    stats = memory_stats()
    lines = [f"{name.replace('_', ' '):<26} {value:>16}" for name, value in stats.items()]
    held = {}
    for holder, size in _memory.holders():
        held[holder] = held.get(holder, 0) + size
    lines.append("held by:")
    largest = sorted(held.items(), key=lambda row: (-row[1], row[0]))[:20]
    lines += [f"  {size:>16}  {holder}" for holder, size in largest]
    return "\n".join(lines)


def empty_cache():
    """Gives memory that no tensor uses back to the system."""
    _native.flush()
    _memory.compact()


def _bytes_of(call, name, size):
    """Bytes of a size such as "2GB" or "0.5GB"."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*GB\s*", size) if isinstance(size, str) else None
    if match is None or float(match[1]) <= 0:
        raise ValueError(f'[{call}] {name} must be a text such as "2GB", got {size!r}')
    return int(float(match[1]) * (1 << 30))


def set_memory(
    init_size="2GB",
    increase_size="2GB",
    max_size="1024GB",
    optimize_level="O0",
    huge_page_reserve_size="0GB",
):
    """Limits the memory of tensors to max_size; the pool grows by need, whatever else is asked."""
    _bytes_of("set_memory", "init_size", init_size)
    _bytes_of("set_memory", "increase_size", increase_size)
    if optimize_level not in ("O0", "O1"):
        raise ValueError(f"[set_memory] optimize_level must be O0 or O1, got {optimize_level!r}")
    limit_memory("set_memory", "max_size", max_size)


def limit_memory(call, name, size):
    """Limits the memory of tensors to a size that an argument of a call gives."""
    limit = _bytes_of(call, name, size)
    _native.flush()
    _memory.set_limit(limit)


def synchronize():
    """Runs what is pending."""
    _native.flush()
