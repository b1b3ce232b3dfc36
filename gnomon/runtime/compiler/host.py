"""What the machine that runs this process is, in LLVM's words: asked once, then kept on disk.

An answer is kept under all that it depends on: what the processor says of itself, and llvmlite's
files. So a process that compiles nothing need not import llvmlite to know its kernels' names.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from gnomon.ground.levels import LEVELS
from gnomon.ground.record import record
from gnomon.runtime.compiler import disk
from gnomon.runtime.compiler.guard import llvm
from gnomon.runtime.compiler.memory import Region
from gnomon.runtime.ffi import Block, function, pointer

# the instructions `cpuid` and `xgetbv` as functions of a block, whose first word is what to ask
_CPUID = bytes.fromhex("53 8b07 8b4f04 0fa2 8907 895f04 894f08 89570c 5b c3")
_XGETBV = bytes.fromhex("31c9 0f01d0 8907 895704 c3")
# what LLVM asks a processor of x86, and a little more: leaf, and leaf within it. Leaf 1, half of
# whose first word tells which core was asked, comes apart.
_LEAVES = {
    0: ((0, 0), (7, 0), (7, 1), (0xD, 1), (0x14, 0), (0x19, 0), (0x1E, 1), (0x24, 0), (0x29, 0)),
    0x8000_0000: ((0, 0), (1, 0), (8, 0), (0x21, 0)),
}
_LOW, _OSXSAVE = 0xFFFF_FFFF, 1 << 27


@record()
class HostInfo:
    """A machine, and the LLVM that writes code for it."""

    triple: str
    cpu: str
    features: frozenset[str]
    llvm: str  # llvmlite's version and LLVM's

    @property
    def feature_string(self) -> str:
        """The features as LLVM's target machine takes them: "+avx2,+fma"."""
        return ",".join(f"+{name}" for name in sorted(self.features))

    @property
    def vector_bytes(self) -> int:
        """How wide the widest registers are."""
        if "avx512f" in self.features:
            return 64
        return 32 if "avx2" in self.features else 16


@functools.cache
def baseline() -> HostInfo:
    """What code is written for: the level of x86-64 that this machine reaches.

    So machines of one level share code, at the same speed. One whose registers are wider than its
    level's, and one of another kind, is served for itself.
    """
    here = host()
    for cpu, features in reversed(LEVELS.items()):
        level = replace(here, cpu=cpu, features=frozenset(features))
        if level.features <= here.features and level.vector_bytes == here.vector_bytes:
            return level if here.triple.startswith("x86_64") else here
    return here


@functools.cache
def host() -> HostInfo:
    """The machine that runs this process.

    >>> host().vector_bytes in (16, 32, 64)
    True
    """
    place, name = disk.configured(), _name()
    content = None if name is None else disk.find(name)
    try:
        triple, cpu, features, versions = (content or b"").decode().split("\n")
        return HostInfo(triple, cpu, frozenset(features.split()), versions)
    except ValueError:
        pass
    found = llvm.ask_host()
    if place is not None and name is not None:
        lines = (found.triple, found.cpu, " ".join(sorted(found.features)), found.llvm)
        place.write(name, "\n".join(lines).encode())
    return found


def _name() -> str | None:
    """Where the answer is kept; None where what it depends on is not known."""
    try:
        return disk.digest("host 1", *_processor(), *_compiler())
    except (OSError, ImportError):
        return None


def _processor() -> tuple[str, ...]:
    """All that LLVM looks at to tell one processor from another.

    Raises:
        OSError: that is not known for this machine.
    """
    machine = os.uname().machine
    if machine in ("x86_64", "AMD64"):
        return sys.platform, machine, *map(str, _answers())
    return sys.platform, machine, Path("/proc/cpuinfo").read_text("utf-8")


def _answers() -> list[int]:
    """What a processor of x86 says of itself, on any of its cores."""
    region = Region(len(_CPUID) + len(_XGETBV))
    region.fill(_CPUID + _XGETBV)
    found: list[int] = []
    for first, leaves in _LEAVES.items():
        most = _answer(region.address, first)[0] & _LOW
        for leaf, inner in leaves:
            if first + leaf <= most:
                found += _answer(region.address, first + leaf | inner << 32)
    version, features = _answer(region.address, 1)
    if features & _OSXSAVE:
        found += _answer(region.address + len(_CPUID), 0)  # registers that the system saves
    region.free()
    return [*found, version & _LOW, features]


def _answer(address: int, question: int) -> list[int]:
    block = Block([question, 0])
    function(address)(pointer(block.address))
    return list(block.words)


def _compiler() -> tuple[str, ...]:
    """What tells one llvmlite from another without importing it.

    Raises:
        OSError: it has no files.
        ImportError: it is not there.
    """
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise ImportError("llvmlite is not there")
    folder = Path(spec.origin).parent
    library = "libllvmlite.dylib" if sys.platform == "darwin" else "libllvmlite.so"
    about = (folder / "binding" / library).stat()
    versions = (folder / "_version.py").read_text("utf-8")
    return versions, str(about.st_size)
