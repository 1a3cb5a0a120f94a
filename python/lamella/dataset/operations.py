"""Dataset: the operations on a source, and iterators over them."""

from lamella import _native
from lamella.dataset import calls  # noqa: F401 (says how users' functions are called)
from lamella.dataset.samplers import made as made_sampler
from lamella.dataset.transforms import made as made_transform


def names_of(columns):
    """Column names as a list, from one name or several."""
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


class BatchInfo:
    """What functions over batches are told."""

    def __init__(self, epoch, batch):
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self):
        return self._epoch

    def get_batch_num(self):
        return self._batch


def _listed(rows):
    return list(rows) if isinstance(rows, (tuple, list)) else [rows]


def _per_batch(function, count):
    if function is None:
        return None

    def call(columns, epoch, batch):
        made = function(*columns, BatchInfo(epoch, batch))
        made = made if count > 1 else (made[0] if isinstance(made, tuple) else made,)
        return tuple(_listed(column) for column in made)

    return call


class _Rows:
    """An iterator over the rows of epochs; ends with each epoch and begins the next one."""

    def __init__(self, dataset, columns, epochs, numpy):
        self._iterator = dataset._handle.iterate(epochs, names_of(columns), None)
        self._numpy = numpy
        self._done, self._epochs = 0, epochs

    def __iter__(self):
        if 0 <= self._epochs <= self._done:
            raise RuntimeError("[iterator] its epochs are over; make a new one")
        return self

    def __next__(self):
        row = self._iterator.next(self._numpy)
        if row is None:
            self._done += 1
            raise StopIteration
        return self._shaped(row)

    def _shaped(self, row):
        return list(row)

    def release(self):
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
        return dict(zip(self._names, row, strict=True))

    def get_next(self):
        return self.__next__()


class Dataset:
    """A source with operations on it. Every operation gives a new dataset."""

    def __init__(self, children=None, num_parallel_workers=None, cache=None):
        self._handle = None

    def _with(self, handle):
        dataset = Dataset.__new__(Dataset)
        dataset.__dict__.update(self.__dict__)
        dataset._handle = handle
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
        operations = operations if isinstance(operations, (list, tuple)) else [operations]
        handles = [made_transform(operation) for operation in operations]
        inputs, outputs = names_of(input_columns), names_of(output_columns)
        return self._with(self._handle.map(handles, inputs, outputs, num_parallel_workers))

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, **kwargs):
        inputs = names_of(kwargs.get("input_columns"))
        outputs = names_of(kwargs.get("output_columns"))
        function = kwargs.get("per_batch_map")
        count = len(outputs or inputs or self._handle.columns())
        size = batch_size
        if callable(batch_size):
            size = lambda epoch, batch: batch_size(BatchInfo(epoch, batch))  # noqa: E731
        handle = self._handle.batch(
            size, drop_remainder, _per_batch(function, count), inputs, outputs, num_parallel_workers
        )
        return self._with(handle)

    def shuffle(self, buffer_size):
        return self._with(self._handle.shuffle(buffer_size))

    def repeat(self, count=None):
        return self._with(self._handle.repeat(-1 if count is None else count))

    def take(self, count=-1):
        return self._with(self._handle.take(count))

    def skip(self, count):
        return self._with(self._handle.skip(count))

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        return self._with(self._handle.filter(predicate, names_of(input_columns)))

    def project(self, columns):
        return self._with(self._handle.project(names_of(columns)))

    def rename(self, input_columns, output_columns):
        return self._with(self._handle.rename(names_of(input_columns), names_of(output_columns)))

    def zip(self, datasets):
        handle = self._handle
        for dataset in datasets if isinstance(datasets, (tuple, list)) else (datasets,):
            handle = handle.zip(dataset._handle)
        return self._with(handle)

    def concat(self, datasets):
        handle = self._handle
        for dataset in datasets if isinstance(datasets, (tuple, list)) else (datasets,):
            handle = handle.concat(dataset._handle)
        return self._with(handle)

    def __add__(self, datasets):
        return self.concat(datasets)

    def apply(self, apply_func):
        dataset = apply_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError("[apply] the function must return a Dataset")
        return dataset

    def split(self, sizes, randomize=True):
        """Parts of the sizes, or shares, listed."""
        total = self.get_dataset_size()
        if all(isinstance(size, int) for size in sizes):
            counts = list(sizes)
        else:
            counts = [int(total * share) for share in sizes]
            for i in range(total - sum(counts)):
                counts[i % len(counts)] += 1
        if sum(counts) != total or min(counts) < 1:
            raise ValueError(f"[split] sizes {sizes} do not divide {total} rows")
        whole = self.shuffle(total) if randomize and total > 1 else self
        parts, start = [], 0
        for count in counts:
            part = whole.skip(start) if start else whole
            parts.append(part.take(count))
            start += count
        return parts

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
        from lamella.mindspore.common.dtype import dtype_to_nptype

        return [dtype_to_nptype(dtype) for dtype, _ in self._handle.types()]

    def output_shapes(self, estimate=False):
        return [list(sizes) for _, sizes in self._handle.types()]

    def num_classes(self):
        return getattr(self, "_num_classes", None)

    def reset(self):
        self._handle.reset()

    def close_pool(self):
        """Workers end with their iterator."""


