"""Memory of GPUs shared with other libraries, both ways: `__cuda_array_interface__` and DLPack.

Nothing is copied. Who hands memory over says on which stream it is being written, and the other
side's work waits for that. The layout of DLPack's structures: https://dmlc.github.io/dlpack
(`DLManagedTensor`, the capsule called `dltensor`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DTypeError, ShapeError, complaint
from gnomon.dtype import DType
from gnomon.expr.node import Buffer
from gnomon.runtime.devices import device as devices
from gnomon.runtime.devices.cuda import gpu as gpus
from gnomon.runtime.statements.gpu import gpu_of, queue_of

CUDA = 2  # kDLCUDA
BFLOAT, BOOL = 4, 6
KINDS = {"i": 0, "u": 1, "f": 2}
UNORDERED, NAMED = -1, 3  # a stream: none to wait for, and from where on it is a handle
NAME, USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_exported: dict[int, tuple[Any, ...]] = {}  # what consumers hold, by the structure's address
_python = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _python)
)


def _let_go(address: int) -> None:
    """A consumer needs the memory no longer."""
    _exported.pop(address, None)


_delete = _Deleter(_let_go)


def sweep() -> None:
    """Forget capsules that only this table holds: no consumer will take them.

    A destructor of theirs would be Python, and might be called while an exception is under way.
    """
    for address in list(_exported):
        held = _exported.get(address)
        if held is not None and references(held) <= ALONE and _is_valid(held[-1], NAME):
            _exported.pop(address, None)


def references(held: tuple[Any, ...]) -> int:
    """How many references to the last of a tuple there are, as it is counted here."""
    return getrefcount(held[-1])


ALONE = references((object(),))  # where nothing else has one


# -- out ------------------------------------------------------------------------------------------


def interface(tensor: Buffer) -> dict[str, Any]:
    """`__cuda_array_interface__` of a tensor on a GPU."""
    if tensor.dtype is dt.bfloat16:
        raise DTypeError(
            f"{tensor!r}: __cuda_array_interface__ has no name for bfloat16; see DLPack"
        )
    item = tensor.dtype.size
    strides = None if tensor.contiguous else tuple(s * item for s in tensor.strides)
    return {
        "shape": tensor.shape,
        "typestr": tensor.dtype.numpy.str,
        "data": (tensor.address, False),
        "strides": strides,
        "stream": queue_of(tensor).handle,
        "version": 3,
    }


def device_of(tensor: Buffer) -> tuple[int, int]:
    """Where a tensor is, as DLPack numbers it."""
    return CUDA, gpu_of(tensor).ordinal


def capsule(tensor: Buffer, stream: int | None = None) -> Any:
    """A DLPack capsule of a tensor on a GPU, for work on the consumer's `stream`.

    Without a stream, all work on the tensor is waited for.
    """
    sweep()
    queue = queue_of(tensor)
    if stream is not None and stream >= NAMED:
        queue.before(stream)
    elif stream != UNORDERED:
        queue.wait()
    kind = tensor.dtype
    code = BOOL if kind.kind == "b" else BFLOAT if kind is dt.bfloat16 else KINDS[kind.kind]
    sizes, steps = ((ctypes.c_int64 * tensor.ndim)(*n) for n in (tensor.shape, tensor.strides))
    described = _Tensor(
        tensor.address, *device_of(tensor), tensor.ndim, code, 8 * kind.size, 1, sizes, steps, 0
    )
    managed = _Managed(described, None, ctypes.cast(_delete, ctypes.c_void_p))
    address = ctypes.addressof(managed)
    made = _new(address, NAME, None)
    _exported[address] = managed, sizes, steps, tensor, made
    return made


# -- in -------------------------------------------------------------------------------------------


class Taken:
    """Memory that came in a capsule; it is let go of with this object."""

    def __init__(self, managed: _Managed) -> None:
        self.managed = managed

    def __del__(self) -> None:
        if hasattr(self, "managed") and self.managed.deleter:  # or an interrupt came before
            _Deleter(self.managed.deleter)(ctypes.addressof(self.managed))


def found(data: Any) -> Buffer | None:
    """What `data` offers of a GPU's memory, without a copy; None where it offers none.

    Raises:
        DTypeError, ShapeError: it is of a kind that gnomon does not compute with.
    """
    offered = getattr(data, "__cuda_array_interface__", None)
    if offered is not None:
        return _by_interface(offered, data)
    where = getattr(data, "__dlpack_device__", None)
    if where is None or where()[0] != CUDA:
        return None
    return _by_capsule(data, where()[1])


def _by_interface(offered: dict[str, Any], owner: Any) -> Buffer:
    kind = dt.of(np.dtype(offered["typestr"]))
    address, read_only = offered["data"]
    if read_only or offered.get("mask") is not None:
        expected = "memory to read and write, without a mask"
        raise ShapeError(complaint("Tensor", "data", expected, f"{offered}"))
    shape = tuple(offered["shape"])
    strides = offered.get("strides")
    steps = None if strides is None else in_elements(strides, kind)
    place = (gpus.owner(address) if address else gpus.get()).name
    made = Buffer(shape, kind, steps, address, owner, place)
    _after(made, offered.get("stream"))
    return made


def _after(buffer: Buffer, stream: int | None) -> None:
    """Work on a buffer waits for what another library's stream was given."""
    if stream is not None and stream >= NAMED:
        queue_of(buffer).after_stream(stream)
    elif stream is not None:
        gpu_of(buffer).synchronise()


def in_elements(strides: Sequence[int], kind: DType) -> tuple[int, ...]:
    """Strides in bytes as elements."""
    if any(s % kind.size for s in strides):
        expected = f"strides in whole elements of {kind.size} bytes"
        raise ShapeError(complaint("Tensor", "data", expected, strides))
    return tuple(s // kind.size for s in strides)


def _by_capsule(data: Any, ordinal: int) -> Buffer:
    place = devices.find(f"gpu({ordinal})").name
    here = gpu_of(Buffer((), device=place))
    given = data.__dlpack__(stream=here.default.handle)
    if not _is_valid(given, NAME):
        raise DTypeError(complaint("Tensor", "data", "a fresh DLPack capsule", f"{given!r}"))
    managed = _Managed.from_address(_pointer(given, NAME))
    _rename(given, USED)
    owner, it = Taken(managed), managed.tensor
    name = {0: "int", 1: "uint", 2: "float", BFLOAT: "bfloat"}.get(it.code)
    if it.lanes != 1 or (name is None and it.code != BOOL):
        got = f"code {it.code} of {it.bits} bits, {it.lanes} lanes"
        raise DTypeError(complaint("Tensor", "data", "a dtype of one lane", got))
    kind = dt.of("bool" if it.code == BOOL else f"{name}{it.bits}")
    shape = tuple(it.shape[: it.ndim])
    steps = tuple(it.strides[: it.ndim]) if it.strides else None
    return Buffer(shape, kind, steps, (it.data or 0) + it.byte_offset, owner, place)
