"""Calls in native functions: of each other, of Python, of addresses, and what stands for methods.

`INTRINSICS` has what native code does itself: each is a method here.
"""

from __future__ import annotations

import ast
import threading
import typing
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gnomon import record
from gnomon.native import memory, words
from gnomon.native.emit import Value
from gnomon.native.kinds import (
    BOOL,
    FLOAT,
    GIVEN,
    INT,
    NONE,
    OBJECT,
    WORDS,
    Kind,
    KitError,
    has_parts,
    has_slot,
    kind_of,
    returns_of,
)
from gnomon.native.memory import CFunction, Struct
from gnomon.native.raw import Raw


class Calls(Raw):
    """Values of calls."""

    def of_Call(self, node: ast.Call) -> Value:
        if node.keywords:
            raise KitError("arguments by name are not supported")
        if any(isinstance(a, ast.Starred) for a in node.args):
            return self.of_starred(node.func, node.args)
        known, thing = self.constant(node.func)
        if not known and isinstance(node.func, ast.Attribute):
            return self.of_method(node.func, node.args)
        if known:
            intrinsic = INTRINSICS.get(id(thing))
            if intrinsic is not None:
                value: Value = getattr(self, intrinsic)(*node.args)
                return value
            if getattr(thing, "native", False):
                return self.of_native(thing, node.args)
            if isinstance(thing, CFunction):
                return self.of_c(thing, node)
            if isinstance(thing, type) and issubclass(thing, Struct):
                return self.of_struct(thing, *node.args)
        return self.of_python(node.func, returns_of(thing) if known else OBJECT, node.args)

    def of_native(self, function: Any, args: Sequence[ast.expr]) -> Value:
        """A call of another native function."""
        made = self.unit.function(function)
        if len(args) != len(made.kinds):
            raise KitError(f"{function.__name__} takes {len(made.kinds)} arguments")
        values = self.operands(args)
        what = [f"{function.__name__}: argument {name!r}" for name in made.names]
        values = [self.fitted(*given) for given in zip(values, made.kinds, what, strict=True)]
        for value, said, required in zip(values, what, made.required, strict=True):
            if required:
                self.no_none(value, TypeError, f"{said} is not to be None")
        for value in values:
            self.fresh.pop(value.name or "", None)
        shown = ", ".join(f"{v.kind.llvm} {v.text}" for v in values)
        result, facts = made.returns, made.facts
        text = self.guarded(
            values, lambda: self.value(f"call {result.llvm} {made.symbol}({shown})"), facts.runs
        )
        if result.is_object:
            if facts.fails:
                self.check(self.value(f"icmp eq ptr {text}, null"))
            return Value(text, result, owned=not facts.lends)
        return self.status(text, result, facts.fails)

    def status(self, text: str, kind: Kind, fails: bool) -> Value:
        """What a native function gave that is no object."""
        if kind.llvm == "i8":
            if fails:
                self.check(self.value(f"icmp eq i8 {text}, 2"))
            if kind.cls is not bool:
                return Value(self.thing(None).text, NONE, steady=True)
            return Value(self.value(f"icmp eq i8 {text}, 1"), BOOL)
        value = Value(text, kind)
        if fails and kind in (INT, FLOAT):
            self.check_number(value)
        return value

    def of_starred(self, function: ast.expr, args: Sequence[ast.expr]) -> Value:
        """A call of an object with one argument or none, and what the function was given."""
        *before, last = args
        if len(before) > 1 or not isinstance(last, ast.Starred):
            raise KitError("`*` stands behind one argument, or none")
        *values, rest = self.operands([function, *before, last.value])
        if rest.kind != GIVEN:
            raise KitError("`*` is for what the function was given")
        values = [*map(self.boxed, values), rest]
        shown = [(v.kind.llvm, v.text) for v in values]
        shown[1:1] = [] if before else [("ptr", "null")]
        act = lambda: self.call("kit.spread", "ptr", *shown)  # noqa: E731
        return self.made(self.guarded(values, act, "all"), OBJECT)

    def of_python(self, function: ast.expr, kind: Kind, args: Sequence[ast.expr]) -> Value:
        """A call of an object, as Python would."""
        return self.called(
            "PyObject_CallFunctionObjArgs", self.operands([function, *args]), 1, kind
        )

    def called(self, name: str, values: Sequence[Value], fixed: int, kind: Kind) -> Value:
        values = [self.boxed(v) for v in values]
        shown = [("ptr", v.text) for v in values]
        given = [*shown[:fixed], ("ptr", "..."), *shown[fixed:], ("ptr", "null")]
        return self.made(self.guarded(values, lambda: self.call(name, "ptr", *given), "all"), kind)

    # --- methods --------------------------------------------------------------------------------

    def of_method(self, function: ast.Attribute, args: Sequence[ast.expr]) -> Value:
        """A call of a method, or of what stands in a slot."""
        owner = self.of(function.value)
        self.use([owner])
        name = f"{getattr(owner.kind.cls, '__name__', '')}_{function.attr}"
        own = getattr(self, name, None)
        if own is not None:
            owner = self.hold(owner)
            value: Value = own(owner, *self.operands(args))
            self.use([owner])
            return value
        if has_slot(owner.kind.cls, function.attr):
            return self.of_python(function, OBJECT, args)
        values = self.operands([function.value, ast.Constant(function.attr), *args])
        return self.called("PyObject_CallMethodObjArgs", values, 2, OBJECT)

    def list_append(self, owner: Value, item: Value) -> Value:
        item = self.boxed(item)
        given = ("ptr", owner.text), ("ptr", item.text)
        self.fine(self.guarded([item], lambda: self.call("PyList_Append", "i32", *given), ""))
        return self.nothing()

    def list_clear(self, owner: Value) -> Value:
        size = self.size(owner)
        return self.cut(owner, "0", size)

    def cut(self, owner: Value, start: str, end: str) -> Value:
        """Takes elements out of a list."""
        given = ("ptr", owner.text), ("i64", start), ("i64", end), ("ptr", "null")
        status = self.call("PyList_SetSlice", "i32", *given)
        self.runs(self.letting_go(owner.kind.item()))
        self.fine(status)
        return self.nothing()

    def dict_get(self, owner: Value, key: Value) -> Value:
        key = self.boxed(key)
        given = ("ptr", owner.text), ("ptr", key.text)
        ask = lambda: self.call("PyDict_GetItemWithError", "ptr", *given)  # noqa: E731
        found = self.guarded([owner, key], ask, "all")
        here, missing, none, there = self.block, self.label(), self.label(), self.label()
        absent = self.value(f"icmp eq ptr {found}, null")
        self.branch(absent, missing, there)
        self.at(missing)
        self.check(self.value(f"icmp ne ptr {self.call('PyErr_Occurred', 'ptr')}, null"))
        self.go(none)
        self.at(none)
        self.go(there)
        self.at(there)
        nothing = self.thing(None).text
        text = self.value(f"phi ptr [{found}, %{here}], [{nothing}, %{none}]")
        kind = owner.kind.items[1] if len(owner.kind.items) == 2 else OBJECT
        if has_parts(kind.cls):
            self.refuse_others(text, kind, True, f"a value of a {owner.kind}")
        return Value(text, kind)

    def dict_clear(self, owner: Value) -> Value:
        self.call("PyDict_Clear", "void", ("ptr", owner.text))
        self.runs("all")
        return self.nothing()

    # --- what native code does itself -----------------------------------------------------------

    def do_cast(self, kind: ast.expr, value: ast.expr) -> Value:
        said = kind.value if isinstance(kind, ast.Constant) else ast.unparse(kind)
        made = self.of(value)
        wanted = kind_of(said, self.space)
        if not wanted.is_object:
            if made.kind.is_object:
                made.kind = Kind("ptr", wanted.cls)
            return self.fitted(made, wanted, "cast")
        made = self.boxed(made)
        return Value(made.text, wanted, made.owned, made.name, made.steady)

    def do_len(self, node: ast.expr) -> Value:
        owner = self.of(node)
        held = (
            self.hold(owner) if owner.owned or owner.kind.cls not in (list, tuple, dict) else owner
        )
        made = Value(self.size(held), INT)
        self.use([held])
        return made

    def do_type(self, node: ast.expr) -> Value:
        owner = self.boxed(self.of(node))
        made = Value(self.class_at(owner.text), Kind("ptr", type), steady=True)
        self.drop(owner)
        return made

    def do_isinstance(self, node: ast.expr, cls: ast.expr) -> Value:
        owner, wanted = self.operands([node, cls])
        owner = self.firm(self.boxed(owner))
        return Value(self.value(f"call i1 @kit.is(ptr {owner.text}, ptr {wanted.text})"), BOOL)

    def do_int(self, node: ast.expr) -> Value:
        value = self.plain(node)
        if value.kind == BOOL:
            return Value(self.value(f"zext i1 {value.text} to i64"), INT)
        if value.kind == FLOAT:
            raise KitError("no whole number is made of a float")
        return value

    def do_float(self, node: ast.expr) -> Value:
        value = self.of(node)
        if value.kind != OBJECT:
            return self.real(self.unboxed(value))
        ask = lambda: self.call("PyFloat_AsDouble", "double", ("ptr", value.text))  # noqa: E731
        made = Value(self.guarded([value], ask, "all"), FLOAT)
        self.check_number(made)
        return made

    def do_bool(self, node: ast.expr) -> Value:
        return Value(self.truth(self.of(node)), BOOL)

    def do_abs(self, node: ast.expr) -> Value:
        value = self.plain(node)
        if value.kind != FLOAT:
            raise KitError("abs is for floats")
        return Value(self.call("llvm.fabs.f64", "double", ("double", value.text)), FLOAT)

    def do_tuple(self, node: ast.expr) -> Value:
        """The tuple that `Parts` became; its variable is empty then."""
        value = self.of(node)
        if value.kind.cls is not words.Parts or value.name is None:
            raise KitError("tuple() is for a variable of Parts")
        self.emit(f"store ptr null, ptr %v{value.name}")
        self.set.discard(value.name)
        self.call("kit.filled", "void", ("ptr", value.text))
        return Value(value.text, Kind("ptr", tuple, value.kind.items), owned=True)

    def do_popped(self, node: ast.expr) -> Value:
        owner = self.firm(self.of(node))
        made = self.call("kit.popped", "ptr", ("ptr", owner.text))
        return self.made(made, owner.kind.item())

    def do_parts(self, node: ast.expr) -> Value:
        count = self.plain(node)
        made = self.call("PyTuple_New", "ptr", ("i64", count.text))
        self.runs("all")
        return self.made(made, Kind("ptr", words.Parts))

    def do_getattr(self, owner: ast.expr, name: ast.expr) -> Value:
        values = self.operands([owner, name])
        given = [("ptr", v.text) for v in values]
        ask = lambda: self.call("PyObject_GetAttr", "ptr", *given)  # noqa: E731
        return self.made(self.guarded(values, ask, "all"), OBJECT)

    def do_hasattr(self, owner: ast.expr, name: ast.expr) -> Value:
        """Whether a slot is set."""
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            raise KitError("hasattr asks for a slot by its name")
        at = self.slot_at(self.firm(self.of(owner)), name.value)
        return Value(self.value(f"icmp ne ptr {self.value(f'load ptr, ptr {at}')}, null"), BOOL)

    def do_new(self, node: ast.expr) -> Value:
        known, cls = self.constant(node)
        kind = Kind("ptr", cls) if known and isinstance(cls, type) else OBJECT
        given = self.of(node)
        types = ("ptr", given.text), ("i64", "0")
        make = lambda: self.call("PyType_GenericAlloc", "ptr", *types)  # noqa: E731
        return self.made(self.guarded([given], make, "all"), kind)

    def do_keep_alive(self, node: ast.expr) -> Value:
        self.of(node)
        return self.nothing()

    def do_word(self, node: ast.expr) -> Value:
        return self.plain(node)

    def do_words(self, node: ast.expr) -> Value:
        return Value(self.value(f"inttoptr i64 {self.plain(node).text} to ptr"), WORDS)

    def do_ints(self, node: ast.expr) -> Value:
        return replace(self.do_words(node), kind=Kind("ptr", words.Ints))

    def do_reals(self, node: ast.expr) -> Value:
        return replace(self.do_words(node), kind=Kind("ptr", words.Reals))

    def do_there(self, node: ast.expr) -> Value:
        return replace(self.do_words(node), kind=OBJECT)

    def do_id(self, node: ast.expr) -> Value:
        thing = self.firm(self.boxed(self.of(node)))
        return Value(self.value(f"ptrtoint ptr {thing.text} to i64"), INT)

    def do_call_aside(self, *nodes: ast.expr) -> Value:
        address, block = (self.unboxed(v).text for v in self.operands(nodes))
        function = self.value(f"inttoptr i64 {address} to ptr")
        thread = self.call("PyEval_SaveThread", "ptr")
        self.emit(f"call void {function}(i64 {block})")
        self.call("PyEval_RestoreThread", "void", ("ptr", thread))
        self.runs("all")
        return self.nothing()

    def do_scratch(self, node: ast.expr) -> Value:
        if self.loop is not None:
            raise KitError("scratch() is for no loop")
        known, number = self.constant(node)
        if known and type(number) is int and 0 <= number <= words.MOST:
            self.places.append(f"  {(place := f'%w{self.number()}')} = alloca i64, i64 {number}")
            return Value(place, WORDS)
        count = self.plain(node).text
        many = self.value(f"icmp ugt i64 {count}, {words.MOST}")
        self.refuse(many, ValueError, "scratch: too many words")
        return Value(self.value(f"alloca i64, i64 {count}"), WORDS)

    def do_call(self, *nodes: ast.expr) -> Value:
        """A call of an address, whose code knows nothing of Python's objects."""
        address, *given = (self.unboxed(v) for v in self.operands(nodes))
        shown = ", ".join(f"i64 {v.text}" for v in given)
        function = self.value(f"inttoptr i64 {address.text} to ptr")
        return Value(self.value(f"call i64 {function}({shown})"), INT)

    def do_wrapped(self, node: ast.expr) -> Value:
        value = self.of(node)
        if not value.kind.is_object:
            return self.fitted(value, INT, "wrapped")
        text = self.call("PyLong_AsUnsignedLongLongMask", "i64", ("ptr", value.text))
        self.drop(value)
        made = Value(text, INT)
        self.check_number(made)
        return made

    def do_double_bits(self, node: ast.expr) -> Value:
        number = self.fitted(self.of(node), FLOAT, "double_bits")
        return Value(self.value(f"bitcast double {number.text} to i64"), INT)

    def do_single_bits(self, node: ast.expr) -> Value:
        number = self.fitted(self.of(node), FLOAT, "single_bits")
        single = self.value(f"fptrunc double {number.text} to float")
        bits = self.value(f"bitcast float {single} to i32")
        return Value(self.value(f"sext i32 {bits} to i64"), INT)

    def do_single(self, node: ast.expr) -> Value:
        number = self.fitted(self.of(node), FLOAT, "single")
        single = self.value(f"fptrunc double {number.text} to float")
        return Value(self.value(f"fpext float {single} to double"), FLOAT)

    def do_get_ident(self) -> Value:
        return Value(self.call("PyThread_get_thread_ident", "i64"), INT)


#: what native code does itself, by the method here: `do_` and its name
INTRINSICS = {
    id(thing): f"do_{thing.__name__.strip('_').lower()}"
    for thing in (
        typing.cast, len, type, int, isinstance, float, bool, abs, tuple, getattr, hasattr, id,
        threading.get_ident, words.Parts, words.new, words.Words, words.Ints, words.Reals,
        words.there, words.scratch, words.popped, words.call, words.call_aside, words.wrapped,
        words.double_bits, words.single_bits, words.single, words.keep_alive, words.word,
        record.put, record.put_all, memory.load, memory.store, memory.swap, memory.add,
        memory.exchange, memory.pause, memory.divided, memory.address_of, min, max,
    )
}  # fmt: skip
