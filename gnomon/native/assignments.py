"""What native functions set: variables, slots, elements; and what they delete."""

from __future__ import annotations

import ast
from collections import deque
from copy import copy

from gnomon.native.ir import Value, freeing
from gnomon.native.kinds import (
    NONE,
    OBJECT,
    KitError,
    has_parts,
    kind_of,
    named,
    slot_name,
    slot_of,
    word_type,
)
from gnomon.native.library import Library
from gnomon.native.words import Parts


class Assignments(Library):
    """Statements that change something; the flow goes on behind each."""

    def on_Assign(self, node: ast.Assign) -> None:
        value = self.of(node.value)
        if len(node.targets) > 1:
            value = value._replace(fresh=False)  # it has several names
        for target in node.targets:
            self.put(target, value)

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise KitError("annotations are for variables")
        kind = kind_of(ast.unparse(node.annotation), self.space)
        self.declare(node.target.id, kind)
        if node.value is not None:
            self.put(node.target, self.fitted(self.of(node.value), kind, node.target.id))

    def on_AugAssign(self, node: ast.AugAssign) -> None:
        source = copy(node.target)
        source.ctx = ast.Load()
        self.put(
            node.target, self.of(ast.copy_location(ast.BinOp(source, node.op, node.value), node))
        )

    def put(self, target: ast.expr, value: Value) -> None:
        """Set a variable, a slot or an element."""
        if isinstance(target, ast.Name):
            known = self.variables.get(target.id)
            if known is not None and known.kind.llvm != value.kind.llvm:
                value = self.fitted(value, known.kind, target.id)
            self.assign(target.id, value)
        elif isinstance(target, ast.Attribute):
            self.put_slot(target, value, plain=True)
        elif isinstance(target, ast.Subscript):
            self.put_element(target, value)
        else:
            raise KitError(f"{ast.unparse(target)!r} cannot be set")

    def put_slot(self, target: ast.Attribute, value: Value, plain: bool = False) -> None:
        name = named(target.value)
        fresh = self.known.fresh.get(name)
        owner = self.owner_of(target)
        if word_type(owner.kind.cls) is not None:
            self.set_word(owner, target.attr, value)
            return
        slot = slot_of(owner.kind.cls, target.attr)
        if plain and slot.refusing and not slot.inner:
            raise KitError(f"{owner.kind} refuses assignments; say `put`")
        text = self.take(self.suited(owner, target.attr, value))
        if fresh is None or target.attr in fresh:
            self.release(*self.exchanged(owner, target.attr, text))
        else:
            self.emit(f"store ptr {text}, ptr {self.slot_at(owner, target.attr)}")
        if fresh is not None:
            new = {**self.known.fresh, name: fresh | {target.attr}}
            self.known = self.known._replace(fresh=new)

    def exchanged(self, owner: Value, name: str, text: str) -> tuple[str, str]:
        """Set a slot; gives what it held, and what may run when that is released."""
        at = self.slot_at(owner, name)
        old = self.value(f"load ptr, ptr {at}")
        self.emit(f"store ptr {text}, ptr {at}")
        return old, freeing(slot_of(owner.kind.cls, name).kind)

    def do_put(self, owner: ast.expr, name: ast.expr, value: ast.expr) -> Value:
        """`put(owner, "name", value)`: a slot that Python's own assignments may not set."""
        if self.constant(name)[0]:
            target = ast.Attribute(owner, slot_name(name), ast.Store())
            self.put_slot(ast.copy_location(target, name), self.of(value))
            return self.nothing()
        values = [self.boxed(v) for v in self.operands([owner, name, value])]
        return self.call_status("PyObject_GenericSetAttr", *values)

    def do_put_all(
        self, owner: ast.expr, names: ast.expr, values: ast.expr, unset: ast.expr | None = None
    ) -> Value:
        """`put_all`: old values are let go of when everything is set."""
        match names, values, unset or ast.Tuple([]):
            case ast.Tuple(put), ast.Tuple(given), ast.Tuple(gone):
                slots = [slot_name(name) for name in put]
            case _:
                raise KitError("put_all: tuples are expected")
        thing, found = self.of(owner), self.operands(given)
        fitted = [self.suited(thing, *each) for each in zip(slots, found, strict=True)]
        changes = [(name, self.take(value)) for name, value in zip(slots, fitted, strict=True)]
        changes += [(slot_name(name), "null") for name in gone]
        for old, runs in [self.exchanged(thing, *change) for change in changes]:
            self.release(old, runs)
        return self.nothing()

    def suited(self, owner: Value, name: str, value: Value) -> Value:
        """A value as a slot takes it; KitError where it is of another kind."""
        slot, value = slot_of(owner.kind.cls, name), self.boxed(value)
        cls = slot.kind.cls
        if cls not in (int, float, bool) and not has_parts(cls):
            return value  # native code reads nothing of it
        if value.kind == NONE and not slot.optional:
            raise KitError(f"{name}: {slot.kind} is expected, not None")
        if not slot.optional:
            value = self.no_none(value, TypeError, f"{name}: {slot.kind} is expected, not None")
        return self.fitted(value, slot.kind, name)

    def put_element(self, target: ast.Subscript, value: Value) -> None:
        owner, index = self.operands([target.value, target.slice])
        cls = owner.kind.cls
        if word_type(cls) is not None:
            self.store_word(*self.word(owner, self.unboxed(index)), value, "a word")
        elif cls is dict:
            self.call_status("PyDict_SetItem", owner, self.boxed(index), self.boxed(value))
        elif cls is list:
            place, runs = self.unboxed(index), freeing(owner.kind.item())
            self.call_status("PySequence_SetItem", owner, place, self.boxed(value), runs=runs)
        elif cls is Parts:
            place = self.from_end(owner, self.unboxed(index))
            own = Value(self.take(self.boxed(value)), OBJECT)
            self.call_status("PyTuple_SetItem", owner, place, own, runs="")
        else:
            raise KitError(f"elements of {owner.kind} cannot be set")

    def on_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                raise KitError(f"{ast.unparse(node)!r} is not supported")
            owner, index = self.operands([target.value, target.slice])
            if owner.kind.cls not in (list, deque):
                raise KitError("del is for elements of lists and deques")
            runs = freeing(owner.kind.item())
            self.call_status("PySequence_DelItem", owner, self.unboxed(index), runs=runs)
