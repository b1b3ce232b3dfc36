"""Again: a pass as it was pushed before, with nothing to be put or copied, by native code.

A long program that went behind the program leaves its task to be entered once more. For anything
unusual the answer is False, with nothing done: memory that other code looks at, or reads before it
is written; a job on what is written that is not behind the program itself.
"""

from __future__ import annotations

from collections.abc import Callable

from gnomon.collector import resting
from gnomon.engine import Var
from gnomon.engine.current import PROCESS, is_unobserved
from gnomon.engine.engine import Engine
from gnomon.engine.native_behind import entered_behind, goes_behind, is_coming
from gnomon.engine.var import is_unread
from gnomon.native.serve import served
from gnomon.native.words import native, popped, whole
from gnomon.ndarray.core.chunk import Chunk
from gnomon.record import Frozen, put
from gnomon.runtime.execution.program import Program
from gnomon.runtime.execution.stream import Task
from gnomon.runtime.once import once


@whole
class Again(Frozen):
    """A program, and the variables that it reads and writes."""

    __slots__ = ("const", "mutate", "name", "program", "spare")

    const: tuple[Var, ...]
    mutate: tuple[Var, ...]
    name: str
    program: Program
    spare: list[Task]  # what native code may enter

    def __init__(self, program: Program, const: tuple[Var, ...], mutate: tuple[Var, ...]) -> None:
        put(self, "program", program)
        put(self, "const", const)
        put(self, "mutate", mutate)
        put(self, "name", program.name)
        put(self, "spare", program.kept_tasks())


@native
def _is_open(var: Var) -> bool:
    """Whether work behind the program may use a variable."""
    if var.deleted or not is_coming(var):
        return False
    return not (isinstance(var, Chunk) and var.shared)


@native
def _are_open(again: Again) -> bool:
    """Whether work behind the program may use all variables."""
    for var in again.const:
        if not _is_open(var):
            return False
    for var in again.mutate:
        if not _is_open(var) or not is_unread(var) or var.pending_readers:
            return False
    return True


@native
def _is_entered(engine: Engine, again: Again) -> bool:
    """Whether a spare task was entered."""
    if not is_unobserved() or not _are_open(again):
        return False
    task = popped(again.spare)
    if task is None:
        return False
    task.step = again.program
    task.timed = again.program
    return entered_behind(engine, again.program, again.const, again.mutate, again.name, task)


@native
def pushed_again(again: Again) -> bool:
    """Whether a program that went behind the program before was pushed there again."""
    engine = PROCESS.engine
    if engine is None or not goes_behind(engine):
        return False
    with resting():
        return _is_entered(engine, again)


@once
def pushing_again() -> Callable[[Again], bool]:
    """The native `pushed_again`; one that refuses everything where there is no native code."""
    (made,) = served(pushed_again)
    return made if made is not pushed_again else lambda again: False
