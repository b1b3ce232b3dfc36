"""Memory for machine code: written once, then read and executed, never written and executed.

Each piece of code has pages of its own. Pages shared with other code would have to be writable
again while that runs, or be mapped twice, and then a forked child would see its parent write.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from collections.abc import Callable

from gnomon.base import GnomonError

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_FAILED = ctypes.c_void_p(-1).value


class Region:
    """Some pages at `address`, mapped until `free`.

    >>> region = Region(100)
    >>> region.fill(b"some code")
    >>> region.address % mmap.PAGESIZE
    0
    >>> region.free()

    Raises:
        MemoryError: there is no room.
    """

    __slots__ = ("address", "size")

    def __init__(self, nbytes: int) -> None:
        self.size = max(nbytes, 1)
        both, mine = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        found = _libc.mmap(None, self.size, both, mine, -1, 0)
        if found == _FAILED:
            why = os.strerror(ctypes.get_errno())
            raise MemoryError(f"machine code: cannot map {self.size} bytes: {why}")
        self.address: int = found

    def fill(self, code: bytes | bytearray) -> None:
        """Write the code; from now on it can be run, and not be written any more.

        Raises:
            GnomonError: the system lets no program run what it has written.
        """
        if len(code) > self.size:
            raise ValueError(f"machine code: {len(code)} bytes, for which {self.size} were mapped")
        ctypes.memmove(self.address, bytes(code), len(code))
        if _libc.mprotect(self.address, self.size, mmap.PROT_READ | mmap.PROT_EXEC):
            why = os.strerror(ctypes.get_errno())
            raise GnomonError(f"machine code: {self.size} bytes cannot be made to run: {why}")
        flush = flusher(os.uname().machine)
        if flush is not None:
            flush(self.address, self.size)

    def free(self) -> None:
        """Unmap it; its code must not run any more."""
        _libc.munmap(self.address, self.size)


@functools.cache
def flusher(machine: str) -> Callable[[int, int], None] | None:
    """What tells the processor that there is new code at an address; None where it sees that."""
    if machine not in ("aarch64", "arm64"):
        return None
    if hasattr(_libc, "sys_icache_invalidate"):  # Darwin's
        return _flusher(_libc.sys_icache_invalidate, 0)
    return _flusher(ctypes.CDLL("libgcc_s.so.1").__clear_cache, 1)


def _flusher(function: Callable[..., object], takes_end: int) -> Callable[[int, int], None]:
    def flush(address: int, size: int) -> None:
        function(ctypes.c_void_p(address), ctypes.c_size_t(size + takes_end * address))

    return flush
