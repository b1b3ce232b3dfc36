"""Divisions: how the phases of a kernel are cut into tasks, told by the words of their loops.

Native code has these words in memory; Python has them in lists, which it reads faster.
"""

from __future__ import annotations

from gnomon.native.memory import divided
from gnomon.native.words import Numbers, native
from gnomon.plan import signature
from gnomon.plan.ir import LONGEST

COLUMN = 64  # inner iterations of a block that is taken in columns
GRAIN = 250_000  # work (see `Phase.cost`) below which another thread does not pay
SINGLE = 1000  # work of a phase that is one iteration, such as the last step of a sum
BY_ROWS = 0  # in the place of blocks a row: each task has rows of the destination
SEARCHES = 2  # tasks for each thread that look at all turns for their own
TASKS_EACH = 4  # tasks for each thread, of work that is enough
SHARE = 4  # words of a phase in the header of `code.cpu`: tasks, block, blocks a row, blocks
LINE = 64  # elements: whole cache lines, so that each is written by one thread


@native
def divide(phases: Numbers, count: int, sizes: Numbers, threads: int, shares: Numbers) -> int:
    """Enter the shares of `count` phases for so many threads; gives the work of all.

    Sizes are those of the steps of a signature, where there is one task. The phase before one that
    is cut by rows of its destination may be left to that.
    """
    at = 0
    total = 0
    before = 0
    for k in range(count):
        inner = 1 if phases[at + signature.INNER] < 0 else sizes[phases[at + signature.INNER]]
        rows = _rows(phases, at, sizes)
        work = inner * rows * _cost(phases, at, sizes)
        tasks = task_count(work, threads)
        block = _block(phases, at, inner, rows, tasks)
        each = up(inner, block)
        _enter(shares, k, max(1, min(tasks, rows * each)), block, each, rows * each)
        filled = phases[at + signature.FILLED] != 0
        tasks = _tasks_by_rows(phases, at, sizes, work + before if filled else work, threads)
        if tasks > 1:
            _enter(shares, k, tasks, inner, BY_ROWS, sizes[phases[at + signature.OWN]])
            if filled:
                _enter(shares, k - 1, 0, inner, 1, 0)
        total += work
        before = work
        at += signature.FIRST + phases[at + signature.ROWS] + 2 * phases[at + signature.COSTS]
    return total


@native
def _rows(phases: Numbers, at: int, sizes: Numbers) -> int:
    """How many rows a phase goes through."""
    rows = 1
    for k in range(phases[at + signature.ROWS]):
        rows = rows * sizes[phases[at + signature.FIRST + k]]
    return rows


@native
def _cost(phases: Numbers, at: int, sizes: Numbers) -> int:
    """The estimated work of one iteration of a phase; see `plan.ir.Phase`."""
    if phases[at + signature.INNER] < 0:
        return SINGLE
    first = at + signature.FIRST + phases[at + signature.ROWS]
    cost = 0
    for k in range(phases[at + signature.COSTS]):
        times = phases[first + 2 * k + 1]
        cost += phases[first + 2 * k] * (1 if times < 0 else sizes[times])
    return cost


@native
def task_count(work: int, threads: int) -> int:
    """Tasks of a phase: several a thread, so that one that comes late still finds some to do.

    As many for each thread, where there are that many: the odd one of five keeps the others of two
    waiting, and it moves its memory from one core's cache to the other's from run to run.
    """
    worth = 1 if threads == 1 else min(TASKS_EACH * threads, 1 + divided(work, GRAIN))
    return worth if worth < threads else divided(worth, threads) * threads


@native
def _tasks_by_rows(phases: Numbers, at: int, sizes: Numbers, work: int, threads: int) -> int:
    """Tasks of a phase that has rows of its destination each; 1 where it is not cut by them.

    Where more rows are added to than there are, those of one task may be all that is added to.
    """
    own = phases[at + signature.OWN]
    if own < 0 or sizes[phases[at + signature.TURNS]] > sizes[own]:
        return 1
    tasks = min(SEARCHES * threads, task_count(work, threads))
    return min(tasks, sizes[own])


@native
def _block(phases: Numbers, at: int, inner: int, rows: int, tasks: int) -> int:
    """How many inner iterations of a phase a task has at once, of at most so many tasks."""
    split = phases[at + signature.SPLIT] != 0
    block = max(1, min(inner, LONGEST) if split else inner)
    if phases[at + signature.COLUMNS] != 0:
        return min(block, COLUMN)
    if not split or rows < 1 or rows >= tasks:
        return block
    block = up(block, up(tasks, rows))
    return up(block, LINE) * LINE if phases[at + signature.VECTOR] != 0 else block


@native
def up(number: int, by: int) -> int:
    """A number divided, and rounded up."""
    return divided(number + by - 1, by)


@native
def _enter(shares: Numbers, k: int, tasks: int, block: int, each: int, blocks: int) -> None:
    """Enter the share of a phase."""
    shares[SHARE * k] = tasks
    shares[SHARE * k + 1] = block
    shares[SHARE * k + 2] = each
    shares[SHARE * k + 3] = blocks
