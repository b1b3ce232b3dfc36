"""Sparse arrays: what the real library gave for a statement, and what is gnomon's own."""

from __future__ import annotations

import json
import logging
import operator
import pickle
from pathlib import Path

import numpy as np
import pytest
from golden import statements

import gnomon as mx
from gnomon import autograd, config, nd
from gnomon.base import ShapeError
from gnomon.ndarray.sparse import apply
from tests import simulated

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "sparse.json").read_text())

device = simulated.device  # each test runs on a processor and on a GPU

pytestmark = [
    pytest.mark.filterwarnings("ignore:copyto"),
    pytest.mark.usefixtures("device"),
]


@pytest.mark.parametrize("case", statements.cases("sparse"))
def test_statement(case):
    statements.check(mx, case, RECORDED[case])


def matrix(shape, density=0.3, seed=0, dtype="float32"):
    """A `csr` array and its elements."""
    draw = np.random.default_rng(seed)
    values = draw.integers(-4, 5, shape) * (draw.random(shape) < density)
    return nd.array(values, dtype=dtype).tostype("csr"), values.astype(dtype)


def rows(shape, density=0.4, seed=0, dtype="float32"):
    """A `row_sparse` array and its elements."""
    draw = np.random.default_rng(seed)
    kept = (draw.random(shape[0]) < density).reshape(-1, *[1] * (len(shape) - 1))
    values = draw.integers(-4, 5, shape) * kept
    return nd.array(values, dtype=dtype).tostype("row_sparse"), values.astype(dtype)


SHAPES = [(1, 1), (3, 7), (0, 4), (4, 0), (13, 5)]
DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint8"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("made", [matrix, rows], ids=["csr", "row_sparse"])
def test_sums_and_products_are_those_of_all_elements(made, shape):
    for density in (0, 0.3, 1):
        (x, a), (y, b) = made(shape, density, 1), made(shape, density, 2)
        for sparse_one, dense_one in (
            (x + y, a + b),
            (x - y, a - b),
            (x * y, a * b),
            (x * 3, a * 3),
        ):
            assert sparse_one.stype == x.stype
            sparse_one.check_format()
            np.testing.assert_array_equal(sparse_one.asnumpy(), dense_one)
        np.testing.assert_array_equal((x * nd.array(b)).asnumpy(), a * b)
        np.testing.assert_array_equal((x + nd.array(b)).asnumpy(), a + b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("made", [matrix, rows], ids=["csr", "row_sparse"])
def test_every_dtype_goes_there_and_back(made, dtype):
    x, a = made((5, 4), 0.5, 3, dtype)
    assert x.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(x.asnumpy(), a)
    np.testing.assert_array_equal((x + x).asnumpy(), a + a)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).asnumpy(), a)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s[1]])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_matrices(shape, turned):
    x, a = matrix(shape)
    inner, outer = (shape[0], 6) if turned else (shape[1], 6)
    b = np.arange(inner * outer).reshape(inner, outer).astype("float32")
    expected = (a.T if turned else a) @ b
    for stype in ("default", "row_sparse", "csr"):
        found = nd.dot(x, nd.array(b), transpose_a=turned, forward_stype=stype)
        assert found.stype == stype
        np.testing.assert_array_equal(found.asnumpy(), expected)
    left = nd.dot(nd.array(b.T), x, transpose_b=not turned) if inner == shape[1] else None
    if left is not None:
        np.testing.assert_array_equal(left.asnumpy(), b.T @ a.T)


def test_half_floats_are_summed_in_more_bits():
    ones = nd.sparse.csr_matrix((np.ones(4096, "float16"), np.arange(4096), [0, 4096]))
    found = nd.dot(ones, nd.ones((4096, 1), dtype="float16"))
    assert found.asnumpy().tolist() == [[4096]]


