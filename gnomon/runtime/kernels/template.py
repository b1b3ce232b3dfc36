"""Templates: steps made once for a kind of work, whose operands' addresses come with each run.

Making steps takes 50 us and more; an array operation of some size takes less. So the steps are made
for stand-in addresses, which no memory has. Kernels and the steps of libraries know which words of
their argument blocks are addresses; where there are other steps, or numbers, all are made twice
with different stand-ins, and the words that differ accordingly are what is looked for. A run takes
a free copy of the steps, writes the addresses into its blocks and calls it; as many copies come to
be as run at the same time. Of work that kernels do, these are other blocks alone; of other work all
is made once more. Temporaries are parts of one more operand (see `workspace.py`), which a run has
for its time: no template holds memory for each shape that came.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from gnomon.expr.node import Buffer
from gnomon.ground.record import Frozen, put
from gnomon.native.words import whole
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.execution.makings import Word, differing
from gnomon.runtime.execution.program import (
    SPARE,
    Done,
    Nested,
    Program,
    Step,
    expected,
    finish,
    is_long,
)
from gnomon.runtime.execution.stream import Pair, Task, place_of
from gnomon.runtime.execution.threads import num_threads
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.kernel import Kernel
from gnomon.runtime.kernels.rebind import Where
from gnomon.runtime.kernels.workspace import KEPT_BYTES, RUN_MEMORY, STREAM_MEMORY, Workspace

Make = Callable[..., list[Step]]

SPACING = 1 << 48  # between stand-ins, more than any memory; the first is beyond all addresses
_SHIFT = 1 << 40  # times its number: how much an operand's second stand-in is further
_ODD = 0x2D7A_5000_0000  # behind the stand-ins, where a workspace's is: no number looks like it


def stand_ins(count: int) -> list[int]:
    """Addresses that no memory has, one for each operand."""
    return [(k + 1) * SPACING for k in range(count)]


def stood_for(address: int, count: int) -> Where | None:
    """Where an address is that steps have which were made for stand-ins of `count` operands."""
    operand, rest = divmod(address + SPACING // 2, SPACING)
    return Where(operand - 1, rest - SPACING // 2) if 1 <= operand <= count else None


class Place(NamedTuple):
    """A word of a block that holds an operand's address plus a constant."""

    block: int
    word: int
    operand: int
    offset: int


@whole
class Streamed(Frozen):
    """The tasks of a copy that are spare, and for each pair of words of theirs, from `rows` on, the
    number of an operand and what is added to its address."""

    __slots__ = ("_keep", "count", "rows", "spare")

    count: int  # of pairs
    rows: int  # the address of the first
    spare: list[Task]

    def __init__(self, pairs: Sequence[tuple[int, ...]]) -> None:
        rows = Block([word for pair in pairs for word in pair] or 1)
        put(self, "_keep", rows)
        put(self, "rows", rows.address)
        put(self, "count", len(pairs))
        put(self, "spare", [])


class Needs(NamedTuple):
    """The bytes that a copy works in, and the words that say where: block, word, how far in."""

    nbytes: int
    words: Sequence[tuple[int, int, int]]


NOTHING = Needs(0, ())


