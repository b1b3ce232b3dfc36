"""Tensor: a handle on memory owned elsewhere, which expressions read and assignments write."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DeviceError, DTypeError, Later, ParamError, ShapeError, complaint, shown
from gnomon.expr.arguments import explained
from gnomon.expr.axes import checked_sizes, normal_axis, one_each, whole
from gnomon.expr.layout import UNIT, ZERO, is_read_only
from gnomon.expr.node import Buffer, Operand, as_expr
from gnomon.expr.pattern import EPOCH, NONE, steady
from gnomon.ground.record import put
from gnomon.plan.cut import reach
from gnomon.plan.statement import Store, identity
from gnomon.runtime.devices import device as devices
from gnomon.runtime.statements import call_cache, inspect
from gnomon.runtime.statements.call_cache_tensor import Handle
from gnomon.shadow.assign import assign, check_saver, divto, minusto, multo, plusto, saveto, storing
from gnomon.shadow.stream import Stream
from gnomon.shape import Shape, prod

if TYPE_CHECKING:
    from gnomon.shadow import foreign
else:  # where there is a GPU
    foreign = Later("gnomon.shadow.foreign")

Array = np.ndarray[Any, Any]
Slice: TypeAlias = slice
Key: TypeAlias = int | Slice


class Tensor(Handle):
    """Data with a shape and a stride for each axis; it never frees what it did not make.

    `data` is anything with `__dlpack__`, `__array_interface__` or the buffer protocol; nothing is
    copied, and the owner lives as long as the tensor. `t[:] = e`, `t += e`, `-=`, `*=`, `/=`
    compute.

    >>> import numpy as np
    >>> t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> t[:] = t * 2.0 + 1.0
    >>> t.numpy()
    array([[ 1.,  3.,  5.],
           [ 7.,  9., 11.]], dtype=float32)

    Raises:
        DTypeError: a dtype gnomon does not compute with.
        ParamError: read-only memory is assigned to; it may be read.
        ShapeError: `shape` or `strides` do not fit the data, or elements are not at whole strides.
        DeviceError: there is no such device.
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        device: str | None = None,
        stream: Stream | None = None,
    ) -> None:
        there = None if isinstance(data, np.ndarray) else on_gpu(data)
        if there is not None:
            self._around(there, shape, strides, device, stream)
            return
        array = as_array(data)
        element = array.dtype.itemsize
        if any(s % element for s in array.strides):
            expected = f"strides in whole elements of {element} bytes"
            raise ShapeError(complaint("Tensor", "data", expected, array.strides))
        if not array.flags.aligned:
            expected = f"an address that {array.dtype}'s alignment divides (copy it)"
            raise ShapeError(complaint("Tensor", "data", expected, hex(array.ctypes.data)))
        steps = tuple(s // element for s in array.strides)
        if shape is not None or strides is not None:
            shape, steps = laid_out(array, shape, strides)
        super().__init__(
            array.shape if shape is None else shape,
            dt.of(array.dtype),
            steps,
            array.ctypes.data,
            array,
            placed("cpu", device),
        )
        self.stream_ = stream
        self._guard()

    def _around(
        self,
        there: Buffer,
        shape: Sequence[int] | None,
        strides: Sequence[int] | None,
        device: str | None,
        stream: Stream | None,
    ) -> None:
        """A handle on memory of a GPU."""
        sizes, steps = there.shape, there.strides
        if shape is not None or strides is not None:
            sizes, steps = fitting(there, shape, strides)
        owner = there if there.owner is None else there.owner
        place = placed(there.device, device)
        Buffer.__init__(self, sizes, there.dtype, steps, there.address, owner, place)
        self.stream_ = stream

    def _guard(self) -> None:
        """Have statements on read-only memory go the way that checks it, every time."""
        if is_read_only(self.owner):
            put(self, "pattern", NONE)

    @classmethod
    def from_address(
        cls,
        address: int,
        shape: Sequence[int],
        dtype: Any = dt.default_real,
        strides: Sequence[int] | None = None,
        owner: Any = None,
    ) -> Tensor:
        """A tensor over raw memory. Unsafe: nothing checks that the memory is there, or stays."""
        sizes = checked_sizes("Tensor.from_address", shape)
        if not address and 0 not in sizes:
            raise ParamError(complaint("Tensor.from_address", "address", "an address", address))
        return cls.of(Buffer(sizes, dt.of(dtype), strides, address, owner))

    @classmethod
    def of(cls, buffer: Buffer) -> Tensor:
        """The same memory as a Tensor."""
        return steady(lambda: cls._over(buffer))

    @classmethod
    def _over(cls, buffer: Buffer) -> Tensor:
        made = object.__new__(Tensor)
        # what owns the memory, not the handle: a container may take other memory later
        owner = buffer if buffer.owner is None else buffer.owner
        Buffer.__init__(
            made, buffer.shape, buffer.dtype, buffer.strides, buffer.address, owner, buffer.device
        )
        put(made, "stream_", buffer.stream_ if isinstance(buffer, Tensor) else None)
        made._guard()
        return made

    def __setattr__(self, name: str, value: object) -> None:
        """Only `stream_` may be assigned."""
        if name != "stream_":
            super().__setattr__(name, value)
        if value is not None and not isinstance(value, Stream):
            raise TypeError(complaint("Tensor", name, "a Stream or None", shown(value)))
        put(self, name, value)

    __contains__ = None  # what an element equals is not known here

    def __copy__(self) -> Tensor:
        return Tensor.of(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled or copied deeply: a tensor of its own over the same numbers."""
        return Tensor, (self.numpy().copy(),)

    # -- what it is -----------------------------------------------------------------------------

    @property
    def dptr_(self) -> int:
        """The address of the first element."""
        return self.address

    @property
    def shape_(self) -> Shape:
        """The shape."""
        return Shape(self.shape)

    @property
    def stride_(self) -> int:
        """Elements from row to row, padding included; ShapeError where rows are not dense."""
        return steady(self._row)

    def _row(self) -> int:
        last = self.layout[-1] if self.layout else UNIT
        if last not in (UNIT, ZERO):
            raise ShapeError(complaint("stride_", "layout", "a dense last axis", self.strides))
        if self.ndim < 2:
            return self.shape[-1] if self.shape else 1
        return self.strides[-2] if self.shape[-2] > 1 else self.shape[-1]

    def size(self, axis: int) -> int:
        """The extent of an axis; ShapeError where there is no such axis."""
        return self.shape[normal_axis("size", axis, self.ndim)]

    def mem_size(self, startdim: int = 0) -> int:
        """Elements spanned by the axes from `startdim` on, padding of rows included."""
        first = whole("mem_size", "startdim", startdim)
        return prod(self.shape[first:-1]) * self.stride_

    def check_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self.contiguous

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d tensor has no length")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return np.array(array, dtype) if copy or dtype not in (None, array.dtype) else array

    def __dlpack__(self, **how: Any) -> Any:
        if self.device != "cpu":
            return foreign.capsule(self, how.get("stream"))
        return self.numpy().__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__() if self.device == "cpu" else foreign.device_of(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How libraries of GPUs find the memory; tensors on a processor have none."""
        if self.device == "cpu":
            raise AttributeError("__cuda_array_interface__: the tensor is on cpu")
        return foreign.interface(self)

    # -- views ----------------------------------------------------------------------------------

    @explained
    def view(self, shape: Sequence[int], strides: Sequence[int] | None, offset: int = 0) -> Tensor:
        """Other sizes and strides over the same memory; ShapeError where they reach beyond it."""
        shape, offset = checked_sizes("view", shape), whole("view", "offset", offset)
        if strides is not None:
            strides = one_each("view", "strides", strides, len(shape))
        return steady(lambda: self._within(shape, strides, offset))

    def _within(self, shape: Sequence[int], strides: Sequence[int] | None, offset: int) -> Tensor:
        """The view, if there is memory and it lies within."""
        if self.freed:
            raise ParamError(complaint("view", "self", "a tensor with memory", f"{self!r}, freed"))
        address = self.address + offset * self.dtype.size if self.address else 0
        made = Buffer(shape, self.dtype, strides, address, self.owner, self.device)
        (low, high), (first, last) = reach(self), reach(made)
        if first < last and not low <= first <= last <= high:
            expected = f"places within {self!r}"
            raise ShapeError(
                complaint("view", "shape, strides, offset", expected, (shape, strides, offset))
            )
        return Tensor.of(made)

    def __getitem__(self, key: Key | tuple[Key, ...]) -> Any:
        """`t[i]`: one rank less, a number at the last; `t[a:b]`: rows; `t[a:b, i]` as well."""
        found = self._part(key)
        return found if found.shape or isinstance(key, slice) else found.numpy()[()]

    def _part(self, key: Key | tuple[Key, ...]) -> Tensor:
        """A view; what `key` gives of tensors alike is noted for the next time."""
        if isinstance(key, slice):
            if everything(key):
                return self
        elif isinstance(key, tuple):
            return self._box(key)
        epoch = EPOCH.value
        found = self._box((key,))
        call_cache.note_view(self, key, found, epoch)
        return found

    def _box(self, keys: tuple[Key, ...]) -> Tensor:
        """What a number or a slice for each of the first axes gives."""
        return steady(lambda: self._boxed(keys))

    def _boxed(self, keys: tuple[Key, ...]) -> Tensor:
        if len(keys) > self.ndim:
            expected = "at most one for each axis" if self.shape else "a tensor with an axis"
            raise IndexError(complaint("Tensor", "index", expected, f"{keys} of {self!r}"))
        shape, strides, offset = [], [], 0
        for n, stride, key in zip(self.shape, self.strides, keys, strict=False):
            found = inside(n, key)
            if isinstance(found, range):
                shape.append(len(found))
                strides.append(stride * found.step)
                offset += found.start * stride if found else 0
            else:
                offset += found * stride
        rest = len(keys)
        return self.view((*shape, *self.shape[rest:]), (*strides, *self.strides[rest:]), offset)

    @explained
    def slice(self, begin: int, end: int) -> Tensor:
        """Rows `begin` to before `end`."""
        part: Tensor = self[begin:end]
        return part

    def flat_to_1d(self) -> Tensor:
        """All elements as one axis; ShapeError where they are not contiguous."""
        return steady(lambda: self._flat((prod(self.shape),)))

    def flat_to_2d(self) -> Tensor:
        """All axes but the last joined; rows may be padded."""
        return steady(self._rows)

    def _rows(self) -> Tensor:
        if self.ndim >= 2 and not self.contiguous:
            outer = Buffer(
                self.shape[:-1], self.dtype, [s // (self.stride_ or 1) for s in self.strides[:-1]]
            )
            if not outer.contiguous:
                raise ShapeError(
                    complaint("flat_to_2d", "self", "rows at one distance", self.strides)
                )
            return self.view((prod(self.shape[:-1]), self.shape[-1]), (self.stride_, 1))
        return self._flat((prod(self.shape[:-1]), self.shape[-1] if self.shape else 1))

    def _flat(self, shape: tuple[int, ...]) -> Tensor:
        if not self.contiguous:
            raise ShapeError(complaint("flatten", "self", "a contiguous tensor", self.strides))
        return self.view(shape, None)

    # -- assignment -----------------------------------------------------------------------------

    def assign(self, value: Operand, saver: Any = saveto) -> Self:
        """Store `value` here; gives the tensor itself."""
        assign(self, saver, value)
        return self

    def __setitem__(self, key: Key | tuple[Key, ...], value: Operand) -> None:
        dest = self._part(key)
        if isinstance(value, Buffer) and identity(value) == identity(dest):
            return  # what `t[i:j] += e` stores again
        assign(dest, saveto, value)

    def __iadd__(self, value: Operand) -> Self:
        assign(self, plusto, value)
        return self

    def __isub__(self, value: Operand) -> Self:
        assign(self, minusto, value)
        return self

    def __imul__(self, value: Operand) -> Self:
        assign(self, multo, value)
        return self

    def __itruediv__(self, value: Operand) -> Self:
        assign(self, divto, value)
        return self

    __iand__, __ior__ = storing(operator.and_), storing(operator.or_)
    __ixor__ = storing(operator.xor)
    __ilshift__, __irshift__ = storing(operator.lshift), storing(operator.rshift)

    def __ipow__(self, value: Operand) -> Self:
        # without this, Python would make the name an expression and store nothing
        raise TypeError(complaint("assignment", "operator", "w[:] = w ** 2", "w **= 2"))

    def explain(self, e: Operand, saver: Any = saveto, stage: str = "loop") -> str:
        """What would run for `self saver e`: its 'plan', 'loop', 'llvm' or 'asm'."""
        check_saver(saver)
        value = as_expr(e, self.dtype, "explain", "e")
        return inspect.explain([Store(self, saver, value)], stage)


call_cache.serve(Tensor)


def inside(n: int, key: Key) -> int | range:
    """The place, or places, of an axis of `n` that a key means."""
    if isinstance(key, slice):
        try:
            return range(n)[key]
        except TypeError:
            expected = "whole numbers around the colon"
            raise TypeError(complaint("Tensor", "index", expected, repr(key))) from None
    try:
        place = operator.index(key)
    except TypeError:
        expected = "a whole number or a slice, or one for each axis"
        raise TypeError(complaint("Tensor", "index", expected, repr(key))) from None
    if not -n <= place < n:
        raise IndexError(complaint("Tensor", "index", f"a row of {n}", place))
    return place % n


def everything(key: Slice) -> bool:
    """Whether `key` is `:`."""
    return key.start is key.stop is key.step is None


def as_array(data: Any) -> Array:
    """`data` as a NumPy array over the same memory."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, Buffer):
        return data.numpy()
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    if hasattr(data, "__array_interface__"):
        return np.asarray(data)
    try:
        return np.asarray(memoryview(data))
    except TypeError:
        expected = "an array, a buffer, or an object with __array_interface__ or __dlpack__"
        hint = "numpy.array makes one of numbers, TensorContainer new memory of a shape"
        if type(data).__name__ == "PyCapsule":
            hint = "give what made it, whose __dlpack__ tells whether it may be written to"
        got = f"a {type(data).__name__}; {hint}"
        raise DTypeError(complaint("Tensor", "data", expected, got)) from None


def on_gpu(data: Any) -> Buffer | None:
    """`data` as it lies in the memory of a GPU; None where it does not."""
    if isinstance(data, Buffer):
        return None if data.device == "cpu" else data
    is_there = hasattr(data, "__cuda_array_interface__") or hasattr(data, "__dlpack_device__")
    return foreign.found(data) if is_there else None


def placed(found: str, wanted: str | None) -> str:
    """The device that data is on; DeviceError where another one was asked for."""
    if wanted is not None and devices.find(wanted).name != found:
        expected = f"the device of the data, {found}; a TensorContainer and copy move it"
        raise DeviceError(complaint("Tensor", "device", expected, f"{wanted!s:.60}"))
    return found


def laid_out(
    array: Array, shape: Sequence[int] | None, strides: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Another shape and strides over dense data, which must hold all of them."""
    held = Buffer(array.shape, dt.of(array.dtype), [s // array.itemsize for s in array.strides])
    return fitting(held, shape, strides)


def fitting(
    held: Buffer, shape: Sequence[int] | None, strides: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Another shape and strides over dense memory, which must hold all of them."""
    sizes = checked_sizes("Tensor", held.shape if shape is None else shape)
    steps = Buffer(sizes).strides
    if strides is not None:
        steps = one_each("Tensor", "strides", strides, len(sizes))
    if not held.contiguous or len(steps) != len(sizes):
        expected = "a dense array, and one stride an axis"
        raise ShapeError(complaint("Tensor", "data", expected, (held.strides, sizes, steps)))
    reach = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if n)
    low = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if n and s < 0)
    count = prod(held.shape)
    if 0 not in sizes and (low < 0 or reach - low >= count):
        expected = f"sizes and strides within {count} elements"
        raise ShapeError(complaint("Tensor", "shape, strides", expected, (sizes, steps)))
    return sizes, steps
