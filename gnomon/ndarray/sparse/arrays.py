"""Sparse arrays: NDArrays that keep some of their elements, and the way to and from dense ones.

State of a sparse array: `_parts` (`parts.py`). Arrays that were detached from each other share
their parts, as dense ones share memory.

Indices lie inside of the shape; they need not be in order, and several values of one place add up.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from gnomon import dtype as dtypes
from gnomon.base import GnomonError, NotSupportedForSparseNDArray, ParamError, ShapeError, complaint
from gnomon.context import Context, present
from gnomon.dtype import DType
from gnomon.ground.lock import load_module
from gnomon.ground.record import put
from gnomon.ndarray.api import functions, serialize
from gnomon.ndarray.api.arithmetic import combine, is_number
from gnomon.ndarray.api.methods import cast, copied
from gnomon.ndarray.core import storage_types
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.layout import dense as dense_layout
from gnomon.ndarray.core.mode import mode, recording
from gnomon.ndarray.core.tape import record_copy
from gnomon.ndarray.lazy.invoke import check_write, invoke
from gnomon.ndarray.ndarray import NDArray
from gnomon.ndarray.sparse.dense import are_some, on_device, picked, put_rows
from gnomon.ndarray.sparse.parts import Indices, Parts
from gnomon.ops import registry
from gnomon.shape import prod


class BaseSparseNDArray(NDArray):
    """What arrays in sparse storage share; made by `csr_matrix` and `row_sparse_array`."""

    __slots__ = ("_parts",)

    kind: ClassVar[Literal["csr", "row_sparse"]]
    _own: ClassVar = ("_parts", "_layout", "_tape", "_pending_in")
    _parts: Parts

    def __getattr__(self, name: str) -> Any:
        if name in ("_chunk", "_offset"):
            raise NotSupportedForSparseNDArray("memory of all elements")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- what it is -----------------------------------------------------------------------------

    @property
    def stype(self) -> str:
        """How the elements are stored: 'csr' or 'row_sparse'."""
        return self.kind

    @property
    def context(self) -> Context:
        """The device that holds the elements."""
        found: Context = self._parts.data.context
        return found

    ctx = context

    @property
    def data(self) -> Any:
        """A copy of the values that are kept."""
        return self._parts.data.copy()

    @property
    def indices(self) -> Any:
        """A copy of the column of each value, or of the number of each row."""
        return self._parts.aux[-1 if self.kind == "row_sparse" else 0].copy()

    def __repr__(self) -> str:
        sizes = "x".join(map(str, self.shape))
        return f"\n<{type(self).__name__} {sizes} @{self.context}>"

    @staticmethod
    def _restore(data: bytes, context: str) -> Any:
        return restored(data, context)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (serialize.dumps_array(record(self)), str(self.context))

    def _index(self, number: int = 0) -> Indices:  # type: ignore[override]
        """An index array for NumPy, which nothing writes to, once it is computed."""
        return self._parts.index(number)

    def check_format(self, full_check: bool = True) -> None:
        """Refuse what is no valid array of its kind; indices in order too, if `full_check`.

        Raises:
            ParamError: says what should hold.
        """
        if wrong := serialize.fault(record(self)) or (self._disorder() if full_check else None):
            raise ParamError(complaint("check_format", "self", *wrong))

    def _disorder(self) -> serialize.Fault | None:
        """What should hold of the order of indices and does not, and what is there instead."""
        raise TypeError(f"{type(self).__name__} says nothing of the order of its indices")

    # --- as a whole -----------------------------------------------------------------------------

    def wait_to_read(self) -> None:
        """Sleep until every write pushed so far is done."""
        for part in (self._parts.data, *self._parts.aux):
            part.wait_to_read()

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """All elements as a NumPy array."""
        found: np.ndarray[Any, Any] = wide(self).asnumpy()
        return found

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The elements in another dtype, in the same storage; None stands for float32."""
        wanted = dtypes.wanted(dtype)
        if wanted is not self._dtype:
            return like(self, cast(self._parts.data, wanted))
        return copied(self) if copy else self

    def copyto(self, other: Any) -> Any:
        """The elements in the array `other`, or in a new one on the context `other`.

        Raises:
            ShapeError: `other` has another shape.
            TypeError: `other` is neither an array nor a context, or of the other sparse storage.
        """
        if isinstance(other, Context):
            with recording(False):
                made = around(type(self), self.shape, self._dtype, self._parts.on(other))
            if mode.recording and self._tape is not None:
                record_copy(self, made)
            return made
        if isinstance(other, Array) and other.stype not in ("default", self.stype):
            raise TypeError(complaint("copyto", "other", f"default or {self.stype}", other.stype))
        if other is self:
            warnings.warn("copyto: the array is copied to itself", RuntimeWarning, stacklevel=2)
            return self
        return super().copyto(other)

    def tostype(self, stype: str) -> Any:
        """The array in another storage: 'default', or its own.

        Raises:
            ParamError: there is no such storage, or no way from one sparse storage to the other.
        """
        return super().tostype(stype)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Refused: sparse storage belongs to its shape."""
        raise NotSupportedForSparseNDArray("reshape", None, *shape)

    def _viewed(self, name: str, **given: Any) -> Any:
        return invoke(registry.find(name).parse(given), (self,))

    def _reshaped(self, inplace: bool, name: str, **given: Any) -> Any:
        if inplace:
            raise NotSupportedForSparseNDArray(name)
        return super()._reshaped(False, name, **given)

    def _detached(self) -> Any:
        return around(type(self), self.shape, self._dtype, self._parts)

    def _saved(self) -> Any:
        return wide(self)

    def _take(self, other: Any) -> None:
        """Have the elements of an array of the same shape from now on."""
        if other.stype != self.kind:
            other = cast_storage(other._saved() if other.stype != "default" else other, self.kind)
        if other._dtype is not self._dtype:
            other = other.astype(self._dtype)
        self._parts.become(other.as_in_context(self.context)._parts)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write all elements: `x[:] = value`, a number or an array of this shape.

        Raises:
            ParamError: `key` is anything but `[:]`.
            ShapeError: the value has another shape.
            GnomonError: the array is on the tape, and this thread records.
        """
        name = type(self).__name__
        check_write(f"{name}.__setitem__", "self", self)
        if not (isinstance(key, slice) and key == slice(None)):
            raise ParamError(complaint(f"{name}.__setitem__", "key", "[:]", repr(key)))
        if is_number(value):
            self._take(_filled(self, value))
            return
        if not isinstance(value, Array):
            value = self._like(np.asarray(value))
        if value.shape != self.shape:
            expected = f"shape {self.shape}"
            raise ShapeError(complaint(f"{name}.__setitem__", "value", expected, value.shape))
        copied(value, self)


