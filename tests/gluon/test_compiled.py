"""Compiled blocks on the tape: several calls, gradients of gradients, other arrays, other modes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import GnomonError
from gnomon.gluon import HybridBlock, Trainer, nn


def dense(units=3, hybrid=True, **kwargs):
    layer = nn.Dense(units, **kwargs)
    layer.initialize(mx.init.Normal(1.0))
    if hybrid:
        layer.hybridize()
    return layer


def twins(make, *inputs):
    """A plain and a hybridized block with the same parameters."""
    plain, hybrid = make(), make()
    for net in (plain, hybrid):
        net.initialize(mx.init.Normal(0.7))
        net(*inputs)
    mine, theirs = plain.collect_params().values(), hybrid.collect_params().values()
    for one, other in zip(mine, theirs, strict=True):
        other.set_data(one.data())
    hybrid.hybridize()
    return plain, hybrid


def rows(seed=0, shape=(2, 4)):
    return nd.array(np.random.default_rng(seed).standard_normal(shape))


def grads(net):
    return [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def both(make, run, *inputs):
    """`run(net)` gives the same for a plain and a hybridized net, as do gradients."""
    plain, hybrid = twins(make, *inputs)
    same(run(hybrid), run(plain))
    same(grads(hybrid), grads(plain))


def test_two_calls_before_backward():
    def run(net):
        with mx.autograd.record():
            loss = (net(rows(1)) * net(rows(2))).sum()
        loss.backward()
        return [loss.asnumpy()]

    both(lambda: nn.Dense(3, activation="tanh"), run, rows())


def test_a_parameter_read_beside_the_network():
    def run(net):
        with mx.autograd.record():
            loss = net(rows()).sum() + (net.weight.data() ** 2).sum()
        loss.backward()
        return [loss.asnumpy()]

    both(lambda: nn.Dense(3), run, rows())


@pytest.mark.parametrize("req", ["write", "add"])
def test_two_blocks_share_parameters(req):
    def make():
        first = nn.Dense(4, in_units=4, prefix="one_")
        net = nn.Sequential()
        net.add(first, nn.Lambda("relu"), nn.Dense(4, in_units=4, params=first.params))
        return net

    def run(net):
        net.collect_params().setattr("grad_req", req)
        for _ in range(2):
            with mx.autograd.record():
                loss = (net(rows()) ** 2).sum()
            loss.backward()
        return [loss.asnumpy()]

    plain, hybrid = twins(make, rows())
    same(run(hybrid), run(plain))
    same(grads(hybrid), grads(plain))


def test_gradients_of_inputs_and_of_what_was_before():
    def run(net):
        x, w = rows(), nd.array([[0.5, 2, -1, 1]])
        x.attach_grad()
        w.attach_grad("add")
        for _ in range(2):
            with mx.autograd.record():
                loss = (net(x * w) + net(w)).sum()
            loss.backward()
        return [x.grad.asnumpy(), w.grad.asnumpy()]

    both(lambda: nn.Dense(3, activation="sigmoid"), run, rows())


@pytest.mark.parametrize("with_network", [False, True])
def test_an_input_that_is_trained(with_network):
    """As in style transfer: the update reads, right behind, what backward writes elsewhere."""

    def trained(hybrid):
        net, image = dense(hybrid=False, in_units=4), mx.gluon.Parameter("image", shape=(2, 4))
        net.weight.set_data(rows(1, (3, 4)))
        net.hybridize(hybrid)
        image.initialize()
        image.set_data(rows(2))
        more = list(net.collect_params().values()) if with_network else []
        trainer = Trainer([image, *more], "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            with mx.autograd.record():
                y = net(image.data())
            y.backward()
            trainer.step(1)
        return [x.asnumpy() for x in (image.data(), image.grad(), net.weight.data())]

    for found, expected in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_gradient_that_lies_where_the_head_s_does():
    net = dense(4, in_units=4)
    results = []
    for shared in (False, True):
        x = rows(3)
        head = rows(4)
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
        if shared:
            x.grad[:] = head
            head = x.grad
        y.backward(head)
        results.append([x.grad.asnumpy(), net.weight.grad().asnumpy()])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_input_with_a_gradient_that_is_added():
    def run(net):
        x = rows()
        x.attach_grad("add")
        for _ in range(3):
            with mx.autograd.record():
                loss = net(x).sum()
            loss.backward()
        return [x.grad.asnumpy()]

    both(lambda: nn.Dense(3), run, rows())


def test_grad_leaves_gradients_alone():
    net, x = dense(in_units=4), rows()
    x.attach_grad()
    with mx.autograd.record():
        y = net(x).sum()
    net.weight.grad()[:] = 7
    weight, data = mx.autograd.grad([y], [net.weight.data(), x])
    np.testing.assert_allclose(data.asnumpy(), np.tile(net.weight.data().asnumpy().sum(0), (2, 1)))
    np.testing.assert_allclose(weight.asnumpy(), np.tile(x.asnumpy().sum(0), (3, 1)), rtol=1e-5)
    assert (net.weight.grad().asnumpy() == 7).all()


def test_gradients_of_gradients():
    def run(net):
        x = rows()
        x.attach_grad()
        with mx.autograd.record():
            y = net(x).sum()
            (first,) = mx.autograd.grad([y], [x], create_graph=True)
            loss = (first**2).sum()
        loss.backward()
        return [x.grad.asnumpy(), first.asnumpy()]

    both(lambda: nn.Dense(3, activation="tanh"), run, rows())


def test_retain_graph():
    net, x = dense(in_units=4, activation="tanh"), rows()
    with mx.autograd.record():
        y = net(x)
    y.backward(retain_graph=True)
    first = grads(net)
    y.backward(nd.ones(y.shape) * 2)
    same(grads(net), [2 * g for g in first])
    with pytest.raises(GnomonError, match="followed already"):
        y.backward()


def test_outputs_are_not_overwritten():
    net = dense(in_units=4)
    outputs = [net(rows(k)) for k in range(3)]
    same([x.asnumpy() for x in outputs], [net(rows(k)).asnumpy() for k in range(3)])


def test_input_changed_before_backward_counts_as_it_was():
    net, x = dense(in_units=4), rows()
    with mx.autograd.record():
        y = net(x)
    expected = np.tile(x.asnumpy().sum(0), (3, 1))
    x[:] = 100
    y.backward()
    np.testing.assert_allclose(net.weight.grad().asnumpy(), expected, rtol=1e-5)


def test_predicting_and_training_differ():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5), nn.BatchNorm(momentum=0.0))
    net.initialize()
    net.hybridize()
    x = nd.ones((400, 2))
    quiet = net(x).asnumpy()
    assert (quiet == quiet[0]).all()
    with mx.autograd.record():
        outputs = net(x), net(x)
    first, second = (y.asnumpy() for y in outputs)
    assert (first != second).any()
    outputs[0].backward()
    assert abs(net[1].running_mean.data().asnumpy() - 1).max() < 0.3
    with mx.autograd.train_mode():
        assert np.unique(net(x).asnumpy()).size > 1
    with mx.autograd.record(train_mode=False):
        y = net(x)
    assert np.unique(y.asnumpy().round(3)).size <= 2
    y.backward()


def test_traced_anew_after_cast_and_requests():
    net, x = dense(in_units=4), rows()
    net(x)
    net.cast("float64")
    assert net(x.astype("float64")).dtype == np.float64
    net.cast("float32")
    net.weight.grad_req = "null"
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert net.weight._grad is None
    np.testing.assert_allclose(net.bias.grad().asnumpy(), [2, 2, 2])
    net.weight.grad_req = "add"
    for _ in range(2):
        with mx.autograd.record():
            y = net(x)
        y.backward()
    np.testing.assert_allclose(
        net.weight.grad().asnumpy(), 2 * np.tile(x.asnumpy().sum(0), (3, 1)), rtol=1e-5
    )
    net.initialize(mx.init.One(), force_reinit=True)
    np.testing.assert_allclose(net(x).asnumpy()[:, 0], x.asnumpy().sum(1), rtol=1e-5)


class Sum(HybridBlock):
    """As many inputs as are given."""

    def hybrid_forward(self, F, x, *others):
        return F.add_n(x, *others) if others else x


def test_another_number_of_inputs():
    net, x = Sum(), rows()
    net.hybridize()
    for count in (1, 3, 2, 1):
        same([net(*[x] * count).asnumpy()], [count * x.asnumpy()])


def test_hybridize_off_again():
    net, x = dense(in_units=4), rows()
    expected = net(x).asnumpy()
    net.hybridize(False)
    assert not net._active
    same([net(x).asnumpy()], [expected])


@pytest.mark.parametrize("flags", [{"static_alloc": True, "static_shape": True},
                                   {"inline_limit": 0, "forward_bulk_size": 4,
                                    "backward_bulk_size": 4}])  # fmt: skip
def test_flags(flags):
    net, x = dense(in_units=4), rows()
    expected = net(x).asnumpy()
    net.hybridize(True, **flags)
    same([net(x).asnumpy()], [expected])


def test_op_hooks():
    net, told = nn.HybridSequential(prefix="n_"), []
    with net.name_scope():
        net.add(nn.Dense(3, activation="relu"))
    net.initialize()
    net.hybridize()
    net.register_op_hook(lambda name, op, array: told.append((name, op, array.shape)))
    net(rows())
    assert told == [
        ("n_dense0_fwd_output", "FullyConnected", (2, 3)),
        ("n_dense0_relu_fwd_output", "Activation", (2, 3)),
    ]


def test_strided_and_pending_inputs():
    net, x = dense(in_units=4), rows(shape=(4, 8))
    view, pending = x[1:3, ::2], x[:2, :4] * 2 + 1
    expected = view.asnumpy() @ net.weight.data().asnumpy().T + net.bias.data().asnumpy()
    same([net(view).asnumpy()], [expected])
    expected = (x.asnumpy()[:2, :4] * 2 + 1) @ net.weight.data().asnumpy().T
    same([net(pending).asnumpy()], [expected + net.bias.data().asnumpy()])


def test_several_contexts():
    ctxs = [mx.cpu(0), mx.cpu(1)]
    net = nn.Dense(2, in_units=3, weight_initializer="ones")
    net.initialize(ctx=ctxs)
    net.hybridize()
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    parts = mx.gluon.utils.split_and_load(nd.ones((4, 3)), ctxs)
    with mx.autograd.record():
        losses = [net(x).sum() for x in parts]
    for loss in losses:
        loss.backward()
    trainer.step(4)
    for weight in net.weight.list_data():
        np.testing.assert_allclose(weight.asnumpy(), np.full((2, 3), 0.5))


class Custom(mx.operator.CustomOp):
    """Squares."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@mx.operator.register("gluon_square")
