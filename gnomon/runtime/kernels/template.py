"""Templates: steps made once for a kind of work, whose operands' addresses come with each run.

Making steps takes 50 us and more; an array operation of some size takes less. So the steps are made
for stand-in addresses, which no memory has. Kernels and the steps of libraries know which words of
their argument blocks are addresses; where there are other steps, or numbers, all are made twice
with different stand-ins, and the words that differ accordingly are what is looked for. A run takes
a free copy of the steps, writes the addresses into its blocks and calls it; as many copies come to
be as run at the same time, each with temporaries of its own. Of work that kernels do, these are
other blocks alone; of other work all is made once more. Copies that hold much memory are not kept.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from gnomon.expr.node import Buffer
from gnomon.ground.record import Frozen, put
from gnomon.native.words import whole
from gnomon.runtime.devices import pool
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.execution.program import (
    SPARE,
    Done,
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

Make = Callable[..., list[Step]]

SPACING = 1 << 48  # between stand-ins, more than any memory; the first is beyond all addresses
_SHIFT = 1 << 40  # times its number: how much an operand's second stand-in is further
KEPT_BYTES = 1 << 20
STREAMED_BYTES = 64 << 20  # of copies that the stream uses, with more memory than that

_large: deque[tuple[weakref.ref[Template], int]] = deque()  # those with such a copy, and its bytes


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


class Copy:
    """One set of steps, with its blocks, of which `take` says what a run fills in."""

    __slots__ = ("_streamed", "blocks", "call", "held", "slots", "step", "steps", "words")

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.step = steps[0] if len(steps) == 1 else Program(steps)
        self.blocks: list[Block] = []
        self.slots: list[tuple[Any, int, int, int]] = []
        storages: dict[int, int] = {}  # steps may share them
        for each in chain.from_iterable(map(_each, steps)):
            for x in _held(each.keep):
                if isinstance(x, Block):
                    self.blocks.append(x)
                elif isinstance(x, Storage):
                    storages[id(x)] = x.nbytes
        self.held = sum(storages.values())
        self.call = self.step.run_once
        self.words: list[tuple[int, int, int]] = []  # as `slots`, by the address of a word
        self._streamed: Streamed | None = None

    def take(self, places: Sequence[Place]) -> None:
        """From now on a run fills these places in."""
        self.slots = [(self.blocks[p.block].words, p.word, p.operand, p.offset) for p in places]

    def run(self, addresses: Sequence[int], done: Done) -> None:
        """Do the work on these operands, once; no other run may be using this copy."""
        self.place(addresses)
        self.call(done)

    def place(self, addresses: Sequence[int]) -> None:
        """From now on the operands are at these addresses."""
        for words, word, operand, offset in self.slots:
            words[word] = addresses[operand] + offset

    def pairs(self, addresses: Sequence[int]) -> list[Pair]:
        """What `place` puts where, for a task."""
        if not self.words:
            self.words = [(place_of(w, k), operand, offset) for w, k, operand, offset in self.slots]
        return [(place, addresses[operand] + offset) for place, operand, offset in self.words]

    @property
    def streamed(self) -> Streamed:
        """How native code fills in its tasks."""
        if self._streamed is None:
            self.pairs([0] * (1 + max([operand for _, _, operand, _ in self.slots], default=0)))
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
        "_stand_ins",
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
        self._stand_ins = [(k + 1) * SPACING for k in range(count)]
        self._numbers = {pair: count + k for k, pair in enumerate(numbers)}
        self._threads = 0  # for how many steps were made, and their places looked for
        self._like: Sequence[Step] = ()  # those; none where they hold much memory
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
        copy = Copy(self._make(self._stand_ins, *self._which[0]))
        threads = num_threads()
        if threads != self._threads and not self._given:
            known = None if self._numbers else self._said(copy)
            if known is None:
                moved = [a + (k + 1) * _SHIFT for k, a in enumerate(self._stand_ins)]
                known = self._compare(copy, Copy(self._make(moved, *self._which[1])))
            self.places = known
        self._threads = threads
        self._like = copy.steps if copy.held <= KEPT_BYTES else ()
        copy.take(self.places)
        return copy

    def _another(self) -> Copy:
        """One more copy: its steps are like others, or made once more."""
        steps = again(self._like) if self._threads == num_threads() else None
        if not steps:
            return self._made()
        copy = Copy(steps)
        copy.take(self.places)
        return copy

    def _said(self, copy: Copy) -> list[Place] | None:
        """The words of blocks that steps say hold operands' addresses.

        None where a step says nothing, or where there are others that may hold one.
        """
        said: dict[int, set[int]] = {}
        for step in copy.steps:
            found = addresses_of(step)
            if found is None:
                return None
            for block, word in found:
                said.setdefault(id(block), set()).add(word)
        places = []
        for number, block in {id(b): (k, b) for k, b in enumerate(copy.blocks)}.values():
            for word, x in enumerate(block.words):
                operand = 0 if x < SPACING // 2 else (x + SPACING // 2) // SPACING
                if not 1 <= operand <= self.count:
                    continue  # a number, or memory of its own
                if word not in said.get(id(block), ()):
                    return None
                places.append(Place(number, word, operand - 1, x - self._stand_ins[operand - 1]))
        return places

    def _compare(self, copy: Copy, shifted: Copy) -> list[Place]:
        """The words of `copy` that differ from those of `shifted` as the stand-ins do."""
        return [
            place
            for number, (a, b) in enumerate(zip(copy.blocks, shifted.blocks, strict=True))
            for word, (x, y) in enumerate(zip(a.words, b.words, strict=True))
            if (place := self._place(number, word, x, y)) is not None
        ]

    def _place(self, block: int, word: int, x: int, y: int) -> Place | None:
        """What a word is that holds `x` in one making and `y` in the other, if it is a place."""
        if (x, y) in self._numbers:
            return Place(block, word, self._numbers[x, y], 0)
        operand, rest = divmod(y - x, _SHIFT)
        if rest or not 1 <= operand <= len(self._stand_ins):
            return None
        offset = x - self._stand_ins[operand - 1]
        return Place(block, word, operand - 1, offset) if abs(offset) < _SHIFT else None

    def places_of(self, operand: int) -> int:
        """How many words hold an operand's address, or a number."""
        return sum(place.operand == operand for place in self.places)

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
        if copy.held <= KEPT_BYTES:
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
            self._keep_streamed(copy)
        return Task(copy.step, copy.pairs(addresses), keep=keep, timed=self)

    def settled(self, task: Task) -> None:
        """A task is not needed any more: it may be entered again as long as the work is long."""
        copy = self._streamed
        if copy is None or copy.step is not task.step or task.told is not None or not self.is_long:
            return
        spare = copy.streamed.spare
        if len(spare) < SPARE:
            task.rest(expected(self._work, self._seconds))
            spare.append(task)

    @property
    def streamed(self) -> Streamed | None:
        """How native code fills in the tasks; None where the stream keeps no copy."""
        return None if self._streamed is None else self._streamed.streamed

    def _keep_streamed(self, copy: Copy) -> None:
        """Keep a copy for the stream: of those with much memory, the latest that have room."""
        if copy.held <= STREAMED_BYTES:
            self._streamed = copy
        if KEPT_BYTES < copy.held <= STREAMED_BYTES:
            _large.append((weakref.ref(self), copy.held))
            while len(_large) > 1 and sum(held for _, held in tuple(_large)) > STREAMED_BYTES:
                _let_go()

    def reserve(self) -> Copy:
        """A copy of one's own, for a caller who sees to it that it runs once at a time."""
        try:
            return self._free.pop()
        except IndexError:
            return self._another()

    def give_back(self, copy: Copy) -> None:
        """Leave a copy of `reserve` to others."""
        self._free.append(copy)


