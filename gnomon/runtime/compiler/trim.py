"""Gives LLVM's memory back to the system once nothing was compiled for `PAUSE` seconds.

LLVM's code and tables are 70 MB of a process that has compiled, more than most programs hold
themselves. They are pages of its file that are only read: where a kernel is compiled later, they
come back from the system's cache, in a few milliseconds. What LLVM has freed goes back too.

States: *quiet*, until something was compiled; *watched*, while a thread sleeps until none was for a
while, gives the memory back, and ends. What is compiled in that last moment may leave its pages
to the next burst.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator

from gnomon.ground.lock import in_child
from gnomon.runtime.ffi import symbol

PAUSE = 1.0
_libc = ctypes.CDLL(None)
_ADVICE = getattr(mmap, "MADV_DONTNEED", None)
_HEADER = struct.Struct("=32xQ14xHH")  # of ELF: where its segments are told, bytes of each, count
_SEGMENT = struct.Struct("=II8xQ16xQ")  # of 64 bits: kind, flags, address, bytes
_LOADED, _WRITABLE = 1, 2


class _State:
    """When something was compiled last, and whether a thread watches for the next."""

    __slots__ = ("latest", "watched")

    def __init__(self) -> None:
        self.latest, self.watched = 0.0, False


_state = _State()


def trim_later(library: int) -> None:
    """LLVM compiled just now: its memory goes back unless it does so again.

    `library` is the address of a function of its library.
    """
    _state.latest = time.monotonic()
    if _state.watched:
        return
    _state.watched = True
    try:
        start_new_thread(_watch, (library,))
    except RuntimeError:  # no thread is to be had, as when the interpreter ends
        _state.watched = False


def _watch(library: int) -> None:
    while _state.watched:
        time.sleep(max(0.0, _state.latest + PAUSE - time.monotonic()))
        _state.watched = time.monotonic() < _state.latest + PAUSE
    trim(library)


def trim(library: int) -> None:
    """Give LLVM's memory back now: other threads may be compiling."""
    if _ADVICE is not None:
        advise = _function("madvise", ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
        for begin, end in unwritten_pages(library):
            advise(begin, end - begin, _ADVICE)
    if symbol(_libc, "malloc_trim"):  # glibc's
        _function("malloc_trim", ctypes.c_size_t)(0)


def unwritten_pages(address: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the pages that are never written, of the library that has this address.

    None where it is no ELF file of 64 bits: its segments are told in memory, where it begins.
    """
    found = (ctypes.c_size_t * 4)()
    known = _function("dladdr", ctypes.c_size_t, ctypes.c_void_p)(address, found)
    base = found[1] if known else 0
    if not base or ctypes.string_at(base, 5) != b"\x7fELF\x02":
        return
    first, size, count = _HEADER.unpack(ctypes.string_at(base, _HEADER.size))
    for k in range(count):
        told = ctypes.string_at(base + first + k * size, _SEGMENT.size)
        kind, flags, at, nbytes = _SEGMENT.unpack(told)
        if kind == _LOADED and not flags & _WRITABLE:
            begin = -(-(base + at) // mmap.PAGESIZE) * mmap.PAGESIZE
            yield begin, (base + at + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE


def _function(name: str, *arguments: type) -> Callable[..., int]:
    """One of libc's that gives an int; a call of it runs without Python's lock."""
    found = _libc[name]  # a new object at each look-up, so its types are its own
    found.argtypes = arguments
    return found


def _in_child() -> None:
    _state.watched = False


in_child(_in_child)
