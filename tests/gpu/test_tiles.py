"""Operands that are read across, by way of tiles in a simulated GPU's shared memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon import config
from gnomon import dtype as dt
from gnomon.expr import ext
from gnomon.expr.node import Expr, cast
from gnomon.plan.gpu.grid import Body, Loop, Share, When, Wide
from gnomon.plan.gpu.tile import PITCH
from gnomon.plan.statement import Store
from tests.code.gpu import entries
from tests.gpu.moved import both, moved, run
from tests.gpu.test_wide import DTYPES, matrices, part
from tests.plan.test_expressions import over

SIDES = (1, 3, 15, 16, 17, 31, 32, 33, 63, 65)
LOOSE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    count = 2 if dtype == "bool" else 5
    drawn = np.random.default_rng(sum(shape)).integers(0, count, shape)
    return drawn.astype(dt.of(dtype).numpy)


@settings(max_examples=60, suppress_health_check=LOOSE)
@given(st.data(), st.sampled_from(SIDES), st.sampled_from(SIDES), st.sampled_from(DTYPES))
def test_random_transposes(data, rows, columns, dtype):
    """Of views anywhere, one beside another, into memory that begins anywhere."""
    with config.using(gpu="simulated"):
        a, a_is = data.draw(matrices(rows, columns, (1, 1, -1, 2)))
        x = moved(over(numbers((columns, rows), dtype)))
        dest = moved(over(np.zeros((columns, rows + 1), np.float32)))
        total = cast(ext.transpose(a), dt.float32) + cast(x, dt.float32)
        run([Store(part(dest, 1, rows, 1), "plusto", total)])
        want = a_is.T.astype(np.float32) + x.numpy().astype(np.float32)
        np.testing.assert_array_equal(dest.numpy()[:, 1:], want)
        assert not dest.numpy()[:, 0].any()


def holds_tiles(e: Expr) -> bool:
    """Whether the kernel of an expression keeps tiles."""
    (entry,) = entries([Store(over(np.zeros(e.shape, e.dtype.numpy)), "saveto", e)])
    return shares(entry.body)


def shares(body: Body) -> bool:
    inside = [s.body for s in body if isinstance(s, Loop | When | Wide)]
    return any(isinstance(s, Share) for s in body) or any(map(shares, inside))


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))), ids=str)
def test_axes_in_any_order(axes):
    x = over(numbers((33, 18, 40), "float32"))
    e = ext.transpose(x, axes)
    want, got = both(e, "plusto")
    np.testing.assert_array_equal(got, want)
    assert holds_tiles(e) == (axes[-1] != 2)


def test_tiles_are_for_what_is_read_across():
    x, y = (over(numbers((40, 50), "float64")) for _ in range(2))
    assert holds_tiles(ext.transpose(x) + ext.transpose(y) * 2.0)
    assert not holds_tiles(x + y)
    assert not holds_tiles(ext.flip(x, 1))
    assert not holds_tiles(ext.broadcast_to(over(numbers((40, 1), "float64")), (40, 50)))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_neither_rows_nor_columns_meet_in_a_bank(size):
    """32 banks of 4 bytes; 8-byte values go in two halves of a warp."""
    lanes = np.arange(32 if size < 8 else 16)
    for places in (lanes, lanes * PITCH):
        words = places * size // 4
        banks: dict[int, set[int]] = {}
        for word in words:
            banks.setdefault(int(word) % 32, set()).add(int(word))
        assert max(map(len, banks.values())) == 1
