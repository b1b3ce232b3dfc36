"""Element-wise operators of one input, against NumPy and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops.records import record

import gnomon as mx
from gnomon.ops import find
from gnomon.ops.testing import check, check_inference, forward


def each(function):
    return np.vectorize(function, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# name -> (NumPy, lowest and highest input)
FUNCTIONS = {
    "abs": (np.abs, -2, 2),
    "negative": (np.negative, -2, 2),
    "reciprocal": (np.reciprocal, 0.5, 2),
    "sign": (np.sign, -2, 2),
    "square": (np.square, -2, 2),
    "sqrt": (np.sqrt, 0.1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4),
    "cbrt": (np.cbrt, -4, 4),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 0.1, 4),
    "exp": (np.exp, -3, 3),
    "expm1": (np.expm1, -3, 3),
    "log": (np.log, 0.1, 5),
    "log10": (np.log10, 0.1, 5),
    "log2": (np.log2, 0.1, 5),
    "log1p": (np.log1p, -0.9, 5),
    "round": (lambda x: np.trunc(x + np.copysign(0.5, x)), -3, 3),
    "rint": (lambda x: np.ceil(x - 0.5), -3, 3),
    "ceil": (np.ceil, -3, 3),
    "floor": (np.floor, -3, 3),
    "trunc": (np.trunc, -3, 3),
    "fix": (np.trunc, -3, 3),
    "sin": (np.sin, -4, 4),
    "cos": (np.cos, -4, 4),
    "tan": (np.tan, -1, 1),
    "arcsin": (np.arcsin, -0.9, 0.9),
    "arccos": (np.arccos, -0.9, 0.9),
    "arctan": (np.arctan, -3, 3),
    "degrees": (np.degrees, -3, 3),
    "radians": (np.radians, -300, 300),
    "sinh": (np.sinh, -2, 2),
    "cosh": (np.cosh, -2, 2),
    "tanh": (np.tanh, -3, 3),
    "arcsinh": (np.arcsinh, -3, 3),
    "arccosh": (np.arccosh, 1.1, 4),
    "arctanh": (np.arctanh, -0.9, 0.9),
    "erf": (each(math.erf), -2, 2),
    "gamma": (each(math.gamma), 0.5, 4),
    "gammaln": (each(math.lgamma), 0.5, 4),
    "relu": (lambda x: np.maximum(x, 0), -2, 2),
    "sigmoid": (sigmoid, -4, 4),
    "softsign": (lambda x: x / (1 + np.abs(x)), -3, 3),
    "logical_not": (lambda x: (x == 0) * 1.0, -2, 2),
    "_copy": (lambda x: x, -2, 2),
    "zeros_like": (np.zeros_like, -2, 2),
    "ones_like": (np.ones_like, -2, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(7,), (2, 3), (1,), (0, 3)], ids=str)
def test_values_and_gradients(name, shape):
    reference, low, high = FUNCTIONS[name]
    example = record(name, shape, low=low, high=high)
    check(example.op(), example.arrays(), reference)


RECORDS = [
    record("erfinv", (7,), low=-0.9, high=0.9),
    record("hard_sigmoid", (7,), reference=lambda x: np.clip(0.2 * x + 0.5, 0, 1), high=9.0),
    record("hard_sigmoid", (7,), reference=lambda x: np.clip(x + 0.1, 0, 1), alpha=1, beta=0.1),
    record("clip", (7,), reference=lambda x: np.clip(x, -0.5, 1), a_min=-0.5, a_max=1),
    record("BlockGrad", (2, 3), reference=lambda x: x, differentiable=()),
    record("make_loss", (2, 3), reference=lambda x: x, differentiable=()),
    record("Cast", (7,), reference=lambda x: x.astype(np.float32), dtype="float32",
           differentiable=()),
    record("Cast", (7,), reference=lambda x: np.trunc(x).astype(np.int32), dtype="int32",
           differentiable=()),
    record("add_n", (2, 3), (2, 3), (2, 3), reference=lambda a, b, c: a + b + c, num_args=3),
    record("add_n", (2, 3), reference=lambda a: a, num_args=1),
]  # fmt: skip


@pytest.mark.parametrize("example", RECORDS, ids=str)
def test_with_parameters(example):
    check(
        example.op(),
        example.arrays(),
        example.reference,
        differentiable=example.differentiable,
    )


def test_erfinv_undoes_erf():
    x = np.linspace(-1.5, 1.5, 7)
    (y,) = forward(find("erf")(), [x])
    np.testing.assert_allclose(forward(find("erfinv")(), [y])[0], x, 1e-9)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("round", [-2.5, -0.5, 0.5, 1.5, 2.5], [-3, -1, 1, 2, 3]),
        ("rint", [-2.5, -0.5, 0.5, 1.5, 2.5], [-3, -1, 0, 1, 2]),
        ("sign", [-1, 0, -0.0, 5], [-1, 0, 0, 1]),
        ("relu", [np.nan, -1, 0], [np.nan, 0, 0]),
        ("sigmoid", [-1000, 0, 1000], [0, 0.5, 1]),
    ],
)
def test_at_the_edges(name, given, expected):
    np.testing.assert_array_equal(forward(find(name)(), [np.array(given, float)])[0], expected)


@pytest.mark.parametrize("name", ["exp", "sqrt", "rint", "abs", "relu", "_copy", "square"])
def test_integers_stay_integers(name):
    x = np.array([0, 1, 4, 9], np.int32)
    (y,) = forward(find(name)(), [x])
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, np.trunc(FUNCTIONS[name][0](x.astype(float)))[:4])
    check_inference(find(name)(), [x])


def test_clip_of_integers_cuts_off_the_bounds():
    x = np.array([-3, 2, 7], np.int32)
    np.testing.assert_array_equal(forward(find("clip")(a_min=0.5, a_max=3.7), [x])[0], [0, 2, 3])


def test_clip_with_bounds_that_cross():
    """As MXNet: nothing is between them, and what is above the greatest value becomes that."""
    for low, high, wanted, slope in (
        (2, -1, [2, 2, -1, -1, -1, np.nan], [0, 0, 0, 0, 0, 1]),
        (1, 1, [1, 1, 1, 1, 1, np.nan], [0, 0, 0, 1, 0, 1]),
        (-1, 1, [-1, -1, 0, 1, 1, np.nan], [0, 1, 1, 1, 0, 1]),
    ):
        x = mx.nd.array([-5, -1, 0, 1, 3, np.nan])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.clip(x, low, high)
        y.backward()
        np.testing.assert_array_equal(y.asnumpy(), wanted)
        np.testing.assert_array_equal(x.grad.asnumpy(), slope)
        grad = mx.nd.zeros(6)
        bound = mx.sym.clip(mx.sym.var("x"), low, high).bind(mx.cpu(), {"x": x}, {"x": grad})
        np.testing.assert_array_equal(bound.forward(is_train=True)[0].asnumpy(), wanted)
        bound.backward(mx.nd.ones(6))
        np.testing.assert_array_equal(grad.asnumpy(), slope)
    integers = mx.nd.array([-5, -1, 0, 3], dtype="int32")
    assert mx.nd.clip(integers, 2, -1).asnumpy().tolist() == [2, 2, -1, -1]


def test_casting_saturates_and_takes_nan_as_0():
    x = np.array([1.7, -1.7, 300, np.nan])
    np.testing.assert_array_equal(forward(find("Cast")(dtype="uint8"), [x])[0], [1, 0, 255, 0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arccosh_is_nothing_below_one(dtype):
    x = mx.nd.array([-1e30, -1e10, -1e4, -2, -1, 0, 0.5], dtype=dtype)
    assert np.isnan(mx.nd.arccosh(x).asnumpy()).all()
    assert mx.nd.arccosh(mx.nd.array([1.0], dtype=dtype)).asnumpy().tolist() == [0]