class Source(Dataset):
    """Base of sources whose samples have numbers."""

    @staticmethod
    def _chosen(num_samples, shuffle, sampler, num_shards, shard_id):
        if (num_shards is None) != (shard_id is None):
            raise RuntimeError("[dataset] num_shards and shard_id are needed together")
        if shuffle is not None and not isinstance(shuffle, bool):
            shuffle = True
        return num_samples, shuffle, made_sampler(sampler), num_shards, shard_id


class NumpySlicesDataset(Source):
    """Arrays cut along their first axis; a dictionary gives columns names."""

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        if isinstance(data, dict):
            column_names = column_names or list(data)
            arrays = list(data.values())
        elif isinstance(data, tuple):
            arrays = list(data)
        else:
            arrays = [data]
        names = names_of(column_names) or [f"column_{i}" for i in range(len(arrays))]
        chosen = self._chosen(num_samples, shuffle, sampler, num_shards, shard_id)
        self._handle = _native.data.dataset_of_arrays(arrays, names, *chosen)


class GeneratorDataset(Source):
    """Rows that a user's object makes: by number, or one after the other."""

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        names = names_of(column_names)
        if not names:
            raise ValueError("[GeneratorDataset] column_names is missing")
        by_number = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not by_number and not callable(source) and not hasattr(source, "__iter__"):
            raise TypeError(
                "[GeneratorDataset] source must have __getitem__ and __len__, or be iterable, or "
                f"be a function that gives an iterable; got {type(source).__name__}"
            )
        num_samples, shuffle, made, num_shards, shard_id = self._chosen(
            num_samples, shuffle, sampler, num_shards, shard_id
        )
        self._handle = _native.data.dataset_of_source(
            source, by_number, names, num_samples, shuffle, made, num_shards, shard_id,
            num_parallel_workers,
        )  # fmt: skip
        self.source = source
        if column_types:
            from lamella.dataset.transforms import TypeCast

            casts = zip(names, column_types, strict=True)
            for name, dtype in casts:
                self._handle = self.map([TypeCast(dtype)], [name])._handle


class MnistDataset(Source):
    """Handwritten digits: columns "image" and "label"."""

    _fashion = False
    _num_classes = 10

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        chosen = self._chosen(num_samples, shuffle, sampler, num_shards, shard_id)
        self._handle = _native.data.dataset_of_mnist(
            str(dataset_dir), usage or "all", self._fashion, *chosen
        )


class FashionMnistDataset(MnistDataset):
    """Ten kinds of clothing, in the files of MNIST."""

    _fashion = True


def zip_datasets(datasets):
    """Rows of several datasets side by side."""
    first, *others = datasets
    return first.zip(tuple(others))


class ConcatDataset(Dataset):
    """Rows of one dataset after those of another."""

    def __init__(self, datasets):
        first, *others = datasets
        self._handle = first.concat(tuple(others))._handle
