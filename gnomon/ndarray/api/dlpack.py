"""DLPack: memory shared with other libraries, both ways, without a copy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gnomon.base import DTypeError, complaint, shown
from gnomon.context import Context, cpu
from gnomon.ground.record import put
from gnomon.ndarray.core.elsewhere import ways

_CPU, _CUDA, _GPU = (1, 0), 2, Context.devstr2type["gpu"]
#: of each kind of capsule, the bytes in its structure before the tensor's (https://dmlc.github.io)
_BEFORE = {b"dltensor": 0, b"dltensor_versioned": 32}
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
# since 2.1 NumPy makes capsules that say whether their memory may be written to
_VERSIONED = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
_TOLD = ("stream", *(("max_version", "dl_device", "copy") if _VERSIONED else ()))


def device(array: Any) -> tuple[int, int]:
    """The device of an array as DLPack numbers it."""
    return _CPU


def export(array: Any, **kwargs: Any) -> Any:
    """A capsule that looks at the memory of an array and keeps it alive.

    Raises:
        DTypeError: NumPy, which makes the capsule, does not know the dtype.
    """
    put(array._chunk, "shared", True)
    array._chunk.push_pending_readers()
    array.wait_to_read()
    view = array._numpy()
    if view.dtype.kind == "V":
        expected = "a dtype that NumPy exchanges"
        raise DTypeError(complaint("to_dlpack", "self", expected, array._dtype.name))
    return view.__dlpack__(**{key: kwargs[key] for key in _TOLD if key in kwargs})


class _Capsule:
    """What holds a bare capsule, as `np.from_dlpack` wants it."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory is, as the capsule's structure says behind its address."""
        named = [name for name in _BEFORE if _is_valid(self.capsule, name)]
        if not named:
            return _CPU  # which NumPy refuses
        start = _pointer(self.capsule, named[0]) + _BEFORE[named[0]]
        return tuple((ctypes.c_int32 * 2).from_address(start + 8))  # type: ignore[return-value]


def imported(source: Any, around: Any) -> Any:
    """An array by `around` on the memory of a capsule, or of what can give one; a GPU's by its way.

    Raises:
        TypeError: `source` is neither.
    """
    if not hasattr(source, "__dlpack__") and type(source).__name__ != "PyCapsule":
        expected = "a DLPack capsule, or an object with __dlpack__"
        raise TypeError(complaint("from_dlpack", "dlpack", expected, shown(source)))
    holder = source if hasattr(source, "__dlpack__") else _Capsule(source)
    if holder.__dlpack_device__()[0] == _CUDA:
        return ways[_GPU].imported(holder)
    return around(np.from_dlpack(holder), cpu(0), shared=True)