def test_values_of_one_place_add_up():
    twice = nd.sparse.csr_matrix(([1, 2, 5], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert twice.asnumpy().tolist() == [[0, 3], [5, 0]]
    assert nd.dot(twice, nd.ones((2, 1))).asnumpy().tolist() == [[3], [5]]
    placed = nd.sparse.csr_matrix(([1, 2, 5], ([0, 0, 1], [1, 1, 0])))
    assert placed.data.asnumpy().tolist() == [3, 5]
    with pytest.raises(mx.MXNetError, match="rise in each row"):
        twice.check_format()


def test_scipy_and_back():
    scipy = pytest.importorskip("scipy.sparse")
    x, a = matrix((6, 5))
    there = x.asscipy()
    assert isinstance(there, scipy.csr_matrix)
    np.testing.assert_array_equal(there.toarray(), a)
    np.testing.assert_array_equal(nd.sparse.array(there.tocoo()).asnumpy(), a)


def test_parts_are_copies_and_arrays_do_not_share_what_is_written():
    x, a = rows((5, 2))
    x.data[:] = 9
    np.testing.assert_array_equal(x.asnumpy(), a)
    y, seen = x.copy(), x.detach()
    x[:] = 1
    np.testing.assert_array_equal(y.asnumpy(), a)
    assert seen.asnumpy().tolist() == x.asnumpy().tolist() == np.ones((5, 2)).tolist()


def test_files(tmp_path):
    golden = Path(__file__).parent.parent / "golden" / "sparse.params"
    kept = nd.load(str(golden))
    assert [x.stype for x in kept] == ["row_sparse", "csr", "csr"]
    assert kept[0].indices.asnumpy().tolist() == [0, 2]
    assert not kept[2].asnumpy().any()
    nd.save(str(tmp_path / "x"), {"r": kept[0], "c": kept[1], "d": nd.ones((2,))})
    again = nd.load(str(tmp_path / "x"))
    assert [again[k].stype for k in "rcd"] == ["row_sparse", "csr", "default"]
    np.testing.assert_array_equal(again["c"].asnumpy(), kept[1].asnumpy())


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_copies_in_another_dtype_stay_sparse(dtype, caplog, monkeypatch):
    monkeypatch.setattr(apply, "_told", set())
    rows = nd.sparse.row_sparse_array(([[1.5, 2]], [1]), shape=(3, 2))
    cells = nd.sparse.csr_matrix(([1.5], [1], [0, 0, 1]), shape=(2, 2))
    for x in (rows, cells):
        other = nd.sparse.zeros(x.stype, x.shape, dtype=dtype)
        assert x.copyto(other) is other
        np.testing.assert_array_equal(other.asnumpy(), x.asnumpy().astype(dtype))
        assert other.data.shape == x.data.shape  # what is not stored is not computed
        other[:] = 0
        other[:] = x
        assert other.data.shape == x.data.shape
    assert caplog.records == []


def test_the_fallback_is_told_once(caplog, monkeypatch):
    monkeypatch.setattr(apply, "_told", set())
    x, a = matrix((3, 4))
    with caplog.at_level(logging.WARNING, "gnomon"):
        for _ in range(2):
            np.testing.assert_allclose(nd.cosh(x).asnumpy(), np.cosh(a), 1e-6)
    assert [r.getMessage().split(":")[0] for r in caplog.records] == ["Storage type fallback"]
    caplog.clear()
    with config.using(storage_fallback_log=False):
        nd.tan(x) + nd.arccosh(x)
    assert not caplog.records


def test_a_sparse_array_has_no_memory_of_all_elements():
    x, _ = rows((3, 2))
    with pytest.raises(mx.base.NotSupportedForSparseNDArray, match="tostype"):
        np.from_dlpack(x)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = x.nonsense


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_a_product_sends_back_only_rows_that_it_read(stype, req):
    x, a = matrix((4, 9), 0.2, 5)
    w = nd.ones((9, 3))
    w.attach_grad(req, stype)
    for _ in range(2):
        with autograd.record():
            loss = (nd.dot(x, w) * 2).sum()
        loss.backward()
    assert w.grad.stype == stype
    expected = (4 if req == "add" else 2) * (a.T @ np.ones((4, 3)))
    np.testing.assert_array_equal(w.grad.asnumpy(), expected)


def test_gradients_through_sparse_arrays_reach_dense_ones():
    w = nd.array([[1, 0], [0, 0], [3, 4]])
    w.attach_grad()
    with autograd.record():
        loss = (w.tostype("row_sparse") * 3 + w.tostype("row_sparse")).square().sum()
    loss.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), 32 * w.asnumpy())
    with autograd.record():
        y = nd.dot(nd.ones((2, 3)).tostype("csr"), w)
        first = autograd.grad(y.square().sum(), [w], create_graph=True)[0]
        total = first.sum()
    total.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), np.full((3, 2), 12))


