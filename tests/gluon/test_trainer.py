"""Trainer: steps, stores, stale gradients, states; and the utilities beside it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import FormatError, GnomonError, ParamError, ShapeError
from gnomon.gluon import Trainer, nn, utils
from gnomon.gluon.contrib.nn import SparseEmbedding


def model(prefix=None, ctx=None):
    net = nn.Dense(2, in_units=3, prefix=prefix, weight_initializer="ones")
    net.initialize(ctx=ctx)
    return net


def differentiate(net, x=None):
    with mx.autograd.record():
        loss = net(nd.ones((1, 3)) if x is None else x).sum()
    loss.backward()


@pytest.mark.parametrize("kvstore", ["device", "local", None])
@pytest.mark.parametrize("update", [None, False])
def test_step(kvstore, update):
    net = model()
    trainer = Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore, update_on_kvstore=update
    )
    differentiate(net)
    trainer.step(2)
    assert (net.weight.data().asnumpy() == 0.75).all()
    assert trainer.learning_rate == 0.5
    trainer.set_learning_rate(0.25)
    differentiate(net)
    trainer.step(1)
    assert (net.weight.data().asnumpy() == 0.5).all()


def test_a_store_may_update():
    net = model()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, update_on_kvstore=True)
    differentiate(net)
    trainer.step(1)
    assert (net.weight.data().asnumpy() == 0.5).all()
    for method in (lambda: trainer.update(1), trainer.allreduce_grads):
        with pytest.raises(GnomonError, match="update_on_kvstore=False"):
            method()
    net.weight.set_data(nd.ones((2, 3)) * 3)
    differentiate(net)
    trainer.step(1)
    assert (net.weight.data().asnumpy() == 2.5).all()


def test_several_contexts_apart():
    ctxs = [mx.cpu(0), mx.cpu(1)]
    net = model(ctx=ctxs)
    trainer = Trainer(net.collect_params(), "adam", update_on_kvstore=False)
    for k, ctx in enumerate(ctxs):
        differentiate(net, nd.ones((1, 3), ctx=ctx) * (k + 1))
    trainer.allreduce_grads()
    assert [(x.asnumpy() == 3).all() for x in net.weight.list_grad()] == [True, True]
    trainer.update(1)
    first, second = (x.asnumpy() for x in net.weight.list_data())
    np.testing.assert_array_equal(first, second)


def test_stale_gradients():
    used, unused = model("a_"), model("b_")
    params = used.collect_params()
    params.update(unused.collect_params())
    trainer = Trainer(params, "sgd", {"learning_rate": 0.5})
    differentiate(used)
    with pytest.raises(UserWarning, match=r"'b_bias' on cpu\(0\) has no new gradient"):
        trainer.step(1)
    assert (used.weight.data().asnumpy() == 1).all()
    trainer.step(1, ignore_stale_grad=True)
    assert (used.weight.data().asnumpy() == 0.5).all()
    assert (unused.weight.data().asnumpy() == 1).all()
    with pytest.raises(UserWarning, match="has no new gradient"):
        trainer.step(1)


@pytest.mark.parametrize("hybrid", [False, True])
def test_every_step_counts(hybrid):
    net = model()
    net.hybridize(hybrid)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    velocity, expected = 0.0, 1.0
    for _ in range(4):
        differentiate(net)
        trainer.step(1)
        velocity = 0.9 * velocity - 0.1
        expected += velocity
        np.testing.assert_allclose(net.weight.data().asnumpy(), expected, rtol=1e-5)


def test_gradients_clipped_between_backward_and_step():
    net = model()
    net.hybridize()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    for _ in range(2):
        differentiate(net)
        grads = [p.grad() for p in net.collect_params().values()]
        assert utils.clip_global_norm(grads, 1e-3) == pytest.approx(np.sqrt(8))
        trainer.step(1)
    np.testing.assert_allclose(net.weight.data().asnumpy(), 1 - 2e-3 / np.sqrt(8), rtol=1e-5)


def test_multipliers():
    net = model()
    net.weight.lr_mult, net.bias.wd_mult = 2.0, 0.0
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "wd": 0.1})
    differentiate(net)
    trainer.step(1)
    np.testing.assert_allclose(net.weight.data().asnumpy(), 1 - 0.2 * (1 + 0.1), rtol=1e-5)
    np.testing.assert_allclose(net.bias.data().asnumpy(), -0.1, rtol=1e-5)


@pytest.mark.parametrize("update", [False, True])
def test_states_cross(update, tmp_path):
    file = str(tmp_path / "states")
    nets = [model(), model()]
    trainers = [
        Trainer(n.collect_params(), "adam", {"learning_rate": 0.1}, update_on_kvstore=update)
        for n in nets
    ]
    for _ in range(3):
        differentiate(nets[0])
        trainers[0].step(1)
    trainers[0].save_states(file)
    nets[1].weight.set_data(nets[0].weight.data())
    trainers[1].load_states(file)
    for net, trainer in zip(nets, trainers, strict=True):
        differentiate(net)
        trainer.step(1)
    np.testing.assert_allclose(*(n.weight.data().asnumpy() for n in nets), rtol=1e-6)
    (tmp_path / "bad").write_bytes(b"no states")
    with pytest.raises(FormatError):
        trainers[1].load_states(str(tmp_path / "bad"))
    wide = nn.Dense(2, in_units=5, prefix="wide_")
    wide.initialize()
    other = Trainer(wide.collect_params(), "adam", update_on_kvstore=update)
    words = r"states\[1\], of 'wide_weight'.*expected 2 arrays .*: are they another optimizer's"
    with pytest.raises(FormatError, match=words):
        other.load_states(file)
    assert other.optimizer.learning_rate == 0.001


def test_arguments_are_checked():
    net = model("a_")
    with pytest.raises(ParamError, match="expected a dictionary or a list of Parameters, got int"):
        Trainer(3, "sgd")
    with pytest.raises(ParamError, match=r"'params\[0\]': expected a Parameter"):
        Trainer([net.weight.data()], "sgd")
    with pytest.raises(ParamError, match="none beside a finished optimizer"):
        Trainer(net.collect_params(), mx.optimizer.SGD(), {"learning_rate": 1})
    other = model("b_", ctx=mx.cpu(1))
    params = [net.weight, other.weight]
    with pytest.raises(ParamError, match=r"'b_weight' on \[cpu\(1\)\]"):
        Trainer(params, "sgd").step(1)
    late = nn.Dense(2)
    late.initialize()
    with pytest.raises(GnomonError, match="has no array yet"):
        Trainer(late.collect_params(), "sgd").step(1)


def test_sparse_embedding():
    net = SparseEmbedding(6, 2, weight_initializer="ones")
    net.initialize()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    with mx.autograd.record():
        y = net(nd.array([1, 3, 1]))
    y.backward()
    assert net.weight.grad().stype == "row_sparse"
    trainer.step(1)
    rows = net.weight.row_sparse_data(nd.array([0, 1, 3])).asnumpy()
    assert rows[[0, 1, 3]].tolist() == [[1, 1], [0, 0], [0.5, 0.5]]
    assert net.weight._reduce().asnumpy()[:, 0].tolist() == [1, 0, 1, 0.5, 1, 1]


def test_split():
    x = nd.arange(7)
    parts = utils.split_data(x, 3, even_split=False)
    assert [p.asnumpy().tolist() for p in parts] == [[0, 1, 2], [3, 4], [5, 6]]
    for wrong in (8, 3, 0):
        with pytest.raises(ShapeError, match="'num_slice'"):
            utils.split_data(x, wrong)
    few = utils.split_and_load(np.ones((1, 2)), [mx.cpu(0), mx.cpu(1)], even_split=False)
    assert [p.shape for p in few] == [(1, 2), (0, 2)]
    columns = utils.split_and_load(np.ones((2, 4)), [mx.cpu(0), mx.cpu(1)], batch_axis=1)
    assert [(c.shape, c.context) for c in columns] == [((2, 2), mx.cpu(0)), ((2, 2), mx.cpu(1))]


@pytest.mark.parametrize("none", [[], {}, mx.gluon.nn.Dense(2).collect_params("misspelt")])
def test_a_trainer_of_nothing_is_refused(none):
    with pytest.raises(TypeError, match="Trainer: argument 'params': expected at least one"):
        mx.gluon.Trainer(none, "sgd")


def test_clip_global_norm():
    arrays = [nd.array([3.0]), nd.array([[4.0]], dtype="float16")]
    norm = utils.clip_global_norm(arrays, 10, check_isfinite=False)
    assert norm.asscalar() == 5
    assert arrays[0].asscalar() == 3
    with pytest.warns(UserWarning, match="nan or inf"):
        utils.clip_global_norm([nd.array([np.inf])], 1)
    with pytest.raises(ParamError, match="at least one"):
        utils.clip_global_norm([], 1)


def test_download(tmp_path):
    source = tmp_path / "source.bin"
    source.write_bytes(b"content")
    digest = hashlib.sha1(b"content").hexdigest()
    assert utils.check_sha1(str(source), digest)
    target = utils.download(source.as_uri(), str(tmp_path / "copy.bin"), sha1_hash=digest)
    assert (tmp_path / "copy.bin").read_bytes() == b"content"
    source.write_bytes(b"new")
    assert utils.download(source.as_uri(), target) == target
    assert (tmp_path / "copy.bin").read_bytes() == b"content"
    with pytest.raises(GnomonError, match="its SHA-1 hash is"):
        utils.download(source.as_uri(), target, sha1_hash="0" * 40, retries=1)
    assert (tmp_path / "copy.bin").read_bytes() == b"content"
    with pytest.raises(GnomonError, match=r"cannot fetch .* is there a network"):
        utils.download("http://127.0.0.1:9/x.bin", str(tmp_path), retries=0)
    with pytest.raises(ParamError, match="a URL with a file name"):
        utils.download("http://127.0.0.1:9/", str(tmp_path))


def test_trainers_that_share_parameters_use_up_each_others_gradients():
    net = model()
    first, second = (Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}) for _ in "ab")
    differentiate(net)
    first.step(1)
    later = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    for trainer in (first, second, later):
        with pytest.raises(UserWarning, match="no new gradient"):
            trainer.step(1)
    weight = net.weight.data().asnumpy()
    second.step(1, ignore_stale_grad=True)
    assert (net.weight.data().asnumpy() == weight).all()
    differentiate(net)
    second.step(1)
    assert (net.weight.data().asnumpy() == weight - 0.5).all()


def test_a_trainer_of_some_parameters_leaves_the_gradients_of_others_fresh():
    net = model()
    some = Trainer([net.weight], "sgd", {"learning_rate": 0.5})
    every = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    differentiate(net)
    some.step(1)
    every.step(1, ignore_stale_grad=True)
    assert (net.weight.data().asnumpy() == 0.5).all()
    assert (net.bias.data().asnumpy() == -0.5).all()


def test_a_program_says_which_gradients_are_new():
    net = model()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    weight = net.weight.data()
    assert not weight._fresh_grad
    weight.grad[:] = 1  # a gradient of the program's own
    for param in net.collect_params().values():
        param.data()._fresh_grad = True
    assert weight._fresh_grad
    trainer.step(1)
    assert not weight._fresh_grad
    assert weight.asnumpy().tolist() == [[0.0] * 3] * 2
    net.hybridize()
    differentiate(net)
    assert weight._fresh_grad
    weight._fresh_grad = False
    with pytest.raises(UserWarning, match="no new gradient"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert weight.asnumpy().tolist() == [[0.0] * 3] * 2
    weight.attach_grad()
    assert not weight._fresh_grad


def test_arrays_without_a_gradient_have_no_new_one():
    x = nd.ones(2)
    assert not x._fresh_grad
    with pytest.raises(GnomonError, match=r"_fresh_grad.*attach_grad"):
        x._fresh_grad = True


def test_states_saved_by_a_handler_amid_the_first_pass_leave_the_trainer_right(
    tmp_path, monkeypatch
):
    net = nn.Dense(2)
    net.initialize()
    trainer = Trainer(net.collect_params(), "adam")
    mark, came = mx.autograd.mark_variables, []

    def marked(*given):
        came.append(trainer.save_states(str(tmp_path / "states")))  # as a signal's handler does
        mark(*given)

    monkeypatch.setattr("gnomon.gluon.parameter.parameter.autograd.mark_variables", marked)
    before = None
    for _ in range(2):
        with mx.autograd.record():
            loss = net(nd.ones((4, 3))).sum()
        loss.backward()
        trainer.step(4)
        after = net.weight.data().asnumpy()
        assert before is None or (before != after).all()
        before = after
    assert came


def test_how_a_store_was_asked_for_is_told():
    net = mx.gluon.nn.Dense(1, in_units=1)
    trainer = Trainer(net.collect_params(), "sgd", kvstore="local", update_on_kvstore=False)
    assert trainer._kvstore_params == {"kvstore": "local", "update_on_kvstore": False}
