"""Declared fields: parsing, printing, and errors that list what is allowed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from gnomon import dtype
from gnomon.base import ParamError
from gnomon.dtype import DType
from gnomon.ops.param import (
    Dims,
    Floats,
    OptionalDims,
    Parameter,
    kind_of,
    param,
    parse_fields,
    show,
)


class Everything(Parameter):
    count: int = param(low=1, high=9, doc="How many.")
    ratio: float = param(0.5)
    flag: bool = param(False)
    name: str = param("relu", choices=("relu", "tanh"))
    window: Dims = param((), low=0)
    bounds: OptionalDims = param(())
    rates: Floats = param((0.1,))
    kind: DType = param("float32", choices=("float32", "int8"))
    axis: int | None = param(None)


@pytest.mark.parametrize(
    ("annotation", "given", "parsed"),
    [
        (int, "3", 3),
        (int, np.int64(3), 3),
        (int, "12L", 12),
        (float, "1e-3", 1e-3),
        (float, 2, 2.0),
        (float, "inf", float("inf")),
        (bool, "True", True),
        (bool, "0", False),
        (bool, 1, True),
        (bool, np.True_, True),
        (str, "relu", "relu"),
        (Dims, "(2, 2)", (2, 2)),
        (Dims, "[1,2,3]", (1, 2, 3)),
        (Dims, "(3L, 3L)", (3, 3)),
        (Dims, 5, (5,)),
        (Dims, "5", (5,)),
        (Dims, [1, np.int32(2)], (1, 2)),
        (Dims, "()", ()),
        (OptionalDims, "(None, 1)", (None, 1)),
        (Floats, "(0.1, 2)", (0.1, 2.0)),
        (int | None, "None", None),
        (int | None, "4", 4),
        (Dims | None, None, None),
        (DType, "float16", dtype.float16),
        (DType, np.float64, dtype.float64),
    ],
)
def test_values_and_strings_are_parsed(annotation, given, parsed):
    found = kind_of(annotation).parse(given)
    assert found == parsed
    assert type(found) is type(parsed)


@pytest.mark.parametrize(
    ("field", "given", "says"),
    [
        ("count", "0", "argument 'count': expected int >= 1 and <= 9, got '0'"),
        ("count", 10, "expected int >= 1 and <= 9, got 10"),
        ("count", "many", "expected int >= 1"),
        ("count", 2.5, "got 2.5"),
        ("count", True, "got True"),
        ("flag", "maybe", "expected bool, got 'maybe'"),
        ("ratio", None, "expected float, got None"),
        ("name", "tahn", "one of 'relu', 'tanh', got 'tahn'; did you mean 'tanh'?"),
        ("window", (1, -1), "tuple of ints >= 0, got (1, -1)"),
        ("window", "(1, x)", "got '(1, x)'"),
        ("kind", "float64", "one of 'float32', 'int8', got 'float64'"),
        ("kind", "floaty", "got 'floaty'"),
        ("axis", "x", "expected int or None, got 'x'"),
    ],
)
def test_what_is_not_allowed_is_named(field, given, says):
    with pytest.raises(ParamError, match="Everything: argument") as error:
        Everything(**{"count": 1, field: given})
    assert says in str(error.value)


def test_unknown_and_missing_fields_are_named():
    with pytest.raises(ParamError, match=r"one of the parameters count, ratio.*mean 'ratio'"):
        Everything(count=1, ration=2)
    with pytest.raises(ParamError, match="'count': expected int >= 1 and <= 9, required"):
        Everything()
    assert parse_fields("op", {}, {"x": 1}) == {}  # as MXNet where there are no fields at all


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, 1), "(1, 1)"),
        ((3,), "(3,)"),
        ([2, 3], "[2, 3]"),
        ((None, 3), "(None, 3)"),
        ((), "()"),
        (True, "True"),
        (1e-05, "1e-05"),
        (0.3, "0.3"),
        (2, "2"),
        (None, "None"),
        ("relu", "relu"),
        (dtype.float16, "float16"),
        (np.float32, "float32"),
        (np.float64(0.5), "0.5"),
        (np.int32(7), "7"),
        (np.dtype("int8"), "int8"),
    ],
)
def test_values_print_as_mxnet_prints_them(value, text):
    assert show(value) == text


def test_a_structure_prints_and_parses_itself_again():
    first = Everything(count="2", window=3, rates=[1, 2], axis=-1)
    assert first.as_strings()["window"] == "(3,)"
    assert Everything(**first.as_strings()).values() == first.values()


def test_fields_are_inherited_replaced_and_fixed():
    class More(Everything):
        ratio: float = param(0.75)
        flag = True
        extra: int = param(0)

    assert More(count=1).ratio == 0.75
    assert "flag" not in More.fields
    assert More(count=1).flag is True
    with pytest.raises(ParamError):
        More(count=1, flag=False)
    assert [*More.fields][-1] == "extra"


def test_a_class_that_is_let_go_of_is_gone():
    class Brief(Everything):
        extra: int = param(0)

    gone = weakref.ref(Brief)
    assert Brief(count=1).extra == 0
    del Brief
    gc.collect()
    assert gone() is None


def test_what_a_field_takes_is_described():
    assert Everything.fields["count"].describe() == "int >= 1 and <= 9, required"
    assert Everything.fields["name"].describe() == "one of 'relu', 'tanh', optional, default=relu"
    assert Everything.fields["axis"].describe() == "int or None, optional, default=None"
