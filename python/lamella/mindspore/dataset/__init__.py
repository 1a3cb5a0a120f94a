"""mindspore.dataset."""

from lamella.dataset.files import CSVDataset, TextFileDataset
from lamella.dataset.operations import ConcatDataset, Dataset
from lamella.dataset.operations import zip_datasets as zip
from lamella.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from lamella.dataset.sources import (
    FashionMnistDataset,
    GeneratorDataset,
    MnistDataset,
    NumpySlicesDataset,
)
from lamella.mindspore.dataset import config, transforms, vision
from lamella.names import missing

__getattr__ = missing(__name__, lambda: globals())
