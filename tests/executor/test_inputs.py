"""Batches that are read where they lie: nobody can tell but by the time."""

import gc

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.executor.inputs import Input
from gnomon.executor.programs import program
from gnomon.runtime.kernels.template import blocks_of

RNG = np.random.default_rng(5)


def values(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def perceptron():
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=5, name="fc1")
    x = mx.sym.Activation(x, act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="fc2"), name="softmax")


def bound(symbol=None, train=True, **shapes):
    symbol = perceptron() if symbol is None else symbol
    shapes = shapes or {"data": (4, 6)}
    requests = {
        n: "null" if n in (*shapes, "softmax_label") else "write" for n in symbol.list_arguments()
    }
    made = symbol.simple_bind(mx.cpu(), grad_req=requests if train else "null", **shapes)
    rng = np.random.default_rng(1)
    for name, array in made.arg_dict.items():
        if name not in shapes:
            array[:] = rng.normal(size=array.shape) * 0.5
    return made


def hidden(executor, name="data"):
    return type(executor.arg_dict[name]._pending_in) is Input


def lies(executor, name="data"):
    """The array that the executor reads in place of its own."""
    window = executor.arg_dict[name]._pending_in
    return window.source if type(window) is Input else None


def run(executor, data, train=True):
    out = executor.forward(is_train=train, data=data)[0].asnumpy()
    if train:
        executor.backward()
        return [out, *(g.asnumpy() for g in executor.grad_arrays if g is not None)]
    return [out]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def copied(symbol, batch, train=True, **shapes):
    """What an executor gives whose array was looked at, so that batches are copied."""
    other = bound(symbol, train, **shapes)
    other.arg_dict["data"].asnumpy()
    found = run(other, batch, train)
    assert not hidden(other)
    return found


@pytest.mark.parametrize("train", [False, True])
def test_a_batch_is_read_where_it_lies(train):
    one = bound(train=train)
    for _ in range(3):
        batch = mx.nd.array(values(4, 6))
        out = one.forward(is_train=train, data=batch)[0].asnumpy()
        assert lies(one)._address == batch._address
        np.testing.assert_array_equal(out, copied(None, batch, train)[0])
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), batch.asnumpy())
    assert not hidden(one)
    batch = mx.nd.array(values(4, 6))
    assert_equal(run(one, batch, train), copied(None, batch, train))
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), batch.asnumpy())


def test_the_blocks_of_a_step_are_asked_for_once(monkeypatch):
    """Where inputs and outputs stand in a program is looked up in what was found for the first."""
    asked = []
    monkeypatch.setattr(program, "blocks_of", lambda step: (asked.append(step), blocks_of(step))[1])
    net = mx.gluon.nn.Dense(3, in_units=6)
    net.initialize()
    net.hybridize()
    x = mx.nd.array(values(4, 6))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert len(asked) == len(set(map(id, asked))) > 0


def test_a_write_to_the_batch_changes_nothing():
    one, batch = bound(), mx.nd.array(values(4, 6))
    before = batch.asnumpy()
    expected = copied(None, batch)
    out = one.forward(is_train=True, data=batch)[0]
    batch[:] = 7
    one.backward()
    found = [out.asnumpy(), *(g.asnumpy() for g in one.grad_arrays if g is not None)]
    assert_equal(found, expected)
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), before)


@pytest.mark.parametrize("write", ["set", "in place", "out", "item", "view"])
def test_every_write_brings_the_copy_first(write):
    one, batch = bound(), mx.nd.array(values(4, 6))
    before = batch.asnumpy()
    view = batch[1:2]
    one.forward(is_train=True, data=batch)
    if write == "set":
        batch[:] = mx.nd.ones((4, 6))
    elif write == "in place":
        batch += 1
    elif write == "out":
        mx.nd.exp(batch, out=batch)
    elif write == "item":
        batch[2, 3] = 9
    else:
        view[:] = 4
    assert lies(one) is None
    mx.nd.waitall()
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), before)
    assert not np.array_equal(batch.asnumpy(), before)


def test_forward_without_a_batch_takes_the_last_one():
    one, batch = bound(), mx.nd.array(values(4, 6))
    first = one.forward(data=batch)[0].asnumpy()
    batch[:] = 0
    np.testing.assert_array_equal(one.forward()[0].asnumpy(), first)
    one.forward(data=batch)
    one.arg_dict["data"][:] = 1
    ones = one.forward()[0].asnumpy()
    np.testing.assert_array_equal(ones, copied(None, mx.nd.ones((4, 6)), train=False)[0])


