"""Heads and gradients at their edges: dtypes, monitors, draws of modes, errors that travel."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import EngineError, ParamError

nd, sym = mx.nd, mx.sym


def test_more_heads_than_the_operator_has_are_refused():
    executor = (sym.Variable("x") * 2).simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True)
    with pytest.raises(ParamError, match="at most 1, got 2"):
        executor.backward([nd.ones((2,))] * 2)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("request_type", ["write", "add"])
def test_a_gradient_of_another_dtype_is_converted(dtype, request_type):
    x, length = sym.Variable("x"), sym.Variable("length")
    net = sym.softmax(x, length, axis=1, use_length=True) * x
    values = np.arange(6.0).reshape(2, 3) / 4
    args = {"x": nd.array(values, dtype=dtype), "length": nd.array([2, 3], dtype="int32")}
    found = {}
    for kind in ("float32", dtype):
        grads = {"x": nd.full((2, 3), 5, dtype=kind)}
        executor = net.bind(mx.cpu(), args, grads, request_type)
        executor.forward(is_train=True)
        executor.backward(nd.ones((2, 3), dtype=dtype))
        found[kind] = grads["x"].asnumpy()
    assert found["float32"].dtype == np.float32
    np.testing.assert_allclose(found["float32"], found[dtype], 2e-2 if dtype == "float16" else 1e-5)


def test_an_array_for_a_gradient_that_is_not_wanted_is_kept():
    x, y = sym.Variable("x"), sym.Variable("y")
    kept, ones = nd.full((2,), 9), nd.ones((2,))
    args = {"x": ones, "y": ones * 3}
    executor = (x * y).bind(
        mx.cpu(), args, {"x": kept, "y": nd.zeros((2,))}, {"x": "null", "y": "write"}
    )
    executor.forward(is_train=True)
    executor.backward(ones)
    assert executor.grad_arrays[0] is executor.grad_dict["x"] is kept
    assert kept.asnumpy().tolist() == [9, 9]
    assert executor.grad_dict["y"].asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("everything", [False, True])
def test_monitors_are_told_of_the_gradients_of_outputs(everything):
    x = sym.Variable("data", shape=(2, 3))
    net = sym.Group([sym.exp(x, name="a"), sym.SoftmaxOutput(sym.tanh(x, name="b"), name="s")])
    executor, told = net.simple_bind(mx.cpu()), {}
    executor.set_monitor_callback(told.__setitem__, monitor_all=everything)
    executor.forward(is_train=True)
    told.clear()
    executor.backward([nd.full((2, 3), 7), None])
    ends = ["", "_id_lhs", "_id_rhs", "_id_output"] if everything else ["_id_output"]
    heads = [name for name in told if "head" in name]
    assert heads == [f"_head_grad_0{end}" for end in ends]
    assert (told["_head_grad_0_id_output"].asnumpy() == 7).all()


def test_backward_takes_the_mask_that_the_last_forward_showed():
    net = sym.Dropout(sym.Variable("x"), p=0.5, mode="always")
    executor = net.simple_bind(mx.cpu(), x=(40, 40))
    executor.arg_dict["x"][:] = 1
    for train in (True, False, True, False):
        executor.forward(is_train=train)
        executor.backward(nd.ones((40, 40)), is_train=train)
        found = executor.outputs[0].asnumpy()
        np.testing.assert_array_equal(found, executor.grad_dict["x"].asnumpy())
        assert 0 < (found == 0).mean() < 1


@pytest.mark.parametrize("name", ["gather_nd", "take"])
def test_an_index_out_of_bounds_is_told_at_the_wait_and_healed(name):
    x, at = sym.Variable("x"), sym.Variable("at")
    given = {"gather_nd": ([[0, 1]], [[0, 3]]), "take": ([0, 1], [3, 0])}[name]
    found = sym.gather_nd(x * 2, at) if name == "gather_nd" else sym.take(x * 2, at, mode="raise")
    args = {"x": nd.array([[1, 2], [3, 4], [5, 6]]), "at": nd.array(given[0])}
    executor = sym.exp(found).bind(mx.cpu(), args, {"x": nd.zeros((3, 2))})
    expected = np.exp(2 * args["x"].asnumpy()[:2])
    for _ in range(2):
        executor.arg_dict["at"][:] = nd.array(given[0])
        np.testing.assert_allclose(executor.forward(is_train=True)[0].asnumpy(), expected, 1e-5)
        executor.backward(nd.ones((2, 2)))
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy()[:2], 2 * expected, 1e-5)
        executor.arg_dict["at"][:] = nd.array(given[1])
        executor.forward()
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0") as told:
            executor.outputs[0].asnumpy()
        assert isinstance(told.value, EngineError)


def test_smaller_outputs_of_reshape_share_memory():
    net = sym.exp(sym.Variable("x"))
    executor = net.simple_bind(mx.cpu(), x=(4, 2))
    smaller = executor.reshape(x=(2, 2))
    larger = executor.reshape(x=(5, 2), allow_up_sizing=True)
    executor.forward(x=nd.zeros((4, 2)))
    smaller.forward(x=nd.full((2, 2), -np.inf))
    assert executor.outputs[0].asnumpy().tolist() == [[0, 0]] * 2 + [[1, 1]] * 2
    larger.forward(x=nd.full((5, 2), -np.inf))
    assert executor.outputs[0].asnumpy().tolist() == [[0, 0]] * 2 + [[1, 1]] * 2


def test_shapes_that_are_missing_are_named():
    left, right = (mx.sym.FullyConnected(mx.sym.var(n), num_hidden=3, name=f"of_{n}") for n in "ab")
    net = left + right
    with pytest.raises(mx.MXNetError, match=r"give some: a \(None\), .*no input is called 'A'"):
        net.simple_bind(mx.cpu(), A=(2, 4), b=(2, 4))
    bound = net.simple_bind(mx.cpu(), a=(2, 4), b=(2, 5), other=(3,))  # as labels of no use are
    for given in ({}, {"partial_shaping": True}):
        with pytest.raises(
            mx.MXNetError, match=r"reshape: the shape .* not known.*: b \(None\), of_b"
        ):
            bound.reshape(a=(1, 4), **given)
