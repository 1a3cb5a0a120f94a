"""Samplers: which samples of a source an epoch reads, in which order."""

import enum

from lamella._native import data as _data
from lamella.dataset import functions


class Shuffle(str, enum.Enum):
    """How far rows are mixed."""

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


class Sampler:
    """Base of samplers written in Python: __iter__ gives the sample numbers of an epoch."""

    def __init__(self, num_samples=None):
        self.num_samples = num_samples

    def _made(self):
        if not hasattr(self, "__iter__"):
            raise TypeError(f"[Sampler] {type(self).__name__} must define __iter__")
        samples = getattr(self, "num_samples", None)  # a subclass may not call this __init__
        return _data.python_sampler(functions.of_sampler(self), samples)


class BuiltinSampler:
    """Base of samplers that need no Python."""

    _handle = None

    def _made(self):
        return self._handle


class SequentialSampler(BuiltinSampler):
    """In order, from start_index on."""

    def __init__(self, start_index=None, num_samples=None):
        self._handle = _data.sequential_sampler(start_index or 0, num_samples)


class RandomSampler(BuiltinSampler):
    """At random."""

    def __init__(self, replacement=False, num_samples=None, shuffle=Shuffle.GLOBAL):
        if getattr(shuffle, "value", shuffle) != Shuffle.GLOBAL.value:
            raise NotImplementedError(
                f"[RandomSampler] only Shuffle.GLOBAL is supported, got {shuffle!r}"
            )
        self._handle = _data.random_sampler(replacement, num_samples)


class SubsetSampler(BuiltinSampler):
    """The samples of a list, in its order."""

    def __init__(self, indices, num_samples=None):
        self._handle = _data.subset_sampler([int(i) for i in indices], False, num_samples)


class SubsetRandomSampler(BuiltinSampler):
    """The samples of a list, at random."""

    def __init__(self, indices, num_samples=None):
        self._handle = _data.subset_sampler([int(i) for i in indices], True, num_samples)


class WeightedRandomSampler(BuiltinSampler):
    """At random, in proportion to weights."""

    def __init__(self, weights, num_samples=None, replacement=True):
        self._handle = _data.weighted_sampler([float(w) for w in weights], num_samples, replacement)


class DistributedSampler(BuiltinSampler):
    """Every num_shards-th sample of an order that all shards share."""

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        if offset != -1:
            raise NotImplementedError(
                f"[DistributedSampler] offset is not supported, except -1, got {offset!r}"
            )
        self._handle = _data.distributed_sampler(num_shards, shard_id, bool(shuffle), num_samples)


def made(sampler):
    """The native sampler of whatever a program gives."""
    if sampler is None:
        return None
    if hasattr(sampler, "_made"):
        return sampler._made()
    return _data.subset_sampler([int(i) for i in sampler], False, None)
