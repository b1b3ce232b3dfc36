"""Kernels by structure: in memory, behind that on disk, behind that the compiler.

In memory kernels are kept by their structure's key; the one used longest ago goes first. On disk
they are kept between processes in `cache_dir`/kernels, by a digest of the structure, of gnomon's
own sources, of LLVM and of the level: object code, which is loaded without compiling, and
the signature it is called with. A structure with parts that mean something in this process alone,
such as a user's own node with an index rule in Python, is planned in every process and kept by its
LLVM IR: that is always right, whatever the rule reads.

Measured on 2 cores: a kernel takes 15 to 30 ms to plan and compile, 0.5 to 0.9 ms from disk; a
process's first one takes 4 ms more (sources' digest 2, the machine 1, threads' code 1).
`python -m gnomon.cli demo --epochs 1`, with GNOMON_DISK_CACHE=0 and without: initialize 0.21 and
0.02 s, forward and backward 0.25 and 0.05 s, all 3.1 and 2.1 s. `python -m pytest
tests/ops/test_golden.py`, with an empty folder as ever, and with the 1137 entries (6.4 MB) of a run
before: 38.5 and 11.7 s.
"""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from gnomon.base import GnomonError, Later
from gnomon.ground.collector import resting
from gnomon.ground.lock import in_child, reentrant
from gnomon.plan.form import Unnamed, form
from gnomon.plan.signature import Signature, read, signature_of
from gnomon.plan.statement import Store, Structure
from gnomon.runtime.compiler import objects
from gnomon.runtime.kernels import stages
from gnomon.runtime.kernels.kernel import Kernel, source, symbols

if TYPE_CHECKING:
    from gnomon.plan import pipeline
else:
    pipeline = Later("gnomon.plan.pipeline")

K = TypeVar("K")
MANY = 2000  # nodes of a large structure
CAPACITY = 4096  # kernels kept in memory, about 90 KB each


class Cache(Generic[K]):
    """Kernels that `make` makes, by key; the one used longest ago goes first.

    `make` says beside a kernel where it came from, as stages tell it.
    """

    def __init__(
        self, make: Callable[[Sequence[Store], Structure], tuple[K, str]], capacity: int = CAPACITY
    ) -> None:
        self.make, self.capacity = make, capacity
        self.kernels: OrderedDict[Hashable, K] = OrderedDict()
        self.lock = reentrant()

    def get(self, stores: Sequence[Store], structure: Structure) -> K:
        """The kernel of `structure`: from memory, or made now."""
        with self.lock:
            kernel = self.kernels.get(structure.key)
            if kernel is not None:
                self.kernels.move_to_end(structure.key)
                return kernel
        began = time.perf_counter()
        kernel, origin = self.make(stores, structure)
        stages.tell(stores, structure, origin, time.perf_counter() - began)
        with self.lock:
            kernel = self.kernels.setdefault(structure.key, kernel)
            self._shrink()
        return kernel

    def _shrink(self) -> None:
        """Let go of what was used longest ago, down to the capacity. Lock held."""
        while len(self.kernels) > self.capacity:
            self.kernels.popitem(last=False)

    def unlock(self) -> None:
        """A child begins with a free lock, whichever thread held it when the process was forked."""
        self.lock = reentrant()


def made(stores: Sequence[Store], structure: Structure) -> tuple[Kernel, str]:
    """A kernel for the processor, from disk or compiled now."""
    name = _name(structure)
    kept = _load(name)
    if kept is not None:
        return kept, "from disk"
    return _make(stores, structure, name), "compiled"


def _name(structure: Structure) -> str | None:
    """The name on disk; None where the structure has none."""
    try:
        return objects.name_of("structure", form(structure.key))
    except Unnamed:
        return None


def _load(name: str | None) -> Kernel | None:
    kept = None if name is None else objects.load(name, symbols())
    if name is None or kept is None:
        return None
    try:
        return Kernel(unpacked(kept.beside), kept.module)
    except (ValueError, GnomonError):
        objects.forget(name)
        return None


def _make(stores: Sequence[Store], structure: Structure, name: str | None) -> Kernel:
    with resting(len(structure.entries) > MANY):
        nests = pipeline.plan(stores, structure)
        signature, code = signature_of(nests), source(nests)
    if name is None:
        return Kernel(signature, objects.compiled(code.text, opt=code.opt, symbols=symbols()))
    module = objects.make(name, code.text, packed(signature), opt=code.opt, symbols=symbols())
    return Kernel(signature, module)


def packed(signature: Signature) -> bytes:
    """A signature as bytes."""
    words = signature.words()
    return struct.pack(f"<{len(words)}q", *words)


def unpacked(data: bytes) -> Signature:
    """The signature that `packed` made bytes of; ValueError where it is none."""
    if len(data) % 8:
        raise ValueError("a signature is not a whole number of words")
    return read(struct.unpack(f"<{len(data) // 8}q", data))


CACHE = Cache(made)
in_child(CACHE.unlock)
