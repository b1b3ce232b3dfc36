"""The store of one process: keys, sums, updates, states, refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon import engine
from gnomon.kvstore.compression import Compression

SHAPE = (2, 3)


def full(value, shape=SHAPE, dtype="float32", ctx=None):
    return mx.nd.ones(shape, ctx=ctx, dtype=dtype) * value


def values(array):
    found = np.unique(array.asnumpy())
    assert found.size == 1
    return found[0]


@pytest.fixture(params=["local", "device"])
def store(request):
    made = mx.kv.create(request.param)
    made.init(3, full(1))
    made.init([5, 7, "nine"], [full(2)] * 3)
    return made


def pulled(store, key, count=1):
    outs = [full(-1) for _ in range(count)]
    store.pull(key, out=outs)
    return [values(out) for out in outs]


def test_what_was_put_in_comes_out(store):
    assert (store.rank, store.num_workers) == (0, 1)
    assert pulled(store, 3) == [1]
    assert pulled(store, "nine", 3) == [2, 2, 2]


def test_stored_arrays_are_copies(store):
    mine = full(4)
    store.init(20, mine)
    mine[:] = 9
    assert pulled(store, 20) == [4]
    pushed = full(6)
    store.push(20, pushed)
    pushed[:] = 9
    assert pulled(store, 20) == [6]


def test_values_of_a_key_are_summed(store):
    devices = [mx.cpu(i) for i in range(4)]
    store.push(3, [full(i, ctx=ctx) for i, ctx in enumerate(devices)])
    assert pulled(store, 3) == [6]
    store.push([5, 7], [[full(1)] * 2, [full(3)] * 2])
    outs = [[full(0), full(0)], [full(0), full(0)]]
    store.pull([5, 7], out=outs)
    assert [[values(x) for x in each] for each in outs] == [[2, 2], [6, 6]]
    store.push([5, 5], [full(1), full(2)])
    assert pulled(store, 5) == [3]
    store.push([], [])
    store.push(5, [])
    assert pulled(store, 5) == [3]


def test_pushpull_and_broadcast(store):
    out = full(0)
    store.pushpull(3, [full(1), full(2)], out=out)
    assert values(out) == 3
    grads = [full(1), full(2)]
    store.pushpull(3, grads)
    assert [values(g) for g in grads] == [3, 3]
    store.broadcast(77, full(7), out=out)
    assert values(out) == 7


def test_pull_casts_to_the_receiver(store):
    out = full(0, dtype="float16")
    store.pull(3, out=out)
    assert (out.dtype, values(out)) == (np.float16, 1)


def test_updaters_of_users(store):
    calls = []

    def update(key, grad, weight):
        calls.append((key, values(grad)))
        weight += grad * 2

    store.set_updater(update)
    store.push(3, [full(1)] * 3)
    store.push(["nine", 5], [full(4), full(5)], priority=-1)
    assert calls == [(3, 3), ("nine", 4), (5, 5)]
    assert pulled(store, 3) == [7]
    assert pulled(store, "nine") == [10]


def test_optimizer_and_its_states(store, tmp_path):
    store.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.5))
    store.push(3, full(1))
    assert pulled(store, 3) == [0.5]
    file = tmp_path / "states"
    store.save_optimizer_states(str(file))
    store.push(3, full(1))
    assert pulled(store, 3) == [-0.25]
    other = mx.kv.create()
    other.init(3, full(0.5))
    other.set_optimizer(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.5))
    other.load_optimizer_states(str(file))
    other.push(3, full(1))
    assert pulled(other, 3) == [-0.25]


def test_pushes_and_pulls_return_at_once_and_keep_their_order(store, slow_gradient):
    value, finish = slow_gradient(5.0, SHAPE)
    out = full(0)
    store.push(3, [value, full(1)])
    store.pull(3, out=out, priority=-1)
    store.push(3, full(9))
    finish()
    assert values(out) == 6
    assert pulled(store, 3) == [9]


def test_a_value_that_failed_fails_the_pull(store):
    value, out = full(1), full(0)

    def fail(run_ctx):
        raise OSError("no gradient")

    engine.get().push_sync(fail, mutate_vars=[value._var])
    store.push(3, value)
    store.pull(3, out=out)
    with pytest.raises(mx.GnomonError, match="no gradient"):
        out.asnumpy()


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda s: s.init(3, full(1)), ValueError, "new key"),
        (lambda s: s.init([11, 11], [full(1)] * 2), ValueError, "new key"),
        (lambda s: s.push(99, full(1)), KeyError, "99"),
        (lambda s: s.pull(99, out=full(1)), KeyError, "99"),
        (lambda s: s.push([3, 99], [full(8)] * 2), KeyError, "99"),
        (lambda s: s.push(3, full(1, (3, 2))), ValueError, r"\(2, 3\), got \(3, 2\)"),
        (lambda s: s.push(3, [full(1), full(1, (2,))]), ValueError, r"got \(2,\)"),
        (lambda s: s.pull(3, out=full(1, (6,))), ValueError, r"got \(6,\)"),
        (lambda s: s.push(3, full(1, dtype="float64")), TypeError, "float64"),
        (lambda s: s.pull(3), ValueError, "out"),
        (lambda s: s.push([3, 5], [full(1)]), ValueError, "2 values"),
        (lambda s: s.push([3, 5], full(1)), ValueError, "2 values"),
        (lambda s: s.push(3.5, full(1)), ValueError, "float"),
        (lambda s: s.push(3, np.ones(SHAPE)), TypeError, "ndarray"),
        (lambda s: s.set_optimizer("sgd"), ValueError, "Optimizer"),
        (lambda s: s.save_optimizer_states("x"), RuntimeError, "set_optimizer first"),
        (lambda s: s.load_optimizer_states("x"), RuntimeError, "set_optimizer first"),
        (lambda s: s.is_capable("flying"), ValueError, "optimizer"),
        (lambda s: s.row_sparse_pull(3, out=full(1)), RuntimeError, "row_sparse"),
    ],
)
def test_refusals_change_nothing(store, act, kind, words):
    with pytest.raises(mx.GnomonError, match=words) as caught:
        act(store)
    assert isinstance(caught.value, kind)
    assert [pulled(store, key) for key in (3, 5, 7, "nine")] == [[1], [2], [2], [2]]
    with pytest.raises(KeyError):
        store.pull(11, out=full(0))


COMPRESSED = json.loads((Path(__file__).parent.parent / "golden/compression.json").read_text())


@pytest.mark.parametrize("case", COMPRESSED)
def test_two_bits_are_those_of_mxnet(case):
    store, out = mx.kv.create("device"), full(0, (3, 3))
    store.set_gradient_compression({"type": "2bit", "threshold": case["threshold"]})
    store.init("w", out)
    for pushed, expected in case["rounds"]:
        store.push("w", [mx.nd.array(v, ctx=mx.cpu(i)) for i, v in enumerate(pushed)])
        store.pull("w", out=out)
        np.testing.assert_array_equal(out.asnumpy(), np.float32(expected))


@pytest.mark.parametrize("kind", ["1bit", "2bit"])
@pytest.mark.parametrize("size", [1, 7, 8, 9])
def test_compression_is_its_formula(kind, size):
    store, draw = mx.kv.create("device"), np.random.default_rng(size)
    store.set_gradient_compression({"type": kind, "threshold": 0.25})
    packer = Compression({"type": kind, "threshold": 0.25})
    store.init("w", full(0, (size,)))
    residual, out = np.zeros(size, "f4"), full(0, (size,))
    for _ in range(5):
        gradient = draw.standard_normal(size).astype("f4")
        store.pushpull("w", mx.nd.array(gradient), out=out)
        residual += gradient
        coarse = (
            np.where(residual > 0.25, 1, -1)
            if kind == "1bit"
            else (np.where(residual >= 0.25, 0.25, np.where(residual <= -0.25, -0.25, 0)))
        )
        levels = coarse.astype("f4")
        residual -= levels
        np.testing.assert_array_equal(out.asnumpy(), levels)
        packed = packer.packed(levels)
        assert packed.size == packer.packed_size(size) == -(-size // (8 if kind == "1bit" else 4))
        np.testing.assert_array_equal(packer.unpacked(packed, size, "f4"), levels)


def test_row_sparse_values_are_not_compressed():
    store, rows = mx.kv.create("device"), full(3).tostype("row_sparse")
    store.set_gradient_compression({"type": "1bit"})
    store.init("w", full(0).tostype("row_sparse"))
    store.push("w", rows)
    out = full(0).tostype("row_sparse")
    store.row_sparse_pull("w", out=out, row_ids=mx.nd.array([1]))
    assert out.asnumpy().tolist() == [[0, 0, 0], [3, 3, 3]]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"type": "3bit"}, "one of 1bit, 2bit, got 3bit"),
        ({"threshold": 1}, "1bit, 2bit, got None"),
        ({"type": "2bit", "threshold": 0}, "above 0, got 0"),
        ({"type": "2bit", "threshold": "big"}, "above 0, got big"),
        ({"type": "2bit", "threshold": np.inf}, "a finite number above 0, got inf"),
        ({"type": "2bit", "treshold": 1}, "did you mean 'threshold'"),
        ("2bit", "a dictionary, got str"),
    ],
)
def test_refused_compression(params, words):
    with pytest.raises(ValueError, match=words):
        mx.kv.create("device").set_gradient_compression(params)


def test_compression_needs_a_store_that_sends_and_floats():
    with pytest.raises(mx.GnomonError, match="nothing that could be compressed"):
        mx.kv.create("local").set_gradient_compression({"type": "2bit"})
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit"})
    store.init(1, full(1, dtype="int32"))
    with pytest.raises(TypeError, match="floating-point"):
        store.push(1, full(1, dtype="int32"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dist_snyc", "did you mean 'dist_sync'"),
        ("nccl", "GPU"),
        ("locla", "did you mean 'local'"),
    ],
)
def test_kinds_that_there_are_not(name, words):
    with pytest.raises(mx.GnomonError, match=words):
        mx.kv.create(name)


def test_what_is_no_store():
    net = mx.gluon.nn.Dense(1, in_units=1)
    net.initialize()
    trainer = mx.gluon.Trainer([net.weight], "sgd", kvstore=3)
    for make in (lambda: mx.kv.create(3), lambda: trainer.step(1, ignore_stale_grad=True)):
        with pytest.raises(TypeError, match=r"argument '(name|kvstore)'"):
            make()


def test_stores_of_users():
    @mx.kv.KVStoreBase.register
    class Loose(mx.kv.KVStoreBase):
        """Keeps nothing."""

        type = "loose"
        rank = 2
        num_workers = 4

        def broadcast(self, key, value, out, priority=0):
            value.copyto(out)

        def pushpull(self, key, value, out=None, priority=0):
            value.copyto(out)

    store = mx.kv.create("loose")
    assert (store.rank, store.is_capable("optimizer")) == (2, False)
    out = full(0)
    store.broadcast(1, full(4), out)
    assert values(out) == 4
    with pytest.raises(mx.GnomonError, match="does not update"):
        store.set_optimizer(None)


class Told(mx.kv.KVStoreBase):
    """A store of a user that keeps what it is called with, and updates."""

    type, rank, num_workers = "told", 0, 1

    def __init__(self):
        self.calls, self.kept, self.updater = [], {}, None

    @staticmethod
    def is_capable(capability):
        return True

    def set_optimizer(self, optimizer):
        self.updater = mx.optimizer.get_updater(optimizer)

    def broadcast(self, key, value, out, priority=0):
        self.calls.append(("broadcast", key, len(out)))
        self.kept[key] = value.copy()
        for each in out:
            each[:] = value

    def pushpull(self, key, value, out=None, priority=0):
        self.calls.append(("pushpull", key, len(value), out is None, priority))
        total = sum(value[1:], value[0].copy())
        if self.updater is not None:
            self.updater(key, total, self.kept[key])
            total = self.kept[key]
        for each in value if out is None else out:
            each[:] = total


def trained_by_trainer(store, updates):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.One(), ctx=contexts)
    trainer = mx.gluon.Trainer([net.weight, net.bias], "sgd", {}, store, None, updates)
    for _ in range(2):
        with mx.autograd.record():
            losses = [net(full(1, (4, 3), ctx=ctx)).sum() for ctx in contexts]
        mx.autograd.backward(losses)
        trainer.step(8)
    return [x.asnumpy() for x in net.weight.list_data()]


def trained_by_module(store, updates, monkeypatch):
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "01"[updates])
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    model = mx.mod.Module(mx.sym.MakeLoss(net), context=[mx.cpu(0), mx.cpu(1)], label_names=None)
    model.bind([("data", (8, 3))])
    model.init_params(mx.init.One())
    model.init_optimizer(store)
    for _ in range(2):
        model.forward_backward(mx.io.DataBatch([full(1, (8, 3))], []))
        model.update()
    return [x.asnumpy() for x in model._group("test").param_arrays[0]]


@pytest.mark.parametrize("updates", [True, False])
@pytest.mark.parametrize("by", ["trainer", "module"])
def test_stores_of_users_are_told_one_key_at_a_time(by, updates, monkeypatch):
    store, names = Told(), [0, 1]
    if by == "trainer":
        weights = trained_by_trainer(store, updates)
    else:
        weights, names = trained_by_module(store, updates, monkeypatch), ["fc_weight", "fc_bias"]
    for weight in weights:
        np.testing.assert_allclose(weight, np.full((2, 3), 1 - 2 * 0.01), rtol=1e-6)
    entered = [("broadcast", name, 2) for name in names]
    asked = [("pushpull", name, 2, not updates, -k) for k, name in enumerate(names)]
    assert store.calls == [*entered, *asked, *asked]


def test_stores_of_users_define_what_is_called():
    @mx.kv.KVStoreBase.register
    class Nothing(mx.kv.KVStoreBase):
        """As in MXNet's documentation."""

    store = mx.kv.create("nothing")
    assert type(store) is Nothing
    with pytest.raises(NotImplementedError, match="Nothing must define pushpull"):
        store.pushpull(1, full(1))
    with pytest.raises(NotImplementedError, match="Nothing must define rank"):
        _ = store.rank


def test_nan_and_infinity_stay_in_the_residual_as_mxnets():
    store, out = mx.kv.create("device"), mx.nd.zeros((4,))
    store.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    store.init("w", out)
    for first in (True, False, False):
        odd = [np.nan, np.inf, 0.6, -np.inf] if first else [0.6] * 4
        store.push("w", [mx.nd.array(odd, ctx=mx.cpu(0)), mx.nd.zeros((4,), ctx=mx.cpu(1))])
        store.pull("w", out=out)
        assert out.asnumpy().tolist() == [0, 0.5, 0.5, -0.5]
