"""Steps of training as one native call: the same numbers as forward, backward and update apart."""

import numpy as np
import pytest
from golden.training import perceptron
from ndarray.noted_steps import begin_soon

import gnomon as mx
from gnomon import config, engine
from gnomon.executor import train_step
from gnomon.io import DataBatch
from gnomon.module import Module
from gnomon.ndarray.lazy.batch import Batch

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(6, 4)).astype(np.float32)
LABELS = (POINTS[:, 0] > 0).astype(np.float32)
OPTIMIZERS = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9, "wd": 0.1, "clip_gradient": 0.5}),
    ("nag", {"momentum": 0.5}),
    ("adam", {}),
    ("rmsprop", {"centered": True}),
    ("adagrad", {}),
    ("signum", {}),
]


def batch(scale=1.0):
    return DataBatch([mx.nd.array(POINTS * scale)], [mx.nd.array(LABELS)])


def module(optimizer="sgd", grad_req="write", kind=Module, symbol=None, **params):
    made = kind(perceptron(mx.sym) if symbol is None else symbol)
    made.bind([("data", (6, 4))], [("softmax_label", (6,))], grad_req=grad_req)
    mx.random.seed(7)
    made.init_params(mx.init.Uniform(0.5))
    made.init_optimizer(
        optimizer=optimizer, optimizer_params={"learning_rate": 0.1, **params}, kvstore=None
    )
    return made


def numbers(one):
    args, aux = one.get_params()
    return {k: v.asnumpy() for k, v in {**args, **aux}.items()}


def gradients(one):
    group = one._exec_group
    return {n: g[0].asnumpy() for n, g in zip(one._param_names, group.grad_arrays, strict=True)}


def assert_same(first, second):
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def apart(one, data):
    one.forward(data, is_train=True)
    one.backward()
    mx.nd.waitall()
    one.update()


def joined(one, data):
    one.forward_backward(data)
    one.update()


@pytest.fixture
def calls():
    """The names of what the engine runs."""
    names = []
    engine.get().observe(lambda name, *_: names.append(name))
    yield names
    engine.get().observe(None)


@pytest.mark.parametrize(("optimizer", "params"), OPTIMIZERS)
def test_joined_steps_give_the_numbers_of_separate_ones(optimizer, params):
    one, other = module(optimizer, **params), module(optimizer, **params)
    for k in range(4):
        apart(one, batch(1 + k))
        joined(other, batch(1 + k))
        if k == 1:
            for each in (one, other):
                each._optimizer.set_learning_rate(0.05)
    assert_same(numbers(one), numbers(other))
    assert_same(*({"out": x.get_outputs()[0].asnumpy()} for x in (one, other)))


def test_a_step_is_one_call(calls):
    one = module(momentum=0.9)
    joined(one, batch())  # makes the states
    mx.nd.waitall()
    calls.clear()
    for _ in range(3):
        joined(one, batch())
        mx.nd.waitall()
    names = [n for n in calls if "update" in n or "forward" in n or "load" in n]
    assert names == ["forward and backward and update"] * 3


def backward(weights, scale):
    """Gradients of the sum of some products."""
    with mx.autograd.record():
        x = mx.nd.array(POINTS * scale)
        loss = sum((mx.nd.dot(x, w, transpose_b=True) ** 2).mean() for w in weights)
    loss.backward()


def test_an_update_behind_a_pass_that_runs_already_is_a_call_of_its_own(monkeypatch):
    """A long pass is not held back; its update goes behind it as bound work, not array by array."""
    begin_soon(monkeypatch)
    monkeypatch.setattr(train_step, "WOKEN", 0)
    pushed, push = [], Batch.push
    monkeypatch.setattr(Batch, "push", lambda *a, **k: pushed.append(a[0].name) or push(*a, **k))
    found = []
    for programs in (False, True):
        weights = [mx.nd.array(np.full((3, 4), k + 1)) for k in range(3)]
        for w in weights:
            w.attach_grad()
        update = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.1))
        for step in range(6):
            pushed.clear()
            with config.using(programs=programs):
                backward(weights, step + 1)
                update([0, 1, 2], [w.grad for w in weights], weights)
        found.append([w.asnumpy() for w in weights])
        assert ("update" in pushed) is not programs
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_gradients_and_outputs_can_be_read_before_and_after_the_update():
    one, other = module(), module()
    apart(one, batch())
    other.forward_backward(batch())
    before = numbers(other)
    grads = gradients(other)
    other.update()
    assert_same(grads, gradients(one))
    assert_same(numbers(one), numbers(other))
    assert any((before[k] != v).any() for k, v in numbers(other).items())


