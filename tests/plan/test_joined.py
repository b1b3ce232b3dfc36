"""Reductions over neighbouring axes share their kernels, and give what NumPy gives."""

import itertools
from collections import OrderedDict

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr.ext import reduce
from gnomon.expr.node import Buffer
from gnomon.plan.view import joined
from gnomon.runtime.kernels.cache import CACHE
from gnomon.runtime.statements.dispatch import store


def leaf(x):
    strides = [s // x.itemsize for s in x.strides]
    return Buffer(x.shape, dt.of(x.dtype.name), strides, x.ctypes.data, x)


def stored(value):
    out = np.empty(value.shape, value.dtype.numpy)
    store(leaf(out), "saveto", value)
    return out


SHAPES = ((2, 3, 1, 4), (1, 5, 1), (1, 1), (6,), (2, 0, 3))
CASES = [
    (shape, axes)
    for shape in SHAPES
    for count in range(1, len(shape) + 1)
    for axes in itertools.combinations(range(len(shape)), count)
]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "max", "argmax"])
def test_all_axes_of_some_shapes(name, keepdims):
    rng = np.random.default_rng(2)
    for shape, axes in CASES:
        if name != "sum" and (0 in shape or (name == "argmax" and len(axes) > 1)):
            continue
        x = rng.standard_normal(shape).astype(np.float32)
        along = axes[0] if name == "argmax" else axes
        expected = getattr(np, name)(x, axis=along, keepdims=keepdims)
        got = stored(reduce(leaf(x), name, axes, keepdims))
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
        got = stored(reduce(leaf(x) * 2.0, name, axes, keepdims) * 1)
        factor = 1 if name == "argmax" else 2
        np.testing.assert_allclose(got, expected * factor, 1e-5, 1e-6)


def test_data_with_gaps_stay_as_they_are():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view in (x[:, ::2], x.transpose(2, 0, 1), x[..., :3]):
        value = reduce(leaf(view), "sum", (1, 2))
        assert joined(value) is None
        np.testing.assert_allclose(stored(value), view.sum((1, 2)))


def test_neighbours_become_one_axis():
    x = leaf(np.zeros((2, 3, 1, 4, 5), np.float32))
    made = joined(reduce(x, "sum", (1, 2)))
    assert made.shape == (2, 20)
    assert made.src.shape == (2, 3, 20)
    assert made.axes == (1,)


def test_one_kernel_for_equal_and_other_sizes_and_one_for_axes_of_one(monkeypatch):
    monkeypatch.setattr(CACHE, "kernels", OrderedDict())  # without those of other tests

    def kernels(*shapes):
        for shape in shapes:
            x = np.ones(shape, np.float32)
            assert stored(reduce(leaf(x), "prod", (1,))).sum() == x[:, :1].size
        return len(CACHE.kernels)

    first = kernels((5, 7, 3))
    assert kernels((5, 5, 5), (4, 7, 4), (2, 3, 1, 2)) == first
    assert kernels((5, 1, 5), (5, 1)) == first + 1


@pytest.mark.parametrize(("axes", "shapes"), [
    ((1, 3), ((4, 3, 5, 2), (1, 6, 2, 7))),
    ((1, 3), ((4, 3, 5, 2, 3), (2, 2, 3, 4, 5))),
])  # fmt: skip
def test_kernels_of_four_and_five_axes_serve_those_without_the_first(axes, shapes, monkeypatch):
    monkeypatch.setattr(CACHE, "kernels", OrderedDict())

    def kernels(shape, along):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_allclose(stored(reduce(leaf(x), "sum", along)), x.sum(tuple(along)), 1e-6)
        return len(CACHE.kernels)

    for shape in shapes:
        assert kernels(shape, axes) == 1
        assert kernels(shape[1:], [a - 1 for a in axes]) == 1
