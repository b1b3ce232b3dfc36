"""Operators that run on data inside bound networks: order, requests, resources, errors."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.ops.property import Operator, OperatorProperty, register_op_property
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
