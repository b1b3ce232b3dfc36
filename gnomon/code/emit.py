"""LLVM IR as text: values that know their dtype and lanes, and one instruction after the other.

A `Value` of one lane meets one of many by being spread; nothing else is implicit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from gnomon import dtype as dt
from gnomon.base import GnomonError
from gnomon.code import half
from gnomon.code.target import Target
from gnomon.dtype import DType
from gnomon.expr.term import Number
from gnomon.ground.levels import CACHE_BYTES

TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "bfloat",
    "bool": "i1",
    **{f"{u}int{n}": f"i{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}
DIGITS = {4: 24, 8: 53}  # of floats by their bytes, in binary
HALVES = frozenset({dt.float16, dt.bfloat16})
SELDOM = ', !prof !{!"branch_weights", i32 1, i32 1000}'  # no pass makes a select of the branch
SUFFIX = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}


class Value(NamedTuple):
    """An operand of an instruction."""

    name: str
    dtype: DType
    lanes: int = 1

    @property
    def type(self) -> str:
        return type_of(self.dtype, self.lanes)

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def type_of(dtype: DType, lanes: int = 1) -> str:
    """LLVM's type of a value in a register."""
    scalar = TYPES[dtype.name]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """LLVM's type of the same in memory."""
    return type_of(in_memory(dtype), lanes)


def in_memory(dtype: DType) -> DType:
    """The dtype whose register type is `dtype`'s type in memory.

    A bool takes a byte. Half floats are moved as integers: for vectors of a type that a target does
    not compute with, LLVM may call functions that no library has.
    """
    return dt.uint8 if dtype.kind == "b" else dt.uint16 if dtype in HALVES else dtype


def overload(dtype: DType, lanes: int = 1) -> str:
    """How intrinsics' names spell a type."""
    scalar = TYPES[dtype.name]
    scalar = SUFFIX.get(scalar, scalar)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def literal(value: Number, dtype: DType) -> str:
    """A number as LLVM writes it."""
    if dtype.kind == "f":
        wide = struct.unpack("<f", struct.pack("<f", value))[0] if dtype.size == 4 else value
        return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value))


