"""mindspore.dataset."""

import enum

from lamella.dataset.operations import (
    ConcatDataset,
    Dataset,
    FashionMnistDataset,
    GeneratorDataset,
    MnistDataset,
    NumpySlicesDataset,
)
from lamella.dataset.operations import zip_datasets as zip
from lamella.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from lamella.mindspore.dataset import config, transforms, vision
from lamella.names import missing


class Shuffle(str, enum.Enum):
    """How far rows are mixed."""

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "file"
    INFILE = "infile"


__getattr__ = missing(__name__, lambda: globals())