class Copy:
    """One set of steps, with its blocks, of which `take` says what a run fills in."""

    __slots__ = (
        "_at", "_parts", "_streamed", "_words", "blocks", "call", "memory", "needs", "slots",
        "step", "steps",
    )  # fmt: skip

    def __init__(self, steps: Sequence[Step], needs: Needs = NOTHING) -> None:
        self.steps = steps
        self.step = steps[0] if len(steps) == 1 else Program(steps)
        self.blocks = list(chain.from_iterable(map(blocks_of, steps)))
        self.slots: list[tuple[Any, int, int, int]] = []
        self.call = self.step.run_once
        self._words: list[tuple[int, int, int]] = []
        self.needs = needs
        self._parts = [(self.blocks[block].words, word, off) for block, word, off in needs.words]
        self._at = 0  # where they are
        self.memory: Storage | None = None  # that it keeps
        self._streamed: Streamed | None = None

    def take(self, places: Sequence[Place]) -> None:
        """From now on a run fills these places in."""
        self.slots = [(self.blocks[p.block].words, p.word, p.operand, p.offset) for p in places]

    @property
    def words(self) -> list[tuple[int, int, int]]:
        """As `slots`, by the address of a word."""
        if not self._words:
            slots = self.slots
            self._words = [(place_of(w, k), operand, offset) for w, k, operand, offset in slots]
        return self._words

    def run(self, addresses: Sequence[int], done: Done) -> None:
        """Do the work on these operands, once; no other run may be using this copy."""
        self.place(addresses)
        if self.memory is not None or not self.needs.nbytes:
            self.call(done)
            return
        memory = RUN_MEMORY.take(self.needs.nbytes)
        self.work_at(memory.address)
        self.call(done)
        RUN_MEMORY.give(memory)

    def work_at(self, address: int) -> None:
        """From now on temporaries are there."""
        if address == self._at:
            return
        self._at = 0  # until all words are written: an exception may come between any two
        for words, word, offset in self._parts:
            words[word] = address + offset
        self._at = address

    def work_in(self, storage: Storage) -> None:
        """As `work_at`, for good: the copy keeps the memory."""
        self.work_at(storage.address)
        self.memory = storage

    def place(self, addresses: Sequence[int]) -> None:
        """From now on the operands are at these addresses."""
        for words, word, operand, offset in self.slots:
            words[word] = addresses[operand] + offset

    def pairs(self, addresses: Sequence[int], workspace: int | None = None) -> list[Pair]:
        """What `place` puts where, for a task; and `work_at`, where a workspace is given."""
        pairs = [(place, addresses[operand] + offset) for place, operand, offset in self.words]
        if workspace is not None:
            pairs += [(place_of(w, k), workspace + offset) for w, k, offset in self._parts]
        return pairs

    @property
    def streamed(self) -> Streamed:
        """How native code fills in its tasks."""
        if self._streamed is None:
            self._streamed = Streamed([row[1:] for row in self.words])
        return self._streamed