class CSRNDArray(BaseSparseNDArray):
    """A matrix that keeps its values row by row, each with its column.

    >>> from gnomon import nd
    >>> x = nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 4))
    >>> x.asnumpy()
    array([[1., 0., 2., 0.],
           [0., 0., 0., 0.],
           [0., 3., 0., 0.]], dtype=float32)
    """

    __slots__ = ()
    kind = "csr"

    @property
    def indptr(self) -> Any:
        """A copy of where each row starts among the values, and of their number."""
        return self._parts.aux[1].copy()

    def _rows(self) -> Indices:  # type: ignore[override]
        """The row of each value."""
        starts = self._index(1)
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def _places(self) -> Indices:
        """Where each value is among all elements, row by row."""
        return self._rows() * self.shape[1] + self._index(0)

    def _disorder(self) -> serialize.Fault | None:
        places, columns = self._places(), self._index(0)
        return serialize.falling("column indices that rise in each row", places, columns)

    def __getitem__(self, key: Any) -> Any:
        """A row, or rows one after another, as a matrix in the same storage.

        Raises:
            ParamError: the key is neither a row's number nor a slice of rows without a step.
            IndexError: there is no such row.
        """
        rows = self.shape[0]
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -rows <= key < rows:
                raise IndexError(f"index {key} is out of bounds for axis 0 with size {rows}")
            key = slice(key % rows, key % rows + 1)
        if not isinstance(key, slice) or key.step not in (None, 1):
            expected = "a row's number, or a slice of rows without a step"
            raise ParamError(complaint("CSRNDArray.__getitem__", "key", expected, repr(key)))
        begin, end, _ = key.indices(rows)
        given = {"begin": (begin,), "end": (max(begin, end),)}
        return invoke(registry.find("slice").parse(given), (self,))

    def asscipy(self) -> Any:
        """The matrix as `scipy.sparse.csr_matrix`.

        Raises:
            GnomonError: SciPy is not installed.
        """
        try:
            sparse = load_module("scipy.sparse")
        except ImportError as e:
            raise GnomonError("CSRNDArray.asscipy needs SciPy: pip install scipy") from e
        columns, starts = self._index(0).copy(), self._index(1).copy()
        return sparse.csr_matrix((self._parts.data.asnumpy(), columns, starts), shape=self.shape)


