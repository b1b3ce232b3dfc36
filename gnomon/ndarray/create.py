"""Making arrays: from values, filled, in a range; and from other arrays as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from gnomon import config
from gnomon import dtype as dtypes
from gnomon.base import ParamError, ShapeError, check_kind, complaint, shown
from gnomon.context import Context, current_context
from gnomon.ndarray.api.dlpack import imported
from gnomon.ndarray.api.functions import context_of, find
from gnomon.ndarray.api.methods import copied, split_v2
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.array import empty as _empty
from gnomon.ndarray.core.values import converted
from gnomon.ndarray.lazy.applied import applying
from gnomon.ndarray.lazy.invoke import invoke
from gnomon.ndarray.ndarray import NDArray
from gnomon.ops import registry
from gnomon.ops.param import Param, kind_of
from gnomon.shape import prod

__all__ = [
    "arange",
    "array",
    "concatenate",
    "empty",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "histogram",
    "linspace",
    "moveaxis",
    "onehot_encode",
    "ones",
    "reset_arrays",
    "split_v2",
    "to_dlpack_for_read",
    "to_dlpack_for_write",
    "zeros",
]

_MOST = (1 << 60) - 1  # elements: of 8 bytes they still have addresses


def _shape(shape: Any) -> tuple[int, ...]:
    """A shape given as a number or a sequence of them; ShapeError where it is none."""
    try:
        sizes = tuple(map(index, shape if np.iterable(shape) else (shape,)))
    except TypeError:
        raise ShapeError(complaint("NDArray", "shape", "whole numbers", repr(shape))) from None
    if min(sizes, default=0) < 0:
        raise ShapeError(complaint("NDArray", "shape", "no negative size", sizes))
    if prod(sizes) > _MOST:
        expected = f"at most {_MOST} elements"
        raise ShapeError(complaint("NDArray", "shape", expected, f"{sizes}, {prod(sizes)}"))
    return sizes


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """An array with the values of another array, a NumPy array, numbers or lists of them.

    The dtype is that of a source of ours, float32 for all others.

    >>> array([[1, 2], [3, 4]]).shape
    (2, 2)

    Raises:
        TypeError: the values are no array of numbers.
    """
    where = context_of(ctx) or current_context()
    if isinstance(source_array, Array):
        same = dtype is None or dtypes.of(dtype) is source_array._dtype
        source = source_array if same else source_array.astype(dtype)
        return copied(source, ctx=where) if source.stype == "default" else source.copyto(where)
    kind = dtypes.wanted(dtype)
    try:
        values = converted(source_array, kind)
    except (TypeError, ValueError) as error:
        expected = "an array, or nested lists of numbers"
        got = shown(source_array)
        raise TypeError(complaint("array", "source_array", expected, got)) from error
    return Array._around(values, where)


def empty(shape: Any, ctx: Context | None = None, dtype: Any = None, stype: Any = None) -> NDArray:
    """An array with any contents; a sparse one keeps nothing."""
    if stype not in (None, "default"):
        return zeros(shape, ctx, dtype, stype)
    return _empty(_shape(shape), dtypes.wanted(dtype), context_of(ctx))


def _made(name: str, ctx: Any, out: Any, **given: Any) -> Any:
    """The array that an operator without inputs makes."""
    return invoke(registry.find(name).parse(given), (), out, context_of(ctx))


def _out_of(name: str, kwargs: dict[str, Any]) -> Any:
    """`out` among further keywords; others than `name` and attributes the operator refuses."""
    rest = {k: v for k, v in kwargs.items() if k not in ("name", "out") and k[:2] != "__"}
    if rest:
        registry.find(name).parse(rest)
    return kwargs.get("out")


def _filled(name: str, shape: Any, ctx: Any, dtype: Any, out: Any) -> Any:
    """The array of one value that `name` makes.

    A shape without axes, or with an axis of 0, is meant as it is; operators take it as unknown.

    Raises:
        ShapeError: an axis of 0, unless shapes mean what they do in NumPy.
    """
    if isinstance(shape, str):  # as operators take it, "(2, 3)"
        shape = registry.find(name).parse({"shape": shape}).shape
    sizes = _shape(shape)
    if out is None and 0 in sizes and not config.get("np_shape"):
        expected = "sizes above 0: 0 is one that is not known, unless mx.util.np_shape is on"
        raise ShapeError(complaint(name.strip("_"), "shape", expected, sizes))
    if out is None and (0 in sizes or not sizes):
        out = empty(sizes, ctx, dtype)
    if out is not None and not out.size:
        return out
    fill = applying(name, shape=sizes, dtype=dtypes.wanted(dtype).name)
    return fill((), out, context_of(ctx) or (current_context() if out is None else None))


def zeros(
    shape: Any, ctx: Context | None = None, dtype: Any = None, stype: Any = None, **kwargs: Any
) -> NDArray:
    """An array of zeros.

    >>> zeros((2, 3), dtype="int32").dtype
    <class 'numpy.int32'>

    Raises:
        ParamError: there is no such storage, or no such keyword.
        ShapeError: an axis of 0 outside of `mx.util.np_shape`, where it is a size not known.
    """
    out = _out_of("_zeros", kwargs)
    if stype not in (None, "default"):
        where = context_of(ctx) or current_context()
        return storage_types.made(stype, _shape(shape), dtypes.wanted(dtype), where)
    return _filled("_zeros", shape, ctx, dtype, out)


def ones(shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """An array of ones."""
    return _filled("_ones", shape, ctx, dtype, _out_of("_ones", kwargs))


def full(
    shape: Any, val: float, ctx: Context | None = None, dtype: Any = np.float32, out: Any = None
) -> NDArray:
    """An array of one value.

    Raises:
        TypeError: `val` is no number.
    """
    if val is None:
        raise TypeError(complaint("full", "val", "a number", None))
    if isinstance(val, str):
        val = Param(name="val", kind=kind_of(float)).parse("full", val)
    made = out if out is not None else empty(shape, ctx, dtype)
    made[:] = val
    return made


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: Any = None,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Numbers from `start` to before `stop` in steps, each `repeat` times.

    >>> arange(2, 6, step=2, repeat=2).asnumpy()
    array([2., 2., 4., 4.], dtype=float32)
    """
    if stop is None:
        start, stop = 0, start
    given = {"start": start, "stop": stop, "step": step, "repeat": repeat}
    return _made("_arange", ctx, None, dtype=dtypes.wanted(dtype).name, **given)


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """`num` numbers at equal distances from `start` to `stop`, the end included or not.

    Raises:
        ParamError: `num` is negative.
    """
    check_kind("linspace", "num", num, (int, np.integer), "an int")
    if num < 0:
        raise ParamError(complaint("linspace", "num", "0 or more", num))
    if num == 0:
        return empty((0,), ctx, dtype)
    given = {"start": start, "stop": stop, "num": num, "endpoint": endpoint}
    return _made("_linspace", ctx, None, dtype=dtypes.wanted(dtype).name, **given)


