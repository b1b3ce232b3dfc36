"""Marks: the operators of records, each under the operators before it (see `notes.py`)."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from gnomon.dtype import int64
from gnomon.expr.node import Buffer
from gnomon.ground.record import Frozen, put
from gnomon.native.words import whole
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.core.bounded_cache import STEPS
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.core.tape import Place
from gnomon.ndarray.lazy.recipe import Draws
from gnomon.ops.asking import parameters
from gnomon.ops.op import Op

KEPT = 1 << 15  # marks in all; beyond, they are learnt anew
TRUST = 5  # programs of a structure that are made the usual way for steps that did not come often

#: heads, which of these were given gradients, values that are held, and the operands' variables
Key = tuple[tuple[int, ...], tuple[bool, ...], tuple[int, ...], tuple[int, ...]]


@whole
class Operand(Frozen):
    """An array in memory that was noted, as it was then."""

    __slots__ = ("array", "chunk", "layout", "offset", "place")

    array: Array
    chunk: Chunk
    layout: Any  # a `Layout`
    offset: int  # in the chunk
    place: Any  # on the tape

    def __init__(
        self, array: Any, chunk: Chunk, offset: int, layout: Layout, place: Place | None
    ) -> None:
        put(self, "array", array)
        put(self, "chunk", chunk)
        put(self, "offset", offset)
        put(self, "layout", layout)
        put(self, "place", place)

    def remade(self) -> Any:
        """An array that is what this one was."""
        made = Array._at(self.chunk, self.layout, self.offset)
        put(made, "_tape", self.place)
        return made


class Kind:
    """What marks share that differ in sizes alone: they lead to each other as marks do.

    `structures` are those of steps that end here, by what was asked for.
    """

    __slots__ = ("after", "op", "structures")

    def __init__(self, op: Any) -> None:
        self.op = op  # alive, so that no other has its identity
        self.after: dict[Any, Kind] = {}
        self.structures: dict[Any, Any] = {}

    def then(self, op: Any, operands: tuple[int, ...], results: int, is_random: bool) -> Kind:
        """The kind of marks of an operator after those of this one, with so many `results`."""
        what = id(op), operands, results, is_random
        found = self.after.get(what)
        if found is None:
            found = self.after[what] = Kind(op)
        return found


@whole
class Mark(Frozen):
    """What was noted up to one operator; `operands` are results by number, and leaves -1, -2...

    `first` is the number of its first result, `leaves` and `results` count all up to it. `draws`
    tell how many random numbers each draw takes.
    """

    __slots__ = (
        "after", "count", "draws", "first", "is_random", "is_single", "kind", "layouts", "leaves",
        "op", "opened", "operands", "parent", "plans", "results", "varied",
    )  # fmt: skip

    made = 0

    after: dict[Any, Mark | None]  # None: it is not noted
    count: int
    draws: tuple[int, ...]
    first: int
    is_random: bool
    is_single: bool
    kind: Any  # a `Kind`
    layouts: tuple[Layout, ...]
    leaves: int
    op: Any
    opened: dict[Any, Any]  # operators after it with their numbers as operands, by `varied`
    operands: tuple[int, ...]
    parent: Mark | None
    plans: dict[Any, Any]  # how often a step came, then its program
    results: int
    varied: dict[Any, int]  # how many numbers came with an operator on the same operands after it

    def __init__(
        self,
        parent: Mark | None,
        op: Any,
        operands: tuple[int, ...],
        layouts: Sequence[Layout],
        draws: tuple[int, ...] = (),
    ) -> None:
        first, before = (0, 0) if parent is None else (parent.results, parent.leaves)
        results = first + len(layouts)
        if parent is None:
            kind = Kind(op)
        else:
            kind = parent.kind.then(op, operands, results, bool(draws))
        for name, value in (
            ("parent", parent), ("op", op), ("operands", operands), ("layouts", tuple(layouts)),
            ("draws", draws), ("is_random", bool(draws)), ("is_single", len(layouts) == 1),
            ("first", first), ("results", results), ("kind", kind),
            ("count", 0 if parent is None else parent.count + 1),
            ("leaves", max([before, *(-k for k in operands)])),
            ("after", {}), ("opened", {}), ("plans", {}), ("varied", {}),
        ):  # fmt: skip
            put(self, name, value)

    def path(self) -> list[Mark]:
        """The marks from the first operator to this one."""

        def back(mark: Mark) -> Iterator[Mark]:
            while mark.parent is not None:
                yield mark
                mark = mark.parent

        return list(back(self))[::-1]


#: what a record is of: on the tape, in predict mode or in train mode; or off it, in predict mode
ON_TAPE, TRAINED, PREDICTED = 0, 1, 2
EMPTY = tuple([Mark(None, None, (), ()) for _ in (ON_TAPE, TRAINED, PREDICTED)])
_alike: dict[Any, Any] = {}  # one operator of all that are equal


def admit(weight: int = 1) -> None:
    """One more of what is kept; all of it is dropped when it is too much."""
    Mark.made += weight
    if Mark.made > KEPT:
        Mark.made = 0
        _alike.clear()
        for mark in EMPTY:
            mark.after.clear()
            mark.kind.after.clear()


class Structure:
    """What steps of so many `operators` share that differ in sizes alone.

    `count` is how often one came, `outline` what programs share (`executor/recorded_step.py`). The
    first of these are made the usual way, which tells of those for other sizes: they take a
    fraction of that. `trust` falls with each one of the usual way, or that may not be, and rises
    with others.
    """

    __slots__ = ("count", "operators", "outline", "trust")

    def __init__(self, operators: int) -> None:
        self.operators = operators
        self.count, self.trust = 0, TRUST
        self.outline: Any = None

    def is_due(self, often: int, is_new: bool) -> bool:
        """Whether a program pays for a step that did not come often itself.

        It does where its operators on such operands are new, too. Else it may have had one, for
        which there was no room.
        """
        return self.count > often and self.trust > 0 and (is_new or STEPS.has_room)

    def learn(self, by_others: bool) -> None:
        """A program was made, by those for other sizes or not, or could not be."""
        self.trust = min(self.trust + 1, TRUST) if by_others else self.trust - 1


S = TypeVar("S", bound=Structure)


def structure_of(mark: Mark, key: Any, made: type[S]) -> S:
    """The structure of what was noted up to a mark and asked for by `key`, which says what class it
    is `made` of."""
    found: S | None = mark.kind.structures.get(key)
    if found is None:
        found = mark.kind.structures[key] = made(mark.count)
    return found


def may_be_noted(op: Any) -> bool:
    """Whether an operator is an expression that refuses no values, and leaves its states as they
    are; its gradient may not draw."""
    if not isinstance(op, Op) or not op.is_expression or op.guard is not None or op.sparse_grad:
        return False
    if type(op).updates is not Op.updates:
        return False
    return not op.is_random or (op.takes_random and _has_own_gradient(type(op)))


@functools.lru_cache(maxsize=256)
def _has_own_gradient(kind: type[Any]) -> bool:
    """Whether the gradient of a random operator is said by it, of what it drew before."""
    return kind.backward is not Op.backward and "random" not in parameters(kind.backward)


@functools.lru_cache(maxsize=1024)
def is_own(kind: type[Any]) -> bool:
    """Whether an operator is a program's own: what is wrong with it is told where it is called."""
    return kind.__module__.partition(".")[0] != __name__.partition(".")[0]


