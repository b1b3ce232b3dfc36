"""Splitting: calls (matrix products, convolutions) stand alone, on entries that have a place.

A library needs what it reads in memory, and gives its result there. What the plan does not know of
it cannot share, so a task with calls in it becomes several: operands that are no views of entries,
the calls, and what is left. A call without a library becomes its fallback expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gnomon.expr.composite import Call
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.node import Buffer, Expr
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.graph.node import Entry, Node
from gnomon.graph.task import Buffers, Task, seen_through

Supported = Callable[[Call], bool]
DEEPEST = 1000  # fallbacks of fallbacks: a cycle of them must end in an error


def split(tasks: Sequence[Task], buffers: Buffers, supported: Supported) -> list[Task]:
    """`tasks`, with every call that is `supported` in a task of its own."""
    return [part for task in tasks for part in _Splitter(task, buffers, supported).parts()]


class _Splitter:
    """Takes one task apart: `left` are the values still to be done."""

    def __init__(self, task: Task, buffers: Buffers, supported: Supported) -> None:
        self.task, self.buffers, self.supported = task, buffers, supported
        self.left: dict[Entry, Expr] = dict(task.values)
        self.done: list[Task] = []

    def parts(self) -> list[Task]:
        """The tasks that together do what the task did, in order."""
        calls = self._calls()
        if not calls:
            return [self.task]
        for _ in range(DEEPEST):
            self._take(calls[0])
            calls = self._calls()
            if not calls:
                break
        else:
            raise RecursionError(f"{self.task.name}: the fallback of a call leads back to itself")
        if self.left:
            self._add(self.left)
        return self.done

    def _calls(self) -> list[Call]:
        """The calls in what is left, innermost first."""
        return [n for n in postorder(list(self.left.values())) if isinstance(n, Call)]

    def _take(self, call: Call) -> None:
        """Make a task of `call`, or put its fallback in its place."""
        if not self.supported(call):
            self._replace({call: call.fallback()})  # type: ignore[attr-defined]
            return
        outside = {c: self._place(c) for c in call.children if seen_through(c) is None}
        if outside:
            self._replace(outside)
            return
        given = self._as_read(call)
        entry = next((e for e, v in self.left.items() if v is given), None)
        rest = [v for e, v in self.left.items() if e is not entry]
        again = any(n is given for n in postorder(rest))
        if entry is None or (again and entry not in self.buffers):
            self._replace({given: self._place(given)})
            return
        self._add({entry: self.left.pop(entry)})
        if again:
            self._replace({given: self.buffers[entry]})

    def _as_read(self, call: Call) -> Expr:
        """The transpose of `call` where that is all that anything reads of it, else `call`."""
        values = list(self.left.values())
        readers = {id(n): n for n in postorder(values) if any(c is call for c in n.children)}
        only = next(iter(readers.values())) if len(readers) == 1 else None
        turned = isinstance(only, Transpose) and not any(v is call for v in values)
        return only if turned and only is not None else call

    def _replace(self, by: Mapping[Expr, Expr]) -> None:
        values = substitute(list(self.left.values()), by)
        self.left = dict(zip(self.left, values, strict=True))

    def _place(self, value: Expr) -> Buffer:
        """A buffer of its own for `value`, filled by a task before."""
        entry = Entry(Node(None, f"{self.task.name}:{type(value).__name__.lower()}"), 0)
        self.buffers.put(entry, Buffer(value.shape, value.dtype))
        self._add({entry: value})
        return self.buffers[entry]

    def _add(self, values: dict[Entry, Expr]) -> None:
        reads = self.buffers.read_by(values.values())
        self.done.append(Task(self.task.nodes, values, reads, tuple(values)))
