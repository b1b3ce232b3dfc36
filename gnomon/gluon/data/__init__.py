"""Data sets, the order of their samples, and batches of them."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.data import (
    dataloader as dataloader,
    dataset as dataset,
    sampler as sampler,
    vision as vision,
)
from gnomon.gluon.data.dataloader import DataLoader as DataLoader
from gnomon.gluon.data.dataset import *
from gnomon.gluon.data.sampler import *

__getattr__, __dir__ = _showing(__name__, ("dataloader", "dataset", "sampler", "vision"))
