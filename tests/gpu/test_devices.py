"""Operands on several devices: copied, or refused before a kernel meets them."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon.base import DeviceError
from gnomon.gluon import nn

G, H, CPU = mx.gpu(0), mx.gpu(1), mx.cpu()
APART = [(G, H), (G, CPU), (CPU, G)]


@pytest.fixture(autouse=True)
def _unharmed():
    """Both devices work on behind a test."""
    yield
    nd.waitall()
    for ctx in (G, H):
        same(nd.ones((3,), ctx=ctx) + 1, [2, 2, 2])


def same(array, values):
    np.testing.assert_array_equal(array.asnumpy(), values)


def variable(ctx):
    x = nd.array([1, 2, 3], ctx=ctx)
    x.attach_grad()
    return x


def doubled(x):
    with autograd.record():
        return x * 2


@pytest.mark.parametrize(("ctx", "other"), APART)
def test_head_gradients_are_copied(ctx, other):
    x, head = variable(ctx), nd.array([1, 0, 5], ctx=other)
    doubled(x).backward(head)
    same(x.grad, [2, 0, 10])
    autograd.backward([doubled(x)], [head + 1])
    same(x.grad, [4, 2, 12])
    (found,) = autograd.grad(doubled(x), [x], head_grads=[head.astype("float64")])
    assert (found.context, found.dtype) == (ctx, np.float32)
    same(found, [2, 0, 10])
    with autograd.record():
        (first,) = autograd.grad(x * x * x, [x], head_grads=head, create_graph=True)
    first.backward()
    same(x.grad, [6, 0, 90])
    net = nn.HybridLambda(lambda F, data: data * 2)
    net.hybridize()
    for _ in range(3):
        with autograd.record():
            y = net(x)
        y.backward(head)
    same(x.grad, [2, 0, 10])


@pytest.mark.parametrize(("ctx", "other"), APART)
@pytest.mark.parametrize("make", [mx.optimizer.SGD, mx.optimizer.Adam, mx.optimizer.Ftrl])
def test_updates(ctx, other, make):
    optimizer = make(momentum=0.9) if make is mx.optimizer.SGD else make()
    update = mx.optimizer.get_updater(optimizer)
    weight, grad = nd.ones((3,), ctx=ctx), nd.ones((3,), ctx=other)
    refused = rf"update of 7.*'grad'.*{_named(ctx)}, as its weight.*{_named(other)}"
    with pytest.raises(DeviceError, match=refused):
        update(7, grad, weight)
    with pytest.raises(DeviceError, match=refused):
        make().update(7, weight, grad, make().create_state(7, weight))
    with pytest.raises(DeviceError, match=r"update of 'b'.*'weight'.*as the weight of 'a'"):
        update(["a", "b"], [weight, grad], [weight, grad])
    same(weight, np.ones(3))
    assert not optimizer._index_update_count
    update(7, weight.copy(), weight)
    assert weight.asnumpy().max() < 1
    with pytest.raises(DeviceError, match="'state'"):  # which is where the first weight was
        update(7, grad.copy(), grad)


def _named(ctx):
    return str(ctx).replace("(", r"\(").replace(")", r"\)")


@pytest.mark.parametrize(("ctx", "other"), APART)
def test_out_says_where_it_is_created(ctx, other):
    out = nd.zeros((3, 3), ctx=ctx)
    assert nd.ones((3, 3), ctx=other, out=out) is out
    same(out, np.ones((3, 3)))
    nd.full((3, 3), 4, ctx=other, out=out)
    same(out, np.full((3, 3), 4))
    nd.eye(3, ctx=other, out=out)
    same(out, np.eye(3))
    row = nd.zeros((3,), ctx=ctx)
    nd._internal._arange(start=1, stop=4, ctx=other, out=row)
    same(row, [1, 2, 3])
    mx.random.seed(5)
    want = nd.random.normal(shape=(3, 3), ctx=ctx)
    mx.random.seed(5)
    nd.random.normal(shape=(3, 3), ctx=other, out=out)
    same(out, want.asnumpy())


@pytest.mark.parametrize(("ctx", "other"), APART)
def test_operands_elsewhere(ctx, other):
    x = nd.ones((3,), ctx=ctx)
    message = rf"(?=.*same context)(?=.*{_named(ctx)})(?=.*{_named(other)})"
    for work in (
        lambda: nd.dot(x, nd.ones((3,), ctx=other)),
        lambda: nd.dot(x, x, out=nd.ones((1,), ctx=other)),
    ):
        with pytest.raises(DeviceError, match=message):
            work()
    if other != CPU:
        with pytest.raises(DeviceError, match=message):
            nd.softmax(x, ctx=other)


@pytest.mark.parametrize(("ctx", "other"), APART)
def test_gradients_marked_elsewhere(ctx, other):
    x, grad = nd.ones((3,), ctx=ctx), nd.zeros((3,), ctx=other)
    refused = rf"mark_variables.*'gradients'.*{_named(ctx)}, as the variable.*{_named(other)}"
    with pytest.raises(DeviceError, match=refused):
        autograd.mark_variables([x], [grad])
    assert x.grad is None
    autograd.mark_variables([x], [nd.zeros((3,), ctx=ctx)])
    doubled(x).backward()
    same(x.grad, [2, 2, 2])


@pytest.mark.parametrize(("ctx", "other"), APART)
def test_gradients_of_a_function_are_copied(ctx, other):
    """As MXNet does, which stores what `backward` gives into arrays where the inputs are."""

    class Twice(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return (dy * 2).as_in_context(other)

    x = variable(ctx)
    with autograd.record():
        y = Twice()(x * x)
    y.backward()
    same(x.grad, [4, 8, 12])
    assert x.grad.context == ctx
