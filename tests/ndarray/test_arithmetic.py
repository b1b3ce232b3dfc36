"""Python's operators on arrays against NumPy's: values, shapes, dtypes, in-place forms, errors."""

from __future__ import annotations

import operator
import re

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon.base import GnomonError, ParamError, ShapeError

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "**": operator.pow,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
IN_PLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "%=": operator.imod,
}
SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1, 3), (4, 1)),
    ((1,), (5,)),
    ((), ()),
    ((0, 3), (3,)),
]


def values(shape, seed=0, dtype="float32"):
    found = np.random.default_rng(seed).integers(1, 6, shape)
    return found.astype(dtype)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("sign", BINARY)
def test_two_arrays(sign, shapes):
    a, b = values(shapes[0]), values(shapes[1], 1)
    found = BINARY[sign](nd.array(a), nd.array(b))
    np.testing.assert_allclose(found.asnumpy(), BINARY[sign](a, b).astype("float32"), rtol=1e-6)
    assert found.dtype is np.float32


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64"])
@pytest.mark.parametrize("sign", BINARY)
def test_a_number_on_either_side(sign, dtype):
    a = values((3, 2), dtype=dtype)
    x = nd.array(a, dtype=dtype)
    for found, expected in (
        (BINARY[sign](x, 2), BINARY[sign](a, 2)),
        (BINARY[sign](2, x), BINARY[sign](2, a)),
    ):
        assert found.dtype is np.dtype(dtype).type
        expected = expected.astype(dtype)  # division of integers cuts the fraction off
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-3)


@pytest.mark.parametrize("other", [3, "array", "row"])
@pytest.mark.parametrize("sign", IN_PLACE)
def test_in_place(sign, other):
    a = values((2, 3))
    b = {"array": values((2, 3), 1), "row": values((3,), 1)}.get(other, other)
    x = nd.array(a)
    same = y = x
    y = IN_PLACE[sign](y, nd.array(b) if isinstance(b, np.ndarray) else b)
    assert y is same
    np.testing.assert_allclose(x.asnumpy(), IN_PLACE[sign](a.copy(), b), rtol=1e-6)


def test_in_place_cannot_grow():
    x = nd.ones((3,))
    with pytest.raises(ShapeError, match=r"broadcast_add.*\(2, 3\)"):
        x += nd.ones((2, 3))
    assert x.asnumpy().tolist() == [1, 1, 1]


def test_an_array_and_itself():
    x = nd.array([1, 2, 3])
    assert (x + x).asnumpy().tolist() == [2, 4, 6]
    x *= x
    assert x.asnumpy().tolist() == [1, 4, 9]


def test_unary_signs():
    x = nd.array([-1.5, 2])
    assert (-x).asnumpy().tolist() == [1.5, -2]
    assert abs(x).asnumpy().tolist() == [1.5, 2]
    assert (x.T + 0).asnumpy().tolist() == [-1.5, 2]


def test_integers_lose_the_fraction_of_a_number():
    x = nd.array([1, 2, 3], dtype="int32")
    assert (x + 1.5).asnumpy().tolist() == [2, 3, 4]
    assert (x * 2.5).asnumpy().tolist() == [2, 4, 6]
    assert (2 / x).asnumpy().tolist() == [2, 1, 0]


def test_numpy_on_either_side():
    x, a = nd.array([1, 2, 3]), np.array([10, 20, 30])
    for found in (x + a, a + x, np.add(a, x), np.add(x, a)):
        assert isinstance(found, nd.NDArray)
        assert found.asnumpy().tolist() == [11, 22, 33]
    assert (np.float32(2) * x).asnumpy().tolist() == [2, 4, 6]
    assert np.exp(nd.zeros((2,))).tolist() == [1, 1]
    assert np.maximum(x, 2).asnumpy().tolist() == [2, 2, 3]


@pytest.mark.parametrize("other", [None, [1, 2, 3], "x", object()])
def test_what_is_no_operand_is_refused(other):
    x = nd.ones((3,))
    for function in BINARY.values():
        with pytest.raises(TypeError, match="expected an NDArray or a number"):
            function(x, other)


def test_shapes_that_do_not_go_together():
    with pytest.raises(ShapeError, match="broadcast_add: argument 'rhs'"):
        nd.ones((2, 3)) + nd.ones((4,))
    with pytest.raises(GnomonError, match=r"float32.*int32|int32.*float32"):
        nd.ones((3,)) + nd.ones((3,), dtype="int32")


def test_truth():
    assert nd.array([2.0])
    assert not nd.array([0.0])
    assert not nd.empty((0, 3))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(nd.ones((2,)))


