"""Data sets, the order of their samples, and batches of them."""

from gnomon.gluon.data import dataloader, dataset, sampler, vision
from gnomon.gluon.data.dataloader import DataLoader
from gnomon.gluon.data.dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from gnomon.gluon.data.sampler import (
    BatchSampler,
    FilterSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "FilterSampler",
    "RandomSampler",
    "RecordFileDataset",
    "Sampler",
    "SequentialSampler",
    "SimpleDataset",
    "dataloader",
    "dataset",
    "sampler",
    "vision",
]
