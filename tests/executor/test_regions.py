"""Branches side by side in bound networks: the same bits, in memory that is planned for them."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.graph.tasks import regions
from gnomon.runtime.execution import threads

sym = mx.sym


def conv(x, filters, size=1):
    pad = (size // 2, size // 2)
    x = sym.Convolution(x, num_filter=filters, kernel=(size, size), pad=pad)
    return sym.Activation(x, act_type="relu")


def inception(x):
    pooled = sym.Pooling(x, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="max")
    branches = [conv(x, 16), conv(conv(x, 24), 32, 3), conv(conv(x, 8), 16, 5), conv(pooled, 8)]
    return sym.Concat(*branches, dim=1)


def attention(x):
    q, k, v = (sym.FullyConnected(x, num_hidden=96, no_bias=True) for _ in range(3))
    return sym.dot(sym.softmax(sym.dot(q, k, transpose_b=True)), v)


def two_towers(x):
    ends = []
    for k in range(2):
        y = x
        for layer in range(4):
            y = sym.FullyConnected(y, num_hidden=64)
            y = sym.tanh(sym.BatchNorm(y, name=f"bn{k}{layer}"))
        ends.append(sym.Dropout(y, p=0.3))
    return ends[0] + ends[1]


NETS = {
    "inception": (inception, (1, 16, 14, 14)),
    "attention": (attention, (24, 96)),
    "towers": (two_towers, (16, 64)),
}


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Two threads, and regions wherever there are branches."""
    monkeypatch.setattr(regions, "LEAST", 1)
    monkeypatch.setattr(regions, "BEGIN", 0)
    before = threads.num_threads()
    threads.set_num_threads(2)
    yield
    threads.set_num_threads(before)


def bound(name, train=True, **more):
    make, shape = NETS[name]
    net = make(sym.Variable("data"))
    executor = net.simple_bind(mx.cpu(), "write" if train else "null", data=shape, **more)
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.standard_normal(array.shape) * 0.2
    for array in executor.aux_arrays:
        array[:] = rng.random(array.shape) + 0.5
    return executor


def results(executor, train):
    mx.random.seed(3)
    for _ in range(3):
        executor.forward(is_train=train)
        if train:
            executor.backward([mx.nd.ones(o.shape) for o in executor.outputs])
    found = [*executor.outputs, *executor.aux_arrays]
    found += [g for g in executor.grad_arrays if g is not None]
    return [x.asnumpy() for x in found]


def regions_of(executor, train):
    return executor._run(executor._mode(train)).layout.regions


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_branches_side_by_side_give_the_same_bits(name, train, monkeypatch):
    side_by_side = bound(name, train)
    found = results(side_by_side, train)
    assert regions_of(side_by_side, train)
    monkeypatch.setattr(regions, "LEAST", 1 << 60)
    alone = bound(name, train)
    expected = results(alone, train)
    assert not regions_of(alone, train)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_each_task_can_be_looked_at():
    executor, seen = bound("inception"), []
    expected = results(executor, True)[0]
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    np.testing.assert_allclose(results(executor, True)[0], expected, 1e-3, 1e-5)
    assert any(name.startswith("concat") for name in seen)
    executor.set_monitor_callback(None)
    run = executor._runs[executor._mode(True)]
    assert len(run.segments("forward", apart=True)) == run.layout.forward
    names = [step.name for step in run.segments("forward")[0].program.steps]
    assert any(" | " in name for name in names)


def test_no_regions_without_passes_or_threads():
    with config.using(passes=False):
        assert not regions_of(bound("inception"), True)
    with config.using(backward_do_mirror=True):
        assert not regions_of(bound("inception"), True)
    threads.set_num_threads(1)
    assert not regions_of(bound("inception"), True)


def test_no_regions_where_gradients_share_an_array():
    """Both are added to it, in whichever order: side by side they would race."""
    net = two_towers(sym.Variable("data"))
    names = net.list_arguments()
    shapes, _, states = net.infer_shape(data=(16, 64))
    args = [mx.nd.ones(s) for s in shapes]
    grads = [mx.nd.zeros(s) for s in shapes]
    twice = [k for k, n in enumerate(names) if n.startswith("fullyconnected") and "weight" in n]
    grads[twice[1]] = grads[twice[0]]
    aux = [mx.nd.ones(s) for s in states]
    executor = net.bind(mx.cpu(), args, grads, "add", aux)
    assert not regions_of(executor, True)
