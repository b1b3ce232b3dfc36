"""Rows written where they belong: what lazy updates and index assignment on devices are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gnomon.expr.ext.take import take_grad
from gnomon.expr.node import Buffer
from gnomon.ndarray.core.bounded_cache import RECIPES
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy.batch import Batch, Group
from gnomon.plan.statement import PUT, Store

_batches: dict[tuple[Layout, ...], Batch] = {}


def store_rows(arrays: Sequence[Any], index: Any, values: Sequence[Any]) -> None:
    """Write rows, each of them once, of several arrays where these are."""
    operands = [index, *values, *arrays]
    layouts = tuple([x._layout for x in operands])
    batch = _batches.get(layouts)
    if batch is None:
        batch = Batch("store rows", layouts, _puts)
        RECIPES.put(_batches, layouts, batch)
    batch.push(operands, range(1 + len(values), len(operands)))


def _puts(buffers: Sequence[Buffer]) -> Iterator[Group]:
    """What puts rows into arrays: `store_rows` says in which order they come."""
    index, *others = buffers
    half = len(others) // 2
    for values, array in zip(others[:half], others[half:], strict=True):
        yield Group((index, values, array), _put_rows)


def _put_rows(operands: Sequence[Buffer]) -> list[Store]:
    index, values, array = operands
    return [Store(array, PUT, take_grad(index, values, array.shape[0]))]
