"""Networks train on a GPU to the numbers that they have on the processor."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.gluon import nn

G, CPU = mx.gpu(0), mx.cpu()


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(10))
    return net, (8, 12)


def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(6, 3))
    net.add(nn.AvgPool2D(2, 2), nn.Flatten(), nn.Dense(16, activation="relu"), nn.Dense(10))
    return net, (4, 1, 14, 14)


def trained(make, contexts, optimizer, hybrid=False):
    """Losses and parameters after a few steps."""
    mx.random.seed(3)
    np.random.seed(3)
    net, shape = make()
    net.initialize(mx.init.Xavier(), ctx=contexts)
    for ctx in contexts:
        net(nd.zeros(shape, ctx=ctx))
    if hybrid:
        net.hybridize()
    mx.random.seed(4)  # dropout's numbers are those of the device
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    numbers, losses = np.random.RandomState(0), []
    for _ in range(3):
        data, label = numbers.randn(*shape), numbers.randint(0, 10, shape[0])
        parts = zip(*(gluon.utils.split_and_load(x, contexts) for x in (data, label)), strict=True)
        with autograd.record():
            every = [loss(net(x), y) for x, y in parts]
        autograd.backward(every)
        trainer.step(shape[0])
        losses.append(np.concatenate([x.asnumpy() for x in every]))
    params = net.collect_params().values()
    return losses, [p.data(ctx).asnumpy() for p in params for ctx in contexts]


def close(found, want):
    for ours, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-5)


@pytest.mark.parametrize(("make", "optimizer"), [(mlp, "sgd"), (lenet, "adam")])
def test_gluon(make, optimizer):
    for found, want in zip(
        trained(make, [G], optimizer), trained(make, [CPU], optimizer), strict=True
    ):
        close(found, want)


def test_hybridized_blocks():
    found, want = trained(mlp, [G], "sgd", hybrid=True), trained(mlp, [G], "sgd")
    for ours, theirs in zip(found, want, strict=True):
        close(ours, theirs)


def test_two_gpus():
    contexts = [mx.gpu(0), mx.gpu(1)], [mx.cpu(0), mx.cpu(1)]
    found, want = (trained(mlp, each, "sgd", True) for each in contexts)
    for ours, theirs in zip(found, want, strict=True):
        close(ours, theirs)


def fitted(context, kvstore, optimizer):
    """The parameters of a Module after two epochs, and what it predicts."""
    mx.random.seed(1)
    np.random.seed(1)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=16, name="first")
    net = mx.sym.BatchNorm(mx.sym.Activation(net, act_type="relu"), name="norm")
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=4), name="softmax")
    numbers = np.random.RandomState(0).randn(16, 6).astype(np.float32)
    labels = (numbers.sum(1) > 0) + 2.0 * (numbers[:, 0] > 0)
    batches = mx.io.NDArrayIter(numbers, labels, batch_size=8, label_name="softmax_label")
    module = mx.mod.Module(net, context=context)
    module.fit(
        batches, num_epoch=2, kvstore=kvstore, optimizer=optimizer, initializer=mx.init.Xavier()
    )
    tables = module.get_params()
    assert all(x.context == CPU for table in tables for x in table.values())
    params = [x.asnumpy() for table in tables for _, x in sorted(table.items())]
    return [*params, module.predict(batches).asnumpy()]


@pytest.mark.parametrize(
    ("contexts", "kvstore", "optimizer"),
    [((0,), None, "sgd"), ((0, 1), "local", "adam")],
)
def test_module(contexts, kvstore, optimizer):
    found = fitted([mx.gpu(k) for k in contexts], kvstore, optimizer)
    close(found, fitted([mx.cpu(k) for k in contexts], kvstore, optimizer))


def test_a_bound_symbol():
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.broadcast_mul(mx.sym.tanh(x), w)
    found = []
    for ctx in (G, CPU):
        bound = net.simple_bind(ctx, x=(3, 4), w=(1, 4), grad_req={"x": "write", "w": "add"})
        assert all(a.context == ctx for a in (*bound.arg_arrays, *bound.grad_arrays))
        given = np.arange(12).reshape(3, 4) / 10
        for _ in range(2):
            bound.forward(is_train=True, x=nd.array(given), w=nd.array(given[1:2]))
            bound.backward([nd.ones((3, 4), ctx=ctx)])
        found.append([a.asnumpy() for a in (*bound.outputs, *bound.grad_arrays)])
        assert bound.outputs[0].context == ctx
    close(*found)
    with pytest.raises(mx.MXNetError, match=r"args\[w\].*expected an array on gpu\(0\)"):
        net.bind(G, {"x": nd.ones((3, 4), ctx=G), "w": nd.ones((1, 4))})


def test_nccl_is_refused():
    with pytest.raises(mx.MXNetError, match="nccl"):
        mx.kv.create("nccl")
