"""Steps that are done many times, at addresses that move: a recurrent layer's, say, in time.

What differs from one time to the next is where operands lie, always as far from where they lay
before. So the steps are made for the first time alone; native code runs them, and moves the words
that hold addresses on. In the end, or where a step has failed, it puts them back: the next run does
in a child that was forked meanwhile. Two makings, for the first time and for the second, tell which
words these are, and how far they move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from gnomon.native.memory import Struct, store
from gnomon.native.serve import raw_code
from gnomon.native.words import Words, native
from gnomon.runtime.compiler import jit
from gnomon.runtime.execution.makings import differing
from gnomon.runtime.execution.program import Nested, Program, Status, Step, Table, failure, run
from gnomon.runtime.ffi import Block
from gnomon.runtime.once import once


class Job(Struct):
    """A program's block, and of words that move the address, the way, and what was there at first.

    `failed` is what the program says. `runs` is set from when that is noted until it is put back.
    """

    times: int
    failed: int
    table: int
    runs: int
    count: int
    moves: int


@native
def note(job: Job) -> None:
    """Note what words were at first; a child that was forked amid a run has that from there."""
    if job.runs != 0:
        return
    moves = job + Job.moves
    for k in range(job.count):
        moves[3 * k + 2] = Words(moves[3 * k])[0]
    store(job + Job.runs, 1)


@native
def move(job: Job, times: int) -> None:
    """Put words where they are after so many times."""
    moves = job + Job.moves
    for k in range(job.count):
        Words(moves[3 * k])[0] = moves[3 * k + 2] + moves[3 * k + 1] * times


@native
def run_repeated(job: Job) -> None:
    table = Table(job.table)
    note(job)
    for done in range(job.times):
        move(job, done)
        run(table)
        if table.failed != 0:
            break
    move(job, 0)
    store(job + Job.runs, 0)
    job.failed = table.failed


@once
def _code() -> jit.Module:
    return raw_code(run_repeated)


class Moved(NamedTuple):
    """An operand: where it begins the first time and the second time, and how long it is."""

    first: int
    second: int
    nbytes: int


def repeated(
    steps: Sequence[Step],
    blocks: Iterable[tuple[Block, Block]],
    operands: Sequence[Moved],
    times: int,
    name: str,
) -> Step:
    """One step that does `steps` so many `times`, at least once, at addresses that move.

    `blocks` are the argument blocks of `steps`, each beside the one that it would have the second
    time: a word that holds an address within one of `operands` moves on.

    >>> import numpy as np
    >>> from gnomon.expr.node import Buffer
    >>> from gnomon.runtime.kernels.template import blocks_of
    >>> from gnomon.runtime.statements.prepare import Store, prepare
    >>> sums = np.ones((5, 3), np.float32)
    >>> rows = [Buffer((3,), address=row.ctypes.data, owner=sums) for row in sums]
    >>> made = [prepare([Store(rows[k + 1], "plusto", rows[k] + 0.0)]) for k in range(2)]
    >>> pairs = zip(*(blocks_of(steps[0]) for steps in made), strict=True)
    >>> moved = [Moved(rows[k].address, rows[k + 1].address, 12) for k in range(2)]
    >>> repeated(made[0], pairs, moved, 4, "running sum").run()
    >>> sums[:, 0]
    array([1., 2., 3., 4., 5.], dtype=float32)
    """
    whole, code = Program(steps, name), _code()
    words = [word for word in differing(blocks) if word.within(operands)]
    moves = [(w.block.address + 8 * w.number, w.second - w.first, 0) for w in words]
    job = Block([times, 0, whole.block, 0, len(moves), *chain.from_iterable(moves)])
    return Nested(
        [whole],
        code.address("run_repeated"),
        job.address,
        keep=(code, whole, job),
        name=name,
        bytes=times * whole.bytes,
        flops=times * whole.flops,
        status=Status(job.address + 8, lambda _: failure(whole)),
        work=times * whole.work,
    )
