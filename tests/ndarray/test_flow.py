"""How gradients flow through parts that programs stand for: averages change as one by one.

A layer's averages change with its gradients, and also where these are stopped between it and the
head, whatever stands there by itself and whatever as one node of the tape.
"""

from __future__ import annotations

import numpy as np
import pytest
from ndarray.noted_steps import begin_soon

from gnomon import autograd, config, nd
from gnomon.base import GnomonError

STEPS = 8  # of which the last are programs


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


class Passed(autograd.Function):
    """A function whose gradient calls `then`, and comes or does not."""

    def __init__(self, comes, then=lambda: None):
        self.comes, self.then = comes, then

    def forward(self, x):
        return x * 2

    def backward(self, dy):
        self.then()
        return dy * 2 if self.comes else [None]


class Arrays:
    """What a network reads; the averages stay where they are."""

    def __init__(self):
        self.v, self.w, self.u = nd.array([[1, 2, 3], [3, 1, 2]]), nd.ones((2, 2)), nd.ones((2, 2))
        for x in (self.v, self.w, self.u):
            x.attach_grad()
        self.two, self.one, self.zero = nd.ones((2, 2)) * 2, nd.ones((2,)), nd.zeros((2,))
        self.mean, self.variance = nd.zeros((2,)), nd.ones((2,))
        self.others = nd.zeros((2,)), nd.ones((2,))

    def layer(self, x):
        return nd.FullyConnected(x, self.v, no_bias=True, num_hidden=2)

    def normed(self, h):
        return nd.BatchNorm(h, self.one, self.zero, self.mean, self.variance, momentum=0.5)

    def other(self):
        return nd.dot(self.two, self.w)


def read(h):
    h.asnumpy()
    return h


def stopped_behind_a_part(x, a):
    h = read(a.normed(a.layer(x)))
    return nd.dot(read(nd.BlockGrad(h) + a.other()), a.u)


def stopped_in_each_of_two_parts(x, a):
    h = read(nd.BlockGrad(read(a.normed(a.layer(x)))) + a.other())
    return read(nd.dot(nd.BlockGrad(h) + a.other(), a.u))


def stopped_behind_a_function(x, a):
    h = read(a.normed(a.layer(x)))
    return nd.dot(Passed(True)(nd.BlockGrad(h) + a.other()), a.u)


def stopped_in_the_same_part(x, a):
    h = read(a.layer(x))
    return nd.dot(nd.BlockGrad(a.normed(h)) + a.other(), a.u)


def stopped_in_the_same_part_that_is_read(x, a):
    h = read(a.layer(x))
    return read(nd.dot(read(nd.BlockGrad(a.normed(h)) + a.other()), a.u))


def stopped_before_the_layer(x, a):
    """Nothing leads to a variable, so that nothing changes."""
    h = read(nd.BlockGrad(a.layer(x)))
    return read(a.normed(h)) + a.u


def stopped_before_the_layer_alone(x, a):
    h = read(nd.BlockGrad(a.layer(x)))
    return a.normed(h).sum() + a.u.sum()


def stopped_before_all(x, a):
    return a.normed(read(nd.BlockGrad(a.layer(x))))


def stopped_before_one_of_two_layers(x, a):
    """Both are results of one part."""
    h = a.layer(x)
    g = nd.BlockGrad(h)
    return nd.dot(a.normed(read(g)), a.u) + read(h)


def stopped_before_a_part(x, a):
    h = read(nd.BlockGrad(a.layer(x)))
    return nd.dot(read(nd.dot(a.normed(h), a.w)), a.u)


def stopped_before_a_part_that_another_is_behind(x, a):
    """Of two results of a part the one that is normed leads nowhere."""
    h = a.layer(x)
    g = nd.BlockGrad(h) * 2
    read(h)
    t = read(g * 3)
    return nd.dot(read(a.normed(t) + nd.BlockGrad(h)), a.u)


def stopped_before_and_beside(x, a):
    """Other averages change in a part whose result leads nowhere."""
    mean, variance = a.others
    t = read(nd.BlockGrad(nd.BatchNorm(a.layer(x), a.one, a.zero, mean, variance, momentum=0.5)))
    return nd.dot(a.normed(t), a.u)


def not_given_by_a_function(x, a):
    h = read(a.normed(a.layer(x)))
    return Passed(False)(h) + a.other()


def not_given_by_a_function_of_what_is_noted(x, a):
    return Passed(False)(a.normed(a.layer(x))) + a.other()


def not_given_by_a_function_to_one_of_two(x, a):
    h = a.normed(a.layer(x))
    g = read(nd.dot(h, a.u))
    return Passed(False)(h) + g


def stopped_while_another_part_is_written(x, a):
    h = read(a.normed(a.layer(x)))
    g = read(a.other())
    t = read(nd.BlockGrad(h) + a.other())
    return t + Passed(True, lambda: a.two.__setitem__(slice(None), 2))(g)


NETWORKS = [
    stopped_behind_a_part,
    stopped_in_each_of_two_parts,
    stopped_behind_a_function,
    stopped_in_the_same_part,
    stopped_in_the_same_part_that_is_read,
    stopped_before_the_layer,
    stopped_before_the_layer_alone,
    stopped_before_all,
    stopped_before_one_of_two_layers,
    stopped_before_a_part,
    stopped_before_a_part_that_another_is_behind,
    stopped_before_and_beside,
    not_given_by_a_function,
    not_given_by_a_function_of_what_is_noted,
    not_given_by_a_function_to_one_of_two,
    stopped_while_another_part_is_written,
]


def trained(network, programs):
    """Averages and gradients after each step."""
    random, found = np.random.default_rng(3), []
    with config.using(programs=programs):
        a = Arrays()
        for _ in range(STEPS):
            x = nd.array(random.standard_normal((2, 3)))
            with autograd.record():
                loss = network(x, a)
            loss.backward()
            seen = a.mean, a.variance, *a.others, a.v.grad, a.w.grad, a.u.grad
            found.append([np.array(x.asnumpy()) for x in seen])
    return found


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_averages_change_as_one_by_one(network):
    for found, right in zip(trained(network, True), trained(network, False), strict=True):
        for x, y in zip(found, right, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_a_part_is_followed_though_nothing_leads_on():
    """It keeps nothing, as operators one by one."""
    a = Arrays()
    for _ in range(STEPS):
        with autograd.record():
            h = read(nd.BlockGrad(a.layer(nd.ones((2, 3)))))
            loss = read(a.normed(Passed(True)(h))) + a.u
        loss.backward()
        with pytest.raises(GnomonError, match="followed already"):
            h.backward()


@pytest.mark.parametrize("programs", [True, False])
def test_a_function_that_leads_nowhere_is_not_called(programs):
    a, called = Arrays(), []
    with config.using(programs=programs):
        for _ in range(STEPS):
            with autograd.record():
                h = nd.BlockGrad(a.layer(nd.ones((2, 3))))
                loss = Passed(True, lambda: called.append(1))(h) + a.u
            loss.backward()
    assert not called
    assert (a.u.grad.asnumpy() == 1).all()
