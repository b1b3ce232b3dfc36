"""Signatures: what must be known of a kernel to call it, apart from its code.

A `Signature` is plain numbers: made once of the loop nests, which are not needed afterwards, and
written as 64-bit words for the kernel cache. `read` believes nothing of what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from gnomon.expr.functions.primitive import FOLD_INT
from gnomon.expr.term import Term
from gnomon.ground.record import record
from gnomon.plan.terms import postorder

if TYPE_CHECKING:
    from gnomon.plan.ir import Kernel, Phase

T = TypeVar("T")
Slot: TypeAlias = tuple[Any, ...]
KINDS = ("leaf", "scratch", "dim", "scalar", "stride", "tasks")
OPS = ("const", "arg", *FOLD_INT)
ARITY = {"const": 1, "arg": 1, "neg": 1}  # of the others: 2
MOST = 1 << 20  # arguments, steps, phases: more is no signature
LIMIT = 1 << 62

#: the words of a phase's loops, those of all rows and costs behind them; -1 is no step
INNER, SPLIT, VECTOR, COLUMNS, OWN, TURNS, FILLED, ROWS, COSTS, FIRST = range(10)


class Step(NamedTuple):
    """One operation on sizes: of a number, an argument's position, or earlier steps' positions."""

    op: str
    operands: tuple[int, ...]


class Scratch(NamedTuple):
    """Memory of the kernel's own: its slot, the step that gives its elements, bytes of each."""

    slot: Slot
    elements: int
    itemsize: int


class Shared(NamedTuple):
    """How a phase may be cut by rows of its destination; see `plan.ir.Own`. Sizes are steps."""

    rows: int
    turns: int
    filled: bool


class Loops(NamedTuple):
    """A phase as far as cutting it into tasks goes; see `plan.ir.Phase`. Sizes are steps."""

    inner: int | None
    rows: tuple[int, ...]
    split: bool
    vector: bool
    columns: bool
    cost: tuple[tuple[int, int | None], ...]
    own: Shared | None = None

    def words(self) -> list[int]:
        """It as words."""
        pairs = [w for work, times in self.cost for w in (work, _step_word(times))]
        kind = [_step_word(self.inner), self.split, self.vector, self.columns]
        own = self.own or (-1, -1, 0)
        return [*map(int, (*kind, *own)), len(self.rows), len(self.cost), *self.rows, *pairs]


@record()
class Signature:
    """Arguments by slot in the order of the block, the work of each phase, scratch memory.

    `steps` compute every size that those name; `scattered` are the leaves' numbers that the last
    phase reads elsewhere than where it stores.
    """

    args: tuple[Slot, ...]
    steps: tuple[Step, ...]
    scratch: tuple[Scratch, ...]
    phases: tuple[Loops, ...]
    scattered: frozenset[int]

    def sizes(self, given: Sequence[int]) -> list[int]:
        """The value of every step for these arguments, of which sizes and strides count."""
        values: list[int] = []
        for op, operands in self.steps:
            if op == "const":
                values.append(operands[0])
            elif op == "arg":
                values.append(given[operands[0]])
            else:
                values.append(FOLD_INT[op](*[values[k] for k in operands]))
        return values

    def words(self) -> list[int]:
        """The signature as 64-bit words, for `read`."""
        out = [len(self.args), *(w for slot in self.args for w in _slot_words(slot))]
        out.append(len(self.steps))
        for op, operands in self.steps:
            out += [OPS.index(op), *operands]
        out.append(len(self.scratch))
        for piece in self.scratch:
            out += [*_slot_words(piece.slot), piece.elements, piece.itemsize]
        out.append(len(self.phases))
        out += [w for loops in self.phases for w in loops.words()]
        out += [len(self.scattered), *sorted(self.scattered)]
        return out


def signature_of(kernel: Kernel, has_tasks: bool = True) -> Signature:
    """What a planned kernel must be called with; of phases nothing where there are no tasks."""
    steps = _Steps(kernel.args)
    scratch = tuple(
        Scratch(_slot(operand.slot), steps.number(size), operand.dtype.size)
        for operand, size in kernel.scratch
    )
    phases = tuple(_loops(kernel, p, steps) for p in kernel.phases) if has_tasks else ()
    leaves = [_slot(slot) for slot in kernel.scattered]
    scattered = frozenset(slot[1] for slot in leaves if slot[0] == "leaf")
    return Signature(tuple(map(_slot, kernel.args)), tuple(steps.steps), scratch, phases, scattered)


