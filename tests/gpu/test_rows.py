"""Rows that groups of threads of a simulated GPU have in registers."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import ext, fn
from gnomon.expr.node import Expr
from gnomon.plan.statement import Store
from tests.code import gpu
from tests.code.test_targets import softmax
from tests.gpu.moved import both, close, moved, run
from tests.gpu.test_wide import part
from tests.plan.test_expressions import over

LENGTHS = (1, 2, 3, 4, 7, 31, 64, 130, 257, 1000, 2048, 2050)
BOUNDS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-14}


def drawn(rows: int, n: int, dtype: str = "float32") -> np.ndarray:
    return (np.random.default_rng(n).normal(size=(rows, n)) * 3).astype(dt.of(dtype).numpy)


def along(e: Expr, how: str) -> Expr:
    return ext.broadcast_to(ext.reduce(e, how, (1,), keepdims=True), e.shape)


def normalized(x: Expr, scale: Expr) -> Expr:
    count = 1.0 / x.shape[1]
    centred = x - along(x, "sum") * count
    width = fn.sqrt(along(centred * centred, "sum") * count + 1e-3)
    return centred / width * ext.broadcast_to(scale, x.shape)


def log_softmax(x: Expr) -> Expr:
    shifted = x - along(x, "max")
    return shifted - fn.log(along(fn.exp(shifted), "sum"))


@pytest.mark.parametrize("dtype", list(BOUNDS))
def test_rows_of_every_length(dtype):
    """Shorter than a piece, of part of a warp, of a block; too long for registers."""
    for n in LENGTHS:
        x = over(drawn(3, n, dtype))
        for e in (softmax(x), log_softmax(x), normalized(x, over(drawn(1, n, dtype)))):
            want, got = both(e, "plusto" if n % 2 else "saveto")
            close(got, want, BOUNDS[dtype])


@pytest.mark.parametrize("start", [0, 1, 4])
def test_rows_in_place_and_anywhere(start):
    x = drawn(4, 72)
    place = moved(over(x))
    row = part(place, start, 64, 1)
    run([Store(row, "saveto", softmax(row))])
    got = place.numpy()
    want = np.exp(x - x[:, start : start + 64].max(1, keepdims=True))[:, start : start + 64]
    close(got[:, start : start + 64], want / want.sum(1, keepdims=True), 2e-6)
    np.testing.assert_array_equal(got[:, start + 64 :], x[:, start + 64 :])


@pytest.mark.parametrize(("n", "times"), [(300, 1), (600, 3)])
def test_what_is_held_is_read_once(n, times, monkeypatch):
    """Rows that 64 threads have registers for; others are read again, and what is kept of them."""
    counts = {"load": 0, "store": 0}
    for name in counts:
        before = getattr(gpu.Here, name)

        def counted(self, places, *rest, name=name, before=before):
            counts[name] += len(places)
            return before(self, places, *rest)

        monkeypatch.setattr(gpu.Here, name, counted)
    dest = np.zeros((5, n), np.float32)
    gpu.run([Store(over(dest), "saveto", softmax(over(drawn(5, n))))], (64, 1))
    np.testing.assert_allclose(dest.sum(1), 1, rtol=1e-5)
    assert counts == {"load": 5 * n * times, "store": 5 * n * (2 if times > 1 else 1)}
