"""Sources whose samples have numbers, and sources that a user's object makes."""

from lamella import _native
from lamella.dataset import functions
from lamella.dataset.operations import Dataset, names_of
from lamella.dataset.samplers import Shuffle
from lamella.dataset.samplers import made as made_sampler
from lamella.dataset.transforms import TypeCast


class Source(Dataset):
    """Base of sources whose samples have numbers."""

    @staticmethod
    def _chosen(num_samples, shuffle, sampler, num_shards, shard_id):
        if shuffle is not None:
            shuffle = getattr(shuffle, "value", shuffle) not in (False, Shuffle.FALSE.value)
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
        self._handle = _native.data.dataset_of_arrays(arrays, names, *chosen, num_parallel_workers)


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
        for name, value in (
            ("schema", schema), ("batch_sampler", batch_sampler), ("collate_fn", collate_fn)
        ):  # fmt: skip
            if value is not None:
                raise NotImplementedError(f"[GeneratorDataset] {name} is not supported")
        chosen = self._chosen(num_samples, shuffle, sampler, num_shards, shard_id)
        processes = functions.shared_bytes("GeneratorDataset", python_multiprocessing, max_rowsize)
        if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
            # One worker calls the source in the order of rows, where it stands.
            get = functions.of_source(source, None if num_parallel_workers == 1 else processes)
            self._handle = _native.data.dataset_of_source(
                source, get, names, *chosen, num_parallel_workers
            )
        elif callable(source) or hasattr(source, "__iter__"):
            # What can only be run through is run through by one thread.
            self._handle = _native.data.dataset_of_iterable(
                functions.of_iterable(source), functions.name_of(source), names, *chosen
            )
        else:
            raise TypeError(
                "[GeneratorDataset] source must have __getitem__ and __len__, or be iterable, or "
                f"be a function that gives an iterable; got {type(source).__name__}"
            )
        self._calls_python = True
        self.source = source
        if column_types:
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
        if cache is not None:
            raise NotImplementedError(f"[{type(self).__name__}] cache is not supported")
        chosen = self._chosen(num_samples, shuffle, sampler, num_shards, shard_id)
        self._handle = _native.data.dataset_of_mnist(
            str(dataset_dir), usage or "all", self._fashion, *chosen, num_parallel_workers
        )


class FashionMnistDataset(MnistDataset):
    """Ten kinds of clothing, in the files of MNIST."""

    _fashion = True
