"""Recorded: what a thread has noted (`notes.py`), and how it is noted where it came before.

`native_note` notes an operator by native code: one whose mark is known, on results of the record
and on arrays in memory. It gives None, with nothing done, for anything unusual: an operator that
draws, operands that wait or are results on the tape. It decides everything before it changes
anything, and looks again, right before it does, that its own allocations (which may run the
collector, and so any code) left the record as it was. Natively nothing comes between then; Python
cannot say so, and goes the usual way where native code is not served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from gnomon import config
from gnomon.ground.record import Frozen, put
from gnomon.native.serve import served
from gnomon.native.words import Parts, native, new, whole
from gnomon.ndarray.core.array import Array, pending_in
from gnomon.ndarray.core.bounded_cache import LEARNT, RECIPES
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.core.mode import is_recording, is_training
from gnomon.ndarray.core.tape import NOTED, Leaf, Place, leads, source
from gnomon.ndarray.lazy.fusion_group import Own
from gnomon.ndarray.lazy.marks import EMPTY, ON_TAPE, PREDICTED, TRAINED, Mark, Operand
from gnomon.ndarray.lazy.varying import Called, Said, numbered, varied
from gnomon.runtime.once import once

MOST = 4096  # operators in a record
PATIENCE = 8  # records computed in a row, before the thread rests from noting
LONGEST = 256  # scopes of rest
NEWS = 512  # new ones in a row that are noted though, where the scope before brought nothing new

Lies = tuple[int, Chunk, int]  # the number of an operand, and where it lies, or its gradient does
Position = tuple[int, int]  # see `resource.Generator.reserve`


@whole
class Recorded(Frozen):
    """What a thread has noted: results, operands, and the mark of the last operator.

    It changes with the lock of its thread's groups held. What is noted is published by setting
    `mark`: results and operands beyond are left from an interrupt.
    """

    __slots__ = (
        "before", "changes", "ctx", "drawn", "is_eager", "is_open", "learnt", "mark", "misses",
        "news", "noting", "numbers", "operands", "own", "places", "rest", "results", "said",
        "scopes", "way", "working",
    )  # fmt: skip

    apply: ClassVar[Callable[..., Any]]  # what applies an operator

    before: int  # marks that there were when the last scope began
    changes: int  # of settings, at the time that `is_eager` was found
    ctx: Any  # of all arrays
    drawn: dict[int, list[Position]]  # of random numbers, by the number of the operator
    is_eager: bool  # the settings say so
    is_open: bool
    learnt: int  # about operators, by all, when the last scope began
    mark: Mark
    misses: int  # how often it was computed since a program did it
    news: int  # how often in a row, the last times, as it was new
    noting: bool
    numbers: dict[int, int]  # of operands, by the id of their arrays
    operands: list[Operand]
    own: Own
    places: list[int]  # what `_number` says of the place of each operand
    rest: int  # scopes that nothing is noted in
    results: list[Any]
    said: dict[int, Said]  # what was called in place of an operator, by the number of that
    scopes: int  # how many began since it was empty
    way: int  # as `marks.ON_TAPE` and others say
    working: bool

    def __init__(self, own: Own) -> None:
        put(self, "own", own)
        put(self, "ctx", None)
        put(self, "mark", EMPTY[ON_TAPE])
        for name in ("before", "learnt", "misses", "news", "rest"):
            put(self, name, 0)
        put(self, "changes", -1)
        put(self, "is_open", True)
        put(self, "way", ON_TAPE)
        for name in ("is_eager", "working", "noting"):
            put(self, name, False)
        self._empty()

    @property
    def train(self) -> bool:
        """Whether it is of train mode."""
        return self.way == TRAINED

    def _empty(self) -> None:
        """Begin with nothing."""
        put(self, "results", [])
        put(self, "operands", [])
        put(self, "numbers", {})
        put(self, "places", [])
        put(self, "drawn", {})
        put(self, "said", {})
        put(self, "scopes", 0)

    @property
    def is_new(self) -> bool:
        """Whether something that is noted came for the first time."""
        return self.before != Mark.made

    def open(self) -> None:
        """Another scope begins: note in it, but where the thread rests."""
        learnt = LEARNT.made + RECIPES.made
        comes_again = learnt == self.learnt and 0 < self.news < NEWS
        put(self, "learnt", learnt)
        put(self, "before", Mark.made)
        put(self, "is_open", comes_again or not self.rest)
        if self.rest:
            put(self, "rest", self.rest - 1)

    def missed(self, is_new: bool = False) -> None:
        """It was noted in vain; `is_new` where nothing like it came before."""
        put(self, "news", self.news + 1 if is_new else 0)
        put(self, "misses", self.misses + 1)
        if self.misses > PATIENCE:
            put(self, "rest", min(1 << self.misses - PATIENCE, LONGEST))

    def found(self) -> None:
        """It was not noted in vain."""
        for name in ("misses", "news", "rest"):
            put(self, name, 0)

    def note_opened(self, op: Any, arrays: Sequence[Any]) -> Any:
        """As `native_note`, of an operator that was noted here with its numbers as operands."""
        if not arrays or arrays[0].__class__ is not Array.main:
            return None
        both = self.mark.opened.get(varied(op))
        found: Called | None = None if both is None else both.called(op, arrays, ways.numbered)
        if found is None:
            return None
        _, inputs, self.said[self.mark.count] = found  # no harm if it is not noted
        return ways.note(self.own, both.__dict__.get("_number"), tuple(inputs))

    def take(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays in memory could be noted as operands."""
        operands, numbers, places = self.operands, self.numbers, self.places
        for x in arrays:
            chunk = x._chunk
            place = source(x)
            if chunk.shared or chunk.failure is not None:
                return False
            ctx = chunk.ctx
            if ctx is not self.ctx and ctx != self.ctx:
                if operands:
                    return False
                put(self, "ctx", ctx)
            operands.append(Operand(x, chunk, x._offset, x._layout, place))  # in `drop_beyond` now
            places.append(_number(place))
            numbers[id(x)] = -len(operands)
            chunk.pending_readers.append(self)
        return True

    def drop_beyond(self) -> None:
        """Let go of operands of what was not noted in the end, perhaps as memory lacked."""
        del self.places[self.mark.leaves :]
        while len(self.operands) > self.mark.leaves:
            operand = self.operands.pop()
            self.numbers.pop(id(operand.array), None)
            let_go([operand], self)

    def undo(self, fresh: Sequence[Any]) -> None:
        """Let go of what was added while all was computed and forgotten."""
        self._empty()
        for x in fresh:
            while self in x._chunk.pending_readers:
                x._chunk.pending_readers.remove(self)

    def forget(self) -> None:
        """Let go of all that is noted."""
        operands, _kept = self.operands, self.results  # until nothing of this refers to them
        put(self, "mark", EMPTY[self.way])
        self._empty()
        ways.let_go(operands, self)


