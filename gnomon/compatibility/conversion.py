"""NumPy's arrays of one element convert to a number, from the moment that this module is imported.

They did until NumPy 2.4, whatever their axes, and programs for MXNet write `float(loss.asnumpy())`.
Programs that look at types tell a subclass that converts from a plain array, so the methods of
NumPy's own class are changed. CPython refuses that for classes written in C by a flag, which is
taken away meanwhile: it enters a function of Python in the class then as in any other.

>>> x = np.ones((1, 1))
>>> float(x), "%d" % x, type(x) is np.ndarray
(1.0, '1', True)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

_REFUSED = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 4)
_IMMUTABLE = 1 << 8
_FLAGS = object.__basicsize__ + 19 * ctypes.sizeof(ctypes.c_void_p)  # `tp_flags` in a class


def _lenient(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A conversion of arrays without axes, for all that have one element."""

    def converted(self: Any) -> Any:
        if self.ndim and self.size == 1:
            return convert(self.view(np.ndarray).reshape(()))
        return convert(self)

    return converted


def _restore() -> None:
    """Have NumPy's arrays convert as before, if their class is laid out as it is known here."""
    flags = ctypes.c_ulong.from_address(id(np.ndarray) + _FLAGS)
    if flags.value != np.ndarray.__flags__:
        return
    methods = {f: _lenient(getattr(np.ndarray, f)) for f in ("__float__", "__int__", "__complex__")}
    flags.value &= ~_IMMUTABLE
    try:
        for name, method in methods.items():
            setattr(np.ndarray, name, method)
    finally:
        flags.value |= _IMMUTABLE


if _REFUSED:
    _restore()
