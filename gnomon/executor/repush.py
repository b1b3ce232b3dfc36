"""Repush: a pass that went behind the program goes there again by native code.

A long program leaves its task to be entered once more, with the words that are put before it and
after. For anything unusual the answer is False, with nothing done: no task is left, or one of
another pass; memory that other code looks at, or reads before it is written; a job on what is
written that is not behind the program itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from gnomon.engine import Var
from gnomon.engine.current import PROCESS, holds_nothing_but
from gnomon.engine.engine import Engine
from gnomon.engine.job import Job
from gnomon.engine.native_behind import (
    entered_behind,
    goes_behind,
    is_coming,
    is_read_there_alone,
)
from gnomon.executor.programs.program import Slot
from gnomon.ground.collector import resting
from gnomon.ground.record import Frozen, put
from gnomon.native.serve import Later
from gnomon.native.words import Words, native, popped, whole
from gnomon.ndarray.core.chunk import Chunk
from gnomon.runtime.execution.program import Program
from gnomon.runtime.execution.stream import AFTER, BEFORE, PAIRS, Pair, Task, place_of
from gnomon.runtime.ffi import Block

WORTH = 100  # pushes: without native code one takes 100 us more, and compiling that 0.1 s


@whole
class Moving(Frozen):
    """The words of a program that say where an array lies; between its runs that is at `home`.

    For native code: of each of `count` words, the place and what is added to the address lie from
    `rows` on.
    """

    __slots__ = ("_keep", "_slots", "count", "home", "rows")

    _slots: Sequence[Slot]
    count: int
    home: int
    rows: int

    def __init__(self, home: int, slots: Sequence[Slot]) -> None:
        rows = Block([x for words, k, offset in slots for x in (place_of(words, k), offset)] or 1)
        put(self, "_keep", rows)
        put(self, "_slots", slots)
        put(self, "count", len(slots))
        put(self, "home", home)
        put(self, "rows", rows.address)

    def put(self, address: int) -> None:
        """Let the program read at `address`."""
        for words, k, offset in self._slots:
            words[k] = address + offset

    def pairs(self, address: int) -> list[Pair]:
        """What `put` puts where."""
        return [(place_of(words, k), address + offset) for words, k, offset in self._slots]


Moved = tuple[Moving, int]  # an array's words, and where it lies in one run


@native
def _is_open(engine: Engine, var: Var) -> bool:
    """Whether work behind the program may read a variable, and nothing else looks at its memory."""
    if var.deleted or not is_coming(engine, var):
        return False
    return not (isinstance(var, Chunk) and var.shared)


@native
def _are_open(engine: Engine, const: tuple[Var, ...], mutate: tuple[Var, ...]) -> bool:
    """Whether work behind the program may read these variables, and write those."""
    if not all(_is_open(engine, var) and not var.pending_readers for var in mutate):
        return False
    if not all(is_read_there_alone(engine, var) for var in mutate):
        return False
    return all(_is_open(engine, var) for var in const)


@native
def _put_words(moving: Moving, address: int, pairs: Words) -> Words:
    """Have pairs say where an array lies; gives where the next pairs are."""
    at = pairs
    row = Words(moving.rows)
    for _ in range(moving.count):
        at[0] = row[0]
        at[1] = address + row[1]
        at = at + 2
        row = row + 2
    return at


@native
def _is_filled(task: Task, before: list[Pair], moved: list[Moved]) -> bool:
    """Whether a task has as many pairs as are put before and after a run; now they say what."""
    after = 0
    for each in moved:
        after += each[0].count
    words = Words(task.address)
    if words[BEFORE] != len(before) + after or words[AFTER] != after:
        return False
    at = Words(task.address + PAIRS)
    for pair in before:
        at[0] = pair[0]
        at[1] = pair[1]
        at = at + 2
    for each in moved:
        at = _put_words(each[0], each[1], at)
    for each in moved:
        at = _put_words(each[0], each[0].home, at)
    return True


@native
def _is_entered(
    engine: Engine, program: Program, const: tuple[Var, ...], mutate: tuple[Var, ...],
    before: list[Pair], moved: list[Moved], held: Job | None,
) -> bool:  # fmt: skip
    """Whether a spare task was entered."""
    spare = program.spare
    if spare is None or not holds_nothing_but(held) or not _are_open(engine, const, mutate):
        return False
    task = cast("Task | None", popped(spare))
    if task is None or not _is_filled(task, before, moved):
        return False
    task.step = program
    task.timed = program
    if not entered_behind(engine, program, const, mutate, program.name, task):
        return False
    engine._late = None
    return True


@native
def repushed(
    program: Program, const: tuple[Var, ...], mutate: tuple[Var, ...], before: list[Pair],
    moved: list[Moved], held: Job | None,
) -> bool:  # fmt: skip
    """Whether a program that went behind the program before was pushed there again.

    Words are put where pairs say `before` it, and those of `moved` arrays, which are put back
    after it. `held` is the engine's job of it that is held back, if any.
    """
    engine = PROCESS.engine
    if engine is None or not goes_behind(engine):
        return False
    with resting():
        return _is_entered(engine, program, const, mutate, before, moved, held)


repush = Later(repushed, False, WORTH)
