"""Samplers beside the usual ones."""

from gnomon.gluon.contrib.data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]
