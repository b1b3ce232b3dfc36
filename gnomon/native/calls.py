"""Calls in native functions: of each other, of Python, of addresses, and what stands for methods.

What native code does itself is a method: `do_` and the name of a function in one of `_HOMES`, or a
class and the name of its method or attribute.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import threading
import typing
from collections import deque
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

from gnomon.ground import record
from gnomon.native import memory, words
from gnomon.native.ir import ANY, NULL, Value, freeing
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
    slot_name,
    word_type,
)
from gnomon.native.memory import CFunction
from gnomon.native.raw import Raw
from gnomon.native.words import Parts

_HOMES = (builtins, memory, record, sys, threading, typing, words)
_INNERMOST = ast.Constant(0)
_LOWEST, _BEYOND = "0xC3E0000000000000", "0x43E0000000000000"  # -(2**63) and 2**63 in LLVM


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
            intrinsic = self.intrinsics().get(id(thing))
            if intrinsic is not None:
                value: Value = getattr(self, intrinsic)(*node.args)
                return value
            if getattr(thing, "native", False):
                return self.of_native(thing, node.args)
            if isinstance(thing, CFunction):
                return self.of_c(thing, node)
            if isinstance(thing, type) and word_type(thing) is not None:
                return self.of_words(thing, *node.args)
        return self.of_python(node.func, returns_of(thing) if known else OBJECT, node.args)

    @classmethod
    @functools.cache
    def intrinsics(cls) -> dict[int, str]:
        """The methods for what native code does itself, by the ids of what they stand for."""
        names = [name for name in dir(cls) if name.startswith("do_")]
        return {id(vars(x)[n[3:]]): n for n in names for x in _HOMES if n[3:] in vars(x)}

    def of_native(self, function: Any, args: Sequence[ast.expr]) -> Value:
        """A call of another native function."""
        made = self.unit.function(function)
        if len(args) != len(made.parameters):
            raise KitError(f"{function.__name__} takes {len(made.parameters)} arguments")
        given = zip(self.operands(args), made.parameters, strict=True)
        what = f"{function.__name__}: argument"
        values = [(self.fitted(x, p.kind, f"{what} {p.name!r}"), p) for x, p in given]
        for value, parameter in values:
            if parameter.required:
                said = f"{what} {parameter.name!r} is not to be None"
                self.no_none(value, TypeError, said)
            self.known = self.known.without_fresh(value.name)
        return self.answer_of(made, [value for value, _ in values])

    def answer_of(self, made: Any, values: Sequence[Value]) -> Value:
        """What a native function gives for these arguments."""
        shown = ", ".join(f"{v.kind.llvm} {v.text}" for v in values)
        result, found = made.returns, made.found
        text = self.value(f"call {result.llvm} {made.symbol}({shown})", found.runs)
        if not result.is_object:
            return self.status(text, result, found.fails)
        if found.fails:
            self.check(self.value(f"icmp eq ptr {text}, null"))
        return self.borrowed(text, result) if found.lends else self.owned(text, result)

    def status(self, text: str, kind: Kind, fails: bool) -> Value:
        """What a native function gave that is no object."""
        if kind.llvm == "i8":
            if fails:
                self.check(self.value(f"icmp eq i8 {text}, 2"))
            if kind.cls is not bool:
                return Value(self.thing(None).text, NONE)
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
        given = [*map(self.boxed, values), *([] if before else [NULL])]
        array = [
            Value(self.value(f"extractvalue {GIVEN.llvm} {rest.text}, {k}"), kind)
            for k, kind in enumerate((WORDS, INT))
        ]
        return self.call_object("kit.spread", OBJECT, *given, *array, NULL)  # without names

    def of_python(self, function: ast.expr, kind: Kind, args: Sequence[ast.expr]) -> Value:
        """A call of an object, as Python would."""
        values = self.operands([function, *args])
        return self.called("PyObject_CallFunctionObjArgs", values, 1, kind)

    def called(self, name: str, values: Sequence[Value], fixed: int, kind: Kind) -> Value:
        given = [*(self.boxed(v) for v in values), NULL]
        return self.call_object(name, kind, *given, fixed=fixed)

    # --- methods --------------------------------------------------------------------------------

    def of_method(self, function: ast.Attribute, args: Sequence[ast.expr]) -> Value:
        """A call of a method, or of what stands in a slot."""
        owner = self.of(function.value)
        name = f"{getattr(owner.kind.cls, '__name__', '')}_{function.attr}"
        own = getattr(self, name, None)
        if own is not None:
            value: Value = own(owner, *self.operands(args))
            return value
        if has_slot(owner.kind.cls, function.attr):
            return self.of_python(function, OBJECT, args)
        values = self.operands([function.value, ast.Constant(function.attr), *args])
        return self.called("PyObject_CallMethodObjArgs", values, 2, OBJECT)

    def list_append(self, owner: Value, item: Value) -> Value:
        return self.call_status("PyList_Append", owner, self.boxed(item), runs="")

    def of_List(self, node: ast.List) -> Value:
        values = self.operands(node.elts)
        made = self.call_object("PyList_New", Kind("ptr", list), Value("0", INT))
        for value in values:
            self.list_append(made, value)
        return made

    def list_clear(self, owner: Value) -> Value:
        every, runs = (Value("0", INT), Value(str(sys.maxsize), INT)), freeing(owner.kind.item())
        return self.call_status("PyList_SetSlice", owner, *every, NULL, runs=runs)

    def dict_get(self, owner: Value, key: Value) -> Value:
        found = self.call("PyDict_GetItemWithError", "ptr", owner, self.boxed(key), runs=ANY)
        text = self.value(f"select i1 {self.is_absent(found)}, ptr @None, ptr {found}")
        kind = owner.kind.items[1] if len(owner.kind.items) == 2 else OBJECT
        if has_parts(kind.cls):
            self.refuse_others(text, kind, True, f"a value of a {owner.kind}")
        return self.borrowed(text, kind)

    def dict_clear(self, owner: Value) -> Value:
        self.call("PyDict_Clear", "void", owner, runs=ANY)
        return self.nothing()

    # --- what native code does itself -----------------------------------------------------------

    def do_cast(self, kind: ast.expr, value: ast.expr) -> Value:
        said = kind.value if isinstance(kind, ast.Constant) else ast.unparse(kind)
        made = self.of(value)
        wanted = kind_of(said, self.space)
        if not wanted.is_object:
            if made.kind.is_object:
                made = made._replace(kind=Kind("ptr", wanted.cls))
            return self.fitted(made, wanted, "cast")
        return self.boxed(made)._replace(kind=wanted, trusted=False, optional=False)

    def do_len(self, node: ast.expr) -> Value:
        return Value(self.size(self.of(node)), INT)

    def do_type(self, node: ast.expr) -> Value:
        owner = self.boxed(self.of(node))
        return Value(self.class_at(owner.text), Kind("ptr", type))

    def do_isinstance(self, node: ast.expr, cls: ast.expr) -> Value:
        owner, wanted = self.operands([node, cls])
        owner = self.boxed(owner)
        return Value(self.value(f"call i1 @kit.is(ptr {owner.text}, ptr {wanted.text})"), BOOL)

    def do_int(self, node: ast.expr) -> Value:
        value = self.plain(node)
        if value.kind == BOOL:
            return Value(self.value(f"zext i1 {value.text} to i64"), INT)
        return self.whole(value.text) if value.kind == FLOAT else value

    def whole(self, number: str) -> Value:
        """A float without its fraction; an error for one that has no 64 bits."""
        is_nan = self.value(f"fcmp uno double {number}, {number}")
        self.refuse(is_nan, ValueError, "cannot convert float NaN to integer")
        below = self.value(f"fcmp olt double {number}, {_LOWEST}")
        above = self.value(f"fcmp oge double {number}, {_BEYOND}")
        beyond = self.value(f"or i1 {below}, {above}")
        self.refuse(beyond, OverflowError, "a whole number of more than 64 bits")
        return Value(self.value(f"fptosi double {number} to i64"), INT)

    def do_float(self, node: ast.expr) -> Value:
        value = self.of(node)
        if value.kind != OBJECT:
            return self.real(self.unboxed(value))
        made = Value(self.call("PyFloat_AsDouble", "double", value, runs=ANY), FLOAT)
        self.check_number(made)
        return made

    def do_bool(self, node: ast.expr) -> Value:
        return Value(self.truth(self.of(node)), BOOL)

    def completed(self, value: Value) -> Value:
        """The tuple that `Parts` became; its variable is empty then."""
        if value.name is None:
            raise KitError("tuple() is for a list, or a variable of Parts")
        self.unset(value.name)
        self.call("kit.filled", "void", value)
        return self.owned(self.take(value), Kind("ptr", tuple, value.kind.items))

    def do_popped(self, node: ast.expr) -> Value:
        owner = self.of(node)
        return self.call_object("kit.popped", owner.kind.item(), owner, runs="")

    def do_Parts(self, node: ast.expr) -> Value:
        return self.call_object("PyTuple_New", Kind("ptr", Parts), self.plain(node))

    def do_getattr(self, owner: ast.expr, name: ast.expr) -> Value:
        return self.call_object("PyObject_GetAttr", OBJECT, *self.operands([owner, name]))

    def do_hasattr(self, owner: ast.expr, name: ast.expr) -> Value:
        """Whether a slot is set."""
        at = self.slot_at(self.of(owner), slot_name(name))
        return Value(self.value(f"icmp ne ptr {self.value(f'load ptr, ptr {at}')}, null"), BOOL)

    def do_new(self, node: ast.expr) -> Value:
        known, cls = self.constant(node)
        kind = Kind("ptr", cls) if known and isinstance(cls, type) else OBJECT
        made = self.call_object("PyType_GenericAlloc", kind, self.of(node), Value("0", INT))
        return made._replace(fresh=True)

    def do_keep_alive(self, node: ast.expr) -> Value:
        self.use(self.of(node))
        return self.nothing()

    def do_word(self, node: ast.expr) -> Value:
        return self.plain(node)

    def do_there(self, node: ast.expr) -> Value:
        return self.borrowed(self.pointer(self.plain(node), WORDS).text, OBJECT)

    def do_id(self, node: ast.expr) -> Value:
        thing = self.boxed(self.of(node))
        return Value(self.value(f"ptrtoint ptr {thing.text} to i64"), INT)

    def do_call_aside(self, *nodes: ast.expr) -> Value:
        address, block = (self.unboxed(v).text for v in self.operands(nodes))
        function = self.value(f"inttoptr i64 {address} to ptr")
        thread = Value(self.call("PyEval_SaveThread", "ptr"), WORDS)
        self.emit(f"call void {function}(i64 {block})")
        self.call("PyEval_RestoreThread", "void", thread, runs=ANY)
        return self.nothing()

    def do_scratch(self, node: ast.expr) -> Value:
        if self.loops:
            raise KitError("scratch() is for no loop")
        known, number = self.constant(node)
        if known and type(number) is int and 0 <= number <= words.MOST:
            self.allocas.append(f"{(place := f'%w{self.number()}')} = alloca i64, i64 {number}")
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
        made = Value(self.call("PyLong_AsUnsignedLongLongMask", "i64", value), INT)
        self.check_number(made)
        return made

    def do_double_bits(self, node: ast.expr) -> Value:
        number = self.fitted(self.of(node), FLOAT, "double_bits")
        return Value(self.value(f"bitcast double {number.text} to i64"), INT)

    def do_single_bits(self, node: ast.expr) -> Value:
        single = self.narrow_to(self.of(node), "float", "single_bits")
        return self.wide(self.value(f"bitcast float {single} to i32"), "i32")

    def do_single(self, node: ast.expr) -> Value:
        return self.wide(self.narrow_to(self.of(node), "float", "single"), "float")

    def do_get_ident(self) -> Value:
        return Value(self.call("PyThread_get_thread_ident", "i64"), INT)

    # --- deques, sets, texts --------------------------------------------------------------------

    def deque_append(self, owner: Value, item: Value) -> Value:
        append = self.unit.symbol(deque.append, "deque.append", {"__name__": "collections"})
        given = [Value(append, OBJECT), owner, item]
        return self.called("PyObject_CallFunctionObjArgs", given, 1, NONE)

    def of_Set(self, node: ast.Set) -> Value:
        values = self.operands(node.elts)
        made = self.call_object("PySet_New", Kind("ptr", set), NULL)
        for value in values:
            self.set_add(made, value)
        return made

    def set_add(self, owner: Value, item: Value) -> Value:
        return self.call_status("PySet_Add", owner, self.boxed(item))

    def set_discard(self, owner: Value, item: Value) -> Value:
        return self.call_status("PySet_Discard", owner, self.boxed(item))

    def str_startswith(self, owner: Value, start: Value) -> Value:
        if start.kind.cls is not str:
            raise KitError(f"startswith: a str is expected, not {start.kind}")
        bounds = Value("0", INT), Value(str(sys.maxsize), INT)
        given = owner, start, *bounds, Value("-1", Kind("i32", int))
        status = self.call("PyUnicode_Tailmatch", "i64", *given)
        self.fine(status, "i64")
        return Value(self.value(f"icmp ne i64 {status}, 0"), BOOL)

    def do_tuple(self, node: ast.expr) -> Value:
        """The tuple of a list's elements, or the one that `Parts` became."""
        value = self.of(node)
        if value.kind.cls is Parts:
            return self.completed(value)
        if value.kind.cls is not list:
            raise KitError("tuple() is for a list, or a variable of Parts")
        return self.call_object("PyList_AsTuple", Kind("ptr", tuple, value.kind.items), value)

    def do_callable(self, node: ast.expr) -> Value:
        status = self.call("PyCallable_Check", "i32", self.boxed(self.of(node)))
        return Value(self.value(f"icmp ne i32 {status}, 0"), BOOL)

    def int_bit_length(self, owner: Value) -> Value:
        no = Value("false", BOOL)
        size = Value(self.call("llvm.abs.i64", "i64", self.unboxed(owner), no), INT)
        zeros = self.call("llvm.ctlz.i64", "i64", size, no)
        return Value(self.value(f"sub i64 64, {zeros}"), INT)

    def do_word_at(self, data: ast.expr, at: ast.expr) -> Value:
        owner, index = self.operands([data, at])
        if owner.kind.cls is not bytes:
            raise KitError(f"word_at: bytes are expected, not {owner.kind}")
        place = self.unboxed(index).text
        last = self.value(f"sub i64 {self.size(owner)}, 4")
        below = self.value(f"icmp slt i64 {place}, 0")
        outside = self.value(f"or i1 {below}, {self.value(f'icmp slt i64 {last}, {place}')}")
        self.refuse(outside, IndexError, "word_at: no word there")
        text = self.value(f"load i32, ptr {self.byte_at(owner, place)}, align 1")
        return Value(self.value(f"zext i32 {text} to i64"), INT)

    # --- frames ---------------------------------------------------------------------------------

    def do__getframe(self, depth: ast.expr = _INNERMOST) -> Value:
        """A frame of what Python runs: native functions have none."""
        text = self.call("kit.frame_at", "ptr", self.plain(depth), runs=ANY)
        self.refuse(self.is_absent(text), ValueError, "call stack is not deep enough")
        return self.owned(text, Kind("ptr", FrameType))

    def frame_f_code(self, owner: Value) -> Value:
        text = self.call("PyFrame_GetCode", "ptr", owner)
        return self.owned(text, Kind("ptr", CodeType))

    def frame_f_lasti(self, owner: Value) -> Value:
        return self.wide(self.call("PyFrame_GetLasti", "i32", owner), "i32")

    def code_co_filename(self, owner: Value) -> Value:
        name = Value(self.unit.symbol("co_filename", "", {}), OBJECT)
        return self.call_object("PyObject_GetAttr", Kind("ptr", str), owner, name, runs="")
