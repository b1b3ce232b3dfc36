"""The interpreter: runs loop nests one element at a time in Python, and counts every operation.

A second oracle, of what the planner made, and the proof that nothing is computed more often than it
has to be.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gnomon import dtype as dt
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.oracle import convert
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Term
from gnomon.plan.ir import Body, Fold, Kernel, Let, Phase, Put, reducer_of
from gnomon.plan.scratch import TASK, TASKS
from gnomon.plan.statement import SAVERS, Structure
from gnomon.plan.terms import host_value, index_terms, postorder

Array: TypeAlias = "np.ndarray[Any, Any]"


def interpret(kernel: Kernel, structure: Structure) -> Counter[str]:
    """Run `kernel` on the leaves of `structure`; gives how often each operation was done."""
    run = _Run(kernel, structure)
    with np.errstate(all="ignore"):
        for phase in kernel.phases:
            run.phase(phase)
    return run.counts


class _Run:
    """Memory by slot, values of kept Terms, and the counts."""

    def __init__(self, kernel: Kernel, structure: Structure) -> None:
        self.kernel, self.arena = kernel, kernel.arena
        self.env: dict[Hashable, Any] = {TASK: 0, TASKS: 1}
        self.env.update({("dim", k): n for k, n in enumerate(structure.dims)})
        self.memory: dict[Hashable, tuple[Array, int]] = {}
        for k, buffer in enumerate(structure.buffers):
            self.memory["leaf", k] = flat_memory(buffer.numpy(), buffer.strides)
            self.env.update(
                {("stride", ("leaf", k), axis): s for axis, s in enumerate(buffer.strides)}
            )
        for operand, size in kernel.scratch:
            count = max(1, host_value(size, self.env))
            self.memory[operand.slot] = np.zeros(count, operand.dtype.numpy), 0
        self.env.update({("scalar", k): s.value for k, s in enumerate(structure.scalars)})
        self.base: dict[int, int] = {}
        self.kept: dict[Hashable, Any] = {}
        self.carried: dict[int, Any] = {}  # what the scans of a row have come to
        self.counts: Counter[str] = Counter()

    def phase(self, phase: Phase) -> None:
        self.body(phase.entry)
        for _ in self.loop((*phase.rows, *phase.turns)):
            self.body(phase.row)
            self.carried.clear()
            for _ in self.loop(() if phase.inner is None else (phase.inner,)):
                self.body(phase.body)

    def loop(self, variables: Sequence[int]) -> Iterator[None]:
        """Every combination of the variables, the last fastest."""
        extents = [int(self.value(self.arena.extent[v])) for v in variables]
        for combination in itertools.product(*map(range, extents)):
            self.base.update(zip(variables, combination, strict=True))
            yield

    def body(self, body: Body) -> None:
        for stmt in body:
            if isinstance(stmt, Let):
                self.kept[stmt.term.id] = self.compute(stmt.term)
            elif isinstance(stmt, Fold):
                self.fold(stmt)
            else:
                self.put(stmt)

    def put(self, put: Put) -> None:
        memory, first = self.memory[put.dest.slot]
        place = first + int(self.value(put.offset))
        value = self.value(put.value)
        update = SAVERS[put.saver]
        if update is not None:
            old = convert(memory[place], put.value.dtype)
            value = PRIMITIVES[update].numpy(old, value)
            self.counts[update] += 1
        self.counts["store"] += 1
        memory[place] = convert(np.asarray(value), put.dest.dtype)

    def fold(self, fold: Fold) -> None:
        state = {}
        for term in fold.terms:
            reducer, args = reducer_of(term), term.args
            dtypes = reducer.dtypes(tuple(a.dtype for a in args))
            starts = reducer.start(args[0].dtype)
            state[term] = [np.asarray(s, d.numpy) for s, d in zip(starts, dtypes, strict=True)]
        self.fold_loop(fold, 0, state)
        for term, values in state.items():
            self.kept.update((("part", term.id, k), value) for k, value in enumerate(values))

    def fold_loop(self, fold: Fold, depth: int, state: dict[Term, list[Any]]) -> None:
        for _ in self.loop(fold.vars[depth : depth + 1]):
            self.body(fold.bodies[depth])
            if depth + 1 < len(fold.vars):
                self.fold_loop(fold, depth + 1, state)
                continue
            for term, values in state.items():
                new = [self.value(a) for a in term.args]
                state[term] = self.combine(reducer_of(term), values, new)

    def combine(self, reducer: Reducer, a: list[Any], b: list[Any]) -> list[Any]:
        left = tuple(self.arena.arg(("left", k), _dtype(v)) for k, v in enumerate(a))
        right = tuple(self.arena.arg(("right", k), _dtype(v)) for k, v in enumerate(b))
        for term, value in zip((*left, *right), (*a, *b), strict=True):
            self.env[term.payload] = value
        return [self.value(t) for t in reducer.combine(self.arena, left, right)]

    def value(self, root: Term) -> Any:
        """The value of a Term: kept, or computed now."""
        known = self.lookup(root)
        if known is not None:
            return known
        values: dict[int, Any] = {}
        for term in postorder([root]):
            found = self.lookup(term)
            values[term.id] = found if found is not None else self.operate(term, values)
        return values[root.id]

    def lookup(self, term: Term) -> Any:
        if term.op == "part":
            return self.kept["part", term.args[0].id, term.payload]
        return self.kept.get(term.id)

    def compute(self, term: Term) -> Any:
        return self.operate(term, {a.id: self.value(a) for a in term.args})

    def operate(self, term: Term, values: Mapping[int, Any]) -> Any:
        op = term.op
        if op == "const":
            return np.asarray(term.payload, term.dtype.numpy)
        if op == "arg":
            return np.asarray(self.env[term.payload]).astype(term.dtype.numpy)
        if op == "var":
            return np.asarray(self.base[term.payload])
        if op == "fold":  # its parts are looked up
            return None
        self.counts[op] += term.id not in self.index
        if op == "read":
            return self.read(term, values)
        if op == "scan":
            reducer, exclusive = term.payload
            start = np.asarray(reducer.start(term.dtype)[0], term.dtype.numpy)
            before = self.carried.get(term.id, start)
            (after,) = self.combine(reducer, [before], [values[term.args[0].id]])
            self.carried[term.id] = after
            return before if exclusive else after
        if op == "keep":
            memory, first = self.memory[term.payload.slot]
            memory[first + int(values[term.args[1].id])] = values[term.args[0].id]
            return values[term.args[0].id]
        args = [values[a.id] for a in term.args]
        if op == "cast":
            return convert(np.asarray(args[0]), term.dtype)
        if op == "bitcast":
            return np.asarray(args[0]).view(term.dtype.numpy)
        return np.asarray(PRIMITIVES[op].numpy(*args)).astype(term.dtype.numpy)

    @property
    def index(self) -> set[int]:
        """Index arithmetic, which is not counted."""
        if not hasattr(self, "_index"):
            self._index = index_terms(self.arena.table.values())
        return self._index

    def read(self, term: Term, values: Mapping[int, Any]) -> Any:
        if len(term.args) == 2 and not values[term.args[1].id]:
            return np.zeros((), term.dtype.numpy)
        memory, first = self.memory[term.payload.slot]
        place = first + int(values[term.args[0].id])
        assert 0 <= place < len(memory), f"{term!r} reads outside of {term.payload!r}: {place}"
        return np.asarray(memory[place])


def flat_memory(view: Array, strides: Sequence[int]) -> tuple[Array, int]:
    """All that lies in memory between the ends of a strided view, and where index 0 is."""
    low = sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s < 0 < n)
    high = sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s > 0 and n)
    if 0 in view.shape:
        return view.reshape(-1), 0
    sides = zip(view.shape, strides, strict=True)
    lowest = view[tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in sides)]
    element = (view.dtype.itemsize,)
    return np.lib.stride_tricks.as_strided(lowest, (high - low + 1,), element), -low


def _dtype(value: Any) -> Any:
    return dt.of(np.asarray(value).dtype)
