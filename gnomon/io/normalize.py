"""Colours of an image: means, scales and layout in one kernel, straight into a batch's memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import dtype as dtypes
from gnomon.expr.ext.reduce import broadcast_to
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.recordio.header import opencv
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.template import Template
from gnomon.runtime.statements.prepare import Store, by_caller

Shape = tuple[int, ...]


class _Place(threading.local):
    """A thread's memory for one image, channel after channel, and for what is drawn for it."""

    def __init__(self, shape: Shape, wide: Any) -> None:
        self.planes = np.zeros(shape, np.uint8)
        self.drawn = np.zeros(2, wide)
        self.addresses = self.planes.ctypes.data, self.drawn.ctypes.data


class Normalizer:
    """Images (height, width, channels) of uint8 to (channels, height, width), by any thread.

    `store` computes `((x - mean) * contrast + illumination) * factor`, the means of shape
    (channels, 1, 1) or that of an image, a factor for each channel. `nbytes` are those of an image.
    """

    def __init__(self, shape: Sequence[int], mean: Any, factor: Any, dtype: str) -> None:
        self._shape = tuple(shape)
        self._dtype = dtypes.of(dtype)
        self._wide = dtypes.of("float64" if dtype == "float64" else "float32")
        self._mean = np.ascontiguousarray(mean, self._wide.numpy)
        self._factor = np.array(factor, self._wide.numpy).reshape(-1, 1, 1)
        plain = not np.any(mean) and np.all(self._factor == 1)
        # floats end at the bounds of int8, bytes would wrap around
        self._plain = bool(plain and dtype != "int8")
        self._place = _Place(self._shape, self._wide.numpy)
        self._templates: dict[tuple[bool, bool], Template] = {}
        self.nbytes = int(np.prod(self._shape)) * np.dtype(self._dtype.numpy).itemsize

    def store(
        self, image: Any, address: int, mirrored: bool, drawn: tuple[float, float] | None
    ) -> None:
        """Store an image at an address, left and right exchanged where it is `mirrored`.

        One that is not mirrored may be smaller: it is the upper left corner, the rest counts as 0.
        `drawn` are contrast and illumination.
        """
        place = self._place
        height, width, channels = image.shape
        if (height, width) != self._shape[1:]:
            place.planes.fill(0)
        planes = place.planes[:, :height, :width]
        if channels == 1:
            planes[0] = image[:, :, 0]
        else:
            opencv("ImageRecordIter").split(image, [*planes])
        if drawn is not None:
            place.drawn[:] = drawn
        form = mirrored, drawn is not None
        if form not in self._templates:
            self._templates[form] = self._template(*form)
        source, more = place.addresses
        self._templates[form].run(
            [source, address, self._mean.ctypes.data, self._factor.ctypes.data, more]
        )

    def _template(self, mirrored: bool, drawn: bool) -> Template:
        _, height, width = self._shape
        strides = (height * width, width, -1 if mirrored else 1)
        first = width - 1 if mirrored else 0

        def make(addresses: Sequence[int]) -> list[Step]:
            source, out, mean, factor, more = addresses
            dest = Buffer(self._shape, self._dtype, None, out)
            value: Expr = Buffer(self._shape, dtypes.of("uint8"), strides, source + first)
            if not self._plain or drawn:
                value = cast(value, self._wide) - self._spread(self._mean.shape, mean)
                if drawn:
                    contrast, light = more, more + self._mean.itemsize
                    value = value * self._spread((1, 1, 1), contrast)
                    value = value + self._spread((1, 1, 1), light)
                value = value * self._spread(self._factor.shape, factor)
            return by_caller(Store(dest, "saveto", cast(value, self._dtype)), "normalize image")

        return Template(make, 5)

    def _spread(self, shape: Shape, address: int) -> Expr:
        """Numbers of some shape at an address, in the shape of an image."""
        return broadcast_to(Buffer(shape, self._wide, None, address), self._shape)
