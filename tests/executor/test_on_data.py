"""Operators that run on data inside bound networks: order, requests, resources, errors."""

from typing import ClassVar

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError, ShapeError
from gnomon.ops.property import Operator, OperatorProperty, register_op_property
from gnomon.ops.requests import OpReqType, assign_dispatch
from gnomon.resource import ResourceRequest

nd, sym = mx.nd, mx.sym


class Doubling(Operator):
    def forward(self, ctx, in_data, req, out_data, aux_states):
        source = in_data[0].get_with_shape(in_data[0].shape_)
        out_data[0].get_with_shape(out_data[0].shape_)[:] = source * 2.0
        ctx.state["seen"] = ctx.is_train

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux_states):
        assert ctx.state["seen"]
        assert in_data[0] is None
        source = out_grad[0].get_with_shape(out_grad[0].shape_)
        in_grad[0].get_with_shape(in_grad[0].shape_)[:] = source * 2.0


@register_op_property("TestDoubling")
class DoublingProperty(OperatorProperty):
    """Twice the data, on the data."""

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return out_grad

    def create_operator(self, ctx):
        return Doubling()


def test_operators_on_data_stand_between_programs():
    x = sym.Variable("x")
    net = sym.exp(sym.TestDoubling(sym.tanh(x), name="twice"))
    executor = net.simple_bind(mx.cpu(), x=(3,))
    values = np.array([0.1, 0.2, 0.3], np.float32)
    (out,) = executor.forward(is_train=True, x=values)
    expected = np.exp(2 * np.tanh(values))
    np.testing.assert_allclose(out.asnumpy(), expected, 1e-5)
    executor.backward(nd.ones((3,)))
    slope = 2 * expected * (1 - np.tanh(values) ** 2)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), slope, 1e-5)
    run = next(iter(executor._runs.values()))
    assert [len(run.operators(p)) for p in ("forward", "backward")] == [3, 3]


def test_operators_on_data_get_what_they_ask_for():
    class Asking(Operator):
        def forward(self, ctx, in_data, req, out_data, aux_states):
            space = ctx.requested[0].get_space((3,), None)
            space.numpy()[:] = 5
            out_data[0].get_with_shape(out_data[0].shape_)[:] = space * 1.0

    class AskingProperty(OperatorProperty):
        """Five, by way of scratch memory."""

        def forward_resource(self, in_shape):
            return [ResourceRequest("kTempSpace")]

        def create_operator(self, ctx):
            return Asking()

    register_op_property("TestAsking")(AskingProperty)
    executor = sym.TestAsking(sym.Variable("x")).simple_bind(mx.cpu(), grad_req="null", x=(3,))
    assert executor.forward()[0].asnumpy().tolist() == [5, 5, 5]
    (run,) = executor._runs.values()
    assert len(run.operators("forward")[0].mutate) == 3  # output, working memory, scratch memory


def test_an_operator_that_fails_is_told_at_the_read():
    class Failing(Operator):
        def forward(self, ctx, in_data, req, out_data, aux_states):
            raise RuntimeError("out of ink")

    class FailingProperty(OperatorProperty):
        """It fails."""

        def create_operator(self, ctx):
            return Failing()

    register_op_property("TestFailing")(FailingProperty)
    executor = sym.TestFailing(sym.Variable("x")).simple_bind(mx.cpu(), x=(3,))
    executor.forward()
    with pytest.raises(GnomonError, match="out of ink"):
        executor.outputs[0].asnumpy()


class Adding(Operator):
    """Counts which requests came, and honours them by `assign_dispatch`."""

    requests: ClassVar[list] = []

    def forward(self, ctx, in_data, req, out_data, aux_states):
        assign_dispatch(out_data[0], req[0], in_data[0].tensor * in_data[1].tensor)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux_states):
        self.requests.append(list(req))
        for k in (0, 1):
            assign_dispatch(in_grad[k], req[k], out_grad[0].tensor * in_data[1 - k].tensor)


@register_op_property("TestAdding")
class AddingProperty(OperatorProperty):
    """The product of two, on the data."""

    def list_arguments(self):
        return ["lhs", "rhs"]

    def create_operator(self, ctx):
        return Adding()


