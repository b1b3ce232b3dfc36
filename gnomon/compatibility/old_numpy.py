"""`old`: NumPy as a program written for NumPy 1 knows it; NumPy itself prints and converts as then.

It has today's names and those that are gone, and the types of Python under the names that they had
in NumPy until 1.24 (`np.bool`, `np.int`).
"""

from __future__ import annotations

import functools
import math
import os
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gnomon.compatibility.conversion import restore

# What was another name of something: its place in today's NumPy, or in Python.
RENAMED = {
    "Inf": "inf", "Infinity": "inf", "PINF": "inf", "infty": "inf", "NAN": "nan", "NaN": "nan",
    "alltrue": "all", "sometrue": "any", "product": "prod", "cumproduct": "cumprod",
    "round_": "round", "mat": "asmatrix", "trapz": "trapezoid", "in1d": "isin",
    "float_": "float64", "complex_": "complex128", "cfloat": "complex128",
    "singlecomplex": "complex64", "longfloat": "longdouble", "longcomplex": "clongdouble",
    "clongfloat": "clongdouble", "string_": "bytes_", "unicode_": "str_", "bool8": "bool_",
    "int0": "intp", "uint0": "uintp", "object0": "object_", "str0": "str_", "bytes0": "bytes_",
    "void0": "void", "row_stack": "vstack",
}  # fmt: skip
MOVED = ("AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError",
         "VisibleDeprecationWarning")  # fmt: skip
PYTHON = {"bool": bool, "int": int, "float": float, "complex": complex, "object": object,
          "str": str, "long": int, "unicode": str}  # fmt: skip


def behave_as_before() -> None:
    """Have arrays of one element convert to numbers as in NumPy 1, in the whole process, and this
    thread print numbers in lists without their types, as `[0.5]`.
    """
    restore()
    if int(np.__version__.partition(".")[0]) > 1:
        np.set_printoptions(legacy="1.25")


def asfarray(a: Any, dtype: Any = np.float64) -> Any:
    """`a` as an array of floats."""
    return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def asscalar(a: Any) -> Any:
    """The one number in an array."""
    return a.item()


def msort(a: Any) -> Any:
    """A sorted copy, along the first axis."""
    return np.sort(a, axis=0)


def find_common_type(array_types: Sequence[Any], scalar_types: Sequence[Any]) -> Any:
    """The dtype of arrays, and of scalars where their kind is a higher one."""
    arrays = np.result_type(*array_types) if array_types else None
    scalars = np.result_type(*scalar_types) if scalar_types else None
    if arrays is None or scalars is None:
        return scalars if arrays is None else arrays
    order = "biufcmMSUVO"
    return scalars if order.index(scalars.kind) > order.index(arrays.kind) else arrays


def fromstring(
    string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **more: Any
) -> Any:
    """Numbers in text with separators, or the bytes of an array, of which it makes a copy."""
    if sep:
        return np.fromstring(string, dtype, count, sep=sep, **more)
    data = string.encode() if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count, **more).copy()


def sum_(a: Any, *args: Any, **more: Any) -> Any:
    """The sum of an array's elements, or of what a generator yields."""
    if isinstance(a, Generator):
        return sum(a)
    return np.sum(a, *args, **more)


def reshape(a: Any, *args: Any, **more: Any) -> Any:
    """`a` in another shape, which was called `newshape`."""
    if "newshape" in more:
        more["shape"] = more.pop("newshape")
    return np.reshape(a, *args, **more)


def obj2sctype(rep: Any, default: Any = None) -> Any:
    """The scalar type of a dtype, of an array, or of what names one."""
    try:
        return np.dtype(getattr(rep, "dtype", rep)).type
    except TypeError:
        return default


def sctype2char(sctype: Any) -> str:
    """The character of a scalar type."""
    return str(np.dtype(sctype).char)


def issctype(rep: Any) -> bool:
    """Whether it is a scalar type, or a dtype."""
    return isinstance(rep, np.dtype) or (isinstance(rep, type) and issubclass(rep, np.generic))


class _Cast(dict[Any, Any]):
    """By dtype, the function that makes arrays of it."""

    def __missing__(self, key: Any) -> Callable[[Any], Any]:
        return lambda x: np.asarray(x, key)


class _Sizes(dict[Any, int]):
    """By scalar type, the bytes that a number of it takes."""

    def __missing__(self, key: Any) -> int:
        return int(np.dtype(key).itemsize)


def issubsctype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is a kind of another."""
    return np.issubdtype(arg1, arg2)


def _ragged(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """`function`, whose argument at `place` may be lists of unlike lengths: an array of objects.

    `copy=False` of its means as in NumPy 1 that it copies where it must.
    """

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("copy") is False:
            kwargs["copy"] = None
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" not in str(error) or len(args) <= place or kwargs.get("dtype"):
                raise
            rows = np.array(args[place], object)  # in NumPy 1 it was asked for by itself
            return function(*args[:place], rows, *args[place + 1 :], **kwargs)

    return made


RAGGED = {
    f.__name__: _ragged(f, place)
    for f, place in ((np.array, 0), (np.asarray, 0), (np.asanyarray, 0), (np.save, 1))
}
MADE = {
    f.__name__.rstrip("_"): f
    for f in (asfarray, asscalar, find_common_type, fromstring, issctype, issubsctype,
              msort, obj2sctype, reshape, sctype2char, sum_)
}  # fmt: skip
SCTYPES = {
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void],
}
VALUES = {"NINF": -np.inf, "PZERO": 0.0, "NZERO": -0.0, "MAXDIMS": 32, "cast": _Cast(),
          "nbytes": _Sizes(), "sctypes": SCTYPES, "typeDict": np.sctypeDict,
          "math": math, "os": os, "sys": sys, "warnings": warnings}  # fmt: skip


class _Numpy(ModuleType):
    """Today's NumPy with the names that NumPy 1 had besides."""

    def __getattr__(self, name: str) -> Any:
        if name in RENAMED and not hasattr(np, name):
            found = getattr(np, RENAMED[name])
        elif name in MOVED:
            found = getattr(np.exceptions, name, RuntimeWarning)
        else:
            found = getattr(np, name)
        if name not in ("test", "random"):
            self.__dict__[name] = found
        return found

    def __reduce__(self) -> Any:
        return _old, ()  # copies and pickles of programs that keep it

    def __dir__(self) -> list[str]:
        return sorted({*dir(np), *RENAMED, *MOVED, *vars(self)})


class _Lib(ModuleType):
    """`numpy.lib`, from where programs took functions that NumPy has too, as `np.lib.pad`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np.lib, name) if hasattr(np.lib, name) else getattr(old, name)


def _old() -> Any:
    return old


old = _Numpy("numpy", np.__doc__)
old.__dict__.update({**PYTHON, **MADE, **RAGGED, **VALUES, "lib": _Lib("numpy.lib")})
for _name in ("__file__", "__path__", "__spec__", "__version__"):
    setattr(old, _name, getattr(np, _name))
