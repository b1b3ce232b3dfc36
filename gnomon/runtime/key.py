"""Names under which code is kept from process to process: digests of all that code depends on.

Besides what is compiled, that is gnomon's own sources, LLVM and the processor: after a change of
one of them every name is another, and the old entries go as the least used.
"""

from __future__ import annotations

import functools
import os
import time
from _blake2 import blake2b  # hashlib would load OpenSSL as well (4 ms)
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from gnomon import __version__
from gnomon.runtime import caches, jit

PACKAGE = Path(__file__).parent.parent
# what decides the code of a kernel, and how it is called
SOURCES = ("base.py", "dtype.py", "shape.py", "expr", "plan", "code", "runtime")
DIGEST = 20
# when this process read gnomon's sources, at the latest; importing them takes up to a second or so
_begun = time.time() - 5.0


def digest(*parts: str) -> str:
    """A name of these texts, in hexadecimal."""
    hashed = blake2b(digest_size=DIGEST)
    for part in parts:
        data = part.encode()
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


@functools.cache
def surroundings() -> str:
    """What code depends on but its structure: gnomon, LLVM, processor; "" where it is not known."""
    sources = sources_digest(PACKAGE, _begun)
    if not sources:
        return ""
    here = jit.host()
    version = ".".join(map(str, llvm.llvm_version_info))
    machine = (
        here.triple,
        here.cpu,
        here.feature_string,
        str(here.vector_bytes),
        str(caches.last_level()),
    )
    return digest(__version__, sources, llvmlite.__version__, version, *machine)


def sources_digest(package: Path, begun: float) -> str:
    """A digest of the sources that decide the code; "" where it would not tell what runs here.

    That is where there are none, and where one was changed after `begun`, when this process read
    them.
    """
    hashed = blake2b(digest_size=DIGEST)
    try:
        for name, path in _files(package):
            descriptor = os.open(path, os.O_RDONLY)  # a third of the time of Path.read_bytes
            with os.fdopen(descriptor, "rb", buffering=0) as stream:
                about = os.fstat(descriptor)
                data = stream.read()
            if max(about.st_mtime, about.st_ctime) > begun:
                return ""
            hashed.update(f"{name} {len(data)}\n".encode() + data)
    except OSError:
        return ""
    return hashed.hexdigest()


def _files(package: Path) -> Iterator[tuple[str, str]]:
    """The sources: name within the package, and path, in one order everywhere."""
    waiting = [(name, f"{package}{os.sep}{name}") for name in reversed(SOURCES)]
    while waiting:
        name, path = waiting.pop()
        if name.endswith(".py"):
            yield name, path
            continue
        with os.scandir(path) as entries:
            found = [(f"{name}/{e.name}", e.path) for e in entries if e.name != "__pycache__"]
        inside = [(n, p) for n, p in found if n.endswith(".py") or Path(p).is_dir()]
        waiting.extend(sorted(inside, reverse=True))
