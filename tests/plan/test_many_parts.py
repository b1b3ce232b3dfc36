"""Joins of more parts than a loop is split for are stored part by part."""

import numpy as np
import pytest

from gnomon.expr import ext
from gnomon.plan.split import MOST, by_parts
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shadow import Tensor


@pytest.mark.parametrize("count", [MOST, MOST + 1, 40])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("saver", ["saveto", "plusto", "multo"])
def test_values(count, axis, saver):
    """Of arrays, expressions, and parts without elements."""
    rng = np.random.default_rng(count + axis)
    shapes = [tuple(k % 3 if a == axis else 3 for a in range(3)) for k in range(count)]
    values = [rng.normal(size=shape).astype("f") for shape in shapes]
    parts = [*map(Tensor, values)]
    parts[4] = parts[4] * 2 + parts[1]
    values[4] = values[4] * 2 + values[1]
    joined = np.concatenate(values, axis)
    before = rng.normal(size=joined.shape).astype("f")
    want = {"saveto": joined, "plusto": before + joined, "multo": before * joined}[saver]
    dest = Tensor(before)
    steps = prepare([Store(dest, saver, ext.concat(parts, axis))])
    for step in steps:
        step.run()
    np.testing.assert_allclose(dest.numpy(), want, rtol=1e-6)
    filled = sum(0 not in shape for shape in shapes)
    assert len(steps) == (1 if count <= MOST else filled)


def test_parts_of_the_destination_itself():
    values = np.arange(60, dtype="f").reshape(20, 3)
    t = Tensor(values.copy())
    parts = [ext.slice_(t, (k,), (k + 1,)) for k in reversed(range(20))]
    assert not by_parts([Store(t, "saveto", ext.concat(parts, 0))])
    t[:] = ext.concat(parts, 0)
    np.testing.assert_array_equal(t.numpy(), values[::-1])