class Template:
    """Work on `count` operands; `make(addresses)` gives its steps for operands that lie there.

    `numbers` are words that come with each run, too, after the addresses: each is what the steps
    hold for it when made by `make(addresses, 0)` and by `make(addresses, 1)`. Where `places` are
    given, they are known to be those of whatever `make` gives.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> def make(addresses):
    ...     source, dest = (Buffer((3,), address=a) for a in addresses)
    ...     return prepare([Store(dest, "saveto", source * 2.0)])
    >>> double, a, b = Template(make, 2), np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    >>> double.run([a.ctypes.data, b.ctypes.data])
    >>> b
    array([0., 2., 4.], dtype=float32)
    """

    __slots__ = (
        "__weakref__",
        "_free",
        "_given",
        "_like",
        "_make",
        "_numbers",
        "_seconds",
        "_streamed",
        "_threads",
        "_which",
        "_work",
        "bytes",
        "count",
        "flops",
        "numbers",
        "places",
    )

    def __init__(
        self,
        make: Make,
        count: int,
        numbers: Sequence[tuple[int, int]] = (),
        places: Sequence[Place] | None = None,
    ) -> None:
        self._make, self.count, self.numbers = make, count, numbers
        self._numbers = {pair: count + k for k, pair in enumerate(numbers)}
        self._threads = 0  # for how many steps were made, and their places looked for
        self._like: tuple[Sequence[Step], Needs] = (), NOTHING  # what further copies repeat
        self._given = places is not None
        self.places: Sequence[Place] = places or []  # where operands' addresses and numbers go
        self._which: tuple[tuple[int, ...], ...] = ((0,), (1,)) if numbers else ((), ())
        first = self._made()
        self.bytes = sum(step.bytes for step in first.steps)
        self.flops = sum(step.flops for step in first.steps)
        self._free = deque([first])
        self._work = first.step.work
        self._seconds: float | None = None
        self._streamed: Copy | None = None  # the one that the stream uses

    def _made(self) -> Copy:
        """A copy of steps that are made; their places are looked for where these may be others.

        Work is cut for as many threads as there are at that time.
        """
        addresses = stand_ins(self.count)
        copy = self._copy(addresses, *self._which[0])
        threads = num_threads()
        if threads != self._threads and not self._given:
            known = None if self._numbers else self._said(copy)
            if known is None:
                moved = [a + (k + 1) * _SHIFT for k, a in enumerate(addresses)]
                known = self._compare(copy, self._copy(moved, *self._which[1]))
            self.places = known
        self._threads, self._like = threads, (copy.steps, copy.needs)
        copy.take(self.places)
        return copy

    def _copy(self, *given: Any) -> Copy:
        """A copy of steps that are made for these stand-ins."""
        workspace = Workspace((self.count + 1) * SPACING + _ODD)
        steps = workspace.filled_by(partial(self._make, *given))
        return Copy(steps, _needs(steps, workspace) if workspace.nbytes else NOTHING)

    def _another(self) -> Copy:
        """One more copy: its steps are like others, or made once more."""
        steps = again(self._like[0]) if self._threads == num_threads() else None
        if steps is None:
            return self._made()
        copy = Copy(steps, self._like[1])
        copy.take(self.places)
        return copy

    def _said(self, copy: Copy) -> list[Place] | None:
        """The words of blocks that steps say hold operands' addresses.

        None where a step says nothing, or where there are others that may hold one.
        """
        said = set()
        for step in copy.steps:
            found = addresses_of(step)
            if found is None:
                return None
            said |= {(id(block), word) for block, word in found}
        places = []
        for number, block in {id(b): (k, b) for k, b in enumerate(copy.blocks)}.values():
            for word, x in enumerate(block.words):
                where = stood_for(x, self.count)  # else a number, or in the workspace
                if where is not None and (id(block), word) not in said:
                    return None
                if where is not None:
                    places.append(Place(number, word, *where))
        return places

    def _compare(self, copy: Copy, shifted: Copy) -> list[Place]:
        """The words of `copy` that differ from those of `shifted` as the stand-ins do."""
        words = differing(zip(copy.blocks, shifted.blocks, strict=True))
        return [place for word in words if (place := self._place(word)) is not None]

    def _place(self, word: Word) -> Place | None:
        """What a word is that two makings have, if it is a place."""
        number = self._numbers.get((word.first, word.second))
        if number is not None:
            return Place(word.at, word.number, number, 0)
        operand, rest = divmod(word.second - word.first, _SHIFT)
        if rest or not 1 <= operand <= self.count:
            return None
        offset = word.first - operand * SPACING
        return Place(word.at, word.number, operand - 1, offset) if abs(offset) < _SHIFT else None

    @property
    def held(self) -> int:
        """Bytes that libraries keep for a copy of the steps."""
        return sum([step.held for step in self._like[0]])

    @property
    def takes_numbers(self) -> bool:
        """Whether every number is a word of some step."""
        numbers = range(self.count, self.count + len(self.numbers))
        return {place.operand for place in self.places}.issuperset(numbers)

    def run(self, addresses: Sequence[int], done: Done | None = None) -> None:
        """Do the work on operands at these addresses, with these numbers.

        Called again with the same `done`, an empty list at first, after an exception that came
        from a signal's handler, it goes on where it was: the work is done once.

        Raises:
            GnomonError: a step failed.
        """
        if done:
            finish(done)
            return
        copy = self.reserve()
        copy.run(addresses, [] if done is None else done)
        self.give_back(copy)

    @property
    def is_long(self) -> bool:
        """Whether the work is worth to be done behind the program."""
        return is_long(self._work, self._seconds)

    def took(self, seconds: float) -> None:
        """As `Step.took`."""
        if self._seconds is None or seconds < self._seconds:
            self._seconds = seconds

    def task(self, addresses: Sequence[int], keep: Any = None) -> Task:
        """The work as a task of the stream, which runs one at a time: all use one copy."""
        copy = self._streamed
        if copy is None:
            copy = self.reserve()
            if 0 < copy.needs.nbytes <= KEPT_BYTES:
                copy.work_in(STREAM_MEMORY.of(copy.needs.nbytes))
            self._streamed = copy  # at last: others use it as it is, after an exception too
        if copy.needs.nbytes <= KEPT_BYTES:
            return Task(copy.step, copy.pairs(addresses), keep=keep, timed=self)
        memory = pool.allocate(copy.needs.nbytes)
        pairs = copy.pairs(addresses, memory.address)
        return Task(copy.step, pairs, keep=(keep, memory), timed=self)

    def settled(self, task: Task) -> None:
        """A task is not needed any more: it may be entered again as long as the work is long."""
        copy = self._streamed
        if copy is None or copy.step is not task.step or task.told is not None or not self.is_long:
            return
        if copy.needs.nbytes > KEPT_BYTES:
            return
        spare = copy.streamed.spare
        if len(spare) < SPARE:
            task.rest(expected(self._work, self._seconds))
            spare.append(task)

    @property
    def streamed(self) -> Streamed | None:
        """How native code fills in the tasks; None where there were none, or each has memory."""
        copy = self._streamed
        return None if copy is None or copy.needs.nbytes > KEPT_BYTES else copy.streamed

    def reserve(self) -> Copy:
        """A copy of one's own, for a caller who sees to it that it runs once at a time."""
        try:
            return self._free.pop()
        except IndexError:
            return self._another()

    def own(self) -> Copy:
        """As `reserve`, with memory of its own to work in."""
        copy = self.reserve()
        if copy.needs.nbytes:
            copy.work_in(pool.allocate(copy.needs.nbytes))
        return copy

    def give_back(self, copy: Copy) -> None:
        """Leave a copy of `reserve` to others."""
        self._free.append(copy)


