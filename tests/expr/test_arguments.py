"""What is wrong with an argument is said in words, whatever comes."""

from __future__ import annotations

import io

import numpy as np
import pytest

from gnomon import shadow
from gnomon.base import GnomonError, ShapeError
from gnomon.expr.arguments import explained, fits, spoken
from gnomon.expr.node import Expr
from gnomon.shadow import Tensor, fn

ARRAY = np.ones((2, 3), np.float32)
X = Tensor(ARRAY)
WRONG = {
    "an array": (lambda: shadow.flip(ARRAY, 0), "flip: argument 'e': expected an expression"),
    "a list": (lambda: shadow.sum_rows([1, 2]), "sum_rows: argument 'src'.*expression.*a list"),
    "a string for an axis": (lambda: shadow.flip(X, "x"), "argument 'dim'.*whole number"),
    "half an axis": (lambda: shadow.reduce(X, "sum", 0.5), "argument 'axes'.*whole number"),
    "an expression for an axis": (lambda: shadow.flip(X, X), "whole number"),
    "no axis": (
        lambda: shadow.swapaxis(X, 0, 5),
        "argument 'axis': expected an axis from 0 to 1, got 5",
    ),
    "a ragged shape": (lambda: shadow.broadcast_to(X, ((1, 2), (3,))), "shape.*whole numbers"),
    "half a size": (
        lambda: shadow.reshape(X, (1.5, 4)),
        "shape.*each a whole number, got \\(1.5, 4\\)",
    ),
    "a negative size": (lambda: shadow.broadcast_to(X, (-1, 2, 3)), "sizes of at least 0"),
    "too many elements": (lambda: shadow.broadcast_to(X, (2**62, 2, 3)), "fewer than 2\\*\\*63"),
    "too large a number": (lambda: shadow.repmat(X[0], 2**70), "at least 0"),
    "negative rows": (lambda: shadow.repmat(X[0], -1), "argument 'nrow'.*at least 0, got -1"),
    "pairs of three": (lambda: shadow.pool("max", X, (1, 2, 3), 1), "a number or \\(y, x\\)"),
    "a sum of truth": (lambda: shadow.implicit_dot(*[shadow.tcast("bool", X)] * 2), "of numbers"),
    "no stream": (lambda: shadow.load_binary("x", X), "binary stream to read, got a str"),
    "no tensor": (lambda: shadow.load_binary(io.BytesIO(), 3), "argument 'dest'"),
    "no dtype": (lambda: shadow.tcast("complex64", X), "'complex64' is unknown"),
    "no expression to cast": (lambda: shadow.tcast("int8", 3), "tcast: argument 'e'"),
    "no number": (lambda: shadow.scalar("x"), "expected a number, got 'x'"),
    "no saver": (lambda: X.assign(1.0, "add"), "saveto, plusto, minusto, multo, divto, got"),
    "no saver at all": (lambda: X.assign(1.0, slice(2)), "saveto|a saver"),
    "a bare expression": (shadow.Exp, "a bare expression"),
    "a map by hand": (lambda: shadow.Map(fn.exp, (X,), (1000,), X.dtype), "Map: argument 'args'"),
    "a map of nothing": (lambda: shadow.Map(1, 2, 3, 4), "Map: argument 'fn, args'"),
    "joined by hand": (lambda: shadow.Joined(X, 0), "a tuple of expressions"),
    "a view beyond": (lambda: X.view((3, 3), None), "view: .*places within <Tensor 2x3"),
    "a view before": (lambda: X.view((1,), None, -1), "places within"),
    "a view by strides": (lambda: X.view((2, 2), (5, 1)), "places within"),
    "ragged operands": (lambda: fn.cos(((1, 2), (3,))), "cos: argument 'operands'"),
    "an element by a string": (lambda: X["a"], "index.*whole number"),
    "rows by strings": (lambda: X["a":"b"], "whole numbers around the colon"),
    "no row": (lambda: X[2], "a row of 2"),
    "an element outside": (lambda: shadow.make_plan(X).eval(0, 9), "2 rows of 3, got \\(0, 9\\)"),
    "strides beyond": (lambda: Tensor(ARRAY, (2, 3), (4, 1)), "strides within 6 elements"),
    "a stride too many": (lambda: Tensor(ARRAY, (6,), (1, 1)), "1 numbers, one an axis"),
    "a seed of letters": (lambda: shadow.Random("cpu", "x"), "seed.*whole number"),
    "a device of numbers": (lambda: shadow.new_stream([3]), "argument 'name'"),
    "a parameter unhashed": (
        lambda: shadow.implicit_dot(X, X.T, []),
        "argument 'transpose_a': expected a bool, got a list",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_argument_is_named(case):
    build, words = WRONG[case]
    with pytest.raises((GnomonError, TypeError, ValueError, IndexError), match=words):
        build()
    assert (ARRAY == 1).all()


def test_errors_of_other_kinds_are_left_as_they_are():
    @explained
    def careless(src: Expr, n: int) -> int:
        return {}[n]

    with pytest.raises(KeyError):
        careless(X, 1)
    with pytest.raises(TypeError, match="careless: argument 'n': expected a whole number"):
        careless(X, "x")
    with pytest.raises(TypeError, match="missing a required argument: 'n'"):
        careless(X)
    assert careless.__name__ == "careless"


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        (3, int, True), (2**63, int, False), (np.int8(3), int, True), ("3", int, False),
        (3, float, True), (np.float32(3), float, True), (None, int | None, True),
        ((1, None), list[int | None], True), ((1, "x"), list[int], False), (3, list[int], False),
        ("ab", list[int], False), (X, Expr, True), (ARRAY, Expr, False), (X, list[Expr], False),
    ],
)  # fmt: skip
def test_what_fits_an_annotation(value, hint, right):
    assert fits(value, hint) is right
    assert spoken(hint)


def test_sizes_that_no_index_can_mean_are_refused_in_joined_expressions():
    wide = shadow.broadcast_to(shadow.reshape(X, (6, 1)), (6, 2**60))
    with pytest.raises(ShapeError, match=r"fewer than 2\*\*63"):
        shadow.concat(wide, wide, 1)