class RowSparseNDArray(BaseSparseNDArray):
    """An array that keeps only some of its rows, each with its number.

    >>> from gnomon import nd
    >>> x = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [0, 2]), shape=(4, 2))
    >>> x.asnumpy()[2], x.indices.asnumpy()
    (array([3., 4.], dtype=float32), array([0, 2]))
    """

    __slots__ = ()
    kind = "row_sparse"

    def _disorder(self) -> serialize.Fault | None:
        return serialize.falling("row indices that rise", self._index(), self._index())

    def __getitem__(self, key: Any) -> Any:
        """The array itself: `x[:]`.

        Raises:
            ParamError: the key is any other.
        """
        if isinstance(key, slice) and key == slice(None):
            return self
        raise ParamError(complaint("RowSparseNDArray.__getitem__", "key", "[:]", repr(key)))

    def retain(self, indices: Any) -> Any:
        """The rows that `indices` name, and no others."""
        return functions.find("sparse", "retain")(self, indices)


def _operator(name: str, left: bool) -> Any:
    """The method that combines by `name`; `left` where the array stands left."""

    def method(self: Any, other: Any) -> Any:
        return combine(name, self, other) if left else combine(name, other, self)

    return method


def _in_place(name: str) -> Any:
    """The method that writes what `name` gives into the array."""

    def method(self: Any, other: Any) -> Any:
        return combine(name, self, other, out=self)

    return method


for _name, _function in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "mod": "mod",
    "pow": "power",
}.items():
    setattr(BaseSparseNDArray, f"__{_name}__", _operator(_function, left=True))
    setattr(BaseSparseNDArray, f"__r{_name}__", _operator(_function, left=False))
    setattr(BaseSparseNDArray, f"__i{_name}__", _in_place(_function))
for _name, _function in {
    "__gt__": "greater",
    "__ge__": "greater_equal",
    "__lt__": "lesser",
    "__le__": "lesser_equal",
    "_equal": "equal",
    "_not_equal": "not_equal",
}.items():
    setattr(BaseSparseNDArray, _name, _operator(_function, left=True))


# --- making -----------------------------------------------------------------------------------


def around(kind: type[Any], shape: Sequence[int], dtype: DType, parts: Parts) -> Any:
    """A sparse array of these parts."""
    storage_types.begin()
    array = object.__new__(kind)
    put(array, "_layout", dense_layout(tuple(shape), dtype))
    put(array, "_tape", None)
    put(array, "_pending_in", None)
    put(array, "_parts", parts)
    return array


def make(kind: type[Any], shape: Sequence[int], data: Any, aux: Sequence[Any]) -> Any:
    """A sparse array of the values `data` and their places `aux`, NumPy's or arrays."""
    known = {k: _int64(x) for k, x in enumerate(aux) if not isinstance(x, Array)}
    arrays = [Array._around(known[k], data.context) if k in known else x for k, x in enumerate(aux)]
    return around(kind, shape, data._dtype, Parts(data, arrays, known))


def _int64(values: Any) -> Indices:
    return np.ascontiguousarray(values, np.int64)


def like(array: Any, data: Any) -> Any:
    """A sparse array of other values at the same places."""
    return around(type(array), array.shape, data._dtype, array._parts.over(data))


def zeros_csr(shape: Any, dtype: DType, ctx: Context) -> Any:
    """A `csr` array that keeps nothing."""
    if len(shape) != 2:
        raise ShapeError(complaint("csr_matrix", "shape", "two axes", shape))
    data = Array._new(dense_layout((0,), dtype), ctx)
    return make(CSRNDArray, shape, data, (np.zeros(0), np.zeros(shape[0] + 1)))


