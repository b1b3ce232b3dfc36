"""Sums and copies of any number of arrays as one operation of the engine, with a priority."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from gnomon.expr.node import Buffer, cast
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.elsewhere import together
from gnomon.ndarray.lazy.batch import Batch, Group, flat
from gnomon.runtime.statements.prepare import Store

KEPT = 256
_batches: dict[Any, Batch] = {}

#: a target with the arrays whose sum it gets; a copy is a sum of one
Job = tuple[Any, Sequence[Any]]


def add_up(jobs: Sequence[Job], priority: int = 0, overtakes: bool = False) -> None:
    """Let each target become the sum of its sources, of one dtype, cast to the target's own.

    Targets share no memory with the sources, and may be on another device: the sum is made there.
    `overtakes`: see `Batch.push`.
    """
    arrays = [array for target, sources in jobs for array in (target, *sources)]
    if {x.__class__ for x in arrays} - {Array.main}:
        jobs = _made_alone(jobs)
        arrays = [array for target, sources in jobs for array in (target, *sources)]
    if not jobs:
        return
    counts = tuple([1 + len(sources) for _, sources in jobs])
    key = (counts, *[array._layout for array in arrays])
    batch = _batches.get(key)
    if batch is None:
        if len(_batches) >= KEPT:
            _batches.clear()
        batch = _batches[key] = _made(arrays, counts)
    starts = [0, *itertools.accumulate(counts)][:-1]
    batch.push(arrays, starts, priority=priority, overtakes=overtakes)


def _made_alone(jobs: Sequence[Job]) -> list[Job]:
    """Make the sums with arrays of other storage one by one; gives the other jobs."""
    others = list[Job]()
    for target, sources in jobs:
        if all(x.__class__ is Array.main for x in (target, *sources)):
            others.append((target, sources))
            continue
        here = [x if together(x.context, target.context) else x.as_in_context(target.context)
                for x in sources]  # fmt: skip
        target[:] = functools.reduce(operator.add, here)
    return others


def _sum(operands: Sequence[Buffer]) -> list[Store]:
    """The first of some arrays as the sum of the others."""
    target, *sources = operands
    return [Store(target, "saveto", cast(functools.reduce(operator.add, sources), target.dtype))]


def _made(arrays: Sequence[Any], counts: Sequence[int]) -> Batch:
    def groups(buffers: Sequence[Buffer]) -> Iterator[Group]:
        start = 0
        for count in counts:
            yield Group(flat(buffers[start : start + count]), _sum)
            start += count

    return Batch("sum", [array._layout for array in arrays], groups)
