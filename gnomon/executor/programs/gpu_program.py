"""Programs of GPUs: the tasks of a layout as segments of launches, and of work on the processor.

A run of tasks that kernels and libraries of the GPU do is one segment: a `GpuProgram`, from the
second run on one CUDA graph. What takes values to know what to do, or would unroll there, is a
segment of its own, done by the processor on copies (`host_task.py`), and that is told once for each
operator. Loaded with the first program for a GPU; `program.py` does the same for the processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from gnomon.executor.programs.cuts import cut
from gnomon.executor.programs.host_task import HostTask
from gnomon.executor.programs.layout import Layout
from gnomon.executor.programs.program import Segment, stores_of, touched
from gnomon.expr.composite import Call
from gnomon.expr.node import Buffer
from gnomon.expr.walk import postorder
from gnomon.graph.tasks.task import Task
from gnomon.runtime.devices.cuda.gpu import Gpu
from gnomon.runtime.kernels.gpu_kernel import GpuStep
from gnomon.runtime.kernels.gpu_program import GpuProgram
from gnomon.runtime.statements.gpu import unrolls
from gnomon.runtime.statements.prepare import prepare


class Turn:
    """One run of a program, as the engine calls it: called again, it goes on where it was."""

    __slots__ = ("_given", "_program")

    resumable = True

    def __init__(self, program: GpuProgram) -> None:
        self._program, self._given = program, False

    def __call__(self, run_ctx: Any) -> None:
        if not self._given:
            self._program.run()
            self._given = True

    def anew(self) -> Turn:
        """Another run."""
        return Turn(self._program)


class Builder:
    """Makes segments of the tasks of a layout; each task is compiled once, for all of them."""

    held = 0  # what libraries keep is not counted here

    def __init__(self, layout: Layout, handed: dict[object, object]) -> None:
        assert isinstance(layout.device, Gpu)
        self.layout, self._queue, self._handed = layout, layout.device.default, handed
        self._steps: dict[Task, list[GpuStep]] = {}

    def build(self, part: slice, name: str, apart: bool = False) -> tuple[Segment, ...]:
        """The tasks of `part`, compiled; with `apart`, each is a segment of its own."""
        numbered = enumerate(self.layout.tasks[part])
        runs = groupby(numbered, key=lambda kt: (self._is_here(kt[1]), kt[0] if apart else -1))
        groups = [(there, [task for _, task in group]) for (there, _), group in runs]
        return tuple(
            segment
            for there, tasks in groups
            for segment in self._segments(there, tasks, tasks[0].name if apart else name)
        )

    def prepare(self) -> list[tuple[GpuProgram, tuple[Buffer, ...]]]:
        """What is done before the passes, each where a parameter that it reads has changed:
        programs, and the caller's buffers that they read."""
        tasks = self.layout.prepare
        return [(self._program([task]), touched(self.layout, [task])[0]) for task in tasks]

    def _segments(self, there: bool, tasks: Sequence[Task], name: str) -> Iterable[Segment]:
        """Tasks that are all done by the GPU, or all by the processor."""
        if not there:
            return map(self._by_processor, tasks)
        return [self._by_gpu(part, name) for part in cut(self.layout, tasks)]

    def _by_gpu(self, tasks: Sequence[Task], name: str) -> Segment:
        program = self._program(tasks)
        reads, writes = touched(self.layout, tasks)
        ctx, turn = self.layout.draws.ctx, Turn(program)
        return Segment(program.run, reads, writes, name, True, ctx, turn=turn)

    def _by_processor(self, task: Task) -> Segment:
        work = HostTask(self.layout, task, self._handed)
        reads, writes = touched(self.layout, [task], work.states)
        ctx = self.layout.draws.ctx
        return Segment(work.run, reads, writes, task.name, False, ctx, variables=work.variables)

    def _program(self, tasks: Sequence[Task]) -> GpuProgram:
        steps = [step for task in tasks for step in self._compiled(task)]
        return GpuProgram(steps, self._queue)

    def steps_of(self, task: Task) -> list[GpuStep] | None:
        """The steps of a task; None where the processor does it."""
        return self._compiled(task) if self._is_here(task) else None

    def _compiled(self, task: Task) -> list[GpuStep]:
        """The steps of a task of the GPU, compiled now if they are not."""
        found = self._steps.get(task)
        if found is None:
            made: list[Any] = prepare(stores_of(self.layout, task), task.name)
            found = self._steps[task] = made
        return found

    def _is_here(self, task: Task) -> bool:
        """Whether kernels and libraries of the GPU do a task."""
        form = task.form
        if form is None or not form.has_call:
            return form is not None
        name = self.layout.device.name
        return not any(isinstance(n, Call) and unrolls(n, name) for n in postorder(form.values))
