"""Builds the intermediate form of a native function: what all lowering rests on.

Lowering says of each object whether it is a new reference (`owned`) or someone else's (`borrowed`),
what consumes a reference (`take`), and what may run in a call (`runs`). It neither takes nor
releases references: `ownership.py` finds where that is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from gnomon.native.ir import (
    ANY,
    FAIL,
    Assign,
    Block,
    Branch,
    Define,
    Op,
    Register,
    Return,
    Take,
    Value,
)
from gnomon.native.kinds import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    OBJECT,
    PLAIN,
    WORDS,
    Kind,
    KitError,
)
from gnomon.native.known import NOTHING, Known, Narrow

RARE = "!prof !0"  # the first of two ways is taken rarely
ONCE = "!llvm.loop !1"  # a loop's body is written once
_WIDENED = {"i32": "sext i32 {} to i64", "float": "fpext float {} to double"}
_NARROWED = {"i32": "trunc i64 {} to i32", "float": "fptrunc double {} to float"}
_TEMPORARY = re.compile(r"%t\d+")
_SAME: tuple[Narrow, Narrow] = ({}, {})
_POINTERS = ("getelementptr", "load ptr", "select", "call ptr")  # results that point into operands


class Builder:
    """Appends operations to blocks; knows what holds of variables at the place it builds at."""

    def __init__(self, unit: Any, returns: Kind) -> None:
        self.unit = unit
        self.returns = returns
        self.registers: list[Register] = []
        self.allocas: list[str] = []
        self.variables: dict[str, Register] = {}
        self.known = NOTHING  # what holds here
        self._known_at: dict[str, Known] = {}  # what holds on all ways to a label so far
        self.line = 0
        self.catch = FAIL  # where errors go
        self.loops: list[Any] = []  # those here, the outermost first
        self.rests: list[str] = []  # of the collector, likewise: whether it was on before
        self._count = 0
        self._raises: dict[tuple[type, str, str, tuple[str, ...]], str] = {}
        self._sources: dict[str, int] = {}  # names in the text: the registers that keep it valid
        self._exact: dict[str, Register] = {}  # names in the text: the register with this object
        self.blocks: list[Block] = []
        self.at("start")

    # --- instructions ---------------------------------------------------------------------------

    def emit(self, text: str, runs: str = "") -> int:
        """Append an instruction; the registers that it uses, read off its text."""
        uses = 0
        for name in _TEMPORARY.findall(text):
            uses |= self._sources.get(name, 0)
        self.block.ops.append(Op(text, uses, runs))
        return uses

    def value(self, text: str, runs: str = "") -> str:
        """A name for the result of an instruction."""
        name = f"%t{self.number()}"
        uses = self.emit(f"{name} = {text}", runs)
        if uses and text.startswith(_POINTERS):
            self._sources[name] = uses
        return name

    def call(
        self, name: str, result: str, *given: Value, runs: str = "", fixed: int | None = None
    ) -> str:
        """Call a function in C; its result, "" where it has none.

        `fixed` are the arguments that it always takes, where there may be more.
        """
        types = [x.kind.llvm for x in given]
        if fixed is not None:
            types[fixed:] = ["..."]
        self.unit.declare(name, result, types)
        signature = result if fixed is None else f"{result} ({', '.join(types)})"
        text = f"call {signature} @{name}({', '.join(f'{x.kind.llvm} {x.text}' for x in given)})"
        if result == "void":
            self.emit(text, runs)
            return ""
        return self.value(text, runs)

    # --- blocks ---------------------------------------------------------------------------------

    def number(self) -> int:
        self._count += 1
        return self._count

    def label(self) -> str:
        return f"L{self.number()}"

    def at(self, label: str) -> None:
        """Begin a block; what holds there is what all ways to it know that were written so far."""
        self.block = Block(label)
        self.blocks.append(self.block)
        self.known = self._known_at.get(label, self.known)

    def join(self, label: str) -> bool:
        """Begin a block where ways meet; True where none comes."""
        if label not in self._known_at:
            return True
        self.at(label)
        return False

    def go(self, label: str, back: bool = False) -> None:
        self.block.ops.append(Branch((label,), hint=ONCE if back else ""))
        self._reach(label)

    def branch(
        self,
        truth: str,
        yes: str,
        no: str,
        rare: bool = False,
        known: tuple[Narrow, Narrow] = _SAME,
    ) -> None:
        """Go one way or the other; `known` is what that says of variables on either."""
        self.block.ops.append(Branch((yes, no), truth, RARE if rare else ""))
        self._reach(yes, known[0])
        self._reach(no, known[1])

    def _reach(self, label: str, narrow: Narrow = _SAME[0]) -> None:
        """One more way leads to a label."""
        known = self.known.where(narrow)
        self._known_at[label] = known.joined(self._known_at.get(label, known))

    def failure(self) -> str:
        """The label to go to with an error that is raised."""
        return self.catch

    def check(self, failed: str) -> None:
        """End with the error that is raised if that is so."""
        fine = self.label()
        self.branch(failed, self.failure(), fine, rare=True)
        self.at(fine)

    def refuse(self, wrong: str, cls: type, said: str, *told: Value) -> None:
        """End with an error of that class if something is wrong; its text tells of values."""
        known = cls, said, self.failure(), tuple(x.text for x in told)
        fine = self.label()
        raises = self._raises.get(known) or self.label()
        self.branch(wrong, raises, fine, rare=True)
        self._reach(self.failure())
        if known not in self._raises:
            self._raises[known] = raises
            self.at(raises)
            given = Value(f"@{cls.__name__}", OBJECT), Value(self.unit.text_symbol(said), WORDS)
            self.call("PyErr_Format", "ptr", *given, *told, fixed=2)
            self.go(self.failure())
        self.at(fine)

    # --- objects --------------------------------------------------------------------------------

    def owned(self, text: str, kind: Kind) -> Value:
        """The object of that name, which is a new reference."""
        return self._defined(text, kind, owned=True)

    def borrowed(self, text: str, kind: Kind) -> Value:
        """The object of that name, to which others hold the reference."""
        return self._defined(text, kind, owned=False)

    def _defined(self, text: str, kind: Kind, owned: bool) -> Value:
        register = self._register(text, kind, memory=False)
        uses = 0 if owned else self._sources.get(text, 0)
        self.block.ops.append(Define(register, owned, uses))
        self._sources[text], self._exact[text] = register.bit, register
        return Value(text, kind)

    def call_object(
        self, name: str, kind: Kind, *given: Value, runs: str = ANY, fixed: int | None = None
    ) -> Value:
        """Call a function in C for the new object that it returns, null for an error."""
        text = self.call(name, "ptr", *given, runs=runs, fixed=fixed)
        self.check(self.value(f"icmp eq ptr {text}, null"))
        return self.owned(text, kind)

    def take(self, value: Value) -> str:
        """The name of a reference of its own to a value, for what consumes one."""
        self.block.ops.append(Take(value.text, *self._origin(value)))
        if not value.text.startswith("%t"):
            return value.text
        name = f"%t{self.number()}"
        self.block.ops.append(Op(f"{name} = bitcast ptr {value.text} to ptr"))  # uses no register
        return name

    def release(self, text: str, runs: str) -> None:
        """Release a reference that was in memory, which may be null."""
        self.emit(f"call void @kit.drop(ptr {text})", runs)

    def use(self, value: Value) -> None:
        """A value stays until here."""
        self.block.ops.append(Op("", self._sources.get(value.text, 0)))

    def _origin(self, value: Value) -> tuple[Register | None, int]:
        return self._exact.get(value.text), self._sources.get(value.text, 0)

    def _register(self, text: str, kind: Kind, memory: bool, variable: bool = False) -> Register:
        register = Register(1 << len(self.registers), text, kind, memory, variable)
        self.registers.append(register)
        return register

    def result(self, value: Value) -> None:
        """Leave with a result."""
        for was_on in reversed(self.rests):
            self.end_rest(was_on)
        self.block.ops.append(Return(value.text, *self._origin(value)))

    def end_rest(self, was_on: str) -> None:
        """Have the collector start by itself again where it did before."""
        on, end = self.label(), self.label()
        self.branch(self.value(f"icmp ne i32 {was_on}, 0"), on, end)
        self.at(on)
        self.call("PyGC_Enable", "i32")
        self.go(end)
        self.at(end)

    # --- variables ------------------------------------------------------------------------------

    def alloca(self, text: str, kind: Kind, variable: bool = False) -> Register:
        """A place in memory; numbers have no owner."""
        if kind.is_object:
            return self._register(text, kind, memory=True, variable=variable)
        self.allocas.append(f"{text} = alloca {kind.llvm}")
        return Register(0, text, kind, True, variable)

    def temporary(self, kind: Kind) -> Register:
        """A place for what several ways set."""
        return self.alloca(f"%c{self.number()}", kind)

    def put_in(self, place: Register, value: Value) -> None:
        """Set what is in memory."""
        if place.kind.is_object:
            place.kind = _joined(place.kind, value.kind, place.text)
            self.block.ops.append(Assign(place, value.text, *self._origin(value)))
        else:
            self.emit(f"store {place.kind.llvm} {value.text}, ptr {place.text}")

    def loaded(self, place: Register, **known: Any) -> Value:
        """What is in memory."""
        text = f"%t{self.number()}"
        self.block.ops.append(Op(f"{text} = load {place.kind.llvm}, ptr {place.text}", place.bit))
        self._sources[text], self._exact[text] = place.bit, place
        return Value(text, place.kind, **known)

    def declare(self, name: str, kind: Kind) -> None:
        """A variable holds what is of a kind; it is made now if it is new."""
        known = self.variables.get(name)
        if known is None:
            self.variables[name] = self.alloca(f"%v{name}", kind, variable=True)
        else:
            known.kind = _joined(known.kind, kind, name)

    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""
        self.declare(name, value.kind)
        self.known = self.known.after(name, value.optional, value.fresh)
        self.put_in(self.variables[name], value)

    def unset(self, name: str) -> None:
        """A variable has no value from here on."""
        self.known = self.known._replace(values=self.known.values - {name})

    def read(self, name: str) -> Value:
        """What a variable holds."""
        if name not in self.known.values:
            raise KitError(f"{name!r} may not be set here")
        place = self.variables[name]
        optional = place.kind.is_object and name in self.known.optional
        return self.loaded(place, name=name, optional=optional)

    def no_none(self, value: Value, cls: type, said: str) -> Value:
        """A value that is not None: a slot may have changed since it was compared with None."""
        if value.optional:
            self.refuse(self.value(f"icmp eq ptr {value.text}, @None"), cls, said)
        return value

    # --- numbers in registers and as objects, values in the form that is expected ---------------

    def unboxed(self, value: Value) -> Value:
        """A number or truth in a register, from the object that it is."""
        kind, text = value.kind, value.text
        if kind.llvm in PLAIN:
            return value
        if kind.cls is bool:
            return Value(self.value(f"icmp eq ptr {text}, @True"), BOOL)
        if kind.cls is int:
            made = Value(self.call("PyLong_AsLongLong", "i64", value), INT)
        elif kind.cls is float:
            made = Value(self.call("PyFloat_AsDouble", "double", value), FLOAT)
        else:
            raise KitError(f"a number is needed, not {kind}")
        if not value.trusted:
            self.check_number(made)
        return made

    def check_number(self, value: Value) -> None:
        """End with an error if a number stands for one."""
        if value.kind == BOOL:
            return
        test = "icmp eq i64" if value.kind == INT else "fcmp oeq double"
        odd = self.value(f"{test} {value.text}, {-1 if value.kind == INT else '-1.0'}")
        self.raise_pending(odd, rare=True)

    def raise_pending(self, odd: str, rare: bool) -> None:
        """End with the error that an odd answer may stand for, if one was raised."""
        maybe, fine = self.label(), self.label()
        self.branch(odd, maybe, fine, rare)
        self.at(maybe)
        self.check(self.value(f"icmp ne ptr {self.call('PyErr_Occurred', 'ptr')}, null"))
        self.go(fine)
        self.at(fine)

    def is_absent(self, found: str) -> str:
        """Whether a function in C found nothing; ends with the error if one was raised."""
        absent = self.value(f"icmp eq ptr {found}, null")
        self.raise_pending(absent, rare=False)
        return absent

    def boxed(self, value: Value) -> Value:
        """The object of a number or truth."""
        kind, text = value.kind, value.text
        if kind == BOOL:
            truth = self.value(f"select i1 {text}, ptr @True, ptr @False")
            return Value(truth, Kind("ptr", bool))
        if kind not in (INT, FLOAT):
            if not kind.is_object:
                raise KitError(f"an object is needed, not {kind}")
            return value
        if value.number is not None and -5 <= value.number <= 256:
            return Value(self.unit.literal(value.number), Kind("ptr", int))
        name = "PyLong_FromLongLong" if kind == INT else "PyFloat_FromDouble"
        return self.call_object(name, Kind("ptr", kind.cls), value, runs="")

    def fine(self, status: str, type: str = "i32") -> None:
        """End with an error if a status is below 0."""
        self.check(self.value(f"icmp slt {type} {status}, 0"))

    def call_status(self, name: str, *given: Value, runs: str = ANY) -> Value:
        """Call a function in C whose status is below 0 for an error; gives None."""
        self.fine(self.call(name, "i32", *given, runs=runs))
        return Value("@None", NONE)

    def wide(self, text: str, width: str) -> Value:
        """A number of memory, or of C, in a register."""
        how = _WIDENED.get(width, "")
        kind = FLOAT if width in ("float", "double") else INT
        return Value(self.value(how.format(text)) if how else text, kind)

    def narrow_to(self, value: Value, width: str, what: str) -> str:
        """A number as memory, or C, has it."""
        kind = FLOAT if width in ("float", "double") else INT
        text, how = self.fitted(value, kind, what).text, _NARROWED.get(width, "")
        return self.value(how.format(text)) if how else text

    def load_word(self, at: str, width: str) -> Value:
        """The number that lies at a place in memory."""
        return self.wide(self.value(f"load {width}, ptr {at}, align 4"), width)

    def store_word(self, at: str, width: str, value: Value, what: str) -> None:
        """Have a number lie at a place in memory."""
        self.emit(f"store {width} {self.narrow_to(value, width, what)}, ptr {at}, align 4")

    def pointer(self, address: Value, kind: Kind) -> Value:
        """What lies at an address."""
        return Value(self.value(f"inttoptr i64 {address.text} to ptr"), kind)

    def fitted(self, value: Value, kind: Kind, what: str) -> Value:
        """A value in the form of a kind; KitError where it is of another."""
        if kind.llvm in PLAIN:
            value = self.unboxed(value)
        elif kind.is_object:
            value = self.boxed(value)
        if kind.llvm != value.kind.llvm or kind.is_object != value.kind.is_object:
            raise KitError(f"{what}: {kind} is expected, not {value.kind}")
        wanted, cls = kind.cls, value.kind.cls
        if not kind.is_object or wanted is object or cls in (wanted, type(None)):
            return value
        if isinstance(cls, type) and isinstance(wanted, type) and issubclass(cls, wanted):
            return value
        raise KitError(f"{what}: {kind} is expected, not {value.kind}; say `cast`")


def stored(body: Iterable[ast.AST]) -> set[str]:
    """The variables that statements set."""
    names = set()
    for node in body:
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        for part in ("body", "orelse", "handlers"):
            names |= stored(getattr(node, part, ()))
    return names


def _joined(known: Kind, kind: Kind, name: str) -> Kind:
    """The kind of what holds values of both."""
    if known == kind or kind.cls is type(None) or (known == INT and kind.cls is int):
        return known
    if known.cls is type(None) and kind.is_object:
        return kind
    if known.is_object and kind.is_object:
        if issubclass(kind.cls, known.cls):
            return kind if kind.cls is known.cls and not known.items else known
        return kind if issubclass(known.cls, kind.cls) else OBJECT
    raise KitError(f"{name!r} is {known} and {kind}")
