"""Sources whose samples are records of text files."""

import glob
import os

import numpy as np

from lamella import _native
from lamella.dataset.operations import Dataset, names_of
from lamella.dataset.samplers import Shuffle

_DTYPES = {int: "int32", float: "float32", str: None}


def _csv_default(value):
    """A column's default and its dtype, None for text."""
    if isinstance(value, type) and value in _DTYPES:  # the type alone: its empty value
        value = value()
    if isinstance(value, np.generic) and value.dtype.name in (
        "int32", "int64", "float32", "float64",
    ):  # fmt: skip
        return value.item(), value.dtype.name
    if type(value) not in _DTYPES:
        raise TypeError(
            "[CSVDataset] column_defaults holds int, float or str values, or NumPy's int32, int64, "
            f"float32 or float64, got {value!r}"
        )
    return value, _DTYPES[type(value)]


class _FileSource(Dataset):
    """Base of sources whose samples are records of files."""

    def _begin(self, operation, dataset_files, shuffle, num_samples, cache):
        """The files of names and patterns, in order, and the arguments for the order of records."""
        if cache is not None:
            raise NotImplementedError(f"[{operation}] cache is not supported")
        scope = getattr(shuffle, "value", shuffle)
        scopes = {
            None: True,
            True: True,
            False: False,
            "false": False,
            "global": True,
            "files": True,
        }
        if scope not in scopes:
            raise ValueError(
                f"[{operation}] shuffle must be a bool, Shuffle.GLOBAL, Shuffle.FILES or "
                f"Shuffle.FALSE, got {shuffle!r}"
            )
        patterns = (
            [dataset_files] if isinstance(dataset_files, (str, os.PathLike)) else dataset_files
        )
        files = []
        for pattern in map(os.fspath, patterns):
            found = sorted(glob.glob(pattern)) if not os.path.exists(pattern) else [pattern]
            if not found:
                raise FileNotFoundError(f"[{operation}] there is no file '{pattern}'")
            files += found
        return sorted(files), scope == "files", num_samples, scopes[scope]


class TextFileDataset(_FileSource):
    """Lines of UTF-8 text files, without the empty ones: column "text"."""

    def __init__(
        self,
        dataset_files,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        files, by_file, samples, mixed = self._begin(
            "TextFileDataset", dataset_files, shuffle, num_samples, cache
        )
        self._handle = _native.data.dataset_of_text(
            files, by_file, samples, mixed, num_shards, shard_id, num_parallel_workers
        )


class CSVDataset(_FileSource):
    """Records of CSV files. Without column_names, the first line of every file names the columns;
    without column_defaults, every column is text."""

    def __init__(
        self,
        dataset_files,
        field_delim=",",
        column_defaults=None,
        column_names=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=Shuffle.GLOBAL,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        if not isinstance(field_delim, str) or len(field_delim) != 1 or ord(field_delim) > 127:
            raise ValueError(
                f"[CSVDataset] field_delim must be one ASCII character, got {field_delim!r}"
            )
        defaults = [_csv_default(value) for value in column_defaults or []]
        files, by_file, samples, mixed = self._begin(
            "CSVDataset", dataset_files, shuffle, num_samples, cache
        )
        self._handle = _native.data.dataset_of_csv(
            files, field_delim, defaults, names_of(column_names), by_file, samples, mixed,
            num_shards, shard_id, num_parallel_workers,
        )  # fmt: skip
