"""Comparisons of arrays within what their dtypes allow, and the words of a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError

_EXACT = dict.fromkeys(
    map(np.dtype, ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")), 0
)
_HALF, _SINGLE, _DOUBLE = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")


def default_rtols() -> dict[np.dtype[Any], float]:
    """Relative tolerance by dtype."""
    return {_HALF: 1e-2, _SINGLE: 1e-4, _DOUBLE: 1e-5, **_EXACT}


def default_atols() -> dict[np.dtype[Any], float]:
    """Absolute tolerance by dtype."""
    return {_HALF: 1e-1, _SINGLE: 1e-3, _DOUBLE: 1e-20, **_EXACT}


def default_numeric_eps() -> dict[np.dtype[Any], float]:
    """The step of finite differences by dtype: powers of 2."""
    return {_HALF: 2.0**-6, _SINGLE: 2.0**-9, _DOUBLE: 2.0**-14}


def default_dtype() -> type:
    """float32."""
    return np.float32


def get_rtol(rtol: float | None = None, dtype: Any = _DOUBLE) -> float:
    """`rtol`, or the dtype's default."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = _DOUBLE) -> float:
    """`atol`, or the dtype's default."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """`etol`, or 0: the part of elements that may differ."""
    return 0 if etol is None else etol


def effective_dtype(dat: Any) -> np.dtype[Any]:
    """The dtype whose precision `dat` has."""
    return np.dtype(dat.dtype) if hasattr(dat, "dtype") else np.asarray(dat).dtype


def get_tolerance(dat: Any, tol: float | None, default_tol: dict[np.dtype[Any], float]) -> float:
    """`tol`, or the default for `dat`."""
    return default_tol.get(effective_dtype(dat), 0) if tol is None else tol


def get_tols(x: Any, y: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """The tolerances given, or those of the less precise of two arrays."""
    pair = (x, y)
    return (
        max(get_tolerance(each, rtol, default_rtols()) for each in pair),
        max(get_tolerance(each, atol, default_atols()) for each in pair),
    )


def as_numpy(x: Any) -> np.ndarray[Any, Any]:
    """An array of any kind as NumPy's."""
    return np.asarray(x.asnumpy() if hasattr(x, "asnumpy") else x)


def same(a: Any, b: Any) -> bool:
    """Whether two NumPy arrays are equal, element by element.

    >>> same(np.ones(2), np.ones(2)), same(np.ones(2), np.zeros(2))
    (True, False)
    """
    return bool(np.array_equal(a, b))


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether `|a - b| <= atol + rtol * |b|` everywhere."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = as_numpy(a), as_numpy(b)
    if not use_broadcast and a.shape != b.shape:
        return False
    return bool(np.allclose(a, b, rtol, atol, equal_nan=equal_nan))


def assert_allclose(
    a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True
) -> None:
    """`assert_almost_equal` with NumPy's tolerances."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raise unless `|a - b| <= atol + rtol * |b|` everywhere; tolerances go by dtype.

    Raises:
        AssertionError: it says by how much the worst elements differ, and where they are.
    """
    _compare(a, b, get_tols(a, b, rtol, atol), 0, names, equal_nan, use_broadcast, mismatches)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """`assert_almost_equal` where a part `etol` of the elements may differ."""
    tols = get_tols(a, b, rtol, atol)
    _compare(a, b, tols, get_etol(etol), names, equal_nan, True, mismatches)


