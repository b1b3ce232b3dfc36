"""Scatters on a simulated GPU: elements sorted by their rows, each row a segment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import ext
from gnomon.expr.node import Buffer, Expr
from gnomon.plan.cut import Piece
from gnomon.plan.gpu import sorting
from gnomon.plan.gpu.grid import Body, Loop, When, Wide
from gnomon.plan.gpu.spread import spread
from gnomon.plan.pipeline import plan
from gnomon.plan.scatter import pieces
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.statements.prepare import HOST
from tests.gpu.moved import on_gpu
from tests.plan.test_expressions import over

SIZES = [(1, 3, 2), (40, 7, 5), (255, 9, 1), (257, 2, 3), (700, 50, 8), (1100, 1100, 2), (9, 1, 4)]


def drawn(count: int, rows: int, *shape: int, dtype: str = "float32") -> tuple[np.ndarray, ...]:
    """Numbers of rows, some outside, and what is to be added there."""
    numbers = np.random.default_rng(count)
    values = numbers.integers(-9, 9, (count, *shape)) / (1 if "int" in dtype else 8)
    return numbers.integers(-2, rows + 2, count), values.astype(dtype)


def sums(index: np.ndarray, values: np.ndarray, rows: int) -> np.ndarray:
    found = np.zeros((rows, *values.shape[index.ndim :]), values.dtype)
    np.add.at(found, np.clip(index, 0, rows - 1), values)
    return found


@pytest.mark.parametrize("saver", ["saveto", "plusto", "minusto"])
@pytest.mark.parametrize(("count", "rows", "width"), SIZES)
def test_sums_of_rows(count, rows, width, saver):
    index, values = drawn(count, rows, width)
    want = sums(index, values, rows)
    got = on_gpu(ext.take_grad(over(index), over(values), rows), saver)
    np.testing.assert_array_equal(got, {"saveto": want, "plusto": 2 + want}.get(saver, 2 - want))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int32"])
def test_sums_of_every_kind(dtype):
    index, values = drawn(300, 6, 3, dtype=dtype)
    got = on_gpu(ext.take_grad(over(index), over(values), 6))
    np.testing.assert_array_equal(got, sums(index, values, 6))


def test_numbers_of_several_axes():
    index, values = drawn(300, 6, 2, 5)
    e = ext.take_grad(over(index.reshape(3, 100)), over(values.reshape(3, 100, 2, 5)), 6)
    np.testing.assert_array_equal(on_gpu(e), sums(index, values, 6))


def test_what_is_added_is_a_sum_itself():
    """Its loop cannot be within one whose length stands in memory."""
    index, values = drawn(300, 6, 100)
    wide = ext.broadcast_axis(ext.reduce(over(values), "sum", 1), (300, 40), 0)
    want = sums(index, np.repeat(values.sum(1, keepdims=True), 40, 1), 6)
    np.testing.assert_array_equal(on_gpu(ext.take_grad(over(index), wide, 6) * 2 + 1), 2 * want + 1)


def test_order_within_a_row():
    """What meets is added in the order in which it stands, but for pieces of very many."""
    values = (10.0 ** np.arange(-8, 8, 0.01)[:, None] * [1, -1]).astype("float32")
    index = np.arange(len(values)) % 40
    got = on_gpu(ext.take_grad(over(index), over(values), 40))
    np.testing.assert_array_equal(got, sums(index, values, 40))


@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("count", [128, 129, 500, 1000])
def test_rows_of_very_many_elements(count, width):
    """Those of a row that fill a piece are summed there, the others around them by the row."""
    for first in (0, 1, 63, 64, 100):
        index, values = drawn(count, 5, width)
        index[first:] = 2
        for order in (index, np.random.default_rng(1).permutation(index), np.full(count, 3)):
            got = on_gpu(ext.take_grad(over(order), over(values), 5), "plusto")
            np.testing.assert_array_equal(got, 2 + sums(order, values, 5))


def cut(count: int, rows: int) -> list[Piece]:
    def temporary(e: Expr) -> Buffer:
        return Buffer(e.shape, e.dtype)

    value = ext.take_grad(Buffer((count,), dt.int32), Buffer((count, 64)), rows)
    return pieces([Store(temporary(value), "saveto", value)], HOST.libraries, temporary, False)


def test_one_kernel_merges_runs_of_any_length():
    kernels = [Structure(piece).key for piece in cut(9000, 50)]
    runs = -(-9000 // sorting.RUN)
    assert len(kernels) == 5 + (runs - 1).bit_length()
    assert len(set(kernels)) == 6


def pieces_in(body: Body) -> Iterator[Wide]:
    """The pieces that threads take at once."""
    for stmt in body:
        if isinstance(stmt, Wide):
            yield stmt
        elif isinstance(stmt, Loop | When):
            yield from pieces_in(stmt.body)


def test_rows_are_moved_by_whole_pieces():
    last = cut(9000, 50)[-1]
    (entry,) = spread(plan(last, Structure(last))).entries
    assert entry.kind == "threads"
    assert [w.width for w in pieces_in(entry.body)] == [4, 1]


def test_long_sorts_are_right(monkeypatch):
    monkeypatch.setattr(sorting, "RUN", 2)
    index, values = drawn(1000, 30, 2)
    got = on_gpu(ext.take_grad(over(index), over(values), 30))
    np.testing.assert_array_equal(got, sums(index, values, 30))
