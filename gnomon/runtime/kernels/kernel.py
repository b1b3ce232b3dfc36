"""Kernels: groups of statements compiled once by structure, and bound to memory as steps.

A `Kernel` is code and a signature; `runtime.cache` keeps it under its structure's key. Binding
fills an argument block: addresses, sizes, strides, numbers, and how the work is cut into tasks. The
block belongs to one step, never to the kernel.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gnomon.base import Later
from gnomon.dtype import DType, float32, float64
from gnomon.expr.node import Buffer, Scalar
from gnomon.expr.term import cast_number, compute_dtype
from gnomon.ground.levels import CACHE_BYTES
from gnomon.plan.ir import Body, Fold, Phase
from gnomon.plan.ir import Kernel as Nests
from gnomon.plan.scratch import TASKS
from gnomon.plan.signature import Signature
from gnomon.plan.statement import Structure
from gnomon.runtime import cpu_caches
from gnomon.runtime.compiler.host import baseline
from gnomon.runtime.compiler.jit import STRAIGHT, Module
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.division import SHARE, divide
from gnomon.runtime.kernels.workspace import working_memory

if TYPE_CHECKING:
    from gnomon.code import cpu, target
else:  # where kernels come from disk, nothing is compiled
    cpu, target = Later("gnomon.code.cpu"), Later("gnomon.code.target")

ENTRY = "kernel"
LARGE = 1_000_000  # characters of code beyond which no passes run over it
HUGE = 8_000_000  # and beyond which it is generated in haste: 40,000 operations


class Kernel:
    """Machine code for one structure of statements, and what to call it with."""

    __slots__ = (
        "_scratch",
        "_tasks",
        "address",
        "first",
        "module",
        "phases",
        "places",
        "signature",
    )

    def __init__(self, signature: Signature, module: Module) -> None:
        self.signature, self.module = signature, module
        self.address = module.address(ENTRY)
        #: the words of all phases' loops
        self.phases = [word for loops in signature.phases for word in loops.words()]
        #: where the arguments begin in a block
        self.first = 1 + SHARE * len(signature.phases)
        at = {slot: k for k, slot in enumerate(signature.args)}
        self._tasks = at.get(TASKS)
        self._scratch = [(at[piece.slot], piece) for piece in signature.scratch if piece.slot in at]
        #: the words that are addresses, of leaves and of scratch memory
        self.places = [k for k, s in enumerate(signature.args, self.first) if _is_place(s)]

    def bind(self, structure: Structure, name: str = "kernel", in_order: bool = False) -> Step:
        """A step that runs this kernel on the leaves of `structure`; `in_order` on one thread."""
        buffers = structure.buffers
        moved = sum(map(size_of, buffers))
        values = arguments(structure)
        given = [values.get(slot, 0) for slot in self.signature.args]
        return self.step(given, buffers, name, moved, structure.dims, in_order)

    def arguments(self, block: Block) -> dict[Hashable, int]:
        """The values of the slots in a block."""
        return dict(zip(self.signature.args, list(block.words)[self.first :], strict=True))

    def _divided(
        self, given: list[int], in_order: bool = False
    ) -> tuple[list[int], Sequence[int], int]:
        """The words before the arguments: how the work is shared; then the sizes, and the work."""
        signature, count = self.signature, len(self.signature.phases)
        if self._tasks is not None:
            given[self._tasks] = 1
        sizes, shares = signature.sizes(given), [0] * (SHARE * count)
        total = divide(self.phases, count, sizes, 1 if in_order else threads.num_threads(), shares)
        tasks = max(shares[::SHARE], default=1)
        if tasks > 1 and self._tasks is not None:
            given[self._tasks] = tasks
            sizes = signature.sizes(given)
        # where no phase has a second task, no thread is started
        return [threads.parallel_address() if tasks > 1 else 0, *shares], sizes, total

    def step(
        self,
        given: list[int],
        buffers: Sequence[Buffer],
        name: str,
        moved: int,
        dims: Sequence[int] = (),
        in_order: bool = False,
    ) -> Step:
        """A step with these arguments, in the order of the slots, but for scratch memory.

        It moves `moved` bytes; what it runs on belongs to `buffers`, or is kept by others. It keeps
        the kernel, its block, scratch memory, these buffers and their owners, and its sizes.
        """
        words, sizes, total = self._divided(given, in_order)
        scratch = []
        for at, (slot, elements, itemsize) in self._scratch:
            given[at] = 0
            if sizes[elements]:
                storage = working_memory(sizes[elements] * itemsize)
                scratch.append((slot, storage))
                given[at] = storage.address
        block = Block([*words, *given])
        keep = (self, block, scratch, buffers, [b.owner for b in buffers], dims)
        return Step(self.address, block.address, keep, name, moved, work=total)

    @staticmethod
    def of(step: Step) -> Kernel | None:
        """The kernel that a step runs."""
        keep = step.keep
        return keep[0] if type(keep) is tuple and keep and isinstance(keep[0], Kernel) else None

    def repeated(self, step: Step) -> Step:
        """`step`, which `bind` or `rebound` made, with a block of its own."""
        _, block, *rest = step.keep
        made = Block(list(block.words))
        keep = (self, made, *rest)
        return Step(self.address, made.address, keep, step.name, step.bytes, work=step.work)

    def rebound(
        self, step: Step, addresses: Sequence[int], operands: Sequence[Buffer], name: str
    ) -> Step:
        """`step`, which `bind` made, for leaves of the same sizes that lie at `addresses`.

        `operands` own that memory.
        """
        _, block, scratch, _, _, dims = step.keep
        own = [(slot, working_memory(storage.nbytes)) for slot, storage in scratch]
        values: dict[Hashable, int] = {("leaf", k): a for k, a in enumerate(addresses)}
        values.update((slot, storage.address) for slot, storage in own)
        words = list(block.words)
        for at, slot in enumerate(self.signature.args, self.first):
            words[at] = values.get(slot, words[at])
        made = Block(words)
        keep = (self, made, own, operands, [b.owner for b in operands], dims)
        return Step(self.address, made.address, keep, name, step.bytes, work=step.work)


def _is_place(slot: Hashable) -> bool:
    return isinstance(slot, tuple) and slot[0] in ("leaf", "scratch")


def arguments(structure: Structure) -> dict[Hashable, int]:
    """What a structure's leaves give for a kernel's slots, as words: all but scratch memory."""
    values: dict[Hashable, int] = {("dim", k): n for k, n in enumerate(structure.dims)}
    for k, buffer in enumerate(structure.buffers):
        values["leaf", k] = buffer.address
        for axis, stride in enumerate(buffer.strides):
            values["stride", ("leaf", k), axis] = stride
    values.update((("scalar", k), bits(s)) for k, s in enumerate(structure.scalars))
    return values


class Source(NamedTuple):
    """LLVM IR, and the pipeline that it is worth."""

    text: str
    opt: int


def source(nests: Nests) -> Source:
    """The code of loop nests for machines of this one's level.

    A body of thousands of operations is in registers and in order already; passes over it would
    take longer than the code generator, and there is no loop that short ones could be unrolled in.
    """
    here = baseline()
    record = target.processor(here.triple, here.cpu, here.features, streams=True)
    text = cpu.write(nests, record)
    if len(text) < LARGE:
        return Source(text, pipeline(nests))
    return Source(text, 0 if len(text) < HUGE else -1)


def symbols() -> dict[str, int]:
    """What the code of kernels asks for when it is loaded."""
    return {CACHE_BYTES: cpu_caches.last_level()}


def pipeline(nests: Nests) -> int:
    """The pipeline for loop nests; see `jit.object_code`."""
    if divides(nests):
        return 2
    return STRAIGHT if is_straight(nests) else 1


def divides(nests: Nests) -> bool:
    """Whether loops divide by sizes: LLVM's usual pipeline then earns its time."""
    terms = nests.arena.table.values()
    return any(t.op in ("idiv", "imod") and t.free and t.args[1].constant is None for t in terms)