def assert_almost_equal_ignore_nan(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> None:
    """`assert_almost_equal` of the elements that are NaN in neither array."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = np.broadcast_arrays(as_numpy(a), as_numpy(b))
    either = np.isnan(a) | np.isnan(b)
    assert_almost_equal(np.where(either, 0, a), np.where(either, 0, b), rtol, atol, names)


def _compare(
    a: Any,
    b: Any,
    tols: tuple[float, float],
    etol: float,
    names: tuple[str, str],
    equal_nan: bool,
    use_broadcast: bool,
    mismatches: tuple[int, int],
) -> None:
    a, b = as_numpy(a), as_numpy(b)
    if use_broadcast:
        with contextlib.suppress(ValueError):  # told below
            a, b = np.broadcast_arrays(a, b)
    if a.shape != b.shape:
        raise AssertionError(f"shapes differ: {names[0]} {a.shape}, {names[1]} {b.shape}")
    error = _errors(a, b, *tols, equal_nan)
    wrong = int((error > 1).sum())
    if wrong <= etol * a.size:
        return
    order = np.argsort(-error, axis=None)[: max(1, min(wrong, mismatches[0]))]
    places = [np.unravel_index(k, a.shape) for k in order]
    worst = [
        f"{n:3d}: Error {error[at]:f}  {locationError(a, b, tuple(map(int, at)), names)}"
        for n, at in enumerate(places, 1)
    ]
    raise AssertionError(
        f"\nItems are not equal:\nError {error[places[0]]:f} exceeds tolerance "
        f"rtol={tols[0]:e}, atol={tols[1]:e} (mismatch {100 * wrong / a.size:f}%).\n"
        + "\n".join(worst)
        + f"\n ACTUAL: {a!r}\n DESIRED: {b!r}"
    )


def _errors(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], rtol: float, atol: float, equal_nan: bool
) -> np.ndarray[Any, Any]:
    """How many times the tolerance each pair of elements is apart."""
    wide = np.result_type(a.dtype, b.dtype, np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(a.astype(wide) - b.astype(wide)) / (atol + rtol * np.abs(b) + 1e-20)
    error = np.where(a == b, 0, np.nan_to_num(np.asarray(error), nan=np.inf))
    if equal_nan and np.issubdtype(wide, np.inexact):
        error = np.where((a != a) & (b != b), 0, error)
    return error


def locationError(
    a: Any, b: Any, index: tuple[int, ...], names: tuple[str, str], maxError: bool = False
) -> str:
    """The words for an element that differs.

    >>> locationError(np.ones(2), np.zeros(2), (1,), ("x", "y"))
    'Location of error: (1,), x=1.00000000, y=0.00000000'
    """
    which = "maximum error" if maxError else "error"
    values = ", ".join(f"{n}={float(x[index]):.8f}" for n, x in zip(names, (a, b), strict=True))
    return f"Location of {which}: {index}, {values}"


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two arrays are one memory: a change of the first shows in the second."""
    array1[:] += 1
    first = same(array1.asnumpy(), array2.asnumpy())
    array1[:] -= 1
    return first and same(array1.asnumpy(), array2.asnumpy())


def compare_ndarray_tuple(
    t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """`assert_almost_equal` of two arrays, or of tuples of them, within each other."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol, atol)


def checkShapes(a: Any, b: Any) -> None:
    """Raise where two arrays have different shapes.

    Raises:
        GnomonError: they have.
    """
    if a.shape != b.shape:
        raise GnomonError(f"checkShapes: expected equal shapes, got {a.shape} and {b.shape}")


def assert_exception(
    f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any
) -> None:
    """Raise AssertionError unless `f(*args, **kwargs)` raises `exception_type`."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f!r} did not raise {exception_type.__name__}")


def np_reduce(
    dat: Any, axis: int | Sequence[int] | None, keepdims: bool, numpy_reduce_func: Any
) -> Any:
    """A NumPy reduction along one axis, several or all.

    >>> np_reduce(np.ones((2, 3)), (0, 1), True, np.sum)
    array([[6.]])
    """
    along = range(dat.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return numpy_reduce_func(dat, axis=tuple(along), keepdims=keepdims)


def collapse_sum_like(a: Any, shape: Sequence[int]) -> Any:
    """`a` summed over the axes along which an array of `shape` was stretched to its shape.

    >>> collapse_sum_like(np.ones((2, 3)), (1, 3))
    array([[2., 2., 2.]])
    """
    lead = a.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + k for k, n in enumerate(shape) if n == 1 and a.shape[lead + k] != 1
    )
    return a.sum(axis=axes, keepdims=True).reshape(shape) if axes else a
