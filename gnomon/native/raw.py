"""Native code of what needs no Python: structs, atomic words, functions in C; see `memory.py`.

A *raw* unit is one whose functions know no objects, raise no errors, and so need no lock of
Python's: threads of native code run them, and kernels call them.
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Sequence
from typing import Any

from gnomon.native import memory
from gnomon.native.builder import Builder
from gnomon.native.ir import NULL, Value
from gnomon.native.kinds import BOOL, INT, NONE, WORDS, Kind, KitError, word_type
from gnomon.native.memory import CFunction
from gnomon.native.operators import Operators

_WORDS: dict[Any, str] = {int: "i64", memory.Int32: "i32", float: "double"}
_IN_C = {"int": "i32", "long": "i64", "float": "float", "double": "double", "void *": "ptr"}
_PAUSES = {"x86_64": "pause", "aarch64": "isb", "arm64": "isb"}
_ORDERS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")


class Raw(Operators):
    """Values of what `memory.py` has."""

    def of_words(self, cls: Any, node: ast.expr) -> Value:
        """Words, a struct for one, at an address."""
        return self.pointer(self.plain(node), Kind("ptr", cls))

    def field(self, owner: Value, name: str) -> tuple[str, str]:
        """Where a word of a struct lies, and LLVM's type of it."""
        cls = owner.kind.cls
        if name not in getattr(cls, "fields", ()):
            raise KitError(f"{cls.__name__} has no word {name!r}")
        index = getattr(cls, name)
        self.unit.rely_on_class(cls)
        at = self.value(f"getelementptr i64, ptr {owner.text}, i64 {index}")
        said = memory.kinds(cls)[name]
        if said not in _WORDS:
            raise KitError(f"{cls.__name__}.{name}: a word is an int, an Int32 or a float")
        return at, _WORDS[said]

    def slot(self, owner: Value, name: str) -> Value:
        """What stands in a word of a struct, or a slot of an object."""
        if word_type(owner.kind.cls) is None:
            return super().slot(owner, name)
        return self.load_word(*self.field(owner, name))

    def set_word(self, owner: Value, name: str, value: Value) -> None:
        self.store_word(*self.field(owner, name), value, name)

    # --- functions in C -------------------------------------------------------------------------

    def of_c(self, function: CFunction, node: ast.Call) -> Value:
        """A call of a function in C; what it gives is an integer, or nothing."""
        self.unit.rely(f"{ast.unparse(node.func)}.mark", function.mark, self.space)
        values = self.operands(node.args)
        fixed = [kind for kind in function.kinds if kind != "..."]
        varies = len(fixed) < len(function.kinds)
        if len(values) < len(fixed) or (len(values) > len(fixed) and not varies):
            raise KitError(f"{function.name} takes {len(fixed)} arguments")
        given = [self.as_c(v, kind) for v, kind in zip(values, fixed, strict=False)]
        given += values[len(fixed) :]
        result = "void" if function.result == "void" else _IN_C[function.result]
        most = len(fixed) if varies else None
        text = Builder.call(self, function.name, result, *given, fixed=most)
        if result == "void":
            return self.nothing()
        if result == "ptr":
            return Value(self.value(f"ptrtoint ptr {text} to i64"), INT)
        return self.wide(text, result)

    def as_c(self, value: Value, kind: str) -> Value:
        """An argument as a function in C takes it."""
        if kind != "void *":
            width = _IN_C[kind]
            return Value(self.narrow_to(value, width, kind), Kind(width, value.kind.cls))
        if value.kind == NONE:
            return NULL
        if word_type(value.kind.cls) is not None:
            return value
        return self.pointer(self.fitted(value, INT, kind), WORDS)

    def do_address_of(self, node: ast.expr) -> Value:
        known, function = self.constant(node)
        if not known or not getattr(function, "native", False):
            raise KitError(f"{ast.unparse(node)!r} is no native function")
        return Value(self.value(f"ptrtoint ptr {self.unit.function(function).symbol} to i64"), INT)

    # --- atomic words ---------------------------------------------------------------------------

    def place(self, node: ast.expr) -> tuple[str, str]:
        """A word's type in LLVM and its address."""
        owner = self.of(node)
        width = word_type(owner.kind.cls)
        if width not in ("i32", "i64"):
            raise KitError(f"a word is expected, not {owner.kind}")
        return width, owner.text

    def order(self, node: ast.expr | None) -> str:
        name = "seq_cst" if node is None else self.constant(node)[1]
        if name not in _ORDERS:
            raise KitError(f"an order is one of {', '.join(_ORDERS)}")
        return str(name)

    def number_for(self, node: ast.expr, width: str) -> str:
        return self.narrow_to(self.of(node), width, "a word")

    def do_load(self, place: ast.expr, order: ast.expr | None = None) -> Value:
        width, at = self.place(place)
        align = int(width[1:]) // 8
        text = self.value(f"load atomic {width}, ptr {at} {self.order(order)}, align {align}")
        return self.wide(text, width)

    def do_store(self, place: ast.expr, number: ast.expr, order: ast.expr | None = None) -> Value:
        width, at = self.place(place)
        align, text = int(width[1:]) // 8, self.number_for(number, width)
        self.emit(f"store atomic {width} {text}, ptr {at} {self.order(order)}, align {align}")
        return self.nothing()

    def do_swap(
        self, place: ast.expr, old: ast.expr, new: ast.expr, order: ast.expr | None = None
    ) -> Value:
        width, at = self.place(place)
        given = f"{width} {self.number_for(old, width)}, {width} {self.number_for(new, width)}"
        name = self.order(order)
        failed = {"release": "monotonic", "acq_rel": "acquire"}.get(name, name)
        pair = self.value(f"cmpxchg ptr {at}, {given} {name} {failed}")
        return Value(self.value(f"extractvalue {{ {width}, i1 }} {pair}, 1"), BOOL)

    def do_add(self, place: ast.expr, number: ast.expr, order: ast.expr | None = None) -> Value:
        width, at = self.place(place)
        text = self.number_for(number, width)
        before = self.value(f"atomicrmw add ptr {at}, {width} {text} {self.order(order)}")
        return self.wide(before, width)

    def do_pause(self) -> Value:
        name = _PAUSES.get(platform.machine())
        if name is not None:
            self.emit(f'call void asm sideeffect "{name}", ""()')
        return self.nothing()

    # --- arithmetic -----------------------------------------------------------------------------

    def do_divided(self, number: ast.expr, by: ast.expr) -> Value:
        a, b = (self.fitted(v, INT, "divided").text for v in self.operands([number, by]))
        return Value(self.value(f"udiv i64 {a}, {b}"), INT)

    def do_min(self, *nodes: ast.expr) -> Value:
        return self.extreme(ast.Lt, nodes)

    def do_max(self, *nodes: ast.expr) -> Value:
        return self.extreme(ast.Gt, nodes)

    def extreme(self, how: type, nodes: Sequence[ast.expr]) -> Value:
        """The second of two numbers where it compares so with the first, else the first."""
        if len(nodes) != 2:
            raise KitError("min() and max() take two numbers")
        a, b = self.alike(*self.operands(nodes))
        chosen, kind = self.compared(how, b, a).text, a.kind.llvm
        return Value(self.value(f"select i1 {chosen}, {kind} {b.text}, {kind} {a.text}"), a.kind)

    def nothing(self) -> Value:
        return Value(self.thing(None).text, NONE)
