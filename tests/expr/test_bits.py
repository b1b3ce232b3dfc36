"""Operators on the bits of integers and booleans mean what NumPy's do."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from gnomon.base import DTypeError
from gnomon.shadow import Tensor, TensorContainer, fn, op, red, reduce, reduce_with_axis, scan

DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
PAIRS = {
    "bitwise_and": (operator.and_, operator.iand),
    "bitwise_or": (operator.or_, operator.ior),
    "bitwise_xor": (operator.xor, operator.ixor),
    "left_shift": (operator.lshift, operator.ilshift),
    "right_shift": (operator.rshift, operator.irshift),
}
REDUCERS = ("bitwise_and", "bitwise_or", "bitwise_xor")
N = 77  # whole vectors, and some more


def numbers(dtype: str, shape: tuple[int, ...] = (N,), seed: int = 0) -> np.ndarray:
    ends = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    return rng.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)


def counts(dtype: str) -> np.ndarray:
    """Any numbers, among them each count up to beyond the width, and some below 0."""
    found = numbers(dtype, seed=1)
    found[:70] = np.arange(70)
    if dtype.startswith("int"):
        found[70:] = -np.arange(1, 8)
    return found


def stored(e: object, like: np.ndarray) -> np.ndarray:
    out = np.zeros_like(like)
    Tensor(out)[:] = e
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str, dtype: str) -> None:
    plain, update = PAIRS[name]
    a, b = numbers(dtype), counts(dtype)
    x, y = Tensor(a), Tensor(b)
    want = plain(a, b)
    np.testing.assert_array_equal(stored(plain(x, y), a), want)
    np.testing.assert_array_equal(stored(getattr(np, name)(x, y), a), want)
    np.testing.assert_array_equal(getattr(fn, name).numpy(a, b), want)
    mine = a.copy()
    update(Tensor(mine), y)
    np.testing.assert_array_equal(mine, want)
    for k in (0, 1, 7, 8, 31, 64, 100):
        number = np.array(k, dtype)
        np.testing.assert_array_equal(stored(plain(x, k), a), plain(a, number))
        np.testing.assert_array_equal(stored(plain(k, y), a), plain(number, b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_an_operator_are_constants(dtype: str) -> None:
    @op
    def mixed(x):
        return ((x << 40) | (x >> 3)) ^ ~(x & 0x55) ^ (x >> 70) ^ (x << 64) ^ (1 << x)

    def k(value: int) -> np.ndarray:
        return np.array(value, dtype)

    a = numbers(dtype)
    want = ((a << k(40)) | (a >> k(3))) ^ ~(a & k(0x55)) ^ (a >> k(70)) ^ (k(1) << a)
    np.testing.assert_array_equal(stored(mixed(Tensor(a)), a), want)
    np.testing.assert_array_equal(mixed.numpy(a), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_that_a_type_does_not_have_are_left_out(dtype: str) -> None:
    @op
    def mixed(x):
        return (x & ~15) ^ 0x9E3779B97F4A7C15 | 0x80

    a = numbers(dtype)
    clear, mix, mark = np.array([-16, 0x9E3779B97F4A7C15 - 2**64, 0x80]).astype(dtype)
    want = (a & clear) ^ mix | mark
    np.testing.assert_array_equal(stored(mixed(Tensor(a)), a), want)
    np.testing.assert_array_equal(mixed.numpy(a), want)


def test_truth_values() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)

    @op
    def either(x, y):
        return (x | ~y) ^ (x == y)

    for name in REDUCERS:
        plain, _ = PAIRS[name]
        np.testing.assert_array_equal(stored(plain(Tensor(a), Tensor(b)), a), plain(a, b))
    np.testing.assert_array_equal(stored(~Tensor(a), a), ~a)
    np.testing.assert_array_equal(stored(either(Tensor(a), Tensor(b)), a), (a | ~b) ^ (a == b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCERS)
def test_reducers(name: str, dtype: str) -> None:
    a, ufunc = numbers(dtype, (37, 101)), getattr(np, name)
    x = Tensor(a)
    for axis in (0, 1):
        want = ufunc.reduce(a, axis=axis)
        np.testing.assert_array_equal(stored(reduce(x, name, axis), want), want)
        found = stored(reduce_with_axis(getattr(red, name), x, axis), want)
        np.testing.assert_array_equal(found, want)
        want = ufunc.accumulate(a, axis=axis)
        np.testing.assert_array_equal(stored(scan(x, name, axis), want), want)
    nothing = TensorContainer((0, 3), dtype)
    np.testing.assert_array_equal(
        stored(reduce(nothing, name, 0), a[0, :3]), ufunc.reduce(a[:0, :3], axis=0)
    )


def test_hashes() -> None:
    @op
    def murmur(x):
        x ^= x >> 16
        x *= 0x85EBCA6B
        x ^= x >> 13
        x *= 0xC2B2AE35
        return x ^ (x >> 16)

    @op
    def ones(x):
        x -= (x >> 1) & 0x55555555
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        return (((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24

    a = numbers("uint32")
    want = a ^ (a >> 16)
    want *= np.uint32(0x85EBCA6B)
    want ^= want >> 13
    want *= np.uint32(0xC2B2AE35)
    np.testing.assert_array_equal(stored(murmur(Tensor(a)), a), want ^ (want >> 16))
    np.testing.assert_array_equal(stored(ones(Tensor(a)), a), [int(v).bit_count() for v in a])
    assert ones(255) == 8
    assert op(lambda x: x ^ (x >> 1))(2**62 + 1) == (2**62 + 1) ^ 2**61


@pytest.mark.parametrize("seed", range(12))
def test_random_trees(seed: int) -> None:
    """Trees of every operator, as maps and as one function, beside arithmetic."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    arrays = [numbers(dtype, seed=seed), counts(dtype)]

    def text(depth: int) -> str:
        if not depth:
            return str(rng.choice(["x", "y"]))
        a, b = text(depth - 1), str(rng.choice([text(depth - 1), "1", "77"]))
        return str(rng.choice([f"({a} {s} {b})" for s in ("&", "|", "^", "<<", ">>", "+", "*")]
                              + [f"~{a}", f"-{a}"]))  # fmt: skip

    for _ in range(8):
        source = f"lambda x, y: {text(4)} ^ x"
        function = eval(source)
        with np.errstate(all="ignore"):
            want = function(*arrays)
        found = stored(function(*map(Tensor, arrays)), want)
        np.testing.assert_array_equal(found, want, err_msg=source)


def test_truth_values_of_operators() -> None:
    """0 and 1 that another operator made of a comparison are truth values, of floats as well."""

    @op
    def positive(x):
        return x > 0

    @op
    def both(x, y):
        return positive(x) & positive(y) | (x > 3)

    for dtype in ("float32", "int32"):
        x, y = np.array([1, -1, 5, 2], dtype), np.array([1, 1, -1, -2], dtype)
        want = ((x > 0) & (y > 0)) | (x > 3)
        np.testing.assert_array_equal(stored(both(Tensor(x), Tensor(y)), x), want)


def test_reducers_of_users_take_no_floats() -> None:
    @op
    def common(a, b):
        return a & b

    with pytest.raises(DTypeError, match="expected integers for user:common"):
        reduce(Tensor(np.ones(3, np.float32)), red.make(common, -1), (0,))
