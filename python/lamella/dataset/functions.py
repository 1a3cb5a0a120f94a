"""Users' functions as the pipeline calls them: (numbers, arrays) -> (numbers, arrays).

The form is the one that goes to worker processes and back (python/src/user_function.h).
"""

import sys

import numpy as np

from lamella import _native
from lamella.dataset import workers  # noqa: F401 (says how users' functions are called)
from lamella.dataset.calls import call

_MEBIBYTE = 1 << 20
_shared_memory = True
_max_rowsize = 16


class BatchInfo:
    """What functions over batches are told."""

    def __init__(self, epoch, batch):
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self):
        return self._epoch

    def get_batch_num(self):
        return self._batch


def set_enable_shared_mem(enable):
    """Whether worker processes that are started from now on share memory with this one."""
    global _shared_memory
    if not isinstance(enable, bool):
        raise TypeError(f"[set_enable_shared_mem] enable must be a bool, got {enable!r}")
    _shared_memory = enable


def get_enable_shared_mem():
    """Whether rows come back from worker processes through shared memory."""
    return _shared_memory


def _is_size(size):
    return isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size > 0


def set_max_rowsize(size):
    """MiB of memory shared with each worker process where an operation does not say."""
    global _max_rowsize
    if not _is_size(size):
        raise ValueError(f"[config] max_rowsize must be a positive number of MiB, got {size!r}")
    _max_rowsize = size


def get_max_rowsize():
    """MiB of memory shared with each worker process where an operation does not say."""
    return _max_rowsize


def shared_bytes(operation, processes, max_rowsize):
    """Memory shared with each worker process, None without processes. Rows beyond it go through a
    channel. `max_rowsize` is in MiB: a number, -1 or None for the default, or a list of two, of
    what goes in and out."""
    sizes = max_rowsize if isinstance(max_rowsize, (list, tuple)) else [max_rowsize] * 2
    sizes = [_max_rowsize if size is None or size == -1 else size for size in sizes]
    if len(sizes) != 2 or not all(map(_is_size, sizes)):
        raise ValueError(
            f"[{operation}] max_rowsize must be a positive number of MiB or -1, or a list of "
            f"two such numbers, got {max_rowsize!r}"
        )
    if not isinstance(processes, bool):
        raise TypeError(f"[{operation}] python_multiprocessing must be a bool, got {processes!r}")
    if not processes:
        return None
    if not hasattr(sys.modules["os"], "fork"):
        raise NotImplementedError(f"[{operation}] python_multiprocessing needs a system with fork")
    if not _shared_memory:
        return 0
    return max(sizes) * _MEBIBYTE


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


def of_rows(function, shared=None):
    """A function of the columns of a row."""

    def handle(numbers, arrays):
        return (), function(*arrays)

    return _native.data.UserFunction(handle, name_of(function), shared)


def of_predicate(function):
    def handle(numbers, arrays):
        return (bool(function(*arrays)),), ()

    return _native.data.UserFunction(handle, name_of(function), None)


def of_source(source, shared):
    """A source that gives samples by number."""

    def handle(numbers, arrays):
        return (), source[numbers[0]]

    return _native.data.UserFunction(handle, name_of(source), shared)


_END = object()


def of_iterable(source):
    """begin(key) for a source that can only be run through: the function of its rows."""
    gave_rows = False

    def rows():
        call_it = callable(source) and not hasattr(source, "__iter__")
        return iter(source() if call_it else source)

    def begin(key):
        iterator = call(rows, key)
        begins = True

        def handle(numbers, arrays):
            nonlocal gave_rows, begins
            row = next(iterator, _END)
            # An iterator whose __iter__ does not begin anew, such as a generator.
            if row is _END and begins and gave_rows and iterator is source:
                raise ValueError(
                    f"[GeneratorDataset] source is a {type(source).__name__} object, which can be "
                    "read once: give a function that returns it, or an iterable that can be begun "
                    "again"
                )
            begins = False
            if row is _END:
                return (0,), ()
            gave_rows = True
            return (1,), row

        return handle

    return begin


def of_sampler(sampler):
    """The sample numbers of an epoch."""

    def handle(numbers, arrays):
        return tuple(int(number) for number in sampler), ()

    return _native.data.UserFunction(handle, name_of(sampler), None)


def of_batch_size(function):
    def handle(numbers, arrays):
        return (function(BatchInfo(*numbers)),), ()

    return _native.data.UserFunction(handle, name_of(function), None)


def of_batches(function, count, shared=None):
    """A function of the columns of a batch, each a list of its rows, that gives `count` columns."""

    def handle(numbers, arrays):
        epoch, batch, *lengths = numbers
        columns, start = [], 0
        for length in lengths:
            columns.append(list(arrays[start : start + length]))
            start += length
        made = function(*columns, BatchInfo(epoch, batch))
        if not isinstance(made, tuple):
            made = (made,)
        if len(made) != count:
            raise ValueError(
                f"[batch] per_batch_map gave {len(made)} columns where {count} were expected; name "
                "the columns it gives as output_columns"
            )
        made = [list(c) if isinstance(c, (tuple, list)) else list(_rows(c)) for c in made]
        return tuple(len(column) for column in made), [row for column in made for row in column]

    return _native.data.UserFunction(handle, name_of(function), shared)


def _rows(column):
    """The rows of a column that is one array."""
    if getattr(column, "ndim", 0) == 0:
        raise TypeError(
            f"[batch] per_batch_map must give a list of arrays for each column, got {column!r}"
        )
    return column