def test_what_is_pushed_between_comes_between():
    one = module()
    one.forward_backward(batch())
    grads = [g[0] for g in one._exec_group.grad_arrays]
    start = numbers(one)
    for grad in grads:
        grad[:] = 0
    one.update()
    assert_same(start, numbers(one))


def test_what_reads_gradients_lazily_sees_those_of_the_step():
    one, other = module(), module()
    for each in (one, other):
        each.forward_backward(batch())
        mx.nd.waitall()
    one.forward_backward(batch(2))
    twice = one._exec_group.grad_arrays[0][0] * 2
    one.update()
    apart(other, batch(2))
    expected = other._exec_group.grad_arrays[0][0].asnumpy() * 2
    np.testing.assert_array_equal(twice.asnumpy(), expected)


def test_gradients_that_add_up(calls):
    one, other = module(grad_req="add"), module(grad_req="add")
    for each, step in ((one, apart), (other, joined)):
        for _ in range(3):
            step(each, batch())
    assert_same(numbers(one), numbers(other))


def test_data_of_another_dtype_or_layout_is_copied():
    one, other = module(), module()
    joined(one, batch())
    turned = mx.nd.array(POINTS.T).T
    joined(other, DataBatch([turned], [mx.nd.array(LABELS, dtype="int32")]))
    assert_same(numbers(one), numbers(other))


def test_the_batch_may_change_after_the_call():
    one, other = module(), module()
    data = batch()
    one.forward_backward(data)
    data.data[0][:] = 7
    one.update()
    joined(other, batch())
    assert_same(numbers(one), numbers(other))


def test_half_floats_keep_their_master_copies():
    def net():
        data = mx.sym.Cast(mx.sym.Variable("data"), dtype="float16")
        fc = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
        return mx.sym.SoftmaxOutput(mx.sym.Cast(fc, dtype="float32"), name="softmax")

    settings = {"momentum": 0.9, "multi_precision": True}
    one, other = (module(symbol=net(), **settings) for _ in range(2))
    for _ in range(3):
        apart(one, batch())
        joined(other, batch())
    assert_same(numbers(one), numbers(other))


def test_loaded_states_are_used(tmp_path):
    one, other = module(momentum=0.9), module(momentum=0.9)
    joined(one, batch())
    one.save_optimizer_states(str(tmp_path / "states"))
    joined(other, batch())
    joined(other, batch(3))
    other.set_params(*one.get_params())
    other.load_optimizer_states(str(tmp_path / "states"))
    for each in (one, other):
        joined(each, batch())
    assert_same(numbers(one), numbers(other))


def test_a_module_of_the_users_keeps_its_own_passes():
    class Counting(Module):
        passes = 0

        def forward(self, data_batch, is_train=None):
            self.passes += 1
            super().forward(data_batch, is_train)

    one = module(kind=Counting)
    joined(one, batch())
    assert one.passes == 1


def test_dropout_draws_as_before():
    def net():
        x = mx.sym.Dropout(mx.sym.Variable("data"), p=0.5)
        fc = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
        return mx.sym.SoftmaxOutput(fc, name="softmax")

    found = []
    for step in (apart, joined):
        one = module(symbol=net())
        mx.random.seed(3)
        for _ in range(3):
            step(one, batch())
        found.append(numbers(one))
    assert_same(*found)


def test_feeds_must_fit():
    one = module()
    executor = one._exec_group.execs[0]
    with pytest.raises(mx.base.MXNetError, match=r"expected shape \(6, 4\), got shape \(6,\)"):
        executor.forward_backward([(executor.arg_dict["data"], mx.nd.array(LABELS))])
