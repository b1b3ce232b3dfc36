"""Colours of a batch of images: means and scales in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon import ndarray as nd
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.ext.reshape import reshape
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.ndarray.lazy.batch import Batch, Group
from gnomon.runtime.statements.prepare import Store


class Normalizer:
    """Images (n, channels, height, width) of uint8 to numbers that a network takes.

    `apply` computes `((x - mean) * contrast + illumination) * factor`, the means of shape
    (channels, 1, 1) or that of an image, a factor for each channel.
    """

    def __init__(self, shape: Sequence[int], mean: Any, factor: Any, dtype: str) -> None:
        self._shape = tuple(shape)
        self._dtype = dtypes.of(dtype)
        wide = "float64" if dtype == "float64" else "float32"
        self._mean = nd.array(mean, dtype=wide)
        self._factor = nd.array(np.reshape(factor, (-1, 1, 1)), dtype=wide)
        plain = not np.any(mean) and np.all(np.asarray(factor) == 1)
        plain = plain and dtype != "int8"  # floats end at its bounds, bytes would wrap around
        self._plain = bool(plain)
        self._batches: dict[Any, Batch] = {}

    def apply(self, pixels: Any, drawn: tuple[Any, Any] | None) -> Any:
        """The batch as an array; `drawn` are contrast and illumination of each image."""
        count = pixels.shape[0]
        out = nd.empty((count, *self._shape), dtype=self._dtype.name)
        arrays = [pixels, out]
        if not self._plain or drawn is not None:
            arrays += [self._mean, self._factor]
        if drawn is not None:
            wide = self._mean.dtype
            arrays += [nd.array(np.reshape(d, (-1, 1, 1, 1)), dtype=wide) for d in drawn]
        key = tuple(x._layout for x in arrays)
        if key not in self._batches:
            self._batches[key] = Batch("normalize images", key, self._groups)
        self._batches[key].push(arrays, written=[1])
        return out

    def _groups(self, buffers: Sequence[Buffer]) -> list[Group]:
        return [Group(buffers, self._statements)]

    def _statements(self, buffers: Sequence[Buffer]) -> list[Store]:
        pixels, out, *rest = buffers
        value: Expr = pixels
        if rest:
            value = cast(value, rest[0].dtype)
            mean, factor, *drawn = (self._wide(x, out.shape) for x in rest)
            value = value - mean
            if drawn:
                value = value * drawn[0] + drawn[1]
            value = value * factor
        return [Store(out, "saveto", cast(value, out.dtype))]

    @staticmethod
    def _wide(x: Buffer, shape: tuple[int, ...]) -> Expr:
        lead = (1,) * (len(shape) - len(x.shape))
        return broadcast_to(reshape(x, (*lead, *x.shape)), shape)
