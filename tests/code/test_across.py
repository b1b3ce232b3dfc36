"""What is read with steps: squares turned in registers, and every other element by two loads."""

from __future__ import annotations

import ctypes
import functools
import mmap

import numpy as np
import pytest

from gnomon import shadow

DTYPES = ["int8", "float16", "int32", "float32", "float64"]


def drawn(shape, dtype):
    return np.random.default_rng(4).integers(-100, 100, shape).astype(dtype)


SHAPES = [
    (16, 16),
    (33, 64),
    (5, 200),
    (130, 47),
    (3, 40, 35),
    (1, 17),
    (2, 100),
    (17, 33),
    (3, 16),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_turned(shape, dtype):
    x = drawn(shape, dtype)
    a, out = shadow.Tensor(x), shadow.TensorContainer(shape[::-1], dtype, init=1)
    out[:] = a.T
    np.testing.assert_array_equal(out.numpy(), x.T)
    out += a.T * 2
    np.testing.assert_array_equal(out.numpy(), (x.T * 3).astype(dtype))
    cut = shadow.Tensor(x[..., 1:])
    part = shadow.Tensor(np.zeros(cut.shape[::-1], dtype))
    part[:] = cut.T
    np.testing.assert_array_equal(part.numpy(), x[..., 1:].T)


@pytest.mark.parametrize("shape", [(40, 70), (3, 50)])
def test_truth_values(shape):
    x = drawn(shape, "int32") > 0
    out = shadow.Tensor(np.zeros(shape[::-1], bool))
    out[:] = shadow.Tensor(x).T
    np.testing.assert_array_equal(out.numpy(), x.T)


def test_two_that_lie_otherwise():
    x, y = drawn((40, 70), "float32"), drawn((70, 40), "float32")
    out = shadow.TensorContainer((70, 40))
    out[:] = shadow.fn.maximum(shadow.Tensor(x).T, shadow.Tensor(y)) - shadow.Tensor(x * 2).T
    np.testing.assert_array_equal(out.numpy(), np.maximum(x.T, y) - x.T * 2)


def assigned(e):
    out = shadow.TensorContainer(e.shape, e.dtype.name)
    out[:] = e
    return out.numpy()


def test_products_of_what_lies_in_several_ways():
    x, y = (drawn((3, 40, 35), "float32") / 50 for _ in range(2))
    w, on = drawn(35, "float32") / 50, drawn((3, 40, 35), "int32") > 0
    a, b = shadow.Tensor(x), shadow.Tensor(y.transpose(0, 2, 1).copy())
    scaled = a * shadow.broadcast_to(shadow.Tensor(w), a.shape)
    made = scaled * shadow.transpose(b, (0, 2, 1)) + shadow.tcast("float32", shadow.Tensor(on))
    want = functools.reduce(np.multiply, np.moveaxis(x * w * y + on, 2, 0))
    np.testing.assert_allclose(assigned(shadow.reduce(made, "prod", 2)), want, rtol=1e-4)
    parts = shadow.reduce(made, "prod", (1, 2))
    np.testing.assert_allclose(assigned(parts), np.prod(want.astype("f8"), 1), rtol=1e-3)
    rows = np.random.default_rng(7).permutation(40)
    taken = shadow.reduce(shadow.take(shadow.Tensor(rows), shadow.Tensor(x[0])), "prod", 1)
    np.testing.assert_allclose(assigned(taken), np.prod(x[0][rows], 1, np.float64), rtol=2e-7)


@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_running_sums_of_what_lies_across(axes):
    x = drawn((4, 40, 30), "float32")
    for axis in range(3):
        made = shadow.cumsum(shadow.transpose(shadow.Tensor(x), axes), axis)
        out = shadow.TensorContainer(made.shape)
        out[:] = made
        np.testing.assert_array_equal(out.numpy(), np.cumsum(x.transpose(axes), axis))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 16, 31, 32, 33, 200])
def test_every_other_element(n, dtype):
    x, y = drawn(2 * n - 1, dtype), drawn((n, 2), dtype)
    out = shadow.Tensor(np.zeros(n, dtype))
    out[:] = shadow.Tensor(x[::2]) + shadow.Tensor(y[:, 1])
    np.testing.assert_array_equal(out.numpy(), x[::2] + y[:, 1])


def test_nothing_is_read_behind_the_last_element():
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(memory, np.float32)
    libc = ctypes.CDLL(None)
    assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 0) == 0
    try:
        for n in range(1, 150):
            x = whole[page // 4 - 2 * n + 1 : page // 4 : 2]  # its last one ends the page
            out = shadow.Tensor(np.ones(n, np.float32))
            out[:] = shadow.Tensor(x) * 2.0
            assert not out.numpy().any()
    finally:
        libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 3)
