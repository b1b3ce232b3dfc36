"""Formulas: scalar functions written down as data, generic in the dtype they are computed in.

A `Formula` is a list of steps in the order of their evaluation: every operand stands before its
use. A step is

    const     a number, taken in the dtype of the arguments      value
    number    a truth value as 0 or 1 of that dtype
    <name>    a primitive of `primitive.py`
    <fn>      a `ScalarFn` that is kept whole, because its derivative is declared and not derived

`Sym` and `Tape` build formulas: Python's operators on Syms append steps, equal steps are one step.
`replay` evaluates a formula on any machine that has constants and primitives: Terms, NumPy, another
tape. Formulas are interned: equal ones are one object, which makes them their own key.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from gnomon.base import GnomonError
from gnomon.expr.functions.primitive import PRIMITIVES
from gnomon.expr.term import Number, key_of

if TYPE_CHECKING:
    from gnomon.expr.functions.scalar import ScalarFn

V = TypeVar("V")
LOGIC = frozenset({"and", "or", "xor", "not"})  # of truth values, else of integers' bits
SHIFTS = {"shl": "<<", "shr": ">>"}
CARRY_TRUTH = LOGIC | {"select"}  # of truth values these give truth values
SIGNS = {"and": "&", "or": "|", "xor": "^", "not": "~", **SHIFTS}
ROUNDING = frozenset({"floor", "ceil", "trunc", "rint"})  # these leave integers as they are
WHOLE = ROUNDING | {"fma", "fmod", "pow"}  # floats_only of these does not hold for formulas
COMMUTATIVE = frozenset({"add", "mul", "min", "max", "eq", "ne", "and", "or", "xor"})


class Step(NamedTuple):
    """One operation; its operands are argument numbers, or arity + the number of a step."""

    op: str | ScalarFn
    refs: tuple[int, ...]
    value: Number | None = None


class Machine(Protocol[V]):
    """What `replay` computes with."""

    def const(self, value: Number) -> V:
        """A number; a bool is a truth value."""

    def number(self, truth: V) -> V:
        """0 or 1 from a truth value."""

    def op(self, name: str, *args: V) -> V:
        """A primitive function."""

    def call(self, fn: ScalarFn, *args: V) -> V:
        """A function that is kept whole."""


class Formula:
    """A scalar function of `arity` arguments as steps; made by `Tape.formula`.

    `floats` says whether it has a meaning in floating point only, as `exp` and `x * 0.5` have,
    `bits` which operators of it work on the bits of integers only.
    """

    __slots__ = ("__weakref__", "arity", "bits", "floats", "result", "steps", "truth")

    def __init__(self, arity: int, steps: tuple[Step, ...], result: int, truth: bool) -> None:
        self.arity, self.steps, self.result, self.truth = arity, steps, result, truth
        self.floats = any(_needs_floats(step) for step in steps)
        self.bits = self._bits()

    def _bits(self) -> tuple[str, ...]:
        truths, found = [False] * self.arity, dict[str, None]()
        for step in self.steps:
            if not isinstance(step.op, str):
                found.update(dict.fromkeys(step.op.body.bits))
            elif step.op in SIGNS and not truths[step.refs[0]]:
                found[SIGNS[step.op]] = None
            truths.append(_gives_truth(step, truths))
        return tuple(found)

    @property
    def logical(self) -> bool:
        """Whether it means the same of bits and of truth values."""
        return all(_is_logical(step) for step in self.steps)

    def replay(self, args: Sequence[V], machine: Machine[V]) -> V:
        """The value for these arguments, a truth value where `truth` is set."""
        return self.values(args, machine)[self.result]

    def values(self, args: Sequence[V], machine: Machine[V]) -> list[V]:
        """The arguments followed by the value of every step."""
        values = list(args)
        for step in self.steps:
            operands = [values[k] for k in step.refs]
            if step.op == "const":
                assert step.value is not None
                values.append(machine.const(step.value))
            elif step.op == "number":
                values.append(machine.number(*operands))
            elif isinstance(step.op, str):
                values.append(machine.op(step.op, *operands))
            else:
                values.append(machine.call(step.op, *operands))
        return values

    def used(self) -> tuple[int, ...]:
        """The numbers of the arguments that the result depends on, ascending."""
        refs = {ref for step in self.steps for ref in step.refs} | {self.result}
        return tuple(sorted(ref for ref in refs if ref < self.arity))

    def text(self) -> tuple[Hashable, ...]:
        """The formula as nested tuples of plain values: the same in every process."""
        lines: list[Hashable] = []
        for step in self.steps:
            name = step.op if isinstance(step.op, str) else step.op.text()
            value = repr(step.value) if step.op == "const" else None
            lines.append((name, step.refs, value))
        return (self.arity, self.result, tuple(lines))

    def __repr__(self) -> str:
        return f"Formula{self.text()}"


_FORMULAS: weakref.WeakValueDictionary[Hashable, Formula] = weakref.WeakValueDictionary()


def _needs_floats(step: Step) -> bool:
    if not isinstance(step.op, str):
        return step.op.floats
    if step.op == "const":
        return isinstance(step.value, float) and not step.value.is_integer()
    row = PRIMITIVES.get(step.op)
    return row is not None and row.floats_only and step.op not in WHOLE


def _gives_truth(step: Step, truths: Sequence[bool]) -> bool:
    """Whether the value of a step is a truth value, given which of those before it are."""
    if step.op == "const":
        return isinstance(step.value, bool)
    if step.op in CARRY_TRUTH:
        return truths[step.refs[-1]]
    row = PRIMITIVES.get(step.op) if isinstance(step.op, str) else None
    return row is not None and row.gives_bool


def _is_logical(step: Step) -> bool:
    if not isinstance(step.op, str):
        return step.op.body.logical
    row = PRIMITIVES.get(step.op)
    return step.op in CARRY_TRUTH | {"const", "number"} or (row is not None and row.gives_bool)


class Tape:
    """Collects steps; `symbols` are the arguments.

    With `simplify` additions of 0, multiplications by 0 and 1 and the like are left out, as a
    derivative needs: infinities and NaN times an exact 0 give 0 there.
    """

    def __init__(self, arity: int, simplify: bool = False) -> None:
        self.arity, self.simplify = arity, simplify
        self.steps: list[Step] = []
        self.table: dict[Hashable, Sym] = {}
        self.symbols = tuple(Sym(self, k, False) for k in range(arity))

    def add(
        self, op: str | ScalarFn, refs: tuple[int, ...], value: Number | None, truth: bool
    ) -> Sym:
        """The symbol of this step, which is appended unless an equal one exists."""
        key = (op, refs, key_of(value))
        symbol = self.table.get(key)
        if symbol is None:
            self.steps.append(Step(op, refs, value))
            symbol = Sym(self, self.arity + len(self.steps) - 1, truth)
            self.table[key] = symbol
        return symbol

    def lift(self, value: Sym | Number) -> Sym:
        """`value` as a symbol of this tape."""
        return value if isinstance(value, Sym) else self.const(value)

    def const(self, value: Number) -> Sym:
        """A constant; a bool is a truth value."""
        return self.add("const", (), value, isinstance(value, bool))

    def number(self, truth: Sym | Number) -> Sym:
        """0 or 1 from a truth value; numbers stay what they are."""
        x = self.lift(truth)
        return self.add("number", (x.ref,), None, False) if x.truth else x

    def truth(self, value: Sym | Number) -> Sym:
        """Whether a number is not 0; truth values stay what they are."""
        x = self._as_truth(value)
        return x if x.truth else self.op("ne", x, self.const(0))

    def _as_truth(self, value: Sym | Number) -> Sym:
        """The truth value that 0 or 1 were made from; other numbers stay what they are."""
        x = self.lift(value)
        step = None if x.truth else self.step_of(x)
        return Sym(self, step.refs[0], True) if step is not None and step.op == "number" else x

    def op(self, name: str, *args: Sym | Number) -> Sym:
        """A primitive of symbols and numbers; truth values and numbers turn into what it takes."""
        if name in LOGIC:
            # of 0 and 1 from truth values these mean the same by bits, `not` does not
            operands = [self._as_truth(a) if name != "not" else self.lift(a) for a in args]
            if all(a.truth for a in operands):
                return self.append(name, *operands)
        if name in SIGNS and any(isinstance(a, float) for a in args):
            raise TypeError(f"{SIGNS[name]} takes integers, got a float")
        if name == "select":
            cond, yes, no = self.truth(args[0]), self.lift(args[1]), self.lift(args[2])
            if not (yes.truth and no.truth):
                yes, no = self.number(yes), self.number(no)
            return self.append(name, cond, yes, no)
        return self.append(name, *[self.number(a) for a in args])

    def append(self, name: str, *args: Sym) -> Sym:
        """The step `name`, simplified where the tape does that."""
        simple = simplified(self, name, args) if self.simplify else None
        if simple is not None:
            return simple
        refs = tuple([a.ref for a in args])
        if name in COMMUTATIVE:
            refs = tuple(sorted(refs))
        truth = PRIMITIVES[name].gives_bool
        return self.add(name, refs, None, truth or (name in CARRY_TRUTH and args[-1].truth))

    def call(self, fn: ScalarFn, *args: Sym | Number) -> Sym:
        """`fn` of symbols: its steps, or one step where its derivative is declared."""
        symbols = [self.number(a) for a in args]
        if fn.whole:
            return self.add(fn, tuple([s.ref for s in symbols]), None, False)
        return self.number(fn.body.replay(symbols, self))

    def step_of(self, x: Sym) -> Step | None:
        """The step that gives `x`; None for an argument."""
        return self.steps[x.ref - self.arity] if x.ref >= self.arity else None

    def constant(self, x: Sym) -> Number | None:
        """The value of a constant, else None."""
        step = self.step_of(x)
        return step.value if step is not None and step.op == "const" else None

    def formula(self, result: Sym | Number) -> Formula:
        """The interned formula of `result`, without the steps it does not need."""
        root = self.lift(result)
        needed = {root.ref}
        for k in reversed(range(len(self.steps))):
            if self.arity + k in needed:
                needed.update(self.steps[k].refs)
        place = {k: k for k in range(self.arity)}
        steps: list[Step] = []
        for k, step in enumerate(self.steps, self.arity):
            if k in needed:
                place[k] = self.arity + len(steps)
                steps.append(Step(step.op, tuple([place[r] for r in step.refs]), step.value))
        key = (self.arity, place[root.ref], tuple((s.op, s.refs, key_of(s.value)) for s in steps))
        fresh = Formula(self.arity, tuple(steps), place[root.ref], root.truth)
        return _FORMULAS.setdefault(key, fresh)


def simplified(tape: Tape, name: str, args: tuple[Sym, ...]) -> Sym | None:
    """What `name` of `args` is without a step of its own, or None."""
    values = [tape.constant(a) for a in args]
    if name in _FOLD and None not in values:
        return tape.const(_FOLD[name](*values))
    if name == "add":
        return args[0] if values[1] == 0 else args[1] if values[0] == 0 else None
    if name == "sub":
        if values[0] == 0:
            return tape.op("neg", args[1])
        return args[0] if values[1] == 0 else None
    if name == "mul":
        return _simple_product(tape, args, values)
    if name == "div":
        return tape.const(0.0) if values[0] == 0 else args[0] if values[1] == 1 else None
    step = tape.step_of(args[0])
    if name == "neg" and step is not None and step.op == "neg":
        return Sym(tape, step.refs[0], False)
    return _simple_select(tape, args, values) if name == "select" else None


def _simple_product(tape: Tape, args: tuple[Sym, ...], values: list[Number | None]) -> Sym | None:
    if 0 in values:
        return tape.const(0.0)
    for k, other in ((0, args[1]), (1, args[0])):
        if values[k] == 1:
            return other
        if values[k] == -1:
            return tape.op("neg", other)
    for factor, other in (args, reversed(args)):
        step = tape.step_of(factor)
        if step is None or step.op != "select":
            continue
        cond, yes, no = (Sym(tape, r, k == 0) for k, r in enumerate(step.refs))
        # an exact 0 on one side: multiply inside, so that an infinity there cannot make it NaN
        if tape.constant(yes) == 0 or tape.constant(no) == 0:
            return tape.op("select", cond, yes * other, no * other)
    return None


def _simple_select(tape: Tape, args: tuple[Sym, ...], values: list[Number | None]) -> Sym | None:
    if args[1].ref == args[2].ref:
        return args[1]
    return (args[1] if values[0] else args[2]) if values[0] is not None else None


_FOLD: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
}


def _operator(name: str) -> Callable[[Sym, Operand], Sym]:
    """The method of an operator of Python."""

    def method(self: Sym, other: Operand) -> Sym:
        return self.tape.op(name, self, other)

    return method


def _swapped(name: str) -> Callable[[Sym, Operand], Sym]:
    """The same with the symbol on the right."""

    def method(self: Sym, other: Operand) -> Sym:
        return self.tape.op(name, other, self)

    return method


class Sym:
    """A value inside a formula that is being written; comparisons give truth values."""

    __slots__ = ("ref", "tape", "truth")
    __hash__ = None  # type: ignore[assignment]  # == writes a step

    def __init__(self, tape: Tape, ref: int, truth: bool) -> None:
        self.tape, self.ref, self.truth = tape, ref, truth

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("div"), _swapped("div")
    __lt__, __le__ = _operator("lt"), _operator("le")
    __gt__, __ge__ = _swapped("lt"), _swapped("le")
    __eq__: Any = _operator("eq")
    __ne__: Any = _operator("ne")
    __and__, __rand__ = _operator("and"), _swapped("and")
    __or__, __ror__ = _operator("or"), _swapped("or")
    __xor__, __rxor__ = _operator("xor"), _swapped("xor")
    __lshift__, __rlshift__ = _operator("shl"), _swapped("shl")
    __rshift__, __rrshift__ = _operator("shr"), _swapped("shr")

    def __neg__(self) -> Sym:
        return self.tape.op("neg", self)

    def __invert__(self) -> Sym:
        return self.tape.op("not", self)

    def __bool__(self) -> bool:
        raise GnomonError("a scalar function's argument has no truth value while it is compiled")


Operand: TypeAlias = "Sym | Number"


def write(arity: int, function: Callable[..., Operand], simplify: bool = False) -> Formula:
    """The formula that `function` builds when it is called with symbols.

    >>> write(2, lambda a, b: a * b + 1.0).used()
    (0, 1)
    """
    tape = Tape(arity, simplify)
    return tape.formula(function(*tape.symbols))


def select(cond: Operand, yes: Operand, no: Operand) -> Sym:
    """`yes` where `cond` holds, else `no`; at least one of them is a symbol."""
    return prim("select", cond, yes, no)


def prim(name: str, *args: Operand) -> Sym:
    """A primitive of symbols and numbers, at least one of them a symbol."""
    tape = next(a.tape for a in args if isinstance(a, Sym))
    return tape.op(name, *args)