def test_the_batch_may_go():
    one, data = bound(), values(4, 6)
    one.forward(is_train=True, data=mx.nd.array(data))
    gc.collect()
    rubbish = [mx.nd.full((4, 6), 3.0) for _ in range(20)]
    one.backward()
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), data)
    del rubbish, one
    gc.collect()


def test_an_executor_that_is_gone_is_not_reminded():
    batch = mx.nd.array(values(4, 6))
    bound().forward(data=batch)
    gc.collect()
    batch += 1
    batch.wait_to_read()
    assert not batch._chunk.pending_readers


def test_a_batch_of_other_kinds_is_copied():
    one, data = bound(), np.arange(24).reshape(4, 6)
    for given in (data, mx.nd.array(data, dtype="int32")):
        out = one.forward(data=given)[0].asnumpy()
        assert lies(one) is None
        np.testing.assert_array_equal(out, copied(None, mx.nd.array(data), train=False)[0])
        batch = mx.nd.array(values(4, 6))
        one.forward(data=batch)
        assert lies(one) is not None  # and the next one is not


def test_memory_that_others_write_is_copied():
    one = bound()
    other = np.ascontiguousarray(values(4, 6))
    shared = mx.nd.from_numpy(other, zero_copy=True)
    one.forward(is_train=True, data=shared)
    assert lies(one) is None


def test_what_is_bound_may_be_fed():
    x = mx.sym.Variable("data")
    one = (x * 2 + 1).simple_bind(mx.cpu(), grad_req="null", data=(3,))
    out = one.forward(data=mx.nd.array([1, 2, 3]))[0]
    for _ in range(3):
        before = out.asnumpy()
        one.forward(data=out)
        np.testing.assert_array_equal(out.asnumpy(), 2 * before + 1)
    one.forward(data=one.arg_dict["data"])
    np.testing.assert_array_equal(out.asnumpy(), 2 * before + 1)


def test_a_batch_may_be_fed_to_two_arguments():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    one = (a - 2 * b).simple_bind(mx.cpu(), grad_req="null", a=(3,), b=(3,))
    batch = mx.nd.array([1, 2, 3])
    np.testing.assert_array_equal(one.forward(a=batch, b=batch)[0].asnumpy(), [-1, -2, -3])
    one.forward(a=mx.nd.zeros((3,)))
    np.testing.assert_array_equal(one.outputs[0].asnumpy(), [-2, -4, -6])
    batch[:] = 5
    one.forward(a=batch)
    np.testing.assert_array_equal(one.outputs[0].asnumpy(), [3, 1, -1])
    # in order: b gets what a holds then
    one.forward(a=mx.nd.ones((3,)), b=one.arg_dict["a"])
    np.testing.assert_array_equal(one.outputs[0].asnumpy(), [-1, -1, -1])


def test_executors_that_share_arrays_see_the_batch():
    one, batch = bound(train=False), mx.nd.array(values(4, 6))
    out = one.forward(data=batch)[0].asnumpy()
    other = one._symbol.bind(mx.cpu(), one.arg_dict)
    np.testing.assert_array_equal(other.forward()[0].asnumpy(), out)
    assert not hidden(one)
    one = bound(train=False)
    one.forward(data=batch)
    np.testing.assert_array_equal(one.reshape(data=(4, 6)).forward()[0].asnumpy(), out)
    smaller = one.reshape(data=(2, 6), partial_shaping=True)
    np.testing.assert_allclose(smaller.forward()[0].asnumpy(), out[:2], rtol=1e-5)


@pytest.mark.parametrize("setting", ["programs", "passes"])
def test_settings_change_nothing(setting):
    one, batch = bound(), mx.nd.array(values(4, 6))
    expected = run(one, batch)
    with config.using(**{setting: False}):
        other = bound()
        for found, exact in zip(run(other, batch), expected, strict=True):
            np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(other.arg_dict["data"].asnumpy(), batch.asnumpy())


