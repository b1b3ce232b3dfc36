"""Gives LLVM's memory back to the system once nothing was compiled for `PAUSE` seconds.

LLVM's code and tables are 70 MB of a process that has compiled, more than most programs hold
themselves. They are pages of its file that are only read: where a kernel is compiled later, they
come back from the system's cache, in a few milliseconds. What LLVM has freed goes back too.

States: *quiet*, until something was compiled; *watched*, while a thread sleeps until none was for a
while, gives the memory back, and ends. What is compiled in that last moment may leave its pages
to the next burst. Before a fork it does so at once: Python warns of forks beside threads.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import struct
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from pathlib import Path

from gnomon.ground.lock import around_forks
from gnomon.runtime.ffi import symbol

PAUSE = 1.0
_LOOKS = 1000  # whether a thread that has ended is gone
_libc = ctypes.CDLL(None)
_ADVICE = getattr(mmap, "MADV_DONTNEED", None)
_HEADER = struct.Struct("=32xQ14xHH")  # of ELF: where its segments are told, bytes of each, count
_SEGMENT = struct.Struct("=II8xQ16xQ")  # of 64 bits: kind, flags, address, bytes
_LOADED, _WRITABLE = 1, 2


class _Burst:
    """What a burst of compiling shares with the thread that watches it."""

    __slots__ = ("ends", "over", "thread")

    def __init__(self) -> None:
        self.ends, self.over, self.thread = threading.Lock(), threading.Lock(), 0
        self.ends.acquire()  # until the thread is to end
        self.over.acquire()  # until it has ended


class _State:
    """When something was compiled last, and the burst of it that is watched."""

    __slots__ = ("burst", "latest")

    def __init__(self) -> None:
        self.latest = 0.0
        self.burst: _Burst | None = None


_state = _State()


def trim_later(library: int) -> None:
    """LLVM compiled just now: its memory goes back unless it does so again.

    `library` is the address of a function of its library.
    """
    _state.latest = time.monotonic()
    if _state.burst is None:
        burst = _state.burst = _Burst()
        try:
            start_new_thread(_watch, (library, burst))
        except RuntimeError:  # no thread is to be had, as when the interpreter ends
            _state.burst = None


def _watch(library: int, burst: _Burst) -> None:
    burst.thread = threading.get_native_id()
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # handlers run elsewhere
    try:
        while (left := _state.latest + PAUSE - time.monotonic()) > 0:
            if burst.ends.acquire(timeout=left):
                break
        trim(library)
    finally:
        if _state.burst is burst:  # after a fork another one may have begun
            _state.burst = None
        burst.over.release()


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
    told = ctypes.string_at(base + first, count * size)
    loaded = [s for k in range(count) if (s := _SEGMENT.unpack_from(told, k * size))[0] == _LOADED]
    moved = base - loaded[0][2]  # the first of them begins with the file
    for _, flags, at, nbytes in loaded:
        if not flags & _WRITABLE:
            begin = -(-(moved + at) // mmap.PAGESIZE) * mmap.PAGESIZE
            yield begin, (moved + at + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE


def _function(name: str, *arguments: type) -> Callable[..., int]:
    """One of libc's that gives an int; a call of it runs without Python's lock."""
    found = _libc[name]  # a new object at each look-up, so its types are its own
    found.argtypes = arguments
    return found


def _before_fork() -> None:
    burst, _state.burst = _state.burst, None
    if burst is None:
        return
    burst.ends.release()
    burst.over.acquire(timeout=PAUSE)  # no longer, where it found no memory to begin with
    for _ in range(_LOOKS):
        if not Path(f"/proc/self/task/{burst.thread}").exists():
            break
        time.sleep(PAUSE / _LOOKS)  # it lets go of Python's lock, and is gone


def _in_child() -> None:
    _state.burst = None


around_forks(_before_fork, bool, _in_child)
