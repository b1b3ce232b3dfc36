"""Scratch memory of a kernel: results that a phase leaves for a later one, and rows of a task."""

from __future__ import annotations

from gnomon import dtype as dt
from gnomon.dtype import DType
from gnomon.expr.term import Arena, Term
from gnomon.plan.operand import Operand

TASK = ("task", 0)  # the number of the task that runs: no argument, each task knows its own
TASKS = ("tasks", 0)  # how many tasks there are at most


class Scratch:
    """Scratch operands of a kernel and their sizes."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.buffers: list[tuple[Operand, Term]] = []
        self.final: set[int] = set()  # variables of folds that are not to be cut into chunks again

    def take(self, variables: tuple[int, ...], dtype: DType) -> tuple[Operand, Term]:
        """An operand with an element for every value of `variables`, and the offset of theirs."""
        offset, stride = self.arena.const(0), self.arena.const(1)
        for v in reversed(variables):
            offset = offset + self.arena.make("var", (), dt.int64, v) * stride
            stride = stride * self.arena.extent[v]
        return self._operand(stride, dtype), offset

    def row(self, variable: int, dtype: DType) -> tuple[Operand, Term]:
        """An operand with an element of each task for every value of `variable`, and its offset."""
        n = self.arena.extent[variable]
        first = self.arena.arg(TASK) * n
        size = self.arena.arg(TASKS) * n
        return self._operand(size, dtype), first + self.arena.make("var", (), dt.int64, variable)

    def _operand(self, size: Term, dtype: DType) -> Operand:
        operand = Operand(("scratch", len(self.buffers)), (size,), (1,), dtype)
        self.buffers.append((operand, size))
        return operand
