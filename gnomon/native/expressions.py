"""Expressions of native functions: one method for each kind of Python's, named after it."""

from __future__ import annotations

import ast
import builtins
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MemberDescriptorType, ModuleType
from typing import Any

from gnomon.native.convert import Conversions
from gnomon.native.emit import Facts, Value
from gnomon.native.kinds import (
    BOOL,
    FLOAT,
    GIVEN,
    INT,
    NONE,
    OBJECT,
    SIZED,
    Kind,
    KitError,
    has_parts,
    kind_of,
    named,
    slot_of,
    word_type,
)
from gnomon.native.words import Parts

Narrow = dict[str, Kind]  # variables' kinds, where they were compared

_COMPARED: dict[type, tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip
_WHOLE: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.RShift: "ashr", ast.LShift: "shl",
}  # fmt: skip
_REAL: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul"}


class Expressions(Conversions):
    """Values of expressions; `space` holds what the function's names mean outside it."""

    def __init__(self, unit: Any, returns: Kind, before: Facts, space: Mapping[str, Any]) -> None:
        super().__init__(unit, returns, before)
        self.space = space
        self.given: dict[str, Value] = {}  # parameters that are never set
        self.locals: set[str] = set()

    def of(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.line = getattr(node, "lineno", self.line)
        self.position = self.line, getattr(node, "col_offset", 0)
        known, thing = self.constant(node)
        if known:
            return self.thing(thing, node)
        method = getattr(self, "of_" + type(node).__name__, None)
        if method is None:
            raise KitError(f"{ast.unparse(node)!r} is not supported")
        value: Value = method(node)
        return value

    def plain(self, node: ast.expr) -> Value:
        """The value of an expression as a number or truth."""
        return self.unboxed(self.of(node))

    def operands(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The values of several expressions, each of which stays while the others are found."""
        found = []
        for k, node in enumerate(nodes):
            value = self.of(node)
            if not all(self.is_simple(other) for other in nodes[k + 1 :]):
                value = self.hold(value)
            found.append(value)
        self.use(found)
        return found

    def use(self, values: Sequence[Value]) -> None:
        """The variables among them are needed until now."""
        for value in values:
            name = value.name or value.root
            if name is not None:
                self.used(name)

    def is_simple(self, node: ast.expr) -> bool:
        """Whether an expression can neither fail nor run other code."""
        return isinstance(node, (ast.Constant, ast.Name)) or self.constant(node)[0]

    # --- names and constants --------------------------------------------------------------------

    def constant(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether an expression means the same at all times, and what."""
        if isinstance(node, ast.Constant):
            return True, node.value
        if isinstance(node, ast.Name):
            return self.global_(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            known, thing = self.constant(node.operand)
            return (True, -thing) if known and type(thing) in (int, float) else (False, None)
        if isinstance(node, ast.Attribute):
            known, owner = self.constant(node.value)
            if known and isinstance(owner, (type, ModuleType)) and hasattr(owner, node.attr):
                found = getattr(owner, node.attr)
                return not isinstance(found, MemberDescriptorType), found
        return False, None

    def global_(self, name: str) -> tuple[bool, Any]:
        if name in self.locals:
            return False, None
        if name in self.space:
            return True, self.space[name]
        if hasattr(builtins, name):
            return True, getattr(builtins, name)
        raise KitError(f"no {name!r} is known")

    def thing(self, thing: Any, node: ast.expr | None = None) -> Value:
        """A thing that is there for good: a number as such, an object by its address."""
        if type(thing) is int and not isinstance(node, ast.Constant):
            self.unit.rely(named(node) if node else "", thing, self.space)
        if type(thing) is int:
            return Value(str(thing), INT, steady=True)
        if type(thing) is float:
            return Value(f"0x{struct.pack('>d', thing).hex()}", FLOAT, steady=True)
        shown = repr(thing) if node is None or isinstance(node, ast.Constant) else named(node)
        kind = NONE if thing is None else Kind("ptr", type(thing))
        said = self.space.get("__annotations__", {}).get(shown)  # of a module's variable
        if said is not None and isinstance(node, ast.Name):
            kind = kind_of(said, self.space, plain=False)
        return Value(self.unit.symbol(thing, shown, self.space), kind, steady=True)

    def of_Name(self, node: ast.Name) -> Value:
        self.fresh.pop(node.id, None)  # it may have another name from here on
        value = self.given.get(node.id) or self.read(node.id)
        kind = self.narrow.get(node.id)
        if kind is None or (value.kind.cls is not object and issubclass(value.kind.cls, kind.cls)):
            return value
        return replace(value, kind=kind)

    def of_Attribute(self, node: ast.Attribute) -> Value:
        owner = self.of(node.value)
        if word_type(owner.kind.cls) is not None and node.attr == "address":
            return Value(self.value(f"ptrtoint ptr {owner.text} to i64"), INT)
        own = getattr(self, f"{getattr(owner.kind.cls, '__name__', '')}_{node.attr}", None)
        if own is not None:
            value: Value = own(self.firm(owner))
            return value
        return self.slot(self.firm(owner), node.attr)

    def slot(self, owner: Value, name: str) -> Value:
        """What a slot of an object holds."""
        found = slot_of(owner.kind.cls, name)
        at = self.slot_at(owner, name)
        text = self.value(f"load ptr, ptr {at}")
        if not found.sure:
            none = self.value(f"icmp eq ptr {text}, null")
            self.refuse(none, AttributeError, f"{owner.kind}.{name} is not set")
        if not found.refusing and has_parts(found.kind.cls):
            self.refuse_others(text, found.kind, found.optional, f"{owner.kind}.{name}")
        sure = found.sure or found.inner
        if not found.final:
            return Value(text, found.kind, sure=sure)
        root = owner.name or owner.root
        return Value(text, found.kind, steady=owner.steady, root=root, sure=sure)

    def class_at(self, text: str) -> str:
        """The class of an object."""
        at = self.value(f"getelementptr i8, ptr {text}, i64 {self.unit.type_offset()}")
        return self.value(f"load ptr, ptr {at}")

    def refuse_others(self, text: str, kind: Kind, optional: bool, what: str) -> None:
        """End with a TypeError for an object of another class, or None unless that may be."""
        fine, look = self.label(), self.label()
        if optional:
            self.branch(self.value(f"icmp eq ptr {text}, @None"), fine, look)
            self.at(look)
        found, wanted = self.class_at(text), self.unit.class_symbol(kind.cls)
        home = kind.cls.__module__  # of Python's own classes, others than gnomon's have no names
        usual = [c for c in kind.cls.__subclasses__() if home == c.__module__ != "builtins"]
        for cls in (*usual, kind.cls):
            below = self.label()
            same = self.value(f"icmp eq ptr {found}, {self.unit.class_symbol(cls)}")
            self.branch(same, fine, below)
            self.at(below)
        fits = self.value(f"call i1 @kit.is(ptr {text}, ptr {wanted})")
        self.refuse(self.value(f"xor i1 {fits}, true"), TypeError, f"{what}: {kind} is expected")
        self.go(fine)
        self.at(fine)

    def slot_at(self, owner: Value, name: str) -> str:
        """Where a slot lies."""
        self.unit.rely_slot(owner.kind.cls, name)
        offset = slot_of(owner.kind.cls, name).offset
        return self.value(f"getelementptr i8, ptr {owner.text}, i64 {offset}")

    # --- elements -------------------------------------------------------------------------------

    def of_Subscript(self, node: ast.Subscript) -> Value:
        owner, index = self.operands([node.value, node.slice])
        known, number = self.constant(node.slice)
        return self.element(owner, self.unboxed(index), number if known else None)

    def element(self, owner: Value, index: Value, number: int | None = None) -> Value:
        """What stands at a place of words, a list or a tuple."""
        if word_type(owner.kind.cls) is not None:
            at, width = self.word(owner, index)
            text = self.value(f"load {width}, ptr {at}, align 4")
            if width == "double":
                return Value(text, FLOAT)
            return Value(text if width == "i64" else self.value(f"sext i32 {text} to i64"), INT)
        if owner.kind == GIVEN:
            outside = self.value(f"icmp uge i64 {index.text}, {self.size(owner)}")
            self.refuse(outside, IndexError, "tuple index out of range")
            first = self.value(f"extractvalue {GIVEN.llvm} {owner.text}, 0")
            at = self.value(f"getelementptr ptr, ptr {first}, i64 {index.text}")
            return Value(self.value(f"load ptr, ptr {at}"), OBJECT, steady=True)
        if owner.kind.cls not in (list, tuple, Parts, deque):
            raise KitError(f"elements of {owner.kind} are not supported")
        owner = self.firm(owner)
        if owner.kind.cls is deque:
            found = self.call("PySequence_GetItem", "ptr", ("ptr", owner.text), ("i64", index.text))
            made = self.hold(self.made(found, owner.kind.item()))
            if has_parts(made.kind.cls):
                self.refuse_others(made.text, made.kind, False, f"an element of a {owner.kind}")
            return made
        text = self.from_end(owner, index, number)
        name = "PyList_GetItem" if owner.kind.cls is list else "PyTuple_GetItem"
        found = self.call(name, "ptr", ("ptr", owner.text), ("i64", text))
        self.check(self.value(f"icmp eq ptr {found}, null"))
        steady, kind = owner.steady and owner.kind.cls is tuple, owner.kind.item(number)
        if has_parts(kind.cls) and not (owner.sure and owner.kind.cls is tuple):
            self.refuse_others(found, kind, False, f"an element of a {owner.kind}")
        return Value(found, kind, steady=steady)

    def word(self, owner: Value, index: Value) -> tuple[str, str]:
        """Where a word lies, and LLVM's type of it."""
        width = word_type(owner.kind.cls) or ""
        at = f"getelementptr {width}, ptr {owner.text}, i64 {index.text}"
        return self.value(at), width

    def from_end(self, owner: Value, index: Value, number: int | None) -> str:
        """An index as the functions in C take it: those known to be below 0 count from the end."""
        if number is None or number >= 0:
            return index.text
        return self.value(f"add i64 {self.size(owner)}, {number}")

    def size(self, owner: Value) -> str:
        """The number of elements."""
        if owner.kind == GIVEN:
            return self.value(f"extractvalue {GIVEN.llvm} {owner.text}, 1")
        sizes = {list: "PyList_Size", tuple: "PyTuple_Size", dict: "PyDict_Size"}
        name = sizes.get(owner.kind.cls, "PyObject_Size")
        text = self.call(name, "i64", ("ptr", owner.text))
        if owner.kind.cls not in sizes:
            if owner.kind.cls not in SIZED:
                self.runs("all")
            self.fine(text, "i64")
        return text

    def of_Tuple(self, node: ast.Tuple) -> Value:
        values = [self.boxed(v) for v in self.operands(node.elts)]
        return self.packed(values)

    def packed(self, values: Sequence[Value]) -> Value:
        """A new tuple of objects."""
        items = tuple(v.kind for v in values)
        given = [("i64", str(len(values))), ("ptr", "..."), *(("ptr", v.text) for v in values)]
        made = self.guarded(values, lambda: self.call("PyTuple_Pack", "ptr", *given), "all")
        return self.made(made, Kind("ptr", tuple, items, True))

    def of_List(self, node: ast.List) -> Value:
        values = [self.boxed(v) for v in self.operands(node.elts)]
        make = lambda: self.call("PyList_New", "ptr", ("i64", "0"))  # noqa: E731
        made = self.made(self.guarded(values, make, "all", False), Kind("ptr", list))
        if not values:
            return made
        held = self.hold(made)
        for value in values:
            status = self.call("PyList_Append", "i32", ("ptr", held.text), ("ptr", value.text))
            self.drop(value)
            self.fine(status)
        return held

    def guarded(
        self, values: Sequence[Value], act: Callable[[], str], runs: str, drop: bool = True
    ) -> str:
        """What `act` gives, which may run other code: meanwhile all values stay.

        Those that are owned are let go of afterwards.
        """
        loose = [v for v in values if v.kind.is_object and not v.owned and not v.steady]
        loose = [v for v in loose if not v.name and not v.root] if runs else []
        for value in loose:
            self.increase(value.text)
        text = act()
        self.runs(runs)
        self.use(values)
        for value in loose:
            self.decrease(value.text)
        if drop:
            for value in values:
                if value.kind.is_object:
                    self.drop(value)
        return text

    # --- truths ---------------------------------------------------------------------------------

    def condition(self, node: ast.expr, yes: str, no: str) -> tuple[Narrow, Narrow]:
        """Go one way or the other; what is known of variables' classes on either."""
        if isinstance(node, ast.BoolOp):
            return self.conditions(node, yes, no)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.condition(node.operand, no, yes)[::-1]
        found = self.of_class(node)
        self.branch(self.truth(self.of(node)), yes, no)
        return found

    def conditions(self, node: ast.BoolOp, yes: str, no: str) -> tuple[Narrow, Narrow]:
        """Go on from one condition to the next, as long as that is needed."""
        before, both = self.narrow, isinstance(node.op, ast.And)
        known: Narrow = {}
        for part in node.values:
            last = part is node.values[-1]
            more = (yes if both else no) if last else self.label()
            found = self.condition(part, *((more, no) if both else (yes, more)))
            known |= found[0 if both else 1]
            self.narrow = before | known
            if not last:
                self.at(more)
        self.narrow = before
        return (known, {}) if both else ({}, known)

    def of_class(self, node: ast.expr) -> tuple[Narrow, Narrow]:
        """What `type(x) is C` or `isinstance(x, C)` says where it is true, and where not."""
        match node:
            case ast.Compare(
                left=ast.Call(func=ast.Name("type"), args=[ast.Name(name)]),
                ops=[ast.Is() | ast.IsNot() as how],
                comparators=[cls],
            ):
                yes = isinstance(how, ast.Is)
            case ast.Call(func=ast.Name("isinstance"), args=[ast.Name(name), cls]):
                yes = True
            case _:
                return {}, {}
        known, thing = self.constant(cls)
        found = {name: Kind("ptr", thing)} if known and isinstance(thing, type) else {}
        return (found, {}) if yes else ({}, found)

    def truth(self, value: Value) -> str:
        """Whether a value counts as true."""
        if value.kind == BOOL:
            return value.text
        if value.kind in (INT, FLOAT):
            return self.compared(value, Value("0" if value.kind == INT else "0.0", value.kind), 1)
        if value.kind.cls is bool:
            return self.unboxed(value).text
        if not value.kind.is_object:
            raise KitError(f"{value.kind} has no truth")
        if value.kind.cls in (list, tuple, dict):
            return self.value(f"icmp ne i64 {self.size(self.firm(value))}, 0")
        runs = "" if value.kind.cls in SIZED else "all"
        ask = lambda: self.call("PyObject_IsTrue", "i32", ("ptr", value.text))  # noqa: E731
        status = self.guarded([value], ask, runs)
        self.fine(status)
        return self.value(f"icmp ne i32 {status}, 0")

    def compared(self, a: Value, b: Value, operator: int) -> str:
        """Whether two numbers differ (1), or are equal (0)."""
        how = _COMPARED[(ast.Eq, ast.NotEq)[operator]]
        return self.value(f"{_instruction(a.kind, how)} {a.text}, {b.text}")

    def chosen(self, cases: Sequence[tuple[str, Callable[[], Value]]]) -> Value:
        """The value of whichever case the flow comes to; each begins at its label."""
        name, end = self.hidden(), self.label()
        known = set(self.set)
        for label, make in cases:
            self.set = set(known)
            self.at(label)
            value = make()
            wanted = self.facts.kinds.get(name)
            if wanted is not None and wanted.is_object:
                value = self.boxed(value)
            self.assign(name, value)
            self.go(end)
        self.at(end)
        return self.read(name)

    def of_BoolOp(self, node: ast.expr) -> Value:
        yes, no = self.label(), self.label()
        self.condition(node, yes, no)
        truths = {yes: Value("true", BOOL), no: Value("false", BOOL)}
        return self.chosen([(label, partial(truths.__getitem__, label)) for label in truths])

    def of_IfExp(self, node: ast.IfExp) -> Value:
        yes, no, before = self.label(), self.label(), self.narrow
        found = self.condition(node.test, yes, no)

        def way(part: ast.expr, known: Narrow) -> Value:
            self.narrow = before | known
            return self.of(part)

        ways = (yes, partial(way, node.body, found[0])), (no, partial(way, node.orelse, found[1]))
        made = self.chosen(ways)
        self.narrow = before
        return made

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            truth = self.truth(self.of(node.operand))
            return Value(self.value(f"xor i1 {truth}, true"), BOOL)
        value = self.plain(node.operand)
        if isinstance(node.op, ast.USub) and value.kind == FLOAT:
            return Value(self.value(f"fneg double {value.text}"), FLOAT)
        if isinstance(node.op, ast.USub) and value.kind == INT:
            return Value(self.value(f"sub i64 0, {value.text}"), INT)
        if isinstance(node.op, ast.Invert) and value.kind == INT:
            return Value(self.value(f"xor i64 {value.text}, -1"), INT)
        raise KitError(f"{ast.unparse(node)!r} is not supported")

    def of_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            raise KitError("comparisons in a row are not supported")
        a, b = self.operands([node.left, node.comparators[0]])
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self.identity(a, b, "eq" if isinstance(operator, ast.Is) else "ne")
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self.contained(a, b, isinstance(operator, ast.In))
        a, b = self.alike(a, b)
        how = _instruction(a.kind, _COMPARED[type(operator)])
        return Value(self.value(f"{how} {a.text}, {b.text}"), BOOL)

    def identity(self, a: Value, b: Value, how: str) -> Value:
        a, b = (self.boxed(x) if x.kind == BOOL else x for x in (a, b))
        if not (a.kind.is_object and b.kind.is_object):
            raise KitError(f"`is` compares objects, not {a.kind} and {b.kind}")
        made = Value(self.value(f"icmp {how} ptr {a.text}, {b.text}"), BOOL)
        self.drop(a)
        self.drop(b)
        return made

    def contained(self, key: Value, owner: Value, yes: bool) -> Value:
        if owner.kind.cls is not dict:
            raise KitError(f"`in` asks dictionaries, not {owner.kind}")
        key = self.boxed(key)
        given = ("ptr", owner.text), ("ptr", key.text)
        ask = lambda: self.call("PyDict_Contains", "i32", *given)  # noqa: E731
        status = self.guarded([key, owner], ask, "all")
        self.fine(status)
        return Value(self.value(f"icmp {'ne' if yes else 'eq'} i32 {status}, 0"), BOOL)

    def alike(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Two numbers of one kind."""
        a, b = self.unboxed(a), self.unboxed(b)
        if FLOAT in (a.kind, b.kind):
            a, b = self.real(a), self.real(b)
        if a.kind != b.kind:
            raise KitError(f"{a.kind} and {b.kind} do not go together")
        return a, b

    def real(self, value: Value) -> Value:
        """A number as a float."""
        if value.kind != INT:
            return value
        return Value(self.value(f"sitofp i64 {value.text} to double"), FLOAT)

    def of_BinOp(self, node: ast.BinOp) -> Value:
        a, b = self.operands([node.left, node.right])
        kind = type(node.op)
        if word_type(a.kind.cls) is not None and kind is ast.Add:
            return Value(self.word(a, self.unboxed(b))[0], a.kind)
        a, b = self.alike(a, b)
        name = (_REAL if a.kind == FLOAT else _WHOLE if a.kind == INT else {}).get(kind)
        if name is None:
            raise KitError(f"{ast.unparse(node)!r} is not supported for {a.kind}")
        if kind in (ast.RShift, ast.LShift) and not self.is_shift(node.right):
            raise KitError("shifts are by 0 to 63: a constant, or `x & 63`")
        return Value(self.value(f"{name} {a.kind.llvm} {a.text}, {b.text}"), a.kind)

    def is_shift(self, node: ast.expr) -> bool:
        """Whether a number is known to be one of 0 to 63."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            node = node.right
        known, number = self.constant(node)
        return known and type(number) is int and 0 <= number < 64


def _instruction(kind: Kind, how: tuple[str, str]) -> str:
    if kind == FLOAT:
        return f"fcmp {how[1]} double"
    return f"icmp {how[0]} {kind.llvm}"
