"""Object code kept on disk between processes, by name or by the text it was compiled from.

What is not kept may have come with the package. Every failure of the disk counts as a missing
entry: the code is compiled then. `COUNTS` tells where this process had its code from.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gnomon.base import GnomonError
from gnomon.ground.record import record
from gnomon.runtime.compiler import jit, key
from gnomon.runtime.compiler.disk import Disk, configured, digest, find, is_kept
from gnomon.runtime.compiler.jit import Module
from gnomon.runtime.compiler.progress import PROGRESS

_SIZE = struct.Struct("<I")
Symbols = Mapping[str, int] | None


@record(frozen=False)
class Counts:
    """How many modules this process compiled, and how many it loaded from disk.

    Threads that add at once may lose one: no lock, which a forked child could inherit taken.
    """

    compiled: int = 0
    loaded: int = 0


COUNTS = Counts()
_USED: set[str] = set()  # names of what this process compiled and kept, or loaded


class Kept(NamedTuple):
    """Code from disk, and what was kept beside it."""

    module: Module
    beside: bytes


def disk() -> Disk | None:
    """Where code is kept; None for nowhere, and where its names would not tell what it is."""
    place = configured()
    return place if place is not None and key.surroundings() else None


def why_not() -> str:
    """Why no code is kept; "" where it is."""
    if configured() is None:
        return "the settings disk_cache and disk_cache_limit forbid it"
    if not key.surroundings():
        return "gnomon's sources have been changed since this process began"
    return ""


def name_of(*parts: str) -> str | None:
    """The name of code that depends on `parts` alone; None where nothing is kept."""
    return digest(key.surroundings(), *parts) if disk() else None


def compiled(
    text: str, *, opt: int = jit.BRANCHES, symbols: Mapping[str, int] | None = None
) -> Module:
    """Machine code as `jit.compile_ir` gives it, from disk where it is kept.

    What is no kernel is calls and branches, or, as tiles are, written as it is to run.

    Raises:
        GnomonError: see there.
    """
    name = name_of("text", str(opt), text)
    kept = None if name is None else load(name, symbols)
    if kept is not None:
        return kept.module
    return make(name, text, opt=opt, symbols=symbols)


def make(
    name: str | None,
    text: str,
    beside: bytes = b"",
    *,
    opt: int = jit.BRANCHES,
    symbols: Mapping[str, int] | None = None,
) -> Module:
    """Machine code compiled now, and kept under `name` with what `beside` says.

    Raises:
        GnomonError: see `jit.compile_ir`.
    """
    began = time.perf_counter()
    code = jit.object_code(text, opt=opt)
    module = jit.load_object(code, symbols=symbols)
    COUNTS.compiled += 1
    PROGRESS.compiled(time.perf_counter() - began)
    place = disk()
    if place is not None and name is not None:
        place.write(name, _SIZE.pack(len(beside)) + beside + code)
        _USED.add(name)
    return module


def load(name: str, symbols: Symbols | Callable[[bytes], Symbols] = None) -> Kept | None:
    """The code of that name; None where there is none on disk that can be loaded.

    `symbols` may be made of what was kept beside the code; a ValueError there means that the code
    is of no use.
    """
    content = find(name)
    if content is None:
        return None
    try:
        kept = _loaded(content, symbols)
    except (ValueError, GnomonError):
        forget(name)
        return None
    COUNTS.loaded += 1
    _USED.add(name)
    return kept


def forget(name: str) -> None:
    """Remove what is kept under `name`."""
    place = disk()
    if place is not None:
        place.remove(name)


def set_prepared() -> None:
    """Keep a mark that names the code of typical work, all that this process has used.

    It is for this machine and this Python.
    """
    place, name = disk(), name_of("prepared", sys.version)
    if place is not None and name is not None:
        place.write(name, "\n".join(sorted(_USED)).encode())


def is_prepared() -> bool:
    """Whether such a mark, and all the code that it names, is kept or came with the package."""
    name = name_of("prepared", sys.version)
    mark = None if name is None else find(name)
    return mark is not None and all(map(is_kept, mark.decode().split()))


def _loaded(content: bytes, symbols: Symbols | Callable[[bytes], Symbols]) -> Kept:
    if len(content) < _SIZE.size:
        raise ValueError("an entry ends too early")
    start = _SIZE.size + _SIZE.unpack_from(content)[0]
    beside = content[_SIZE.size : start]
    known = symbols(beside) if callable(symbols) else symbols
    return Kept(jit.load_object(content[start:], symbols=known), beside)