def _number(place: Place | None) -> int:
    """That of a variable; below 0 for no place, a result that leads to variables, and another."""
    if type(place) is Leaf:
        return place.number
    return -1 if place is None else -2 if leads(place) else -3


@native
def way() -> int:
    """What a record of this thread is of now."""
    if not is_recording():
        return PREDICTED
    return TRAINED if is_training() else ON_TAPE


def index_of(arrays: Sequence[Any], array: Any) -> int | None:
    """Which of the arrays one is; None where it is none of them."""
    for k, x in enumerate(arrays):
        if x is array:
            return k
    return None


@native
def let_go(operands: list[Operand], record: Recorded) -> None:
    """Take a record from operands' pending readers, where memory did not lack to enter it."""
    for operand in operands:
        readers = operand.chunk.pending_readers
        for k in range(len(readers)):
            if readers[k] is record:
                del readers[k]
                break


@native
def _lies(array: Array, chunk: Chunk, offset: int) -> bool:
    """Whether an array has memory, and that is there."""
    return array._pending_in is None and array._chunk is chunk and array._offset == offset


@native
def lie_there(operands: list[Operand], stays: list[Lies], stores: list[Lies]) -> bool:
    """Whether operands, and gradients of variables, lie where they did, and no operand failed."""
    for operand in operands:
        if operand.chunk.failure is not None:
            return False
    for there in stays:
        operand = operands[there[0]]
        if operand.chunk is not there[1] or operand.offset != there[2]:
            return False
    for there in stores:
        grad = cast(Leaf, operands[there[0]].place).grad
        if type(grad) is not Array.main or not _lies(cast(Array, grad), there[1], there[2]):
            return False
    return True