class Emitter:
    """Lines of one function; declarations and constants gather beside it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declared: set[str] = set()
        self.count = 0
        self.label = "entry"
        self.fixed: dict[str, Value | None] = {}  # known at entry, and a register full of it

    def name(self, stem: str = "t") -> str:
        self.count += 1
        return f"%{stem}{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def do(self, text: str, dtype: DType, lanes: int = 1) -> Value:
        """An instruction and its result."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(name, dtype, lanes)

    def constant(self, value: Number, dtype: DType, lanes: int = 1) -> Value:
        one = Value(literal(value, dtype), dtype)
        if lanes == 1:
            return one
        return Value(f"splat ({one})", dtype, lanes)

    def index(self, value: int) -> Value:
        return self.constant(value, dt.int64)

    def cache_bytes(self) -> Value:
        """How many bytes of the last-level cache the process counts on that loads the code."""
        self.declared.add(f"@{CACHE_BYTES} = external global i8")
        return Value(f"ptrtoint (ptr @{CACHE_BYTES} to i64)", dt.int64)

    def spread(self, value: Value, lanes: int) -> Value:
        """`value` in every lane."""
        if value.lanes == lanes:
            return value
        assert value.lanes == 1, (value, lanes)
        if not value.name.startswith("%"):
            return Value(f"splat ({value})", value.dtype, lanes)
        width = self.target.vector_bytes // value.dtype.size
        if value.name not in self.fixed or not 1 < width <= lanes or value.dtype.kind == "b":
            return self.splat(value, lanes)
        full = self.fixed[value.name]
        if full is None:
            with self.at_entry():
                full = self.fixed[value.name] = self.splat(value, width)
        if lanes == width:
            return full
        picks = ", ".join(f"i32 {k % width}" for k in range(lanes))
        text = f"shufflevector {full}, {full.type} poison, <{lanes} x i32> <{picks}>"
        return self.do(text, value.dtype, lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """`value` in every lane, here."""
        vector = type_of(value.dtype, lanes)
        first = self.do(f"insertelement {vector} poison, {value}, i64 0", value.dtype, lanes)
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.do(f"shufflevector {first}, {vector} poison, {zeros}", value.dtype, lanes)

    def in_first_lane(self, value: Value, others: Value) -> Value:
        """The vector `others` with `value` in its first lane."""
        return self.do(f"insertelement {others}, {value}, i64 0", others.dtype, others.lanes)

    def lane_numbers(self, lanes: int, dtype: DType = dt.int64, step: int = 1) -> Value:
        scalar = TYPES[dtype.name]
        inside = ", ".join(f"{scalar} {k * step}" for k in range(lanes))
        return Value(f"<{inside}>", dtype, lanes)

    def call(self, intrinsic: str, dtype: DType, *args: Value, types: str = "") -> Value:
        """An LLVM intrinsic, declared on the way; `types`: its suffix where not the result's."""
        lanes = max(a.lanes for a in args)
        suffix = types or overload(dtype, lanes)
        full = f"@llvm.{intrinsic}.{suffix}"
        result = type_of(dtype, lanes)
        self.declared.add(f"declare {result} {full}({', '.join(a.type for a in args)})")
        return self.do(f"call {result} {full}({', '.join(map(str, args))})", dtype, lanes)

    def alloca(self, dtype: DType, lanes: int = 1, stem: str = "acc") -> str:
        """A place on the stack, which LLVM turns into a register."""
        name = self.name(stem)
        self.allocas.append(f"  {name} = alloca {type_of(dtype, lanes)}, align 64")
        return name

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """What is written inside stands at the function's entry."""
        before, self.lines = self.lines, self.allocas
        yield
        self.lines = before

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.label = label

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    @contextmanager
    def for_range(
        self, low: Value, high: Value, step: int | Value = 1, until: list[Value] | None = None
    ) -> Iterator[Value]:
        """A loop over an int64 from `low` to before `high`, or until what the body enters holds."""
        by = step.name if isinstance(step, Value) else step
        head, body, done = self.fresh("head"), self.fresh("body"), self.fresh("done")
        before, i, after = self.label, self.name("i"), self.name("next")
        self.line(f"br label %{head}")
        self.start(head)
        at = len(self.lines)
        inside = self.do(f"icmp slt i64 {i}, {high.name}", dt.bool_)
        self.line(f"br {inside}, label %{body}, label %{done}")
        self.start(body)
        yield Value(i, dt.int64)
        if until:
            more = self.fresh("more")
            self.line(f"br {until[-1]}, label %{done}, label %{more}")
            self.start(more)
        self.line(f"{after} = add nsw i64 {i}, {by}")
        latch = self.label
        self.line(f"br label %{head}")
        self.lines.insert(at, f"  {i} = phi i64 [ {low.name}, %{before} ], [ {after}, %{latch} ]")
        self.start(done)

    @contextmanager
    def when(self, cond: Value, seldom: bool = False) -> Iterator[None]:
        """A block that runs only where a one-lane bool holds; what is `seldom` stays a branch."""
        body, done = self.fresh("then"), self.fresh("join")
        self.line(f"br {cond}, label %{body}, label %{done}{SELDOM if seldom else ''}")
        self.start(body)
        yield
        self.line(f"br label %{done}")
        self.start(done)

    def convert(self, value: Value, dtype: DType) -> Value:
        """Conversion by `Arena.cast`'s rule."""
        src, lanes = value.dtype, value.lanes
        if src is dtype or TYPES[src.name] == TYPES[dtype.name]:
            return Value(value.name, dtype, lanes)
        if dtype.kind == "b":
            zero = self.constant(0, src, lanes).name
            kind = "fcmp une" if src.kind == "f" else "icmp ne"
            return self.do(f"{kind} {value}, {zero}", dtype, lanes)
        if HALVES & {src, dtype} and dt.float32 not in (src, dtype):  # as ml_dtypes rounds, and
            return self.convert(self.convert(value, dt.float32), dtype)  # as targets can
        if src in HALVES and src.name not in self.target.has:
            return half.widen(self, value)
        if dtype in HALVES and dtype.name not in self.target.has:
            narrow = half.narrow_float16 if dtype is dt.float16 else half.narrow_bfloat16
            return narrow(self, value)
        target = type_of(dtype, lanes)
        whole = src.kind == "f" and dtype.kind in "iu"
        if whole and lanes > 1 and "saturate" not in self.target.has:
            return self.saturated(value, dtype)
        if whole:
            types = f"{overload(dtype, lanes)}.{overload(src, lanes)}"
            sign = "si" if dtype.kind == "i" else "ui"
            return self.call(f"fpto{sign}.sat", dtype, value, types=types)
        if src.kind == "f":
            how = "fpext" if dtype.size > src.size else "fptrunc"
        elif dtype.kind == "f":
            how = "sitofp" if src.kind == "i" else "uitofp"
        elif TYPES[src.name] != "i1" and dtype.size < src.size:
            how = "trunc"
        else:
            how = "sext" if src.kind == "i" else "zext"
        return self.do(f"{how} {value} to {target}", dtype, lanes)

    def saturated(self, value: Value, dtype: DType) -> Value:
        """What `fptosi.sat` gives, which LLVM computes lane by lane: the ends kept, NaN as 0."""
        src, lanes = value.dtype, value.lanes
        low, high = dtype.limits
        beyond = max(0, high.bit_length() - DIGITS[src.size])
        top = self.constant(float(high + 1 - (1 << beyond) if beyond else high), src, lanes)
        bottom = self.constant(float(low), src, lanes)

        def pick(cond: Value, a: Value, b: Value) -> Value:
            return self.primitive("select", [cond, a, b], a.dtype)

        def less(a: Value, b: Value) -> Value:
            return self.primitive("lt", [a, b], dt.bool_)

        inside = pick(less(bottom, value), value, bottom)  # NaN is the bottom
        inside = pick(less(inside, top), inside, top)
        middle = dt.int32 if dtype.size < 4 else dtype
        how = "fptoui" if middle.kind == "u" else "fptosi"
        found = self.do(f"{how} {inside} to {type_of(middle, lanes)}", middle, lanes)
        if dtype is not middle:
            found = self.do(f"trunc {found} to {type_of(dtype, lanes)}", dtype, lanes)
        if beyond:
            end = self.constant(float(high + 1), src, lanes)
            over = self.do(f"fcmp oge {value}, {end.name}", dt.bool_, lanes)
            found = pick(over, self.constant(high, dtype, lanes), found)
        if low == 0:
            return found
        nothing = self.do(f"fcmp uno {value}, {value.name}", dt.bool_, lanes)
        return pick(nothing, self.constant(0, dtype, lanes), found)

    def bitcast(self, value: Value, dtype: DType) -> Value:
        """The same bits as a number of another dtype."""
        if TYPES[value.dtype.name] == TYPES[dtype.name]:
            return Value(value.name, dtype, value.lanes)
        return self.do(f"bitcast {value} to {type_of(dtype, value.lanes)}", dtype, value.lanes)

    def primitive(self, name: str, args: list[Value], dtype: DType) -> Value:
        """A primitive function on values of one or many lanes."""
        lanes = max((a.lanes for a in args), default=1)
        args = [self.spread(a, lanes) if a.lanes != lanes else a for a in args]
        rule = RULES.get(name)
        if rule is None:
            raise GnomonError(f"code: primitive {name!r} has no instruction on this target")
        return rule(self, args, dtype)


Rule = Callable[[Emitter, list[Value], DType], Value]


def _both(floats: str, ints: str) -> Rule:
    def rule(e: Emitter, args: list[Value], dtype: DType) -> Value:
        op = floats if dtype.kind == "f" else ints
        return e.do(f"{op} {args[0]}, {args[1].name}", dtype, args[0].lanes)

    return rule


def _compare(floats: str, signed: str, unsigned: str) -> Rule:
    def rule(e: Emitter, args: list[Value], dtype: DType) -> Value:
        kind = args[0].dtype.kind
        op = f"fcmp {floats}" if kind == "f" else f"icmp {signed if kind == 'i' else unsigned}"
        return e.do(f"{op} {args[0]}, {args[1].name}", dt.bool_, args[0].lanes)

    return rule


def _intrinsic(name: str) -> Rule:
    return lambda e, args, dtype: e.call(name, dtype, *args)


def _fused(e: Emitter, args: list[Value], dtype: DType) -> Value:
    """a * b + c rounded once; float32 by float64 where there is no instruction."""
    if "fma" in e.target.has or dtype is dt.float64:
        return e.call("fma", dtype, *args)
    a, b, c = [e.convert(arg, dt.float64) for arg in args]
    product = e.primitive("mul", [a, b], dt.float64)
    return e.convert(e.primitive("add", [product, c], dt.float64), dtype)


def _select(e: Emitter, args: list[Value], dtype: DType) -> Value:
    c, a, b = args
    return e.do(f"select {c}, {a}, {b}", dtype, a.lanes)


def _negate(e: Emitter, args: list[Value], dtype: DType) -> Value:
    if dtype.kind == "f":
        return e.do(f"fneg {args[0]}", dtype, args[0].lanes)
    zero = e.constant(0, dtype, args[0].lanes)
    return e.do(f"sub {zero}, {args[0].name}", dtype, args[0].lanes)


def _absolute(e: Emitter, args: list[Value], dtype: DType) -> Value:
    if dtype.kind == "f":
        return e.call("fabs", dtype, args[0])
    if dtype.kind != "i":
        return args[0]
    lanes = args[0].lanes
    full = f"@llvm.abs.{overload(dtype, lanes)}"
    e.declared.add(f"declare {type_of(dtype, lanes)} {full}({type_of(dtype, lanes)}, i1)")
    return e.do(f"call {type_of(dtype, lanes)} {full}({args[0]}, i1 false)", dtype, lanes)


def _extreme(floats: str, signed: str, unsigned: str) -> Rule:
    """The larger (smaller) of two; a NaN on either side wins."""

    def rule(e: Emitter, args: list[Value], dtype: DType) -> Value:
        a, b = args
        if dtype.kind != "f":
            better = e.do(
                f"icmp {signed if dtype.kind == 'i' else unsigned} {a}, {b.name}", dt.bool_, a.lanes
            )
            return _select(e, [better, a, b], dtype)
        better = e.do(f"fcmp {floats} {a}, {b.name}", dt.bool_, a.lanes)
        numbers = _select(e, [better, a, b], dtype)
        nan = e.do(f"fcmp uno {a}, {a.name}", dt.bool_, a.lanes)
        return _select(e, [nan, a, numbers], dtype)

    return rule


def _divide(e: Emitter, args: list[Value], dtype: DType) -> Value:
    """Floats divide; integers truncate, x/0 is 0 and INT_MIN/-1 wraps, without a trap."""
    a, b = args
    lanes = a.lanes
    if dtype.kind == "f":
        return e.do(f"fdiv {a}, {b.name}", dtype, lanes)
    zero, one = e.constant(0, dtype, lanes), e.constant(1, dtype, lanes)
    none = e.do(f"icmp eq {b}, {zero.name}", dt.bool_, lanes)
    safe = _select(e, [none, one, b], dtype)
    divided = _divide_by_floats if lanes > 1 and b.name.startswith("%") else _divide_integers
    if dtype.kind != "i":
        return _select(e, [none, zero, divided(e, [a, safe], dtype)], dtype)
    minus = e.do(f"icmp eq {b}, {e.constant(-1, dtype, lanes).name}", dt.bool_, lanes)
    quotient = divided(e, [a, _select(e, [minus, one, safe], dtype)], dtype)
    quotient = _select(e, [minus, _negate(e, [a], dtype), quotient], dtype)
    return _select(e, [none, zero, quotient], dtype)


def _divide_integers(e: Emitter, args: list[Value], dtype: DType) -> Value:
    op = "sdiv" if dtype.kind == "i" else "udiv"
    return e.do(f"{op} {args[0]}, {args[1].name}", dtype, args[0].lanes)


def _divide_by_floats(e: Emitter, args: list[Value], dtype: DType) -> Value:
    """The same of vectors: processors have no such instruction for integers, one for floats.

    It is exact up to 32 bits. A quotient that is no whole number lies at least 1/b below the next
    one; rounding moves it by a/b 2^-24 or, from 32 bits in float64, a/b 2^-53, which is less.
    """
    if dtype.size > 4:
        return _divide_integers(e, args, dtype)
    lanes, wide = args[0].lanes, dt.float32 if dtype.size <= 2 else dt.float64
    there, back = ("sitofp", "fptosi") if dtype.kind == "i" else ("uitofp", "fptoui")
    a, b = (e.do(f"{there} {x} to {type_of(wide, lanes)}", wide, lanes) for x in args)
    quotient = e.do(f"fdiv {a}, {b.name}", wide, lanes)
    return e.do(f"{back} {quotient} to {type_of(dtype, lanes)}", dtype, lanes)


def _shift(op: str) -> Rule:
    def rule(e: Emitter, args: list[Value], dtype: DType) -> Value:
        a, b = args
        shifted = e.do(f"{op} {a}, {b.name}", dtype, a.lanes)
        width = e.constant(8 * dtype.size, dtype, a.lanes)
        inside = e.do(f"icmp ult {b}, {width.name}", dt.bool_, a.lanes)
        return _select(e, [inside, shifted, e.constant(0, dtype, a.lanes)], dtype)

    return rule


def _shift_signed(e: Emitter, args: list[Value], dtype: DType) -> Value:
    """The sign comes in; by the width or more, or by less than nothing, nothing else is left."""
    a, b = args
    last = e.constant(8 * dtype.size - 1, dtype, a.lanes)
    inside = e.do(f"icmp ult {b}, {last.name}", dt.bool_, a.lanes)
    by = _select(e, [inside, b, last], dtype)
    return e.do(f"ashr {a}, {by.name}", dtype, a.lanes)


def _bitwise_not(e: Emitter, args: list[Value], dtype: DType) -> Value:
    ones = e.constant(True if dtype.kind == "b" else -1, dtype, args[0].lanes)
    return e.do(f"xor {args[0]}, {ones.name}", dtype, args[0].lanes)


RULES: dict[str, Rule] = {
    "add": _both("fadd", "add"),
    "sub": _both("fsub", "sub"),
    "mul": _both("fmul", "mul"),
    "div": _divide,
    "neg": _negate,
    "abs": _absolute,
    "min": _extreme("olt", "slt", "ult"),
    "max": _extreme("ogt", "sgt", "ugt"),
    "fma": _fused,
    "idiv": _both("fdiv", "udiv"),
    "imod": _both("frem", "urem"),
    "lt": _compare("olt", "slt", "ult"),
    "le": _compare("ole", "sle", "ule"),
    "eq": _compare("oeq", "eq", "eq"),
    "ne": _compare("une", "ne", "ne"),
    "and": _both("and", "and"),
    "or": _both("or", "or"),
    "xor": _both("xor", "xor"),
    "not": _bitwise_not,
    "shl": _shift("shl"),
    "lshr": _shift("lshr"),
    "shr": _shift_signed,
    "select": _select,
    "sqrt": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "copysign": _intrinsic("copysign"),
}
