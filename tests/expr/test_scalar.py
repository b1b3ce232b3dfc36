"""Scalar functions: values against NumPy and SciPy, derivatives against differences."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from scipy import special

from gnomon import dtype as dt
from gnomon.base import GnomonError
from gnomon.expr import fn
from gnomon.expr.functions.formula import Tape, prim, select, write
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.shadow import Tensor, TensorContainer

ANY, POSITIVE, UNIT, ABOVE_ONE = (-4.0, 4.0), (0.05, 6.0), (-0.95, 0.95), (1.05, 9.0)


def compare(name):
    return lambda a, b: getattr(np, name)(a, b).astype(float)


def truth(name):
    return lambda x: getattr(np, name)(x).astype(float)


def away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# name: what it means, and the range of each argument in which that is smooth enough to try
MEANING = {
    "abs": (np.abs, ANY),
    "add": (np.add, ANY, ANY),
    "arccos": (np.arccos, UNIT),
    "arccosh": (np.arccosh, ABOVE_ONE),
    "arcsin": (np.arcsin, UNIT),
    "arcsinh": (np.arcsinh, ANY),
    "arctan": (np.arctan, ANY),
    "arctan2": (np.arctan2, ANY, POSITIVE),
    "arctanh": (np.arctanh, UNIT),
    "cbrt": (np.cbrt, POSITIVE),
    "ceil": (np.ceil, ANY),
    "clip": (np.clip, ANY, (-2.0, -1.0), (1.0, 2.0)),
    "copysign": (np.copysign, ANY, ANY),
    "cos": (np.cos, ANY),
    "cosh": (np.cosh, ANY),
    "degrees": (np.degrees, ANY),
    "digamma": (special.digamma, POSITIVE),
    "div": (np.divide, ANY, POSITIVE),
    "elu": (lambda x, slope: np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * slope), ANY, ANY),
    "eq": (compare("equal"), ANY, ANY),
    "erf": (special.erf, ANY),
    "erfinv": (special.erfinv, UNIT),
    "exp": (np.exp, ANY),
    "exp2": (np.exp2, ANY),
    "expm1": (np.expm1, ANY),
    "fix": (np.trunc, ANY),
    "floor": (np.floor, ANY),
    "fma": (lambda a, b, c: a * b + c, ANY, ANY, ANY),
    "fmod": (np.fmod, (3.1, 3.9), (1.0, 1.5)),
    "gamma": (special.gamma, POSITIVE),
    "gammaln": (special.gammaln, POSITIVE),
    "ge": (compare("greater_equal"), ANY, ANY),
    "gelu": (lambda x: 0.5 * x * special.erfc(-x / np.sqrt(2)), ANY),
    "gt": (compare("greater"), ANY, ANY),
    "hypot": (np.hypot, ANY, ANY),
    "logaddexp": (np.logaddexp, ANY, ANY),
    "identity": (lambda x: x, ANY),
    "right": (lambda a, b: b, ANY, ANY),
    "isfinite": (truth("isfinite"), ANY),
    "isinf": (truth("isinf"), ANY),
    "isnan": (truth("isnan"), ANY),
    "le": (compare("less_equal"), ANY, ANY),
    "log": (np.log, POSITIVE),
    "log10": (np.log10, POSITIVE),
    "log1p": (np.log1p, POSITIVE),
    "log2": (np.log2, POSITIVE),
    "log_sigmoid": (special.log_expit, ANY),
    "logical_and": (compare("logical_and"), ANY, ANY),
    "logical_not": (lambda x: (x == 0).astype(float), ANY),
    "logical_or": (compare("logical_or"), ANY, ANY),
    "logical_xor": (compare("logical_xor"), ANY, ANY),
    "lt": (compare("less"), ANY, ANY),
    "maximum": (np.maximum, ANY, ANY),
    "minimum": (np.minimum, ANY, ANY),
    "mish": (lambda x: x * np.tanh(np.logaddexp(x, 0)), ANY),
    "mod": (np.mod, ANY, (5.0, 9.0)),
    "mul": (np.multiply, ANY, ANY),
    "ne": (compare("not_equal"), ANY, ANY),
    "neg": (np.negative, ANY),
    "power": (np.power, POSITIVE, ANY),
    "radians": (np.radians, ANY),
    "rcbrt": (lambda x: 1 / np.cbrt(x), POSITIVE),
    "reciprocal": (np.reciprocal, POSITIVE),
    "relu": (lambda x: np.maximum(x, 0), ANY),
    "rint": (np.rint, ANY),
    "round": (away, ANY),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "sigmoid": (special.expit, ANY),
    "sign": (np.sign, ANY),
    "sin": (np.sin, ANY),
    "sinh": (np.sinh, ANY),
    "softplus": (lambda x: np.logaddexp(x, 0), ANY),
    "softsign": (lambda x: x / (1 + abs(x)), ANY),
    "sqrt": (np.sqrt, POSITIVE),
    "square": (np.square, ANY),
    "sub": (np.subtract, ANY, ANY),
    "tan": (np.tan, UNIT),
    "tanh": (np.tanh, ANY),
    "trigamma": (lambda x: special.polygamma(1, x), POSITIVE),
    "trunc": (np.trunc, ANY),
    "where": (lambda c, a, b: np.where(c != 0, a, b), ANY, ANY, ANY),
}
# of the bits of integers: `tests/expr/test_bits.py`
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"}
NO_DERIVATIVE = {"trigamma", *BITS}


def points(ranges, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, 64) for low, high in ranges]


def test_every_row_has_a_meaning_here():
    assert set(MEANING) | BITS == set(SCALAR)


@pytest.mark.parametrize("name", sorted(set(SCALAR) - BITS))
def test_value(name):
    meaning, *ranges = MEANING[name]
    args = points(ranges)
    np.testing.assert_allclose(SCALAR[name].numpy(*args), meaning(*args), rtol=1e-12, atol=1e-300)
    leaves = [Buffer(a.shape, dt.float64) for a in args]
    shown = evaluate(SCALAR[name](*leaves), dict(zip(leaves, args, strict=True)))
    np.testing.assert_array_equal(shown, SCALAR[name].numpy(*args))


@pytest.mark.parametrize("name", sorted(set(SCALAR) - NO_DERIVATIVE))
def test_derivative(name):
    meaning, *ranges = MEANING[name]
    args = points(ranges, 1)
    function = SCALAR[name]
    for k in range(function.arity):
        h = 1e-6
        ends = [[a + s * h * (j == k) for j, a in enumerate(args)] for s in (1, -1)]
        want = (meaning(*ends[0]) - meaning(*ends[1])) / (2 * h)
        grad = function.grad(k)
        got = grad.numpy(*args, *([function.numpy(*args)] if grad.uses_value else []))
        np.testing.assert_allclose(got, want, rtol=2e-7, atol=3e-8)
        small, used = grad.trimmed
        if used:
            operands = [*args, function.numpy(*args)]
            np.testing.assert_array_equal(small.numpy(*[operands[u] for u in used]), got)


def test_a_function_without_derivative_says_so():
    with pytest.raises(GnomonError, match="trigamma has no derivative"):
        fn.trigamma.grad(0)
    with pytest.raises(GnomonError, match=r"grad: argument .k.: expected the number of one of 1"):
        fn.exp.grad(1)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_integers(dtype):
    a, b = np.array([7, 0, 100, 3], dtype), np.array([2, 5, 0, 3], dtype)
    assert fn.div.numpy(a, b).tolist() == [3, 0, 0, 1]
    assert fn.mod.numpy(a, b).tolist() == [1, 0, 0, 0]
    assert fn.power.numpy(a, b).tolist() == [49, 0, 1, 27]
    assert fn.sqrt.numpy(a).tolist() == [2, 0, 10, 1]
    assert fn.exp.numpy(a)[2] == np.iinfo(dtype).max or dtype == np.int64
    assert fn.lt.numpy(a, b).tolist() == [0, 1, 0, 0]
    for name in ("round", "rint", "floor", "ceil", "trunc", "fix", "identity"):
        assert SCALAR[name].numpy(a).tolist() == a.tolist()
    assert SCALAR["sqrt"].numpy(a).dtype == dtype
    if dtype != np.uint8:
        assert fn.mod.numpy(-a, b).tolist() == [1, 0, 0, 0]
        assert fn.div.numpy(-a, b).tolist() == [-3, 0, 0, -1]


def test_large_integers_keep_their_last_digit():
    big = np.array([2**62 + 1, -(2**61) - 1])
    for name in ("round", "floor", "trunc", "abs", "sign", "maximum", "clip"):
        function = SCALAR[name]
        got = function.numpy(*[big] * function.arity)
        want = {"abs": np.abs(big), "sign": np.sign(big)}.get(name, big)
        np.testing.assert_array_equal(got, want)


def test_booleans_and_halves():
    t = np.array([True, False])
    assert fn.add.numpy(t, t).tolist() == [True, False]
    assert fn.exp.numpy(t).tolist() == [True, True]
    half = np.array([1.0, 60000.0], np.float16)
    assert fn.mul.numpy(half, half).tolist() == [1.0, np.inf]
    x = Buffer((2,), dt.bfloat16)
    assert (fn.tanh(x) * 2.0).dtype is dt.bfloat16


def test_what_happens_at_the_edges_is_as_in_mxnet():
    nan, inf = np.nan, np.inf
    assert np.isnan(fn.maximum(nan, 1.0))
    assert np.isnan(fn.minimum(1.0, nan))
    assert [fn.maximum.grad(k)(2.0, 2.0) for k in (0, 1)] == [1, 0]
    assert [fn.minimum.grad(k)(2.0, 2.0) for k in (0, 1)] == [1, 0]
    assert [fn.mod(*p) for p in ((5, -3), (-5, 3), (-5, -3), (5, 0))] == [-1, 1, -2, 0]
    assert fn.mod(1e12, 3.0) == 1e12 % 3
    assert str(fn.mod(-4.0, 4.0)) == "0.0"  # and not -0.0
    assert fn.sign(nan) == 0
    assert [fn.round(x) for x in (-2.5, -0.5, 0.5, 1.5)] == [-3, -1, 1, 2]
    assert np.signbit(fn.round(-0.3))
    assert fn.round(0.49999999999999994) == 0
    assert [fn.clip.grad(0)(x, -1, 1) for x in (-2, -1, 0, 1, 2)] == [0, 1, 1, 1, 0]
    assert fn.relu.grad(0)(0.0, 0.0) == 0
    assert np.isnan(fn.relu.grad(0)(nan, nan))
    assert fn.hypot(3e300, 4e300) == 5e300
    assert fn.hypot(inf, nan) == inf
    assert fn.hypot(0.0, 0.0) == 0
    assert fn.sigmoid(-1000.0) == 0
    assert fn.softplus(1000.0) == 1000
    assert fn.arcsinh(-1e200) == np.arcsinh(-1e200)
    assert fn.power.grad(1)(0.0, 2.0, 0.0) == 0
    assert fn.power.grad(0)(0.0, 0.0) == 0


def test_equal_formulas_are_one_object_whatever_the_names():
    one, two = (ScalarFn(n, write(2, lambda a, b: a * b + 2.0)) for n in "fg")
    assert one.key == two.key
    assert one.text() == two.text()
    other = ScalarFn("h", write(2, lambda a, b: a * b + 2.5))
    assert other.key != one.key
    signed = [write(1, lambda a, z=z: a + z) for z in (0.0, -0.0)]
    assert signed[0] is not signed[1]


def test_a_formula_of_ten_thousand_steps_is_built_replayed_and_differentiated():
    def chain(x):
        for _ in range(3400):
            x = x * x * 0.5 + 0.25
        return x

    f = ScalarFn("chain", write(1, chain))
    assert f(0.5) == pytest.approx(0.29289321881345254)
    assert f.grad(0)(0.5) == pytest.approx(0.0)


def test_infinities_of_the_branch_not_taken_stay_out_of_gradients():
    root = ScalarFn("root", write(1, lambda x: prim("sqrt", prim("select", x > 0, x, 0.0))))
    assert root.grad(0)(-1.0) == 0
    assert root.grad(0)(4.0) == 0.25
    deep = ScalarFn("deep", write(1, lambda x: prim("select", x > 1, prim("log", x - 1), x) * 3))
    assert deep.grad(0)(1.0) == 3


def test_declared_derivatives_survive_composition():
    straight = ScalarFn("straight", write(1, lambda x: prim("rint", x)))
    straight.set_grad(0, ScalarFn("one", write(1, lambda x: x * 0 + 1)))
    outer = ScalarFn("outer", write(1, lambda x: straight(x) * 5))
    assert outer(2.6) == 15
    assert outer.grad(0)(2.6) == 5
    with pytest.raises(GnomonError, match="1 arguments"):
        straight.set_grad(0, fn.add)


def test_symbols_have_no_truth_value():
    with pytest.raises(GnomonError, match="no truth value"):
        write(1, lambda x: x if x > 0 else -x)
    tape = Tape(1)
    (x,) = tape.symbols
    assert tape.truth(tape.number(x > 0)).ref == (x > 0).ref


def test_unknown_functions_are_named_with_a_hint():
    with pytest.raises(AttributeError, match="maximum"):
        fn.maximun
    assert "tanh" in dir(fn)


@pytest.mark.parametrize("name", ["uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("function", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_integers_compare_with_numbers_that_they_do_not_hold(name, function):
    values = np.array([0, 1], name)
    if name != "bool":
        values = np.array([np.iinfo(name).min, 0, np.iinfo(name).max], name)
    x, how = (
        Buffer(values.shape, dt.of(name), None, values.ctypes.data, values),
        getattr(fn, function),
    )
    for number in (300, -300, 2**31, -(2**40), 2**63, -(2**70), 2**64 + 1, 255, 1, 0):
        for e, wanted in (
            (how(x, number), [compared(function, int(v), number) for v in values]),
            (how(number, x), [compared(function, number, int(v)) for v in values]),
        ):
            assert e.dtype is x.dtype
            assert evaluate(e).astype(int).tolist() == wanted, (function, number)


def compared(function: str, a: int, b: int) -> int:
    return int(getattr(operator, function)(a, b))


def test_formulas_compare_with_numbers_that_the_type_does_not_hold():
    above = ScalarFn("above", write(1, lambda x: select(x >= 300, 2, select(x < -1, 3, x + 300))))
    assert above.numpy(np.array([255, 3], np.uint8)).tolist() == [254, 2]
    assert above.numpy(np.array([300, -2, 1], np.int32)).tolist() == [2, 3, 301]


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_kinds_of_numbers(name, dtype):
    floats = dtype.startswith("float")
    values = [0.0, -1.5, np.nan, np.inf, -np.inf, np.finfo(dtype).max] if floats else [-128, 0, 127]
    x = np.array(values, dtype)
    source, out = Tensor(x), TensorContainer(x.shape, dtype)
    out[:] = getattr(np, name)(source)
    np.testing.assert_array_equal(out.numpy(), getattr(np, name)(x))
    np.testing.assert_array_equal(SCALAR[name].numpy(x), getattr(np, name)(x))


def test_fmod_has_the_sign_of_the_dividend():
    a, b = np.array([7, -7, 7, -7, 5.5], "f4"), np.array([3, 3, -3, -3, np.inf], "f4")
    out = TensorContainer(a.shape)
    out[:] = np.fmod(Tensor(a), Tensor(b))
    np.testing.assert_array_equal(out.numpy(), np.fmod(a, b))
    for dtype in ("int8", "int32"):
        i, j = np.array([7, -7, 7, -7, 5, 6], dtype), np.array([3, 3, -3, -3, 7, 0], dtype)
        whole = TensorContainer(i.shape, dtype)
        whole[:] = fn.fmod(Tensor(i), Tensor(j))
        assert whole.numpy().tolist() == [1, -1, 1, -1, 5, 0]


@pytest.mark.parametrize(
    ("name", "told"),
    [("sum", "reduce"), ("astype", "tcast"), ("numpy", "tensor"), ("dot", "dot"), ("nonsense", "")],
)
def test_attributes_of_arrays_elsewhere_name_the_way(name, told):
    x = Tensor(np.zeros((2, 3), "f4"))
    with pytest.raises(AttributeError, match=rf"'Map' object has no attribute '{name}'.*{told}"):
        getattr(x + 1.0, name)
    assert not hasattr(x, "no_such_thing")


def test_operands_that_would_repeat_name_the_way():
    with pytest.raises(GnomonError, match="broadcast_to"):
        Tensor(np.zeros((2, 3), "f4")) + Tensor(np.zeros(3, "f4"))
