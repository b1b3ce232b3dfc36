"""Sparse arrays on GPUs: moved, refused, updated, trained as on the processor.

`tests/ndarray/test_sparse.py` and `tests/executor/test_sparse.py` run on each device.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon.base import DeviceError
from gnomon.expr.ext.take import take_grad
from gnomon.kvstore.rows import of_rows, to_rows
from gnomon.plan.statement import PUT, Store
from gnomon.runtime.statements import transfer
from tests.gpu.moved import moved, run
from tests.plan.test_expressions import over

G, H, CPU = mx.gpu(0), mx.gpu(1), mx.cpu()
A = np.array([[0, 1, 0], [0, 0, 0], [2, 0, 3], [0, 0, 4]], np.float32)
SPARSE = ["csr", "row_sparse"]


def on(stype, ctx=G, dtype="float32"):
    return nd.array(A, ctx=ctx, dtype=dtype).tostype(stype)


def same(array, values, stype, ctx):
    assert (array.stype, array.context) == (stype, ctx)
    np.testing.assert_array_equal(array.asnumpy(), values)


@pytest.mark.parametrize("stype", SPARSE)
@pytest.mark.parametrize("there", [G, H, CPU])
@pytest.mark.parametrize("here", [G, H, CPU])
def test_moved_between_devices_and_storages(stype, here, there):
    x, dense = on(stype, here), nd.array(A, ctx=here)
    for found in (x.copyto(there), x.as_in_context(there), nd.array(x, ctx=there)):
        same(found, A, stype, there)
        assert found.indices.context == found.data.context == there
    for source in (x, dense):
        for kind in (stype, "default"):
            dest = nd.zeros(A.shape, there, stype=kind)
            source.copyto(dest)
            same(dest, A, kind, there)
            dest = nd.zeros(A.shape, there, stype=kind)
            dest[:] = source
            same(dest, A, kind, there)


def test_made_there():
    rows, two = nd.ones((1, 2)), np.array([[1, 0], [0, 2]])
    for ctx in (G, H):
        same(nd.sparse.csr_matrix(([1, 2], [0, 1], [0, 1, 2]), ctx=ctx), two, "csr", ctx)
        same(nd.sparse.csr_matrix(([1, 2], ([0, 1], [0, 1])), ctx=ctx), two, "csr", ctx)
        same(nd.sparse.row_sparse_array(two, ctx=ctx), two, "row_sparse", ctx)
        placed = nd.sparse.row_sparse_array((rows, nd.array([1], ctx=G)), shape=(2, 2), ctx=ctx)
        same(placed, [[0, 0], [1, 1]], "row_sparse", ctx)
        for stype in SPARSE:
            same(nd.sparse.empty(stype, (2, 2), ctx=ctx), np.zeros((2, 2)), stype, ctx)


@pytest.mark.parametrize("stype", SPARSE)
def test_kept_in_files_and_pickles(stype, tmp_path):
    nd.save(str(tmp_path / "x"), {"g": on(stype), "h": on(stype, H), "c": on(stype, CPU)})
    loaded = nd.load(str(tmp_path / "x"))
    for name, ctx in zip("ghc", (G, H, CPU), strict=True):
        same(loaded[name], A, stype, ctx)
    same(pickle.loads(pickle.dumps(on(stype, H))), A, stype, H)


MIXED = {
    r"dot .*'lhs' is on gpu\(0\), 'rhs' is on cpu\(0\)": lambda: nd.dot(on("csr"), nd.ones((3, 2))),
    r"dot .*'lhs' is on cpu\(0\), 'rhs' is on gpu\(0\)": lambda: nd.dot(
        on("csr", CPU), nd.ones((3, 2), ctx=G)
    ),
    r"elemwise_add .*gpu\(0\), 'rhs' is on gpu\(1\)": lambda: on("csr") + on("csr", H),
    r"broadcast_mul .*cpu\(0\), 'rhs' is on gpu\(0\)": lambda: nd.array(A) * on("row_sparse"),
    r"_sparse_retain .*gpu\(0\), 'indices' is on cpu\(0\)": lambda: nd.sparse.retain(
        on("row_sparse"), nd.array([0])
    ),
    r"elemwise_add .*gpu\(0\), 'out' is on cpu\(0\)": lambda: nd.elemwise_add(
        on("csr"), on("csr"), out=on("csr", CPU)
    ),
    r"sgd_update .*cpu\(0\), 'grad' is on gpu\(0\)": lambda: nd.sgd_update(
        nd.ones(A.shape), on("row_sparse"), lr=1.0
    ),
    r"'grad': expected an array on gpu\(0\)": lambda: mx.optimizer.SGD().update(
        0, nd.ones(A.shape, ctx=G), on("row_sparse", CPU), None
    ),
}


@pytest.mark.parametrize("told", MIXED)
def test_operands_on_several_devices(told):
    with pytest.raises(DeviceError, match=told):
        MIXED[told]()


OPTIMIZERS = {
    "sgd": {"momentum": 0.9},
    "adam": {},
    "ftrl": {},
    "adagrad": {},
    "groupadagrad": {},
    "lamb": {},
}


@pytest.mark.parametrize("gradient", ["default", "row_sparse"])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_are_updated_as_on_the_processor(name, stype, gradient):
    found = []
    for ctx in (G, CPU):
        made = mx.optimizer.create(name, learning_rate=0.1, **OPTIMIZERS[name])
        weight = nd.array(np.arange(1, 13).reshape(4, 3) / 7, ctx=ctx).tostype(stype)
        state = made.create_state(0, weight)
        for _ in range(3):
            made.update(0, weight, on(gradient, ctx), state)
        assert (weight.stype, weight.context) == (stype, ctx)
        found.append(weight.asnumpy())
    np.testing.assert_allclose(*found, 1e-5, 1e-6)


def test_half_floats_and_their_master_copies():
    found = []
    for ctx in (G, CPU):
        sgd = mx.optimizer.create("sgd", learning_rate=0.1, momentum=0.9, multi_precision=True)
        weight = nd.ones(A.shape, ctx=ctx, dtype="float16")
        state = sgd.create_state_multi_precision(0, weight)
        for _ in range(3):
            sgd.update_multi_precision(0, weight, on("row_sparse", ctx, "float16"), state)
        found.append(weight.asnumpy())
    np.testing.assert_array_equal(*found)


def test_a_look_up_and_its_update_move_no_values(monkeypatch):
    """Indices of a batch are read once, those of its gradient never; values stay on the GPU."""
    weight, read, to_host = nd.ones((1000, 64), ctx=G), [], transfer._to_host
    weight.attach_grad(stype="row_sparse")
    adam, batch = mx.optimizer.create("adam"), nd.array([7, 3, 7, 999], ctx=G)
    state = adam.create_state(0, weight)
    monkeypatch.setattr(
        transfer, "_to_host", lambda source, at: (read.append(source.shape), to_host(source, at))
    )
    with autograd.record():
        loss = nd.Embedding(batch, weight, 1000, 64, sparse_grad=True).sum()
    loss.backward()
    adam.update(0, weight, weight.grad, state)
    assert read == [(4,)]
    assert weight.grad.indices.asnumpy().tolist() == [3, 7, 999]
    changed = np.flatnonzero((weight.asnumpy() != 1).any(axis=1))
    assert changed.tolist() == [3, 7, 999]


@pytest.mark.parametrize("shape", [(9, 4), (9,), (6, 3, 5), (9, 1), (1, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("place", [over, lambda values: moved(over(values))])
def test_rows_are_put_where_they_belong(place, dtype, shape):
    begun = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    index = np.random.default_rng(0).permutation(shape[0])[:3]
    want = begun.copy()
    want[index] = 1000 + begun[: len(index)]
    dest = place(begun)
    rows = take_grad(place(index), place(want[index]), shape[0])
    run([Store(dest, PUT, rows)])
    np.testing.assert_array_equal(dest.numpy(), want)
    with pytest.raises(ValueError, match=r"'saver': expected one of saveto.* got putto"):
        run([Store(dest, PUT, place(begun))])


@pytest.mark.parametrize("kind", ["local", "device"])
def test_stores(kind):
    store = mx.kv.create(kind)
    store.init("w", on("row_sparse"))
    store.push("w", [on("row_sparse"), on("row_sparse", H)])
    for ctx in (G, H, CPU):
        out = nd.sparse.zeros("row_sparse", A.shape, ctx=ctx)
        store.row_sparse_pull("w", out=out, row_ids=nd.array([2, 0, 2], ctx=ctx))
        same(out, 2 * A * [[1], [0], [1], [0]], "row_sparse", ctx)
        assert out.indices.asnumpy().tolist() == [0, 2]
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1.0))
    store.push("w", [on("row_sparse"), on("row_sparse", H)])
    outs = [nd.sparse.zeros("row_sparse", A.shape, ctx=ctx) for ctx in (G, H)]
    every = nd.arange(4)
    store.row_sparse_pull("w", out=outs, row_ids=every)
    for out in outs:
        same(out, np.zeros(A.shape), "row_sparse", out.context)


def test_rows_travel_on_the_processor():
    with G:
        again = of_rows(to_rows(on("row_sparse")), A.shape, "float32")
    same(again, A, "row_sparse", CPU)


def look_up(kind, contexts, hybridize=False):
    """The embedding's weight after some steps, on the last of the contexts."""
    mx.random.seed(0)
    table = kind(10, 4, **({"sparse_grad": True} if kind is gluon.nn.Embedding else {}))
    net = gluon.nn.HybridSequential() if hybridize else gluon.nn.Sequential()
    net.add(table, gluon.nn.Dense(2, in_units=12))
    net.initialize(ctx=contexts)
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    for k in range(3):
        for n, ctx in enumerate(contexts):
            with autograd.record():
                loss = net(nd.array([[1, 3, 3 + n], [k, 0, 3]], ctx=ctx)).square().sum()
            loss.backward()
        trainer.step(2)
    assert table.weight.list_grad()[-1].stype == "row_sparse"
    if table.weight._stype == "default":
        return table.weight.list_data()[-1].asnumpy()
    return table.weight.row_sparse_data(nd.arange(10, ctx=contexts[-1])).asnumpy()


