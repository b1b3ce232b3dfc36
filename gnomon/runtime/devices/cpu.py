"""The processor as a device: its memory comes from the C library, large blocks from the kernel.

Blocks of `_MAPPED` bytes and more are mapped on their own, and zero without being touched: the
arrays of a ResNet-50, 180 MB, take 0.1 to 0.6 s to be written for the first time. Those of `_LARGE`
bytes begin at the boundary of a huge page and are advised to use such pages: touching 8 MB for the
first time takes 0.6 ms so, and 3.3 ms without.
They begin a few cache lines behind the boundary, each at another distance: arrays that all began at
one would fall into the same sets of the caches (adding two of 40 MB: 13.8 ms, shifted 4.5 ms).
"""

from __future__ import annotations

import ctypes
import itertools
import mmap

ALIGNMENT = 64
_MAPPED = 256 << 10
_LARGE = 2 << 20
_HUGE_PAGE = 2 << 20
_SHIFT, _SHIFTS = 1088, 8  # bytes: a few cache lines, and not a part of a page
_turn = itertools.count()
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)

_libc = ctypes.CDLL(None, use_errno=True)
_aligned_alloc = _libc.aligned_alloc
_aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_aligned_alloc.restype = ctypes.c_size_t
_free = _libc.free
_free.argtypes = [ctypes.c_size_t]
_free.restype = None
_mmap = _libc.mmap
_mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_mmap.restype = ctypes.c_ssize_t
_munmap = _libc.munmap
_munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_madvise = _libc.madvise
_madvise.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]


class Cpu:
    """The processor and its memory."""

    name = "cpu"
    host = runs = True

    def allocate(self, nbytes: int) -> int:
        """A new block, aligned to 64 bytes, or to a huge page; MemoryError where there is none."""
        if nbytes >= _LARGE:
            shift = next(_turn) % _SHIFTS * _SHIFT
            return _map_huge(nbytes + shift) + shift
        if nbytes >= _MAPPED:
            shift = next(_turn) % (mmap.PAGESIZE // _SHIFT) * _SHIFT
            return _map(_up(nbytes + shift, mmap.PAGESIZE)) + shift
        address: int = _aligned_alloc(ALIGNMENT, _up(max(nbytes, 1), ALIGNMENT))
        if not address:
            raise MemoryError(nbytes)
        return address

    def release(self, address: int, nbytes: int) -> None:
        """Gives a block back to the system."""
        if nbytes >= _MAPPED:
            page = _HUGE_PAGE if nbytes >= _LARGE else mmap.PAGESIZE
            start = address // page * page
            _munmap(start, _up(nbytes + address - start, mmap.PAGESIZE))
        else:
            _free(address)

    def clear(self, address: int, nbytes: int, is_new: bool) -> None:
        """Makes bytes zero without the GIL; those of a new block from the kernel are."""
        if not is_new or nbytes < _MAPPED:
            ctypes.memset(address, 0, nbytes)

    def copy(self, dest: int, source: int, nbytes: int) -> None:
        """Copies now, without the GIL; the blocks may overlap."""
        ctypes.memmove(dest, source, nbytes)

    def synchronise(self) -> None:
        """Nothing is pending: `copy` has copied when it returns."""

    def queue(self) -> None:
        """There is none."""


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


def _map(nbytes: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start: int = _mmap(0, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if start == -1:
        raise MemoryError(nbytes)
    return start


def _map_huge(nbytes: int) -> int:
    """Maps more than was asked for, keeps the part that starts at a huge page."""
    nbytes = _up(nbytes, mmap.PAGESIZE)
    whole = nbytes + _HUGE_PAGE
    start = _map(whole)
    address = _up(start, _HUGE_PAGE)
    if address > start:
        _munmap(start, address - start)
    if start + whole > address + nbytes:
        _munmap(address + nbytes, start + whole - address - nbytes)
    if _ADVICE is not None:
        _madvise(address, nbytes, _ADVICE)
    return address


DEVICE = Cpu()
