"""The border to native code: typed pointers, word blocks, libraries and their symbols.

cffi's own C back end is used directly: it parses a few declarations by itself, and `import cffi`
would load a whole C parser (35 ms).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from _cffi_backend import FFI  # type: ignore[import-untyped]

ffi: Any = FFI()

FUNCTION = ffi.typeof("void(*)(void *)")
POINTER = ffi.typeof("void *")
WORDS = ffi.typeof("int64_t[]")
STATUS = ffi.typeof("int32_t *")


class Block:
    """An array of 64-bit words that native code reads its arguments from: zero at first.

    >>> b = Block([1, 2])
    >>> b.words[1] = 7
    >>> list(b.words), b.address % 8
    ([1, 7], 0)
    """

    __slots__ = ("address", "words")

    def __init__(self, values: Sequence[int] | int) -> None:
        self.words = ffi.new(WORDS, values)
        self.address = int(ffi.cast("intptr_t", self.words))


def function(address: int) -> Any:
    """A callable for the native `void f(void *)` at `address`; calling it releases the GIL."""
    return ffi.cast(FUNCTION, address)


def pointer(address: int) -> Any:
    """`address` in the form that a callable of `function` takes."""
    return ffi.cast(POINTER, address)


def symbol(library: ctypes.CDLL, name: str) -> int:
    """The address of `name` in `library`, or 0 where it has none."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
