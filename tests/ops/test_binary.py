"""Element-wise operators of two inputs: every form of every row."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon.base import DTypeError, ShapeError
from gnomon.dtype import float32, float64
from gnomon.ops import find
from gnomon.ops.binary import FORMS
from gnomon.ops.testing import backward, check, forward

FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "hypot": np.hypot,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
SHAPES = [((7,), (7,)), ((2, 1), (1, 3)), ((2, 3), (3,)), ((4, 1, 2), (3, 1)), ((0, 3), (1, 3))]


def arrays(*shapes):
    """Positive numbers: powers, quotients and remainders are smooth there."""
    generator = np.random.default_rng(3)
    return [generator.uniform(0.6, 2.9, shape) for shape in shapes]


def floats(function):
    return lambda *x: function(*x).astype(np.float64)


def test_every_row_has_a_reference():
    assert set(FORMS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_shapes(name):
    check(find(FORMS[name].elemwise)(), arrays((2, 3), (2, 3)), floats(FUNCTIONS[name]))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(name, shapes):
    check(find(FORMS[name].broadcast)(), arrays(*shapes), floats(FUNCTIONS[name]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name):
    (x,), function = arrays((5,)), floats(FUNCTIONS[name])
    check(find(FORMS[name].scalar)(scalar=1.5), [x], lambda x: function(x, 1.5))
    if FORMS[name].reversed:
        check(find(FORMS[name].reversed)(scalar=1.5), [x], lambda x: function(1.5, x))


@pytest.mark.parametrize(
    ("name", "scalar", "expected"),
    [
        ("_mul_scalar", 2.5, [-6, 4, 14]),
        ("_plus_scalar", 2.7, [-1, 4, 9]),
        ("_div_scalar", 2, [-1, 1, 3]),
        ("_div_scalar", 0, [0, 0, 0]),
        ("_rdiv_scalar", 2, [0, 1, 0]),
        ("_mod_scalar", -2, [-1, 0, -1]),
        ("_greater_scalar", 2.5, [0, 0, 1]),
        ("_rpower_scalar", 2, [0, 4, 128]),
    ],
)
def test_integers_take_numbers_as_integers(name, scalar, expected):
    (y,) = forward(find(name)(scalar=scalar), [np.array([-3, 2, 7], np.int32)])
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, expected)


def test_remainder_by_0_is_0_and_nan_is_true():
    np.testing.assert_array_equal(forward(find("_mod_scalar")(scalar=0), [np.ones(2)])[0], [0, 0])
    both = [np.array([np.nan, 1, 0]), np.array([1.0, np.nan, 1])]
    np.testing.assert_array_equal(forward(find("_logical_and")(), both)[0], [1, 1, 0])
    np.testing.assert_array_equal(forward(find("_maximum")(), both)[0], [np.nan, np.nan, 1])


def test_the_left_one_gets_the_gradient_of_a_tie():
    x = np.array([1.0, 2.0])
    for name in ("_maximum", "_minimum"):
        left, right = backward(find(name)(), [x, x], [np.ones(2)])
        np.testing.assert_array_equal(left, [1, 1])
        np.testing.assert_array_equal(right, [0, 0])


def test_what_does_not_fit_is_named():
    with pytest.raises(ShapeError, match=r"elemwise_add: argument 'rhs'.*\(2, 3\), got \(1, 3\)"):
        find("elemwise_add")().infer_shape([(2, 3), (1, 3)])
    with pytest.raises(ShapeError, match=r"broadcast_add: argument 'rhs'.*\(2, 3\), got \(2, 4\)"):
        find("broadcast_add")().infer_shape([(2, 3), (2, 4)])
    with pytest.raises(DTypeError, match="'rhs': expected dtype float32, got float64"):
        find("broadcast_mul")().infer_type([float32, float64])


def test_partial_shapes_are_stretched():
    infer = find("broadcast_add")().infer_shape
    assert infer([(0, 3), (1, 3)])[1] == [(0, 3)]
    assert infer([(0, 3), (5, 1)])[1] == [(5, 3)]
    assert infer([(2, 3), None])[1] == [None]