@pytest.mark.parametrize("attached", ["default", "row_sparse"])
def test_looked_up_rows_are_the_gradient(attached):
    w = nd.ones((6, 2))
    w.attach_grad(stype=attached)
    index = nd.array([[4, 1], [4, 9]])
    with autograd.record():
        y = nd.Embedding(index, w, input_dim=6, output_dim=2, sparse_grad=True)
        found = autograd.grad(y, [w], retain_graph=True)[0]
    y.backward()
    assert found.stype == "row_sparse"
    assert found.indices.asnumpy().tolist() == [1, 4, 5]
    assert w.grad.stype == attached
    expected = np.zeros((6, 2))
    expected[[1, 4, 5]] = np.array([[1], [2], [1]])
    np.testing.assert_array_equal(w.grad.asnumpy(), expected)
    np.testing.assert_array_equal(found.asnumpy(), expected)


MANY = 1 << 36  # rows that fit nowhere


@pytest.mark.parametrize(
    "look_up",
    [
        lambda index, w: nd.Embedding(index, w, MANY, 2, sparse_grad=True),
        lambda index, w: nd.contrib.SparseEmbedding(index, w, MANY, 2),
        lambda index, w: nd.take(w, index),
        lambda index, w: nd.take(w, index - MANY, mode="wrap"),
    ],
)
def test_rows_are_looked_up_where_no_others_are_kept(look_up):
    kept, index = np.array([7, 0, MANY - 1]), np.array([[7, 3, 0], [MANY - 1, 7, 7]])
    w = nd.sparse.row_sparse_array((np.array([[3, 4], [1, 2], [5, 6]]), kept), shape=(MANY, 2))
    found = look_up(nd.array(index, dtype="int64"), w)
    assert found.stype == "default"
    assert found.asnumpy().tolist() == [[[3, 4], [0, 0], [1, 2]], [[5, 6], [3, 4], [3, 4]]]


@pytest.mark.parametrize("index", [[-1, np.nan, 9], [[1, 4]], np.zeros((0, 2))])
@pytest.mark.parametrize("name", ["Embedding", "take"])
def test_looked_up_rows_are_those_of_the_dense_weight(name, index):
    w, dense = rows((6, 2), 0.5, 3)
    given = {"input_dim": 6, "output_dim": 2} if name == "Embedding" else {"mode": "clip"}
    index = nd.array(index)
    one, other = ((index, x) if name == "Embedding" else (x, index) for x in (w, nd.array(dense)))
    expected = getattr(nd, name)(*other, **given).asnumpy()
    np.testing.assert_array_equal(getattr(nd, name)(*one, **given).asnumpy(), expected)


def test_gradients_of_rows_looked_up_in_sparse_weights():
    w = nd.sparse.row_sparse_array((np.ones((2, 2)), [1, MANY - 1]), shape=(MANY, 2))
    w.attach_grad(stype="row_sparse")
    with autograd.record():
        y = nd.Embedding(nd.array([5, 1, 5]), w, MANY, 2, sparse_grad=True)
    y.backward()
    assert w.grad.indices.asnumpy().tolist() == [1, 5]
    assert w.grad.data.asnumpy().tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_optimizers_leave_rows_without_gradient_alone(name, lazy):
    grad, g = rows((5, 3), 0.5, 7)
    still = ~(g != 0).any(axis=1)
    weight, dense = nd.ones((5, 3)), nd.ones((5, 3))
    one, other = (mx.optimizer.create(name, wd=0.1, lazy_update=lazy) for _ in range(2))
    state, kept = one.create_state(0, weight), other.create_state(0, dense)
    for _ in range(3):
        one.update(0, weight, grad, state)
        other.update(0, dense, nd.array(g), kept)
    where = ~still if lazy else slice(None)
    np.testing.assert_allclose(weight.asnumpy()[where], dense.asnumpy()[where], 1e-6)
    assert still.any()
    assert bool((weight.asnumpy()[still] == 1).all()) == lazy


