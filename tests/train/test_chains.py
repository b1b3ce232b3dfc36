"""The older modules against the real library, and what they refuse."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.io import DataBatch

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import chains  # noqa: E402

RECORD = json.loads((GOLDEN / "chains.json").read_text())


def close(found, expected):
    """Nested lists and dicts of numbers are alike."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
        return
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", chains.RUNS)
def test_training_is_that_of_the_real_library(name):
    close(chains.RUNS[name](mx), RECORD[name])


def bucketed(key, other=5):
    """A network whose parameters have another order in the bucket `other`."""
    x = mx.sym.Variable("data")
    a = mx.sym.FullyConnected(x, num_hidden=3, name="a", flatten=False)
    b = 2 * mx.sym.FullyConnected(x, num_hidden=3, name="b", flatten=False)
    joined = mx.sym.mean(b + a if key == other else a + b, axis=1)
    if key == 6:
        joined = mx.sym.FullyConnected(joined, num_hidden=3, name="more")
    return mx.sym.SoftmaxOutput(joined, name="softmax"), ("data",), ("softmax_label",)


def batch(key, rows=2):
    data = mx.nd.array(np.arange(rows * key * 4).reshape(rows, key, 4) % 3)
    described = [("data", data.shape)], [("softmax_label", (rows,))]
    return DataBatch(
        [data], [mx.nd.arange(rows)], bucket_key=key,
        provide_data=described[0], provide_label=described[1],
    )  # fmt: skip


def trainable(generate=bucketed):
    module = mx.mod.BucketingModule(generate, default_bucket_key=8)
    first = batch(8)
    module.bind(first.provide_data, first.provide_label)
    module.init_params(mx.init.Constant(0.1))
    return module


