"""Grid programs run on the processor: all threads of some blocks step by step together, by NumPy.

A value is an array with an element for each thread, or one for all; while threads take several
elements at once, with rows of them. Where threads part, those that do not take a way are masked.
What a GPU would not define is an error: a barrier that some threads of a block miss, an exchange
that threads of a group miss, shared memory that was never written, pieces that lie at no multiple
of their bytes, and races (`code/races.py`). Functions are computed by the PTX's formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np

from gnomon import dtype as dt
from gnomon.base import DeviceError
from gnomon.code import math
from gnomon.code.emit import RULES
from gnomon.code.races import Actors, Watch
from gnomon.code.values import LEFT
from gnomon.dtype import DType
from gnomon.expr.functions.primitive import PRIMITIVES, convert
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Term
from gnomon.plan.gpu import grid
from gnomon.plan.ir import Fold, Let, Put, reducer_of
from gnomon.plan.operand import Operand
from gnomon.plan.scratch import TASK
from gnomon.plan.statement import SAVERS

Array: TypeAlias = "np.ndarray[Any, Any]"
AT_ONCE = 1 << 14  # threads that step together: whole blocks, one at least


class Memory(Protocol):
    """The memory of a GPU as a launch sees it; addresses and actors are those of the threads that
    take part."""

    def load(self, addresses: Array, dtype: np.dtype[Any], actors: Actors) -> Array:
        """An element each; raises where there is none."""

    def store(self, addresses: Array, values: Array, actors: Actors) -> None:
        """Stores an element each; raises where there is no place for one."""


def run(
    program: grid.Grid,
    entry: grid.Entry,
    slots: Mapping[Hashable, int],
    shape: tuple[int, int, int],
    memory: Memory,
) -> None:
    """Run an entry in `shape` blocks of threads x and y; `slots` are the arguments' 64-bit words.

    Raises:
        DeviceError: a thread does what is not defined on a GPU.
    """
    blocks, x, y = shape
    if x * y % grid.WARP:
        raise DeviceError(f"launch: expected whole warps of {grid.WARP} threads, got {x} x {y}")
    each = max(1, AT_ONCE // (x * y))
    with np.errstate(all="ignore"):
        for first in range(0, blocks, each):
            some = range(first, min(first + each, blocks))
            Lanes(program, entry, slots, (blocks, x, y), some, memory).program(entry.body)


class _Shared:
    """The places of an area, those of one block after those of another."""

    def __init__(self, places: int) -> None:
        self.bits, self.written = np.zeros(places, np.uint64), np.zeros(places, bool)
        self.watch = Watch("shared memory", places)


class Lanes:
    """The threads of some blocks of a launch."""

    def __init__(
        self,
        program: grid.Grid,
        entry: grid.Entry,
        slots: Mapping[Hashable, int],
        shape: tuple[int, int, int],
        blocks: range,
        memory: Memory,
    ) -> None:
        self.arena, self.entry, self.slots, self.memory = (
            program.kernel.arena, entry, slots, memory,
        )  # fmt: skip
        total, x, y = shape
        self.size, self.count = x * y, len(blocks) * x * y
        number = np.arange(self.count, dtype=np.int64)
        within = number % self.size
        block = number // self.size + blocks.start
        everything = Actors(number + blocks.start * self.size, block, np.zeros_like(number))
        self.all = everything
        self.registers: dict[str, Any] = {
            "tid.x": within % x, "tid.y": within // x, "ctaid.x": block,
            "ntid.x": np.int64(x), "ntid.y": np.int64(y), "nctaid.x": np.int64(total),
        }  # fmt: skip
        self.active = np.ones(self.count, bool)
        self.scopes: list[dict[Hashable, Any]] = [{}]
        self.base: dict[int, Any] = {}
        self.accumulators: dict[int, list[Array]] = {}
        self.shared: dict[grid.Area, _Shared] = {}
        self.lanes = 1  # elements that a thread takes at once
        self.moved: Mapping[tuple[Hashable, int], int] = {}
        self.handlers: dict[type, Callable[[Any], None]] = {
            Let: lambda s: self.value(s.term),
            Put: self.put,
            Fold: self.fold,
            grid.Loop: self.loop,
            grid.When: self.when,
            grid.Wide: self.wide,
            grid.Elements: lambda s: self.program(s.body),
            grid.Set: lambda s: self.assign(s.into, self.given(s.values)),
            grid.Combine: self.combined,
            grid.Join: self.join,
            grid.Running: self.running,
            grid.Shuffle: self.shuffled,
            grid.Share: self.share,
            grid.Fetch: self.fetch,
            grid.Barrier: self.barrier,
            grid.Result: self.result,
        }

    def program(self, body: Sequence[grid.Stmt]) -> None:
        """Statements in order."""
        for stmt in body:
            self.handlers[type(stmt)](stmt)

    @contextmanager
    def scope(self, active: Array) -> Iterator[None]:
        """Only the threads of `active` do what is inside; it is forgotten at the end."""
        before, self.active = self.active, active
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.active = before

    def actors(self, mask: Array) -> Actors:
        """The threads of a mask."""
        return Actors(*(np.broadcast_to(a, mask.shape)[mask] for a in self.all))

    def spread(self, value: Any) -> Array:
        """A value with an element for each thread, or rows of them."""
        value = np.asarray(value)
        return np.broadcast_to(value, np.broadcast_shapes(value.shape, (self.count,)))

    # -- loops ----------------------------------------------------------------------------------

    def loop(self, loop: grid.Loop) -> None:
        number, until, step = (self.value(t) for t in (loop.first, loop.until, loop.step))
        active = self.active & (number < until)
        while active.any():
            with self.scope(active):
                self.locate(loop.variables, number)
                self.program(loop.body)
            number = number + step
            active = active & (number < until)

    def locate(self, variables: Sequence[int], number: Any) -> None:
        """Sets `variables`, the last one fastest, to combination `number`."""
        for v in reversed(variables[1:]):
            n = self.value(self.arena.extent[v])
            number, self.base[v] = number // n, number % n
        if variables:
            self.base[variables[0]] = number

    def when(self, when: grid.When) -> None:
        with self.scope(self.active & self.value(when.condition)):
            if self.active.any():
                self.program(when.body)

    def wide(self, wide: grid.Wide) -> None:
        first = self.spread(self.value(wide.first))
        with self.scope(self.active):
            self.base[wide.variable] = first
            if wide.width > 1:
                self.base[wide.variable] = first + np.arange(wide.width)[:, None]
                if wide.aligned is None or self.value(wide.aligned):
                    self.moved = wide.moved
            self.lanes = wide.width
            self.program(wide.body)
            self.lanes, self.moved = 1, {}

    def full(self, value: Any, dtype: DType) -> Array:
        """The same value for every thread."""
        return np.full(self.count, value, dtype.numpy)

    # -- folds ----------------------------------------------------------------------------------

    def fold(self, fold: Fold) -> None:
        """A fold that each thread makes alone."""
        for term in fold.terms:
            dtypes = reducer_of(term).dtypes(tuple(a.dtype for a in term.args))
            into = grid.Accumulator(-term.id, dtypes)
            starts = reducer_of(term).start(term.args[0].dtype)
            self.accumulators.pop(into.number, None)  # of as many elements at once as before
            self.assign(into, [self.full(s, d) for s, d in zip(starts, dtypes, strict=True)])
            self.nest(fold, 0, grid.Combine(reducer_of(term), into, term.args))
            self.result(grid.Result(term, into))

    def nest(self, fold: Fold, depth: int, step: grid.Combine) -> None:
        """The loops of a fold from `depth` on."""
        if depth == len(fold.vars):
            self.combined(step)
            return
        v = fold.vars[depth]
        extent = self.value(self.arena.extent[v])
        for i in range(int(self.spread(extent)[self.active].max(initial=0))):
            with self.scope(self.active & (i < extent)):
                self.base[v] = np.int64(i)
                self.program(fold.bodies[depth])
                self.nest(fold, depth + 1, step)

    def combine(self, reducer: Reducer, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The reducer's formula on values."""
        left = tuple(self.arena.arg(("left", k), dt.of(v.dtype)) for k, v in enumerate(a))
        right = tuple(self.arena.arg(("right", k), dt.of(v.dtype)) for k, v in enumerate(b))
        with self.scope(self.active):
            for term, value in zip((*left, *right), (*a, *b), strict=True):
                self.scopes[-1][term.id] = value
            return [self.value(t) for t in reducer.combine(self.arena, left, right)]

    # -- accumulators ---------------------------------------------------------------------------

    def assign(self, into: grid.Accumulator, values: Sequence[Any]) -> None:
        """The threads that are active take new values."""
        old = self.accumulators.get(into.number) or [self.full(0, d) for d in into.dtypes]
        self.accumulators[into.number] = [
            np.where(self.active, new, kept).astype(d.numpy, copy=False)
            for new, kept, d in zip(values, old, into.dtypes, strict=True)
        ]

    def combined(self, stmt: grid.Combine) -> None:
        new, old = self.given(stmt.values), self.accumulators[stmt.into.number]
        self.assign(stmt.into, self.combine(stmt.reducer, old, new))

    def given(self, values: Sequence[Term] | grid.Accumulator) -> list[Any]:
        """The values of Terms, or those that an accumulator has."""
        if isinstance(values, grid.Accumulator):
            return list(self.accumulators[values.number])
        return [self.value(t) for t in values]

    def join(self, stmt: grid.Join) -> None:
        given = [self.value(t) for t in stmt.values]
        for k in range(self.lanes):
            new = [v[k] if np.ndim(v) > 1 else v for v in given]
            old = self.accumulators[stmt.into.number]
            self.assign(stmt.into, self.combine(stmt.reducer, old, new))

    def running(self, stmt: grid.Running) -> None:
        reducer, exclusive = stmt.term.payload
        value = self.spread(self.value(stmt.term.args[0]))
        found = []
        for k in range(self.lanes):
            before = self.accumulators[stmt.into.number]
            new = value[k] if value.ndim > 1 else value
            self.assign(stmt.into, self.combine(reducer, before, [new]))
            found.append((before if exclusive else self.accumulators[stmt.into.number])[0])
        self.scopes[-1][stmt.term.id] = np.stack(found) if self.lanes > 1 else found[0]

    def result(self, stmt: grid.Result) -> None:
        for k, value in enumerate(self.accumulators[stmt.source.number]):
            self.scopes[-1][stmt.key(k)] = value

    # -- other threads --------------------------------------------------------------------------

    def shuffled(self, stmt: grid.Shuffle) -> None:
        many = min(grid.WARP, int(self.registers["ntid.x"]))
        groups = self.active.reshape(-1, many)
        if (groups.any(1) != groups.all(1)).any():
            raise DeviceError(
                f"shuffle: expected all {many} threads of a group in its warp, some are elsewhere"
            )
        lane = np.arange(many)
        far = {
            "down": lane + stmt.place,
            "up": lane - stmt.place,
            "idx": np.full(many, stmt.place % many),
        }[stmt.mode]
        source = np.where((far >= 0) & (far < many), far, lane)
        values = self.accumulators[stmt.source.number]
        moved = [v.reshape(-1, many)[:, source].reshape(-1) for v in values]
        self.assign(stmt.into, moved)

    def barrier(self, _: grid.Barrier) -> None:
        blocks = self.active.reshape(-1, self.size)
        if (blocks.any(1) != blocks.all(1)).any():
            raise DeviceError("barrier: expected every thread of the block, some are elsewhere")
        self.all.barriers[self.active] += 1

    def area(self, area: grid.Area) -> _Shared:
        """What all blocks have in an area, which must lie inside of the entry's memory."""
        if area.start + area.size * area.places > self.entry.shared:
            raise DeviceError(f"shared memory: {area} ends beyond {self.entry.shared} bytes")
        if area not in self.shared:
            self.shared[area] = _Shared(area.places * (self.count // self.size))
        return self.shared[area]

    def shared_places(
        self, accumulator: grid.Accumulator, area: grid.Area, place: Term, k: int
    ) -> Array:
        """Where the threads' value `k` of an accumulator lies among the places of all blocks."""
        within = self.spread(self.value(place) * len(accumulator.dtypes) + k)[self.active]
        if ((within < 0) | (within >= area.places)).any():
            raise DeviceError(
                f"shared memory: expected one of {area.places} places, got {within.max()}"
            )
        block = np.arange(self.count)[self.active] // self.size
        return np.asarray(block * area.places + within)

    def share(self, stmt: grid.Share) -> None:
        shared = self.area(stmt.area)
        for k, value in enumerate(self.accumulators[stmt.source.number]):
            places = self.shared_places(stmt.source, stmt.area, stmt.place, k)
            bits = value.view(f"u{value.itemsize}")[self.active].astype(np.uint64)
            shared.watch.write(places, self.actors(self.active), bits)
            shared.bits[places], shared.written[places] = bits, True

    def fetch(self, stmt: grid.Fetch) -> None:
        shared, found = self.area(stmt.area), []
        for k, dtype in enumerate(stmt.into.dtypes):
            places = self.shared_places(stmt.into, stmt.area, stmt.place, k)
            shared.watch.read(places, self.actors(self.active))
            if not shared.written[places].all():
                raise DeviceError("shared memory: a thread reads what no thread has written")
            value = np.zeros(self.count, dtype.numpy)
            bits = shared.bits[places].astype(f"u{value.itemsize}")
            value[self.active] = bits.view(value.dtype)
            found.append(value)
        self.assign(stmt.into, found)

    # -- memory ---------------------------------------------------------------------------------

    def addresses(self, operand: Operand, offset: Term) -> Array:
        """Where the elements lie.

        Raises:
            DeviceError: what one instruction is to move does not lie at a multiple of its bytes.
        """
        size = operand.dtype.size
        where = self.slots[operand.slot] + self.spread(self.value(offset)) * size
        step = self.moved.get((operand.slot, offset.id))
        if step is not None:
            bytes_, places = size * len(where), where[::step, self.active]
            if (places[0] % bytes_).any() or (np.diff(places, axis=0) != size).any():
                raise DeviceError(f"{operand!r}: {bytes_} bytes at once, from no multiple of them")
        return np.asarray(where)

    def load(self, operand: Operand, offset: Term, mask: Array) -> Array:
        """An element for each thread of a mask, 0 for others."""
        where = self.addresses(operand, offset)
        mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, where.shape))
        found = np.zeros(mask.shape, operand.dtype.numpy)
        if mask.any():
            where = np.broadcast_to(where, mask.shape)[mask]
            found[mask] = self.memory.load(where, found.dtype, self.actors(mask))
        return found

    def store(self, operand: Operand, offset: Term, value: Any) -> None:
        where = self.addresses(operand, offset)
        mask = np.broadcast_to(self.active, where.shape)
        stored = np.broadcast_to(value, where.shape)[mask].astype(operand.dtype.numpy)
        self.memory.store(where[mask], stored, self.actors(mask))

    def put(self, put: Put) -> None:
        value = self.value(put.value)
        update = SAVERS[put.saver]
        if update is not None:
            old = self.load(put.dest, put.offset, self.active)
            value = PRIMITIVES[update].numpy(convert(old, value.dtype), value)
        self.store(put.dest, put.offset, convert(value, put.dest.dtype.numpy))

    # -- values ---------------------------------------------------------------------------------

    def value(self, root: Term) -> Any:
        """The value of a Term here: kept, or computed now."""
        found = self.known(root)
        if found is not None:
            return found
        stack = [root]
        while stack:
            term = stack[-1]
            waiting = [a for a in term.args if self.known(a) is None]
            if waiting and self.known(term) is None:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if self.known(term) is None:
                self.scopes[-1][term.id] = self.compute(term)
        return self.known(root)

    def known(self, term: Term) -> Any:
        key = ("part", term.args[0].id, term.payload) if term.op == "part" else term.id
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def compute(self, term: Term) -> Any:
        op = term.op
        if op == "const":
            return term.dtype.numpy.type(term.payload)
        if op == "arg":
            return self.argument(term)
        if op == "var":
            return self.base[term.payload]
        args = [self.known(a) for a in term.args]
        if op == "read":
            mask = self.active if len(args) == 1 else self.active & args[1]
            return self.load(term.payload, term.args[0], mask)
        if op == "keep":
            self.store(term.payload, term.args[1], args[0])
            return args[0]
        if op == "cast":
            return convert(args[0], term.dtype.numpy)
        if op == "bitcast":
            return np.ascontiguousarray(args[0]).view(term.dtype.numpy).reshape(np.shape(args[0]))
        if op in RULES or op == "rare":
            return np.asarray(PRIMITIVES[op].numpy(*args)).astype(term.dtype.numpy, copy=False)
        written = math.expand(term, LEFT - {op})
        assert written is not term, op
        return self.value(written)

    def argument(self, term: Term) -> Any:
        """A kernel argument, a special register, the number of the group that has a row."""
        key = term.payload
        if key == TASK:
            return self.value(self.entry.task)
        if isinstance(key, tuple) and key[0] == "register":
            return self.registers[key[1]]
        if isinstance(key, tuple) and key[0] == "address":
            return np.int64(self.slots[key[1]])
        word = np.array([self.slots[key]], np.int64)
        return word.view(term.dtype.numpy)[0]  # the first bytes: machines here are little-endian
