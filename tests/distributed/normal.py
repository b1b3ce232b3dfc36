"""Ranks normalize a batch, whose parts they have, as one process does the whole of it."""

import sys

import numpy as np

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.gluon import nn
from gnomon.gluon.contrib.nn import SyncBatchNorm

STEPS = 3


def network(devices):
    """Branches with layers that normalize, over `devices`; one device takes BatchNorm."""
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        for k in range(3):
            norm = nn.BatchNorm(prefix=f"norm{k}_")
            if devices > 1:
                norm = SyncBatchNorm(num_devices=devices, prefix=f"norm{k}_")
            net.add(nn.Conv2D(4, 3, padding=1), norm, nn.Activation("tanh"))
        net.add(nn.Dense(2))
    return net


def trained(devices, contexts, batches, share, store, hybrid):
    """Outputs for the parts in `share` of each batch, and the parameters after some steps."""
    mx.random.seed(3)
    net = network(devices)
    net.initialize(mx.init.Xavier(), ctx=contexts)
    net(nd.zeros((2, 3, 5, 5), ctx=contexts[0]))
    for k, param in enumerate(net.collect_params().values()):
        if param.name.endswith("weight"):
            param.set_data(nd.array(np.random.RandomState(k).normal(0, 0.3, param.shape)))
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
    seen = []
    for batch in batches:
        parts = gluon.utils.split_and_load(nd.array(batch[share]), contexts)
        with autograd.record():
            outputs = [net(part) for part in parts]
            losses = [(y * y).sum() for y in outputs]
        autograd.backward(losses)
        trainer.step(len(batch))
        seen.append(np.concatenate([y.asnumpy() for y in outputs]))
    return seen, {p.name: p.data(contexts[0]).asnumpy() for p in net.collect_params().values()}


def main():
    """Compare; the ranks' parts are of different sizes."""
    rng = np.random.default_rng(0)
    scale = np.array([1, 2, 3]).reshape(1, 3, 1, 1)
    batches = [rng.standard_normal((12, 3, 5, 5)) * scale + 1 for _ in range(STEPS)]
    count = int(sys.argv[1])
    contexts = [mx.cpu(k) for k in range(count)]
    for hybrid in (False, True):
        store = mx.kv.create("dist_sync") if hybrid else "dist_sync"
        rank = mx.kv.create("dist_sync").rank
        share = slice(0, 4) if rank == 0 else slice(4, 12)
        seen, params = trained(2 * count, contexts, batches, share, store, hybrid)
        whole, wanted = trained(1, [mx.cpu()], batches, slice(None), None, False)
        for one, other in zip(seen, whole, strict=True):
            np.testing.assert_allclose(one, other[share], rtol=2e-3, atol=2e-4)
        for name, value in wanted.items():
            np.testing.assert_allclose(params[name], value, rtol=2e-3, atol=2e-4, err_msg=name)
        print("alike", rank, flush=True)


if __name__ == "__main__":
    main()
