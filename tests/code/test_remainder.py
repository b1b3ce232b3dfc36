"""mod of any finite operands is exact, and powers of integers are, modulo a power of two."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import shadow
from gnomon.shadow import Tensor, TensorContainer, fn

RNG = np.random.default_rng(5)
WHOLE = ("int8", "uint8", "int32", "int64")


def stored(e, dtype) -> np.ndarray:
    out = TensorContainer(e.shape, dtype)
    out[:] = e
    return out.numpy()


def anything(count: int, dtype: str) -> np.ndarray:
    """Floats of all sizes, special ones first; NaN among them."""
    bits = np.uint32 if dtype == "float32" else np.uint64
    found = RNG.integers(0, np.iinfo(bits).max, count, bits, endpoint=True).view(dtype)
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.max, info.tiny]
    special += [info.smallest_subnormal, 3, -3, 1e12, 5.5, 2.0**24 + 2, -(2.0**53)]
    found[: len(special)] = special
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mod_is_exact_whatever_the_quotient(dtype):
    few = anything(16, dtype)
    a = np.concatenate([anything(20_000, dtype), np.repeat(few, 16), np.arange(99, dtype=dtype)])
    b = np.concatenate([anything(20_000, dtype), np.tile(few, 16), np.full(99, 7, dtype)])
    with np.errstate(all="ignore"):
        wanted = np.where(b == 0, 0, np.mod(a, b)).astype(dtype)
    np.testing.assert_array_equal(stored(fn.mod(Tensor(a), Tensor(b)), dtype), wanted)
    np.testing.assert_array_equal(fn.mod(a, b), wanted)


def test_mod_of_halves_is_that_of_float32():
    a, b = (RNG.normal(size=5000).astype(np.float16) for _ in range(2))
    a *= np.float16(3000)
    wanted = np.mod(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(stored(fn.mod(Tensor(a), Tensor(b)), "float16"), wanted)


def modulo(value: int, dtype: np.dtype) -> int:
    bits = 8 * dtype.itemsize
    low = value % (1 << bits)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def power(a: int, b: int, dtype: np.dtype) -> int:
    if b < 0:
        return {1: 1, -1: 1 - 2 * (b & 1)}.get(a, 0)
    return modulo(pow(a, b, 1 << (8 * dtype.itemsize)), dtype)


@pytest.mark.parametrize("dtype", WHOLE)
def test_powers_of_integers_count_modulo(dtype):
    kind, info = np.dtype(dtype), np.iinfo(dtype)
    a, b = (RNG.integers(info.min, info.max, 3000, dtype, endpoint=True) for _ in range(2))
    a[:1200], b[:1800] = RNG.integers(0, 9, 1200), RNG.integers(0, 70, 1800)
    a[:40], a[40:80] = 1, 0
    if kind.kind == "i":
        a[80:120], b[::5] = -1, -b[::5]
    wanted = np.array([power(int(x), int(y), kind) for x, y in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(stored(Tensor(a) ** Tensor(b), dtype), wanted)
    np.testing.assert_array_equal(fn.power(a, b), wanted)
    for k in (0, 1, 2, 3, 7, 31, 63, 64, 100):
        wanted = np.array([power(int(x), k, kind) for x in a], dtype)
        np.testing.assert_array_equal(stored(Tensor(a) ** k, dtype), wanted)


def test_powers_in_operators_are_exact_as_well():
    cube = shadow.op(lambda x, n: x**n + x**2 - x**3.0)
    a = np.array([2**31 + 1, -(2**30) - 1, 3])
    n = np.array([2, 2, 39])
    both = zip(a.tolist(), n.tolist(), strict=True)
    wanted = [modulo(x**m + x**2 - x**3, a.dtype) for x, m in both]
    np.testing.assert_array_equal(stored(cube(Tensor(a), Tensor(n)), "int64"), wanted)


def test_truth_values_have_powers():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert stored(Tensor(a) ** Tensor(b), "bool").tolist() == [True, True, False, True]
