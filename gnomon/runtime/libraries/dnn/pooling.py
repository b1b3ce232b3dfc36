"""Pooling by oneDNN: the largest element or the mean of every window, and the gradients.

Data stay plain: oneDNN pools them as they are, images and channels shared out to the threads. Of
several largest elements of a window the first takes the gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gnomon.base import ParamError, ShapeError, complaint
from gnomon.ground.record import record
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries.dnn.geometry import Sizes, check_axes, pieces, windows
from gnomon.runtime.libraries.dnn.layout import NOTHING, Layout, Side, choose, plain, sides
from gnomon.runtime.libraries.dnn.library import (
    Description,
    Primitive,
    attributes,
    describe,
    kept,
    one_thread,
    primitive,
)
from gnomon.runtime.libraries.dnn.phases import Arena, DnnStep, Phase, Place, Task
from gnomon.shape import prod

_GRAIN = 100_000  # elements read below which another thread does not pay
_TRAINING = 64
_KINDS = {"max": 0x1FF, "avg_padded": 0x2FF, "avg": 0x3FF}


@record(slots=False)
class Pooling:
    """Which pooling of `data` (N, C, space...), one number for each spatial axis.

    `kind` is 'max', 'avg' (the mean of the elements inside) or 'avg_padded' (padding counts as
    zeros, so that every mean divides by the whole window). `pad_right` is `pad_left` where it is
    not given.

    >>> Pooling("max", (2, 3, 8, 8), (2, 2), stride=(2, 2)).out
    (2, 3, 4, 4)

    Raises:
        ShapeError: a size is 0, or a window is larger than the padded data.
        ParamError: an unknown kind, not one number for each axis, or padding as wide as a window.
    """

    kind: str
    data: Sizes
    kernel: Sizes
    stride: Sizes = ()
    pad_left: Sizes = ()
    pad_right: Sizes = ()

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ParamError(complaint("Pooling", "kind", f"one of {', '.join(_KINDS)}", self.kind))
        axes = len(self.data) - 2
        check_axes(self, "kernel", (), 1)
        check_axes(self, "stride", (1,) * axes, 1)
        check_axes(self, "pad_left", (0,) * axes, 0)
        check_axes(self, "pad_right", self.pad_left, 0)
        pads = zip(self.pad_left, self.kernel, strict=True)
        if any(pad >= k for pad, k in pads):
            raise ParamError(complaint("Pooling", "pad_left", "less than a window", self.pad_left))
        if not 1 <= axes <= 3 or min(*self.data, *self.out) < 1:
            raise ShapeError(
                complaint("Pooling", "data", f"windows {self.kernel} inside", self.data)
            )

    @property
    def out(self) -> Sizes:
        """The shape of the result: (N, C, places...)."""
        space = windows(self.data[2:], self.kernel, self.stride, self.pad_left, self.pad_right)
        return (*self.data[:2], *space)

    def of(self, batch: int) -> Pooling:
        """The same for another number of images."""
        return replace(self, data=(batch, *self.data[1:]))


@kept
def forward_pool(
    pool: Pooling, src: Description | None = None, dst: Description | None = None
) -> Primitive:
    """The forward primitive; data are plain where no layout is given."""
    with one_thread() as found:
        return primitive(*_forward_arguments(pool, found.engine, src, dst))


def _forward_arguments(
    pool: Pooling, engine: Any, src: Description | None, dst: Description | None
) -> tuple[Any, ...]:
    return (
        "dnnl_pooling_forward_primitive_desc_create", engine, _TRAINING, _KINDS[pool.kind],
        src or plain(pool.data), dst or plain(pool.out), *_geometry(pool), attributes(),
    )  # fmt: skip


@kept
def backward_pool(
    pool: Pooling, src: Description | None = None, dst: Description | None = None
) -> Primitive:
    """The primitive for the gradient of the data."""
    with one_thread() as found:
        hint = describe(*_forward_arguments(pool, found.engine, src, dst))
        return primitive(
            "dnnl_pooling_backward_primitive_desc_create", found.engine, _KINDS[pool.kind],
            src or plain(pool.data), dst or plain(pool.out), *_geometry(pool), hint, attributes(),
        )  # fmt: skip


def _geometry(pool: Pooling) -> tuple[Sizes, ...]:
    none = (0,) * len(pool.kernel)
    return pool.stride, pool.kernel, none, pool.pad_left, pool.pad_right


def pooling_forward(
    pool: Pooling,
    *,
    layouts: Mapping[str, Layout] = NOTHING,
    name: str = "pooling",
) -> DnnStep:
    """out = the pooled data.

    Operands to bind: `data`, `out`. float32; plain unless `layouts` says otherwise.

    Raises:
        DeviceError: oneDNN is not available.
        Unsupported: oneDNN does not do it.
    """
    work = _Work(pool, sides(layouts, data=pool.data, out=pool.out))
    return work.step(name, ("data", "out"), forward_pool)


def pooling_backward(
    pool: Pooling,
    *,
    layouts: Mapping[str, Layout] = NOTHING,
    name: str = "pooling_backward",
) -> DnnStep:
    """out = the gradient of the data, from `grad` of the result.

    Operands to bind: `out`, `grad`, and for 'max' `data`, from which the winners are found again.
    Raises as `pooling_forward`.
    """
    work = _Work(pool, sides(layouts, out=pool.data, grad=pool.out))
    third = ("data",) if pool.kind == "max" else ()
    return work.step(name, ("out", "grad", *third), backward_pool)


class _Work:
    """A pooling cut into shares of the batch."""

    def __init__(self, pool: Pooling, sides: tuple[Side, ...]) -> None:
        self.pool = pool
        self.data, self.out = sides
        self.arena = Arena()

    def step(self, name: str, operands: tuple[str, ...], make: Callable[..., Primitive]) -> DnnStep:
        """The step, of the primitives that `make` makes."""
        pool = self.pool
        theirs = ("src", "dst") if make is forward_pool else ("diff_src", "diff_dst")
        choose((self.data, self.out), theirs, functools.partial(make, pool))
        count = max(1, min(threads.num_threads(), pool.data[0], prod(pool.data) // _GRAIN))
        shares = pieces(pool.data[0], count)
        found = self._primitive(make, shares[0][1])
        task = self._forward if make is forward_pool else self._backward
        tasks = [task(*share) for share in shares]
        moved = 4 * (prod(pool.data) + prod(pool.out))
        work = prod(pool.out) * prod(pool.kernel)
        phases = [Phase(name, tasks, moved, work)]
        layouts = dict(zip(operands, (self.data.layout, self.out.layout), strict=False))
        return DnnStep(name, operands, phases, self.arena, found.name, layouts=layouts)

    def _primitive(self, make: Callable[..., Primitive], count: int) -> Primitive:
        return make(self.pool.of(count), self.data.fixed_rows(count), self.out.fixed_rows(count))

    def _forward(self, start: int, count: int) -> Task:
        task, what = Task(self.arena), self._primitive(forward_pool, count)
        places = {"src": self.data.rows(start, count), "dst": self.out.rows(start, count)}
        if self.pool.kind == "max":
            places["workspace"] = task.temporary(what.operands["workspace"])
        task.run(what, places)
        return task

    def _backward(self, start: int, count: int) -> Task:
        task, what = Task(self.arena), self._primitive(backward_pool, count)
        places = {"diff_src": self.data.rows(start, count), "diff_dst": self.out.rows(start, count)}
        if self.pool.kind == "max":
            places["workspace"] = task.temporary(what.operands["workspace"])
            self._find(task, start, count, places["workspace"])
        task.run(what, places)
        return task

    def _find(self, task: Task, start: int, count: int, winners: Place) -> None:
        """The forward pass once more, for its winners alone."""
        what = self._primitive(forward_pool, count)
        source = self.data.rows(start, count)
        data = Place(source.description, 3, source.offset)
        pooled = task.temporary(what.operands["dst"])
        task.run(what, {"src": data, "dst": pooled, "workspace": winners})