def test_numbers_of_one_element():
    x = nd.array([[3.7]])
    assert (int(x), x.asscalar().dtype) == (3, np.float32)
    assert float(x) == pytest.approx(3.7)
    with pytest.raises(ValueError, match="an array of one element, got shape"):
        nd.ones((2,)).asscalar()


def test_functions_of_two():
    x = nd.array([1, 5])
    assert nd.maximum(x, 3).asnumpy().tolist() == [3, 5]
    assert nd.maximum(3, x).asnumpy().tolist() == [3, 5]
    assert nd.minimum(2, 3) == 2
    assert nd.power(2, x).asnumpy().tolist() == [2, 32]
    assert nd.subtract(10, x).asnumpy().tolist() == [9, 5]
    assert nd.lesser(3, x).asnumpy().tolist() == [0, 1]
    assert nd.greater_equal(x, nd.array([[1], [6]])).asnumpy().tolist() == [[1, 1], [0, 0]]
    assert nd.logical_and(x, nd.array([0, 2])).asnumpy().tolist() == [0, 1]


def test_hash_and_identity():
    x, y = nd.ones((2,)), nd.ones((2,))
    assert len({x, y, x}) == 2


def test_a_power_in_place_makes_a_new_array():
    """As in MXNet, which has no such method."""
    x = nd.array([1, 2, 3])
    y = x
    y **= 2
    assert y.asnumpy().tolist() == [1, 4, 9] and x.asnumpy().tolist() == [1, 2, 3]


def test_a_list_in_place_of_an_array_is_told_by_what_is_in_it():
    with pytest.raises(TypeError, match=r"an NDArray, got a list of 2: an NDArray of shape \(3,\)"):
        nd.concat([nd.ones(3), nd.ones(3)], dim=0)
    x = nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = x * 2
    with pytest.raises(ShapeError, match=r"shape \(2, 3\), got an NDArray of shape \(200, 201\)"):
        y.backward(nd.ones((200, 201)))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: nd.random.uniform(x, 1), "got low=an NDArray of shape (200, 201), high=1"),
        (lambda x: nd.random.uniform(x, x, x), "of ints, got an NDArray of shape (200, 201)"),
        (lambda x: nd.topk(x, axis=x), "got an NDArray of shape (200, 201)"),
        (
            lambda x: nd.topk(x, axes=x.asnumpy()),
            "an ndarray of shape (200, 201); did you mean 'axis'?",
        ),
        (lambda x: nd.topk(x, axis=x.asnumpy()), "got an ndarray of shape (200, 201)"),
        (lambda x: nd.concat(x, (1, x, x), dim=0), "a tuple of 3: 1, an NDArray of shape (200, 2"),
        (lambda x: x + (1, x), "got a tuple of 2: 1, an NDArray of shape (200, 201)"),
        (lambda x: mx.io.NDArrayIter(x, batch_size=x), "got an NDArray of shape (200, 201)"),
    ],
)
def test_errors_tell_arrays_by_their_shapes(call, words):
    with pytest.raises((TypeError, ParamError), match=re.escape(words)):
        call(nd.ones((200, 201)))


def test_a_remainder_of_nothing_is_no_negative_zero():
    rest = nd.array([-4.0, 4.0]) % 4
    assert not np.signbit(rest.asnumpy()).any()


def test_negative_zeros_stay():
    x = nd.array([1.0, 2.0])
    for key in (slice(None), 0, slice(1, 2)):
        for zero in (-0.0, np.float32(-0.0)):
            x[:] = 0.0
            assert not np.signbit(x.asnumpy()).any()
            x[key] = zero
            assert np.signbit(x[key].asnumpy()).all()
    assert np.signbit(nd.full((2,), -0.0).asnumpy()).all()
    x.attach_grad()
    with autograd.record():
        y = x * -0.0
    y.backward()
    assert np.signbit(x.grad.asnumpy()).all()
    low = nd.array([-0.0, -0.3, -0.5, 0.3, 0.0])
    assert np.signbit(nd.rint(low).asnumpy()).tolist() == [True, True, True, False, False]
    assert nd.rint(low).asnumpy().tolist() == [0, 0, -1, 0, 0]


def test_numbers_of_numpy_on_the_left_of_comparisons_are_numbers():
    x = mx.nd.array([True, False, True], dtype="bool")
    for found, wanted in [  # MXNet's
        (np.int64(2) <= x, [0, 0, 0]),
        (np.float64(0.5) != x, [1, 0, 1]),
        (np.float32(1.5) > x, [0, 1, 0]),
    ]:
        assert (found.dtype, found.asnumpy().tolist()) == (np.int64, wanted)
