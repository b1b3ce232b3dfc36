"""Training by several ranks gives the weights of one process on the joined batch.

Run by `test_ranks.py` in every rank: each trains on its share of every batch through a store that
joins them, and by itself on whole batches; both must agree. Where gradients are compressed, each
rank loses of its own what a device of one process loses: there the other side has as many devices.

`Module` names keys by strings and `Trainer` by ints. Both models have a key that is large enough to
lie in pieces on all ranks.
"""

import itertools
import sys

import numpy as np

import gnomon as mx
from gnomon.gluon import Trainer, nn
from gnomon.gluon.loss import SoftmaxCrossEntropyLoss

ROWS, WORDS = 24, 400  # rows of a whole batch divide by 2, 3 and 4
BITS = {"type": "2bit", "threshold": 0.3}


class Pictures:
    """LeNet, and pictures for it."""

    shape, classes = (1, 14, 14), 10

    @classmethod
    def batches(cls, steps, seed=3):
        draw = np.random.default_rng(seed)
        for _ in range(steps):
            data = draw.standard_normal((ROWS, *cls.shape), np.float32)
            yield data, draw.integers(0, cls.classes, ROWS).astype("f4")

    @staticmethod
    def symbol(sparse):
        net = mx.sym.Variable("data")
        for number, channels in enumerate((6, 8)):
            net = mx.sym.Convolution(net, kernel=(3, 3), num_filter=channels, name=f"c{number}")
            net = mx.sym.Activation(net, act_type="tanh")
            net = mx.sym.Pooling(net, kernel=(2, 2), pool_type="avg")
        net = mx.sym.FullyConnected(mx.sym.flatten(net), num_hidden=560, name="f1")  # in pieces
        net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=10)
        return mx.sym.SoftmaxOutput(net, name="softmax")

    @staticmethod
    def block(sparse):
        net = nn.HybridSequential(prefix="net_")
        with net.name_scope():
            for channels in (6, 8):
                net.add(nn.Conv2D(channels, 3, activation="tanh"), nn.AvgPool2D())
            net.add(nn.Dense(560, activation="tanh"), nn.Dense(10))
        return net


class Sentences:
    """An embedding with a layer behind it, and sentences for it."""

    shape, classes = (6,), 3

    @classmethod
    def batches(cls, steps, seed=4):
        draw = np.random.default_rng(seed)
        for _ in range(steps):
            words = draw.integers(0, WORDS, (ROWS, *cls.shape)).astype("f4")
            yield words, draw.integers(0, cls.classes, ROWS).astype("f4")

    @staticmethod
    def symbol(sparse):
        words = mx.sym.Variable("data")
        net = mx.sym.Embedding(words, input_dim=WORDS, output_dim=48, sparse_grad=sparse, name="e")
        return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3), name="softmax")

    @staticmethod
    def block(sparse):
        net = nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(nn.Embedding(WORDS, 48, sparse_grad=sparse), nn.Dense(3))
        return net


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.05, "momentum": 0.5, "wd": 1e-3},
    "plain": {"learning_rate": 0.2},  # of row-sparse gradients, too
    "adam": {"learning_rate": 1e-3},
}


def share(arrays, parts, ranks):
    """The rows of each part, of `ranks` parts of a batch."""
    rows = ROWS // ranks
    return [[a[p * rows : (p + 1) * rows] for a in arrays] for p in parts]


def by_module(model, sparse, optimizer, store, steps, parts, ranks, bits):
    """The weights after training a `Module` on these parts of each batch, on a device each."""
    rows = ROWS // ranks * len(parts)
    devices = [mx.cpu(k) for k in range(len(parts))]
    module = mx.mod.Module(
        model.symbol(sparse), context=devices, compression_params=BITS if bits else None
    )
    module.bind([("data", (rows, *model.shape))], [("softmax_label", (rows,))])
    mx.random.seed(5)
    module.init_params(mx.init.Xavier())
    settings = OPTIMIZERS[optimizer] | {"rescale_grad": 1 / ROWS}
    module.init_optimizer(store, optimizer.replace("plain", "sgd"), tuple(settings.items()))
    for arrays in model.batches(steps):
        mine = [np.concatenate(each) for each in zip(*share(arrays, parts, ranks), strict=True)]
        module.forward_backward(mx.io.DataBatch(*([mx.nd.array(a)] for a in mine)))
        module.update()
    return [v.asnumpy() for _, v in sorted(module.get_params()[0].items())]


def by_trainer(model, sparse, optimizer, store, steps, parts, ranks, bits, on_store=None):
    """The same by a block and a `Trainer`."""
    devices = [mx.cpu(k) for k in range(len(parts))]
    net, rows = model.block(sparse), ROWS // ranks
    mx.random.seed(6)
    net.initialize(mx.init.Xavier(), ctx=devices)
    for device in devices:
        net(mx.nd.zeros((rows, *model.shape), ctx=device))
    net.hybridize()
    trainer = Trainer(
        net.collect_params(), optimizer.replace("plain", "sgd"), dict(OPTIMIZERS[optimizer]),
        kvstore=store, update_on_kvstore=on_store, compression_params=BITS if bits else None,
    )  # fmt: skip
    loss = SoftmaxCrossEntropyLoss()
    for arrays in model.batches(steps):
        with mx.autograd.record():
            losses = []
            for device, part in zip(devices, share(arrays, parts, ranks), strict=True):
                data, label = (mx.nd.array(a, ctx=device) for a in part)
                losses.append(loss(net(data), label))
        mx.autograd.backward(losses)
        trainer.step(ROWS)
    return [p.data(devices[0]).asnumpy() for p in net.collect_params().values()]


#: of models: whether gradients are row-sparse, the optimizer, whether gradients are compressed
CASES = [
    (Pictures, False, "sgd", False),
    (Pictures, False, "adam", False),
    (Pictures, False, "sgd", True),
    (Sentences, False, "sgd", False),
    (Sentences, True, "plain", False),
    (Sentences, False, "plain", True),
]


def trained(kind, rank, ranks, steps):
    """Train all that a store of this kind can in both ways; all must agree."""
    for case, train in itertools.product(CASES, (by_module, by_trainer)):
        bits = case[-1]
        if kind == "horovod" and (bits or train is by_module):
            continue
        ways = [{}]
        if train is by_trainer and kind != "horovod" and not bits:
            ways = [{"on_store": True}, {"on_store": False}]
        *what, _ = case
        for way in ways:
            found = train(*what, kind, steps, [rank], ranks, bits, **way)
            parts, of = (range(ranks), ranks) if bits else ([0], 1)
            agree(case, train, found, train(*what, mx.kv.create("device"), steps, parts, of, bits))


def agree(case, train, found, expected):
    assert len(found) == len(expected)
    for number, (mine, single) in enumerate(zip(found, expected, strict=True)):
        where = f"{train.__name__} of {case}: parameter {number}"
        np.testing.assert_allclose(mine, single, 1e-5, 1e-6, err_msg=where)


if __name__ == "__main__":
    store = mx.kv.create(sys.argv[1])
    trained(sys.argv[1], store.rank, store.num_workers, int(sys.argv[2]))
    print("agreed", flush=True)