@pytest.mark.parametrize("how", ["alone", "read twice", "behind another", "one variable"])
@pytest.mark.parametrize("request_type", ["write", "add"])
def test_operators_on_data_add_to_gradients_themselves(how, request_type):
    x, y = sym.Variable("x"), sym.Variable("y")
    net = {
        "alone": lambda: sym.TestAdding(x, y),
        "read twice": lambda: sym.TestAdding(x, y) + x,
        "behind another": lambda: sym.TestAdding(x * 2, y),
        "one variable": lambda: sym.TestAdding(x, x) + y,
    }[how]()
    values = {"x": nd.array([1, 2]), "y": nd.array([3, 5])}
    grads = {"x": nd.array([10, 20]), "y": nd.array([30, 40])}
    start = {name: (request_type == "add") * g.asnumpy() for name, g in grads.items()}
    executor = net.bind(mx.cpu(), values, grads, request_type)
    executor.forward(is_train=True)
    Adding.requests.clear()
    executor.backward([nd.array([1, 2])])
    found = {name: g.asnumpy() for name, g in grads.items()}
    head, a, b = np.array([1, 2]), values["x"].asnumpy(), values["y"].asnumpy()
    by_x, by_y = {
        "alone": (b, a),
        "read twice": (b + 1, a),
        "behind another": (2 * b, 2 * a),
        "one variable": (2 * a, np.ones(2)),
    }[how]
    np.testing.assert_allclose(found["x"], start["x"] + head * by_x)
    np.testing.assert_allclose(found["y"], start["y"] + head * by_y)
    add, write = OpReqType.kAddTo, OpReqType.kWriteTo
    alone = {"alone": [add, add], "one variable": [write, write]}.get(how, [write, add])
    assert Adding.requests == [alone if request_type == "add" else [write, write]]


def test_shapes_of_outputs_reach_a_property():
    told = []

    @register_op_property("TestTelling")
    class TellingProperty(OperatorProperty):
        """Twice the data, whose shape follows from the output's."""

        def infer_shape(self, in_shape, out_shape):
            told.append((in_shape[0], out_shape[0]))
            shape = in_shape[0] or out_shape[0]
            return ([shape], [shape], []) if shape else False

        def create_operator(self, ctx):
            return Doubling()

    x, weight = sym.Variable("x"), sym.Variable("weight", shape=(2, 3))
    for kind in (sym.TestTelling, sym.TestDoubling):  # the second has the rule that all have
        arguments, outputs, _ = (kind(x) + weight).infer_shape()
        assert (arguments, outputs) == ([(2, 3), (2, 3)], [(2, 3)])
        types = (kind(x) + weight).infer_type(weight="float64")
        assert types[0] == [np.float64, np.float64]
    assert told[0] == (None, None)
    assert (None, (2, 3)) in told
    with pytest.raises(ShapeError, match=r"expected shape \(3, 2\), got \(2, 3\)"):
        (sym.TestTelling(sym.Variable("x", shape=(3, 2))) + weight).infer_shape()


class Counting(mx.operator.CustomOp):
    """Multiplies by the number of its forward passes so far."""

    count = 0

    def forward(self, is_train, req, in_data, out_data, aux):
        self.count += 1
        self.assign(out_data[0], req[0], in_data[0] * self.count)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * self.count)


@mx.operator.register("test_counting")
class CountingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Counting()


def test_an_executor_has_one_operator_for_training_and_prediction():
    symbol = mx.sym.Custom(mx.sym.Variable("data"), op_type="test_counting")
    executor = symbol.simple_bind(mx.cpu(), data=(1,))
    executor.arg_dict["data"][:] = 1
    passes = [executor.forward(is_train=train)[0].asscalar() for train in (True, False, True)]
    assert passes == [1, 2, 3]
    executor.backward(mx.nd.ones(1))
    assert executor.grad_dict["data"].asscalar() == 3
    again = executor.reshape(data=(2,), allow_up_sizing=True)
    assert again.forward()[0].asnumpy().max() <= 1  # that of another executor is another one
