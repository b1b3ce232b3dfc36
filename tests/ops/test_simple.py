"""SimpleOp: the worked example, both forms, the three kinds of gradients, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import shadow
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.expr.node import Expr
from gnomon.ops import find, registry
from gnomon.ops.property import OpContext
from gnomon.ops.requests import assign_dispatch, kAddTo, kNullOp, kWriteTo
from gnomon.ops.simple import (
    EnvArguments,
    Input0,
    Input1,
    OutputGrad,
    OutputValue,
    SimpleOp,
    SimpleOpInplaceOption,
    kInplaceOutIn,
    kInplaceOutLhs,
    kNoInplace,
    register_simple_op,
)
from gnomon.ops.testing import check, check_storing
from gnomon.shadow import TBlob, Tensor, kDevCPU

X = np.linspace(-1.1, 1.2, 12).reshape(3, 4)


def smooth_l1(x, sigma=1.0):
    square = sigma**2
    inside = np.abs(x) < 1 / square
    return np.where(inside, 0.5 * square * x * x, np.abs(x) - 0.5 / square)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_the_worked_example(sigma):
    check(find("smooth_l1")(scalar=sigma), [X], lambda x: smooth_l1(x, sigma))
    check_storing(find("smooth_l1")(scalar=sigma), [X.astype(np.float32)])


def test_the_worked_example_says_what_it_is():
    cls = find("smooth_l1")
    assert cls().scalar == 1.0
    assert cls.simple.inplace == {"function": kNoInplace, "gradient": kInplaceOutIn}
    assert "sigma" in cls.__doc__
    with pytest.raises(ParamError, match=r"smooth_l1: argument .scaler..*did you mean 'scalar'"):
        cls(scaler=2)
    with pytest.raises(DTypeError, match="smooth_l1: argument 'data': expected floating-point"):
        mx.nd.smooth_l1(mx.nd.ones(2, dtype="int32"))


def test_the_composite_and_its_gradient():
    """loss = outside * f(inside * (data - label)): its gradient is outside * inside * f'(...)."""
    generator = np.random.default_rng(0)
    data, label, inside, outside = (Tensor(generator.normal(size=(3, 4))) for _ in range(4))
    f = find("smooth_l1")(scalar=1.0)
    away = inside * (data - label)
    loss, gradient = (Tensor(np.zeros((3, 4))) for _ in range(2))
    loss[:] = outside * f.forward(away)
    (slope,) = f.backward([outside], [away], [None])
    gradient[:] = inside * slope
    x = inside.numpy() * (data.numpy() - label.numpy())
    np.testing.assert_allclose(loss.numpy(), outside.numpy() * smooth_l1(x))
    told = outside.numpy() * inside.numpy() * np.clip(x, -1, 1)
    np.testing.assert_allclose(gradient.numpy(), told)


def square(data: Expr, env: EnvArguments) -> Expr:
    return data * data


def test_without_a_gradient_one_is_derived():
    registered = SimpleOp("_test_square").set_function(kDevCPU, square).describe("The square.")
    assert registered.registered().__doc__ == "The square."
    check(find("_test_square")(), [X], np.square)


def test_gradients_of_the_three_kinds():
    def by_grad(out_grad: OutputGrad, env: EnvArguments) -> Expr:
        return out_grad.data * 3.0

    def by_value(out_grad: OutputGrad, out_value: OutputValue, env: EnvArguments) -> Expr:
        return out_grad.data * out_value.data

    def by_input(out_grad: OutputGrad, in0: Input0, env: EnvArguments) -> Expr:
        return out_grad.data * in0.data * 2.0

    kinds = {
        "triple": (lambda data, env: data * 3.0, by_grad),
        "exp": (lambda data, env: shadow.fn.exp(data), by_value),
        "squared": (square, by_input),
    }
    for name, (function, gradient) in kinds.items():
        chain = SimpleOp(f"_test_{name}").set_function(kDevCPU, function)
        chain.set_gradient(kDevCPU, gradient, kInplaceOutIn)
        check(find(f"_test_{name}")(), [X])


def test_two_inputs_and_a_scalar():
    def gradient(out_grad: OutputGrad, lhs: Input0, rhs: Input1, env: EnvArguments):
        return out_grad.data * rhs.data * env.scalar, out_grad.data * lhs.data * env.scalar

    (
        register_simple_op("_test_scaled_product")
        .set_function(kDevCPU, lambda lhs, rhs, env: lhs * rhs * env.scalar, kInplaceOutLhs)
        .set_gradient(kDevCPU, gradient)
        .set_enable_scalar(True)
    )
    op = find("_test_scaled_product")(scalar="2.5")
    assert op.arguments() == ("lhs", "rhs")
    check(op, [X, X + 1], lambda a, b: 2.5 * a * b)
    with pytest.raises(ShapeError, match="_test_scaled_product: argument 'rhs'"):
        op.infer_shape([(2, 3), (2, 4)])


def test_a_shape_function_and_keyword_arguments():
    def last(shape, env):
        return (*shape[:-1], int(env.kwargs["n"]))

    def function(data, env):
        return shadow.slice_(data, (0, 0), (data.shape[0], int(env.kwargs["n"])))

    chain = SimpleOp("_test_first").set_shape_function(last).set_function(kDevCPU, function)
    chain.set_enable_kwargs(True)
    op = find("_test_first").parse({"n": "2"})
    assert op.attrs() == {"n": "2"}
    check(op, [X], lambda x: x[:, :2])
    assert op.infer_shape([(0, 4)])[1] == [None]
    with pytest.raises(GnomonError, match="_test_first: scalar and kwargs cannot both be enabled"):
        chain.set_enable_scalar(True)
    with pytest.raises(ShapeError, match="_test_first: no shape for inputs"):
        find("_test_first").parse({"n": "x"}).infer_shape([(3, 4)])


