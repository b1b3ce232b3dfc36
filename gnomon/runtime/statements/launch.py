"""Launches: statements made ready to run again on other memory and numbers, by one native call.

A `Launch` holds a copy of a `Template`'s steps and a recipe for `launch_code`: where, in the
objects it is called with, the addresses and numbers are, what they must satisfy, and which words of
the steps' blocks they go to. Operands that overlapped when it was made must lie at the same
distance again, others must lie apart from all that is written: what decides about temporaries and
order in memory is then as it was. Where a recipe does not hold, the call does nothing and says so,
and the statement is carried out, and perhaps learned, anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from gnomon.expr.composite import Composite
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.pattern import EPOCH
from gnomon.expr.rewrite import with_children
from gnomon.expr.term import compute_dtype
from gnomon.native.serve import binding
from gnomon.plan.cut import overlap, reach
from gnomon.plan.statement import Store, identity
from gnomon.runtime.devices import pool
from gnomon.runtime.execution import threads
from gnomon.runtime.execution.program import Step
from gnomon.runtime.ffi import Block
from gnomon.runtime.kernels.kernel import bits
from gnomon.runtime.kernels.template import Template
from gnomon.runtime.kernels.workspace import LOCK_MEMORY
from gnomon.runtime.statements import fields
from gnomon.runtime.statements.fields import field
from gnomon.runtime.statements.launch_code import (
    ADDRESS,
    DOUBLE,
    FLOAT,
    INTEGER,
    MOST,
    OBJECT,
    SAME,
    TWIN,
    launch,
)
from gnomon.runtime.statements.prepare import prepare

HELD = 40_000  # work (see `division.GRAIN`) below which it does not pay to let others run meanwhile
WORK_BYTES = 1 << 20  # that a launch beside which others may run keeps to work in
NUMBERS = 60  # that can be told apart in a template
T = TypeVar("T")


class NoLaunch(Exception):
    """Statements that no launch can be made of."""


class Row(NamedTuple):
    """An instruction of a recipe; see `launch_code`."""

    source: int
    name: str | None
    owner: type  # of what is read
    element: int
    kind: int
    base: int = -1
    delta: int = 0

    def words(self) -> tuple[int, ...]:
        """The instruction as native code reads it."""
        found = None if self.name is None else field(self.owner, self.name)
        where = (0, 0, named(self.name)) if found is None else (id(found.kind), found.offset, 0)
        return (self.source, *where, self.element, self.kind, self.base, self.delta)


class Reading:
    """The instructions of a recipe, as they are collected; `given` registers come with the call.

    `owner` is the type of what stands in the register that a name is looked up in.
    """

    def __init__(self, given: int) -> None:
        self.rows: list[Row] = []
        self.keep: list[Any] = []
        self._next = given

    def thing(self, source: int, name: str | None, index: int = -1, owner: type = object) -> int:
        """The register of what stands there."""
        self.rows.append(Row(source, name, owner, index, OBJECT))
        self._next += 1
        return self._next - 1

    def value(
        self,
        source: int,
        name: str | None,
        kind: int,
        index: int = -1,
        owner: type = object,
    ) -> int:
        """The number of the instruction that reads a value there."""
        self.rows.append(Row(source, name, owner, index, kind))
        return len(self.rows) - 1

    def address(self, source: int) -> int:
        """The number of the instruction that reads the address of a buffer."""
        return self.value(source, "address", ADDRESS, owner=Buffer)

    def same(self, source: int, name: str, owner: type, thing: Any) -> None:
        """What stands there must be this very thing."""
        self.keep.append(thing)
        self.rows.append(Row(source, name, owner, -1, SAME, id(thing)))

    def twin(self, source: int, name: str, index: int, owner: type, register: int) -> None:
        """What stands there must be what is in that register."""
        self.rows.append(Row(source, name, owner, index, TWIN, register))

    def tie(self, number: int, base: int, delta: int) -> None:
        """The address that `number` reads must be `delta` behind that of `base`."""
        self.rows[number] = self.rows[number]._replace(base=base, delta=delta)


class Place(NamedTuple):
    """A leaf: the instruction that reads it, what it was, whether it is written."""

    number: int
    buffer: Buffer
    written: bool = False


#: statements over leaves at these addresses, with these numbers: both in the order of the reading
Rebase = Callable[[Sequence[Buffer], Sequence[Scalar]], list[Step]]


class Work(NamedTuple):
    """What a launch is made of."""

    reading: Reading
    places: Sequence[Place]
    numbers: Sequence[tuple[int, Scalar]]
    steps: Rebase


def work_of(statement: Store) -> Work:
    """What a launch of a statement is made of: its call is given the destination and the value."""
    reading = Reading(2)
    dest = Place(reading.address(0), statement.dest, written=True)
    tree = Tree(reading, 1, statement.value)

    def steps(buffers: Sequence[Buffer], numbers: Sequence[Scalar]) -> list[Step]:
        value = tree.over(iter(buffers[1:]), iter(numbers))
        return prepare([Store(buffers[0], statement.saver, value)], "assignment")

    return Work(reading, [dest, *tree.places], tree.numbers, steps)


class Launch:
    """Steps, and a recipe for running them: `call(*registers)` gives True, None or False.

    Raises:
        NoLaunch: the steps take more memory than is kept, or hold a number in no plain form.
    """

    __slots__ = ("_keep", "aside", "call", "copy", "epoch", "following", "noted", "recipe")

    def __init__(self, work: Work) -> None:
        buffers = [p.buffer for p in work.places]
        regions = tied(buffers, {k for k, p in enumerate(work.places) if p.written})
        numbers = [scalar for _, scalar in work.numbers]
        template = template_of(buffers, numbers, regions, work.steps)
        self.copy, self.epoch = template.reserve(), EPOCH.value
        needs = self.copy.needs.nbytes
        self.following: Launch | None = None  # the next to try where this one does not hold
        self.noted = False  # whether `call_cache` knows it
        if not self.copy.slots or len(work.reading.rows) > MOST:
            raise NoLaunch
        # other threads come between Python's lines
        self.aside = self.copy.step.work > HELD or not fields.readable()
        if needs > WORK_BYTES and self.aside:
            raise NoLaunch
        if needs:
            self.copy.work_in(pool.allocate(needs) if self.aside else LOCK_MEMORY.of(needs))
        for place, (owner, delta) in zip(work.places, regions, strict=True):
            if work.places[owner] is not place:
                work.reading.tie(place.number, work.places[owner].number, delta)
        recipe, tables = self._recipe(work, regions)
        self._keep = (recipe, tables, work.reading)  # not the operands, which may be large
        self.recipe = recipe.address
        self.call: Callable[..., bool | None] = binding(launch)(recipe.address)

    def _recipe(self, work: Work, regions: Regions) -> tuple[Block, list[Block]]:
        """The words of the recipe, and the tables that it points to."""
        sources = _sources(work, regions)
        slots = [(place, sources[operand], offset) for place, operand, offset in self.copy.words]
        rows = [row.words() for row in work.reading.rows]
        parts: list[Sequence[tuple[int, ...]]] = [rows, _apart(work.places, regions), slots]
        tables = [Block([w for row in part for w in row] or 1) for part in parts]
        words: list[int] = []
        for part, table in zip(parts, tables, strict=True):
            words += [len(part), table.address]
        step = self.copy.step
        words += [threads.count_address(), threads.num_threads()]
        words += [ctypes.addressof(EPOCH), self.epoch, step.function, step.block]
        words += [
            step.status.address if step.status else _fine.address,
            self.aside,
            0,
        ]
        return Block(words), tables

    def failed(self) -> None:
        """Raises the GnomonError of a call that gave None."""
        self.copy.step.check()


_fine = Block(1)
Regions = Sequence[tuple[int, int]]


def tied(buffers: Sequence[Buffer], written: Collection[int]) -> list[tuple[int, int]]:
    """For each buffer, the first one that it shares memory with, and how far behind that it is.

    Sharing counts where one of both is written, or where they are the same.
    """
    owner = list(range(len(buffers)))
    for k, b in enumerate(buffers):
        for j in range(k):
            writes = k in written or j in written
            if (writes and overlap(b, buffers[j])) or identity(b) == identity(buffers[j]):
                old, new = max(owner[k], owner[j]), min(owner[k], owner[j])
                owner = [new if o == old else o for o in owner]
    return [(o, b.address - buffers[o].address) for o, b in zip(owner, buffers, strict=True)]


def template_of(
    buffers: Sequence[Buffer],
    numbers: Sequence[Scalar],
    regions: Regions,
    steps: Rebase,
    made: Callable[..., Any] = Template,
) -> Any:
    """The steps, for stand-ins of the memory and of the numbers; `made` is the template's class.

    Raises:
        NoLaunch: there are too many numbers, or truth values, or the steps do not hold each one.
    """
    owners = list(dict.fromkeys(owner for owner, _ in regions))
    if len(numbers) > NUMBERS or any(s.dtype.kind == "b" for s in numbers):
        raise NoLaunch

    def make(addresses: Sequence[int], which: int = 0) -> list[Step]:
        there = [
            Buffer(b.shape, b.dtype, b.strides, addresses[owners.index(o)] + d, None, b.device)
            for b, (o, d) in zip(buffers, regions, strict=True)
        ]
        return steps(there, stand_in_numbers(numbers, which))

    sides = (stand_in_numbers(numbers, which) for which in (0, 1))
    pairs = [(bits(a), bits(b)) for a, b in zip(*sides, strict=True)]
    template = made(make, len(owners), pairs)
    if not template.takes_numbers:
        raise NoLaunch
    return template


def stand_in_numbers(numbers: Sequence[Scalar], which: int) -> list[Scalar]:
    """The first or the second set of numbers that steps are made with to find these in them.

    Each number is in its set once, and not in the other. None is 1: some steps would not multiply.
    """
    found = []
    for k, scalar in enumerate(numbers, 1):
        value = 1.0 + which + k / 1024 if scalar.dtype.kind == "f" else 1 + k + 64 * which
        found.append(Scalar(value, scalar.dtype))
    return found


def _sources(work: Work, regions: Regions) -> list[int]:
    """The instruction that reads each operand of the template: memory, then numbers."""
    owners = dict.fromkeys(owner for owner, _ in regions)
    return [*(work.places[o].number for o in owners), *(n for n, _ in work.numbers)]


def _apart(places: Sequence[Place], regions: Regions) -> list[tuple[int, ...]]:
    """The pairs that must not overlap: what is written, and what lies elsewhere."""
    found: dict[tuple[int, ...], None] = {}
    for k, p in enumerate(places):
        for j, q in enumerate(places):
            if p.written and regions[k][0] != regions[j][0] and not (q.written and j < k):
                found[(*_extent(p), *_extent(q))] = None
    return list(found)


def _extent(place: Place) -> tuple[int, int, int]:
    low, high = reach(place.buffer)
    return place.number, low - place.buffer.address, high - place.buffer.address


def named(name: str | None) -> int:
    """The address of a name as an object of Python, 0 for none; `Reading` keeps it alive."""
    return 0 if name is None else id(name)


# -- expressions ------------------------------------------------------------------------------


class Tree:
    """Reads an expression that stands in a register: its leaves, in the order of a walk."""

    def __init__(self, reading: Reading, register: int, root: Expr) -> None:
        self.reading, self.root = reading, root
        self.places: list[Place] = []
        self.numbers: list[tuple[int, Scalar]] = []
        self._seen: dict[int, int] = {}
        self._read(register, root)

    def _read(self, register: int, node: Expr) -> None:
        self._seen[id(node)] = register
        if isinstance(node, Buffer):
            self.places.append(Place(self.reading.address(register), node))
        elif isinstance(node, Scalar):
            number = self.reading.value(register, "value", kind_of(node), owner=Scalar)
            self.numbers.append((number, node))
        for name, index, child in operands(node):
            again = self._seen.get(id(child))
            if again is not None and not isinstance(child, Buffer):
                self.reading.twin(register, name, index, type(node), again)
            else:
                self._read(self.reading.thing(register, name, index, type(node)), child)

    def over(self, buffers: Iterator[Buffer], numbers: Iterator[Scalar]) -> Expr:
        """The same expression over other leaves, in the order of the walk."""
        new: dict[int, Expr] = {}

        def build(node: Expr) -> Expr:
            if isinstance(node, Buffer):
                return next(buffers)
            if id(node) not in new:
                if isinstance(node, Scalar):
                    new[id(node)] = next(numbers)
                else:
                    new[id(node)] = with_children(node, [build(c) for _, _, c in operands(node)])
            return new[id(node)]

        return build(self.root)


def operands(node: Expr) -> Iterator[tuple[str, int, Expr]]:
    """The operands of a node, and where it holds them: attribute, and element or -1."""
    if isinstance(node, Map):
        yield from (("args", k, arg) for k, arg in enumerate(node.args))
    elif isinstance(node, (Cast, Composite)):
        for name, role in roles(node).items():
            held = getattr(node, name)
            if role == "one" and held is not None:
                yield name, -1, held
            elif role == "many":
                yield from ((name, k, each) for k, each in enumerate(held))


def roles(node: Cast | Composite) -> dict[str, str]:
    """What each field of a node holds; see `Composite.roles`."""
    return {"src": "one"} if isinstance(node, Cast) else node.roles()


def kind_of(scalar: Scalar) -> int:
    """How native code writes a number of this dtype."""
    dtype = compute_dtype(scalar.dtype)
    return INTEGER if dtype.kind != "f" else DOUBLE if dtype.size == 8 else FLOAT