def is_straight(nests: Nests) -> bool:
    """Whether all loops are vector loops straight through memory: of maps, or along folded rows."""
    return all(map(_is_straight, nests.phases))


def _is_straight(phase: Phase) -> bool:
    folds = _folds((phase.entry, phase.row, phase.body))
    if phase.turns or phase.ordered:
        return False
    if phase.vector:
        return not (phase.rows or folds)
    return all(fold.vector and not _folds(fold.bodies) for fold in folds)


def _folds(bodies: Iterable[Body]) -> list[Fold]:
    return [stmt for body in bodies for stmt in body if isinstance(stmt, Fold)]


def bits(scalar: Scalar) -> int:
    """A number as the kernel's 8-byte slot holds it."""
    dtype: DType = compute_dtype(scalar.dtype)
    value = cast_number(scalar.value, dtype)
    if dtype.kind != "f":
        word = int(value)
        return word if word < 1 << 63 else word - (1 << 64)  # of uint64: words have signs
    if dtype.size == 8:
        return int(_WORD.unpack(_DOUBLE.pack(value))[0])
    try:
        return int(_HALF_WORD.unpack(_FLOAT.pack(value))[0])
    except OverflowError:  # beyond float32's range is infinity
        return int(_HALF_WORD.unpack(_FLOAT.pack(float("inf") if value > 0 else -float("inf")))[0])


class Count(NamedTuple):
    """A number of kernels that comes of a whole one above 0: this or its inverse, as a float.

    >>> count = Count(12, True, float32)
    >>> counted(count.word) == count, count._replace(whole=10).word == bits(Scalar(0.1, float32))
    (True, True)
    """

    whole: int
    inverse: bool
    dtype: DType

    @property
    def word(self) -> int:
        """What a slot for it holds."""
        return bits(Scalar(1 / self.whole if self.inverse else self.whole, self.dtype))


def counted(word: int) -> Count | None:
    """What a slot for floats holds, where that comes of a whole number."""
    single = 0 <= word < 1 << 31
    packed = _HALF_WORD.pack(word) if single else _WORD.pack(word)
    value: float = (_FLOAT if single else _DOUBLE).unpack(packed)[0]
    if not 2 * sys.float_info.min < value < float("inf"):
        return None
    inverse = value < 1
    made = Count(round(1 / value if inverse else value), inverse, float32 if single else float64)
    return made if made.word == word else None


_WORD, _HALF_WORD = struct.Struct("<q"), struct.Struct("<i")
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")


def size_of(buffer: Buffer) -> int:
    """Bytes of the elements of a buffer."""
    count = buffer.dtype.size
    for n in buffer.shape:
        count *= n
    return count
