"""Products by tiles: every form and edge, for registers of all widths, cut for any threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gnomon import dtype as dtypes
from gnomon.code import tiles
from gnomon.dtype import DType
from gnomon.expr.node import Buffer
from gnomon.runtime.execution import threads
from gnomon.runtime.libraries import gemm, tile
from gnomon.runtime.libraries.product import product
from gnomon.runtime.statements.prepare import prepare

Array = np.ndarray[Any, Any]
SIZES = [(1, 1, 1), (7, 33, 20), (33, 50, 17), (6, 4, 16), (9, 97, 1), (32, 10, 64), (65, 13, 40)]
FORMS = [(False, False), (True, False), (False, True)]
GAP = 3


@pytest.fixture(params=[(16, 32), (8, 16), (4, 16)], ids=["512", "256", "128"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code for registers of 512, 256 and 128 bits; a processor that lacks them takes several."""
    lanes, registers = request.param

    def described(dtype: DType) -> tiles.Machine:
        elements = {dtypes.float32: ("float", 4, lanes), dtypes.float64: ("double", 8, lanes // 2)}
        return tiles.Machine(*elements[dtype], registers)

    monkeypatch.setattr(tile, "_machine", described)
    tile._code.cache_clear()
    yield
    tile._code.cache_clear()


def stored(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """Random numbers in rows with NaN in the gap after each."""
    whole = np.full((rows, columns + GAP), np.nan, np.float32)
    whole[:, :columns] = rng.standard_normal((rows, columns))
    return whole


def check(m: int, n: int, k: int, ta: bool, tb: bool, beta: float) -> Array:
    rng = np.random.default_rng(m + n + k)
    a, b = stored(rng, *((k, m) if ta else (m, k))), stored(rng, *((n, k) if tb else (k, n)))
    c = stored(rng, m, n)
    left, right = a[:, :-GAP].astype(float), b[:, :-GAP].astype(float)
    want = 0.5 * (left.T if ta else left) @ (right.T if tb else right)
    if beta:
        want += beta * c[:, :n]
    else:
        c[:] = np.nan
    step = tile.step(
        product(
            "float32", m, n, k, transpose_a=ta, transpose_b=tb, alpha=0.5, beta=beta,
            lda=a.shape[1], ldb=b.shape[1], ldc=c.shape[1],
        )
    )  # fmt: skip
    step.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    step.run()
    np.testing.assert_allclose(c[:, :n], want, rtol=1e-5, atol=1e-5 * k**0.5)
    assert np.isnan(c[:, n:]).all()
    return c[:, :n].copy()


def test_all_forms(machine: None) -> None:
    for size, (ta, tb), beta in itertools.product(SIZES, FORMS, (0.0, 1.0, -0.5)):
        check(*size, ta, tb, beta)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [(130, 200, 90), (20, 400, 300), (500, 60, 70)])
def test_any_number_of_threads_gives_the_same(
    size: tuple[int, int, int], form: tuple[bool, bool]
) -> None:
    before = threads.num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            threads.set_num_threads(count)
            found.append(check(*size, *form, 1.0))
    finally:
        threads.set_num_threads(before)
    assert all((each == found[0]).all() for each in found)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [(33, 64, 9), (163, 70, 20), (200, 130, 65), (320, 192, 5)])
def test_strips_of_many_rows_are_packed(
    machine: None,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int, int],
    form: tuple[bool, bool],
) -> None:
    plain = [check(*size, *form, beta) for beta in (0.0, -0.5)]
    monkeypatch.setattr(tile, "_by_strips", lambda p: True)
    packed = [check(*size, *form, beta) for beta in (0.0, -0.5)]
    if not form[1]:  # else the plain ones add up in another order
        assert all((a == b).all() for a, b in zip(plain, packed, strict=True))