def draws_of(
    op: Any, layouts: Sequence[Layout], outs: Sequence[Any], train: bool
) -> tuple[int, ...]:
    """How many random numbers each draw of an operator takes, on operands of these layouts."""
    if not (op.is_random or is_own(type(op))):
        return ()
    draws = Draws(lambda: Buffer((2,), int64))
    leaves = [Buffer(x.shape, x.dtype, x.strides) for x in layouts]
    told = {"out_shapes": [shape for shape, _ in outs], "out_types": [dtype for _, dtype in outs]}
    op.apply(leaves, train=train, random=draws, **told)
    return tuple(draws.counts)


def known(op: Any) -> Any:
    """The operator that `canonical` gives; None where it was not asked for one yet."""
    found = op.__dict__.get("_noted")
    if found is None:
        try:
            found = _alike.get(op)
        except TypeError:  # a list among the parameters has no hash
            return None
    return found


def canonical(op: Any) -> Any:
    """One operator of all that are equal, so that marks are found by its identity."""
    found = op.__dict__.get("_noted")
    if found is None:
        try:
            found = _alike.setdefault(op, op)
        except TypeError:  # a list among the parameters has no hash
            found = op
        op.__dict__["_noted"], op.__dict__["_number"] = found, id(found)
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


class Gone:
    """Stands where a computed result was that nothing reads any more: its memory may go, where the
    tape does not keep it."""

    __slots__ = ()

    _pending_in = None


def in_turn(path: Sequence[Mark], wanted: Collection[int], results: list[Any]) -> Iterator[int]:
    """The numbers of `needed`; behind each, those of `results` that nothing reads any more go."""
    numbers, read, over = needed(path, wanted), set(wanted), dict[int, set[int]]()
    for number in reversed(numbers):
        mark = path[number]
        touched = {*range(mark.first, mark.results), *(k for k in mark.operands if k >= 0)}
        over[number] = touched - read
        read |= touched
    for number in numbers:
        yield number
        for k in over[number]:
            results[k] = Gone()
