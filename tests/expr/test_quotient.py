"""Whole quotients by floats are exact, and what uses them is one kernel for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import nd
from gnomon.expr.ext.interpolate import interpolate
from gnomon.expr.ext.regions import regions
from gnomon.expr.node import Buffer
from gnomon.expr.quotient import kinds_below
from gnomon.plan.statement import Store, Structure


@pytest.mark.parametrize("limit", [1 << 22, (1 << 31) - 1, 1 << 51])
def test_a_floor_of_floats_is_the_whole_quotient(limit):
    real = kinds_below(limit - 1).real.numpy
    rng = np.random.default_rng(limit)
    b = np.unique(np.exp(rng.uniform(0, np.log(limit), 20000)).astype(np.int64).clip(1, limit - 1))
    times = (limit - 1) // b
    near = [k * b + d for k in (times, times // 2, times // 3, 1) for d in (-1, 0, 1)]
    for a in near:
        a = np.minimum(a, limit - 1)
        assert np.array_equal(np.floor(a.astype(real) / b.astype(real)).astype(np.int64), a // b)


def test_the_narrowest_kinds_hold_the_numbers():
    assert kinds_below(1 << 22) == (dt.int32, dt.float64)
    assert kinds_below(1 << 31) == (dt.int64, dt.float64)


def key(value):
    return Structure([Store(Buffer(value.shape, value.dtype), "saveto", value)]).key


@pytest.mark.parametrize("corners", [True, False])
def test_images_of_all_sizes_share_a_kernel(corners):
    found = {
        key(interpolate(Buffer((2, 3, size, 7)), 2, count, corners))
        for size, count in ((5, 11), (40, 9), (300, 200), (6, 90))
    }
    assert len(found) == 1
    (grad,) = interpolate(Buffer((2, 3, 5, 7)), 2, 11, corners).adjoint(Buffer((2, 3, 11, 7)))
    (other,) = interpolate(Buffer((2, 3, 50, 7)), 2, 13, corners).adjoint(Buffer((2, 3, 13, 7)))
    assert grad[1].static() == other[1].static()


def test_regions_of_all_sizes_share_a_kernel():
    found = {key(regions(Buffer((2, size, 13)), 1, count)) for size, count in ((11, 5), (50, 9))}
    assert len(found) == 1
    found = {key(regions(Buffer((2, size, 13)), 1, count)) for size, count in ((12, 4), (50, 10))}
    assert len(found) == 1


@pytest.mark.parametrize("size", [700, 4000])
def test_many_places(size):
    """So many that they are divided as float32, and as float64."""
    x = np.random.default_rng(0).normal(size=(1, 1, size, 1)).astype(np.float32)
    for count in (size - 1, size + 3, size // 3, 2):
        got = nd.contrib.BilinearResize2D(nd.array(x), height=count, width=1).asnumpy().ravel()
        places = np.arange(count) * (size - 1) / (count - 1)
        want = np.interp(places, np.arange(size), x.ravel())
        np.testing.assert_allclose(got, want, 0, 2e-5)
        got = nd.contrib.AdaptiveAvgPooling2D(nd.array(x), output_size=(count, 1)).asnumpy()
        starts, ends = (
            (np.arange(count) * size) // count,
            -(-np.arange(1, count + 1) * size // count),
        )
        want = [x.ravel()[a:b].mean() for a, b in zip(starts, ends, strict=True)]
        np.testing.assert_allclose(got.ravel(), want, 1e-4, 1e-5)
