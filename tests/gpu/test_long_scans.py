"""Scans of few long rows on a simulated GPU: in pieces, each by a group of threads."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import dtype as dt
from gnomon import nd
from gnomon.expr import ext
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.oracle import evaluate
from gnomon.plan.gpu import long_scans
from gnomon.plan.gpu.long_scans import ScanFrom, in_pieces
from gnomon.plan.statement import Store
from gnomon.shape import row_major
from tests.gpu.moved import close, on_cpu, on_gpu
from tests.plan.test_expressions import over

COLUMNS = [((1000, 4), 0), ((2, 701, 3), 1), ((51, 40), 0), ((97, 1, 2), 0)]
SHAPES = [
    ((1000,), 0),
    ((3, 701), 1),
    ((2, 3, 997), 2),
    ((2, 100), 1),
    ((2, 101), 1),
    ((2, 199), 1),
]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.random.default_rng(shape).integers(-3, 4, shape)
    return (values / 8 if dtype.startswith("float") else values).astype(dtype)


@pytest.fixture
def short(monkeypatch):
    """Rows of 100 elements are long, and so are columns of 50."""
    monkeypatch.setattr(long_scans, "PIECE", 100)
    monkeypatch.setattr(long_scans, "STEPS", 50)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES + COLUMNS)
def test_sums_of_every_kind(short, shape, axis, reverse, exclusive):
    for dtype in ("float32", "int32", "float64"):  # eighths: sums are exact
        e = ext.scan(over(drawn(shape, dtype)), "sum", axis, exclusive, reverse)
        np.testing.assert_array_equal(on_gpu(e), on_cpu(e))
    e = ext.scan(over(drawn(shape, "int32")), "max", axis, exclusive, reverse)
    np.testing.assert_array_equal(on_gpu(e), on_cpu(e))


def test_other_reducers_and_half_floats(short):
    x = drawn((2, 613), "float32")
    for dtype, rtol in (("float32", 1e-5), ("float64", 1e-12), ("float16", 1e-3)):
        e = ext.logcumsumexp(over(x.astype(dtype)), 1)
        close(on_gpu(e), on_cpu(e), rtol)
    e = ext.cumsum(over(drawn((2, 613), "float16")), 1)
    np.testing.assert_array_equal(on_gpu(e), on_cpu(e))
    whole = ext.cumprod(over(np.where(x < 0, -1, 1).astype("int32")), 1)
    np.testing.assert_array_equal(on_gpu(whole), on_cpu(whole))


def test_what_is_no_number(short):
    x = drawn((1, 900), "float32")
    x[0, 300], x[0, 650] = np.inf, np.nan
    for e in (ext.cumsum(over(x), 1), ext.scan(over(x), "sum", 1, reverse=True)):
        np.testing.assert_array_equal(on_gpu(e), on_cpu(e))


def test_strided_rows_and_expressions(short):
    x = drawn((700, 4), "float32")
    for source in (over(x.T), over(x[::2, :1].T) * 2.0 + 1.0):
        for saver in ("saveto", "plusto"):
            e = ext.cumsum(source, 1)
            np.testing.assert_array_equal(on_gpu(e, saver), on_cpu(e, saver))


def test_the_same_bits_each_time():
    x = over(np.random.default_rng(0).standard_normal(20_000).astype("float32"))
    e = ext.cumsum(x)
    first = on_gpu(e)
    np.testing.assert_array_equal(on_gpu(e), first)
    np.testing.assert_allclose(first, evaluate_wide(x), rtol=1e-4, atol=1e-4)


def evaluate_wide(x: Buffer) -> np.ndarray:
    return np.cumsum(x.numpy().astype("float64"))


def test_the_index_rule_says_what_a_piece_does():
    x = drawn((2, 40), "float32")
    before = over(np.stack([np.zeros(2), x[:, :20].sum(1)], 1).astype("float32"))
    from_there = ScanFrom(over(x), before, 20, ext.cumsum(over(x), 1).reducer, 1, False, False)
    np.testing.assert_array_equal(evaluate(from_there), np.cumsum(x, 1))
    np.testing.assert_array_equal(on_gpu(from_there), np.cumsum(x, 1))


def groups(shape: tuple[int, ...], reducer: str = "sum", axis: int = -1, **how) -> int:
    """How many kernels a scan takes."""

    def temporary(e: Expr) -> Buffer:
        return Buffer(e.shape, e.dtype)

    dtype = dt.of(how.pop("dtype", "float32"))
    dest = Buffer(shape, dtype, how.pop("strides", row_major(shape)))
    return len(
        in_pieces([Store(dest, "saveto", ext.scan(Buffer(shape, dtype), reducer, axis))], temporary)
    )


def test_which_rows_are_cut():
    assert groups((10**6,)) == groups((500, 10**6)) == 3
    assert groups((long_scans.PIECE,)) == 1
    assert groups((1000, 10**6)) == 1  # there are groups enough
    assert groups((10**6, 4), axis=0) == 3
    assert groups((1000, 4), axis=0) == groups((10**4, 10**5), axis=0) == 1
    assert groups((10**6, 4), axis=0, strides=(1, 10**6)) == 3
    assert groups((10**6,), "prod") == 1  # a part may overflow where the whole does not
    assert groups((10**6,), "prod", dtype="int32") == 3
    assert groups((0,)) == groups((0, 10**6)) - 2 == 1


def test_arrays(short):
    x = drawn((3, 450), "float32")
    found = [nd.cumsum(nd.array(x, ctx=ctx), axis=1).asnumpy() for ctx in (mx.gpu(0), mx.cpu())]
    np.testing.assert_array_equal(*found)
