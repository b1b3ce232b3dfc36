"""Stores past the caches: the same results as through them, and only where a result is large."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.code import cpu
from gnomon.code.target import processor
from gnomon.expr import ext, fn
from gnomon.expr.node import Buffer, Expr, cast
from gnomon.ground.levels import CACHE_BYTES
from gnomon.plan.pipeline import plan
from gnomon.plan.signature import signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import jit
from gnomon.runtime.compiler.host import baseline
from gnomon.runtime.kernels.kernel import Kernel

HERE = baseline()
PAST = "!nontemporal"


def over(array: np.ndarray) -> Buffer:
    """A leaf over an array's memory."""
    strides = [s // array.itemsize for s in array.strides]
    return Buffer(array.shape, dt.of(array.dtype), strides, array.ctypes.data, array)


def compiled(store: Store, limit: int) -> tuple[str, Kernel, Structure]:
    """The code of a statement for a machine with a cache of `limit` bytes; 0: not known."""
    structure = Structure([store])
    nests = plan([store], structure)
    text = cpu.write(nests, processor(HERE.triple, HERE.cpu, HERE.features, streams=limit > 0))
    module = jit.compile_ir(text, opt=1, symbols={CACHE_BYTES: limit})
    return text, Kernel(signature_of(nests), module), structure


def ran(e: Expr, shape: tuple[int, ...], dtype: str, limit: int, start: int) -> np.ndarray:
    """The result of `e`, in memory that begins `start` elements behind a boundary."""
    count = int(np.prod(shape))
    room = np.full(count + 64, 7, dtype)
    dest = room[start : start + count].reshape(shape)
    _, kernel, structure = compiled(Store(over(dest), "saveto", e), limit)
    kernel.bind(structure).run()
    assert (room[:start] == 7).all()
    assert (room[start + count :] == 7).all()
    return dest


@pytest.mark.parametrize("n", [1, 15, 16, 63, 64, 65, 200, 1000, 4099])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32"])
def test_results_are_the_same(n: int, dtype: str) -> None:
    x = np.arange(n).astype(dtype)
    for start in (0, 1, 5):
        got = ran(over(x) + over(x), (n,), dtype, 1, start)
        np.testing.assert_array_equal(got, x + x)


def test_rows_and_casts() -> None:
    x, r = np.random.default_rng(0).normal(size=(37, 131)), np.arange(131.0)
    e = over(x) + ext.broadcast_to(over(r), x.shape)
    np.testing.assert_array_equal(ran(e, x.shape, "float64", 8, 3), x + r)
    bytes_ = np.arange(1000).astype(np.uint8)
    got = ran(cast(over(bytes_), dt.float32) * 0.5, (1000,), "float32", 8, 1)
    np.testing.assert_array_equal(got, bytes_.astype(np.float32) * 0.5)


def test_who_stores_past_the_caches() -> None:
    """Not what is read too, what is dear to compute, what reads nothing or has borders."""
    x, out = np.zeros(100), np.zeros(100)
    plain = Store(over(out), "saveto", over(x) + 1.0)
    assert PAST in compiled(plain, 1)[0] or not HERE.triple.startswith("x86")
    assert PAST not in compiled(plain, 0)[0]
    for store in (
        Store(over(out), "saveto", over(out) + over(x)),
        Store(over(out), "plusto", over(x)),
        Store(over(out), "saveto", fn.exp(fn.tanh(fn.gammaln(over(x))))),
        Store(over(out), "saveto", ext.iota((100,), 0, dt.float64)),
        Store(over(out), "saveto", ext.pad(over(x[:98]), (1,), (1,))),
    ):
        assert PAST not in compiled(store, 1)[0]
