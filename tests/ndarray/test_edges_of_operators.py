"""Operators at the edges of their arguments: NaN, indices that are refused, kernels that fail."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd, util
from gnomon.base import EngineError
from gnomon.ndarray.lazy.recipe import Recipe
from gnomon.shadow import Tensor, fn

NAN = float("nan")


def test_the_gradient_of_clip_passes_where_there_is_no_number():
    x = nd.array([NAN, 1, -5, 5, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.clip(x, -2, 2)
    y.backward(nd.array([1, 2, 3, 4, 5]))
    assert x.grad.asnumpy().tolist() == [1, 2, 0, 0, 5]


def test_what_is_no_number_names_no_position():
    marks = nd.one_hot(nd.array([NAN, 1, 0.7, -1]), 3).asnumpy()
    assert marks.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0]]
    with pytest.raises(EngineError, match="out of bounds"):
        nd.take(nd.ones((3, 2)), nd.array([NAN]), mode="raise").asnumpy()


@pytest.mark.parametrize("create", [False, True])
def test_the_gradient_of_a_refused_look_up_is_refused(create):
    a = nd.array([[1, 2], [3, 4], [5, 6]])
    a.attach_grad()
    with autograd.record():
        y = nd.take(a, nd.array([0, 7]), mode="raise")
        if create:
            grad = autograd.grad(y, [a], create_graph=True, retain_graph=True)[0]
    if not create:
        y.backward()
        grad = a.grad
    for array in (y, grad):
        with pytest.raises(EngineError, match="index 7 is out of bounds"):
            array.asnumpy()
    with autograd.record():
        y = nd.take(a, nd.array([0, 2]), mode="raise")
    y.backward()
    assert a.grad.asnumpy().tolist() == [[1, 1], [0, 0], [1, 1]]


@pytest.mark.filterwarnings("ignore:operators computed one by one")
def test_a_write_whose_kernel_cannot_be_made_is_an_error(monkeypatch):
    x, y = nd.ones((5, 7)), nd.ones((5, 7))
    x.wait_to_read()

    def refuse(self, *given):
        raise MemoryError("no room for a kernel")

    def write(array):
        array -= y
        array.wait_to_read()

    monkeypatch.setattr(Recipe, "__init__", refuse)
    with pytest.raises((MemoryError, EngineError), match="no room"):
        write(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_far_below_zero(dtype):
    x = np.array([-1e30, -105, -103, -95, -88.8, -50, 0, 50, 90, 1e30, NAN], dtype)
    out = Tensor(np.zeros(len(x), dtype))
    out[:] = fn.sigmoid(Tensor(x))
    with np.errstate(over="ignore"):
        want = (1 / (1 + np.exp(-x.astype(np.longdouble)))).astype(dtype)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=2e-45)


def test_any_part_of_an_axis_without_elements_has_none():
    with util.np_shape(True):
        assert nd.zeros((0, 2)).slice_axis(axis=0, begin=0, end=1).shape == (0, 2)