class CustomProp(mx.operator.CustomOpProp):
    """What makes `Custom`."""

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Custom()


def test_operators_of_users():
    class Net(HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3)

        def hybrid_forward(self, F, x):
            return F.Custom(self.dense(x), op_type="gluon_square")

    def run(net):
        with mx.autograd.record():
            y = net(rows())
        y.backward()
        return [y.asnumpy()]

    both(Net, run, rows())


def test_sparse_gradients():
    def run(net):
        with mx.autograd.record():
            y = net(nd.array([[1, 2], [1, 0]]))
        y.backward()
        assert net.weight.grad().stype == "row_sparse"
        return [y.asnumpy(), net.weight.grad().asnumpy()]

    make = lambda: nn.Embedding(6, 2, sparse_grad=True)  # noqa: E731
    plain, hybrid = twins(make, nd.array([[0]]))
    same(run(hybrid), run(plain))


def test_threads_share_a_block():
    net = dense(in_units=4, activation="tanh")
    inputs = [rows(k) for k in range(8)]
    expected = [net(x).asnumpy() for x in inputs]

    def work(number):
        for _ in range(20):
            x = inputs[number]
            same([net(x).asnumpy()], [expected[number]])
            with mx.autograd.record():
                y = net(x)
            same([y.asnumpy()], [expected[number]])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.native