@pytest.mark.parametrize("contexts", [[G], [G, H]])
@pytest.mark.parametrize("kind", [gluon.nn.Embedding, gluon.contrib.nn.SparseEmbedding])
def test_embeddings_are_trained_as_on_the_processor(kind, contexts):
    there, here = look_up(kind, contexts), look_up(kind, [mx.cpu(c.device_id) for c in contexts])
    np.testing.assert_allclose(there, here, 1e-4, 1e-5)


def test_a_hybridized_embedding():
    found = [look_up(gluon.nn.Embedding, [ctx], hybridize=True) for ctx in (G, CPU)]
    np.testing.assert_allclose(*found, 1e-4, 1e-5)


def factorization():
    """A factorization machine of second order on a `csr` matrix of 20 columns."""
    x, begin = mx.sym.Variable("data", stype="csr"), mx.init.Normal(0.1)
    v, w = (
        mx.sym.Variable(name, shape=(20, size), stype="row_sparse", init=begin)
        for name, size in (("v", 4), ("w", 1))
    )
    bias = mx.sym.Variable("bias", shape=(1,), init=mx.init.Zero())
    linear = mx.sym.broadcast_add(mx.sym.dot(x, w), bias)
    squares = mx.sym._internal._square_sum(data=v, axis=1, keepdims=True)
    lost = mx.sym.dot(mx.sym.square(x), squares) * 0.5
    pairs = mx.sym.sum(mx.sym.square(mx.sym.dot(x, v)) * 0.5, axis=1, keepdims=True)
    label = mx.sym.Variable("softmax_label")
    return mx.sym.LogisticRegressionOutput(linear + pairs - lost, label)


@pytest.mark.parametrize("contexts", [[G], [G, H]])
def test_a_factorization_machine_is_trained_as_on_the_processor(contexts):
    draw = np.random.default_rng(0)
    points = ((draw.random((32, 20)) < 0.2) * draw.random((32, 20))).astype("f")
    labels = (points.sum(1, keepdims=True) > 2).astype("f")
    found = []
    for places in (contexts, [mx.cpu(c.device_id) for c in contexts]):
        mx.random.seed(0)
        module = mx.mod.Module(factorization(), context=places)
        matrix = nd.array(points).tostype("csr")
        batches = mx.io.NDArrayIter(matrix, labels, 8, last_batch_handle="discard")
        module.fit(batches, num_epoch=1, optimizer="adam", eval_metric="mse")
        params = module.get_params()[0]
        assert params["v"].stype == params["w"].stype == "row_sparse"
        found.append(np.concatenate([params[n].asnumpy().ravel() for n in ("v", "w", "bias")]))
    np.testing.assert_allclose(*found, 1e-4, 1e-5)
