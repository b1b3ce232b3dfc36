"""Floats to integers: the ends are kept and NaN is 0, in lanes as one by one."""

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr.node import Buffer, cast
from gnomon.runtime.statements.dispatch import store

INTEGERS = ("int8", "uint8", "int32", "int64", "uint16", "int16", "uint32", "uint64")


def edges(dtype):
    """Numbers at which a conversion could go wrong, and many others."""
    powers = [2.0**k for k in (0, 6, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 62, 63, 64, 100)]
    near = [v for p in powers for v in (p, np.nextafter(np.dtype(dtype).type(p), 0))]
    some = [0.0, 0.4, 0.5, 0.99, 1.5, 127.5, 254.9, 255.5, np.inf, np.nan, *near]
    drawn = np.random.default_rng(0).standard_normal(2000) * 10.0 ** np.linspace(-1, 20, 2000)
    return np.array([*some, *(-v for v in some), *drawn], dtype)


def expected(x, dtype):
    """Python's numbers, cut off and clamped."""
    low, high = dt.of(dtype).limits
    whole = [0 if v != v else high if v > high else low if v < low else int(v) for v in x.tolist()]
    return np.array(whole, dtype)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_conversions(source, dtype):
    for x in (edges(source), edges(source)[:3], edges(source)[17:18]):
        got = np.empty(x.shape, dtype)
        value = Buffer(x.shape, dt.of(source), None, x.ctypes.data, x)
        dest = Buffer(x.shape, dt.of(dtype), None, got.ctypes.data, got)
        store(dest, "saveto", cast(value, dt.of(dtype)))
        np.testing.assert_array_equal(got, expected(x, dtype))
