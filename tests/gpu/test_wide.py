"""Moves of 16 bytes by the threads of a simulated GPU: whatever the dtype, the place, the sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon import config
from gnomon import dtype as dt
from gnomon.expr import ext
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.plan.gpu.grid import Body, Loop, Wide
from gnomon.plan.statement import Store
from tests.code.gpu import entries
from tests.gpu.moved import moved, on_gpu, run
from tests.plan.test_expressions import over

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64")
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 64, 67, 131)
LOOSE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def part(held: Buffer, start: int, n: int, step: int) -> Buffer:
    """Columns of a matrix in memory, from `start` on."""
    first = start + (n - 1) * -step if step < 0 else start
    rows, inner = held.strides
    address = held.address + first * held.dtype.size
    strides = rows, inner * step
    return Buffer((held.shape[0], n), held.dtype, strides, address, held, held.device)


def of_numpy(held: np.ndarray, start: int, n: int, step: int) -> np.ndarray:
    """The same columns by NumPy."""
    last = start + n * abs(step)
    return held[:, start:last:step] if step > 0 else held[:, start:last][:, ::-1][:, ::-step]


@st.composite
def matrices(draw: st.DrawFn, rows: int, n: int, steps: tuple[int, ...]):
    """A matrix of small numbers, part of a larger one: on the GPU, and by NumPy."""
    dtype = dt.of(draw(st.sampled_from(DTYPES)))
    start, step = draw(st.sampled_from((0, 0, 1, 3, 4, 16))), draw(st.sampled_from(steps))
    pitch = start + n * abs(step) + draw(st.sampled_from((0, 0, 1, 12)))
    pitch += -pitch % 16 if draw(st.booleans()) else 0
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    held = rng.integers(0, 2 if dtype.kind == "b" else 5, (rows, pitch)).astype(dtype.numpy)
    there = part(moved(over(held)), start, n, step)
    return there, of_numpy(held, start, n, step)


@settings(max_examples=120, suppress_health_check=LOOSE)
@given(st.data(), st.sampled_from((1, 2, 5)), st.sampled_from(LENGTHS))
def test_random_views(data, rows, n):
    """A sum of views, of one for each row and of one for all rows, into a part of a matrix."""
    with config.using(gpu="simulated"):
        a, a_is = data.draw(matrices(rows, n, (1, 1, 1, -1, 2)))
        b, b_is = data.draw(matrices(1, n, (1, -1)))
        c, c_is = data.draw(matrices(rows, 1, (1,)))
        total = sum_of([cast(a, dt.float32), spread(b, a.shape), spread(c, a.shape)])
        want = a_is.astype(np.float32) + b_is.astype(np.float32) + c_is.astype(np.float32)
        into(data, total, want, rows, n)


def into(data: st.DataObject, value: Expr, want: np.ndarray, rows: int, n: int) -> None:
    """Store `value` in a part of a matrix of any dtype, and look at all of it."""
    dtype = dt.of(data.draw(st.sampled_from(DTYPES)))
    start = data.draw(st.sampled_from((0, 0, 1, 3, 4)))
    step = data.draw(st.sampled_from((1, 1, 1, 2)))
    whole = np.full((rows, start + n * step + 3), 1, dtype.numpy)
    place = moved(over(whole))
    run([Store(part(place, start, n, step), "plusto", cast(value, dtype))])
    whole[:, start : start + n * step : step] += want.astype(dtype.numpy)
    np.testing.assert_array_equal(place.numpy(), whole)


def sum_of(parts: list[Expr]) -> Expr:
    first, *others = parts
    for other in others:
        first = first + other
    return first


def spread(e: Expr, shape: tuple[int, ...]) -> Expr:
    return ext.broadcast_to(cast(e, dt.float32), shape)


@pytest.mark.parametrize("rows", [3, 300_000])
def test_columns_are_summed_several_at_once(rows):
    """Where there are many; with as many threads as columns where there are few."""
    x = np.random.default_rng(0).integers(0, 9, (2, rows)).astype(np.float32)
    dest = moved(over(np.zeros(rows, np.float32)))
    run([Store(dest, "saveto", ext.reduce(moved(over(x)), "sum", (0,)))])
    np.testing.assert_array_equal(dest.numpy(), x.sum(0))


def widths(body: Body) -> list[int]:
    """How many elements are taken at once."""
    found = []
    for stmt in body:
        found += [stmt.width] if isinstance(stmt, Wide) else []
        found += widths(stmt.body) if isinstance(stmt, Loop | Wide) else []
    return found


@pytest.mark.parametrize(
    ("dtype", "width"), [("int8", 16), ("float16", 8), ("bfloat16", 8), ("float64", 2)]
)
def test_sixteen_bytes_are_moved_at_once(dtype, width):
    x = over(np.ones(100, dt.of(dtype).numpy))
    (entry,) = entries([Store(over(np.zeros(100, dt.of(dtype).numpy)), "saveto", x + x)])
    assert widths(entry.body) == [width, 1]
    assert entry.shape({("dim", 0): 256 * width * 7}, 132) == (7, 256, 1)


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(
    ("dtype", "width"), [("uint8", 16), ("int16", 8), ("float32", 4), ("int64", 2)]
)
def test_threads_scan_sixteen_bytes_at_once(dtype, width, exclusive, step):
    x = np.random.default_rng(0).integers(0, 2, (3, 1003)).astype(dtype)
    e = ext.scan(over(x), "sum", 1, exclusive, step < 0)
    (entry,) = entries([Store(over(np.zeros_like(x)), "saveto", e)])
    assert widths(entry.body) == [width, width, 1, 1]  # read and stored, then what is left
    want = np.cumsum(x[:, ::step], 1, dtype)[:, ::step] - (x if exclusive else 0)
    np.testing.assert_array_equal(on_gpu(e), want)


@pytest.mark.parametrize("n", [64, 67])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "float64"])
def test_sixteen_bytes_are_moved_backwards(dtype, n):
    """Of rows that end at multiples of 16 bytes; of others one element after the other."""
    x = np.random.default_rng(0).integers(0, 2, (3, n)).astype(dt.of(dtype).numpy)
    dest = np.zeros_like(x)
    (entry,) = entries([Store(over(dest), "saveto", ext.flip(over(x), 1))])
    assert steps(entry.body)[0] == {1, -1}
    np.testing.assert_array_equal(on_gpu(ext.flip(over(x), 1)), x[:, ::-1])


def steps(body: Body) -> list[set[int]]:
    """Which ways what is moved at once goes."""
    found = []
    for stmt in body:
        found += [set(stmt.moved.values())] if isinstance(stmt, Wide) else []
        found += steps(stmt.body) if isinstance(stmt, Loop | Wide) else []
    return found


def test_scans_are_the_same_wherever_rows_lie():
    """Rows that begin at no multiple of 16 bytes, and with what comes behind the scan."""
    x = np.random.default_rng(0).standard_normal((3, 1000)).astype("float32")
    held = np.zeros((3, 1007), "float32")
    held[:, 3:1003] = x
    apart = part(moved(over(held)), 3, 1000, 1)
    found = []
    for source in (moved(over(x)), apart):
        dest = moved(over(np.zeros_like(x)))
        run([Store(dest, "saveto", ext.cumsum(source * 2.0, 1) * source + 1.0)])
        found.append(dest.numpy())
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], (x * 2).cumsum(1) * x + 1, rtol=1e-4, atol=1e-3)


def test_scans_in_place():
    x = np.arange(700, dtype="int32").reshape(1, 700)
    held = moved(over(x))
    run([Store(held, "saveto", ext.cumsum(held, 1))])
    np.testing.assert_array_equal(held.numpy(), x.cumsum(1))


def test_scans_of_what_threads_sum():
    x = np.random.default_rng(0).integers(-3, 4, (3, 70, 9)).astype("float32")
    e = ext.cumsum(ext.reduce(over(x), "sum", (2,)), 1)
    np.testing.assert_array_equal(on_gpu(e), x.sum(2).cumsum(1))
