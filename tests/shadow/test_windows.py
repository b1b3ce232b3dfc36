"""Long rows whose ends lie outside of what is read: pads and the columns of windows."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import ext
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.shadow import Tensor
from tests.code.test_stream import ran

DTYPES = ("float32", "float64", "uint8", "int16", "int64", "float16")


def stored(e, rng: np.random.Generator, saver: str) -> None:
    """`e` into memory that begins anywhere: it is as the oracle says, and nothing else changes."""
    size, skip = int(np.prod(e.shape)), int(rng.integers(0, 40))
    memory = rng.integers(0, 5, size + skip + 70).astype(e.dtype.numpy)
    before = memory.copy()
    dest = memory[skip : skip + size].reshape(e.shape)
    want = evaluate(e) if saver == "saveto" else dest + evaluate(e)
    Tensor(dest).assign(e, saver)
    np.testing.assert_array_equal(dest, want)
    np.testing.assert_array_equal(memory[:skip], before[:skip])
    np.testing.assert_array_equal(memory[skip + size :], before[skip + size :])


def leaf(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Buffer:
    array = rng.integers(0, 5, shape).astype(dtype)
    return Buffer(shape, dt.of(dtype), None, array.ctypes.data, array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("saver", ["saveto", "plusto"])
def test_pads(dtype, saver):
    rng = np.random.default_rng(len(dtype) + len(saver))
    for _ in range(6):
        width = int(rng.integers(0, 700))
        shape = (int(rng.integers(1, 4)), int(rng.integers(0, 4)), width)
        before, after = ([int(n) for n in rng.integers(0, high, 3)] for high in (90, 150))
        before[:2], after[:2] = (0, 1), (1, 0)
        x = leaf(rng, shape, dtype)
        stored(ext.pad(x, before, after, 0), rng, saver)
        stored(ext.pad(x * 2, before, after, 3) + 1, rng, saver)


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns(dtype):
    rng = np.random.default_rng(len(dtype))
    for _ in range(10):
        x = leaf(rng, (2, 2, int(rng.integers(3, 6)), int(rng.integers(60, 400))), dtype)
        kernel = tuple(int(n) for n in rng.integers(1, 4, 2))
        stride, dilate = (tuple(int(n) for n in rng.integers(1, 3, 2)) for _ in range(2))
        pad = (int(rng.integers(3)), int(rng.integers(90)))
        try:
            e = ext.unpack_patch2col(x, kernel, stride, dilate, pad)
        except ValueError:  # no window fits
            continue
        stored(e, rng, "saveto")


def test_rows_of_which_little_or_nothing_is_inside():
    rng = np.random.default_rng(3)
    x = leaf(rng, (1, 300), "float32")
    stored(ext.pad(x, (2, 0), (3, 0), 0), rng, "saveto")
    for width in (0, 1, 5, 15, 16, 17, 40):
        for before in (0, 1, 15, 16, 63, 64, 65, 200):
            x = leaf(rng, (3, width), "float32")
            stored(ext.pad(x, (0, before), (0, 99), 7), rng, "saveto")


@pytest.mark.parametrize("start", [0, 1, 5])
def test_what_goes_past_the_caches(start):
    rng = np.random.default_rng(4)
    padded = ext.pad(leaf(rng, (30, 700), "float32"), (1, 3), (0, 130), 0)
    image = leaf(rng, (1, 1, 30, 333), "float32")
    columns = ext.unpack_patch2col(image, (3, 3), (1, 1), (1, 1), (1, 1))
    for e in (padded, columns):
        np.testing.assert_array_equal(ran(e, e.shape, "float32", 1, start), evaluate(e))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_few_registers(dtype):
    rng = np.random.default_rng(len(dtype))
    lanes = 64 // np.dtype(dtype).itemsize
    for width in (1, 2, lanes - 1, lanes, lanes + 1, 3 * lanes + 3, 4 * lanes, 4 * lanes + 1):
        x = leaf(rng, (2, 3, int(rng.integers(1, 8)), width), dtype)
        pads = (int(rng.integers(0, 3)), int(rng.integers(0, 2)))
        stored(ext.unpack_patch2col(x, (1, min(2, width)), (1, 1), (1, 1), pads), rng, "saveto")
        stored(ext.pad(x, (0, 1, 0, 2), (1, 0, 2, 0), 1) * 2, rng, "plusto")
        stored(ext.pad(x, (0, 0, 0, 0), (0, 0, 0, 3), 0), rng, "saveto")


def test_many_rows_of_few_registers():
    rng = np.random.default_rng(5)
    image = leaf(rng, (2, 3, 56, 56), "float32")  # enough for several tasks
    for pad in (0, 1, 2):
        stored(ext.unpack_patch2col(image, (3, 3), (1, 1), (1, 1), (pad, pad)), rng, "saveto")
