"""Operators that users write: compiled into the loop, with their derivatives, on every dtype."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

from gnomon import shadow
from gnomon.expr.diff import vjp
from gnomon.expr.source import OperatorError
from gnomon.shadow import F, Tensor

X = np.linspace(-3, 3, 131, dtype=np.float32)
SIGMA = 2.0


@shadow.op
def smooth_l1(x):
    bound = 1 / SIGMA**2
    if x > bound:
        return x - 0.5 * bound
    elif x < -bound:  # noqa: RET505 - the subset has elif
        return -x - 0.5 * bound
    return 0.5 * SIGMA**2 * x * x


@shadow.op
def squash(x, slope):
    inner = smooth_l1(x) if slope > 0 else math.tanh(x)
    return inner * slope


def reference_smooth(x: np.ndarray) -> np.ndarray:
    return np.where(abs(x) > 0.25, abs(x) - 0.125, 2 * x * x)


def compute(e: shadow.Exp) -> np.ndarray:
    return shadow.new_tensor(e.shape, e, e.dtype).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_branches(dtype):
    a = shadow.new_tensor(X.shape, shadow.tcast(dtype, Tensor(X)), dtype)
    want = reference_smooth(a.numpy().astype("f"))
    np.testing.assert_allclose(compute(F(smooth_l1)(a)).astype("f"), want, rtol=1e-2, atol=1e-6)


def test_operators_of_operators_and_conditional_expressions():
    a, slopes = Tensor(X), Tensor(np.where(np.arange(131) % 2, -0.5, 2).astype("f"))
    want = np.where(slopes.numpy() > 0, reference_smooth(X), np.tanh(X)) * slopes.numpy()
    np.testing.assert_allclose(compute(squash(a, slopes)), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compute(F(squash)(a, 0.5)), reference_smooth(X) / 2, rtol=1e-6)


def test_three_operands_and_constants_of_closures():
    def limit(low):
        @shadow.op
        def limited(x, high, factor):
            bounded = min(max(x, low), high)
            return bounded * factor

        return limited

    high = np.full_like(X, 1.5)
    for low in (-1.0, 0.25):
        e = limit(low)(Tensor(X), Tensor(high), 3.0)
        np.testing.assert_array_equal(compute(e), np.clip(X, low, high) * np.float32(3))


def test_integers_branch_too():
    @shadow.op
    def collatz(n):
        return n // 2 if n % 2 == 0 else 3 * n + 1

    n = np.arange(100, dtype=np.int32)
    np.testing.assert_array_equal(compute(collatz(Tensor(n))), np.where(n % 2, 3 * n + 1, n // 2))


def test_an_operator_is_inlined_not_called():
    e = F(smooth_l1)(Tensor(X) * 2.0) + 1.0
    text = e.loop()
    assert text.count("for ") == 1
    assert "smooth_l1" not in text
    assert "call" not in text


def test_on_one_number_it_is_python():
    assert smooth_l1(3.0) == 2.875
    assert squash(0.1, 2.0) == pytest.approx(0.04)


def test_the_derivative_is_an_operator():
    a = Tensor(X)
    want = np.where(abs(X) > 0.25, np.sign(X), 4 * X)
    np.testing.assert_allclose(compute(F(smooth_l1.grad(0))(a)), want, rtol=1e-6)
    slope = np.full_like(X, 2)
    (g,) = vjp([squash(a, Tensor(slope))], [Tensor(np.ones_like(X))], [a])
    np.testing.assert_allclose(compute(g), 2 * want, rtol=1e-6)
    second = smooth_l1.grad(0).grad(0)
    assert [second(v) for v in (-1.0, 0.1, 1.0)] == [0, 4, 0]


def test_a_derivative_may_be_declared():
    @shadow.op
    def step(x):
        return 1.0 if x > 0 else 0.0

    assert step.grad(0)(2.0) == 0
    step.set_grad(0, shadow.op(lambda x: 1.0))  # straight through
    a = Tensor(X)
    (g,) = vjp([step(a)], [a * 3.0], [a])
    np.testing.assert_array_equal(compute(g), X * 3)


@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt", "erf", "gammaln", "sin", "arctan2"])
def test_built_in_operators_over_tensors(name):
    function = getattr(shadow.fn, name)
    x = np.linspace(0.1, 3, 70).astype("f")
    args = [x, x[::-1].copy()][: function.arity]
    want = function.numpy(*(v.astype("f8") for v in args))
    np.testing.assert_allclose(compute(F(name)(*map(Tensor, args))), want, rtol=1e-6)


def looping(x):
    for _ in range(3):
        x = x * x
    return x


def calling(x):
    return compute(x)


def forgetting(x):
    if x > 0:
        y = 2 * x
    return y


@pytest.mark.parametrize(
    ("function", "line"),
    [(looping, "for _ in range(3):"), (calling, "return compute(x)"), (forgetting, "return y")],
)
def test_outside_of_the_subset_the_line_is_shown(function, line):
    with pytest.raises(OperatorError) as error:
        shadow.op(function)
    assert "test_operators.py, line " in str(error.value)
    assert line in str(error.value)


@shadow.jit
def smoothed(out, x):
    out[:] = F(smooth_l1)(x)


class Layer:
    """A function that jit is given as an object."""

    @shadow.jit
    def step(self, out, x):
        out[:] = F(smooth_l1)(x)

    def __call__(self, out, x):
        out[:] = F(smooth_l1)(x)


@pytest.mark.parametrize("named", [smooth_l1, squash, smoothed, Layer.step], ids=str)
def test_functions_with_a_name_are_pickled_by_it(named):
    assert pickle.loads(pickle.dumps(named)) is named
    assert copy.copy(named) is copy.deepcopy(named) is named


def test_functions_of_objects_are_pickled_with_them():
    out, x = shadow.TensorContainer(X.shape), Tensor(X)
    for function in (Layer().step, shadow.jit(Layer())):
        out[:] = 0.0
        pickle.loads(pickle.dumps(function))(out, x)
        np.testing.assert_allclose(out.numpy(), reference_smooth(X), rtol=1e-6)
    assert pickle.loads(pickle.dumps(smooth_l1.grad(0)))(2.0) == 1.0


def test_functions_that_no_name_leads_to_are_not_pickled():
    @shadow.jit
    def inner(out):
        out[:] = 0.0

    for nameless in (inner, shadow.op(lambda x: x)):
        with pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
            pickle.dumps(nameless)
