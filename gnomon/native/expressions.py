"""Names, constants, slots and elements in native functions.

Each kind of expression of Python's has a method, named after it, here and in `operators.py`.
"""

from __future__ import annotations

import ast
import builtins
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from types import MemberDescriptorType, ModuleType
from typing import Any

from gnomon.native.builder import Builder
from gnomon.native.ir import ANY, Value
from gnomon.native.kinds import (
    BOOL,
    FLOAT,
    GIVEN,
    INT,
    NONE,
    OBJECT,
    SIZED,
    WORDS,
    Kind,
    KitError,
    has_parts,
    kind_of,
    named,
    slot_of,
    word_type,
)
from gnomon.native.words import Parts


class Expressions(Builder):
    """Values of expressions; `space` holds what the function's names mean outside it."""

    def __init__(self, unit: Any, returns: Kind, space: Mapping[str, Any]) -> None:
        super().__init__(unit, returns)
        self.space = space
        self.given: dict[str, Value] = {}  # parameters that are never set
        self.locals: set[str] = set()

    def of(self, node: ast.expr) -> Value:
        """The value of an expression."""
        self.line = getattr(node, "lineno", self.line)
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
        """The values of several expressions."""
        return [self.of(node) for node in nodes]

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
        if type(thing) is int:
            self._rely(thing, node)
            return Value(str(thing), INT)
        if type(thing) is bool:
            return Value(str(thing).lower(), BOOL)
        if type(thing) is float:
            return Value(f"0x{struct.pack('>d', thing).hex()}", FLOAT)
        shown = repr(thing) if node is None or isinstance(node, ast.Constant) else named(node)
        kind = NONE if thing is None else Kind("ptr", type(thing))
        said = self.space.get("__annotations__", {}).get(shown)  # of a module's variable
        if said is not None and isinstance(node, ast.Name):
            kind = kind_of(said, self.space, plain=False)
        return Value(self.unit.symbol(thing, shown, self.space), kind)

    def _rely(self, number: int, node: ast.expr | None) -> None:
        """Note which name the number came from, if it is no literal."""
        if isinstance(node, ast.UnaryOp):
            self._rely(-number, node.operand)
        elif not isinstance(node, ast.Constant):
            self.unit.rely(named(node) if node else "", number, self.space)

    def of_Name(self, node: ast.Name) -> Value:
        self.known = self.known.without_fresh(node.id)  # it may have another name from here on
        value = self.given.get(node.id) or self.read(node.id)
        kind = self.known.narrow.get(node.id)
        if kind is None or (value.kind.cls is not object and issubclass(value.kind.cls, kind.cls)):
            return value
        return value._replace(kind=kind)

    def of_Attribute(self, node: ast.Attribute) -> Value:
        owner = self.owner_of(node)
        if word_type(owner.kind.cls) is not None and node.attr == "address":
            return Value(self.value(f"ptrtoint ptr {owner.text} to i64"), INT)
        own = getattr(self, f"{getattr(owner.kind.cls, '__name__', '')}_{node.attr}", None)
        if own is not None:
            value: Value = own(owner)
            return value
        return self.slot(owner, node.attr)

    def owner_of(self, node: ast.Attribute) -> Value:
        """What has an attribute."""
        said = f"'NoneType' object has no attribute {node.attr!r}"
        return self.no_none(self.of(node.value), AttributeError, said)

    def slot(self, owner: Value, name: str) -> Value:
        """What a slot of an object holds."""
        found = slot_of(owner.kind.cls, name)
        at = self.slot_at(owner, name)
        text = self.value(f"load ptr, ptr {at}")
        if not found.trusted:
            none = self.value(f"icmp eq ptr {text}, null")
            self.refuse(none, AttributeError, f"{owner.kind}.{name} is not set")
        if not found.refusing and has_parts(found.kind.cls):
            self.refuse_others(text, found.kind, found.optional, f"{owner.kind}.{name}")
        made = Value(text, found.kind) if found.final else self.borrowed(text, found.kind)
        return made._replace(trusted=found.trusted or found.inner, optional=found.optional)

    def class_at(self, text: str) -> str:
        """The class of an object."""
        at = self.value(f"getelementptr i8, ptr {text}, i64 {self.unit.type_offset}")
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
        if isinstance(node.slice, ast.Slice):
            return self.part(node, node.slice)
        owner, index = self.operands([node.value, node.slice])
        return self.element(owner, self.unboxed(index))

    def part(self, node: ast.Subscript, part: ast.Slice) -> Value:
        """Some neighbouring bytes."""
        if part.lower is None or part.upper is None or part.step is not None:
            raise KitError(f"{ast.unparse(node)!r}: a slice needs a start and an end, and no step")
        owner, *bounds = self.operands([node.value, part.lower, part.upper])
        if owner.kind.cls is not bytes:
            raise KitError(f"slices of {owner.kind} are not supported")
        places = [f"%w{self.number()}" for _ in bounds]
        self.allocas += [f"{place} = alloca i64" for place in places]
        for place, bound in zip(places, bounds, strict=True):
            self.emit(f"store i64 {self.unboxed(bound).text}, ptr {place}")
        given = [Value(self.size(owner), INT), *(Value(place, WORDS) for place in places)]
        count = self.call("PySlice_AdjustIndices", "i64", *given, Value("1", INT))
        start = self.value(f"load i64, ptr {places[0]}")
        data = Value(self.byte_at(owner, start), WORDS), Value(count, INT)
        return self.call_object("PyBytes_FromStringAndSize", owner.kind, *data, runs="")

    def byte_at(self, owner: Value, index: str) -> str:
        """Where one of some bytes lies."""
        first = self.call("PyBytes_AsString", "ptr", owner)
        return self.value(f"getelementptr i8, ptr {first}, i64 {index}")

    def element(self, owner: Value, index: Value) -> Value:
        """What stands at a place of words, a list or a tuple."""
        if word_type(owner.kind.cls) is not None:
            return self.load_word(*self.word(owner, index))
        if owner.kind == GIVEN:
            outside = self.value(f"icmp uge i64 {index.text}, {self.size(owner)}")
            self.refuse(outside, IndexError, "tuple index out of range")
            first = self.value(f"extractvalue {GIVEN.llvm} {owner.text}, 0")
            at = self.value(f"getelementptr ptr, ptr {first}, i64 {index.text}")
            return Value(self.value(f"load ptr, ptr {at}"), OBJECT)
        if owner.kind.cls not in (list, tuple, Parts, deque):
            raise KitError(f"elements of {owner.kind} are not supported")
        if owner.kind.cls is deque:
            made = self.call_object("PySequence_GetItem", owner.kind.item(), owner, index, runs="")
            if has_parts(made.kind.cls):
                self.refuse_others(made.text, made.kind, False, f"an element of a {owner.kind}")
            return made
        name = "PyList_GetItem" if owner.kind.cls is list else "PyTuple_GetItem"
        found = self.call(name, "ptr", owner, self.from_end(owner, index))
        self.check(self.value(f"icmp eq ptr {found}, null"))
        kind = owner.kind.item(index.number)
        if has_parts(kind.cls) and not (owner.trusted and owner.kind.cls is tuple):
            self.refuse_others(found, kind, False, f"an element of a {owner.kind}")
        return Value(found, kind) if owner.kind.cls is tuple else self.borrowed(found, kind)

    def word(self, owner: Value, index: Value) -> tuple[str, str]:
        """Where a word lies, and LLVM's type of it."""
        width = word_type(owner.kind.cls) or ""
        at = f"getelementptr {width}, ptr {owner.text}, i64 {index.text}"
        return self.value(at), width

    def from_end(self, owner: Value, index: Value) -> Value:
        """An index as the functions in C take it: those known to be below 0 count from the end."""
        if index.number is None or index.number >= 0:
            return index
        return Value(self.value(f"add i64 {self.size(owner)}, {index.number}"), INT)

    def size(self, owner: Value) -> str:
        """The number of elements."""
        if owner.kind == GIVEN:
            return self.value(f"extractvalue {GIVEN.llvm} {owner.text}, 1")
        sizes = {list: "PyList_Size", tuple: "PyTuple_Size", dict: "PyDict_Size"}
        name = sizes.get(owner.kind.cls, "PyObject_Size")
        runs = "" if owner.kind.cls in SIZED else ANY
        text = self.call(name, "i64", owner, runs=runs)
        if owner.kind.cls not in sizes:
            self.fine(text, "i64")
        return text

    def of_Tuple(self, node: ast.Tuple) -> Value:
        return self.packed([self.boxed(v) for v in self.operands(node.elts)])

    def packed(self, values: Sequence[Value]) -> Value:
        """A new tuple of objects."""
        kind = Kind("ptr", tuple, tuple(v.kind for v in values), True)
        count = Value(str(len(values)), INT)
        return self.call_object("PyTuple_Pack", kind, count, *values, fixed=1)
