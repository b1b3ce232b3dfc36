"""A batch whose parts lie on several contexts is normalized as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, engine, gluon, nd
from gnomon.base import GnomonError
from gnomon.gluon import nn
from gnomon.gluon.contrib.nn import SyncBatchNorm
from gnomon.ops.nn import sync_batch_norm

RNG = np.random.default_rng(0)
STEPS = 3


def network(devices):
    """Layers around two that normalize, over `devices` contexts."""
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for k in range(2):
            norm = nn.BatchNorm(momentum=0.8) if devices == 1 else None
            norm = norm or SyncBatchNorm(num_devices=devices, momentum=0.8, prefix=f"batchnorm{k}_")
            net.add(nn.Conv2D(4, 3, padding=1), norm, nn.Activation("tanh"))
        net.add(nn.Dense(2))
    return net


def trained(devices, batches, hybrid, start):
    """Outputs, gradients of inputs and parameters, of a few steps on so many contexts."""
    contexts = [mx.cpu(k) for k in range(devices)]
    net = network(devices)
    net.initialize(ctx=contexts)
    net(nd.zeros((2, 3, 5, 5), ctx=contexts[0]))
    for param in net.collect_params().values():
        param.set_data(start.setdefault(param.name, param.data(contexts[0]).copy()))
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    seen = []
    for batch in batches:
        parts = gluon.utils.split_and_load(nd.array(batch), contexts)
        for part in parts:
            part.attach_grad()
        with autograd.record():
            outputs = [net(part) for part in parts]
            losses = [(y * y).sum() for y in outputs]
        autograd.backward(losses)
        trainer.step(len(batch))
        seen += [np.concatenate([y.asnumpy() for y in outputs])]
        seen += [np.concatenate([part.grad.asnumpy() for part in parts])]
    seen += [p.data(ctx).asnumpy() for ctx in contexts[-1:] for p in net.collect_params().values()]
    return seen


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("devices", [2, 3])
def test_parts_are_normalized_as_the_whole(devices, hybrid):
    scale = np.array([1, 2, 3]).reshape(1, 3, 1, 1)
    batches = [RNG.standard_normal((6, 3, 5, 5)) * scale + 1 for _ in range(STEPS)]
    start = {}
    whole = trained(1, batches, False, start)
    parts = trained(devices, batches, hybrid, start)
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


def layer(dtype="float32", **how):
    """A layer on two contexts, and inputs with gradients."""
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = SyncBatchNorm(in_channels=3, num_devices=2, **how)
    net.initialize(ctx=contexts)
    net.cast(dtype)
    values = np.arange(48).reshape(4, 3, 4) % 7 / 7 + np.arange(3).reshape(1, 3, 1)
    parts = gluon.utils.split_and_load(nd.array(values, dtype=dtype), contexts)
    return net, parts


def test_numbers_of_the_real_library():
    rng, contexts = np.random.RandomState(0), [mx.cpu(0), mx.cpu(1)]
    x = rng.randn(8, 3, 4, 4).astype("f") * np.array([1, 2, 3]).reshape(1, 3, 1, 1) + 1
    net = SyncBatchNorm(in_channels=3, num_devices=2)
    net.initialize(ctx=contexts)
    parts = gluon.utils.split_and_load(nd.array(x), contexts)
    weights = gluon.utils.split_and_load(nd.array(rng.randn(8, 3, 4, 4)), contexts)
    for part in parts:
        part.attach_grad()
    with autograd.record():
        outputs = [net(part) for part in parts]
        losses = [(y * w).sum() for y, w in zip(outputs, weights, strict=True)]
    autograd.backward(losses)
    found = [float(y.abs().sum().asscalar()) for y in (*outputs, *(part.grad for part in parts))]
    np.testing.assert_allclose(found, [165.41599, 146.07585, 96.16731, 97.814835], rtol=1e-5)
    expected = [
        (net.gamma.list_grad(), [10.23834, 9.69184, -11.30498], [-6.82604, -0.04743, -13.32833]),
        (net.beta.list_grad(), [0.54114, -10.64962, -2.55537], [-11.87438, -12.50060, -4.23744]),
        (net.running_mean.list_data(), *[[0.108986, 0.092133, 0.059538]] * 2),
        (net.running_var.list_data(), *[[1.000366, 1.238709, 1.836275]] * 2),
    ]  # fmt: skip
    for arrays, *rows in expected:
        np.testing.assert_allclose([a.asnumpy() for a in arrays], rows, atol=2e-5)


def test_predictions_and_global_averages_need_nobody():
    for how, training in (({}, False), ({"use_global_stats": True}, True)):
        net, parts = layer(**how)
        with autograd.record(training):
            np.testing.assert_allclose(net(parts[1]).asnumpy(), parts[1].asnumpy(), rtol=1e-4)


def test_half_precision():
    (wide, x), (half, y) = layer(), layer("float16")
    with autograd.record():
        expected, found = [wide(part) for part in x], [half(part) for part in y]
    assert half.gamma.dtype == "float32" or half.gamma.dtype is np.float32
    for a, b in zip(expected, found, strict=True):
        assert b.dtype == np.float16
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=1e-2)


def test_a_symbol_over_two_contexts():
    data = mx.sym.var("data")
    net = mx.sym.contrib.SyncBatchNorm(data, fix_gamma=False, ndev=2, key="a", name="bn")
    assert '"op": "_contrib_SyncBatchNorm"' in net.tojson()
    module = mx.mod.Module(net, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))])
    module.init_params()
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    module.forward(mx.io.DataBatch([nd.array(x)]), is_train=True)
    expected = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3)
    found = module.get_outputs()[0].asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_who_does_not_come_is_told(monkeypatch):
    monkeypatch.setattr(sync_batch_norm, "PATIENCE", 0.2)
    net, parts = layer(prefix="alone_")
    with autograd.record():
        y = net(parts[0])
    with pytest.raises(GnomonError, match=r"'alone_': 1 of 2 devices \(ndev\) came within"):
        y.asnumpy()


@pytest.mark.parametrize("hybrid", [False, True])
def test_more_devices_than_contexts_are_refused_at_once(hybrid):
    net = SyncBatchNorm(in_channels=3, num_devices=3, prefix="wide_")
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    if hybrid:
        net.hybridize()
    x = nd.ones((2, 3))
    assert net(x).shape == x.shape  # for a prediction there is nothing to wait for
    words = r"SyncBatchNorm 'wide': argument 'num_devices \(ndev\)': expected at most 2.* got 3"
    with autograd.record(), pytest.raises(GnomonError, match=words):
        net(x).wait_to_read()
    net.collect_params().reset_ctx([mx.cpu(k) for k in range(3)])
    parts = [x.as_in_context(mx.cpu(k)) * k for k in range(3)]
    with autograd.record():
        outputs = [net(part) for part in parts]
    assert abs(sum(y.as_in_context(mx.cpu(0)) for y in outputs)).max().asscalar() < 1e-5


def test_the_naive_engine_refuses():
    before = engine.get()
    engine.use(engine.NaiveEngine())
    try:
        net, parts = layer()
        with autograd.record(), pytest.raises(GnomonError, match="by the naive engine"):
            net(parts[0]).asnumpy()
    finally:
        engine.use(before)
