"""Marks: the operators of records, each under what came before it (see `notes.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.core.tape import Place
from gnomon.ops.op import Op
from gnomon.record import put

KEPT = 1 << 14  # marks in all, of which a program counts as some; beyond, they are learnt anew
WEIGHT = 64


class Operand(NamedTuple):
    """An array in memory that was noted, as it was then."""

    array: Any
    chunk: Chunk
    address: int
    layout: Any  # a `Layout`
    place: Place | None

    def again(self) -> Any:
        """An array that is what this one was."""
        made = Array._at(self.chunk, self.address, self.layout)
        put(made, "_tape", self.place)
        return made


class Mark:
    """What was noted up to one operator; `operands` are results by number, and leaves -1, -2...

    `first` is the number of its first result, `leaves` and `results` count all up to it.
    """

    __slots__ = (
        "after", "count", "first", "is_single", "layouts", "leaves", "op", "operands", "parent",
        "plans", "results",
    )  # fmt: skip

    made = 0

    def __init__(
        self, parent: Mark | None, op: Any, operands: tuple[int, ...], layouts: Sequence[Layout]
    ) -> None:
        self.parent, self.op, self.operands, self.layouts = parent, op, operands, layouts
        self.first = 0 if parent is None else parent.results
        self.results = self.first + len(layouts)
        self.is_single = len(layouts) == 1
        self.count = 0 if parent is None else parent.count + 1
        before = 0 if parent is None else parent.leaves
        self.leaves = max([before, *(-k for k in operands)])
        self.after: dict[Any, Mark | None] = {}  # None: it is not noted
        self.plans: dict[Any, Any] = {}  # how often a step came, then its program

    def path(self) -> list[Mark]:
        """The marks from the first operator to this one."""

        def back(mark: Mark) -> Iterator[Mark]:
            while mark.parent is not None:
                yield mark
                mark = mark.parent

        return list(back(self))[::-1]


EMPTY = {False: Mark(None, None, (), ()), True: Mark(None, None, (), ())}  # by train mode
_alike: dict[Any, Any] = {}  # one operator of all that are equal


def admit(weight: int = 1) -> None:
    """One more of what is kept; all of it is dropped when it is too much."""
    Mark.made += weight
    if Mark.made > KEPT:
        Mark.made = 0
        _alike.clear()
        for mark in EMPTY.values():
            mark.after.clear()


def may_be_noted(op: Any) -> bool:
    """Whether an operator depends on its inputs alone, and refuses no values of theirs."""
    plain = isinstance(op, Op) and op.is_expression and op.guard is None
    return plain and not (op.aux_names or op.is_random or op.sparse_grad)


def canonical(op: Any) -> Any:
    """One operator of all that are equal, so that marks are found by its identity."""
    found = op.__dict__.get("_noted")
    if found is None:
        try:
            found = _alike.setdefault(op, op)
        except TypeError:  # a list among the parameters has no hash
            found = op
        op.__dict__["_noted"] = found
    return found


def needed(path: Sequence[Mark], wanted: Iterable[int]) -> list[int]:
    """The numbers of the operators that results depend on."""
    results, found = set(wanted), []
    for number in range(len(path) - 1, -1, -1):
        mark = path[number]
        if not results.isdisjoint(range(mark.first, mark.results)):
            found.append(number)
            results.update(k for k in mark.operands if k >= 0)
    return found[::-1]
