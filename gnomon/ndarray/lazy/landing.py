"""A fast path that lands its results in arrays, by one native call.

It looks whether all variables are free; if so it puts the integers into the kernel's argument
block, runs it, counts a version of each variable that was written, and gives each array its memory.
Python's own lock is held all the while: no other thread, and no signal's handler, sees anything of
it half done, and none of the engine's locks is needed. What arrays let go of is dropped last, since
that may run other code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.engine.fast_path import FastPath, PreparedFastPath, fire
from gnomon.engine.var import is_free, is_unread
from gnomon.ground.record import put
from gnomon.native.words import MOST, Parts, Words, native, scratch, wrapped
from gnomon.ndarray.core.array import Array, materialize_in
from gnomon.ndarray.core.chunk import Chunk
from gnomon.runtime.execution.program import Step
from gnomon.runtime.kernels.rebind import OfKernel
from gnomon.runtime.kernels.refill import Refill, Word, follow
from gnomon.runtime.statements.family import Family, Slot
from gnomon.runtime.statements.fields import readable


@native
def _are_free(read: list[Chunk], written: list[Chunk]) -> bool:
    """Whether no job is in the way of a kernel, and no failure."""
    if not all(is_free(chunk) for chunk in read):
        return False
    return all(is_free(chunk) and is_unread(chunk) for chunk in written)


@native
def fast_path(
    record: int, read: list[Chunk], written: list[Chunk], integers: list[int],
    holders: list[Array],
) -> bool:  # fmt: skip
    """Run a prepared fast path; whether it ran. The first of what is written goes to `holders`."""
    path = Words(record)
    count = len(integers)
    if count != path[0] or count > MOST:
        return False
    landings = len(holders)
    left = Parts(landings)
    if not _are_free(read, written):
        return False
    words = scratch(count)
    for k in range(count):
        words[k] = wrapped(integers[k])
    if path[3] != 0:
        fire(path, words)
    elif not follow(Words(path[4]), words):
        return False
    for chunk in written:
        put(chunk, "version", chunk.version + 1)
    first = path[5]
    for k in range(landings):
        array = holders[k]
        left[k] = array._pending_in
        materialize_in(array, written[k], words[first + k] - written[k].address)
    return True


class Passage:
    """The one record by which members of a family run that come for the first time.

    Most of what a member costs is its own block, template and record, for the next run of its
    shape. One that never comes again needs none of them: what tells it from others are integers,
    which the family's refill takes behind the addresses. A record without a function has a refill.

    `first` is the number of the first operand that is a result, `numbers` how many numbers come
    behind the operands' addresses; members say what `slots` hold. So many operands, `shifted`,
    begin where each says.
    """

    __slots__ = ("_path",)

    def __init__(
        self, family: Family, first: int, numbers: int, shifted: int, slots: Sequence[Slot]
    ) -> None:
        (kernel,) = family.steps
        assert isinstance(kernel, OfKernel)
        given = family.count + numbers
        places = {place.word: place for place in family.places or ()}
        own = {slot.name: given + k for k, slot in enumerate(slots)}
        words = []
        for at, (name, held) in enumerate(kernel.arguments.items(), kernel.kernel.first):
            place = places.get(at)
            if place is not None:
                words.append(
                    Word(1, 0 if place.operand < shifted else place.offset, (place.operand,))
                )
            else:
                words.append(Word(1, 0, (own[name],)) if name in own else Word(0, held))
        refill = Refill(kernel.kernel, words, family)
        step = Step(0, refill.record, refill)
        self._path = PreparedFastPath(step, (), given + len(slots), first, fast_path)

    def of(self, values: Sequence[int], offsets: Sequence[int]) -> FastPath:
        """The fast path of the member whose slots hold `values`, and whose operands begin `offsets`
        bytes behind their addresses, results none; it does no work that is long or needs memory."""
        return _Passing(self._path, values, offsets)


class _Passing:
    """A fast path by a family's record, which is given these integers behind the addresses."""

    __slots__ = ("_integers", "_offsets", "_path")

    def __init__(
        self, path: PreparedFastPath, integers: Sequence[int], offsets: Sequence[int]
    ) -> None:
        self._path, self._integers, self._offsets = path, integers, offsets

    def __call__(self, read: Any, written: Any, integers: list[int], holders: Any) -> bool:
        begins = [a + b for a, b in zip(integers, self._offsets, strict=False)]
        rest = integers[len(begins) :]
        return self._path.call(read, written, [*begins, *rest, *self._integers], holders)


def passage_of(
    family: Family, first: int, numbers: int, shifted: int, slots: Sequence[Slot]
) -> Passage | None:
    """The passage of a family; None where there is none: of several steps, of products, or where
    nothing runs in one native call."""
    if len(family.steps) != 1 or family.places is None or not readable():
        return None
    return Passage(family, first, numbers, shifted, slots)
