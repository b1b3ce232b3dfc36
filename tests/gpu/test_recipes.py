"""What comes again on a GPU is not planned again: recipes, gradients and updates."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.kernels.gpu_kernel import GpuKernel
from gnomon.runtime.kernels.gpu_template import GpuTemplate

G, CPU = mx.gpu(0), mx.cpu()


@contextmanager
def unplanned(monkeypatch):
    """Inside, no kernel is bound: all work is that of templates."""

    def refused(*_):
        raise AssertionError("planned again")

    with monkeypatch.context() as inside:
        inside.setattr(GpuKernel, "bind", refused)
        inside.setattr(GpuTemplate, "__init__", refused)
        yield


def drawn(*shapes, seed=0):
    numbers = np.random.RandomState(seed)
    return [numbers.randn(*shape).astype(np.float32) for shape in shapes]


CASES = {
    "add": (lambda x, y: x + y, [(3, 4), (3, 4)]),
    "row": (nd.broadcast_mul, [(3, 4), (1, 4)]),
    "same": (lambda x: x * x, [(5,)]),
    "softmax": (nd.softmax, [(3, 7)]),
    "sum": (lambda x: x.sum(), [(40, 30)]),
    "dense": (lambda x, w, b: nd.FullyConnected(x, w, b, num_hidden=5), [(3, 4), (5, 4), (5,)]),
    "conv": (
        lambda x, w: nd.Convolution(x, w, kernel=(3, 3), num_filter=2, no_bias=True),
        [(1, 2, 6, 6), (2, 2, 3, 3)],
    ),
    "split": (lambda x: nd.concat(*nd.split(x, num_outputs=2), dim=0), [(4, 6)]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator(monkeypatch, case):
    function, shapes = CASES[case]
    for seed in range(3):
        given = drawn(*shapes, seed=seed)
        want = function(*map(nd.array, given)).asnumpy()
        arrays = [nd.array(x, ctx=G) for x in given]
        if seed:
            with unplanned(monkeypatch):
                found = function(*arrays)
        else:
            found = function(*arrays)
        np.testing.assert_allclose(found.asnumpy(), want, 1e-5, 1e-5)


def test_numbers_come_with_each_run(monkeypatch):
    (x,) = drawn((3, 4))
    there = nd.array(x, ctx=G)
    for k, number in enumerate((0.1, -2.0, 3.5)):
        if k:
            with unplanned(monkeypatch):
                found = there * number, there**number
        else:
            found = there * number, there**number
        np.testing.assert_allclose(found[0].asnumpy(), x * np.float32(number), 1e-6)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found[1].asnumpy(), x ** np.float32(number), 1e-5)


def test_whether_a_result_lies_on_an_operand_counts():
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):
        there = nd.array(x, ctx=G)
        nd.elemwise_add(there[1:], there[:-1], out=there[1:])  # all is read before it is written
        np.testing.assert_array_equal(there.asnumpy(), [0, *(x[1:] + x[:-1])])
        there = nd.array(x, ctx=G)
        nd.elemwise_add(there[:3], there[3:], out=there[:3])
        np.testing.assert_array_equal(there.asnumpy(), [3, 5, 7, 3, 4, 5])


def test_random_numbers_are_new_and_the_processors(monkeypatch):
    found = []
    for ctx in (G, CPU):
        mx.random.seed(7, ctx)
        found.append([nd.random.normal(shape=(5,), ctx=ctx).asnumpy() for _ in range(3)])
    np.testing.assert_allclose(found[0], found[1], 1e-5)
    assert len({x[0] for x in found[0]}) == 3
    with unplanned(monkeypatch):
        nd.random.normal(shape=(5,), ctx=G).wait_to_read()


def trained(ctx, steps):
    """A network's losses and parameters, one step after the other."""
    x, w, b, y = (nd.array(v, ctx=ctx) for v in drawn((4, 6), (3, 6), (3,), (4, 3)))
    gamma, beta = nd.ones((3,), ctx=ctx), nd.zeros((3,), ctx=ctx)
    states = nd.zeros((3,), ctx=ctx), nd.ones((3,), ctx=ctx)
    params = [w, b, gamma, beta]
    for p in params:
        p.attach_grad()
    for k in range(steps):
        with autograd.record():
            dense = nd.FullyConnected(x, w, b, num_hidden=3)
            loss = ((nd.BatchNorm(dense, gamma, beta, *states, fix_gamma=False) - y) ** 2).mean()
        loss.backward()
        nd.multi_sgd_update(
            *[v for p in params[:2] for v in (p, p.grad)],
            out=params[:2], lrs=(0.1 / (k + 1), 0.1), wds=(0.0, 0.0), num_weights=2,
        )  # fmt: skip
        for p in params[2:]:
            nd.sgd_update(p, p.grad, out=p, lr=0.5 / (k + 1))
        yield [v.asnumpy() for v in (loss, *params, *states)]


def test_training_steps():
    for ours, theirs in zip(trained(G, 4), trained(CPU, 4), strict=True):
        for found, want in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(found, want, 1e-4, 1e-5)


def test_a_training_step_is_not_planned_again(monkeypatch):
    net = mx.gluon.nn.Dense(3, in_units=6)
    net.initialize(ctx=G)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = nd.array(drawn((4, 6))[0], ctx=G)

    def step():
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(4)

    step()
    step()
    before = net.weight.data(G).asnumpy()
    with unplanned(monkeypatch):
        step()
    np.testing.assert_allclose(
        net.weight.data(G).asnumpy(), before - 0.1 / 4 * x.asnumpy().sum(0), 1e-4, 1e-5
    )


def test_an_operator_without_a_kernel_stays_one(monkeypatch):
    monkeypatch.setattr(Simulated, "blas", lambda driver: None)  # its steps would be expressions
    x = drawn((3, 2, 4))[0]
    weights = nd.array(np.full(200, 0.01, np.float32), ctx=G)
    states = [nd.zeros((1, 2, 4), ctx=G) for _ in range(2)]
    for _ in range(2):
        found = nd.RNN(
            nd.array(x, ctx=G), weights[:160], *states, state_size=4, num_layers=1, mode="lstm"
        )
        assert found.context == G and found.shape == (3, 2, 4)


def test_two_threads_share_a_recipe():
    x = nd.array(drawn((20, 20))[0], ctx=G)
    want = (nd.softmax(x) + x).asnumpy()
    found = []

    def many():
        found.extend([(nd.softmax(x) + x).asnumpy() for _ in range(5)])

    threads = [threading.Thread(target=many) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 15
    for each in found:
        np.testing.assert_array_equal(each, want)