def test_small_parameters_lie_together_and_views_stay():
    net, x = nn.HybridSequential(), rows()
    net.add(nn.Dense(3, in_units=4), nn.Dense(2, in_units=3))
    net.initialize(mx.init.One())
    view = net[1].weight.data()[0]
    net.hybridize()
    net(x)
    first, second, seen = (p.data() for p in (net[0].weight, net[0].bias, net[1].weight))
    assert first._chunk is second._chunk
    assert seen._chunk is not first._chunk
    view[:] = 5
    assert seen.asnumpy()[0].tolist() == [5, 5, 5]
    first[:] = 0
    second[:] = 1
    assert net(x).asnumpy()[0].tolist() == [15, 3]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_states_go_from_step_to_step(fused, hybridize):
    """Without `detach`, as programs for MXNet 1.9.1 have it; its numbers."""
    rnn = mx.gluon.rnn
    net = rnn.LSTM(4) if fused else rnn.LSTMCell(4, input_size=5)
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize()
    states, found = net.begin_state(batch_size=2), []
    data = nd.ones((3, 2, 5)) if fused else nd.full((2, 5), 0.1)
    weight = net.l0_h2h_weight if fused else net.h2h_weight
    for _ in range(3):
        with mx.autograd.record():
            output, states = net(data, states)
            loss = output.mean()
        loss.backward()
        found.append(weight.grad().sum().asscalar())
    expected = [0.000562, 0.000498, 0.000494] if fused else [0, 0.20642, 0.156685]
    np.testing.assert_allclose(found, expected, atol=1e-6)


class Picking(HybridBlock):
    """A layer on the rows that a mask names: values decide how many these are."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2)

    def hybrid_forward(self, F, data, mask):
        return self.dense(F.contrib.boolean_mask(data, mask)) * 2


def test_values_decide_shapes():
    data, first = rows(shape=(4, 3)), nd.array([1, 0, 1, 0])
    plain, hybrid = twins(Picking, data, first)
    data.attach_grad()
    for mask in first, nd.array([0, 1, 1, 1]), nd.zeros(4):
        found = []
        for net in plain, hybrid:
            with mx.autograd.record():
                out = net(data, mask)
            out.backward()
            weights = net.dense.weight.grad()
            found.append([x.asnumpy() for x in (out, data.grad, weights, net(data, mask))])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