def test_optimizer_states_follow_names_not_places():
    """The momentum of `a` is not that of `b` in a bucket that lists them otherwise."""

    def run(generate):
        module = trainable(generate)
        module.init_optimizer(optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
        for key in (8, 5, 5, 8):
            module.forward_backward(batch(key))
            module.update()
        return {n: v.asnumpy() for n, v in module.get_params()[0].items()}

    assert bucketed(5)[0].list_arguments() != bucketed(5, None)[0].list_arguments()
    found, expected = run(bucketed), run(lambda key: bucketed(key, None))
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


def test_buckets_share_parameters_and_the_optimizer():
    module = trainable()
    module.init_optimizer(optimizer_params={"learning_rate": 0.5})
    before = module.get_params()[0]["a_weight"].asnumpy()
    module.forward_backward(batch(5))
    module.update()
    assert module.symbol.list_arguments() == bucketed(5)[0].list_arguments()
    assert [tuple(d.shape) for d in module.data_shapes] == [(2, 5, 4)]
    after = module.get_params()[0]["a_weight"].asnumpy()
    assert not np.array_equal(before, after)
    module.forward(batch(8), is_train=False)
    assert module.output_shapes == [("softmax_output", (2, 3))]
    np.testing.assert_array_equal(module.get_params()[0]["a_weight"].asnumpy(), after)
    module.prepare(batch(3))
    assert [tuple(d.shape) for d in module.data_shapes] == [(2, 8, 4)]


def test_parameters_survive_binding_anew():
    module = trainable()
    module.init_optimizer()
    before = module.get_params()[0]["b_weight"].asnumpy()
    described = batch(8, rows=5)
    module.bind(described.provide_data, described.provide_label, force_rebind=True)
    np.testing.assert_array_equal(module.get_params()[0]["b_weight"].asnumpy(), before)
    module.init_optimizer()
    module.forward_backward(described)
    module.update()


@pytest.mark.parametrize("by", ["gen", "dict"])
def test_a_bucketed_checkpoint(tmp_path, by):
    module = trainable()
    module.forward(batch(5), is_train=False)
    expected = module.get_outputs()[0].asnumpy()
    prefix = str(tmp_path / "net")
    module.save_checkpoint(prefix, 4)
    names = ["net-0004.params", "net-5-symbol.json", "net-8-symbol.json", "net.buckets"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert mx.nd.load(prefix + ".buckets")[0].asnumpy().tolist() == [8, 5]
    if by == "gen":
        again = mx.mod.BucketingModule.load(prefix, 4, bucketed, default_bucket_key=8)
    else:
        symbols = {k: mx.sym.load(f"{prefix}-{k}-symbol.json") for k in (5, 8)}
        params = mx.model.load_params(prefix, 4)
        again = mx.mod.BucketingModule.load_dict(symbols, None, 8, *params)
    first = batch(8)
    again.bind(first.provide_data, first.provide_label, for_training=False)
    again.forward(batch(5), is_train=False)
    np.testing.assert_array_equal(again.get_outputs()[0].asnumpy(), expected)


def test_what_a_bucketing_module_refuses():
    with pytest.raises(ParamError, match="default_bucket_key"):
        mx.mod.BucketingModule(bucketed)
    with pytest.raises(ParamError, match=r"sym_gen.*Symbol for the bucket 3"):
        mx.mod.BucketingModule(lambda key: mx.sym.Variable("x"), 3)
    module = trainable()
    with pytest.raises(ParamError, match=r"sym_gen.*more_weight.*bucket 6"):
        module.forward(batch(6))
    with pytest.raises(ParamError, match="sym_dict"):
        mx.mod.BucketingModule.load_dict(default_bucket_key=3)
    with pytest.raises(ParamError, match="sym_gen"):
        mx.mod.BucketingModule.load("x", 1)
    with pytest.raises(GnomonError, match="call bind first"):
        mx.mod.BucketingModule(bucketed, 8).forward(batch(8))
    plain = mx.io.DataBatch(batch(8).data, batch(8).label)
    for use in (module.forward, module.prepare, module.forward_backward):
        with pytest.raises(TypeError, match=r"data_batch.*a bucket_key.*got neither"):
            use(plain)
    with pytest.raises(GnomonError, match="inputs_need_grad"):
        module.get_input_grads()


def test_a_monitor_sees_buckets_that_come_later():
    module = trainable()
    monitor = mx.mon.Monitor(1, pattern=".*softmax.*")
    module.install_monitor(monitor)
    monitor.tic()
    module.forward(batch(5), is_train=False)
    assert "softmax_output" in {name for _, name, _ in monitor.toc()}


def chain(*modules, **last):
    found = mx.mod.SequentialModule()
    for module in modules[:-1]:
        found.add(module, auto_wiring=True)
    return found.add(modules[-1], auto_wiring=True, **last)


def dense(name, hidden=3):
    x = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(x, num_hidden=hidden, name=name)
    return mx.mod.Module(net, label_names=None)


def test_what_a_sequential_module_refuses():
    with pytest.raises(ParamError, match="did you mean 'take_labels'"):
        mx.mod.SequentialModule().add(dense("a"), take_label=True)
    with pytest.raises(GnomonError, match="call add first"):
        mx.mod.SequentialModule().bind([("data", (2, 3))])
    twice = chain(dense("a"), dense("a"))
    twice.bind([("data", (2, 3))])
    with pytest.raises(ParamError, match=r"'a_\w+' in modules 0 and 1"):
        twice.init_params()
    unbound = mx.mod.SequentialModule().add(dense("a"))
    with pytest.raises(GnomonError, match=r"SequentialModule.forward: call bind first"):
        unbound.forward(batch(8))


def test_a_chain_gives_gradients_of_its_data():
    module = chain(dense("a", 4), dense("b", 2))
    module.bind([("data", (2, 3))], inputs_need_grad=True)
    module.init_params(mx.init.Constant(0.5))
    module.forward(DataBatch([mx.nd.ones((2, 3))]), is_train=True)
    module.backward([mx.nd.ones((2, 2))])
    np.testing.assert_allclose(module.get_input_grads()[0].asnumpy(), np.full((2, 3), 2.0))
    assert sorted(module.get_params()[0]) == ["a_bias", "a_weight", "b_bias", "b_weight"]
    assert module.data_names == ["data"]
    assert module.output_names == ["b_output"]


def test_what_a_python_loss_refuses():
    with pytest.raises(ParamError, match="data_names"):
        mx.mod.PythonLossModule(data_names=("a", "b"))
    with pytest.raises(ParamError, match="grad_func"):
        mx.mod.PythonLossModule(grad_func=3)
    loss = mx.mod.PythonLossModule(grad_func=lambda s, y: np.zeros(3))
    loss.bind([("data", (2, 3))], [("softmax_label", (2,))])
    with pytest.raises(ParamError, match="take_labels=True"):
        loss.forward(DataBatch([mx.nd.ones((2, 3))]))
    loss.forward(DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)]))
    with pytest.raises(ShapeError, match=r"grad_func.*\(2, 3\), got \(3,\)"):
        loss.backward()
    with pytest.raises(NotImplementedError, match="grad_func"):
        mx.mod.PythonLossModule.backward(bound_loss())


