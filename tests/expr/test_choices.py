"""Choices choose: what is not taken, however large it is or no number at all, does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.expr import ext, fn
from gnomon.expr.diff import vjp
from gnomon.expr.oracle import evaluate
from gnomon.shadow import Tensor, TensorContainer

LARGE, NONE = 1e20, np.nan


def stored(e) -> np.ndarray:
    """The value of an expression by a kernel, which the oracle must have as well."""
    dest = TensorContainer(e.shape, e.dtype)
    dest.assign(e)
    np.testing.assert_array_equal(dest.numpy(), evaluate(e))
    return dest.numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
def test_one_element_of_each_row_is_replaced(dtype):
    rows = np.array([[100, 1], [7, 2], [-100, 3]], dtype)
    if rows.dtype.kind == "f":
        rows[:, 0] = [1e4 if dtype == "float16" else LARGE, NONE, np.inf]
    value, index = np.array([1, -100, 8], dtype), np.array([1, 1, 0])
    expected = rows.copy()
    expected[range(3), index] = value
    filled = ext.mat_fill_row_element(*map(Tensor, (rows, value, index)))
    np.testing.assert_array_equal(stored(filled), expected)


def test_first_gives_its_gradient_to_what_it_took():
    good, trials, other, g = (
        Tensor(np.array(x, np.float32))
        for x in ([[0, 1], [0, 0]], np.zeros((2, 2)), [0, 0], [np.inf, NONE])
    )
    to_trials, to_other = vjp([ext.first(good, trials, other)], [g], [trials, other])
    np.testing.assert_array_equal(stored(to_trials), [[0, np.inf], [0, 0]])
    np.testing.assert_array_equal(stored(to_other), [0, NONE])


@pytest.mark.parametrize(
    ("function", "operands", "expected"),
    [
        (fn.where, [[1, 0], [2, 3], [4, 5]], [[0, 0], [np.inf, 0], [0, NONE]]),
        (fn.maximum, [[1, 2], [2, 1]], [[0, NONE], [np.inf, 0]]),
        (fn.minimum, [[1, 2], [2, 1]], [[np.inf, 0], [0, NONE]]),
        (fn.sign, [[1, 2]], [[0, 0]]),
        (fn.elu, [[1, -200], [0, 0]], [[np.inf, NONE], [0, NONE]]),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_gradients_go_to_what_was_taken(function, operands, expected):
    x = [Tensor(np.array(row, np.float32)) for row in operands]
    found = vjp([function(*x)], [Tensor(np.array([np.inf, NONE], np.float32))], x)
    for e, row in zip(found, expected, strict=True):
        np.testing.assert_array_equal(0 if e is None else stored(e), row)  # None: nothing came


@pytest.mark.parametrize("kind", ["elu", "selu", "gelu", "leaky"])
def test_gradients_of_large_numbers_are_numbers(kind):
    x = nd.array([1000, 89, 3e38, 20, -1000, -3e38])
    x.attach_grad()
    with autograd.record():
        y = nd.LeakyReLU(x, act_type=kind)
    y.backward()
    scale = 1.0507009873554805 if kind == "selu" else 1
    below = 0.25 if kind == "leaky" else 0
    np.testing.assert_allclose(x.grad.asnumpy(), [scale] * 4 + [below] * 2, 1e-6)


def test_clip_gives_its_gradient_inside_and_at_nan_alone():  # as MXNet's
    x = nd.array([-2, 1, 5, NONE])
    x.attach_grad()
    with autograd.record():
        y = nd.clip(x, -1.5, 1.5)
    y.backward(nd.array([np.inf, 1, NONE, 1]))
    assert x.grad.asnumpy().tolist() == [0, 1, 0, 1]