def zeros_row_sparse(shape: Any, dtype: DType, ctx: Context) -> Any:
    """A `row_sparse` array that keeps nothing."""
    if not shape:
        raise ShapeError(complaint("row_sparse_array", "shape", "one axis or more", shape))
    data = Array._new(dense_layout((0, *shape[1:]), dtype), ctx)
    return make(RowSparseNDArray, shape, data, (np.zeros(0),))


storage_types.zeros.update(csr=zeros_csr, row_sparse=zeros_row_sparse)


def _filled(array: Any, value: Any) -> Any:
    """One number everywhere, in the storage of `array`."""
    if not value:
        return storage_types.made(array.kind, array.shape, array._dtype, array.context)
    full = Array._new(dense_layout(array.shape, array._dtype), array.context)
    full[:] = value
    return cast_storage(full, array.kind)


# --- from one storage to another --------------------------------------------------------------


def wide(x: Any) -> Any:
    """All elements of an array in memory of their own; a dense array as it is."""
    if not isinstance(x, BaseSparseNDArray):
        return x
    parts = x._parts
    if not parts.data.size:
        found = Array._new(dense_layout(x.shape, x._dtype), x.context)
        found[:] = 0
        return found
    if x.kind == "row_sparse":
        return put_rows(parts.aux[0], parts.data, x.shape[0])
    return put_rows(on_device(x._places(), x), parts.data, prod(x.shape)).reshape(x.shape)


def cast_storage(data: Any, stype: str) -> Any:
    """An array in another storage; what is 0 is not kept.

    Raises:
        ParamError: there is no such storage, or no way from one sparse storage to the other.
        ShapeError: a `csr` array of other than two axes.
    """
    registry.find("cast_storage").parse({"stype": stype})
    if data.stype == stype:
        return copied(data)
    if stype == "default":
        return wide(data)
    if data.stype != "default":
        expected = f"default or {data.stype}"
        raise ParamError(complaint("cast_storage", "stype", expected, stype))
    return _to_csr(data) if stype == "csr" else _to_row_sparse(data)


def _to_csr(data: Any) -> Any:
    """The elements that are not 0, row by row."""
    if data.ndim != 2:
        raise ShapeError(complaint("cast_storage", "data", "two axes for csr", data.shape))
    line = data._detached().reshape((-1,))
    places = np.flatnonzero(are_some(line))
    return matrix_at(data.shape, places, picked(line, places))


def matrix_at(shape: tuple[int, ...], places: Indices, data: Any) -> Any:
    """A `csr` array of values at places in row-major order, which rise."""
    width = max(shape[1], 1)
    columns = places - places // width * width
    starts = np.searchsorted(places, np.arange(shape[0] + 1) * width)
    return make(CSRNDArray, shape, data, (columns, starts))


def _to_row_sparse(data: Any) -> Any:
    """The rows that are not all 0."""
    if not data.ndim:
        raise ShapeError(complaint("cast_storage", "data", "one axis or more", data.shape))
    if not data.size:
        return zeros_row_sparse(data.shape, data._dtype, data.context)
    whole = data._detached()
    rows = np.flatnonzero(are_some(whole.reshape((data.shape[0], -1)), axis=1))
    return make(RowSparseNDArray, data.shape, picked(whole, rows), (rows,))


# --- in files ---------------------------------------------------------------------------------


def record(x: Any) -> serialize.Sparse:
    """A sparse array as files hold it."""
    aux = [x._index(number) for number in range(len(x._parts.aux))]
    ordered = (aux[1], aux[0]) if x.kind == "csr" else (aux[0],)
    return serialize.Sparse(x.kind, x.shape, x._parts.data.asnumpy(), ordered)


def from_record(found: serialize.Sparse, ctx: Context) -> Any:
    """The array of a file's record."""
    data = Array._around(np.require(found.data, requirements=["C", "W", "O"]), ctx)
    if found.storage == "row_sparse":
        return make(RowSparseNDArray, found.shape, data, found.aux)
    starts, columns = found.aux
    if not len(starts):  # MXNet writes an untouched array so
        starts = np.zeros(found.shape[0] + 1)
    return make(CSRNDArray, found.shape, data, (columns, starts))


def restored(data: bytes, context: str) -> Any:
    """The array of a pickle."""
    ctx = functions.context_of(context)
    assert ctx is not None
    found, _ = serialize.read_array(data)
    assert isinstance(found, serialize.Sparse)
    return from_record(found, present(ctx))
