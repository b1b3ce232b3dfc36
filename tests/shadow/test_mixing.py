"""What index rules of other people may mix: elements, indices, sizes and numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon.expr.composite import Chainer, Size
from gnomon.expr.node import Expr
from gnomon.expr.oracle import evaluate
from gnomon.expr.reducer import SUM
from gnomon.shadow import Tensor, fn
from tests.shadow.test_rules import Thrown, computed, ten


def ruled(at, dtype=dt.float32, **fields):
    """A node of the rule `at` over three elements."""

    @dataclass(frozen=True, eq=False, repr=False)
    class Ruled(Chainer):
        src: Expr
        whole: Expr
        by: Size = 3
        offset: float = 0.5

        def infer(self):
            return (3,), dtype

    Ruled.at = at
    return Ruled(Tensor(np.full(3, 2, np.float32)), Tensor(np.array([2, 0, 1], np.int32)), **fields)


MEETING = {
    "a size": (lambda s, i: i.elem(s.src, i) * s.src.shape[0] * 0.5, [3, 3, 3]),
    "a size before": (lambda s, i: 0.5 * (s.by * i.elem(s.src, i)), [3, 3, 3]),
    "an index": (lambda s, i: i.elem(s.src, i) * i[0], [0, 2, 4]),
    "an index before": (lambda s, i: i[0] - i.elem(s.src, i), [-2, -1, 0]),
    "by an index": (lambda s, i: i.elem(s.src, i) / (i[0] + 1), [2, 1, 2 / 3]),
    "a cast": (lambda s, i: i.elem(s.src, i) + i.cast(i[0], "float32") * 0.5, [2, 2.5, 3]),
    "a cast size": (lambda s, i: i.elem(s.src, i) * (i.cast(s.by, s.dtype) * 0.5), [3, 3, 3]),
    "a cast condition": (lambda s, i: i.elem(s.src, i) * i.cast(i[0] < 2, s.dtype), [2, 2, 0]),
    "a cast element": (
        lambda s, i: i.elem(s.src, i) * i.cast(i.elem(s.whole, i), s.dtype),
        [4, 0, 2],
    ),
    "an element of int32 as an index": (
        lambda s, i: i[0] - i.elem(s.src, (i.elem(s.whole, i),)),
        [-2, -1, 0],
    ),
    "a cast as an index": (
        lambda s, i: i.elem(s.src, (i.cast(i.elem(s.src, i), "int64"),)),
        [2, 2, 2],
    ),
    "a number first": (lambda s, i: i.select(i[0] < 1, 0.5, i.elem(s.src, i)), [0.5, 2, 2]),
    "a guarded number first": (lambda s, i: i.guard(i[0] < 1, 0.5, i.elem(s.src, i)), [0.5, 2, 2]),
    "an index chosen": (lambda s, i: i.select(i[0] < 1, i.elem(s.src, i), i[0]), [2, 1, 2]),
    "a bare index": (lambda s, i: i[0] + 1, [1, 2, 3]),
    "NumPy's numbers": (lambda s, i: i.elem(s.src, i) * np.float64(0.5) + np.int8(1), [2, 2, 2]),
    "a whole float": (lambda s, i: i.elem(s.src, i) * (i[0] * 2.0), [0, 4, 8]),
}


@pytest.mark.parametrize("name", MEETING)
def test_elements_and_indices_meet_in_the_elements_dtype(name):
    at, expected = MEETING[name]
    e = ruled(at)
    np.testing.assert_allclose(computed(e), expected, rtol=1e-6)
    np.testing.assert_allclose(computed(e * 2.0), np.multiply(expected, 2), rtol=1e-6)
    np.testing.assert_allclose(evaluate(e), expected, rtol=1e-6)


REFUSED = {
    "half an index": lambda s, i: i.elem(s.src, i) + i[0] * 0.5,
    "half a size": lambda s, i: i.elem(s.src, i) * (s.src.shape[0] * 0.5),
    "half a size of its own": lambda s, i: i.elem(s.src, i) * (s.by * 0.5),
    "a size divided": lambda s, i: i.elem(s.src, i) * (s.by / 2),
    "a broken index": lambda s, i: i.elem(s.src, (i[0] * 1.5,)),
    "a broken number as an index": lambda s, i: i.elem(s.src, (s.offset,)),
    "an index divided": lambda s, i: i.elem(s.src, (i[0] / 2,)),
    "a broken bound": lambda s, i: i.guard(i[0] < 2.5, i.elem(s.src, i), 0),
    "NumPy's broken number": lambda s, i: i.elem(s.src, (i[0] * np.float32(1.5),)),
    "beyond every integer": lambda s, i: i.elem(s.src, i) * (i[0] + float("inf")),
    "no number": lambda s, i: i.elem(s.src, i) * (i[0] + float("nan")),
    "times a condition": lambda s, i: i.elem(s.src, i) * (i[0] < 2),
    "a condition and a number": lambda s, i: (i[0] < 2) * 3,
    "an element of floats as an index": lambda s, i: i.elem(s.src, (i.elem(s.src, i),)),
    "a condition as an index": lambda s, i: i.elem(s.src, (i[0] < 2,)),
    "elements of two dtypes": lambda s, i: i.elem(s.src, i) * i.elem(s.whole, i),
    "an element of int32 and an index": lambda s, i: i.cast(i.elem(s.whole, i) + i[0], "float32"),
    "an element of int32 and a half": lambda s, i: i.cast(i.elem(s.whole, i) * 0.5, "float32"),
    "beyond int32": lambda s, i: i.cast(i.elem(s.whole, i) + 2**40, "float32"),
    "rest of an element": lambda s, i: i.elem(s.src, i) % 2,
    "two numbers": lambda s, i: i.select(i[0] < 1, 0.5, 1.5),
    "no condition": lambda s, i: i.select(i[0], i.elem(s.src, i), 0),
    "a truth value": lambda s, i: i.guard(True, i.elem(s.src, i), 0),
    "an expression": lambda s, i: i.elem(s.src, i) * s.src,
    "text": lambda s, i: i.elem(s.src, i) + "1",
    "another result": lambda s, i: i.elem(s.whole, i),
    "a condition as a result": lambda s, i: i[0] < 1,
    "a broken extent": lambda s, i: i.fold(SUM, [2.5], lambda k: i.elem(s.src, i)),
    "a number folded": lambda s, i: i.fold(SUM, [2], lambda k: 1),
    "in a part": lambda s, i: i.fold(SUM, [2], lambda k: i.elem(s.src, i) + k[0] * 0.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_change_a_value_is_refused_when_the_node_is_made(name):
    with pytest.raises(TypeError, match=r"Ruled|index rule|Term"):
        ruled(REFUSED[name])


def test_a_refusal_says_what_met_and_how_to_convert():
    with pytest.raises(TypeError) as caught:
        ruled(lambda s, i: i.elem(s.src, i) + i[0] * 0.5)
    assert str(caught.value) == (
        "Ruled.at: argument 'operands': expected a whole number that int64 holds beside an index "
        "or size; i.cast(value, dtype) converts, got an index or size and 0.5"
    )
    with pytest.raises(TypeError, match=r"an element of float32 and an element of int32$"):
        ruled(lambda s, i: i.elem(s.src, i) * i.elem(s.whole, i))


def test_where_a_scatter_adds_is_read_as_strictly():
    class Broken(Thrown):
        def onto(self, i):
            return (i[0] * 0.5,)

    with pytest.raises(TypeError, match=r"Broken.at: .* and 0.5"):
        Broken(ten(), 1)


def test_a_rule_that_fails_is_named():
    with pytest.raises(IndexError, match=r"Ruled\.at: tuple index out of range; i has 1 axis"):
        ruled(lambda s, i: i.elem(s.src, (i[2],)))


def test_mathematics_is_composed_around_an_extension():
    with pytest.raises(TypeError, match=r"sqrt: .*as sqrt\(extension\(x\)\), got a term"):
        ruled(lambda s, i: fn.sqrt(i.elem(s.src, i)))
