"""Symbols that need no input, and functions whose form depends on what they are given."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number, Real
from typing import Any

from gnomon import dtype as dtypes
from gnomon.base import ParamError, check_kind, complaint, power_of_numbers
from gnomon.symbol.apply import apply, is_symbol
from gnomon.symbol.arithmetic import combine
from gnomon.symbol.symbol import Symbol


def _made(alias: str, dtype: Any, given: dict[str, Any], params: dict[str, Any]) -> Symbol:
    """The operator without inputs called `alias`; `given` are further keyword arguments."""
    params["dtype"] = dtypes.of("float32" if dtype is None else dtype).name
    name, attr = given.pop("name", None), given.pop("attr", None)
    return apply(Symbol, alias, alias, (), {}, {**params, **given}, name, attr)


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A symbol of zeros.

    >>> zeros((2, 3)).infer_shape()
    ([], [(2, 3)], [])
    """
    return _made("_zeros", dtype, kwargs, {"shape": shape})


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A symbol of ones."""
    return _made("_ones", dtype, kwargs, {"shape": shape})


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A symbol of one number everywhere."""
    check_kind("sym.full", "val", val, Real, "a number")
    return _made("_full", dtype, kwargs, {"shape": shape, "value": float(val)})


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """A symbol of numbers from `start` to below `stop`, each `repeat` times."""
    params = {"start": start, "stop": stop, "step": step, "repeat": repeat}
    return _made("_arange", dtype, {"name": name}, {**params, "infer_range": infer_range})


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """A symbol of ones on the `k`-th diagonal of `N` rows and `M` columns (0: as many)."""
    return _made("_eye", dtype, kwargs, {"N": N, "M": M, "k": k})


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """A symbol of `num` numbers at equal distances from `start` to `stop`."""
    params = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
    return _made("_linspace", dtype, {"name": name}, params)


def _pair(
    sign: str,
    both: str,
    right: str,
    left: str,
    plain: Callable[[Any, Any], Any],
    one: Any,
    other: Any,
) -> Any:
    """`one` and `other`, symbols or numbers, by the operator that takes them so."""
    if is_symbol(one):
        return combine(Symbol, sign, one, other, both, right)
    if is_symbol(other):
        return combine(Symbol, sign, other, one, both, left)
    for argument, value in (("left", one), ("right", other)):
        check_kind(sign, argument, value, Number, "a symbol or a number")
    return plain(one, other)


def maximum(left: Any, right: Any) -> Any:
    """The greater of two symbols or numbers, element by element."""
    names = ("_maximum", "_MaximumScalar", "_MaximumScalar")
    return _pair("maximum", *names, lambda a, b: a if a > b else b, left, right)


def minimum(left: Any, right: Any) -> Any:
    """The lesser of two symbols or numbers, element by element."""
    names = ("_minimum", "_MinimumScalar", "_MinimumScalar")
    return _pair("minimum", *names, lambda a, b: a if a < b else b, left, right)


def power(base: Any, exp: Any) -> Any:
    """`base` to the power of `exp`, symbols or numbers."""
    names = ("_Power", "_PowerScalar", "_RPowerScalar")
    return _pair("power", *names, power_of_numbers, base, exp)


pow = power


def hypot(left: Any, right: Any) -> Any:
    """The length of the hypotenuse over two symbols or numbers."""
    names = ("_hypot", "_HypotScalar", "_HypotScalar")
    return _pair("hypot", *names, lambda a, b: (a * a + b * b) ** 0.5, left, right)


def split_v2(
    ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False
) -> Symbol:
    """Parts of `ary` along `axis`: so many equal ones, or cut before each of these indices."""
    return ary.split_v2(indices_or_sections, axis, squeeze_axis)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **kwargs: Any) -> Symbol:
    """How many elements fall into each bin, and the edges; `bins` are edges or their number.

    Raises:
        ParamError: a number of bins without a range.
    """
    inputs, params = [a], {}
    if is_symbol(bins):
        inputs.append(bins)
    elif range is None:
        raise ParamError(complaint("histogram", "range", "(lowest, highest) for symbols", None))
    else:
        params = {"bin_cnt": bins, "range": range}
    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    return apply(Symbol, "_histogram", "_histogram", inputs, {}, {**params, **kwargs}, name, attr)
