"""Executors on arrays in sparse storage: values, gradients, storages, errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd, sym
from gnomon.base import GnomonError, ParamError, ShapeError
from tests import simulated

device = simulated.device  # each test runs on a processor and on a GPU

pytestmark = pytest.mark.usefixtures("device")

MATRIX = nd.sparse.csr_matrix(([1.0, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4))
DENSE = MATRIX.asnumpy()


def product(stype=None):
    return sym.dot(sym.var("x", stype="csr"), sym.var("w", stype=stype))


@pytest.mark.parametrize("stype", [None, "row_sparse"])
def test_a_product(stype):
    e = product(stype).simple_bind(mx.current_context(), {"w": "write"}, x=(3, 4), w=(4, 2))
    assert e.arg_dict["w"].stype == (stype or "default")
    w = np.arange(8.0).reshape(4, 2)
    (out,) = e.forward(True, x=MATRIX, w=nd.array(w))
    np.testing.assert_allclose(out.asnumpy(), DENSE @ w)
    e.backward(nd.ones((3, 2)))
    grad = e.grad_dict["w"]
    assert grad.stype == "row_sparse" and grad.indices.asnumpy().tolist() == [0, 1, 2]
    np.testing.assert_allclose(grad.asnumpy(), DENSE.T @ np.ones((3, 2)))
    assert e.grad_dict["x"] is None and e.outputs[0] is out


def test_arrays_decide_when_bound():
    """Whatever the variables say, and in whatever storage gradients are wanted."""
    symbol = sym.dot(sym.var("x"), sym.var("w"))
    for grad in (nd.zeros((4, 2)), nd.sparse.zeros("row_sparse", (4, 2))):
        matrix = MATRIX.as_in_context(grad.context)
        e = symbol.bind(grad.context, {"x": matrix, "w": nd.ones((4, 2))}, {"w": grad})
        e.forward(is_train=True)
        e.backward(nd.ones((3, 2)))
        np.testing.assert_allclose(grad.asnumpy(), DENSE.T @ np.ones((3, 2)))
    assert symbol.eval(matrix.context, x=matrix, w=nd.ones((4, 2)))[0].shape == (3, 2)


def test_requests_and_heads():
    e = product().simple_bind(mx.current_context(), "add", x=(3, 4), w=(4, 2))
    e.forward(True, x=MATRIX)
    with pytest.raises(GnomonError, match="no gradient given"):
        e.backward()
    with pytest.raises(ShapeError, match=r"out_grads\[dot"):
        e.backward(nd.ones((3, 3)))
    for _ in range(2):
        e.backward(nd.ones((3, 2)))
    np.testing.assert_allclose(e.grad_dict["w"].asnumpy(), 2 * DENSE.T @ np.ones((3, 2)))


def test_backward_after_prediction_computes_again():
    e = product().simple_bind(mx.current_context(), x=(3, 4), w=(4, 2))
    e.forward(x=MATRIX)
    e.backward(nd.ones((3, 2)))
    np.testing.assert_allclose(e.grad_dict["w"].asnumpy(), DENSE.T @ np.ones((3, 2)))


def test_what_no_gradient_reaches_is_zero():
    symbol = sym.Group([product(), sym.BlockGrad(sym.var("y"))])
    e = symbol.simple_bind(mx.current_context(), x=(3, 4), w=(4, 2), y=(2,))
    e.grad_dict["y"][:] = 7
    e.forward(True, x=MATRIX, y=nd.ones((2,)))
    e.backward([nd.ones((3, 2)), None])
    assert e.grad_dict["y"].asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize(
    "look_up", [partial(sym.Embedding, sparse_grad=True), sym.contrib.SparseEmbedding]
)
def test_a_look_up_keeps_the_rows_that_were_read(look_up):
    symbol = look_up(sym.var("d"), sym.var("w"), input_dim=1000, output_dim=3)
    e = symbol.simple_bind(mx.current_context(), d=(4,))
    e.forward(True, d=nd.array([7, 3, 7, 999]), w=nd.ones((1000, 3)))
    e.backward(nd.ones((4, 3)))
    grad = e.grad_dict["w"]
    assert grad.indices.asnumpy().tolist() == [3, 7, 999]
    assert grad.data.asnumpy()[:, 0].tolist() == [1, 2, 1]
    sgd = mx.optimizer.SGD(learning_rate=1, wd=0.5)
    sgd.update(0, e.arg_dict["w"], grad, None)
    assert e.arg_dict["w"].asnumpy()[[0, 3, 7], 0].tolist() == [1, -0.5, -1.5]


def test_a_sparse_weight_is_looked_up_without_its_other_rows():
    many = 1 << 36
    weight = sym.var("w", stype="row_sparse")
    look_up = sym.Embedding(sym.var("d"), weight, many, 2, sparse_grad=True)
    e = look_up.simple_bind(mx.current_context(), d=(3,))
    kept = np.array([[1, 2], [3, 4]], np.float32)
    nd.sparse.row_sparse_array((kept, [1, many - 1]), shape=(many, 2)).copyto(e.arg_dict["w"])
    out = e.forward(True, d=nd.array([5, 1, many - 1], dtype="int64"))[0]
    assert out.asnumpy().tolist() == [[0, 0], [1, 2], [3, 4]]
    e.backward(nd.ones((3, 2)))
    assert e.grad_dict["w"].indices.asnumpy().tolist() == [1, 5, many - 1]


def test_other_operators_take_all_elements():
    """Values and gradients are those of the dense network, states too."""
    x = sym.var("x")
    net = sym.FullyConnected(x, num_hidden=5, name="fc")
    net = sym.BatchNorm(net, name="bn", fix_gamma=False)
    net = sym.SoftmaxOutput(sym.Activation(net, act_type="tanh"), name="softmax")
    rng = np.random.default_rng(0)
    found = []
    for stype in ("default", "csr"):
        e = net.simple_bind(mx.current_context(), stype_dict={"x": stype}, x=(3, 4))
        rng = np.random.default_rng(0)
        for array in e.arg_dict.values():
            array[:] = nd.array(rng.normal(size=array.shape))
        e.arg_dict["x"][:] = MATRIX
        e.arg_dict["softmax_label"][:] = nd.array([1, 0, 4])
        e.forward(is_train=True)
        e.backward()
        found.append([a.asnumpy() for a in (*e.outputs, *e.grad_arrays, *e.aux_arrays)])
        assert e.arg_dict["x"].stype == stype
    for dense, sparse in zip(*found, strict=True):
        np.testing.assert_allclose(dense, sparse, rtol=1e-5, atol=1e-6)


def test_states_may_be_computed():
    x = sym.cast_storage(sym.var("x", stype="csr"), stype="default")
    net = sym.BatchNorm(x, moving_mean=sym.var("m") * 2.0, name="bn", use_global_stats=True)
    e = net.simple_bind(mx.current_context(), x=(3, 4))
    e.arg_dict["x"][:], e.arg_dict["m"][:] = MATRIX, nd.ones((4,))
    e.aux_dict["bn_moving_var"][:], e.arg_dict["bn_gamma"][:] = nd.ones((4,)), nd.ones((4,))
    np.testing.assert_allclose(e.forward()[0].asnumpy(), MATRIX.asnumpy() - 2, rtol=2e-3)


def test_sparse_outputs():
    x, given = sym.var("x", stype="csr"), MATRIX.as_in_context(mx.current_context())
    outputs = sym.Group([x * 2, x, sym.cast_storage(x, stype="default")])
    e = outputs.bind(mx.current_context(), {"x": given})
    e.forward()
    assert [o.stype for o in e.outputs] == ["csr", "csr", "default"]
    np.testing.assert_allclose(e.outputs[0].asnumpy(), 2 * DENSE)
    assert e.outputs[1] is not given


def test_other_shapes():
    e = sym.FullyConnected(sym.var("x", stype="csr"), num_hidden=2, name="fc").simple_bind(
        mx.current_context(), x=(3, 4)
    )
    e.arg_dict["fc_weight"][:] = 1
    other = e.reshape(x=(1, 4))
    assert other.arg_dict["fc_weight"] is e.arg_dict["fc_weight"]
    (out,) = other.forward(x=MATRIX[:1])
    assert out.asnumpy().tolist() == [[3, 3]]


def test_a_monitor_is_told():
    e = (product() + 1).simple_bind(mx.current_context(), "null", x=(3, 4), w=(4, 2))
    told, wanted = [], ["x", "lhs", "w", "rhs", "output", "data", "output"]
    e.set_monitor_callback(lambda name, array: told.append(name), True)
    e.forward(x=MATRIX)
    assert [name.split("_")[-1] for name in told] == wanted


def test_what_there_is_none_of():
    e = product().simple_bind(mx.current_context(), x=(3, 4), w=(4, 2))
    with pytest.raises(GnomonError, match="memory_plan: arrays are sparse or"):
        e.memory_plan()
    assert "dot(x, w)" in e.debug_str()
    with pytest.raises(ParamError, match=r"stype_dict\[x\]"):
        product().simple_bind(mx.current_context(), stype_dict={"x": "rows"}, x=(3, 4), w=(4, 2))


class Batches(mx.io.DataIter):
    """Batches of a `csr` matrix, as a reader of sparse files gives them."""

    def __init__(self, values, labels):
        super().__init__(8)
        self.values, self.labels, self.at = values, labels, 0
        self.provide_data = [mx.io.DataDesc("data", (8, values.shape[1]))]
        self.provide_label = [mx.io.DataDesc("softmax_label", (8,))]

    def reset(self):
        self.at = 0

    def next(self):
        if self.at >= len(self.values):
            raise StopIteration
        part = slice(self.at, self.at + 8)
        self.at += 8
        data = [nd.array(self.values[part]).tostype("csr")]
        return mx.io.DataBatch(data, [nd.array(self.labels[part])], pad=0)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_module_learns_from_sparse_batches(stype, optimizer, count):
    """Lazily updated weights equal those of the dense network where every row is in each batch."""
    here = mx.current_context()
    contexts = [mx.Context(here.device_type, k) for k in range(count)]
    rng = np.random.default_rng(1)
    values = (rng.random((32, 6)) * (rng.random((32, 6)) < 0.6)).astype(np.float32)
    values[::8] = 1  # every column of every batch has a value
    labels = (values @ rng.normal(size=6) > 0).astype(np.float32)
    learnt = []
    for data_stype, weight_stype in (("csr", stype), ("default", "default")):
        x = sym.var("data", stype=data_stype)
        w = sym.var("lin_weight", stype=weight_stype, shape=(6, 2))
        net = sym.broadcast_add(sym.dot(x, w), sym.var("lin_bias", shape=(2,)))
        module = mx.mod.Module(sym.SoftmaxOutput(net, name="softmax"), context=contexts)
        batches = Batches(values, labels)
        module.fit(
            batches,
            num_epoch=2,
            optimizer=optimizer,
            initializer=mx.init.Zero(),
            optimizer_params={"learning_rate": 0.5},
        )
        params = module.get_params()[0]
        assert params["lin_weight"].stype == weight_stype
        learnt.append(params["lin_weight"].asnumpy())
        assert module.predict(Batches(values, labels)).shape == (32, 2)
    if count == 1:
        np.testing.assert_allclose(learnt[0], learnt[1], rtol=1e-4, atol=1e-5)
    assert abs(learnt[0]).max() > 0.01
