"""Integers never trap: division by 0, of the smallest by -1, and what no integer holds.

Every pair of extreme numbers, in every integer type, in vectors and their tails, dense, strided and
reversed, as maps, savers, operators of one's own and reductions.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.base import DTypeError
from gnomon.expr import fn
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.oracle import evaluate
from gnomon.shadow import F, Tensor

INTEGERS = "int8 uint8 int32 int64".split()
SIZES = (1, 3, 15, 16, 17, 33, 67)
STEPS = (1, 2, -1)
FLOATS = [
    0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127, 128, -128, -129, 255, 256, 2147483520, 2147483648,
    -2147483648, -2147483904, 9.2e18, 9.3e18, -9.3e18, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-40,
]  # fmt: skip


@shadow.op
def floored(a, b):
    return a // b


@shadow.op
def rest(a, b):
    return a % b


@shadow.op
def mixed(a, b):
    return a / b if b < a else b // (a - a)


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    info = np.iinfo(dtype)
    values = {info.min, info.min + 1, -1, 0, 1, 2, 7, info.max - 1, info.max}
    both = itertools.product(sorted(v for v in values if v >= info.min), repeat=2)
    a, b = np.array(list(both), dtype).T
    return a, b


def laid(values: np.ndarray, n: int, step: int) -> np.ndarray:
    """`n` of the values in turn, at such a distance in memory."""
    held = np.zeros(n * abs(step), values.dtype)[::step]
    held[:] = np.resize(values, n)
    return held


@pytest.mark.parametrize("op", [fn.div, fn.mod, floored, rest, mixed], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_divisions(dtype, op):
    a, b = pairs(dtype)
    for n, step in itertools.product((*SIZES, 3 * len(a)), STEPS):
        x, y = Tensor(laid(a, n, step)), Tensor(laid(b, n, step))
        out = Tensor(laid(a, n, step))
        e = F(op)(x, y)
        out[:] = e
        np.testing.assert_array_equal(out.numpy(), evaluate(e))
        zero = y.numpy() == 0
        if op is fn.div:
            assert not out.numpy()[zero].any()


def near_whole_quotients(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Of 8 bits all pairs; else multiples, one less, and one more, that the type holds."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        every = np.arange(info.min, info.max + 1)
        a, b = (x.ravel() for x in np.meshgrid(every, every))
        return a.astype(dtype), b.astype(dtype)
    rng = np.random.default_rng(5)
    b = rng.integers(info.min, info.max, 40_000) >> rng.integers(0, info.bits, 40_000)
    whole = rng.integers(info.min, info.max, b.size) // np.where(b == 0, 1, b) * b
    a = np.concatenate([whole - 1, whole, whole + 1])
    fits = (a >= info.min) & (a <= info.max)
    return a[fits].astype(dtype), np.tile(b, 3)[fits].astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_vectors_are_divided_by_floats_exactly(dtype):
    a, b = near_whole_quotients(dtype)
    out = Tensor(np.zeros_like(a))
    out[:] = Tensor(a) / Tensor(b)
    with np.errstate(divide="ignore", over="ignore"):
        want = SCALAR["div"].numpy(a, b)
    np.testing.assert_array_equal(out.numpy(), want)
    llvm = out.explain(Tensor(a) / Tensor(b), stage="llvm")
    assert re.search("fdiv <[0-9]+ x", llvm) and not re.search("[su]div <", llvm)


@pytest.mark.parametrize("saver", ["plusto", "minusto", "multo", "divto"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_savers(dtype, saver):
    a, b = pairs(dtype)
    rule = {"plusto": "add", "minusto": "sub", "multo": "mul", "divto": "div"}[saver]
    for n, step in itertools.product((*SIZES, 3 * len(a)), STEPS):
        out, y = Tensor(laid(a, n, step)), Tensor(laid(b, n, step))
        want = SCALAR[rule].numpy(out.numpy().copy(), y.numpy())
        out.assign(y, saver)
        np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_beside(dtype):
    a, _ = pairs(dtype)
    x, out = Tensor(a.copy()), Tensor(a.copy())
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for number in (low - 1, high + 1, -(2**70)):
        with pytest.raises(DTypeError, match=f"{dtype} holds"):
            x / number
    for number in (0, max(-1, low), low, high, high // 3):
        for e in (x / number, number / x, fn.mod(x, number), fn.mod(number, x), x * number):
            out[:] = e
            np.testing.assert_array_equal(out.numpy(), evaluate(e))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_wrap(dtype):
    a, b = pairs(dtype)
    x, y = (Tensor(np.resize(v, (7, 81))) for v in (a, b))
    for axis, how in itertools.product((0, 1, None), ("sum", "max", "min", "prod")):
        e = shadow.reduce(x / y, how, axis)
        out = Tensor(np.zeros(e.shape, dtype))
        out[:] = e
        np.testing.assert_array_equal(out.numpy(), evaluate(e))


@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", [*INTEGERS, "bool"])
def test_conversions(source, target):
    with np.errstate(all="ignore"):
        values = np.array(FLOATS).astype(dt.of(source).numpy)
    for n, step in itertools.product((*SIZES, 101), STEPS):
        x = Tensor(laid(values, n, step))
        out = Tensor(laid(np.zeros(1, dt.of(target).numpy), n, step))
        e = shadow.tcast(target, x)
        out[:] = e
        np.testing.assert_array_equal(out.numpy(), evaluate(e))
        missing = np.isnan(x.numpy().astype(np.float64))
        assert target == "bool" or not out.numpy()[missing].any()


def test_indices_outside_are_the_nearest_inside():
    rows = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        places = np.array([info.min, info.max, 0, 3, 4, 100], dtype)
        out = Tensor(np.zeros((6, 3), np.float32))
        out[:] = shadow.take(Tensor(places), rows)
        near = np.clip(places.astype(object), 0, 3).astype(int)
        np.testing.assert_array_equal(out.numpy(), rows.numpy()[near])
        back = Tensor(np.zeros((4, 3), np.float32))
        back[:] = shadow.take_grad(Tensor(places), out, 4)
        want = np.zeros((4, 3), np.float32)
        np.add.at(want, near, out.numpy())
        np.testing.assert_array_equal(back.numpy(), want)
