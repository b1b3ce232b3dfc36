"""The array itself: memory, layout, and its place on the tape; what other files add to it is apart.

State of an array: a chunk of memory (shared with its views), the offset of the first element in it,
a layout, and possibly an entry of the tape. The chunk owns the memory and alone knows where it is:
an address is asked for through what keeps it valid. Code that reads the elements in Python waits
for the chunk, which is an engine variable, first; code that computes with them tells the engine
instead.

A *pending* array has a layout and its place in a group (see `pending.py`), but no memory yet: who
asks for its chunk or offset has it computed, by `__getattr__`.

An array's chunk and offset change in one step, and where it is in memory only while it alone holds
the chunk. So code that wants both takes hold of the chunk first: no other thread moves it then.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gnomon import dtype as dtypes
from gnomon import engine
from gnomon.base import ParamError, complaint
from gnomon.compatibility.conversion import convertible
from gnomon.context import Context, current_context
from gnomon.dtype import DType
from gnomon.expr.layout import array_at
from gnomon.expr.node import Buffer
from gnomon.ground.record import Frozen, put, put_all
from gnomon.native.serve import methods, served
from gnomon.native.words import Boxed, native, new
from gnomon.ndarray.core.chunk import Chunk, allocate, cleared
from gnomon.ndarray.core.elsewhere import ways
from gnomon.ndarray.core.layout import Layout, dense, strided
from gnomon.ndarray.core.storage_types import made
from gnomon.ndarray.core.tape import Place
from gnomon.profiler import autostart  # noqa: F401  begins where the settings say so
from gnomon.runtime.ffi import ffi, pointer

_BRIEF = 1 << 14  # bytes: NumPy takes longer to make a view than to copy them


class Array(Frozen):
    """Elements of one dtype in memory of a device; `NDArray` is what users see of it.

    Only the package sets its slots, by `put`: native code reads them as they are.
    """

    __slots__ = ("__weakref__", "_chunk", "_index", "_layout", "_offset", "_pending_in", "_tape")

    main: ClassVar[type[Array]]  # what new arrays are made as

    _chunk: Chunk
    _offset: int  # bytes from the start of the chunk
    _layout: Layout
    _tape: Place | None
    _pending_in: Any  # what has the array pending, as its result number `_index`; None with memory
    _index: int

    def __init_subclass__(cls, main: bool = False) -> None:
        if main:
            Array.main = cls

    # --- making ---------------------------------------------------------------------------------

    @staticmethod
    def _at(chunk: Chunk, layout: Layout, offset: int = 0) -> Any:
        """An array that looks at memory of `chunk`, from so many bytes behind its start on."""
        serve()
        return Array._at(chunk, layout, offset)

    @staticmethod
    def _noted(record: object, index: int, layout: Layout, place: Place) -> Any:
        """An array that has no memory yet, with a place on the tape: a result of `record`."""
        serve()
        return Array._noted(record, index, layout, place)

    def _materialize(self, chunk: Chunk, offset: int = 0) -> None:
        """Give a pending array its memory, in one step."""
        serve()
        self._materialize(chunk, offset)

    def _defer(self, group: Any, index: int) -> None:
        """Take the memory from an array, from then on a result of `group`, in one step."""
        serve()
        self._defer(group, index)

    @staticmethod
    def _new(layout: Layout, ctx: Context) -> Any:
        """An array with memory of its own and any contents; `layout` is dense."""
        way = ways.get(ctx.device_typeid)
        if way is not None:
            return way.new(layout, ctx)
        return Array._at(allocate(layout.nbytes, ctx), layout)

    @staticmethod
    def _around(values: np.ndarray[Any, Any], ctx: Context, shared: bool = False) -> Any:
        """An array on the memory of a NumPy array, which is kept alive; `shared` with others.

        On a device with memory of its own it is a copy.
        """
        way = ways.get(ctx.device_typeid)
        if way is not None:
            return way.around(values, ctx)
        dtype = dtypes.of(values.dtype)
        steps = [s // dtype.size for s in values.strides]
        address = values.__array_interface__["data"][0]
        chunk = Chunk(address, ctx, values, values.nbytes, shared)
        return Array._at(chunk, strided(values.shape, steps, dtype))

    def __getattr__(self, name: str) -> Any:
        if name not in ("_chunk", "_offset"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        while True:  # another thread may materialize it first, or have it pending again
            group = self._pending_in
            if group is not None:
                group.materialize(self)
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                continue

    def _detached(self) -> Any:
        """Another array on the same memory, which the tape knows nothing of."""
        return self._at(self._chunk, self._layout, self._offset)

    def _saved(self) -> Any:
        """What the tape keeps of the array: all elements."""
        return self._detached()

    # --- what it is -----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._layout.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._layout.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._layout.size

    @property
    def dtype(self) -> Any:
        """NumPy's type of the elements."""
        return self._layout.dtype.numpy.type

    @property
    def _dtype(self) -> DType:
        return self._layout.dtype

    @property
    def context(self) -> Context:
        """The device that holds the elements."""
        group = self._pending_in
        found: Context = self._chunk.ctx if group is None else group.ctx
        return found

    ctx = context

    @property
    def stype(self) -> str:
        """How the elements are stored: 'default' is all of them."""
        return "default"

    @property
    def writable(self) -> bool:
        """Whether elements may be written: those of every array may."""
        return True

    @property
    def _var(self) -> engine.Var:
        """The engine's variable of the memory."""
        return self._chunk

    @property
    def _storage(self) -> Any:
        """The owner of the memory."""
        return self._chunk.owner

    @property
    def _start(self) -> int:
        """Where the elements begin in the memory of their device."""
        chunk = self._chunk  # first: no other thread moves the array then
        return chunk.address + self._offset

    _address = _start  # in the processor's memory: an error where that is another's

    def _span(self) -> tuple[int, int]:
        """The addresses of the first byte and of the one after the last."""
        low, high = self._layout.reach()
        start = self._start
        return start + low, start + high

    def _buffer(self) -> Buffer:
        """The array as a leaf of expressions."""
        layout, chunk = self._layout, self._chunk
        start = chunk.address + self._offset
        return Buffer(layout.shape, layout.dtype, layout.strides, start, chunk)

    # --- reading --------------------------------------------------------------------------------

    def wait_to_read(self) -> None:
        """Sleep until every write pushed so far is done.

        Raises:
            EngineError: a function that the elements depend on failed.
        """
        group = self._pending_in
        if group is None or not group.materialize(self):
            engine.get().wait_for_var(self._chunk)

    def _numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy view of the memory, without waiting."""
        layout, chunk = self._layout, self._chunk
        if not layout.size:
            return np.empty(layout.shape, layout.dtype.numpy)
        start = chunk.address + self._offset
        return array_at(start, layout.shape, layout.strides, layout.dtype, chunk)

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array of its own; one element converts to a number.

        Raises:
            EngineError: a function that the elements depend on failed.
        """
        self.wait_to_read()
        layout, chunk = self._layout, self._chunk
        if layout.strides is not None or layout.nbytes > _BRIEF or layout.dtype.numpy.kind == "V":
            values = self._numpy().copy(order="C")
        else:
            values = np.empty(layout.shape, layout.dtype.numpy)
            ffi.memmove(values, pointer(chunk.address + self._offset), layout.nbytes)
            del chunk  # which kept the memory until here
        return convertible(values) if layout.size == 1 else values

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar.

        Raises:
            ValueError: there is not exactly one element.
        """
        if self.size != 1:
            got = f"shape {self.shape}"
            raise ParamError(complaint("asscalar", "self", "an array of one element", got))
        return self.asnumpy().reshape(-1)[0]

    item = asscalar


@native
def address_of(array: Array) -> int:
    """Where the elements of an array in memory begin."""
    return array._chunk.address + array._offset


@native
def array_on(chunk: Chunk, layout: Layout, offset: Boxed = 0) -> Array:
    """An array that looks at memory of a chunk."""
    made = new(Array.main)
    put(made, "_chunk", chunk)
    put(made, "_offset", offset)
    put(made, "_layout", layout)
    put(made, "_tape", None)
    put(made, "_pending_in", None)
    return made


@native
def pending_in(group: object, index: Boxed, layout: Layout, place: object) -> Array:
    """An array that has no memory yet, maybe with a place on the tape: a result of `group`."""
    made = new(Array.main)
    put(made, "_layout", layout)
    put(made, "_tape", place)
    put(made, "_pending_in", group)
    put(made, "_index", index)
    return made


@native
def materialize_in(array: Array, chunk: Chunk, offset: Boxed = 0) -> None:
    """Give a pending array its memory, in one step."""
    put_all(array, ("_offset", "_chunk", "_pending_in"), (offset, chunk, None))


@native
def defer(array: Array, group: object, index: Boxed) -> None:
    """Take the memory from an array, which is a result of `group` from then on, in one step."""
    put_all(array, ("_index", "_pending_in"), (index, group), ("_chunk", "_offset"))


def serve() -> None:
    """From now on arrays get their memory by native code, where there may be such."""
    at, noted = served(array_on, pending_in)
    Array._at, Array._noted = staticmethod(at), staticmethod(noted)  # type: ignore[method-assign]
    ways = methods((Array, materialize_in), (Array, defer))
    Array._materialize, Array._defer = ways  # type: ignore[method-assign]


def empty(shape: tuple[int, ...], dtype: DType, ctx: Context | None = None) -> Any:
    """An array with any contents."""
    return Array._new(dense(shape, dtype), ctx or current_context())


def of_zeros(shape: tuple[int, ...], dtype: DType, ctx: Context) -> Any:
    """An array of zeros, at once: no operator is run, nothing is recorded.

    Large memory that is new from the system is not written for it.
    """
    layout = dense(shape, dtype)
    way = ways.get(ctx.device_typeid)
    if way is not None:
        return way.zeros(layout, ctx)
    return Array._at(cleared(layout.nbytes, ctx), layout)


def kept_zeros(shape: tuple[int, ...], dtype: DType, ctx: Context, stype: str = "default") -> Any:
    """As `of_zeros`, in any storage; zeros that are a value: a write that does not run keeps them.

    Room for results is lost with what should have computed them.
    """
    if stype != "default":
        return made(stype, shape, dtype, ctx)
    array = of_zeros(shape, dtype, ctx)
    put(array._chunk, "version", 1)
    return array
