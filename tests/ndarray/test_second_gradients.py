"""Gradients of gradients: within a scope that records and outside of it, constant ones too."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd


def variable(values):
    x = nd.array(values)
    x.attach_grad()
    return x


class Double(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, dy):
        return dy * 2


def doubled(x):
    return Double()(x)


def test_gradients_of_gradients():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x * x
        first = autograd.grad(y, [x], create_graph=True)[0]
        second = autograd.grad(first, [x], create_graph=True)[0]
        z = (first * first + nd.sin(second)).sum()
    z.backward()
    v = np.array([1.0, 2.0])
    np.testing.assert_allclose(first.asnumpy(), 3 * v**2)
    np.testing.assert_allclose(second.asnumpy(), 6 * v)
    np.testing.assert_allclose(x.grad.asnumpy(), 36 * v**3 + 6 * np.cos(6 * v), rtol=1e-5)


LINEAR = {
    "radians": nd.radians,
    "x*3": lambda x: x * 3,
    "sum": nd.sum,
    "dropout": lambda x: nd.Dropout(x, p=0.5),
    "BlockGrad": nd.BlockGrad,
    "reshape": lambda x: x.reshape((2, 1)),
    "x+x": lambda x: x + x,
    "dot": lambda x: nd.dot(x, nd.array([2, 3])),
    "concat": lambda x: nd.concat(x, x, dim=0),
    "floor": nd.floor,
    "function": doubled,
}


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("name", LINEAR)
def test_the_gradient_of_a_constant_gradient_is_0(name, recording):
    x = variable([1, 2])
    x.grad[:] = 7
    with autograd.record():
        y = LINEAR[name](x)
        if recording:
            (slope,) = autograd.grad(y, [x], create_graph=True)
    if not recording:
        (slope,) = autograd.grad(y, [x], create_graph=True)
    (second,) = autograd.grad(slope, [x], create_graph=True)
    (third,) = autograd.grad(second, [x])
    assert second.asnumpy().tolist() == third.asnumpy().tolist() == [0, 0]
    (slope,) = autograd.grad(y, [x], create_graph=True)
    with autograd.record():
        z = slope * slope * x
    z.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.asnumpy(), slope.asnumpy() ** 2, 1e-6)
    slope.backward()
    assert x.grad.asnumpy().tolist() == [0, 0]


def test_gradients_of_gradients_asked_for_outside_of_a_scope():
    x, v = variable([1.0, 2.0]), np.array([1.0, 2.0])
    with autograd.record():
        y = nd.sin(x) + x * x + x * x * x
    first = autograd.grad(y, [x], create_graph=True)[0]
    assert not autograd.is_recording()
    second = autograd.grad(first, [x], create_graph=True)[0]
    np.testing.assert_allclose(second.asnumpy(), 2 + 6 * v - np.sin(v), 1e-5)
    second.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 - np.cos(v), 1e-5)


def test_following_the_tape_within_a_scope_records_nothing():
    x, seen = variable([1, 2]), []

    class Seeing(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            seen.append(autograd.is_recording())
            return dy * 2

    with autograd.record():
        y = Seeing()(x)
        y.backward(retain_graph=True)
        autograd.grad(y, [x], create_graph=True)
        assert autograd.is_recording()
    assert seen == [False, True]


NORMS = {
    "LayerNorm": lambda x, g, b: nd.LayerNorm(x, g, b, axis=1),
    "GroupNorm": lambda x, g, b: nd.GroupNorm(x, g, b, num_groups=3),
    "InstanceNorm": nd.InstanceNorm,
    "BatchNorm": lambda x, g, b: nd.BatchNorm(x, g, b, 0 * g, 0 * g + 1, fix_gamma=False),
}


@pytest.mark.parametrize("name", NORMS)
def test_statistics_that_are_not_shown_depend_on_the_data(name):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((4, 3, 5))
    scale, shift, weights, along = (
        nd.array(rng.standard_normal(shape), dtype="float64")
        for shape in ((3,), (3,), values.shape, values.shape)
    )

    def slope_along(data):
        x = nd.array(data, dtype="float64")
        x.attach_grad()
        with autograd.record():
            y = NORMS[name](x, scale, shift)
            (slope,) = autograd.grad((y * y * weights).sum(), [x], create_graph=True)
            found = (slope * along).sum()
        found.backward()
        return float(found.asscalar()), x.grad.asnumpy()

    step = 1e-5 * rng.standard_normal(values.shape)
    wanted = slope_along(values + step)[0] - slope_along(values - step)[0]
    found = (slope_along(values)[1] * step).sum() * 2
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
