"""Profiles of programs: the time of every task, and the machine's limits, for reports.

A program runs on the arrays that are bound; what it writes there is put back after. Tasks of a GPU
are not timed.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from gnomon import dtype as dtypes
from gnomon import engine
from gnomon.executor.programs.program import Segment, stores_of
from gnomon.executor.run import Run
from gnomon.expr import call
from gnomon.expr.node import Buffer
from gnomon.graph.tasks.task import Task
from gnomon.ground.record import record
from gnomon.runtime.execution.program import Program, Timing
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements.inspect import explain
from gnomon.runtime.statements.prepare import Store, prepare

TIMES = 3  # the least of so many runs counts
COPIED = 1 << 24  # floats of the copy that tells the bandwidth: more than caches hold
PRODUCT = 1024  # rows and columns of the matrix product that tells the rate


@record(slots=False)
class Limits:
    """Bytes a second of a large copy, read and written, and flops a second of a matrix product."""

    bandwidth: float
    flops: float


@record(slots=False)
class TaskProfile:
    """A task of a program: its steps with their times, and the loops of its kernels."""

    number: int
    task: Task
    steps: tuple[Timing, ...]
    plan: str

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def bytes(self) -> int:
        """The bytes its steps say they move."""
        return sum(step.bytes for step in self.steps)

    @property
    def flops(self) -> int:
        """The floating-point operations its steps say they do."""
        return sum(step.flops for step in self.steps)


@functools.cache
def limits() -> Limits:
    """The limits of this machine, by the least of a few runs."""
    source = temporary(Buffer((COPIED,), dtypes.float32))
    a, b = (temporary(Buffer((PRODUCT, PRODUCT), dtypes.float32)) for _ in range(2))
    for buffer in (source, a, b):
        buffer.numpy()[...] = 1
    copy = _least([Store(temporary(source), "saveto", source)])
    product = _least([Store(temporary(a), "saveto", call.dot(a, b))])
    return Limits(8 * COPIED / copy, 2 * PRODUCT**3 / product)


def _least(stores: Sequence[Store]) -> float:
    program = Program(prepare(stores))
    runs = (sum(t.seconds for t in program.profile()) for _ in range(2 * TIMES))
    return min(runs)


def profile_tasks(run: Run, name: str) -> list[TaskProfile]:
    """Every task of the pass `name` of a program, run on the arrays that are bound."""
    tasks = run.layout.tasks[run.parts[name]]
    segments = run.segments(name, apart=True)
    engine.get().wait_for_all()
    run.refresh()
    if len(run.layout.draws):
        run.layout.draws.put(run.layout.draws.reserve())
    with _kept(segments):
        rounds = [[_times(s) for s in segments] for _ in range(TIMES)]
    run.arena.content = None
    least = [min(each, key=_total) for each in zip(*rounds, strict=True)]
    return [
        TaskProfile(number, task, tuple(steps), _plan(run, task))
        for number, (task, steps) in enumerate(zip(tasks, least, strict=True))
    ]


def planned_tasks(run: Run, name: str) -> list[TaskProfile]:
    """Every task of the pass `name` of a GPU's program, which is compiled and does not run."""
    found = []
    for number, task in enumerate(run.layout.tasks[run.parts[name]]):
        steps = run.steps_of(task)
        plan = "done by the processor, on copies" if steps is None else _plan(run, task)
        timings = [Timing(step.name, 0.0, step.bytes, 0) for step in steps or ()]
        found.append(TaskProfile(number, task, tuple(timings), plan))
    return found


def _total(steps: Sequence[Timing]) -> float:
    return sum(step.seconds for step in steps)


@contextmanager
def _kept(segments: Sequence[Segment]) -> Iterator[None]:
    """A scope after which the caller's arrays hold what they held before."""
    views = {b.address: b.numpy() for s in segments for b in s.writes}
    copies = {address: view.copy() for address, view in views.items()}
    try:
        yield
    finally:
        for address, view in views.items():
            np.copyto(view, copies[address])


def _times(segment: Segment) -> list[Timing]:
    if segment.program is not None:
        return segment.program.profile()
    begin = time.perf_counter()
    segment.run()
    return [Timing(segment.name, time.perf_counter() - begin, 0, 0, begin)]


def _plan(run: Run, task: Task) -> str:
    if not task.is_expression:
        return "runs on data, in Python"
    stores = [s for s in stores_of(run.layout, task) if 0 not in s.dest.shape]
    return explain(stores, "loop") if stores else "a view: nothing is moved"
