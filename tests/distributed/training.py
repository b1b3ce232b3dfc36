"""Training by several ranks gives the weights of one process on the joined batch.

Run by `test_ranks.py` in every rank: each trains on its share of every batch through a store that
joins them, and by itself on whole batches; both must agree.
"""

import sys

import numpy as np

import gnomon as mx
from gnomon.gluon import Trainer, nn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss

ROWS, WORDS = 24, 50  # rows of a whole batch divide by 2, 3 and 4


def batches(steps, shape, classes, seed=3):
    draw = np.random.default_rng(seed)
    for _ in range(steps):
        data = draw.standard_normal((ROWS, *shape), np.float32)
        yield data, draw.integers(0, classes, ROWS).astype("f4")


def sentences(steps, seed=4):
    draw = np.random.default_rng(seed)
    for _ in range(steps):
        words, label = draw.integers(0, WORDS, (ROWS, 6)), draw.integers(0, 3, ROWS)
        yield words.astype("f4"), label.astype("f4")


def lenet():
    net = mx.sym.Variable("data")
    for number, channels in enumerate((6, 8)):
        net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=channels, name=f"c{number}")
        net = mx.sym.Activation(net, act_type="tanh")
        net = mx.sym.Pooling(net, kernel=(2, 2), pool_type="avg")
    net = mx.sym.FullyConnected(mx.sym.flatten(net), num_hidden=560, name="f1")  # in pieces
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=10, name="f2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def module_weights(kvstore, steps, part, optimizer, settings):
    rows = ROWS // part[1]
    module = mx.mod.Module(lenet())
    module.bind([("data", (rows, 1, 14, 14))], [("softmax_label", (rows,))])
    mx.random.seed(5)
    module.init_params(mx.init.Xavier())
    module.init_optimizer(kvstore, optimizer, settings)
    for data, label in batches(steps, (1, 14, 14), 10):
        share = slice(part[0] * rows, (part[0] + 1) * rows)
        batch = mx.io.DataBatch([mx.nd.array(data[share])], [mx.nd.array(label[share])])
        module.forward_backward(batch)
        module.update()
    return {k: v.asnumpy() for k, v in module.get_params()[0].items()}


def trained_by_module(rank, ranks, kind, steps):
    for optimizer, settings in (
        ("sgd", (("learning_rate", 0.05), ("momentum", 0.5), ("wd", 1e-3))),
        ("adam", (("learning_rate", 1e-3),)),
    ):
        found = module_weights(kind, steps, (rank, ranks), optimizer, settings)
        expected = module_weights(None, steps, (0, 1), optimizer, settings)
        agree(found, expected)


def gluon_weights(kvstore, steps, part, sparse, on_store, whole):
    rows = ROWS // part[1]
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Embedding(WORDS, 8, sparse_grad=sparse), nn.Dense(3))
    mx.random.seed(6)
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((rows, 6)))
    trainer = Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0 if sparse else 0.5},
        kvstore=kvstore, update_on_kvstore=on_store,
    )  # fmt: skip
    loss = SoftmaxCrossEntropyLoss()
    for words, label in sentences(steps):
        share = slice(part[0] * rows, (part[0] + 1) * rows)
        with mx.autograd.record():
            value = loss(net(mx.nd.array(words[share])), mx.nd.array(label[share]))
        value.backward()
        trainer.step(whole)
    return {k: p.data().asnumpy() for k, p in net.collect_params().items()}


def trained_by_trainer(rank, ranks, kind, steps):
    for sparse in (False, True):
        for on_store in (None,) if "horovod" in kind else (True, False):
            found = gluon_weights(kind, steps, (rank, ranks), sparse, on_store, ROWS)
            expected = gluon_weights("local", steps, (0, 1), sparse, None, ROWS)
            agree(found, expected)


def compressed_weights(kvstore, steps, devices, parts, ranks):
    """After training on shares of each batch, one on each device, with gradients in two bits."""
    rows = ROWS // ranks
    net = nn.Dense(3, in_units=5)
    mx.random.seed(7)
    net.initialize(mx.init.Xavier(), ctx=devices)
    net.hybridize()
    trainer = Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0.5}, kvstore=kvstore,
        compression_params={"type": "2bit", "threshold": 0.3}, update_on_kvstore=True,
    )  # fmt: skip
    loss = SoftmaxCrossEntropyLoss()
    for data, label in batches(steps, (5,), 3):
        with mx.autograd.record():
            losses = []
            for device, part in zip(devices, parts, strict=True):
                share = slice(part * rows, (part + 1) * rows)
                x, y = mx.nd.array(data[share], ctx=device), mx.nd.array(label[share], ctx=device)
                losses.append(loss(net(x), y))
        mx.autograd.backward(losses)
        trainer.step(ROWS)
    return {k: p.data(devices[0]).asnumpy() for k, p in enumerate(net.collect_params().values())}


def trained_compressed(rank, ranks, kind, steps):
    """Ranks lose of their gradients what devices of one process lose."""
    found = compressed_weights(kind, steps, [mx.cpu()], [rank], ranks)
    devices = [mx.cpu(k) for k in range(ranks)]
    agree(found, compressed_weights("device", steps, devices, range(ranks), ranks))


def agree(found, expected):
    assert found.keys() == expected.keys()
    for key in found:
        np.testing.assert_allclose(found[key], expected[key], 1e-5, 1e-6, err_msg=key)


if __name__ == "__main__":
    kind, steps = sys.argv[1], int(sys.argv[2])
    store = mx.kv.create(kind)
    if kind != "horovod":
        trained_by_module(store.rank, store.num_workers, kind, steps)
        trained_compressed(store.rank, store.num_workers, kind, steps)
    trained_by_trainer(store.rank, store.num_workers, kind, steps)
    print("agreed", flush=True)
