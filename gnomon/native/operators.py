"""Operators, comparisons and choices in native functions, and what they tell of variables."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from gnomon.native.expressions import Expressions
from gnomon.native.ir import ANY, Value
from gnomon.native.kinds import BOOL, FLOAT, INT, NONE, SIZED, Kind, KitError, word_type
from gnomon.native.known import Narrow

_COMPARED: dict[type, tuple[str, str]] = {
    ast.Eq: ("eq", "oeq"), ast.NotEq: ("ne", "une"), ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"), ast.Gt: ("sgt", "ogt"), ast.GtE: ("sge", "oge"),
}  # fmt: skip
_WHOLE: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.RShift: "ashr", ast.LShift: "shl",
}  # fmt: skip
_UNARY: dict[tuple[type, str], str] = {
    (ast.USub, "double"): "fneg double {}", (ast.USub, "i64"): "sub i64 0, {}",
    (ast.Invert, "i64"): "xor i64 {}, -1",
}  # fmt: skip
_REAL: dict[type, str] = {
    ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv",
}  # fmt: skip


class Operators(Expressions):
    """Values of operators, and ways that truths choose."""

    def condition(self, node: ast.expr, yes: str, no: str) -> None:
        """Go one way or the other."""
        if isinstance(node, ast.BoolOp):
            self.conditions(node, yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, no, yes)
        else:
            self.branch(self.truth(self.of(node)), yes, no, known=self.of_class(node))

    def conditions(self, node: ast.BoolOp, yes: str, no: str) -> None:
        """Go on from one condition to the next, as long as that is needed."""
        for part in node.values[:-1]:
            more = self.label()
            self.condition(part, *((more, no) if isinstance(node.op, ast.And) else (yes, more)))
            self.at(more)
        self.condition(node.values[-1], yes, no)

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
            zero = value._replace(text="0" if value.kind == INT else "0.0")
            return self.compared(ast.NotEq, value, zero).text
        if value.kind.cls is bool:
            return self.unboxed(value).text
        if not value.kind.is_object:
            raise KitError(f"{value.kind} has no truth")
        if value.kind.cls in (list, tuple, dict):
            return self.value(f"icmp ne i64 {self.size(value)}, 0")
        runs = "" if value.kind.cls in SIZED else ANY
        status = self.call("PyObject_IsTrue", "i32", value, runs=runs)
        self.fine(status)
        return self.value(f"icmp ne i32 {status}, 0")

    def chosen(self, ways: Sequence[tuple[str, Callable[[], Value]]]) -> Value:
        """The value of whichever way the flow comes by; each begins at its label."""
        end, made = self.label(), []
        for label, make in ways:
            self.at(label)
            made.append((make(), self.block, self.known))
        kind, optional = made[0][0].kind, any(value.optional for value, _, _ in made)
        plain = not kind.is_object and all(value.kind == kind for value, _, _ in made)
        place = self.temporary(kind if plain else NONE)
        for value, self.block, self.known in made:  # where it ended
            self.put_in(place, value if plain else self.boxed(value))
            self.go(end)
        self.at(end)
        return self.loaded(place, optional=optional)

    def of_BoolOp(self, node: ast.expr) -> Value:
        yes, no = self.label(), self.label()
        self.condition(node, yes, no)
        truths = {yes: Value("true", BOOL), no: Value("false", BOOL)}
        return self.chosen([(label, partial(truths.__getitem__, label)) for label in truths])

    def of_IfExp(self, node: ast.IfExp) -> Value:
        yes, no = self.label(), self.label()
        self.condition(node.test, yes, no)
        parts = {yes: node.body, no: node.orelse}
        return self.chosen([(label, partial(self.of, parts[label])) for label in parts])

    def of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            truth = self.truth(self.of(node.operand))
            return Value(self.value(f"xor i1 {truth}, true"), BOOL)
        value = self.plain(node.operand)
        text = _UNARY.get((type(node.op), value.kind.llvm))
        if text is None:
            raise KitError(f"{ast.unparse(node)!r} is not supported")
        return Value(self.value(text.format(value.text)), value.kind)

    def of_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            raise KitError("comparisons in a row are not supported")
        a, b = self.operands([node.left, node.comparators[0]])
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self.identity(a, b, "eq" if isinstance(operator, ast.Is) else "ne")
        if type(operator) not in _COMPARED:
            raise KitError(f"{ast.unparse(node)!r} is not supported")
        return self.compared(type(operator), *self.alike(a, b))

    def compared(self, how: type, a: Value, b: Value) -> Value:
        """How two numbers of one kind compare."""
        whole, real = _COMPARED[how]
        test = f"fcmp {real}" if a.kind == FLOAT else f"icmp {whole}"
        return Value(self.value(f"{test} {a.kind.llvm} {a.text}, {b.text}"), BOOL)

    def identity(self, a: Value, b: Value, how: str) -> Value:
        a, b = (self.boxed(x) if x.kind == BOOL else x for x in (a, b))
        if not (a.kind.is_object and b.kind.is_object):
            raise KitError(f"`is` compares objects, not {a.kind} and {b.kind}")
        return Value(self.value(f"icmp {how} ptr {a.text}, {b.text}"), BOOL)

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
        if kind is ast.Div:
            zero = self.value(f"fcmp oeq double {b.text}, 0.0")
            self.refuse(zero, ZeroDivisionError, "float division by zero")
        return Value(self.value(f"{name} {a.kind.llvm} {a.text}, {b.text}"), a.kind)

    def is_shift(self, node: ast.expr) -> bool:
        """Whether a number is known to be one of 0 to 63."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            node = node.right
        known, number = self.constant(node)
        return known and type(number) is int and 0 <= number < 64