def _loops(kernel: Kernel, phase: Phase, steps: _Steps) -> Loops:
    if phase.inner is None:
        return Loops(None, (), phase.split, phase.vector, False, ())
    extent = kernel.arena.extent
    cost = tuple((w, None if n is None else steps.number(n)) for w, n in phase.cost)
    rows = tuple(steps.number(extent[v]) for v in phase.rows)
    inner = steps.number(extent[phase.inner])
    own = None
    if phase.own is not None:
        count, turns = steps.number(phase.own.rows), steps.number(phase.own.turns)
        own = Shared(count, turns, phase.own.filled)
    return Loops(inner, rows, phase.split, phase.vector, phase.columns, cost, own)


class _Steps:
    """Collects the Terms of sizes as steps, equal ones once."""

    def __init__(self, args: Iterable[Hashable]) -> None:
        self.places = {slot: k for k, slot in enumerate(args)}
        self.known: dict[int, int] = {}
        self.steps: list[Step] = []

    def number(self, root: Term) -> int:
        for term in postorder([root]):
            if term.id not in self.known:
                self.known[term.id] = len(self.steps)
                self.steps.append(self.step(term))
        return self.known[root.id]

    def step(self, term: Term) -> Step:
        if term.op == "const":
            return Step("const", (int(term.payload),))
        if term.op == "arg":
            return Step("arg", (self.places[term.payload],))
        return Step(term.op, tuple(self.known[a.id] for a in term.args))


def _slot(slot: Hashable) -> Slot:
    assert isinstance(slot, tuple), slot
    return slot


def _slot_words(slot: Slot) -> tuple[int, int, int]:
    kind = KINDS.index(slot[0])
    return (kind, slot[1][1], slot[2]) if slot[0] == "stride" else (kind, slot[1], 0)


def _step_word(step: int | None) -> int:
    return -1 if step is None else step


def read(words: Sequence[int]) -> Signature:
    """The signature that `words` are.

    Raises:
        ValueError: they are none: of the wrong number, or beyond their bounds.
    """
    reader = _Reader(words)
    args = reader.many(reader.slot)
    steps: list[Step] = []
    for _ in range(reader.number(0, MOST)):
        steps.append(reader.step(len(args), len(steps)))
    count = len(steps)
    scratch = reader.many(lambda: reader.scratch(count))
    phases = reader.many(lambda: reader.loops(count))
    scattered = reader.many(lambda: reader.number(0, MOST))
    reader.end()
    return Signature(args, tuple(steps), scratch, phases, frozenset(scattered))


class _Reader:
    def __init__(self, words: Sequence[int]) -> None:
        self.words, self.place = words, 0

    def number(self, low: int, high: int) -> int:
        """The next word, from `low` to `high`."""
        if self.place >= len(self.words):
            raise ValueError("a signature ends too early")
        word = self.words[self.place]
        if not low <= word <= high:
            raise ValueError(f"word {self.place} of a signature is {word}")
        self.place += 1
        return word

    def many(self, make: Callable[[], T]) -> tuple[T, ...]:
        return tuple(make() for _ in range(self.number(0, MOST)))

    def end(self) -> None:
        if self.place != len(self.words):
            raise ValueError("a signature goes on after its end")

    def slot(self) -> Slot:
        kind, number = KINDS[self.number(0, len(KINDS) - 1)], self.number(0, MOST)
        axis = self.number(0, MOST)
        return (kind, ("leaf", number), axis) if kind == "stride" else (kind, number)

    def step(self, args: int, before: int) -> Step:
        op = OPS[self.number(0, len(OPS) - 1)]
        if op == "const":
            return Step(op, (self.number(-LIMIT, LIMIT),))
        high = (args if op == "arg" else before) - 1
        return Step(op, tuple(self.number(0, high) for _ in range(ARITY.get(op, 2))))

    def optional(self, steps: int) -> int | None:
        word = self.number(-1, steps - 1)
        return None if word < 0 else word

    def scratch(self, steps: int) -> Scratch:
        return Scratch(self.slot(), self.number(0, steps - 1), self.number(1, 16))

    def loops(self, steps: int) -> Loops:
        inner = self.optional(steps)
        split, vector, columns = [bool(self.number(0, 1)) for _ in range(3)]
        rows, turns, filled = self.optional(steps), self.optional(steps), self.number(0, 1)
        own = None if rows is None or turns is None else Shared(rows, turns, bool(filled))
        counts = [self.number(0, MOST) for _ in range(2)]
        along = tuple([self.number(0, steps - 1) for _ in range(counts[0])])
        cost = tuple([(self.number(0, LIMIT), self.optional(steps)) for _ in range(counts[1])])
        return Loops(inner, along, split, vector, columns, cost, own)
