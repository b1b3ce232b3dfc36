"""Samplers beside the usual ones, and texts for language models."""

from gnomon.gluon.contrib.data import text
from gnomon.gluon.contrib.data.sampler import IntervalSampler

__all__ = ["IntervalSampler", "text"]
