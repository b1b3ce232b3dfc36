"""`op`: compiled operators against Python's own call, their derivatives and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr import fn
from gnomon.expr.functions.frontend import op
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.expr.source import OperatorError

SLOPE = 0.25


def relu6(x):
    """A docstring."""
    pass  # noqa: PIE790
    return min(max(x, 0), 6)


def early(x, y):
    if x < -1:
        return y
    if x > 1:
        z = x * y
        if y > 0:
            return z + 1
        z -= 2
    elif 0 < x <= y != 3:
        z = math.exp(-x)
    else:
        a, b = x, y
        z: float = a - b
    return z * 2


def logical(x, y):
    t = (x > 0 and y > 0) or not x
    u = x or y
    v = x and y
    return u + 10 * v if t else -u


def numbers(x, y):
    w = x**2 - y**3 + x**-2 + 2**x + abs(x) ** 0.5 + x**2.5
    return w + x // 0.7 + y % 0.6 - x / 3 + (+y) + SLOPE


def library(x, y):
    a = math.sin(x) * math.atan2(y, x) + math.fmod(x, 0.7) + math.log(abs(y) + 1, 2)
    b = np.maximum(x, y) + np.where(x > y, np.tanh(x), np.square(y)) + np.clip(x, -1, 1)
    c = math.pi * math.copysign(x, y) + np.rad2deg(x) + float(x > y) + round(x) + int(y)
    return (
        a + b + c + pow(abs(x), 2) + math.hypot(x, y) + math.floor(x) + (0 if math.isnan(x) else 1)
    )


def partly(x, y):
    if x > y:
        if x > 2:
            return 1.0
    elif y > 2:
        return 2.0
    else:
        x = 7
    return x + y


FUNCTIONS = [relu6, early, logical, numbers, library, partly]


def values(function, low=-3.0):
    rng = np.random.default_rng(3)
    count = function.__code__.co_argcount
    start = 0.1 if function is numbers else low
    return [np.round(rng.uniform(start, 3.0, 200), 3) for _ in range(count)]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_value_is_what_python_computes(function):
    args = values(function)
    made = op(function)
    want = [float(function(*map(float, row))) for row in zip(*args, strict=True)]
    np.testing.assert_allclose(made.numpy(*args), want, rtol=1e-12, atol=1e-12)
    assert made(*(float(a[0]) for a in args)) == pytest.approx(want[0])
    leaves = [Buffer(a.shape, dt.float64) for a in args]
    shown = evaluate(made(*leaves), dict(zip(leaves, args, strict=True)))
    np.testing.assert_allclose(shown, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivative_is_the_difference_away_from_branch_points(function):
    made, args, h = op(function), values(function), 1e-6
    for k in range(made.arity):
        ends = [made.numpy(*[a + s * h * (j == k) for j, a in enumerate(args)]) for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        smooth = np.abs(slope) < 1e3
        grad = made.grad(k)
        got = grad.numpy(*args, *([made.numpy(*args)] if grad.uses_value else []))
        np.testing.assert_allclose(got[smooth], slope[smooth], rtol=1e-6, atol=1e-6)


def whole(x, y):
    return x // y


def test_whole_quotients_of_zeros_and_by_infinities():
    x, y = (
        np.array([-0.0, 0.0, -0.0, 0.5, -0.5, 7.0, -5.0, 5.0]),
        np.array([1.3, -1.3, -2.0, 2.0, -2.0, -2.0, np.inf, np.inf]),
    )
    want = np.array([float(a) // float(b) for a, b in zip(x, y, strict=True)])
    got = op(whole).numpy(x, y)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_the_branch_not_taken_neither_reaches_value_nor_derivative():
    safe = op(lambda x: math.sqrt(x) * 3 if x > 0 else 0.0)
    assert [safe(-1.0), safe.grad(0)(-1.0), safe.grad(0)(0.0), safe.grad(0)(4.0)] == [0, 0, 0, 0.75]

    @op
    def xlogx(x):
        if x == 0:
            return 0
        return x * math.log(x)

    assert xlogx(0.0) == 0
    assert xlogx.grad(0)(0.0) == 0
    assert xlogx.grad(0)(1.0) == 1


def test_numbers_around_the_function_are_read_once():
    factor = 2.0
    shifted = False

    def scaled(x):
        if shifted:
            return factor * x + SLOPE
        return factor * x

    made = [op(scaled)]
    factor, shifted = 3.0, True
    made.append(op(scaled))
    factor, shifted = 2.0, False
    made.append(op(scaled))
    factor = 99.0
    assert [m(1.0) for m in made] == [2.0, 3.25, 2.0]
    assert made[0].key == made[2].key != made[1].key


def test_operators_call_operators_and_keep_declared_derivatives():
    step = op(lambda x: 1.0 if x > 0 else 0.0)
    step.set_grad(0, fn.sigmoid)

    @op
    def gate(x, y):
        return step(x) * y + fn.tanh(y)

    assert gate(2.0, 3.0) == 3.0 + math.tanh(3.0)
    assert gate.grad(0)(0.0, 4.0) == 2.0
    assert gate.grad(1)(1.0, 0.0) == 2.0


def test_lambdas_are_told_apart_by_their_place():
    f, g = op(lambda x: x + 1), op(lambda x: x * 3)
    h = [op(lambda x: x - k) for k in (1, 2)]  # noqa: B023
    assert [f(5.0), g(5.0), h[0](5.0), h[1](5.0)] == [6, 15, 4, 3]
    make = lambda: op(lambda x: x if x > 2 else 2)  # noqa: E731
    assert make()(1.0) == 2


def test_lambdas_of_constants_are_told_apart():
    f, g, h = op(lambda x: 1.0), op(lambda x: -2.5), op(lambda x, y: 1.0)
    assert [f(5.0), g(5.0), h(5.0, 6.0)] == [1, -2.5, 1]
    assert (f.arity, h.arity) == (1, 2)


def test_the_record_looks_like_the_function():
    made = op(relu6)
    assert (made.__name__, made.__doc__, made.__module__) == ("relu6", "A docstring.", __name__)
    named = op(name="other")(relu6)
    assert named.name == "other"
    assert op(made) is made


def for_loop(x):
    total = 0
    for k in range(3):
        total += x * k
    return total


def no_return(x):  # noqa: RET503
    if x > 0:
        return 1


def unbound(x):
    if x > 0:
        y = 1
    return y


def undefined(x):
    return x + nothing_of_this_name  # noqa: F821


def stranger(x):
    return for_loop(x)


def subscript(x):
    return x[0]


def default(x, y=1):
    return x


def stars(*x):
    return x


def keyword(x):
    return max(x, key=1)


def text(x):
    return "a"


def attribute(x):
    return x.shape


def target(x):
    math.pi = x
    return x


def bits(x):
    return x & 1.5


def zero(x):
    return x + 1 / 0


def member(x):
    return x in (1, 2)


def bare(x):
    return


def nobody():
    return 1


ERRORS = [
    (for_loop, "a for loop", "for k in range(3):"),
    (no_return, "a path that ends without return", "def no_return(x):"),
    (unbound, "y, which only one branch has set,", "return y"),
    (undefined, "nothing_of_this_name, which is not defined,", "return x + nothing"),
    (stranger, "a call of for_loop", "return for_loop(x)"),
    (subscript, "indexing", "return x[0]"),
    (default, "arguments with defaults", "def default"),
    (stars, "arguments with defaults", "def stars"),
    (keyword, "a call with keywords", "max(x, key=1)"),
    (text, "'a', which is no number,", 'return "a"'),
    (attribute, "the attribute shape", "x.shape"),
    (target, "an assignment to anything but names", "math.pi = x"),
    (bits, "& takes integers, got a float", "x & 1.5"),
    (zero, "this (division by zero)", "1 / 0"),
    (member, "the comparison in", "x in (1, 2)"),
    (bare, "return without a value", "return"),
    (nobody, "an operator without arguments", "def nobody"),
]


@pytest.mark.parametrize(("function", "what", "line"), ERRORS, ids=[e[0].__name__ for e in ERRORS])
def test_errors_show_file_line_source_and_what_is_allowed(function, what, line):
    with pytest.raises(OperatorError) as caught:
        op(function)
    message = str(caught.value)
    shown = message.splitlines()
    assert what in shown[0]
    assert __file__.rpartition("/")[2] in shown[0]
    number = int(shown[0].partition("line ")[2].partition(":")[0])
    assert function.__code__.co_firstlineno <= number <= function.__code__.co_firstlineno + 4
    assert line in shown[1]
    assert shown[2].strip() == "^"
    assert "Allowed" in message or "every path" in message
    assert isinstance(caught.value, SyntaxError)


def test_functions_without_source_are_refused_clearly():
    space: dict = {}
    exec("def hidden(x):\n    return x", space)
    with pytest.raises(OperatorError, match=r"source of hidden (cannot be read|does not match)"):
        op(space["hidden"])
    with pytest.raises(OperatorError, match="expected a Python function"):
        op(math.sin)


def test_many_branches_are_compiled_in_linear_time():
    lines = ["def many(x):", "    y = x"]
    for k in range(200):
        lines += [f"    if y > {k}:", "        y = y * 0.5 + 1"]
    source = "\n".join([*lines, "    return y"])
    import linecache

    linecache.cache["<many>"] = (len(source), None, source.splitlines(True), "<many>")
    space: dict = {}
    exec(compile(source, "<many>", "exec"), space)
    made = op(space["many"])
    assert made(100.0) == pytest.approx(space["many"](100.0))
    assert len(made.body.steps) < 1500