def eye(
    N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any
) -> NDArray:
    """Ones on a diagonal, zeros elsewhere: `N` rows, `M` columns (as many as rows if 0)."""
    return _made(
        "_eye", ctx, _out_of("_eye", kwargs), N=N, M=M, k=k, dtype=dtypes.wanted(dtype).name
    )


def from_numpy(ndarray: Any, zero_copy: bool = True, array_cls: Any = None) -> NDArray:
    """An array on the memory of a NumPy array, which must not be written from then on.

    Raises:
        ParamError: `zero_copy` of an array that is not in C order.
    """
    check_kind("from_numpy", "ndarray", ndarray, np.ndarray, "a NumPy array")
    if not zero_copy:
        return array(ndarray, dtype=ndarray.dtype)
    if not ndarray.flags["C_CONTIGUOUS"]:
        expected = "an array in C order"
        raise ParamError(complaint("from_numpy", "ndarray", expected, "other strides"))
    ndarray.flags["WRITEABLE"] = False
    return Array._around(ndarray, current_context(), shared=True)


def from_dlpack(dlpack: Any) -> NDArray:
    """An array on the memory of a DLPack capsule, or of what can give one."""
    return imported(dlpack, Array._around)


def to_dlpack_for_read(data: Any) -> Any:
    """A DLPack capsule to read from, once all writes are done."""
    check_kind("to_dlpack_for_read", "data", data, Array, "an NDArray")
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: Any) -> Any:
    """A DLPack capsule to write to, once all reads and writes are done."""
    check_kind("to_dlpack_for_write", "data", data, Array, "an NDArray")
    return data.to_dlpack_for_write()


