"""An operator registered by a user works at once on arrays, on the tape and in bound symbols."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon.ops.property import Operator, OperatorProperty, register_op_property
from gnomon.ops.requests import assign_dispatch, kWriteTo
from gnomon.ops.simple import Input0, OutputGrad, OutputValue, SimpleOp
from gnomon.resource import ResourceRequest
from gnomon.shadow import kDevCPU

(
    SimpleOp("_test_times")
    .set_function(kDevCPU, lambda data, env: data * env.scalar)
    .set_enable_scalar(True)
    .describe("`data` times `scalar`.")
)


def squared(data, env, ret, req, ctx):
    scratch = env.resource[0].get_space(data.shape_)
    assign_dispatch(scratch, kWriteTo, data.tensor * data.tensor)
    assign_dispatch(ret, req, scratch)


def squared_gradient(out_grad: OutputGrad, in0: Input0, env, in_grad, req, ctx):
    assign_dispatch(in_grad, req, out_grad.data.tensor * in0.data.tensor * 2.0)


(
    SimpleOp("_test_squared_by_hand")
    .set_function(kDevCPU, squared)
    .set_gradient(kDevCPU, squared_gradient)
    .set_resource_request(ResourceRequest("kTempSpace"))
)


class Next(Operator):
    """One more, with a gradient of 3."""

    def forward(self, ctx, in_data, req, out_data, aux_states):
        self.trained = ctx.is_train
        assign_dispatch(out_data[0], req[0], in_data[0].tensor + 1.0)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux_states):
        assert self.trained
        assert in_data[0] is None
        assign_dispatch(in_grad[0], req[0], out_grad[0].tensor * 3.0)


@register_op_property("_test_next")
class NextProperty(OperatorProperty):
    """One more."""

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return out_grad

    def create_operator(self, ctx):
        return Next()


CASES = {
    "_test_times": ({"scalar": 2.5}, lambda x: 2.5 * x, lambda x: 2.5 + 0 * x),
    "_test_squared_by_hand": ({}, lambda x: x * x, lambda x: 2 * x),
    "_test_next": ({}, lambda x: x + 1, lambda x: 3 + 0 * x),
}
X = np.array([1, 2, 3], np.float32)


@pytest.fixture(params=CASES)
def case(request):
    return request.param, *CASES[request.param]


def test_on_arrays_and_on_the_tape(case):
    name, params, value, slope = case
    x = mx.nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        y = getattr(mx.nd, name, None) or getattr(mx.nd._internal, name)
        y = y(x, **params)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), value(X))
    np.testing.assert_allclose(x.grad.asnumpy(), slope(X))


@pytest.mark.parametrize("request_type", ["write", "add", "null"])
def test_in_a_bound_symbol(case, request_type):
    name, params, value, slope = case
    make = getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)
    gradient = mx.nd.ones(3)
    bound = make(mx.sym.Variable("x"), **params).bind(
        mx.cpu(), {"x": mx.nd.array(X)}, {"x": gradient}, grad_req=request_type
    )
    (output,) = bound.forward(is_train=True)
    np.testing.assert_allclose(output.asnumpy(), value(X))
    bound.backward([mx.nd.ones(3)])
    told = {"write": slope(X), "add": 1 + slope(X), "null": np.ones(3)}[request_type]
    np.testing.assert_allclose(gradient.asnumpy(), told)


def test_what_the_output_is_enough_for():
    def gradient(out_grad: OutputGrad, out_value: OutputValue, env, in_grad, req, ctx):
        assign_dispatch(in_grad, req, out_grad.data.tensor * out_value.data.tensor)

    def function(data, env, ret, req, ctx):
        assign_dispatch(ret, req, mx.shadow.fn.exp(data.tensor))

    chain = SimpleOp("_test_exp_by_hand").set_function(kDevCPU, function)
    op = chain.registered()()
    assert op.backward_needs([(3,)], [mx.dtype.float32]).outputs == ()
    chain.set_gradient(kDevCPU, gradient)
    needs = op.backward_needs([(3,)], [mx.dtype.float32])
    assert (needs.out_grads, needs.inputs, needs.outputs) == ((0,), (), (0,))
    assert op.inplace([(3,)], [mx.dtype.float32]) == ()
    x = mx.nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd._internal._test_exp_by_hand(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp(X), 1e-6)
