"""The grid program: what each thread of a GPU does for a kernel; all kinds of its parts.

    Grid         entries, launched one after the other: each ends before the next begins
    Entry        items of work dealt to threads or to groups of threads, and the body of a thread
    Loop         for the combinations of `variables` from number `first`, `step` apart
    When         a body for the threads for which a condition holds
    Wide         a body for neighbouring values of a variable at once, moved by one instruction
    Elements     the body of an element, which may be long
    Accumulator  values that a thread keeps and changes
    Set          accumulator := values
    Combine      accumulator := reducer(accumulator, values)
    Join         the same with the values of all elements that a thread takes at once
    Running      the same, and what the accumulator was with each is the scan of that element
    Shuffle      accumulator := that of another thread of the group in its warp
    Area         a part of the block's shared memory
    Share        a place of an area := accumulator
    Fetch        accumulator := a place of an area
    Barrier      every thread of the block arrives before one goes on
    Result       what a fold or another Term gives is what the accumulator holds
    Let Fold Put as in a loop nest (`plan/ir.py`), for each thread on its own

`code/nvptx.py` writes PTX of it, `code/lockstep.py` runs it on the processor. Where a thread is, it
knows from Terms of `register(arena, name)`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Literal, TypeAlias

from gnomon.dtype import DType
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term
from gnomon.ground.record import record
from gnomon.plan import ir
from gnomon.plan.ir import Fold, Kernel, Let, Put
from gnomon.plan.terms import host_value

Kind = Literal["threads", "rows", "elements"]
WARP = 32
BLOCK = 256  # threads of a block at most: each may then have all the registers there are
HELD = 8  # elements of a row that a thread has in registers
LONG = WARP * HELD  # elements of a row beyond which a block shares it
EACH = 4  # elements of a short row that a thread takes before another one shares it
MANY = 1 << 18  # elements that keep all threads busy, even where each takes several
RESIDENT = 32  # blocks for each processor of the GPU: more only take their turn
REGISTERS = ("tid.x", "tid.y", "ntid.x", "ntid.y", "ctaid.x", "nctaid.x")
SHARED_SLOT = 8  # bytes of a value in shared memory


def team(length: int | None, width: int) -> tuple[int, int]:
    """How many threads share a row of so many elements (None: many), and groups of them a block.

    `width` is how many elements each takes at once.

    >>> [team(n, 1) for n in (0, 4, 5, 30, 128, 300, 1000, None)]
    [(1, 256), (1, 256), (2, 128), (8, 32), (32, 8), (64, 1), (128, 1), (256, 1)]
    """
    if length is None or length > LONG:
        many = BLOCK if length is None else 1 << (-(-length // HELD) - 1).bit_length()
        return min(BLOCK, many), 1
    x = min(WARP, 1 << max(0, -(-length // max(width, EACH)) - 1).bit_length())
    return x, BLOCK // x


def nested(body: Body) -> Iterator[ir.Stmt]:
    """The statements of loop nests inside a body."""
    for stmt in body:
        if isinstance(stmt, Let | Fold | Put):
            yield stmt
        elif isinstance(stmt, Elements):
            yield from stmt.body
        elif isinstance(stmt, Loop | When | Wide):
            yield from nested(stmt.body)


def address(arena: Arena, slot: Hashable) -> Term:
    """Where the memory of an operand begins, as an index."""
    return arena.arg(("address", slot))


def register(arena: Arena, name: str) -> Term:
    """A special register of `REGISTERS`, as an index."""
    assert name in REGISTERS, name
    return arena.arg(("register", name))


@record()
class Accumulator:
    """Values of these dtypes that each thread of an entry has for itself, known by a number."""

    number: int
    dtypes: tuple[DType, ...]


@record(frozen=False)
class Loop:
    """`body` for every combination of `variables`, the last one fastest, by its number.

    From number `first` on, `step` apart, to before `until`.
    """

    variables: tuple[int, ...]
    first: Term
    until: Term
    step: Term
    body: Body


@record(frozen=False)
class When:
    """`body`, for the threads for which `condition` holds."""

    condition: Term
    body: Body


@record(frozen=False)
class Wide:
    """`body`, by each thread for `width` values of `variable` from `first` on, side by side.

    Each read and store, by slot and offset, of `moved` takes one instruction: its elements lie side
    by side, in order (1) or backwards (-1), from a multiple of `width` elements' bytes on, where
    `aligned` holds. Others take one for each value.
    """

    variable: int
    first: Term
    width: int
    moved: Mapping[tuple[Hashable, int], int]
    body: Body
    aligned: Term | None = None  # where it is not known beforehand


@record(frozen=False)
class Elements:
    """What a thread does for an element: so much, maybe, that it is written in segments."""

    body: ir.Body


@record(frozen=False)
class Set:
    """`into` takes the values of Terms, or of another accumulator."""

    into: Accumulator
    values: tuple[Term, ...] | Accumulator


@record(frozen=False)
class Combine:
    """`into` becomes what `reducer` makes of it and of `values`."""

    reducer: Reducer
    into: Accumulator
    values: tuple[Term, ...] | Accumulator


@record(frozen=False)
class Join:
    """`into` becomes what `reducer` makes of it and of `values`, those of each element in turn."""

    reducer: Reducer
    into: Accumulator
    values: tuple[Term, ...]


@record(frozen=False)
class Running:
    """`into` joins the elements of the scan `term` one after the other.

    The scan of an element, known from here on, is what `into` becomes with it, or was before if the
    scan is exclusive.
    """

    term: Term
    into: Accumulator


@record(frozen=False)
class Shuffle:
    """`into` takes the `source` of another thread of the group; all of those in a warp take part.

    "down": of the thread `place` further on, "up": before it, or its own where there is none;
    "idx": of thread `place` of them, of `place` modulo how many they are where those are fewer.
    """

    into: Accumulator
    source: Accumulator
    mode: Literal["down", "up", "idx"]
    place: int


@record()
class Area:
    """`places` values of `size` bytes at most in shared memory, from byte `start` on."""

    start: int
    size: int
    places: int


@record(frozen=False)
class Share:
    """Place `place` of an area takes `source`; threads of a warp may write the same.

    An accumulator of several values takes as many places, from that multiple of them on.
    """

    source: Accumulator
    area: Area
    place: Term


@record(frozen=False)
class Fetch:
    """`into` takes what is at `place` of an area."""

    into: Accumulator
    area: Area
    place: Term


@record(frozen=False)
class Barrier:
    """Every thread of the block arrives before one goes on."""


@record(frozen=False)
class Result:
    """The parts of a fold, or another Term, are known from here on: what `source` holds."""

    term: Term
    source: Accumulator

    def key(self, k: int) -> Hashable:
        """How value `k` of the source is known."""
        if self.term.op == "fold":
            return "part", self.term.id, k
        if self.term.op == "part":
            return "part", self.term.args[0].id, self.term.payload
        return self.term.id


Stmt: TypeAlias = (
    Let
    | Fold
    | Put
    | Loop
    | When
    | Wide
    | Elements
    | Set
    | Combine
    | Join
    | Running
    | Shuffle
    | Share
    | Fetch
    | Barrier
    | Result
)
Body: TypeAlias = list[Stmt]


@record(frozen=False)
class Entry:
    """A phase: `items` of work, each for a thread or a group of them, and what a thread does.

    Blocks have `x` threads times `y`:

        threads   one thread takes `width` elements of rows x inner, then those a grid further
        rows      the x threads of a group take a row: its folds together, its elements by turns
        elements  the x threads of a group take an element: its folds together, the first stores

    `length` is how many elements a group goes through for an item; None: many. `task` is the number
    of the group, `shared` the bytes of shared memory that a block needs, `width` how many elements
    a thread takes at once.
    """

    kind: Kind
    items: Term
    length: Term | None
    task: Term
    body: Body
    shared: int
    width: int = 1

    def shape(self, env: Mapping[Hashable, int], processors: int) -> tuple[int, int, int]:
        """Blocks, and the threads x and y of each, for these sizes on a GPU; no blocks: no work."""
        items = host_value(self.items, env)
        if self.kind == "threads":
            x, y = BLOCK, 1
        else:
            length = None if self.length is None else host_value(self.length, env)
            x, y = team(length, self.width)
        each = x * self.width if self.kind == "threads" else y
        return min(-(-items // each), processors * RESIDENT), x, y


@record(frozen=False)
class Grid:
    """The entries of a kernel, in order."""

    kernel: Kernel
    entries: list[Entry]