def again(steps: Sequence[Step]) -> list[Step] | None:
    """Steps of kernels once more, with blocks of their own; None where one is something else."""
    if all(type(step) is Step and Kernel.of(step) is not None for step in steps):
        return [step.keep[0].repeated(step) for step in steps]
    return None


def _needs(steps: Sequence[Step], workspace: Workspace) -> Needs:
    """What steps need that were made with this workspace."""
    words: dict[tuple[int, int], int] = {}
    every = chain.from_iterable(map(_each, steps))
    blocks = [(x, each) for each in every for x in blocks_of(each)]
    for number, (block, step) in enumerate(blocks):
        said = addresses_of(step)
        places = range(len(block.words)) if said is None else [k for b, k in said if b is block]
        for k in places:
            offset = block.words[k] - workspace.address
            if 0 <= offset < workspace.nbytes:
                words[number, k] = offset
    return Needs(workspace.nbytes, [(*place, offset) for place, offset in words.items()])


def _each(step: Step) -> Sequence[Step]:
    """The steps of a program, or a step itself."""
    return step.steps if isinstance(step, Program) else (step,)


def blocks_of(step: Step) -> Iterator[Block]:
    """The argument blocks of a step, or of all steps of a program, in a fixed order."""
    for each in _each(step):
        if Kernel.of(each) is not None:
            yield each.keep[1]
        elif hasattr(each, "address_words"):
            yield each.address_words()[0]  # a product has no other
        else:
            yield from (x for x in _held(each.keep) if isinstance(x, Block))


def addresses_of(step: Step) -> list[tuple[Block, int]] | None:
    """The words of a step's blocks that are addresses; None where that is not known."""
    found: dict[tuple[int, int], tuple[Block, int]] = {}
    for each in _each(step):
        inner = map(addresses_of, each.programs) if isinstance(each, Nested) else [_said_by(each)]
        for said in inner:
            if said is None:
                return None
            found |= {(id(block), word): (block, word) for block, word in said}
    return list(found.values())


def _said_by(step: Step) -> list[tuple[Block, int]] | None:
    """The same of a step that runs no others."""
    keep, kernel = step.keep, Kernel.of(step)
    if kernel is not None:
        block, words = keep[1], kernel.places
    elif type(keep) is tuple and len(keep) > 1 and hasattr(keep[1], "workspace"):
        block = keep[1].block  # of a library: the workspace, then the operands
        words = list(range(len(block.words)))
    elif hasattr(step, "address_words"):
        block, words = step.address_words()
    else:
        return None
    return [(block, word) for word in words]


def storages_of(step: Step) -> Iterator[Storage]:
    """The pool's memory that a step holds for itself."""
    seen: set[int] = set()
    for each in _each(step):
        for x in _held(each.keep):
            if isinstance(x, Storage) and id(x) not in seen:
                seen.add(id(x))
                yield x


def handles_of(step: Step) -> Iterator[tuple[int, int]]:
    """Where a library's objects for a step are, and the tables that say them: bytes of each."""
    for x in (x for each in _each(step) for x in _held(each.keep)):
        if isinstance(x, ctypes.Array):
            yield ctypes.addressof(x), ctypes.sizeof(x)
        elif not isinstance(x, (Block, Storage)):
            yield x.address, 1


def _held(keep: Any) -> Iterator[Any]:
    """What a step keeps, taken apart."""
    stack = [keep]
    if type(keep) is tuple and keep and isinstance(keep[0], Kernel):
        yield from (keep[0], keep[1], *[storage for _, storage in keep[2]])
        stack = [x for x in keep[4] if x is not None]  # leaves: for their owners' sake
    while stack:
        x = stack.pop()
        if isinstance(x, (Block, Storage)):
            yield x
        elif isinstance(x, (tuple, list)):
            stack.extend(reversed(x))
        elif isinstance(x, Buffer):
            stack.append(x.owner)
        elif isinstance(x, Program):  # of chains side by side, or of what is repeated
            stack += [x.table, *(step.keep for step in reversed(x.steps))]
        elif hasattr(x, "workspace"):  # operands of a library: their addresses, and its scratch
            stack += [x.workspace, x.kept, x.block]
        elif isinstance(x, ctypes.Array) or type(getattr(x, "address", None)) is int:
            yield x
