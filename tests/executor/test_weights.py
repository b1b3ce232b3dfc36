"""Weights that prediction keeps in a library's layout: never older than the parameters."""

import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, gluon
from gnomon.runtime.libraries import dnn
from gnomon.test_utils import default_context  # noqa: F401  the package is complete

pytestmark = pytest.mark.skipif(not dnn.available(), reason=dnn.why_not())

SHAPES = ((1, 16, 9, 9), (3, 16, 7, 8))


class Net(gluon.HybridBlock):
    """Convolutions of every kind: folded with a normalization, plain, of groups, turned."""

    def __init__(self, **how):
        super().__init__(**how)
        with self.name_scope():
            self.a = gluon.nn.Conv2D(16, 3, padding=1, use_bias=False, in_channels=16)
            self.bn = gluon.nn.BatchNorm(in_channels=16)
            self.b = gluon.nn.Conv2D(32, 3, in_channels=16, activation="relu")
            self.c = gluon.nn.Conv2D(32, 3, in_channels=32, groups=2, use_bias=False)
            self.d = gluon.nn.Conv2DTranspose(16, 3, in_channels=32)

    def hybrid_forward(self, F, x):
        return self.d(self.c(self.b(self.bn(self.a(x)))))


def made(**how):
    net = Net(**how)
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    return net


def twin(net):
    """The same network on the same parameters, whose operators run one by one."""
    return Net(prefix=net.prefix, params=net.collect_params())


def check(net, plain, rng, shape=None):
    x = mx.nd.array(rng.standard_normal(shape or SHAPES[rng.integers(2)]).astype("float32"))
    np.testing.assert_allclose(net(x).asnumpy(), plain(x).asnumpy(), 1e-4, 1e-4)


def runs_of(net):
    """The programs of a hybridized block."""
    for compiled in vars(net)["_compiled"].values() if False else ():
        yield compiled


def weight(net, rng):
    return (net.a, net.b, net.c, net.d)[rng.integers(4)].weight


def values(w, rng):
    return mx.nd.array(rng.standard_normal(w.shape).astype("float32") * 0.2)


def write_set_data(net, rng, folder):
    w = weight(net, rng)
    w.set_data(values(w, rng))


def write_elements(net, rng, folder):
    w = weight(net, rng)
    w.data()[:] = values(w, rng)


def write_in_place(net, rng, folder):
    w = weight(net, rng).data()
    w += values(w, rng)


def write_out(net, rng, folder):
    w = weight(net, rng)
    mx.nd.tanh(values(w, rng), out=w.data())


def write_slice(net, rng, folder):
    weight(net, rng).data()[1:3] = float(rng.random())


def write_view(net, rng, folder):
    weight(net, rng).data().reshape((-1,))[5:70] -= 0.5


def write_update(net, rng, folder):
    w = weight(net, rng)
    mx.nd.sgd_update(w.data(), values(w, rng), lr=0.5, out=w.data())


def write_copy(net, rng, folder):
    w = weight(net, rng)
    values(w, rng).copyto(w.data())


def write_added(net, rng, folder):
    """A gradient that is added to what the parameter holds."""
    w = weight(net, rng).data()
    x = mx.sym.Variable("x")
    ones = mx.nd.ones(w.shape)
    executor = (x * 0.25).bind(mx.cpu(), {"x": ones}, {"x": w}, grad_req="add")
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones(w.shape))


def write_statistics(net, rng, folder):
    net.bn.running_var.set_data(mx.nd.array(rng.random(16) + 0.5))


def write_step(net, rng, folder):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    with autograd.record():
        loss = net(mx.nd.array(rng.standard_normal(SHAPES[0]))).square().mean()
    loss.backward()
    trainer.step(1)


def write_load(net, rng, folder):
    other = made(prefix=net.prefix)
    name = str(folder / "parameters")
    other.save_parameters(name)
    net.load_parameters(name)


def write_again(net, rng, folder):
    net.initialize(mx.init.Normal(0.2), force_reinit=True)


def write_cast(net, rng, folder):
    net.cast("float64")
    net.cast("float32")


def write_outside(net, rng, folder):
    """Memory that others may write, from now on at any time."""
    w = weight(net, rng).data()
    other = mx.nd.from_dlpack(w.to_dlpack_for_write())
    other[:] = values(w, rng)
    other.wait_to_read()


WRITES = {k: v for k, v in globals().items() if k.startswith("write_")}


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_seen(name, tmp_path):
    rng, net = np.random.default_rng(3), made()
    plain = twin(net)
    for _ in range(2):
        for shape in SHAPES:
            check(net, plain, rng, shape)
        WRITES[name](net, rng, tmp_path)
        for shape in SHAPES:
            check(net, plain, rng, shape)


@pytest.mark.parametrize("seed", range(3))
def test_random_writes_between_predictions(seed, tmp_path):
    rng, net = np.random.default_rng(seed), made()
    plain, other = twin(net), twin(net)
    other.hybridize(static_alloc=True)
    writes = list(WRITES.values())
    for _ in range(20):
        for _ in range(rng.integers(3)):
            writes[rng.integers(len(writes))](net, rng, tmp_path)
        check((net, other)[rng.integers(2)], plain, rng)
