"""Names under which code is kept from process to process: digests of all that code depends on.

Besides what is compiled, that is gnomon's own sources, LLVM and the processor's level: after a
change of one of them every name is another, and the old entries go as the least used.
"""

from __future__ import annotations

import functools
import os
from _blake2 import blake2b  # hashlib would load OpenSSL as well (4 ms)
from collections.abc import Sequence
from pathlib import Path

from gnomon import __version__
from gnomon.ground.importing import BEGUN
from gnomon.runtime.compiler.disk import DIGEST, configured, digest
from gnomon.runtime.compiler.host import baseline

PACKAGE = Path(__file__).parents[2]
# what decides the code of a kernel, and how it is called
SOURCES = (
    "base.py",
    "dtype.py",
    "shape.py",
    "expr",
    "ground/levels.py",
    "ground/record.py",
    "native",
    "plan",
    "code",
    "runtime",
)
_TICK = 0.05  # seconds by which the times of files may lag behind the clock
_begun = BEGUN - _TICK  # since when this process may have read gnomon's sources


@functools.cache
def surroundings() -> str:
    """What code depends on but its structure: gnomon, LLVM, level; "" where it is not known."""
    sources = sources_digest(PACKAGE, _begun)
    if not sources:
        return ""
    here = baseline()
    parts = (here.triple, here.cpu, here.feature_string, str(here.vector_bytes))
    return digest(__version__, sources, here.llvm, *parts)


def sources_digest(package: Path, begun: float) -> str:
    """A digest of the sources that decide the code; "" where it would not tell what runs here.

    That is where there are none, and where one was changed after `begun`, since when this process
    may have read it. It is kept on disk by the files' sizes and times, so that they are read once:
    of the times one is the system's own, which no copying sets.
    """
    try:
        files = _files(package)
        seen = _seen(files)
        if any(max(mtime, ctime) > begun * 1e9 for _, mtime, ctime, _ in seen):
            return ""
        place, name = configured(), digest("sources", str(package), str(seen))
        found = None if place is None else place.read(name)
        if found is not None:
            return found.decode()
        content = _content_digest(files)
        if _seen(files) != seen:
            return ""
        if place is not None:
            place.write(name, content.encode())
        return content
    except OSError:
        return ""


def is_settled(file: str) -> bool:
    """Whether a file was last changed before this process read it."""
    try:
        about = os.stat(file)  # noqa: PTH116  half the time of Path.stat
    except OSError:
        return False
    return max(about.st_mtime_ns, about.st_ctime_ns) <= _begun * 1e9


def _seen(files: Sequence[tuple[str, str]]) -> list[tuple[int, int, int, int]]:
    """Size, times and number of each file."""
    about = [os.stat(path) for _, path in files]  # noqa: PTH116  half the time of Path.stat
    return [(a.st_size, a.st_mtime_ns, a.st_ctime_ns, a.st_ino) for a in about]


def _content_digest(files: Sequence[tuple[str, str]]) -> str:
    hashed = blake2b(digest_size=DIGEST)
    for name, path in files:
        descriptor = os.open(path, os.O_RDONLY)  # a third of the time of Path.read_bytes
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            data = stream.read()
        hashed.update(f"{name} {len(data)}\n".encode() + data)
    return hashed.hexdigest()


def _files(package: Path) -> list[tuple[str, str]]:
    """The sources: name within the package, and path, in one order everywhere."""
    found = [(name, f"{package}{os.sep}{name}") for name in SOURCES if name.endswith(".py")]
    waiting = [(name, f"{package}{os.sep}{name}") for name in SOURCES if not name.endswith(".py")]
    while waiting:
        folder, path = waiting.pop()
        with os.scandir(path) as entries:
            inside = [(f"{folder}/{e.name}", e) for e in entries if e.name != "__pycache__"]
        found += [(name, e.path) for name, e in inside if name.endswith(".py")]
        waiting += [(n, e.path) for n, e in inside if not n.endswith(".py") and e.is_dir()]
    return sorted(found)
