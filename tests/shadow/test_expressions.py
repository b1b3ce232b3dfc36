"""Expressions of tensors: types, scalars, casts, transposes, savers, maps, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import dtype as dt
from gnomon import shadow
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.shadow import F, Tensor, TensorContainer, exp_type, fn, scalar, tcast

DTYPES = ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool")
NUMBERS = DTYPES[:-1]


def wrap(values: object, dtype: str = "float32") -> Tensor:
    """A tensor over new memory with these values."""
    return Tensor(np.array(values, dt.of(dtype).numpy))


def compute(e: shadow.Exp) -> np.ndarray:
    """The value of an expression in new memory."""
    return shadow.new_tensor(e.shape, e, e.dtype).numpy()


# -- types -----------------------------------------------------------------------------------


def test_the_type_of_an_expression_is_the_or_of_its_parts():
    a, b = wrap([[1, 2], [3, 4]]), wrap([[5, 6], [7, 8]])
    assert (shadow.kRValue, shadow.kMapper, shadow.kChainer, shadow.kComplex) == (0, 1, 3, 7)
    assert exp_type(a) == 0
    assert exp_type(a + b * 2.0) == exp_type(-a) == exp_type(tcast("int32", a)) == 1
    assert exp_type(scalar(2.0)) == 1
    assert exp_type(a.T) == exp_type(a + b.T) == exp_type(shadow.implicit_dot(a, b) + 1.0) == 3
    assert exp_type(shadow.dot(a, b)) == exp_type(2.0 * shadow.dot(a, b.T)) == 7


def test_every_expression_has_dtype_and_shape_and_a_scalar_fits_any():
    for e in (wrap([1, 2, 3]), wrap([1, 2, 3]) + 1.0, F(fn.exp)(wrap([1, 2, 3]))):
        assert isinstance(e, shadow.Exp)
        assert (e.shape, e.dtype) == ((3,), dt.float32)
    assert scalar(2).shape == ()
    for shape in ((), (3,), (2, 1, 2)):
        t = shadow.TensorContainer(shape)
        t[:] = scalar(2.5)
        assert (t.numpy() == 2.5).all()


def test_an_expression_of_numbers_fits_any_shape_too():
    t = TensorContainer((2, 3), init=1.0)
    t[:] = scalar(1.5) + scalar(2.0) * 2.0
    assert (t.numpy() == 5.5).all()
    t += (scalar(1.0) - 3.0) * t + F(fn.exp)(scalar(0.0))
    assert (t.numpy() == -4.5).all()
    with pytest.raises(ShapeError):  # data without axes does not
        t[:] = wrap(2.0) * 1.0
    with pytest.raises(ShapeError):
        t + wrap(2.0)


# -- scalars ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.float64(2), np.int8(2)])
def test_numbers_take_the_dtype_of_their_operand(number):
    a = wrap([1, 2, 4])
    for e, want in (
        (a * number, [1, 2, 4] * np.array(number)),
        (number / a, np.array(number) / [1, 2, 4]),
        (number - a, np.array(number, "f") - [1, 2, 4]),
    ):
        assert e.dtype is dt.float32
        np.testing.assert_array_equal(compute(e), np.float32(want))


def test_a_float_beside_integers_is_an_error():
    a = wrap([1, 2, 3], "int32")
    for make in (lambda: a * 2.5, lambda: 1.0 + a, lambda: a + np.float32(1), lambda: a**0.5):
        with pytest.raises(DTypeError, match=r"a number of int32, got .*tcast"):
            make()
    assert compute(a * 2 + True).tolist() == [3, 5, 7]


@pytest.mark.parametrize("thing", ["x", None, [1, 2, 3], np.ones(3, np.float32), 1j])
def test_what_is_no_expression_and_no_number_is_refused(thing):
    a = wrap([1, 2, 3])
    for make in (lambda: a + thing, lambda: thing * a, lambda: a.assign(thing)):
        with pytest.raises(TypeError, match=r"operand|value|can't multiply"):
            make()
    assert a.numpy().tolist() == [1, 2, 3]


def test_an_expression_has_no_truth_value():
    with pytest.raises(TypeError, match="truth value"):
        assert wrap([1]) < 2.0


# -- arithmetic ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic_on_both_sides(dtype):
    x = (np.arange(70) % 5 + 1).astype(dt.of(dtype).numpy)
    y = (np.arange(70) % 3 + 1).astype(x.dtype)
    a, b, two = Tensor(x), Tensor(y), x.dtype.type(2)
    with np.errstate(over="ignore"):
        pairs = [
            (a + b * a - b, x + y * x - y),
            (2 * a - (2 - b), two * x - (two - y)),
            (-a, -x),
            (a / b, x / y if a.dtype.kind == "f" else x // y),
            (2 / a, two / x if a.dtype.kind == "f" else two // x),
        ]
    for e, want in pairs:
        np.testing.assert_allclose(compute(e).astype("f8"), want.astype("f8"), rtol=1e-2)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integer_division_truncates_and_never_traps(dtype):
    low = np.iinfo(dtype).min
    a, b = wrap([7, -7, 5, low, 0, low], dtype), wrap([2, 2, 0, -1, 0, 0], dtype)
    assert compute(a / b).tolist() == [3, -3, 0, low, 0, 0]
    a /= b
    assert a.numpy().tolist() == [3, -3, 0, low, 0, 0]


# -- casts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["uint8", "int8", "int32", "int64"])
def test_casts_to_integers_truncate_and_saturate(source, target):
    ends = np.iinfo(target)
    x = np.array([1.9, -1.9, 0.0, np.inf, -np.inf, np.nan], source)
    want = [1, max(-1, ends.min), 0, ends.max, ends.min, 0]
    assert compute(tcast(target, Tensor(x))).tolist() == want


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_every_cast_gives_what_numpy_gives_of_small_numbers(source, target):
    x = np.array([0, 1, 2, 3, 100] * 7).astype(dt.of(source).numpy)
    want = x.astype(dt.of(target).numpy)
    np.testing.assert_array_equal(compute(tcast(target, Tensor(x))), want)


def test_a_cast_to_the_same_dtype_is_the_expression_itself():
    a = wrap([1])
    assert tcast("float32", a) is a
    assert isinstance(tcast("int8", a), shadow.TypecastExp)


def test_mixed_dtypes_name_both_and_the_operands():
    a, b = wrap([1, 2, 3], "int32"), wrap([1, 2, 3])
    with pytest.raises(DTypeError) as error:
        a * 2 + (b + 1.0)
    for part in ("add", "operand 1", "int32", "float32", "mul(Tensor 3 int32, 2)", "tcast"):
        assert part in str(error.value)
    np.testing.assert_array_equal(compute(tcast("float32", a) + b), [2, 4, 6])


# -- transposes ------------------------------------------------------------------------------


def test_a_transpose_turns_any_expression_and_back():
    x = np.arange(6, dtype="f").reshape(2, 3)
    a = Tensor(x)
    assert a.T.T is a
    e = a * 2.0
    assert e.T.T is e
    assert a[0].T.T is not None
    np.testing.assert_array_equal(compute((a * 2.0).T + 1.0), x.T * 2 + 1)
    cube = np.arange(24, dtype="f").reshape(2, 3, 4)
    np.testing.assert_array_equal(compute(Tensor(cube).T), cube.T)


# -- maps ------------------------------------------------------------------------------------


def test_operators_map_over_one_to_three_expressions():
    x, y, z = (np.random.default_rng(k).normal(size=50).astype("f") for k in range(3))
    a, b, c = Tensor(x), Tensor(y), Tensor(z)
    np.testing.assert_array_equal(compute(F(fn.square)(a)), x * x)
    np.testing.assert_array_equal(compute(F("maximum")(a, b)), np.maximum(x, y))
    want = np.where(x > y, z * 2, y)
    np.testing.assert_array_equal(compute(F(fn.where)(a > b, c * 2.0, b)), want)
    np.testing.assert_array_equal(compute(shadow.make_exp(fn.minimum, a, 0.0)), np.minimum(x, 0))
    np.testing.assert_array_equal(compute(shadow.make_exp("minimum", a, 0.0)), np.minimum(x, 0))
    assert isinstance(F(fn.square)(a), shadow.Map)


def test_the_classic_names_of_operators():
    x, y = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    a, b = Tensor(x), Tensor(y)
    for name, want in (("plus", x + y), ("minus", x - y), ("mul", x * y), ("div", x / y)):
        np.testing.assert_array_equal(compute(F(name)(a, b)), want)
    np.testing.assert_array_equal(compute(F("right")(a, b)), y)
    np.testing.assert_array_equal(compute(F("identity")(a)), x)


@pytest.mark.parametrize(
    ("op", "count", "error"),
    [
        ("maximun", 2, "did you mean 'maximum'"),
        (abs, 1, "a scalar operator"),
        ("maximum", 1, "maximum takes 2"),
        (fn.maximum, 3, "maximum takes 2"),
    ],
)
def test_unknown_operators_and_wrong_arity(op, count, error):
    with pytest.raises((ParamError, TypeError), match=error):
        F(op)(*[wrap([1])] * count)


# -- savers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saver", "update"),
    [
        ("saveto", lambda old, new: new),
        ("plusto", np.add),
        ("minusto", np.subtract),
        ("multo", np.multiply),
        ("divto", np.divide),
    ],
)
def test_savers(saver, update):
    old, new = np.float32([8, 12, -6]), np.float32([2, 4, 3])
    a, t = Tensor(new), Tensor(old.copy())
    assert t.assign(a + 1.0, getattr(shadow, saver)) is t
    np.testing.assert_array_equal(t.numpy(), update(old, new + 1))
    t = Tensor(old.copy())
    t.assign(2, saver)
    np.testing.assert_array_equal(t.numpy(), update(old, np.float32(2)))


def test_the_five_assignments():
    x = np.float32([1, 2, 3])
    t, same = Tensor(x), Tensor(x)
    t[:] = t * 2.0
    t += 1.0
    t -= t * 0.5
    t *= Tensor(np.float32([2, 2, 2]))
    t /= 0.5
    assert t.address == same.address
    assert x.tolist() == [6, 10, 14]


def test_an_unknown_saver():
    with pytest.raises(ValueError, match="saveto, plusto, minusto, multo, divto, got add"):
        wrap([1]).assign(1.0, "add")


# -- checks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda a, b: a + b, ShapeError, ("add", "(2, 3)", "3x2", "Tensor 2x3 float32")),
        (lambda a, b: a + b * 2.0, ShapeError, ("mul(Tensor 3x2 float32, 2.0)",)),
        (lambda a, b: a.assign(b), ShapeError, ("assignment", "(2, 3)", "3x2")),
        (lambda a, b: a.assign(-b), ShapeError, ("neg(Tensor 3x2 float32)",)),
        (lambda a, b: a.assign(tcast("int8", a)), DTypeError, ("float32", "int8", "Cast(Tensor")),
        (lambda a, b: a.assign(a[0]), ShapeError, ("(2, 3)", "Tensor 3 float32")),
    ],
)
def test_a_misfit_names_all_and_leaves_the_destination(make, kind, words):
    a, b = wrap([[1, 2, 3], [4, 5, 6]]), wrap([[1, 2], [3, 4], [5, 6]])
    with pytest.raises(kind) as error:
        make(a, b)
    assert isinstance(error.value, GnomonError)
    assert not [word for word in words if word not in str(error.value)]
    assert a.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_row_is_not_repeated_by_itself():
    a = wrap([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ShapeError):
        a + a[0]
    np.testing.assert_array_equal(
        compute(a + shadow.broadcast_to(a[0], (2, 3))), [[2, 4, 6], [5, 7, 9]]
    )


# -- comparisons -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_equality_compares_elements(dtype):
    x, y = np.array([0, 1, 2, 1, 0]), np.array([0, 1, 1, 0, 1])
    a, b = wrap(x, dtype), wrap(y, dtype)
    if dtype == "bool":
        x = x != 0
    for _ in range(60):  # by Python, then by native code
        for found, wanted in (
            (a == b, x == y),
            (a != b, x != y),
            (a == 1, x == 1),
            (1 != a, x != 1),  # noqa: SIM300
            (a + 0 == b, x == y),
        ):
            assert found.dtype is a.dtype
            np.testing.assert_array_equal(compute(found).astype(bool), wanted)


def test_equality_with_numbers_that_the_dtype_does_not_hold():
    a = wrap([1, 255], "uint8")
    np.testing.assert_array_equal(compute(a == 511), [0, 0])
    np.testing.assert_array_equal(compute(a != -1), [1, 1])
    nan = wrap([np.nan, 1.0])
    np.testing.assert_array_equal(compute(nan == nan), [0, 1])
    np.testing.assert_array_equal(compute(nan != nan), [1, 0])


def test_what_cannot_be_compared_is_told():
    a = wrap([1, 2, 3])
    for other in (None, "a", [1, 2, 3], np.ones(3, np.float32), a.numpy):
        with pytest.raises(TypeError, match=r"(eq|ne): argument 'operand 1': expected an expr"):
            a == other  # noqa: B015
        with pytest.raises(TypeError, match=r"(eq|ne): argument 'operand 1': expected an expr"):
            a != other  # noqa: B015
    with pytest.raises(TypeError, match="operand 0"):
        np.ones(3, np.float32) == a  # noqa: B015
    with pytest.raises(ShapeError):
        a == wrap([1, 2])  # noqa: B015
    for doubtful in (lambda: bool(a == a), lambda: a in [wrap([1, 2, 3])], lambda: a == a and 1):
        with pytest.raises(TypeError, match="`is` tells"):
            doubtful()


def test_sets_and_dictionaries_of_expressions_go_by_identity():
    a, b = wrap([1, 2]), wrap([1, 2])
    e, f = a + b, a + b
    table = {a: 1, b: 2, e: 3, f: 4}
    assert [table[x] for x in (a, b, e, f)] == [1, 2, 3, 4]
    assert len({a, b, e, f, a, e}) == 4
    assert (e, 1) in {(e, 1): 0}
    assert (f, 1) not in {(e, 1): 0}
    assert a in [b, a][1:]
