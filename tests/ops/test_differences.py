"""Gradients that differ from MXNet's, against finite differences of what forward computes.

Each has its row in `docs/differences.md`.
"""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd, sym

STEP = 1e-6


def difference(function, values):
    """The slope of an element-wise function at each value, from both sides."""
    high, low = (function(nd.array(values + h, dtype="float64")) for h in (STEP, -STEP))
    return (high - low).asnumpy() / (2 * STEP)


def slope(function, x):
    """The derivative of a function at `x`, on the tape."""
    with autograd.record():
        y = function(x)
    return autograd.grad(y, [x], create_graph=True)[0]


def variable(values):
    x = nd.array(values, dtype="float64")
    x.attach_grad()
    return x


@pytest.mark.parametrize("channels", [(1,), (4,)])
def test_gammas_gradient_of_prelu_on_what_a_network_computed(channels):
    """MXNet reads the data after the output was written over it: -1.5 for -6 and gamma 0.25."""
    rng = np.random.default_rng(0)
    x, gamma = rng.normal(size=(3, 4)), np.full(channels, 0.25)
    net = sym.LeakyReLU(sym.Variable("x") * 2 - 1, sym.Variable("gamma"), act_type="prelu")
    args = {"x": nd.array(x, dtype="float64"), "gamma": nd.array(gamma, dtype="float64")}
    grads = {name: nd.zeros(a.shape, dtype="float64") for name, a in args.items()}
    bound = net.bind(mx.cpu(), args, grads)
    bound.forward(is_train=True)
    bound.backward([nd.ones((3, 4), dtype="float64")])
    for k in range(len(gamma)):
        ends = []
        for step in (STEP, -STEP):
            args["gamma"][k] = gamma[k] + step
            ends.append(bound.forward()[0].asnumpy().sum())
            args["gamma"][k] = gamma[k]
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(grads["gamma"].asnumpy()[k], numeric, 1e-6)


@pytest.mark.parametrize(
    ("name", "values"), [("arcsinh", [-2.0, -0.3, 0.3, 0.6]), ("arccosh", [1.5, 2.0, 7.0])]
)
def test_second_derivatives_of_inverse_hyperbolic_functions(name, values):
    """MXNet's have the wrong sign: 0.264 for arcsinh at 0.3."""
    function, x = getattr(nd, name), variable(values)
    first = slope(function, x)
    np.testing.assert_allclose(first.asnumpy(), difference(function, np.array(values)), 1e-6)
    second = slope(lambda x: slope(function, x), x)
    numeric = difference(lambda x: slope(function, variable(x.asnumpy())), np.array(values))
    np.testing.assert_allclose(second.asnumpy(), numeric, 1e-6)


@pytest.mark.parametrize("name", ["gamma", "gammaln"])
def test_derivatives_at_the_pole_at_0(name):
    """Both fall from infinity to the right of 0; MXNet's rise there."""
    function = getattr(nd, name)
    near = difference(function, np.array([1e-3, 1e-4, 1e-5]))
    assert (near < 0).all() and (np.diff(near) < 0).all()
    at = nd.array([0.0, 1e-3], dtype="float64")
    at.attach_grad()
    with autograd.record():
        y = function(at)
    y.backward()
    pole, beside = at.grad.asnumpy()
    assert pole == -np.inf
    np.testing.assert_allclose(beside, near[0], 1e-5)


def test_the_hypotenuse_at_0():
    """From both sides it is flat on average; MXNet gives NaN."""
    x, y = variable([0.0, 3.0, 0.0]), variable([0.0, 0.0, 4.0])
    with autograd.record():
        z = nd.broadcast_hypot(x, y)
    z.backward()
    for this, other in ((x, y), (y, x)):
        numeric = difference(lambda v, o=other: nd.broadcast_hypot(v, o), this.asnumpy())
        np.testing.assert_allclose(this.grad.asnumpy(), numeric, 1e-6, 1e-9)


MEAN, VARIANCE = np.array([0.3, -0.2]), np.array([1.5, 0.7])


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("written", ["running_mean", "running_var"])
def test_averages_written_between_forward_and_backward(written, hybrid):
    """MXNet's backward reads the new ones: -10.8 for 8.6 where the mean is 3."""
    layer = gluon.nn.BatchNorm(in_channels=2, use_global_stats=True)
    layer.cast("float64")
    layer.initialize()
    layer.running_mean.set_data(nd.array(MEAN))
    layer.running_var.set_data(nd.array(VARIANCE))
    layer.hybridize(hybrid)
    values = np.random.default_rng(0).normal(size=(8, 2))
    x = variable(values)
    with autograd.record():
        loss = (layer(x) ** 2).sum()
    getattr(layer, written).data()[:] = 3
    loss.backward()

    def by_gamma(v):  # at a gamma of 1 and a beta of 0
        return 2 * ((v - MEAN) / np.sqrt(VARIANCE + 1e-5)) ** 2

    expected = by_gamma(values).sum(axis=0)
    np.testing.assert_allclose(layer.gamma.grad().asnumpy(), expected, 1e-6)
    expected = 2 * (values - MEAN) / (VARIANCE + 1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), expected, 1e-6)


def test_data_of_a_hybridized_block_written_between_forward_and_backward():
    """MXNet gives [3.3, 6.6, 16.2, 0]: the formula at data that forward never saw."""

    def product(v):
        return nd.exp(v) * v

    values = np.array([0.1, 0.5, 0.3, 0.9])
    block, x = gluon.nn.HybridLambda(lambda F, v: F.exp(v) * v), variable(values)
    block.hybridize()
    with autograd.record():
        y = block(x)
    x[:] = 2
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), difference(product, values), 1e-6)


class Pair(gluon.HybridBlock):
    """Two outputs, of which the second does not depend on `last`."""

    def __init__(self):
        super().__init__()
        self.first, self.last = gluon.nn.Dense(2, in_units=2), gluon.nn.Dense(2, in_units=2)

    def hybrid_forward(self, F, x):
        hidden = self.first(x)
        return self.last(hidden), hidden


def test_gradients_of_a_hybridized_block_that_no_head_depends_on_are_0():
    """MXNet leaves those of the step before, and a trainer moves the parameters by them."""
    net = Pair()
    net.initialize()
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1})
    for used in (0, 1):
        with autograd.record():
            loss = net(nd.ones((3, 2)))[used].sum()
        loss.backward()
        assert net.first.bias.grad().asnumpy().any()
        assert net.last.bias.grad().asnumpy().any() == (used == 0)
        before = net.last.bias.data().asnumpy()
        trainer.step(1)
        assert (net.last.bias.data().asnumpy() != before).all() == (used == 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("number", [300, -300, 2**31, 2**40 + 5, -1])
def test_sums_and_products_with_a_number_beyond_the_type_count_modulo(dtype, number):
    values = np.array([1, 100, 5], np.int64)
    x = nd.array(values, dtype=dtype)
    for _ in range(3):  # as a first call, and as known ones
        np.testing.assert_array_equal((x + number).asnumpy(), (values + number).astype(dtype))
        np.testing.assert_array_equal((x - number).asnumpy(), (values - number).astype(dtype))
        np.testing.assert_array_equal((number - x).asnumpy(), (number - values).astype(dtype))
        np.testing.assert_array_equal((x * number).asnumpy(), (values * number).astype(dtype))
