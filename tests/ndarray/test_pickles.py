"""Pickles that MXNet 1.9.1 wrote."""

from __future__ import annotations

import base64
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from golden import pickled

import gnomon as mx
from gnomon.compatibility.absent import ELSEWHERE

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/pickles.json").read_text())
ARRAY = (
    b"\x80\x04\x95\x97\x00\x00\x00\x00\x00\x00\x00\x8c\x15mxnet.ndarray.ndarray\x94\x8c\x07NDArr"
    b"ay\x94\x93\x94N\x85\x94R\x94}\x94\x8c\x06handle\x94\x8c\x08builtins\x94\x8c\tbytearray\x94"
    b"\x93\x94C@\xc9\xfa\x93\xf9\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"
    b"\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    b"\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x94\x85\x94R\x94sb."
)
CONTEXT = (
    b"\x80\x04\x95Q\x00\x00\x00\x00\x00\x00\x00\x8c\rmxnet.context\x94\x8c\x07Context\x94\x93"
    b"\x94)\x81\x94}\x94(\x8c\rdevice_typeid\x94K\x01\x8c\tdevice_id\x94K\x00\x8c\x08_old_ctx"
    b"\x94Nub."
)


class Read(pickle.Unpickler):
    """Finds gnomon's classes by MXNet's names, as `gnomon.compat` has it for a whole process."""

    def find_class(self, module, name):
        top, _, path = module.partition(".")
        if top == "mxnet":
            module = f"gnomon.{ELSEWHERE.get(path, path)}"
        return super().find_class(module, name)


def read(data):
    return Read(io.BytesIO(data)).load()


def test_arrays():
    x = read(ARRAY)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(6).reshape(2, 3))
    assert x.dtype == np.float32
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * np.arange(6).reshape(2, 3))
    with pytest.raises(mx.base.MXNetError, match="magic number"):
        read(ARRAY.replace(b"\xc9\xfa\x93\xf9", b"\xc9\xfa\x93\xf0"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).asnumpy(), x.asnumpy())


def test_contexts():
    assert read(CONTEXT) == mx.cpu(0)


def test_symbols():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")

    class Written:
        def __reduce__(self):
            return mx.sym.Symbol, (None,), {"handle": net.tojson()}

    found = pickle.loads(pickle.dumps(Written()))
    assert found.list_arguments() == net.list_arguments()
    assert found.infer_shape(data=(2, 4)) == net.infer_shape(data=(2, 4))


@pytest.mark.parametrize("kind", [mx.optimizer.Adam, mx.optimizer.LARS])
def test_optimizers(kind):
    """A pickle of MXNet has the attributes that MXNet's has."""
    theirs = "_index_update_count", "_all_index_update_counts"
    held = {k: v for k, v in vars(kind()).items() if k in theirs or k[0] != "_"}
    del held["param_dict"]

    class Written:
        def __reduce__(self):
            return object.__new__, (kind,), held

    weights = []
    for made in (kind(), pickle.loads(pickle.dumps(Written()))):
        weight, update = mx.nd.ones(2), mx.optimizer.get_updater(made)
        update(0, mx.nd.ones(2), weight)
        weights.append(weight.asnumpy())
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("given", [(3,), (), (None, None), (np.ones(3),)])
def test_arrays_are_made_by_functions(given):
    with pytest.raises(TypeError, match=r"use nd\.array"):
        mx.nd.NDArray(*given)
    with pytest.raises(TypeError, match=r"use nd\.array"):
        mx.nd.sparse.CSRNDArray(*given)


@pytest.mark.parametrize("kind", GOLDEN["arrays"])
def test_sparse_arrays(kind):
    x = read(base64.b64decode(GOLDEN["arrays"][kind]))
    assert type(x) is type(mx.nd.sparse.zeros(kind, (1, 1)))
    np.testing.assert_array_equal(x.asnumpy(), GOLDEN["dense"])
    np.testing.assert_array_equal((x + x).asnumpy(), 2 * np.array(GOLDEN["dense"]))


@pytest.mark.parametrize("name", GOLDEN["metrics"])
def test_metrics(name):
    """They go on from where they stood, within the last updates and over all."""
    found = GOLDEN["metrics"][name]
    metric = read(base64.b64decode(found["pickle"]))
    metric = pickle.loads(pickle.dumps(metric))
    label, scores = np.array(GOLDEN["label"]), mx.nd.array(GOLDEN["scores"])
    if isinstance(metric, mx.metric.PearsonCorrelation):
        scores = scores[:, 1]
    metric.reset_local()
    metric.update([mx.nd.array(1 - label)], [scores * scores])
    lately, overall = found["after"]
    if name == "correlation of all":  # which MXNet's get_global does not give
        overall = lately
    np.testing.assert_allclose([metric.get()[1], metric.get_global()[1]], [lately, overall])


@pytest.mark.parametrize("name", GOLDEN["blocks"])
def test_blocks(name):
    found = GOLDEN["blocks"][name]
    block = read(base64.b64decode(found["pickle"]))
    x = mx.nd.array(GOLDEN["x"])
    for hybrid in (False, True):
        block.hybridize(hybrid)
        if name == "loss":
            output = block(x, x * 0)
        elif name == "cell":
            output = block(x, block.begin_state(2))[0]
        else:
            output = block(x if name in ("network", "symbol") else x.reshape((2, 1, 4)))
        np.testing.assert_allclose(output.asnumpy(), found["output"], rtol=1e-5, atol=1e-6)
    with block.name_scope():
        assert mx.gluon.nn.Dense(1).prefix.startswith(block.prefix)


@pytest.mark.parametrize("name", GOLDEN["others"])
def test_others(name):
    """Cells, transforms, data sets and loaders."""
    found = GOLDEN["others"][name]
    thing = read(base64.b64decode(found["pickle"]))
    for each in (thing, pickle.loads(pickle.dumps(pickled.made(mx)[name]))):
        given = pickled.used(mx, name, each)
        assert len(given) == len(found["output"])
        for row, expected in zip(given, found["output"], strict=True):
            np.testing.assert_allclose(row, expected, 1e-5, 1e-6)
    assert repr(thing)


def test_a_network_with_its_trainer():
    """Which goes on with the states of its optimizer."""
    net, trainer = read(base64.b64decode(GOLDEN["training"]["pickle"]))
    x = mx.nd.array(GOLDEN["x"])
    with mx.autograd.record():
        loss = (net(x) ** 2).sum()
    loss.backward()
    trainer.step(2)
    np.testing.assert_allclose(net(x).asnumpy(), GOLDEN["training"]["output"], rtol=1e-5)


def test_a_layer_without_shapes_and_its_training():
    layer = read(base64.b64decode(GOLDEN["deferred"]))
    trainer = mx.gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 1})
    with mx.autograd.record():
        loss = layer(mx.nd.ones((1, 2))).sum()
    loss.backward()
    trainer.step(1)
    assert layer.weight.lr_mult == 3
    np.testing.assert_array_equal(layer.weight.data().asnumpy(), np.full((2, 2), -2))