def test_a_gradient_that_has_a_row_twice_is_added_up():
    kept = nd.sparse.retain(rows((4, 2), 1, 3)[0], nd.array([2, 0, 2]))
    weight = nd.ones((4, 2))
    mx.optimizer.create("sgd", learning_rate=0.5).update(0, weight, kept, None)
    np.testing.assert_array_equal(weight.asnumpy(), 1 - kept.asnumpy() / 2)
    with pytest.raises(mx.MXNetError, match="'grad': expected another array than the weight"):
        nd.sgd_update(kept, kept, out=kept, lr=1.0)


def test_a_sum_of_one_array_has_memory_of_its_own():
    x = rows((4, 2), 1, 3)[0]
    before, total = x.asnumpy(), nd.add_n(x)
    nd.sgd_update(total, x, out=total, lr=0.5)
    np.testing.assert_array_equal(x.asnumpy(), before)
    np.testing.assert_array_equal(total.asnumpy(), before * 0.5)


def test_indices_that_are_read_while_others_come_are_not_kept():
    x, y = (nd.sparse.row_sparse_array((np.ones((2, 2)), at), (6, 2)) for at in ([0, 2], [3, 5]))
    parts = x._parts
    parts.__init__(parts.data, [Replaced(parts, y._parts)], {})
    assert x._index().tolist() == [0, 2]  # what was there when it was asked for
    assert x._index().tolist() == x.indices.asnumpy().tolist() == [3, 5]


class Replaced:
    """The indices 0 and 2; where they are waited for, other parts come in their place."""

    def __init__(self, parts, others):
        self.parts, self.others = parts, others

    def wait_to_read(self):
        self.parts.become(self.others)

    def _numpy(self):
        return np.array([0, 2])


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
@pytest.mark.parametrize(("function", "slope"), [("__mul__", 2), ("__add__", 1), ("__sub__", -1)])
def test_a_sparse_array_on_the_right_has_a_gradient(stype, function, slope):
    w, dense = nd.array([[1, 0], [0, 0], [2, 3]]).tostype(stype), nd.ones((3, 2)) * 2
    w.attach_grad()
    with autograd.record():
        loss = getattr(operator, function)(dense, w)
    loss.backward()
    assert loss.stype == "default" and w.grad.stype == stype
    np.testing.assert_array_equal(w.grad.asnumpy(), slope * np.ones((3, 2)))


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_copies_on_other_devices_are_on_the_tape(stype):
    x = nd.ones((3, 2))
    x.attach_grad()
    with autograd.record():
        y = x.tostype(stype).copyto(mx.cpu(1))
        loss = (y * 2).tostype("default").sum()
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * np.ones((3, 2)))


def test_a_store_of_sparse_arrays():
    store, (x, a) = mx.kv.create("local"), rows((6, 2), 0.5, 3)
    store.init("w", nd.zeros((6, 2)).tostype("row_sparse"))
    store.push("w", [x, x])
    out = nd.sparse.zeros("row_sparse", (6, 2))
    store.row_sparse_pull("w", out=out, row_ids=nd.array([5, 0, 5]))
    assert out.indices.asnumpy().tolist() == [0, 5]
    np.testing.assert_array_equal(out.asnumpy()[[0, 5]], 2 * a[[0, 5]])
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=1.0))
    store.push("w", x)
    whole = nd.zeros((6, 2))
    store.pull("w", whole)
    np.testing.assert_array_equal(whole.asnumpy(), a)
    out.attach_grad()
    with autograd.record(), pytest.raises(mx.MXNetError, match="on the tape"):
        store.row_sparse_pull("w", out=out, row_ids=nd.array([5]))


def test_batches_of_a_matrix():
    x, a = matrix((5, 3))
    parts = [x[k : k + 2] for k in range(0, 5, 2)]
    assert [p.stype for p in parts] == ["csr"] * 3
    np.testing.assert_array_equal(nd.concat(*parts, dim=0).asnumpy(), a)
    assert [row.shape for row in x] == [(1, 3)] * 5
    with pytest.raises(IndexError, match="out of bounds"):
        x[5]


