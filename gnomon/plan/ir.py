"""The loop nest: every kind of its parts on one page.

    Kernel   phases, one after the other; each ends before the next begins
    Phase    rows x inner: for every combination of `rows`, `row` then the inner loop over `body`;
             where there are `turns`, both once for each of them
    Let      compute a Term and keep it under its id
    Fold     loops over the variables of one fold or several; results are kept under the fold's id
    Store    dest[offset] saver value

A phase's iterations are independent: they are cut into blocks of at most `block` inner iterations,
dealt to threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term
from gnomon.ground.record import record
from gnomon.plan.operand import Operand

IN_ORDER = "scan", "sort"  # Terms of a row that is gone through as a whole
LONGEST = 1 << 30  # inner iterations of a block at most: places within one are small integers


@record(frozen=False)
class Let:
    """Compute `term` here and keep it."""

    term: Term


@record(frozen=False)
class Fold:
    """Reduce `terms` over their variables; `bodies[k]` runs in variable k's loop, before the next.

    `vector` tells whether the innermost variable is spread over the lanes, to be joined at the end.
    """

    terms: list[Term]
    bodies: list[Body]
    vector: bool

    @property
    def vars(self) -> tuple[int, ...]:
        variables: tuple[int, ...] = self.terms[0].payload[1]
        return variables

    @property
    def free(self) -> int:
        """The variables that the results depend on."""
        mask = 0
        for term in self.terms:
            mask |= term.free
        return mask


def reducer_of(fold: Term) -> Reducer:
    """How the values of a `fold` Term become one."""
    reducer: Reducer = fold.payload[0]
    return reducer


@record(frozen=False)
class Put:
    """`dest[offset] saver value`."""

    dest: Operand
    saver: str
    offset: Term
    value: Term


Stmt: TypeAlias = Let | Fold | Put
Body: TypeAlias = list[Stmt]


def every(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """All statements of a body: those inside of a fold come after it."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Fold):
            for inner in stmt.bodies:
                yield from every(inner)


@record()
class Own:
    """How a phase with turns may be cut by rows of its destination, as well as along them.

    Each turn stores into one of `rows`, each as long as the inner loop. Who has a row looks at all
    turns for those that are its own. `filled` tells that the phase before fills the destination:
    it can do so part by part, each just before it is added to.
    """

    rows: Term
    turns: Term
    filled: bool


@record(frozen=False)
class Phase:
    """One loop nest: `rows` are the outer variables, `inner` the innermost (None: one iteration).

    `entry` runs once a task, `row` once a row, `body` once an element (`lanes` at a time when
    `vector`). `turns` are gone through in order between a row and its inner loop, which adds to
    what earlier turns stored; `row` then runs once a turn. `split` tells whether one row may be cut
    among tasks, `columns` whether blocks are taken below each other before the next ones beside
    them; `striped` that folds go along rows of memory, with a row of partial results for a strip of
    columns. `own` tells of another way to cut it, for turns. `ordered` tells that a row is gone
    through in order, for the sake of a scan or a sort in it. `cost` estimates the work of an inner
    iteration.
    """

    rows: tuple[int, ...]
    inner: int | None
    vector: bool
    turns: tuple[int, ...] = ()
    entry: Body = field(default_factory=list)
    row: Body = field(default_factory=list)
    body: Body = field(default_factory=list)
    split: bool = True
    columns: bool = False
    striped: bool = False
    own: Own | None = None
    ordered: bool = False
    cost: list[tuple[int, Term | None]] = field(default_factory=list)


@record(frozen=False)
class Kernel:
    """Phases, their arguments (by slot), and the scratch memory they share (operand, elements).

    `scattered` are the slots that the last phase reads elsewhere than where it stores: a
    destination must not be one.
    """

    arena: Arena
    phases: list[Phase]
    operands: list[Operand]
    scratch: list[tuple[Operand, Term]]
    args: list[Hashable] = field(default_factory=list)
    scattered: frozenset[Hashable] = frozenset()