def test_monitors_and_reports_see_the_batch(tmp_path):
    one, batch = bound(), mx.nd.array(values(4, 6))
    one.forward(is_train=True, data=batch)
    one.report(tmp_path / "page.html")
    seen = {}
    one.set_monitor_callback(lambda name, array: seen.update({name: array.asnumpy()}), True)
    one.forward(is_train=True)
    np.testing.assert_array_equal(seen["data"], batch.asnumpy())
    again = mx.nd.array(values(4, 6))
    one.forward(is_train=True, data=again)
    np.testing.assert_array_equal(seen["data"], again.asnumpy())


def test_the_naive_engine_reads_it_too():
    batch = mx.nd.array(values(4, 6))
    expected = copied(None, batch)
    mx.nd.waitall()
    with config.using(engine_type="NaiveEngine"):
        one = bound()
        assert_equal(run(one, batch), expected)


def test_a_step_that_is_held_back_keeps_its_batch():
    module = mx.mod.Module(perceptron())
    module.bind([("data", (4, 6))], [("softmax_label", (4,))])
    module.init_params(mx.init.Uniform(0.5))
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    start = {k: v.copy() for k, v in module.get_params()[0].items()}
    data, label = mx.nd.array(values(4, 6)), mx.nd.array([0, 1, 2, 0])
    module.forward_backward(mx.io.DataBatch([data], [label]))
    data[:] = 0
    label[:] = 2
    module.update()
    other = {k: v.asnumpy() for k, v in module.get_params()[0].items()}
    module.set_params(start, {})
    assert not np.array_equal(data.asnumpy(), module._exec_group.data_arrays[0][0].asnumpy())
    kept = module._exec_group.data_arrays[0][0].copy(), mx.nd.array([0, 1, 2, 0])
    module.forward_backward(mx.io.DataBatch([kept[0]], [kept[1]]))
    module.update()
    for name, value in module.get_params()[0].items():
        np.testing.assert_array_equal(value.asnumpy(), other[name], err_msg=name)


D = mx.sym.Variable("data")
NETS = {
    "views": mx.sym.Flatten(mx.sym.Reshape(D, shape=(0, -1, 2))) * 3,
    "itself": mx.sym.identity(D),
    "slices": mx.sym.slice_axis(D, axis=1, begin=1, end=5)
    + mx.sym.reverse(D, axis=1).slice_axis(axis=1, begin=0, end=4),
    "turned": mx.sym.dot(mx.sym.transpose(D), D),
    "convolution": mx.sym.Pooling(
        mx.sym.Activation(
            mx.sym.Convolution(
                mx.sym.Reshape(D, shape=(0, 1, 2, 3)), kernel=(3, 3), pad=(1, 1), num_filter=4
            ),
            act_type="relu",
        ),
        kernel=(2, 2),
        pool_type="max",
    ),
    "padded": mx.sym.Pad(
        mx.sym.Reshape(D, shape=(0, 1, 2, 3)),
        mode="constant",
        pad_width=(0, 0, 0, 0, 2, 1, 1, 2),
        constant_value=1,
    ),
    "twice": mx.sym.broadcast_add(
        mx.sym.FullyConnected(D, num_hidden=3, name="f"), mx.sym.sum(D, axis=1, keepdims=True)
    ),
    "norm": mx.sym.softmax(mx.sym.BatchNorm(D, name="bn", fix_gamma=False)),
    "recurrent": mx.sym.RNN(
        mx.sym.Reshape(D, shape=(0, 2, 3)),
        state_size=4,
        num_layers=1,
        mode="lstm",
        parameters=mx.sym.Variable("p"),
        state=mx.sym.Variable("s"),
        state_cell=mx.sym.Variable("c"),
    ),
    "rows": mx.sym.Embedding(D, input_dim=9, output_dim=3, name="rows"),
}


@pytest.mark.parametrize("name", NETS)
def test_any_network_reads_it(name):
    symbol = mx.sym.MakeLoss(NETS[name]) if name != "itself" else NETS[name]
    train = name not in ("itself", "views", "slices", "turned", "padded")
    one = bound(symbol, train, data=(4, 6))
    batches = [mx.nd.array(np.abs(values(4, 6)) * 3) for _ in range(3)]
    for batch in (*batches, batches[0]):
        assert_equal(run(one, batch, train), copied(symbol, batch, train, data=(4, 6)))
    np.testing.assert_array_equal(one.arg_dict["data"].asnumpy(), batches[0].asnumpy())