def test_names_of_the_namespace():
    names = json.loads((Path(__file__).parent.parent / "golden" / "sparse_names.json").read_text())
    assert [name for name in names if not hasattr(nd.sparse, name)] == []
    assert set(names) <= set(dir(nd.sparse))


@pytest.mark.parametrize("init", ["normal", "uniform", "xavier", "msraprelu", "orthogonal"])
def test_a_sparse_weight_starts_at_random_and_is_trained(init):
    rng = np.random.default_rng(0)
    points = (rng.random((40, 6)) < 0.4) * rng.normal(size=(40, 6)).astype("f")
    labels = points @ rng.normal(size=(6, 2)).astype("f")
    weight = mx.sym.Variable("weight", shape=(6, 2), stype="row_sparse", init=mx.init.create(init))
    product = mx.sym.dot(mx.sym.Variable("data", stype="csr"), weight)
    module = mx.mod.Module(
        mx.sym.LinearRegressionOutput(product, name="lro"), label_names=["lro_label"]
    )
    batches = mx.io.NDArrayIter(
        nd.array(points).tostype("csr"), labels, 8, label_name="lro_label",
        last_batch_handle="discard",
    )  # fmt: skip
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params()
    begun = module.get_params()[0]["weight"]
    assert begun.stype == "row_sparse"
    assert len(np.unique(begun.asnumpy())) == 12
    before = dict(module.score(batches, "mse"))["mse"]
    batches.reset()
    settings = {"learning_rate": 0.1}
    module.fit(batches, num_epoch=4, optimizer="adam", optimizer_params=settings, eval_metric="mse")
    assert dict(module.score(batches, "mse"))["mse"] < before / 2
    assert module.get_params()[0]["weight"].stype == "row_sparse"


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_random_numbers_go_into_sparse_arrays(stype):
    out = mx.nd.sparse.zeros(stype, (3, 4), dtype="float32")
    assert mx.nd.random.uniform(1, 2, out=out) is out
    assert (out.asnumpy() >= 1).all()
    with pytest.raises(ShapeError, match="expected shape"):
        mx.nd.random.uniform(shape=(3, 5), out=out)


WRONG = {
    "expected row indices from 0 to 3, got 7 at 1": lambda: nd.sparse.row_sparse_array(
        ([[1], [2]], [0, 7]), shape=(4, 1)
    ),
    "expected row indices from 0 to 3, got -1 at 0": lambda: nd.sparse.row_sparse_array(
        ([[1]], [-1]), shape=(4, 1)
    ),
    "expected each row once, got 2 3 times": lambda: nd.sparse.row_sparse_array(
        ([[1]] * 4, [2, 0, 2, 2]), shape=(4, 1)
    ),
    "expected column indices from 0 to 1, got 5 at 2": lambda: nd.sparse.csr_matrix(
        ([1, 2, 3], [0, 1, 5], [0, 2, 3]), shape=(2, 2)
    ),
    "expected row starts that never fall, got 2, then 1, at 2": lambda: nd.sparse.csr_matrix(
        ([1, 2, 3], [0, 1, 1], [0, 2, 1, 3]), shape=(3, 2)
    ),
    "expected 3 row starts, from 0 to 1, .*, got 2, from 0 to 1": lambda: nd.sparse.csr_matrix(
        ([1], [0], [0, 1]), shape=(2, 2)
    ),
    "expected places within shape .2, 2., got .0, 9. at 1": lambda: nd.sparse.csr_matrix(
        ([1, 2], ([1, 0], [0, 9])), shape=(2, 2)
    ),
    "expected whole numbers, got 0.5": lambda: nd.sparse.csr_matrix(([1], ([0.5], [0]))),
    "expected whole numbers, got ": lambda: nd.sparse.csr_matrix(([1], [[1], [2, 3]], [0, 1])),
    "expected two sizes, got .3,.": lambda: nd.sparse.csr_matrix(([1], ([0], [0])), shape=(3,)),
    "expected row indices that rise, got 2, then 1, at 1": lambda: nd.sparse.row_sparse_array(
        ([[1], [2]], [2, 1]), shape=(3, 1)
    ).check_format(),
}


@pytest.mark.parametrize("words", WRONG)
def test_the_index_that_is_wrong_is_told(words):
    with pytest.raises(ValueError, match=words):
        WRONG[words]()
