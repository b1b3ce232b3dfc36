"""A task that the processor does in the midst of a GPU's program, on copies.

What it reads is fetched when the GPU has come so far; the processor works on memory of its own, and
what it has made is sent back, in the order of the GPU's queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.context import cpu
from gnomon.engine import Var
from gnomon.executor.programs.data_task import DataTask
from gnomon.executor.programs.layout import Layout
from gnomon.executor.programs.program import deliveries
from gnomon.expr.node import Buffer, cast
from gnomon.graph.gradient import Gradient
from gnomon.graph.node import Entry
from gnomon.graph.tasks.task import Task
from gnomon.ndarray.remote.way import tell
from gnomon.ops.bounds import InBounds
from gnomon.ops.nn.rnn import RNN
from gnomon.plan.statement import Store
from gnomon.runtime.execution.program import Program
from gnomon.runtime.kernels.scratch import temporary
from gnomon.runtime.statements import transfer
from gnomon.runtime.statements.prepare import prepare


class HostTask:
    """One run of a task of `layout` by the processor; `kept` is what forward hands to backward.

    `states` are the caller's buffers that it changes beside its results, `variables` those of the
    resources that it uses.
    """

    def __init__(self, layout: Layout, task: Task, kept: dict[object, object]) -> None:
        self._layout = layout
        self._here: dict[Entry, Buffer] = {}
        self._fetched: list[tuple[Buffer, Buffer]] = []  # where it is copied, and what
        self._sent: list[tuple[Buffer, Buffer]] = []
        self.states: list[Buffer] = []
        self.variables: tuple[Var, ...] = ()
        for entry in dict.fromkeys(task.reads):
            self._fetched.append((self._copy(entry), layout.buffers[entry]))
        op = operator_of(task)
        if not isinstance(op, InBounds):
            tell(op.name, layout.draws.ctx)
        self._work = self._by_operator(task, kept) if task.form is None else self._by_steps(task)

    def run(self) -> None:
        """Do it, behind what the queue was given before.

        Raises:
            DeviceError: what was given before failed; and whatever the operator raises.
        """
        for dest, source in self._fetched:
            transfer.transfer(dest, source)
        self._work()
        for dest, source in self._sent:
            transfer.transfer(dest, source)

    def _copy(self, entry: Entry) -> Buffer:
        """Memory of the processor's for an entry."""
        if entry not in self._here:
            self._here[entry] = temporary(self._layout.buffers[entry])
        return self._here[entry]

    def _by_operator(self, task: Task, kept: dict[object, object]) -> Callable[[], None]:
        """An operator on data."""
        layout, node = self._layout, task.nodes[0]
        added = [entry in layout.added for entry in task.made]
        for entry, adds in zip(task.made, added, strict=True):
            here, there = self._copy(entry), layout.buffers[entry]
            self._sent.append((there, here))
            if adds:
                self._fetched.append((here, there))
        work = DataTask(node, self._here, layout.mode.train, kept, added, cpu())
        ours = {id(self._here[e]): layout.buffers[e] for e in node.inputs}
        for state in work.states:
            self.states.append(ours[id(state)])
            self._sent.append((ours[id(state)], state))
        self.variables = tuple(work.variables)
        return work.run

    def _by_steps(self, task: Task) -> Callable[[], None]:
        """A call of a library of the processor's."""
        assert task.form is not None
        values = task.form.over([self._here[e] for e in task.reads])
        stores = []
        for number, wanted in deliveries(self._layout, task):
            here = temporary(wanted.dest)
            self._sent.append((wanted.dest, here))
            if wanted.saver != "saveto":
                self._fetched.append((here, wanted.dest))
            value = cast(values[number], here.dtype)
            stores.append(Store(here, wanted.saver, value))  # type: ignore[arg-type]
        return Program(prepare(stores, task.name), task.name).run


def operator_of(task: Task) -> Any:
    """The operator that the processor does: of several that are fused, the recurrent layers, whose
    calls alone unroll."""
    ops: list[Any] = [node.op for node in task.nodes]
    plain = [op.op if isinstance(op, Gradient) else op for op in ops]
    return next((op for op, p in zip(ops, plain, strict=True) if isinstance(p, RNN)), ops[-1])