def test_strips_are_for_registers_that_hold_four_columns(machine: None) -> None:
    wide = tile._machine(dtypes.float32).registers >= 32
    assert tile._by_strips(product("float32", 320, 256, 64)) == wide
    assert tile._by_strips(product("float32", 64, 256, 64, transpose_b=True)) == wide
    for m, n, k in ((100, 256, 64), (320, 10, 64), (320, 256, 257), (4000, 256, 64)):
        assert not tile._by_strips(product("float32", m, n, k))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_batches_with_a_b_each(machine: None, form: tuple[bool, bool], count: int) -> None:
    (m, n, k), (ta, tb), rng = (9, 18, 5), form, np.random.default_rng(count)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((5, m, k), (5, k, n), (5, m, n)))
    left, right = (
        np.ascontiguousarray(x.swapaxes(1, 2) if t else x) for x, t in ((a, ta), (b, tb))
    )
    want, before = 0.5 * c + a @ b, threads.num_threads()
    what = product(
        "float32", m, n, k, transpose_a=ta, transpose_b=tb, beta=0.5, batch=5,
        strides=(m * k, k * n, m * n),
    )  # fmt: skip
    try:
        threads.set_num_threads(count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tile, "_GRAIN", 100)
            step = tile.step(what)
    finally:
        threads.set_num_threads(before)
    step.bind(left.ctypes.data, right.ctypes.data, c.ctypes.data)
    step.run()
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_packed(machine: None, dtype: DType) -> None:
    for (m, n, k), turned in itertools.product([*SIZES, (20, 96, 3), (3, 400, 2)], (False, True)):
        found = [packed(dtype, m, n, k, turned, count) for count in (1, 3)]
        assert (found[0] == found[1]).all()


def packed(dtype: DType, m: int, n: int, k: int, turned: bool, count: int) -> Array:
    """Two products by one packed matrix, whose other operands lie apart."""
    rng, before = np.random.default_rng(m + n + k), threads.num_threads()
    a, b, c = (
        rng.standard_normal(s).astype(dtype.numpy) for s in ((2, m + 1, k), (k, n), (2, m + 2, n))
    )
    stored = np.ascontiguousarray(b.T if turned else b)
    matrix = Buffer((k, n), dtype, (1, k) if turned else (n, 1), stored.ctypes.data, stored)
    want = c.copy()
    want[:, :m] = 2.0 * c[:, :m] + a[:, :m] @ b
    try:
        threads.set_num_threads(count)
        panels, stores = tile.panels(matrix)
        step = gemm.gemm_step(
            dtype, m, n, k, a.ctypes.data, panels.address, c.ctypes.data, beta=2.0, packed=True,
            batch=2, strides=((m + 1) * k, 0, (m + 2) * n), keep=panels,
        )  # fmt: skip
        for each in (*prepare(stores(), "pack"), step):
            each.run()
    finally:
        threads.set_num_threads(before)
    error = (1e-5 if dtype is dtypes.float32 else 1e-13) * k**0.5
    np.testing.assert_allclose(c, want, rtol=error, atol=error)
    return c


def test_small_products_come_here() -> None:
    at = np.zeros(64, np.float32)
    step = gemm.gemm_step("float32", 2, 3, 4, *[at.ctypes.data] * 2, at[32:].ctypes.data)
    here = tile.fits(product("float32", 2, 3, 4))
    assert isinstance(step, tile.TileStep) == here == tile._has_fma()
    assert not tile.fits(product("float32", 2, 3, 4, transpose_a=True, transpose_b=True))
    assert not tile.fits(product("float64", 2, 3, 4))
    assert not tile.fits(product("float32", 1000, 1000, 1000))
    apart = {"batch": 2, "strides": (6, 8, 12)}
    assert tile.fits(product("float32", 2, 3, 4, transpose_a=True, **apart)) == tile._has_fma()
    assert not tile.fits(product("float32", 2, 3, 4, transpose_b=True, **apart))


def test_tiles_are_compiled_when_a_product_needs_them(machine: None) -> None:
    code = tile._code(dtypes.float32)
    assert not code.tiles
    check(8, 16, 5, False, False, 0.0)
    first = dict(code.tiles)
    assert 1 <= len(first) <= 2 < len(code.numbers) // 3
    check(16, 16, 9, True, False, 1.0)
    assert code.tiles == first
    check(8, 16, 5, False, True, 0.0)
    assert len(first) < len(code.tiles) <= len(first) + 4
    assert {name for name, k in code.numbers.items() if code.table.words[k]} == {*code.tiles}


def test_each_extent_is_cut_into_the_tiles_that_are_told() -> None:
    found = tiles.needed(tiles.Machine("float", 4, 16, 32), 13, 17, "inner")
    assert found == [f"inner.{r}.{c}" for r in (6, 1) for c in (4, 1)]
    assert tiles.needed(tiles.Machine("float", 4, 8, 16), 3, 47, "outer") == [
        f"outer.{r}.{v}" for r in (2, 1) for v in ("whole", "3")
    ]