@native
def _is_ready(record: Recorded) -> bool:
    """Whether a record takes one more operator as it stands."""
    if record.noting or record.working or record.is_eager or record.way != way():
        return False
    if record.changes != config.changes.count:
        return False
    mark = record.mark
    return len(record.results) == mark.results and len(record.operands) == mark.leaves


@native
def _part(record: Recorded, array: Array, arrays: tuple[object, ...], k: int) -> object:
    """What an operand is known by: a number, or a layout where it is new; None if it is unusual."""
    if array._pending_in is record:
        return array._index
    place = array._tape
    if array._pending_in is not None or (place is not None and type(place) is not Leaf):
        return None
    number = record.numbers.get(id(array))
    if number is not None:
        operand = record.operands[-1 - number]
        return number if operand.place is place else None
    chunk = array._chunk
    if chunk.shared or chunk.failure is not None or chunk.ctx is not record.ctx:
        return None
    return None if any(arrays[j] is array for j in range(k)) else array._layout


@native
def _operand(array: Array) -> Operand:
    """An array in memory as an operand."""
    made = new(Operand)
    put(made, "array", array)
    put(made, "chunk", array._chunk)
    put(made, "offset", array._offset)
    put(made, "layout", array._layout)
    put(made, "place", array._tape)
    return made


@native
def _enter(record: Recorded, operand: Operand) -> None:
    """Have one more operand, and be a pending reader of it."""
    record.operands.append(operand)
    place = operand.place
    if place is None:
        record.places.append(-1)
    else:
        record.places.append(cast(Leaf, place).number)
    record.numbers[id(operand.array)] = -len(record.operands)
    operand.chunk.pending_readers.append(record)


@native
def native_note(own: Own, number: object, arrays: tuple[object, ...]) -> Any:
    """The results of an operator that was noted like this before; None with nothing done."""
    found = own.noted if is_recording() else own.predicted
    if number is None or found is None:
        return None
    record = cast(Recorded, found)
    if not record.is_open or not _is_ready(record):
        return None
    count = len(arrays)
    key = Parts(count + 1)
    key[0] = number
    fresh: list[Operand] = []
    is_on_tape = record.way == PREDICTED and count > 0
    for k in range(count):
        if type(arrays[k]) is not Array.main:
            return None
        array = cast(Array, arrays[k])
        part = _part(record, array, arrays, k)
        if part is None:
            return None
        if array._tape is not None:
            is_on_tape = True
        if part is array._layout:
            fresh.append(_operand(array))
        key[k + 1] = part
    before = record.mark
    if not is_on_tape:
        return None
    mark = before.after.get(tuple(key))
    if mark is None or mark.is_random or mark.count >= MOST:
        return None
    first: int = mark.first
    made: list[Array] = []
    for j in range(len(mark.layouts)):
        made.append(pending_in(record, first + j, mark.layouts[j], NOTED))  # noqa: PERF401
    if record.mark is not before or not _is_ready(record):
        return None
    for operand in fresh:
        if operand.array._pending_in is not None or operand.array._chunk is not operand.chunk:
            return None
    for operand in fresh:
        _enter(record, operand)
    for x in made:
        record.results.append(x)
    put(record, "mark", mark)
    return made[0] if mark.is_single else made


def _refuse(*given: object) -> None:
    """In place of `native_note` where no native code is served."""


class Ways:
    """What to call in place of functions here: native code from the time on that there is some."""

    note: Callable[..., Any]
    numbered: Callable[..., Any]
    let_go: Callable[..., Any]
    lie_there: Callable[..., Any]

    def __init__(self) -> None:
        self.note, self.numbered = _refuse, numbered
        self.let_go, self.lie_there = let_go, lie_there


ways = Ways()


@once
def serve() -> None:
    """Have native code in `ways`, where it is served."""
    made = served(native_note, numbered, let_go, lie_there)
    if made[0] is not native_note:
        ways.note, ways.numbered, ways.let_go, ways.lie_there = made
