"""Taps: a linear map of rows as triples (target, source, weight), by one compiled loop.

What takes weighted pixels of an image for each element of its result says which pixels and weights
those are, by NumPy; `mixed` then adds them up for all channels, and its gradient is `mixed` with
targets and sources exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError, complaint
from gnomon.expr import ext
from gnomon.ground.record import record
from gnomon.native.serve import served
from gnomon.ops.host import Array, HostOp, pooled
from gnomon.ops.infer import one_dtype
from gnomon.ops.nn.span_taps import (
    of_regions,
    sampled_parts,
    shared_out,
    shared_out_doubles,
    summed,
    summed_doubles,
)
from gnomon.shadow import Tensor

MOST = 1 << 21  # taps at a time
Weigh = Callable[..., tuple[Any, Any]]


@record(slots=False)
class Taps:
    """Row `target[k]` of the result gets `weight[k]` times row `source[k]`, for every k."""

    target: Array
    source: Array
    weight: Array

    def exchanged(self) -> Taps:
        """The transposed map."""
        return Taps(self.source, self.target, self.weight)


def mixed(found: Array, taps: Taps, rows: Array) -> None:
    """Add to the rows of `found` what taps say of `rows`; both are matrices."""
    if not (taps.target.size and found.size and rows.size):
        return
    weight = Tensor(taps.weight.astype(rows.dtype, copy=False))
    taken = ext.take(Tensor(rows), Tensor(taps.source))
    parts = taken * ext.broadcast_axis(weight, taken.shape, 0)
    into = Tensor(found)
    into += ext.take_grad(Tensor(taps.target), parts, len(found))


@record(slots=False)
class Spans:
    """Weights along an axis: `weight[..., k]` is that of the place `start + k`."""

    start: Array
    weight: Array


def averaged(first: Array, step: Array, counts: Array, bins: int, size: int) -> Spans:
    """Means of samples along an axis of `size` pixels, for `bins` parts of each region.

    A region begins at `first`, its parts are `step` long and have `counts` samples each, evenly
    spaced, as `sampled` says.
    """
    starts = first[:, None] + np.arange(bins, dtype=first.dtype) * step[:, None]
    counts = np.where(np.isfinite(first + step), counts, 0).astype(np.float64)
    apart = np.stack([step, counts / step, 1 / counts], 1, dtype=np.float64)
    apart[~np.isfinite(apart)] = 0  # of what has no samples, or all at one place
    width = min(math.ceil(np.max(step, where=counts > 0, initial=0)) + 1, size - 1) + 2
    found = Spans(np.empty(starts.shape, np.int64), np.zeros((*starts.shape, width)))
    arrays = doubles(starts), counts, apart, found.start, found.weight
    narrow = first.dtype == np.float32
    served(sampled_parts)[0](*_addresses(*arrays), *starts.shape, width, size, int(narrow))
    return found


def seen(start: Array, step: Array, counts: Array, low: Any, high: Any) -> Array:
    """Which of so many samples, `step` apart behind `start`, may lie from `low` to `high`.

    The arrays have a last axis of 1, the result has one of consecutive numbers, as many of each
    row as the row of most needs: a region far larger than the image takes no more than the image.
    """
    start, step, counts, low, high = map(finite, (start, step, counts, low, high))
    reach = np.where(step > 0, step, np.inf)
    first = np.clip(np.floor((low - start) / reach) - 2, 0, np.maximum(counts - 1, 0))
    last = np.where(step > 0, np.ceil((high - start) / reach) + 2, counts)
    most = int(np.max(np.clip(last, first, counts) - first, initial=1))
    return np.asarray(first + np.arange(most))


def finite(x: Any) -> Array:
    """`x` as finite float64, as nan_to_num has it, which takes six times as long for a few."""
    most = np.finfo(np.float64).max
    x = np.minimum(np.maximum(np.asarray(x, np.float64), -most), most)
    return np.where(np.isnan(x), 0.0, x)


def covered(start: Array, stop: Array, size: int) -> Spans:
    """Means of the pixels from `start` to `stop`, as far as the image has them."""
    start, stop = (np.clip(e, 0, size).astype(np.int64) for e in (start, stop))
    count = np.maximum(stop - start, 0)[..., None]
    inside = np.arange(max(int(count.max(initial=0)), 1)) < count
    return Spans(start, inside / np.maximum(count, 1))


class Regions(HostOp):
    """Operators on regions of images (N, C, h, w): a row of results for each part of each region.

    A subclass gives the pixels and weights of each part by `weighted`. The channels of an image are
    `classes` times as many as a result's, times `groups`, of which a part takes one (`parts`).
    """

    brief = 1 << 20  # elements that take less time than to get at Python's lock on a worker
    types = one_dtype(kinds="f")

    @property
    def groups(self) -> int:
        """How many groups of channels there are in each class."""
        return 1

    def parts(self) -> Array:
        """Which group of channels each part takes, (rows, columns)."""
        raise NotImplementedError(f"{self.name}: says nothing of parts")

    def weighted(self, shape: Sequence[int], *more: Array) -> tuple[Any, Any]:
        """Pixels (y w + x) and weights, (regions, classes, rows, columns, taps)."""
        raise NotImplementedError(f"{self.name}: says nothing of weighted")

    def most(self, shape: Sequence[int]) -> int:
        """How many taps a region has, about, or at most."""
        raise NotImplementedError(f"{self.name}: says nothing of most")

    def classes(self, *more: Array) -> int:
        """How many classes of channels there are, each with parts of its own."""
        return 1

    def images(self, rois: Array, count: int) -> Array:
        """The image of each region; one below 0 is none.

        Raises:
            GnomonError: there is no such image.
        """
        found = rois[:, 0].astype(np.int64)
        if found.size and found.max() >= count:
            expected = f"numbers of images below {count}"
            raise GnomonError(complaint(self.name, "rois", expected, found.max()))
        return found

    def taps(self, shape: Sequence[int], weigh: Weigh, rois: Array, *more: Array) -> Iterator[Any]:
        """What the results are made of, as `weigh` says, some regions at a time."""
        images = self.images(rois, shape[0])
        step = max(MOST // max(self.most(shape), 1), 1)
        for k in range(0, len(rois), step):
            some = slice(k, k + step)
            found = weigh(shape, rois[some], *(e[some] for e in more))
            yield self.some_taps(shape, images[some], k, *found)

    def some_taps(
        self, shape: Sequence[int], images: Array, k: int, pixels: Any, weight: Any
    ) -> Taps:
        """The taps of regions, of which the first is number `k`."""
        weight = np.broadcast_to(weight, np.broadcast_shapes(weight.shape, pixels.shape))
        known = (images >= 0)[:, None, None, None, None]
        used = np.flatnonzero(np.where(known, weight, 0))
        across = np.arange(weight.shape[1])[:, None, None, None] * self.groups
        across = across + self.parts()[..., None]
        source = images[:, None, None, None, None] * (shape[2] * shape[3]) + pixels
        source = source * (self.groups * weight.shape[1]) + across
        source = np.broadcast_to(source, weight.shape).ravel()[used]
        target = used // weight.shape[-1] + k * math.prod(weight.shape[1:-1])
        return Taps(target, source, weight.ravel()[used])

    def rows(self, data: Array, classes: int) -> Array:
        """Pixels as rows of channels: for each pixel, of each class and group of channels."""
        n, c, h, w = data.shape
        each = c // self.groups // classes
        sets = data.reshape(n, classes, each, self.groups, h, w).transpose(0, 4, 5, 1, 3, 2)
        found = pooled(sets.shape, data.dtype)
        np.copyto(found, sets)
        return found.reshape(n * h * w * classes * self.groups, each)

    def pixels(self, rows: Array, shape: Sequence[int], classes: int) -> Array:
        """The inverse of `rows`."""
        n, _, h, w = shape
        sets = rows.reshape(n, h, w, classes, self.groups, rows.shape[1])
        return sets.transpose(0, 3, 5, 4, 1, 2).reshape(shape)

    def imaged(self, found: Array, grid: Sequence[int]) -> Array:
        """Rows of results (regions, classes, rows, columns) as images."""
        regions, _, rows, columns = grid
        parts = found.reshape(*grid, found.shape[1]).transpose(0, 1, 4, 2, 3)
        return parts.reshape(regions, grid[1] * found.shape[1], rows, columns)

    def compute(self, data: Array, *more: Array) -> Array:
        classes = self.classes(*more)
        rows = self.rows(data, classes)
        grid = (len(more[0]), classes, *self.parts().shape)
        found = pooled((math.prod(grid), rows.shape[1]), data.dtype)
        found.fill(0)
        for taps in self.taps(data.shape, self.weighted, *more):
            mixed(found, taps, rows)
        return self.imaged(found, grid)

    def gradient(self, grad: Array, inputs: tuple[Array, ...]) -> dict[str, Array]:
        data, *more = inputs
        classes = self.classes(*more)
        found = np.zeros_like(self.rows(data, classes))
        for taps in self.taps(data.shape, self.weighted, *more):
            mixed(found, taps.exchanged(), self.heads(grad, classes))
        return {"data": self.pixels(found, data.shape, classes)}

    def heads(self, grad: Array, classes: int) -> Array:
        """Gradients of results as rows: the inverse of `imaged`."""
        regions, channels, rows, columns = grad.shape
        parts = grad.reshape(regions, classes, channels // classes, rows, columns)
        parts = np.ascontiguousarray(parts.transpose(0, 1, 3, 4, 2))
        return parts.reshape(regions * classes * rows * columns, channels // classes)


class Crossed(Regions):
    """Regions whose weights are those of rows of parts times those of columns.

    A subclass gives them by `weighted`, as spans (regions, rows) and (regions, columns).
    """

    def some_taps(self, shape: Sequence[int], images: Array, k: int, down: Any, right: Any) -> Any:
        """The regions among all, and their ends, places and weights as `span_taps.py` says."""
        which = np.ascontiguousarray(self.parts())
        spans = [np.ascontiguousarray(a) for s in (down, right) for a in (s.start, s.weight)]
        tall, wide = down.weight.shape[-1], right.weight.shape[-1]
        parts = len(images) * which.size
        ends = pooled((parts + 1,), np.int64)
        places, weights = (pooled((parts * tall * wide,), d) for d in (np.int64, np.float64))
        arrays = ends, places, weights
        sizes = (len(images), *which.shape, tall, wide, *shape[1:])
        served(of_regions)[0](*_addresses(images, which, *spans, *arrays), *sizes)
        return slice(k, k + len(images)), arrays

    def compute(  # type: ignore[override]  # nothing else calls it
        self, data: Array, *more: Array, room: list[Array]
    ) -> Array:
        (found,) = room
        if data.size:
            self._each((summed, summed_doubles), data, found, more)
        else:
            found.fill(0)
        return found

    def gradient(self, grad: Array, inputs: tuple[Array, ...]) -> dict[str, Array]:
        data, *more = inputs
        found = pooled(data.shape, data.dtype)
        found.fill(0)
        if data.size:
            self._each((shared_out, shared_out_doubles), found, grad, more)
        return {"data": found}

    def _each(self, ways: Sequence[Any], data: Array, sums: Array, more: Sequence[Array]) -> None:
        """Have a function of `span_taps.py` go through the taps of all regions."""
        way = served(ways[data.dtype == np.float64])[0]
        data, sums = map(np.ascontiguousarray, (data, sums))
        channels, parts = sums.shape[1], math.prod(sums.shape[2:])
        step = self.groups * math.prod(data.shape[2:])
        for some, taps in self.taps(data.shape, self.weighted, *more):
            part = sums[some]
            way(*_addresses(*taps, data, part), len(part), parts, channels, step)


def doubles(values: Array) -> Array:
    """Values as dense float64."""
    return np.ascontiguousarray(values, np.float64)


def _addresses(*arrays: Array) -> list[int]:
    return [a.__array_interface__["data"][0] for a in arrays]
