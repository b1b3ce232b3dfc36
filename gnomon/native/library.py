"""What native functions use of Python's library: deques, sets, texts, frames, errors.

Each is a method here: `do_` and its name for a function, class and name for a method or attribute.
"""

from __future__ import annotations

import ast
import sys
from collections import deque
from types import CodeType, FrameType

from gnomon.native.calls import Calls
from gnomon.native.ir import ANY, NULL, Value
from gnomon.native.kinds import BOOL, INT, NONE, OBJECT, Kind, KitError
from gnomon.native.words import Parts

_INNERMOST = ast.Constant(0)


class Library(Calls):
    """Values of calls of the library, and errors that are raised and caught by name."""

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

    # --- errors ---------------------------------------------------------------------------------

    def on_Raise(self, node: ast.Raise) -> bool:
        """An error that is at hand, or made now."""
        error = None if node.exc is None or node.cause is not None else self.of(node.exc)
        if error is None or not issubclass(error.kind.cls, BaseException):
            raise KitError(f"{ast.unparse(node)!r}: an exception is expected")
        cls = Value(self.class_at(error.text), OBJECT)
        self.call("PyErr_SetObject", "void", cls, error, runs=ANY)
        self.go(self.failure())
        return True

    def caught(self, handler: ast.ExceptHandler) -> None:
        """Go on where an error of a class was raised, or of one of a tuple of classes, which is so
        no more; else end with it."""
        assert handler.type is not None
        named = self.constant(handler.type)[1]
        cls = BaseException if isinstance(named, tuple) else named
        found = self.call("PyErr_ExceptionMatches", "i32", self.of(handler.type))
        self.check(self.value(f"icmp eq i32 {found}, 0"))
        if handler.name is None:
            self.call("PyErr_Clear", "void")
            return
        text = self.call("kit.caught", "ptr", runs=ANY)
        self.assign(handler.name, self.owned(text, Kind("ptr", cls)))
