"""Threads of a GPU that work together: special registers, folds by a thread group, shared memory.

A group is a warp, or all of a block of several warps. It folds by shuffles, then, if it is more
than a warp, by way of shared memory in the order of the warps: the same sizes give the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gnomon import dtype as dt
from gnomon.code.emit import Value, type_of
from gnomon.code.loops import LoopWriter
from gnomon.code.target import Target
from gnomon.code.values import Arguments
from gnomon.expr.reducer import Reducer
from gnomon.expr.term import Arena, Term, mask_of
from gnomon.plan.ir import Fold, reducer_of
from gnomon.plan.operand import Operand

WARP = 32
BLOCK = 256  # threads of a block at most: each may then have all the registers there are


class ThreadBlockWriter(LoopWriter):
    """Writes what one thread does; the folds whose ids are in `together` are its group's."""

    def __init__(
        self, arena: Arena, arguments: Arguments, target: Target, entry: str, together: set[int]
    ) -> None:
        super().__init__(arena, arguments, target, (1, 1))
        self.entry, self.together = entry, together
        self.shared = 0  # bytes of shared memory

    def register(self, name: str) -> Value:
        """A special register, as an index."""
        found = self.scopes[0].get(name)
        if found is None:
            with self.e.at_entry():
                full = f"@llvm.nvvm.read.ptx.sreg.{name}"
                self.e.declared.add(f"declare i32 {full}()")
                found = self.e.convert(self.e.do(f"call i32 {full}()", dt.uint32), dt.int64)
            self.scopes[0][name] = found
        return found

    def locate(self, variables: Sequence[int], number: Value) -> None:
        """Sets `variables`, the last one fastest, to combination `number`."""
        for v in reversed(variables[1:]):
            n = self.extent(v)
            rest = self.int("udiv", number, n)
            self.base[v] = self.int("sub", number, self.int("mul", rest, n))
            number = rest
        if variables:
            self.base[variables[0]] = number

    def fetch_one(self, operand: Operand, offset: Term, where: Term | None) -> Value:
        """An element, or 0 without a load where `where` does not hold."""
        if where is None:
            return super().fetch_one(operand, offset, None)
        e, allowed = self.e, self.value(where)
        before = e.label
        with e.when(allowed), self.scope():
            loaded = super().fetch_one(operand, offset, None)
            after = e.label
        ways = f"[ zeroinitializer, %{before} ], [ {loaded.name}, %{after} ]"
        return e.do(f"phi {loaded.type} {ways}", loaded.dtype)

    # -- folds ----------------------------------------------------------------------------------

    def fold(self, fold: Fold) -> None:
        for term in fold.terms:
            self.fold_one(fold, term)

    def fold_one(self, fold: Fold, term: Term) -> None:
        e, reducer = self.e, reducer_of(term)
        dtypes = reducer.dtypes(tuple(a.dtype for a in term.args))
        starts = reducer.start(term.args[0].dtype)
        places = [e.alloca(d) for d in dtypes]
        for place, start, d in zip(places, starts, dtypes, strict=True):
            e.line(f"store {e.constant(start, d)}, ptr {place}")
        together = term.id in self.together
        alone = self._alone(fold) if together else len(fold.vars)

        def step() -> None:
            new = [self.value(a) for a in term.args]
            combined = self.combine(reducer, self.read(places, dtypes), new)
            for place, result in zip(places, combined, strict=True):
                e.line(f"store {result}, ptr {place}")

        self.nest(fold, 0, alone, step)
        results = self.read(places, dtypes)
        if together:
            results = self.across_group(reducer, results)
        for k, result in enumerate(results):
            self.scopes[-1][("part", term.id, k)] = result

    def _alone(self, fold: Fold) -> int:
        """How many outer variables each thread goes through; the group shares the ones below.

        Those are taken as one, unless something is computed between their loops.
        """
        alone = len(fold.vars) - 1
        while alone > 0 and not any(isinstance(s, Fold) for s in fold.bodies[alone - 1]):
            below = (self.arena.extent[v].free for v in fold.vars[alone:])
            if any(free & mask_of(fold.vars[alone - 1 :]) for free in below):
                break
            alone -= 1
        return alone

    def read(self, places: Sequence[str], dtypes: Sequence[dt.DType]) -> list[Value]:
        """The values kept on the stack."""
        pairs = zip(places, dtypes, strict=True)
        return [self.e.do(f"load {type_of(d)}, ptr {place}", d) for place, d in pairs]

    def nest(self, fold: Fold, depth: int, alone: int, step: Callable[[], None]) -> None:
        """The loops of a fold from `depth` on."""
        e = self.e
        if depth == len(fold.vars):
            step()
            return
        if depth < alone:
            with e.for_range(e.index(0), self.extent(fold.vars[depth])) as i, self.scope():
                self.base[fold.vars[depth]] = i
                self.body(fold.bodies[depth])
                self.nest(fold, depth + 1, alone, step)
            return
        shared = fold.vars[alone:]
        total = e.index(1)
        for v in shared:
            total = self.int("mul", total, self.extent(v))
        mine, group = self.register("tid.x"), self.register("ntid.x")
        with e.for_range(mine, total, group) as i, self.scope():
            self.locate(shared, i)
            for body in fold.bodies[alone:]:
                self.body(body)
            step()

    def across_group(self, reducer: Reducer, values: list[Value]) -> list[Value]:
        """What the threads of a group have, as one; every thread gets it."""
        e = self.e
        for distance in (16, 8, 4, 2, 1):
            other = [self.shuffled("down", v, distance) for v in values]
            values = self.combine(reducer, values, other)
        values = [self.shuffled("idx", v, 0) for v in values]
        places = [e.alloca(v.dtype) for v in values]
        for place, value in zip(places, values, strict=True):
            e.line(f"store {value}, ptr {place}")
        many = e.primitive("lt", [e.index(WARP), self.register("ntid.x")], dt.bool_)
        with e.when(many), self.scope():
            self.across_warps(reducer, values, places)
        return self.read(places, [v.dtype for v in values])

    def across_warps(self, reducer: Reducer, values: list[Value], places: Sequence[str]) -> None:
        """Combines the warps' values by way of shared memory, in the order of the warps."""
        e = self.e
        dtypes = [v.dtype for v in values]
        self.shared = max(self.shared, 8 * len(values) * (BLOCK // WARP))
        self.barrier()  # what was there before has been read
        warp = self.int("udiv", self.register("tid.x"), e.index(WARP))
        for k, value in enumerate(values):  # all lanes of a warp write the same
            e.line(f"store {value}, ptr addrspace(3) {self.shared_place(k, len(values), warp)}")
        self.barrier()
        warps = self.int("udiv", self.register("ntid.x"), e.index(WARP))
        for k, d in enumerate(dtypes):
            first = self.shared_place(k, len(values), e.index(0))
            got = e.do(f"load {type_of(d)}, ptr addrspace(3) {first}", d)
            e.line(f"store {got}, ptr {places[k]}")
        with e.for_range(e.index(1), warps) as w, self.scope():
            spots = [self.shared_place(k, len(values), w) for k in range(len(values))]
            other = [
                e.do(f"load {type_of(d)}, ptr addrspace(3) {spot}", d)
                for spot, d in zip(spots, dtypes, strict=True)
            ]
            combined = self.combine(reducer, self.read(places, dtypes), other)
            for place, result in zip(places, combined, strict=True):
                e.line(f"store {result}, ptr {place}")

    def shared_place(self, k: int, count: int, warp: Value) -> str:
        """Where a warp keeps result `k` of `count`."""
        slot = self.int("add", self.int("mul", warp, self.e.index(count)), self.e.index(k))
        base = f"ptr addrspace(3) @{self.entry}_shared"
        return self.e.do(f"getelementptr i64, {base}, {slot}", dt.int64).name

    def barrier(self) -> None:
        """Every thread of the block arrives before one goes on."""
        self.e.declared.add("declare void @llvm.nvvm.barrier0()")
        self.e.line("call void @llvm.nvvm.barrier0()")

    def shuffled(self, mode: str, value: Value, place: int) -> Value:
        """The value of another thread of the warp, by words of 32 bits."""
        e, dtype = self.e, value.dtype
        unsigned = dt.of(f"uint{8 * dtype.size}")
        bits = e.convert(value, dt.uint8) if dtype.kind == "b" else e.bitcast(value, unsigned)
        if dtype.size < 8:
            word = self.shuffled_word(mode, e.convert(bits, dt.uint32), place)
            bits = e.convert(word, bits.dtype)
        else:
            shift = e.constant(32, dt.uint64)
            upper = e.convert(e.primitive("lshr", [bits, shift], dt.uint64), dt.uint32)
            words = [
                e.convert(self.shuffled_word(mode, half, place), dt.uint64)
                for half in (e.convert(bits, dt.uint32), upper)
            ]
            high = e.primitive("shl", [words[1], shift], dt.uint64)
            bits = e.primitive("or", [words[0], high], dt.uint64)
        return e.convert(bits, dtype) if dtype.kind == "b" else e.bitcast(bits, dtype)

    def shuffled_word(self, mode: str, word: Value, place: int) -> Value:
        full = f"@llvm.nvvm.shfl.sync.{mode}.i32"
        self.e.declared.add(f"declare i32 {full}(i32, i32, i32, i32)")
        return self.e.do(f"call i32 {full}(i32 -1, {word}, i32 {place}, i32 31)", dt.uint32)
