"""Numbers as kernel arguments: other values make no new recipe, and mean what they say."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import DTypeError
from gnomon.ndarray.lazy import numbers, recipe
from gnomon.ops import Op, op
from gnomon.ops.binary import WithScalar
from gnomon.ops.param import param

VALUES = [2, 0.5, -3, 1e30, float("inf"), 0, -0.0, 101.0, 57]


def made(monkeypatch):
    """Counts the recipes made from now on."""
    count = []
    before = recipe.Recipe.__init__

    def counted(self, *args):
        count.append(1)
        before(self, *args)

    monkeypatch.setattr(recipe.Recipe, "__init__", counted)
    return count


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
def test_other_numbers_share_a_recipe(dtype, monkeypatch):
    a = np.array([[1, 2, 3]], dtype)
    x = nd.array(a, dtype=dtype)
    values = VALUES if dtype.startswith("float") else [2, 0, -3, 101, 57, 1]
    for _ in range(2):  # the second time is as one kernel
        first = x * 7, 7 - x, x > 7
        first[0].asnumpy()
    count = made(monkeypatch)
    for value in values:
        with np.errstate(all="ignore"):
            number = np.dtype(dtype).type(value)
            expected = a * number, number - a, (a > number).astype(dtype)
        for found, wanted in zip((x * value, value - x, x > value), expected, strict=True):
            np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert not count


def test_a_learning_rate_may_move(monkeypatch):
    weight, grad, mom = nd.ones((5,)), nd.ones((5,)), nd.zeros((5,))
    expected, moved = np.ones(5), np.zeros(5)
    nd.sgd_mom_update(weight.copy(), grad, mom.copy(), out=weight.copy(), lr=0.3, momentum=0.9)
    count = made(monkeypatch)
    for k in range(20):
        rate = 0.1 / (k + 1)
        nd.sgd_mom_update(weight, grad, mom, out=weight, lr=rate, momentum=0.9, wd=0.01 * k)
        moved = 0.9 * moved - rate * (1 + 0.01 * k * expected)
        expected = expected + moved
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-4)
    assert len(count) <= 2


@op("test_numbers_squared")
class Squared(WithScalar):
    """Adds the square of its number: made of the field, so that its recipes are its own."""

    def forward(self, data):
        return data + self.scalar * self.scalar


@op("test_numbers_chosen")
class Chosen(Op):
    """Another expression for another sign of a number that the table does not name."""

    slope: float = param(1.0)

    def forward(self, data):
        return data * self.slope if self.slope > 0 else data - self.slope


def test_what_is_made_of_a_field_is_not_shared():
    x = nd.array([1, 2])
    for value in (2, 3, 0.5):
        assert nd.test_numbers_squared(x, scalar=value).asnumpy().tolist() == [
            1 + value**2,
            2 + value**2,
        ]
    assert Squared in numbers._alone
    for value in (2, -3):
        expected = [value, 2 * value] if value > 0 else [1 - value, 2 - value]
        assert nd.test_numbers_chosen(x, slope=value).asnumpy().tolist() == expected


def test_an_update_that_makes_numbers_of_its_rate():
    for rate in (0.1, 0.2, 0.3):
        weight = nd.ones((2,))
        nd.signsgd_update(weight, nd.ones((2,)), out=weight, lr=rate, wd=0.5)
        np.testing.assert_allclose(weight.asnumpy(), [1 - 0.5 * rate - rate] * 2, rtol=1e-5)


@pytest.mark.parametrize("way", ["nd", "symbol"])
@pytest.mark.parametrize(
    ("dtype", "bounds", "expected"),
    [
        ("uint8", (0, 256), [10, 100]),
        ("uint8", (-1, 255), [10, 100]),
        ("int8", (-128, 128), [10, 100]),
        ("int32", (0, float("inf")), [10, 100]),
        ("int32", (-float("inf"), 50), [10, 50]),
    ],
)
def test_bounds_outside_of_a_type_bind_nothing(way, dtype, bounds, expected):
    data = nd.array([10, 100], dtype=dtype)
    if way == "nd":
        result = nd.clip(data, *bounds)
    else:
        net = mx.sym.clip(mx.sym.Variable("x", dtype=dtype), *bounds)
        result = net.bind(mx.cpu(), {"x": data}).forward()[0]
    assert result.asnumpy().tolist() == expected


@pytest.mark.parametrize("value", [1e20, float("inf"), 1 << 70])
def test_numbers_beyond_an_integer_type_are_its_ends(value):
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    ones = nd.ones(2, dtype="int32")
    assert (ones * value).asnumpy().tolist() == [high] * 2
    assert (ones * -value).asnumpy().tolist() == [low] * 2
    assert nd.full((1,), value, dtype="int32").asnumpy() == high
    assert nd.array([value, -value], dtype="int32").asnumpy().tolist() == [high, low]


def test_a_nan_beside_integers_is_0():
    ones = nd.ones(2, dtype="int32")
    for result in (ones * np.nan, nd.full((2,), np.nan, dtype="int8"), ones - 1 + np.nan):
        assert result.asnumpy().tolist() == [0, 0]


def test_what_is_written_into_integers_saturates():
    z = nd.zeros(2, dtype="uint8")
    z[:] = np.array([300, -5.0])
    assert z.asnumpy().tolist() == [255, 0]
    z[:] = [-5, 1 << 70]
    assert z.asnumpy().tolist() == [0, 255]
    z[[0, 1]] = [np.nan, 1e9]
    assert z.asnumpy().tolist() == [0, 255]
    z[0] = -5
    z[1] = 1e9
    assert z.asnumpy().tolist() == [0, 255]
    hot = nd.one_hot(nd.array([0]), 2, on_value=300, dtype="uint8")
    assert hot.asnumpy().tolist() == [[255, 0]]


def test_sums_beside_unsigned_integers_count_modulo():
    x = nd.array([10, 0], dtype="uint8")
    assert (x + -5).asnumpy().tolist() == [5, 251]  # as MXNet
    assert (x - -5).asnumpy().tolist() == [15, 5]
    assert (-x).asnumpy().tolist() == [246, 0]
    assert nd.maximum(x, -5).asnumpy().tolist() == [10, 0]
    net = mx.sym.Variable("x", dtype="uint8") + -5
    assert net.bind(mx.cpu(), {"x": x}).forward()[0].asnumpy().tolist() == [5, 251]
    t = mx.shadow.Tensor(np.array([10, 0], np.uint8))
    with pytest.raises(DTypeError, match="uint8 holds, got -5"):  # as NumPy
        t[:] = t + -5


def test_whole_numbers_of_any_size_go_into_tensors_of_reals_alone():
    t = mx.shadow.Tensor(np.zeros(2, np.int64))
    with pytest.raises(DTypeError, match="int64 holds"):
        t[:] = 1 << 70
    f = mx.shadow.Tensor(np.zeros(2, np.float32))
    f[:] = 1 << 2000
    assert f.numpy().tolist() == [np.inf] * 2


def test_arrays_without_elements_leave_the_others_their_shared_recipes(monkeypatch):
    none, x = nd.empty((0, 3)), nd.ones((2, 3))
    assert (none * 5).shape == (0, 3)
    (x * 2).wait_to_read()
    count = made(monkeypatch)
    assert (x * 3).asnumpy()[0, 0] == 3 and not count


@pytest.mark.parametrize("scalar", [0, 1, 2, -3, True])
def test_numbers_count_truth_values(scalar):
    """As in MXNet the result is int64, whatever the operator."""
    x, told = nd.array([1, 1, 0], dtype="bool"), np.array([1, 1, 0])
    for name in "add subtract multiply maximum minimum equal not_equal greater lesser".split():
        function = getattr(nd, name)
        known = getattr(np, {"lesser": "less"}.get(name, name))
        for found, wanted in (
            (function(x, scalar), known(told, int(scalar))),
            (function(scalar, x), known(int(scalar), told)),
        ):
            assert found.dtype is np.int64 and found.asnumpy().tolist() == wanted.tolist()
    assert (-x).asnumpy().tolist() == [-1, -1, 0]
    assert (x % 2).asnumpy().tolist() == (x**2).asnumpy().tolist() == [1, 1, 0]
    assert (2**x).asnumpy().tolist() == [2, 2, 1] and (x / 1).dtype is np.int64
    assert (5 % x).asnumpy().tolist() == [0, 0, 0]
    assert nd.logical_and(x, scalar).asnumpy().tolist() == [bool(scalar), bool(scalar), 0]


def test_fractions_beside_truth_values_are_cut_off():
    x = nd.array([1, 1, 0], dtype="bool")
    assert (x + 2.5).asnumpy().tolist() == [3, 3, 2] and (x == 0.5).asnumpy().tolist() == [0, 0, 1]
    halves = nd._internal._plus_scalar(x, scalar=2.5, is_int=False)
    assert halves.dtype is np.float64 and halves.asnumpy().tolist() == [3.5, 3.5, 2.5]
    whole = nd.array([1, 2], dtype="int32")
    halves = nd._internal._mul_scalar(whole, scalar=2.5, is_int=False)
    assert halves.dtype is np.float64 and halves.asnumpy().tolist() == [2.5, 5]
    assert nd._internal._scatter_plus_scalar(x, scalar=1).dtype is np.int64


@pytest.mark.parametrize("change", [operator.iadd, operator.isub, operator.imul, operator.imod])
def test_truth_values_take_no_counts(change):
    x = nd.array([1, 1, 0], dtype="bool")
    with pytest.raises(mx.base.DTypeError, match="bool"):
        change(x, 2)
    with pytest.raises(mx.base.DTypeError, match="bool"):
        nd._internal._mul_scalar(nd.ones((3,), dtype="bool"), scalar=2, out=x)
    assert x.asnumpy().tolist() == [True, True, False]


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16"])
def test_symbols_count_truth_values_too(dtype):
    x = mx.sym.var("x")
    for y in (x + 1, 1 - x, x > 1, x * 1, x - 0, x / 1, x**1):
        wanted = np.int64 if dtype == "bool" else np.dtype(dtype).type
        assert y.infer_type(x=dtype)[1] == [wanted]
        found = y.eval(x=nd.array([1, 1, 0], dtype=dtype))[0]
        assert found.dtype is wanted