def bound_loss():
    loss = mx.mod.PythonLossModule()
    loss.bind([("data", (2, 3))], [("softmax_label", (2,))])
    loss.forward(DataBatch([mx.nd.ones((2, 3))], [mx.nd.ones(2)]))
    return loss


def regression(**how):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    return mx.model.FeedForward(mx.sym.SoftmaxOutput(net, name="softmax"), **how)


def test_feed_forward_on_arrays(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 50)
    x = (rng.normal(size=(50, 3)) + 3 * y[:, None]).astype("f")
    model = regression(num_epoch=12, learning_rate=0.3, numpy_batch_size=16)
    model.fit(x, y, eval_data=(x, y))
    assert (model.predict(x).argmax(1) == y).mean() > 0.9
    assert model.predict(mx.nd.array(x), num_batch=2).shape == (32, 2)
    model.save(str(tmp_path / "m"))
    again = mx.model.FeedForward.load(str(tmp_path / "m"), 12)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    made = mx.model.FeedForward.create(
        model.symbol, x, y[:, None], num_epoch=1, ctx=[mx.cpu(0), mx.cpu(1)]
    )
    assert made.predict(x).shape == (50, 2)


def test_feed_forward_predicts_without_labels_of_any_name():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.Variable("goal"))
    x, y = np.ones((8, 2), "f"), np.zeros(8, "f")
    model = mx.model.FeedForward(net, num_epoch=1, initializer=mx.init.One(), learning_rate=0)
    model.fit(mx.io.NDArrayIter(x, y, 4, label_name="goal"), eval_metric="mse")
    assert model.predict(mx.io.NDArrayIter(x, batch_size=4)).tolist() == [[2]] * 8
    for each in (model, pickle.loads(pickle.dumps(model))):
        assert each.score(mx.io.NDArrayIter(x, y, 4, label_name="goal"), "mse") == 4


def test_labels_of_another_form_do_not_matter_to_predictions():
    """As those that CSVIter gives where there are none, for networks with a row of labels each."""
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.LogisticRegressionOutput(net, name="softmax")
    given = mx.io.NDArrayIter(np.ones((6, 3), "f"), np.zeros(6), 3)
    params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    model = mx.model.FeedForward(net, num_epoch=1, arg_params=params)
    module = mx.mod.Module(net)
    module.bind(given.provide_data, for_training=False)
    module.set_params(params, {})
    expected = np.full((6, 2), 1 / (1 + np.exp(-3.0)))
    np.testing.assert_allclose(model.predict(given), expected, 1e-6)
    np.testing.assert_allclose(module.predict(given).asnumpy(), expected, 1e-6)
    np.testing.assert_allclose(module.predict(np.ones((4, 3))).asnumpy(), expected[:4], 1e-6)
    module.reshape([("data", (3, 3))], [("softmax_label", (3, 2))])
    with pytest.raises(mx.MXNetError, match="label"):
        module.predict(given)


