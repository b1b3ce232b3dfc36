"""Division by what a loop does not change gives the quotient as rounded once, whatever comes."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.code.divide import RANGES

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DTYPES = [np.float32, np.float64]


quartered = shadow.op(lambda x: x / 0.25)
seventh = shadow.op(lambda x: x / 7.0)
enlarged = shadow.op(lambda x: x / 1e-30)


def dividends(dtype: type, count: int = 5000) -> np.ndarray:
    """Numbers of every size, near the borders of what needs care, and no numbers."""
    rng = np.random.default_rng(7)
    fit, info = RANGES[dt.of(dtype)], np.finfo(dtype)
    whole = np.iinfo(np.dtype(f"i{info.dtype.itemsize}"))
    any_bits = rng.integers(whole.min, whole.max, count, whole.dtype).view(dtype)
    usual = rng.normal(size=count).astype(dtype)
    borders = [fit.least, np.nextafter(dtype(fit.least), dtype(0)), info.max, info.tiny]
    edges = np.array([0, 1, 3, np.inf, np.nan, info.smallest_subnormal, *borders], dtype)
    return np.concatenate([usual, np.zeros(70, dtype), any_bits, edges, -edges])


def divisors(dtype: type) -> list[float]:
    fit, info = RANGES[dt.of(dtype)], np.finfo(dtype)
    rng = np.random.default_rng(8)
    odd = [1 + info.eps, 2 - info.eps, 3, 7, 49, 255, 0.1, fit.low, fit.high, 3 * fit.high, 0.5]
    no = [0.0, -0.0, -3.0, np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max]
    return [float(dtype(d)) for d in [*odd, *no, *rng.uniform(1, 2, 20)]]


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_by_a_number_or_a_constant(dtype):
    x = dividends(dtype)
    source, out = shadow.Tensor(x), shadow.TensorContainer(x.shape, dtype)
    for divisor in divisors(dtype):
        out[:] = source / divisor
        same(out.numpy(), x / dtype(divisor))
    for constant, divisor in ((quartered, 0.25), (seventh, 7.0), (enlarged, 1e-30)):
        out[:] = constant(source)
        same(out.numpy(), x / dtype(divisor))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 15, 16, 63, 257])
def test_by_a_number_for_each_row(dtype, columns):
    d = np.array(divisors(dtype), dtype)
    x = dividends(dtype)[: len(d) * columns]
    x = np.resize(x, (len(d), columns))
    out = shadow.TensorContainer(x.shape, dtype)
    spread = shadow.broadcast_axis(shadow.Tensor(d), x.shape, 0)
    out[:] = shadow.Tensor(x) / spread
    same(out.numpy(), x / d[:, None])


@pytest.mark.parametrize("dtype", DTYPES)
def test_inside_of_a_sum(dtype):
    x = np.random.default_rng(9).integers(-50, 50, (5, 300)).astype(dtype) * 3
    out = shadow.TensorContainer((5,), dtype)
    out[:] = shadow.reduce(shadow.Tensor(x) / 3.0, "sum", 1)
    np.testing.assert_array_equal(out.numpy(), (x / 3).sum(1))
