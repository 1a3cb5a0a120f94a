"""Dataset: the operations on a source, and iterators over them."""

import atexit

import numpy as np

from lamella import _native
from lamella.dataset import calls, functions
from lamella.dataset.transforms import calls_python
from lamella.dataset.transforms import made as made_transform
from lamella.dtypes import dtype_to_nptype


def names_of(columns):
    """Column names as a list, from one name or several."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


class Text(np.ndarray):
    """Strings of a dataset: a NumPy array that is asked for as tensors are."""

    def asnumpy(self):
        return np.asarray(self)


atexit.register(_native.data.end_iterators)


class _Rows:
    """An iterator over the rows of epochs; ends with each epoch and begins the next one."""

    def __init__(self, dataset, columns, epochs, numpy):
        self._iterator = dataset._handle.iterate(epochs, names_of(columns), None)
        self._numpy = numpy
        self._done, self._epochs = 0, epochs
        self._calls_python = dataset._calls_python

    def __iter__(self):
        if 0 <= self._epochs <= self._done:
            raise RuntimeError("[iterator] its epochs are over; make a new one")
        return self

    def _check_outside(self, used):
        if self._calls_python and calls.inside():
            raise RuntimeError(
                f"[iterator] a dataset with Python functions cannot be {used} within such a "
                "function: they are called one at a time"
            )

    def __next__(self):
        self._check_outside("read")
        try:
            row = self._iterator.next(self._numpy)
        except StopIteration as error:
            # It would look like the end of the rows.
            raise RuntimeError(
                "[iterator] a function of the pipeline raised StopIteration"
            ) from error
        if row is None:
            self._done += 1
            raise StopIteration
        return self._shaped(row)

    def _shaped(self, row):
        return [self._array(column) for column in row]

    def _array(self, column):
        plain = self._numpy or not isinstance(column, np.ndarray)
        return column if plain else column.view(Text)

    def release(self):
        self._check_outside("released")
        self._iterator.close()

    stop = release


class TupleIterator(_Rows):
    """Rows as lists of columns."""


class DictIterator(_Rows):
    """Rows as dictionaries."""

    def __init__(self, *args):
        super().__init__(*args)
        self._names = self._iterator.columns()

    def _shaped(self, row):
        return dict(zip(self._names, map(self._array, row), strict=True))

    def get_next(self):
        return self.__next__()


_MAP_KEYWORDS = {
    "python_multiprocessing": False, "max_rowsize": None, "cache": None, "callbacks": None,
    "offload": None,
}  # fmt: skip
_BATCH_KEYWORDS = {
    "per_batch_map": None, "input_columns": None, "output_columns": None,
    "python_multiprocessing": False, "max_rowsize": None, "pad_info": None,
}  # fmt: skip


def _keywords(operation, given, accepted):
    for name in given:
        if name not in accepted:
            raise TypeError(
                f"[{operation}] there is no argument '{name}'; keywords are {', '.join(accepted)}"
            )
    for name in ("cache", "callbacks"):
        if given.get(name) is not None:
            raise NotImplementedError(f"[{operation}] {name} is not supported")
    return {**accepted, **given}


def _padding(pad_info):
    """pad_info for the pipeline: for each column its sizes, None for the longest, and a value."""
    if not isinstance(pad_info, dict):
        raise TypeError(f"[padded_batch] pad_info must be a dict or None, got {pad_info!r}")
    made = {}
    for column, how in pad_info.items():
        if not isinstance(how, (tuple, list)) or len(how) != 2:
            raise TypeError(
                f"[padded_batch] pad_info of '{column}' must be (sizes, value), got {how!r}"
            )
        sizes, value = how
        if sizes is not None:
            sizes = [None if size is None or size == -1 else int(size) for size in sizes]
        if value is None:
            value = 0
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(
                f"[padded_batch] only numbers are padded; pad_info of '{column}' has {value!r}"
            )
        made[column] = (sizes, float(value))
    return made


class Dataset:
    """A source with operations on it. Every operation gives a new dataset."""

    _calls_python = False

    def __init__(self, children=None, num_parallel_workers=None, cache=None):
        self._handle = None

    def _with(self, handle, calls_python=False):
        dataset = Dataset.__new__(Dataset)
        dataset.__dict__.update(self.__dict__)
        dataset._handle = handle
        dataset._calls_python = self._calls_python or calls_python
        return dataset

    # ---- Operations ----

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers=None,
        **kwargs,
    ):
        options = _keywords("map", kwargs, _MAP_KEYWORDS)
        shared = functions.shared_bytes(
            "map", options["python_multiprocessing"], options["max_rowsize"]
        )
        operations = operations if isinstance(operations, (list, tuple)) else [operations]
        handles = [made_transform(operation, shared) for operation in operations]
        inputs, outputs = names_of(input_columns), names_of(output_columns)
        mapped = self._handle.map(handles, inputs, outputs, num_parallel_workers)
        return self._with(mapped, any(calls_python(operation) for operation in operations))

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, **kwargs):
        options = _keywords("batch", kwargs, _BATCH_KEYWORDS)
        shared = functions.shared_bytes(
            "batch", options["python_multiprocessing"], options["max_rowsize"]
        )
        return self._batched(batch_size, drop_remainder, num_parallel_workers, options, shared)

    def padded_batch(
        self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None
    ):
        """Batches of rows that are padded to the sizes of pad_info, {column: (sizes, value)}, or to
        the longest of the batch where it says None."""
        options = dict(_BATCH_KEYWORDS, pad_info={} if pad_info is None else pad_info)
        return self._batched(batch_size, drop_remainder, num_parallel_workers, options, None)

    def _batched(self, size, drop_remainder, workers, options, shared):
        inputs, outputs = names_of(options["input_columns"]), names_of(options["output_columns"])
        per_batch = options["per_batch_map"]
        if per_batch is not None:
            if not callable(per_batch):
                raise TypeError(f"[batch] per_batch_map must be a function, got {per_batch!r}")
            count = len(outputs or inputs or self._handle.columns())
            per_batch = functions.of_batches(per_batch, count, shared)
        elif outputs:
            raise ValueError(
                "[batch] output_columns are those of a per_batch_map, and there is none"
            )
        if callable(size):
            size = functions.of_batch_size(size)
        elif not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            raise TypeError(f"[batch] batch_size must be a number or a function, got {size!r}")
        pad = options["pad_info"]
        handle = self._handle.batch(
            size, bool(drop_remainder), per_batch, inputs, outputs, workers,
            None if pad is None else _padding(pad),
        )  # fmt: skip
        calls = per_batch is not None or isinstance(size, _native.data.UserFunction)
        return self._with(handle, calls)

    def shuffle(self, buffer_size):
        return self._with(self._handle.shuffle(buffer_size))

    def repeat(self, count=None):
        return self._with(self._handle.repeat(-1 if count is None else count))

    def take(self, count=-1):
        return self._with(self._handle.take(count))

    def skip(self, count):
        return self._with(self._handle.skip(count))

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        """The rows that the predicate accepts, which is called by one thread whatever
        num_parallel_workers says."""
        if not callable(predicate):
            raise TypeError(f"[filter] predicate must be a function, got {predicate!r}")
        accepts = functions.of_predicate(predicate)
        return self._with(self._handle.filter(accepts, names_of(input_columns)), True)

    def project(self, columns):
        return self._with(self._handle.project(names_of(columns)))

    def rename(self, input_columns, output_columns):
        return self._with(self._handle.rename(names_of(input_columns), names_of(output_columns)))

    def zip(self, datasets):
        handle, calls = self._handle, False
        for dataset in datasets if isinstance(datasets, (tuple, list)) else (datasets,):
            handle, calls = handle.zip(dataset._handle), calls or dataset._calls_python
        return self._with(handle, calls)

    def concat(self, datasets):
        handle, calls = self._handle, False
        for dataset in datasets if isinstance(datasets, (tuple, list)) else (datasets,):
            handle, calls = handle.concat(dataset._handle), calls or dataset._calls_python
        return self._with(handle, calls)

    def __add__(self, datasets):
        return self.concat(datasets)

    def apply(self, apply_func):
        dataset = apply_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError("[apply] the function must return a Dataset")
        return dataset

    def split(self, sizes, randomize=True):
        """Parts of the sizes, or fractions, listed. A part has the same samples in every epoch."""
        whole, real = (int, np.integer), (int, float, np.integer, np.floating)
        if (
            not isinstance(sizes, (tuple, list))
            or not sizes
            or not all(isinstance(size, real) for size in sizes)
        ):
            raise TypeError(
                f"[split] sizes must be a list of row counts or of fractions, got {sizes!r}"
            )
        kind = int if all(isinstance(size, whole) for size in sizes) else float
        parts = self._handle.split([kind(size) for size in sizes], bool(randomize))
        return [self._with(part) for part in parts]

    def device_que(self, send_epoch_end=True, create_data_info_queue=False, queue_name=""):
        return self

    def to_device(self, send_epoch_end=True, create_data_info_queue=False):
        """Batches are prepared ahead anyway; kept for programs written against older releases."""
        return self

    # ---- Reading ----

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        return TupleIterator(self, columns, num_epochs, output_numpy)

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        return DictIterator(self, None, num_epochs, output_numpy)

    def __iter__(self):
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self):
        return self.get_dataset_size()

    def get_dataset_size(self):
        return self._handle.size()

    def get_batch_size(self):
        return self._handle.batch_size()

    def get_repeat_count(self):
        return self._handle.repeat_count()

    def get_col_names(self):
        return self._handle.columns()

    def output_types(self):
        types = [dtype for dtype, _ in self._handle.types()]
        return [np.str_ if dtype is None else dtype_to_nptype(dtype) for dtype in types]

    def output_shapes(self, estimate=False):
        if estimate:
            raise NotImplementedError("[output_shapes] estimate is not supported")
        return [list(sizes) for _, sizes in self._handle.types()]

    def num_classes(self):
        return getattr(self, "_num_classes", None)

    def reset(self):
        self._handle.reset()

    def close_pool(self):
        """Workers end with their iterator."""


def zip_datasets(datasets):
    """Rows of several datasets side by side."""
    first, *others = datasets
    return first.zip(tuple(others))


class ConcatDataset(Dataset):
    """Rows of one dataset after those of another."""

    def __init__(self, datasets):
        first, *others = datasets
        self._handle = first.concat(tuple(others))._handle