def run(op, inputs, req, out):
    context = OpContext(requested=("scratch",))
    op.run(context, [TBlob(x) for x in inputs], [req], [TBlob(out)], [])


def test_the_full_form_stores_by_itself():
    seen = []

    def function(data, env, ret, req, ctx):
        seen.append(env.resource)
        assign_dispatch(ret, req, data.tensor + env.scalar)

    def gradient(out_grad: OutputGrad, in0: Input0, env, in_grad, req, ctx):
        assign_dispatch(in_grad, req, out_grad.data.tensor * 2.0)

    (
        SimpleOp("_test_full")
        .set_function(kDevCPU, function, SimpleOpInplaceOption.kInplaceInOut)
        .set_gradient(kDevCPU, gradient)
        .set_enable_scalar(True)
        .set_resource_request("kTempSpace")
    )
    op = find("_test_full")(scalar=3)
    assert not op.is_expression
    assert op.simple.requests == ("kTempSpace",)
    x, out = X.copy(), np.ones_like(X)
    run(op, [x], kAddTo, out)
    np.testing.assert_allclose(out, x + 4)
    run(op, [x], kNullOp, out)
    np.testing.assert_allclose(out, x + 4)
    assert seen == [("scratch",)] * 2
    grad = np.zeros_like(X)
    blobs = [TBlob(a) for a in (x, out, grad)]
    op.run_backward(OpContext(), [blobs[0]], [blobs[0]], [blobs[1]], [kWriteTo], [blobs[2]], [])
    np.testing.assert_allclose(grad, 2 * x)


def test_the_full_form_of_two_inputs_has_two_gradients_and_two_requests():
    def function(lhs, rhs, env, ret, req, ctx):
        assign_dispatch(ret, req, lhs.tensor * rhs.tensor)

    def gradient(
        out_grad: OutputGrad, lhs: Input0, rhs: Input1, env, lhs_grad, rhs_grad, req_l, req_r, ctx
    ):
        assign_dispatch(lhs_grad, req_l, out_grad.data.tensor * rhs.data.tensor)
        assign_dispatch(rhs_grad, req_r, out_grad.data.tensor * lhs.data.tensor)

    SimpleOp("_test_product2").set_function(kDevCPU, function).set_gradient(kDevCPU, gradient)
    a, b, g = X.copy(), X + 1, np.full_like(X, 2.0)
    left, right = np.ones_like(X), np.ones_like(X)
    find("_test_product2")().run_backward(
        OpContext(), [TBlob(g)], [TBlob(a), TBlob(b)], [TBlob(g)], [kAddTo, kNullOp],
        [TBlob(left), TBlob(right)], [],
    )  # fmt: skip
    np.testing.assert_allclose(left, 1 + 2 * b)
    np.testing.assert_allclose(right, 1)


def test_what_is_refused():
    with pytest.raises(GnomonError, match="_test_bad: set_function comes first"):
        SimpleOp("_test_bad").describe("Nothing.")
    with pytest.raises(GnomonError, match=r"_test_bad: argument 'function'.*1 parameters"):
        SimpleOp("_test_bad").set_function(kDevCPU, lambda env: env)
    with pytest.raises(GnomonError, match="_test_bad: argument 'x': expected annotated OutputGrad"):
        SimpleOp("_test_bad").set_gradient(kDevCPU, lambda x, env: x)
    with pytest.raises(GnomonError, match=r"_test_bad: argument .gradient..*'env'"):
        SimpleOp("_test_bad").set_gradient(kDevCPU, lambda x: x)
    chain = SimpleOp("_test_two").set_function(kDevCPU, square)
    with pytest.raises(GnomonError, match="_test_two: argument 'function': expected 1 inputs"):
        chain.set_function(shadow.kDevGPU, lambda lhs, rhs, env: lhs)
    with pytest.raises(ParamError, match="'_test_two' is registered already"):
        SimpleOp("_test_two").set_function(kDevCPU, square)


@pytest.mark.parametrize(
    ("register", "told"),
    [
        (lambda: SimpleOp(3), "SimpleOp: argument 'name'"),
        (lambda: SimpleOp("told_a").set_function(1, 3), "told_a: argument 'function'"),
        (lambda: SimpleOp("told_b").set_gradient(1, 3), "told_b: argument 'gradient'"),
        (lambda: SimpleOp("told_c").set_shape_function(3), "argument 'shape function'"),
        (lambda: SimpleOp("told_d").set_function("cpu", lambda x, env: x), "'dev_mask'"),
    ],
)
def test_mistakes_in_registrations_are_told(register, told):
    with pytest.raises(TypeError, match=told):
        register()


def test_an_unknown_in_place_option_is_told():
    with pytest.raises(ParamError, match="argument 'inplace': expected one of kNoInplace"):
        SimpleOp("told_e").set_function(1, lambda x, env: x, "in")
    assert not registry.has("told_e")


def test_functions_of_no_module():
    made: dict = {}
    exec("def doubled(src, env): return src * 2", made)
    assert made["doubled"].__module__ is None
    register_simple_op("_test_no_module").set_function(1, made["doubled"], kNoInplace)
    assert registry.has("_test_no_module")