def test_feed_forward_begins_anew_and_counts_batches():
    data = mx.io.NDArrayIter(np.ones((20, 3), "f"), np.zeros(20, "f"), 5)
    assert len(list(data)) == 4
    told = []
    regression(num_epoch=2).fit(data, batch_end_callback=lambda p: told.append((p.epoch, p.nbatch)))
    assert told == [(epoch, n) for epoch in range(2) for n in range(1, 5)]


def test_what_feed_forward_refuses():
    with pytest.raises(GnomonError, match="fit it"):
        regression().predict(np.zeros((2, 3)))
    with pytest.raises(ParamError, match="num_epoch"):
        regression().fit(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ParamError, match="'y'"):
        regression(num_epoch=1).fit(np.zeros((2, 3)))
    with pytest.raises(ParamError, match=r"2 numbers.*\(3,\)"):
        regression(num_epoch=1).fit(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(ParamError, match=r"allow_extra_params.*'nothing'"):
        regression(arg_params={"nothing": mx.nd.ones(1)}).predict(np.zeros((2, 3)))
    with pytest.raises(ParamError, match=r"allow_extra_params.*'nothing'"):
        regression(arg_params={}, aux_params={"nothing": mx.nd.ones(1)}).predict(np.zeros((2, 3)))
    for kind in (TypeError, ValueError):  # MXNet raises the first
        with pytest.raises(kind, match="'X'"):
            regression(num_epoch=1).fit([[1, 2]])
    with pytest.raises(ParamError, match="fitted"):
        regression().save("x", 1)


def test_no_monitor_sees_a_module_in_python():
    chain = mx.mod.SequentialModule()
    network = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3)
    chain.add(mx.mod.Module(network, label_names=None))
    chain.add(mx.mod.PythonLossModule(), take_labels=True, auto_wiring=True)
    chain.bind([("data", (2, 8))], [("softmax_label", (2,))])
    for module in (chain, mx.mod.PythonLossModule()):
        with pytest.raises(NotImplementedError, match="PythonLossModule must define install_monit"):
            module.install_monitor(mx.mon.Monitor(1))


def test_modules_of_users_get_arguments_by_name():
    told = []

    class Keyed(mx.mod.Module):
        """Takes keywords alone, where MXNet gives them."""

        def bind(self, *, data_shapes, label_shapes, for_training, force_rebind, **words):
            told.append(sorted(words))
            super().bind(
                data_shapes, label_shapes, for_training, force_rebind=force_rebind, **words
            )

        def init_params(self, **words):
            super().init_params(**words)

        def init_optimizer(self, **words):
            super().init_optimizer(**words)

        def forward(self, data_batch, *, is_train):
            super().forward(data_batch, is_train)

        def backward(self, *, out_grads=None):
            super().backward(out_grads)

        def score(self, eval_data, eval_metric, *, epoch, **words):
            told.append((epoch, sorted(words)))
            return super().score(eval_data, eval_metric, **words)

        def prepare(self, data_batch, *, sparse_row_id_fn):
            super().prepare(data_batch, sparse_row_id_fn)

    x = mx.sym.Variable("data")
    dense = mx.sym.FullyConnected(x, num_hidden=3, name="a")
    data = mx.io.NDArrayIter(np.ones((4, 2), "float32"), np.arange(4) % 3, batch_size=2)
    Keyed(mx.sym.SoftmaxOutput(dense, name="softmax")).fit(data, data, num_epoch=1)
    chain = mx.mod.SequentialModule().add(Keyed(dense, label_names=None))
    chain.add(Keyed(mx.sym.SoftmaxOutput(x, name="softmax")), take_labels=True, auto_wiring=True)
    data.reset()
    chain.fit(data, num_epoch=1)
    wiring = ["grad_req", "inputs_need_grad", "shared_module"]
    assert told == [[], (0, ["batch_end_callback", "score_end_callback"]), wiring, wiring]