def _let_go() -> None:
    """Have the oldest of those with a large copy for the stream go without."""
    with suppress(IndexError):  # where another thread was faster
        oldest = _large.popleft()[0]()
        copy = None if oldest is None else oldest._streamed
        if oldest is not None and copy is not None:
            oldest._streamed = None
            copy.streamed.spare.clear()  # native code may still know of these


def again(steps: Sequence[Step]) -> list[Step] | None:
    """Steps of kernels once more, with memory of their own; None where one is something else."""
    own: dict[int, Storage] = {}  # for each temporary its like
    made = []
    for step in steps:
        keep = step.keep
        if type(step) is not Step or type(keep) is not tuple or not isinstance(keep[0], Kernel):
            return None
        owners = [_owner(leaf) for leaf in keep[3]]
        if any(x is not None and not isinstance(x, Storage) for x in owners):
            return None
        for x in owners:
            if x is not None and id(x) not in own:
                own[id(x)] = pool.allocate(x.nbytes)
        leaves = [
            leaf if x is None else _elsewhere(leaf, x, own[id(x)])
            for leaf, x in zip(keep[3], owners, strict=True)
        ]
        made.append(keep[0].rebound(step, [leaf.address for leaf in leaves], leaves, step.name))
    return made


def _owner(leaf: Buffer) -> Any:
    """What a leaf's memory belongs to: a temporary's storage, None for an operand."""
    owner = leaf.owner
    while isinstance(owner, Buffer):  # of which the leaf is a view
        owner = owner.owner
    return owner


def _elsewhere(leaf: Buffer, before: Storage, storage: Storage) -> Buffer:
    """A leaf that lies in `storage` as it did in another."""
    address = storage.address + leaf.address - before.address
    return Buffer(leaf.shape, leaf.dtype, leaf.strides, address, storage, leaf.device)


def _each(step: Step) -> Sequence[Step]:
    """The steps of a program, or a step itself."""
    return step.steps if isinstance(step, Program) else (step,)


def blocks_of(step: Step) -> Iterator[Block]:
    """The argument blocks of a step, or of all steps of a program, in a fixed order."""
    for each in _each(step):
        keep = each.keep
        if type(keep) is tuple and keep and isinstance(keep[0], Kernel):
            yield keep[1]
        else:
            yield from (x for x in _held(keep) if isinstance(x, Block))


def addresses_of(step: Step) -> list[tuple[Block, int]] | None:
    """The words of a step's blocks that are addresses of operands; None where that is not known."""
    found: dict[tuple[int, int], tuple[Block, int]] = {}
    for each in _each(step):
        keep = each.keep
        if type(keep) is tuple and keep and isinstance(keep[0], Kernel):
            kernel, block = keep[:2]
            first = len(block.words) - len(kernel.signature.args)
            words = [first + word for word in kernel.leaves]
        elif type(keep) is tuple and len(keep) > 1 and hasattr(keep[1], "workspace"):
            block = keep[1].block  # of a library: the workspace, then the operands
            words = list(range(1, len(block.words)))
        elif hasattr(each, "address_words"):
            block, words = each.address_words()
        else:
            return None
        found |= {(id(block), word): (block, word) for word in words}
    return list(found.values())


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
