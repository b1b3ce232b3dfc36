"""Assignable slices, mirror images and joined tensors: every saver, nested, overlapping."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.base import DTypeError, GnomonError, ShapeError
from gnomon.shadow import Tensor, concat, dot, lvalue

SAVERS = {
    "saveto": lambda old, new: new,
    "plusto": lambda old, new: old + new,
    "minusto": lambda old, new: old - new,
    "multo": lambda old, new: old * new,
    "divto": lambda old, new: old / new,
}


def filled(*shape: int) -> np.ndarray:
    return np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


# what is assigned to, as NumPy sees it: places in the memory of both tensors, one after another
WAYS = {
    "slice": (lambda a, b: lvalue.slice(a, 1, 3, 1), lambda a, b: a[:, 1:3]),
    "slice_ex": (
        lambda a, b: lvalue.slice_ex(a, (None, 3), (None, None), (-1, -2)),
        lambda a, b: a[::-1, 3::-2],
    ),
    "flip": (lambda a, b: lvalue.flip(a, 1), lambda a, b: a[:, ::-1]),
    "concat": (lvalue.concat, lambda a, b: np.concatenate([a, b])),
    "slice of concat": (
        lambda a, b: lvalue.slice(lvalue.concat(a, b), 1, 5),
        lambda a, b: np.concatenate([a, b])[1:5],
    ),
    "every other of concat, backwards": (
        lambda a, b: lvalue.slice_ex(lvalue.concat(a, b), (None, 1), (None, None), (-2, 2)),
        lambda a, b: np.concatenate([a, b])[::-2, 1::2],
    ),
    "nothing of the first": (
        lambda a, b: lvalue.slice(lvalue.concat(a, b), 4, 6),
        lambda a, b: np.concatenate([a, b])[4:6],
    ),
    "flip of concat": (
        lambda a, b: lvalue.flip(lvalue.concat(a, b), 0),
        lambda a, b: np.concatenate([a, b])[::-1],
    ),
    "flip beside concat": (
        lambda a, b: lvalue.flip(lvalue.concat(a, b), 1),
        lambda a, b: np.concatenate([a, b])[:, ::-1],
    ),
    "concat of slices": (
        lambda a, b: lvalue.concat(lvalue.slice(a, 0, 2), lvalue.concat(b, lvalue.flip(a[2:], 1))),
        lambda a, b: np.concatenate([a[:2], b, a[2:, ::-1]]),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("saver", SAVERS)
def test_assigning(way, saver):
    build, numpy = WAYS[way]
    a, b = filled(3, 4), filled(4, 4) + 20
    place = numpy(np.arange(12).reshape(3, 4), np.arange(12, 28).reshape(4, 4))
    value = np.random.default_rng(1).normal(size=place.shape).astype(np.float32)
    want = np.concatenate([a.ravel(), b.ravel()])
    want[place] = SAVERS[saver](want[place], value)
    target = build(Tensor(a), Tensor(b))
    assert target.shape == value.shape
    assert target.assign(Tensor(value), saver) is target
    np.testing.assert_allclose(np.concatenate([a.ravel(), b.ravel()]), want, rtol=1e-6)


def test_the_operators_and_reading():
    a, b = filled(3), filled(2)
    both = lvalue.concat(Tensor(a), Tensor(b))
    both[:] = 2.0
    both += 4.0
    both -= 1.0
    both *= 6.0
    both /= 3.0
    both[:] += 1.0
    assert a.tolist() == [11] * 3
    assert b.tolist() == [11] * 2
    out = np.zeros(5, np.float32)
    Tensor(out)[:] = both * 2.0
    assert out.tolist() == [22] * 5


def test_a_value_that_reads_the_parts_is_taken_before():
    a, b = filled(3), filled(3) + 10
    lvalue.concat(Tensor(a), Tensor(b)).assign(lvalue.concat(Tensor(b), Tensor(a)) * 2.0)
    assert a.tolist() == [22, 24, 26]
    assert b.tolist() == [2, 4, 6]
    ring = filled(5)
    t = Tensor(ring)
    lvalue.concat(t[1:], t[:1]).assign(lvalue.concat(t[:4], t[4:]))
    assert ring.tolist() == [5, 1, 2, 3, 4]


def test_errors_leave_all_parts():
    a, b = filled(2, 2), filled(2, 2)
    both = lvalue.concat(Tensor(a), Tensor(b))
    with pytest.raises(ShapeError, match=r"shape \(4, 2\) of the destination"):
        both.assign(Tensor(filled(2, 2)))
    with pytest.raises(DTypeError, match="float32"):
        both.assign(Tensor(np.zeros((4, 2))))
    with pytest.raises(GnomonError, match="implicit_dot"):
        both.assign(dot(Tensor(filled(4, 2)), Tensor(a)))
    with pytest.raises(ShapeError, match="begin, end"):
        lvalue.slice(both, 3, 5)
    with pytest.raises(ShapeError, match="slice"):
        both[1:] = 1.0
    with pytest.raises(ShapeError, match="part 1"):
        lvalue.concat(Tensor(a), Tensor(filled(2, 3)))
    assert a.tolist() == b.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("axis", [1.0, np.array([1, 2]), "1", None])
def test_joined_again_along_no_axis(axis):
    """An axis is looked at each time, also where parts of these shapes were joined before."""
    a, b = Tensor(filled(2, 2)), Tensor(filled(2, 2))
    lvalue.concat(a, b, 1)
    with pytest.raises(TypeError, match=r"concat: argument '.*': expected a whole number"):
        lvalue.concat(a, b, axis)


@pytest.mark.parametrize(
    "w", [Tensor(np.ones(3, np.float32)), concat(Tensor(np.ones(2)), Tensor(np.ones(2)))]
)
def test_a_power_in_place_is_told_how_to_be_stored(w):
    with pytest.raises(TypeError, match=r"expected w\[:\] = w \*\* 2, got w \*\*= 2"):
        w **= 2


def test_abs_is_an_expression():
    w = Tensor(np.array([-1, 2, -3], np.float32))
    w[:] = abs(w - 1.0)
    np.testing.assert_array_equal(w.numpy(), [2, 1, 4])