def concatenate(arrays: Sequence[Any], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Arrays one after another along `axis`; TypeError where they are no list."""
    check_kind("concatenate", "arrays", arrays, (list, tuple), "a list of NDArrays")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return find("", "Concat")(*arrays, dim=axis)


def moveaxis(tensor: Any, source: Any, destination: Any) -> NDArray:
    """The axes `source` at the places `destination`, the others in their order.

    Raises:
        ShapeError: `tensor` has no such axis.
        ParamError: an axis stands twice, or there are more or fewer places than axes.
    """
    check_kind("moveaxis", "tensor", tensor, Array, "an NDArray")
    axes = list(range(tensor.ndim))
    return tensor.transpose(tuple(_moved(axes, source, destination)))


def _moved(axes: list[int], source: Any, destination: Any) -> list[int]:
    """The axes in their new order."""
    ndim = len(axes)
    sources = _axes("source", source, ndim)
    destinations = _axes("destination", destination, ndim)
    if len(sources) != len(destinations):
        expected = f"as many axes as there are places, {len(destinations)}"
        raise ParamError(complaint("moveaxis", "source", expected, source))
    rest = [axis for axis in axes if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        rest.insert(place, axis)
    return rest


def _axes(argument: str, given: Any, ndim: int) -> list[int]:
    """Different axes, counted from the front."""
    numbers = [index(axis) for axis in np.atleast_1d(given)]
    for axis in numbers:
        if not -ndim <= axis < ndim:
            raise ShapeError(complaint("moveaxis", argument, f"an axis of {ndim} axes", axis))
    axes = [axis % ndim for axis in numbers]
    if len(set(axes)) < len(axes):
        raise ParamError(complaint("moveaxis", argument, "each axis once", given))
    return axes


def onehot_encode(indices: Any, out: Any) -> NDArray:
    """A row for each index in `out`, 1 at the index and 0 elsewhere."""
    check_kind("onehot_encode", "out", out, Array, "an NDArray")
    if len(out.shape) != 2:
        raise ShapeError(complaint("onehot_encode", "out", "two axes", f"shape {out.shape}"))
    given = {"depth": out.shape[1], "dtype": out._dtype.name}
    return invoke(registry.find("one_hot").parse(given), (indices,), out)


def reset_arrays(*arrays: Any, num_arrays: int | None = None) -> None:
    """0 into every element of every array.

    Raises:
        ParamError: there are not `num_arrays` of them.
    """
    if num_arrays not in (None, len(arrays)):
        raise ParamError(complaint("reset_arrays", "num_arrays", len(arrays), num_arrays))
    for x in arrays:
        x[:] = 0


def histogram(a: Any, bins: Any = 10, range: Any = None) -> list[NDArray] | tuple[NDArray, NDArray]:
    """How many values fall between the edges of `bins`, and the edges.

    A number of bins without a range gives a tuple, and counts in float32, as MXNet does.
    """
    check_kind("histogram", "a", a, Array, "an NDArray")
    if isinstance(bins, Array):
        return _histogram((a, bins))
    if range is not None:
        return _histogram((a,), bin_cnt=bins, range=range)
    warnings.warn("histogram: no range is given: NumPy finds it, and the edges", stacklevel=2)
    counts, edges = np.histogram(a.asnumpy(), bins)
    return array(counts, a.context, "float32"), array(edges, a.context, "float32")


def _histogram(inputs: tuple[Any, ...], **given: Any) -> Any:
    """What the operator of this name gives."""
    return invoke(registry.find("_histogram").parse(given), inputs)
