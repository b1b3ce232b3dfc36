"""Data sets of images in local files, and transforms of images."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.gluon.data.vision import datasets as datasets, transforms as transforms
from gnomon.gluon.data.vision.datasets import *

__getattr__, __dir__ = _showing(__name__, ("datasets", "transforms"))
