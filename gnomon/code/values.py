"""Values of Terms inside a function: computed where first asked for, kept while their scope lasts.

A Term that depends on the variable spread over lanes has a value a lane; with `base`, its value in
the first lane is meant, which is what addresses are made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

from gnomon import dtype as dt
from gnomon.base import GnomonError
from gnomon.code import math
from gnomon.code.emit import (
    RULES,
    Emitter,
    Value,
    in_memory,
    memory_type,
    overload,
    type_of,
)
from gnomon.code.repeated_lanes import Quotients
from gnomon.code.scale import scaled, scales
from gnomon.code.target import Target
from gnomon.dtype import DType
from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import Put
from gnomon.plan.operand import Operand
from gnomon.plan.schedule import stride
from gnomon.plan.scratch import TASK

STREAM = "!0"  # the metadata of stores past the caches
LEFT = frozenset({"rare", "scalb"})  # what `math.expand` may leave to this file


class Arguments:
    """Where a kernel's arguments lie in its block, and their dtypes."""

    def __init__(self, arena: Arena, first: int, keys: Sequence[Hashable]) -> None:
        self.slots = {key: first + k for k, key in enumerate(keys)}
        self.dtypes = {t.payload: t.dtype for t in arena.table.values() if t.op == "arg"}


class Values(ABC):
    """The state of one function that is being written; `%b` is its argument block."""

    def __init__(self, arena: Arena, arguments: Arguments, target: Target) -> None:
        self.arena, self.arguments = arena, arguments
        self.e = Emitter(target)
        self.scopes: list[dict[Hashable, Value]] = [{}]
        self.base: dict[int, Value] = {}
        self.vec: int | None = None
        self.lanes = 1
        self.mask: Value | None = None
        self.even = False  # whether the first lane's index is a multiple of all divisors
        self.quotients: Quotients | None = None
        self.left: Value | None = None  # elements to a masked loop's end
        self.nothing: str | None = None
        self.streamed: Put | None = None  # the store that may go past the caches
        self.past_caches = False

    # -- loops and scopes -----------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is forgotten at the end."""
        self.scopes.append({})
        yield
        self.scopes.pop()

    @contextmanager
    def over(
        self, var: int, base: Value, lanes: int, mask: Value | None, even: bool = False
    ) -> Iterator[None]:
        """`lanes` iterations of `var` at once from `base`, those of `mask`."""
        before = self.vec, self.lanes, self.mask, self.even
        self.vec, self.lanes, self.mask, self.even = var, lanes, mask, even
        self.base[var] = base
        with self.scope():
            yield
        self.vec, self.lanes, self.mask, self.even = before

    # -- values ---------------------------------------------------------------------------------

    def argument(self, key: Hashable) -> Value:
        """A kernel argument, loaded at the function's entry when it is first asked for."""
        if key == TASK:
            return Value("%task", dt.int64)
        found = self.scopes[0].get(key)
        if found is None:
            with self.e.at_entry():
                slot = self.arguments.slots[key]
                place = self.e.do(f"getelementptr i64, ptr %b, i64 {slot}", dt.int64).name
                if isinstance(key, tuple) and key[0] in ("leaf", "scratch"):
                    found = self.e.do(f"load ptr, ptr {place}", dt.int64)
                else:
                    found = self.load(place, self.arguments.dtypes[key])
                    self.e.fixed[found.name] = None
            self.scopes[0][key] = found
        return found

    def value(self, root: Term, base: bool = False) -> Value:
        """The value of a Term here; with `base`, of its first lane alone (for addresses)."""
        found = self.known(root, base)
        if found is not None:
            return found
        stack = [root]
        while stack:
            term = stack[-1]
            if self.known(term, base) is not None:
                stack.pop()
                continue
            needed = () if not base and self.is_repeated(term) else self.needs(term)
            waiting = [a for a in needed if self.known(a, base) is None]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            self.scopes[-1][self.key(term, base)] = self.compute(term, base)
        result = self.known(root, base)
        assert result is not None
        return result

    def needs(self, term: Term) -> tuple[Term, ...]:
        """The Terms that `compute` asks for; folds and reads find their own."""
        if term.op == "rare":
            return term.args[0], term.args[2]
        if term.op in ("keep", "scan"):
            return term.args[:1]
        return () if term.op in ("part", "read") else term.args

    def key(self, term: Term, base: bool) -> Hashable:
        one_lane = base and self.vec is not None and term.free >> self.vec & 1
        return ("base", term.id) if one_lane else term.id

    def known(self, term: Term, base: bool) -> Value | None:
        key = self.key(term, base)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def compute(self, term: Term, base: bool) -> Value:
        op, e = term.op, self.e
        if not base and self.is_repeated(term):
            return self.repeated(term)
        if op == "const":
            return e.constant(term.payload, term.dtype)
        if op == "arg":
            return self.argument(term.payload)
        if op == "var":
            return self.variable(term.payload, base)
        if op == "part":
            return self.result(term)
        if op == "read":
            mask = term.args[1] if len(term.args) == 2 else None
            return self.fetch(term.payload, term.args[0], mask, False, term)
        if op == "keep":
            value = self.value(term.args[0])
            self.store(term.payload, term.args[1], value)
            return value
        if op == "scan":
            return self.scan(term)
        if op == "rare":
            cond, slow, fast = term.args
            return self.rarely(cond, slow, fast, base)
        args = [self.value(a, base) for a in term.args]
        if op == "cast":
            return e.convert(args[0], term.dtype)
        if op == "bitcast":
            return e.bitcast(args[0], term.dtype)
        if op in RULES:
            return self.operate(term, args)
        if op == "scalb" and scales(e, args[0]):
            return scaled(e, args[0], e.spread(args[1], args[0].lanes))
        written = math.expand(term, LEFT - {op})
        if written is term:
            raise GnomonError(f"code: {op} of {term.dtype.name} has no formula on this target")
        return self.value(written, base)

    @abstractmethod
    def scan(self, term: Term) -> Value:
        """What the elements of a row up to each lane come to."""

    def operate(self, term: Term, args: list[Value]) -> Value:
        """The value of a Term that is one primitive."""
        return self.e.primitive(term.op, args, term.dtype)

    def is_repeated(self, term: Term) -> bool:
        """Whether neighbouring lanes share the value of a Term here."""
        if not self.even or self.quotients is None:
            return False
        found = self.quotients.terms.get(term.id)
        return found is not None and self.lanes >= 2 * found.divisor

    def repeated(self, term: Term) -> Value:
        """A Term of repeated lanes: computed with fewer lanes, each of which is repeated."""
        assert self.quotients is not None
        assert self.vec is not None
        new, divisor = self.quotients.terms[term.id]
        quotient, lanes = self.quotients.variables[divisor], self.lanes
        first = self.scopes[-1].get(("quotient", quotient))
        if first is None:
            first = self.int("udiv", self.base[self.vec], self.e.index(divisor))
            self.scopes[-1]["quotient", quotient] = first
        before = self.vec, self.lanes, self.mask, self.even
        if self.mask is not None:
            self.mask = self.inside(lanes // divisor, divisor)
        self.base[quotient] = first
        self.vec, self.lanes, self.even = quotient, lanes // divisor, False
        value = self.value(new)
        self.vec, self.lanes, self.mask, self.even = before
        if value.lanes == 1:
            return value
        return self.shuffle(value, [k // divisor for k in range(lanes)])

    def inside(self, lanes: int, step: int = 1) -> Value:
        """Which of `lanes` lanes, each for `step` elements, begin before a loop's end."""
        assert self.left is not None
        numbers = self.e.lane_numbers(lanes, dt.int32, step)
        return self.e.primitive("lt", [numbers, self.left], dt.bool_)

    def rarely(self, cond: Term, slow: Term, fast: Term, base: bool) -> Value:
        """A select that goes around `slow` where no lane asks for it."""
        e = self.e
        chosen, value = self.value(cond, base), self.value(fast, base)
        lanes = max(chosen.lanes, value.lanes)
        chosen, value = e.spread(chosen, lanes), e.spread(value, lanes)

        def mixed() -> Value:
            return e.primitive("select", [chosen, self.value(slow, base), value], value.dtype)

        return self.detour(chosen if lanes == 1 else self.any_lane(chosen), value, mixed)

    def detour(self, asked: Value, value: Value, slow: Callable[[], Value]) -> Value:
        """`value`, or where the one-lane bool `asked` holds, which is seldom, what `slow` gives."""
        e, before = self.e, self.e.label
        with e.when(asked, seldom=True), self.scope():
            other = slow()
            after = e.label
        kinds = f"[ {value.name}, %{before} ], [ {other.name}, %{after} ]"
        return e.do(f"phi {value.type} {kinds}", value.dtype, value.lanes)

    def any_lane(self, cond: Value) -> Value:
        """Whether a bool holds in any lane."""
        name = f"@llvm.vector.reduce.or.{overload(dt.bool_, cond.lanes)}"
        self.e.declared.add(f"declare i1 {name}({cond.type})")
        return self.e.do(f"call i1 {name}({cond})", dt.bool_)

    def variable(self, var: int, base: bool) -> Value:
        start = self.base[var]
        if var != self.vec or base or self.lanes == 1:
            return start
        return self.e.primitive("add", [start, self.e.lane_numbers(self.lanes)], dt.int64)

    def result(self, part: Term) -> Value:
        key = ("part", part.args[0].id, part.payload)
        return next(scope[key] for scope in reversed(self.scopes) if key in scope)

    # -- memory ---------------------------------------------------------------------------------

    def fetch(
        self,
        operand: Operand,
        offset: Term,
        where: Term | None,
        whole: bool,
        term: Term | None = None,
    ) -> Value:
        """Elements of `operand`: one for all lanes, a vector in a row, or a gather."""
        free = offset.free if term is None else term.free
        if self.vec is None or not (whole or free >> self.vec & 1):
            return self.fetch_one(operand, offset, where)
        mask = self.mask
        allowed = None if where is None else self.value(where)
        if allowed is not None and allowed.name != "true":
            inside = self.e.spread(allowed, self.lanes)
            mask = inside if mask is None else self.e.primitive("and", [mask, inside], dt.bool_)
        step = stride(offset, self.vec) if offset.free >> self.vec & 1 else None
        if step == 1:
            return self.vector(operand, self.value(offset, True), mask)
        if step == -1:
            first = self.int("sub", self.value(offset, True), self.e.index(self.lanes - 1))
            back = range(self.lanes - 1, -1, -1)
            turned = None if mask is None else self.shuffle(mask, back)
            return self.shuffle(self.vector(operand, first, turned), back)
        if step == 2 and mask is None:
            return self.every_other(operand, self.value(offset, True))
        return self.gather(operand, offset, mask)

    def every_other(self, operand: Operand, first: Value) -> Value:
        """`lanes` elements two apart from `first`, by two vectors: the second ends with the last.

        Nothing is read behind that: memory may end there.
        """
        last = self.lanes - 1
        low = self.vector(operand, first, None)
        high = self.vector(operand, self.int("add", first, self.e.index(last)), None)
        lanes = [2 * k if 2 * k <= last else 2 * k + 1 for k in range(last + 1)]
        return self.shuffle(low, lanes, high)

    def fetch_one(self, operand: Operand, offset: Term, where: Term | None) -> Value:
        place = self.address(operand, self.value(offset, True))
        if where is not None:
            allowed = self.value(where)
            safe = f"select {allowed}, ptr {place}, ptr {self.somewhere()}"
            place = self.e.do(safe, dt.int64).name
        return self.load(place, operand.dtype)

    def somewhere(self) -> str:
        """Memory that may always be read."""
        if self.nothing is None:
            self.nothing = "%nothing"
            self.e.allocas += ["  %nothing = alloca i64", "  store i64 0, ptr %nothing"]
        return self.nothing

    def address(self, operand: Operand, offset: Value) -> str:
        pointer = self.argument(operand.slot).name
        element = memory_type(operand.dtype)
        kind = dt.int64
        return self.e.do(
            f"getelementptr {element}, ptr {pointer}, {offset}", kind, offset.lanes
        ).name

    def load(self, place: str, dtype: DType, lanes: int = 1) -> Value:
        text = f"load {memory_type(dtype, lanes)}, ptr {place}, align {dtype.size}"
        return self.from_memory(self.e.do(text, in_memory(dtype), lanes), dtype)

    def from_memory(self, value: Value, dtype: DType) -> Value:
        if dtype.kind == "b":
            return self.e.convert(value, dtype)
        return self.e.bitcast(value, dtype)

    def to_memory(self, value: Value, dtype: DType) -> Value:
        stored = in_memory(dtype)
        if dtype.kind == "b":
            return self.e.do(f"zext {value} to {type_of(stored, value.lanes)}", stored, value.lanes)
        return self.e.bitcast(value, stored)

    def vector(self, operand: Operand, first: Value, mask: Value | None) -> Value:
        """`lanes` elements in a row from `first`."""
        dtype, lanes = operand.dtype, self.lanes
        place = self.address(operand, first)
        if mask is None:
            return self.load(place, dtype, lanes)
        stored, kind = in_memory(dtype), memory_type(dtype, lanes)
        name = f"@llvm.masked.load.{overload(stored, lanes)}.p0"
        self.e.declared.add(f"declare {kind} {name}(ptr, i32, <{lanes} x i1>, {kind})")
        text = f"call {kind} {name}(ptr {place}, i32 {dtype.size}, {mask}, {kind} zeroinitializer)"
        return self.from_memory(self.e.do(text, stored, lanes), dtype)

    def gather(self, operand: Operand, offset: Term, mask: Value | None) -> Value:
        dtype, lanes = operand.dtype, self.lanes
        places = self.address(operand, self.e.spread(self.value(offset), lanes))
        allowed = mask or self.e.constant(True, dt.bool_, lanes)
        stored, kind = in_memory(dtype), memory_type(dtype, lanes)
        name = f"@llvm.masked.gather.{overload(stored, lanes)}.v{lanes}p0"
        self.e.declared.add(f"declare {kind} {name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
        args = f"<{lanes} x ptr> {places}, i32 {dtype.size}, {allowed}, {kind} zeroinitializer"
        return self.from_memory(self.e.do(f"call {kind} {name}({args})", stored, lanes), dtype)

    def store(self, operand: Operand, offset: Term, value: Value) -> None:
        value = self.to_memory(value, operand.dtype)
        if self.vec is None:
            place = self.address(operand, self.value(offset, True))
            self.e.line(f"store {value}, ptr {place}, align {operand.dtype.size}")
            return
        value = self.e.spread(value, self.lanes)
        step = stride(offset, self.vec)
        if step == 1:
            self.store_vector(operand, self.value(offset, True), value, self.mask)
        elif step == -1:
            back = range(self.lanes - 1, -1, -1)
            first = self.int("sub", self.value(offset, True), self.e.index(self.lanes - 1))
            mask = None if self.mask is None else self.shuffle(self.mask, back)
            self.store_vector(operand, first, self.shuffle(value, back), mask)
        else:
            self.scatter(operand, offset, value)

    def store_vector(
        self, operand: Operand, first: Value, value: Value, mask: Value | None
    ) -> None:
        place, size = self.address(operand, first), operand.dtype.size
        if mask is None:
            past = self.past_caches and self.streamed is not None and operand is self.streamed.dest
            how = f"{self.e.target.vector_bytes}, !nontemporal {STREAM}" if past else f"{size}"
            self.e.line(f"store {value}, ptr {place}, align {how}")
            return
        name = f"@llvm.masked.store.{overload(value.dtype, value.lanes)}.p0"
        self.e.declared.add(f"declare void {name}({value.type}, ptr, i32, <{value.lanes} x i1>)")
        self.e.line(f"call void {name}({value}, ptr {place}, i32 {size}, {mask})")

    def scatter(self, operand: Operand, offset: Term, value: Value) -> None:
        lanes, size = value.lanes, operand.dtype.size
        places = self.address(operand, self.e.spread(self.value(offset), lanes))
        allowed = self.mask or self.e.constant(True, dt.bool_, lanes)
        name = f"@llvm.masked.scatter.{overload(value.dtype, lanes)}.v{lanes}p0"
        pointers = f"<{lanes} x ptr>"
        self.e.declared.add(f"declare void {name}({value.type}, {pointers}, i32, <{lanes} x i1>)")
        self.e.line(f"call void {name}({value}, {pointers} {places}, i32 {size}, {allowed})")

    # -- lanes ----------------------------------------------------------------------------------

    def part(self, value: Value, lanes: range) -> Value:
        if len(lanes) == 1:
            return self.e.do(f"extractelement {value}, i64 {lanes[0]}", value.dtype)
        return self.shuffle(value, lanes)

    def shuffle(self, value: Value, lanes: Sequence[int], other: Value | None = None) -> Value:
        """These lanes of a value; those of `other` are numbered after its own."""
        if value.dtype is dt.bfloat16:  # LLVM takes such lanes one by one, by functions of libgcc
            behind = None if other is None else self.e.bitcast(other, dt.uint16)
            found = self.shuffle(self.e.bitcast(value, dt.uint16), lanes, behind)
            return self.e.bitcast(found, dt.bfloat16)
        picks = ", ".join(f"i32 {k}" for k in lanes)
        second = other or f"{value.type} poison"
        text = f"shufflevector {value}, {second}, <{len(lanes)} x i32> <{picks}>"
        return self.e.do(text, value.dtype, len(lanes))

    # -- integers -------------------------------------------------------------------------------

    def extent(self, var: int) -> Value:
        return self.value(self.arena.extent[var], True)

    def slot(self, number: int) -> Value:
        place = self.e.do(f"getelementptr i64, ptr %b, i64 {number}", dt.int64).name
        return self.load(place, dt.int64)

    def int(self, op: str, a: Value, b: Value) -> Value:
        return self.e.do(f"{op} {a}, {b.name}", dt.int64)

    def smaller(self, a: Value, b: Value) -> Value:
        return self.e.primitive("min", [a, b], dt.int64)
