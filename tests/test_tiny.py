"""The whole story in a minute: read this first.

An expression, the loop it becomes, its gradient; an operator made of one; an array that the engine
orders; a symbol, bound to memory and trained for a few steps on tiny data, saved and loaded again.
"""

from __future__ import annotations

import numpy as np

import gnomon as mx
from gnomon import shadow
from gnomon.expr.diff import vjp
from gnomon.expr.oracle import evaluate
from gnomon.shadow import Tensor, fn


def test_an_expression_is_data_until_it_is_assigned():
    weight = Tensor(np.array([1, 2, 3], np.float32))
    grad = Tensor(np.array([10, 20, 30], np.float32))
    update = -0.1 * (grad + 0.5 * weight)  # nothing is computed: this is a tree
    assert update.tree().splitlines()[0] == "#6 mul 3 float32"
    weight[:] = update  # one loop, no temporaries
    np.testing.assert_allclose(weight.numpy(), [-1.05, -2.1, -3.15], rtol=1e-6)


def test_the_tree_becomes_a_loop():
    weight, grad = (Tensor(np.ones(3, np.float32)) for _ in range(2))
    shown = weight.explain(-0.1 * (grad + 0.5 * weight))
    assert shown == "parallel vector for i in 0..n0:\n  l1[i] = (a0 * (l0[i] + (a1 * l1[i])))"


def test_its_gradient_is_an_expression_too():
    x = Tensor(np.array([0.5, 1, 2], np.float32))
    (gradient,) = vjp([fn.tanh(x) * x], [Tensor(np.ones(3, np.float32))], [x])
    want = np.tanh(x.numpy()) + x.numpy() / np.cosh(x.numpy()) ** 2
    np.testing.assert_allclose(evaluate(gradient), want, rtol=1e-6)  # NumPy: what is right
    out = shadow.new_tensor((3,), gradient)  # the compiled loop
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)


def test_a_python_function_becomes_an_operator():
    @shadow.op
    def huber(x):
        return abs(x) - 0.5 if abs(x) > 1 else 0.5 * x * x

    x = Tensor(np.array([-3, 0.5, 2], np.float32))
    assert shadow.new_tensor((3,), huber(x)).numpy().tolist() == [2.5, 0.125, 1.5]
    assert shadow.new_tensor((3,), huber.grad(0)(x)).numpy().tolist() == [-1, 0.5, 1]


def test_the_engine_orders_what_reads_and_writes():
    engine, seen = mx.engine.get(), []
    variable = engine.new_variable()
    for k in range(3):
        engine.push_sync(lambda run_ctx, k=k: seen.append(k), mx.cpu(), (), (variable,))
    engine.wait_for_var(variable)
    assert seen == [0, 1, 2]


def test_arrays_compute_and_differentiate():
    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        y = (x * x).sum()
    y.backward()
    assert y.asscalar() == 30
    assert x.grad.asnumpy().tolist() == [[2, 4], [6, 8]]


def points() -> tuple[np.ndarray, np.ndarray]:
    """200 points of the plane, inside (1) or outside (0) of a ring."""
    where = np.random.default_rng(0).uniform(-1, 1, (200, 2)).astype(np.float32)
    return where, (np.linalg.norm(where, axis=1) > 0.7).astype(np.float32)


def network() -> mx.sym.Symbol:
    data = mx.sym.Variable("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=16, name="hidden")
    hidden = mx.sym.Activation(hidden, act_type="tanh")
    return mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(hidden, num_hidden=2, name="out"), name="softmax"
    )


def test_a_symbol_is_a_graph_that_infers_its_shapes():
    net = network()
    names = ["data", "hidden_weight", "hidden_bias", "out_weight", "out_bias", "softmax_label"]
    assert net.list_arguments() == names
    arguments, outputs, _ = net.infer_shape(data=(10, 2))
    assert arguments[1:5] == [(16, 2), (16,), (2, 16), (2,)]
    assert outputs == [(10, 2)]


def test_a_bound_symbol_is_a_program():
    bound = network().simple_bind(mx.cpu(), data=(4, 2))
    bound.arg_dict["data"][:] = 1.0
    (probabilities,) = bound.forward(is_train=True)
    assert probabilities.asnumpy().tolist() == [[0.5, 0.5]] * 4  # all weights are 0
    bound.backward()
    assert bound.grad_dict["out_bias"].asnumpy().tolist() == [-2, 2]


def test_training_saving_and_loading(tmp_path):
    mx.random.seed(0)
    data, label = points()
    batches = mx.io.NDArrayIter(data, label, batch_size=20, shuffle=False)
    model = mx.mod.Module(network(), context=mx.cpu())
    model.fit(
        batches,
        num_epoch=30,
        initializer=mx.init.Xavier(),
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.5, "momentum": 0.9},
    )
    ((_, accuracy),) = model.score(batches, "acc")
    assert accuracy > 0.9

    prefix = str(tmp_path / "ring")
    model.save_checkpoint(prefix, 30)
    again = mx.mod.Module.load(prefix, 30, context=mx.cpu())
    again.bind(batches.provide_data, batches.provide_label, for_training=False)
    np.testing.assert_array_equal(
        again.predict(batches).asnumpy(), model.predict(batches).asnumpy()
    )
