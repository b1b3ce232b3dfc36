"""Compiled scalar functions give what their Terms mean, in every lane, main loop and tail."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.code.math import RULES
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Buffer
from gnomon.runtime.statements.dispatch import store
from tests.code.terms import compute, ulps

NAMES = {
    f.primitive: name for name, f in SCALAR.items() if f.primitive in RULES and not f.body.bits
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def buffer(array: np.ndarray) -> Buffer:
    return Buffer(array.shape, dt.of(array.dtype), address=array.ctypes.data, owner=array)


def compiled(name: str, *args: np.ndarray) -> np.ndarray:
    out = np.empty_like(args[0])
    store(buffer(out), "saveto", SCALAR[name](*map(buffer, args)))
    return out


def sample(dtype: type, count: int, seed: int) -> np.ndarray:
    """Numbers of every size, infinities and NaN among them."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(count) < 0.8, rng.uniform(-3, 3, count), rng.normal(size=count) * 1e6)
    x[::17] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 1.0], x[::17].shape)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("primitive", sorted(NAMES))
def test_compiled_code_is_the_terms(primitive, dtype):
    args = [sample(dtype, 333, k) for k in range(PRIMITIVES[primitive].arity)]
    got = compiled(NAMES[primitive], *args)
    want = compute(primitive, *args)
    assert np.max(ulps(got, want.astype(np.longdouble))) <= 1


@pytest.mark.parametrize("count", [1, 7, 64])
def test_one_large_argument_among_small_ones_takes_the_long_way_alone(count):
    for place in {0, count // 2, count - 1}:
        x = np.linspace(-3, 3, count).astype(np.float32)
        x[place] = 1e20
        want = np.sin(x.astype(np.float64))
        assert np.max(ulps(compiled("sin", x), want.astype(np.longdouble))) <= 2
