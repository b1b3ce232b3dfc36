"""`op`: a plain Python function of scalars becomes a scalar function, compiled instead of called.

The source is read once, at decoration. Statements are carried out over symbols: an assignment binds
a name to a symbol, both branches of an `if` are written down, and what they bind or return is
selected by the condition. What is not a symbol (numbers of closures, `math.pi`) is computed right
away by Python.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from gnomon.expr.functions.callables import floor_division, is_constant, power, remainder, rule_of
from gnomon.expr.functions.formula import Operand, Sym, Tape, select
from gnomon.expr.functions.scalar import ScalarFn
from gnomon.expr.source import ALLOWED, OperatorError, Source
from gnomon.ground.record import record


@overload
def op(function: Callable[..., Any]) -> ScalarFn: ...


@overload
def op(*, name: str) -> Callable[[Callable[..., Any]], ScalarFn]: ...


def op(function: Callable[..., Any] | None = None, *, name: str = "") -> Any:
    """The scalar function that a Python function of scalars describes.

    It can be mapped over expressions, called on numbers, used in other operators, and
    differentiated: `f.grad(i)` is derived, `f.set_grad(i, g)` declares another. Numbers the
    function takes from around it are read once, now.

    >>> @op
    ... def leaky(x):
    ...     return x if x > 0 else 0.1 * x
    >>> leaky(-2.0), leaky.grad(0)(-2.0), leaky.grad(0)(3.0)
    (-0.2, 0.1, 1.0)

    Raises:
        OperatorError: the source is not to be had, or holds what cannot be compiled.
    """
    if function is None:
        return functools.partial(_make, name=name)
    return _make(function, name=name)


def _make(function: Callable[..., Any], name: str) -> ScalarFn:
    if isinstance(function, ScalarFn):
        return function
    if not isinstance(function, types.FunctionType):
        raise OperatorError(f"op: expected a Python function of scalars, got {function!r}")
    source = Source(function)
    arguments = source.arguments()
    tape = Tape(len(arguments))
    writer = Writer(source, tape, outer_names(function))
    result = writer.result(dict(zip(arguments, tape.symbols, strict=True)))
    body = tape.formula(result)
    if body.bits and body.floats:
        beside = f"{' '.join(body.bits)} of integers beside what is of floats alone"
        source.refuse(source.node, beside, "Make them two operators, with a tcast between.")
    made = ScalarFn(name or function.__name__, body, doc=function.__doc__ or "")
    functools.update_wrapper(made, function, updated=())
    made.__name__ = made.name
    return made


def outer_names(function: types.FunctionType) -> dict[str, Any]:
    """What the names mean that a function takes from around it."""
    names = {**vars(builtins), **function.__globals__}
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            names.pop(name, None)
    return names


@record(frozen=False)
class Flow:
    """Where a block leads: the names bound at its end, and what it returns, `when` that happens."""

    names: dict[str, Any]
    value: Any = None
    when: Sym | bool = False


MISSING = object()  # bound on one path only

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_SYMBOLIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **_BINARY,
    ast.FloorDiv: floor_division,
    ast.Mod: remainder,
    ast.Pow: power,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Writer:
    """Carries a function out over symbols."""

    def __init__(self, source: Source, tape: Tape, outer: dict[str, Any]) -> None:
        self.source, self.tape, self.outer = source, tape, outer

    def result(self, names: dict[str, Any]) -> Operand:
        """What the function returns."""
        node = self.source.node
        if isinstance(node, ast.Lambda):
            return self.number(node.body, names)
        flow = self.block(node.body, names)
        if flow.when is not True:
            self.source.refuse(node, "a path that ends without return", "Return on every path.")
        return self.operand(flow.value, node)

    def block(self, body: Sequence[ast.stmt], names: dict[str, Any]) -> Flow:
        """Carries out statements; `names` is what they find."""
        names = dict(names)
        for k, node in enumerate(body):
            if isinstance(node, ast.Return):
                if node.value is None:
                    self.source.refuse(node, "return without a value")
                return Flow(names, self.number(node.value, names), True)
            if isinstance(node, ast.If):
                return self.branch(node, body[k + 1 :], names)
            self.statement(node, names)
        return Flow(names)

    def branch(self, node: ast.If, rest: Sequence[ast.stmt], names: dict[str, Any]) -> Flow:
        """An `if`, and the statements after it."""
        condition = self.number(node.test, names)
        if not isinstance(condition, Sym):
            return self.block([*(node.body if condition else node.orelse), *rest], names)
        condition = self.tape.truth(condition)
        yes, no = self.block(node.body, names), self.block(node.orelse, names)
        if yes.when is True and no.when is True:
            return Flow({}, self.choose(condition, yes.value, no.value), True)
        if yes.when is True and no.when is False:
            return self.early(condition, yes.value, self.block(rest, no.names))
        if no.when is True and yes.when is False:
            return self.early(~condition, no.value, self.block(rest, yes.names))
        merged = self.merged(condition, yes.names, no.names)
        after = self.block(rest, merged)
        if yes.when is False and no.when is False:
            return after
        when = self.choose(condition, yes.when, no.when)
        value = yes.value if no.when is False else no.value
        if yes.when is not False and no.when is not False:
            value = self.choose(condition, yes.value, no.value)
        return self.early(when, value, after)

    def early(self, when: Sym, value: Any, after: Flow) -> Flow:
        """Returns `value` where `when` holds, else goes on as `after`."""
        if after.when is False:
            return Flow(after.names, value, when)
        both = True if after.when is True else when | after.when
        return Flow(after.names, self.choose(when, value, after.value), both)

    def merged(self, condition: Sym, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
        """The names after an `if` whose branches bound these."""
        names = {}
        for name in {**yes, **no}:
            a, b = yes.get(name, MISSING), no.get(name, MISSING)
            if a is MISSING or b is MISSING:
                names[name] = MISSING
            else:
                names[name] = a if _same(a, b) else self.choose(condition, a, b)
        return names

    def choose(self, condition: Sym, yes: Any, no: Any) -> Any:
        """A select, or the value itself where both are the same."""
        return yes if _same(yes, no) else select(condition, self.tape.lift(yes), self.tape.lift(no))

    def statement(self, node: ast.stmt, names: dict[str, Any]) -> None:
        """Carries out an assignment; docstrings and `pass` are nothing."""
        if isinstance(node, ast.Assign):
            value = node.value
            for target in node.targets:
                self.bind(target, value, names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            names[node.target.id] = self.binary(node, node.op, old, node.value, names)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                names[node.target.id] = self.value(node.value, names)
        elif not isinstance(node, ast.Pass) and not _is_docstring(node):
            inner = node.value if isinstance(node, ast.Expr) else node
            self.source.refuse(node, _called(inner if type(inner).__name__ in _SPOKEN else node))

    def bind(self, target: ast.expr, value: ast.expr, names: dict[str, Any]) -> None:
        """`target = value`; several names at once from as many values."""
        if isinstance(target, ast.Name):
            names[target.id] = self.value(value, names)
            return
        pair = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        if not pair or len(target.elts) != len(value.elts):  # type: ignore[attr-defined]
            self.source.refuse(target, "an assignment to anything but names")
        values = [self.value(v, names) for v in value.elts]  # type: ignore[attr-defined]
        for one, v in zip(target.elts, values, strict=True):  # type: ignore[attr-defined]
            if not isinstance(one, ast.Name):
                self.source.refuse(one, "an assignment to anything but names")
            names[one.id] = v

    def number(self, node: ast.expr, names: dict[str, Any]) -> Operand:
        """The value of an expression, which must be a number."""
        return self.operand(self.value(node, names), node)

    def operand(self, value: Any, node: ast.AST) -> Operand:
        """`value` as a symbol or a Python number."""
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, Sym | int | float):
            self.source.refuse(node, f"{value!r}, which is no number,")
        return value

    def value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        """The value of an expression: a symbol, a number, or what is called."""
        rule = getattr(self, f"do_{type(node).__name__}", None)
        if rule is None:
            self.source.refuse(node, _called(node))
        return rule(node, names)

    def do_Constant(self, node: ast.Constant, names: dict[str, Any]) -> Any:
        return self.operand(node.value, node)

    def do_Name(self, node: ast.Name, names: dict[str, Any]) -> Any:
        if node.id in names:
            if names[node.id] is MISSING:
                self.source.refuse(node, f"{node.id}, which only one branch has set,")
            return names[node.id]
        if node.id in self.source.code.co_varnames:
            self.source.refuse(node, f"{node.id}, which is not set yet,")
        if node.id == self.source.code.co_name:
            self.source.refuse(node, f"{node.id} in {node.id} itself")
        if node.id not in self.outer:
            self.source.refuse(node, f"{node.id}, which is not defined,")
        return self.outer[node.id]

    def do_Attribute(self, node: ast.Attribute, names: dict[str, Any]) -> Any:
        owner = self.value(node.value, names)
        if isinstance(owner, Sym) or not hasattr(owner, node.attr):
            self.source.refuse(node, f"the attribute {node.attr}")
        return getattr(owner, node.attr)

    def do_BinOp(self, node: ast.BinOp, names: dict[str, Any]) -> Any:
        return self.binary(node, node.op, node.left, node.right, names)

    def binary(
        self, node: ast.AST, kind: ast.operator, a: ast.expr, b: ast.expr, names: dict[str, Any]
    ) -> Any:
        """An arithmetic operation."""
        if type(kind) not in _BINARY:
            self.source.refuse(node, f"the operator {_SIGNS.get(type(kind).__name__)}")
        left, right = self.number(a, names), self.number(b, names)
        symbolic = isinstance(left, Sym) or isinstance(right, Sym)
        rule = (_SYMBOLIC if symbolic else _BINARY)[type(kind)]
        return self.attempt(node, rule, left, right)

    def attempt(self, node: ast.AST, rule: Callable[..., Any], *args: Any) -> Any:
        """`rule` of `args`; what Python complains of becomes an error at `node`."""
        try:
            return rule(*args)
        except (ArithmeticError, ValueError, TypeError) as error:
            self.source.refuse(node, f"this ({error})")

    def do_UnaryOp(self, node: ast.UnaryOp, names: dict[str, Any]) -> Any:
        x = self.number(node.operand, names)
        if isinstance(node.op, ast.Not):
            return ~self.tape.truth(x) if isinstance(x, Sym) else not x
        if isinstance(node.op, ast.Invert):
            return self.attempt(node, operator.invert, x)
        return -x if isinstance(node.op, ast.USub) else x

    def do_Compare(self, node: ast.Compare, names: dict[str, Any]) -> Any:
        for kind in node.ops:
            if type(kind) not in _COMPARE:
                self.source.refuse(node, f"the comparison {_SIGNS.get(type(kind).__name__)}")
        terms = [self.number(x, names) for x in (node.left, *node.comparators)]
        found: Any = True
        for kind, a, b in zip(node.ops, terms[:-1], terms[1:], strict=True):
            one = _COMPARE[type(kind)](a, b)
            found = self.both(found, one)
        return found

    def both(self, a: Any, b: Any) -> Any:
        """`a and b` of truth values."""
        if isinstance(a, Sym) and isinstance(b, Sym):
            return a & b
        if isinstance(a, Sym):
            a, b = b, a
        return b if a else False

    def do_BoolOp(self, node: ast.BoolOp, names: dict[str, Any]) -> Any:
        values = [self.number(x, names) for x in node.values]
        return functools.reduce(
            functools.partial(self.logical, isinstance(node.op, ast.And)), values
        )

    def logical(self, conjunction: bool, a: Any, b: Any) -> Any:
        """`a and b` or `a or b`, which in Python give one of their operands."""
        if not isinstance(a, Sym):
            return b if bool(a) is conjunction else a
        if a.truth and isinstance(b, Sym) and b.truth:
            return a & b if conjunction else a | b
        return self.choose(self.tape.truth(a), *((b, a) if conjunction else (a, b)))

    def do_IfExp(self, node: ast.IfExp, names: dict[str, Any]) -> Any:
        condition = self.number(node.test, names)
        if not isinstance(condition, Sym):
            return self.value(node.body if condition else node.orelse, names)
        yes, no = self.number(node.body, names), self.number(node.orelse, names)
        return self.choose(self.tape.truth(condition), yes, no)

    def do_Call(self, node: ast.Call, names: dict[str, Any]) -> Any:
        function = self.value(node.func, names)
        if function is float and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            return self.attempt(node, float, node.args[0].value)  # float("inf")
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            self.source.refuse(node, "a call with keywords or *")
        args = [self.number(a, names) for a in node.args]
        symbolic = any(isinstance(a, Sym) for a in args)
        if not symbolic and is_constant(function):
            known = self.attempt(node, function, *args)
            if isinstance(known, np.ndarray) and not known.ndim:  # as np.where gives of numbers
                known = known.item()
            return self.operand(known, node)
        rule = rule_of(function) if symbolic else None
        if rule is None:
            called = "a number" if isinstance(function, Sym) else repr(function)
            called = getattr(function, "__name__", called)
            instead = f"Decorate it with @op if it is yours. Allowed: {ALLOWED}."
            self.source.refuse(node, f"a call of {called}", instead)
        return self.attempt(node, rule, *args)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Sym) or isinstance(b, Sym):
        return isinstance(a, Sym) and isinstance(b, Sym) and (a.ref, a.truth) == (b.ref, b.truth)
    return a is b or (type(a) is type(b) and repr(a) == repr(b))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_SPOKEN = {
    "For": "a for loop", "While": "a while loop", "With": "a with block", "Try": "try",
    "FunctionDef": "a function inside", "Import": "an import", "ImportFrom": "an import",
    "Global": "global", "Nonlocal": "nonlocal", "Raise": "raise", "Assert": "assert",
    "Delete": "del", "Subscript": "indexing", "List": "a list", "Tuple": "a tuple",
    "Dict": "a dict", "ListComp": "a comprehension", "GeneratorExp": "a generator",
    "Lambda": "a lambda", "JoinedStr": "a string", "NamedExpr": "the operator :=",
    "Await": "await", "Yield": "yield", "YieldFrom": "yield", "Match": "match",
    "Expr": "an expression whose value nothing takes", "AugAssign": "an assignment to no name",
    "AnnAssign": "an assignment to no name", "Set": "a set", "SetComp": "a comprehension",
    "DictComp": "a comprehension", "AsyncFor": "async", "AsyncWith": "async", "TryStar": "try",
    "AsyncFunctionDef": "a function inside", "ClassDef": "a class", "Starred": "the sign *",
    "Break": "break", "Continue": "continue", "TypeAlias": "a type", "Slice": "indexing",
}  # fmt: skip
_SIGNS = {
    "MatMult": "@", "In": "in", "NotIn": "not in", "Is": "is", "IsNot": "is not",
}  # fmt: skip


def _called(node: ast.AST) -> str:
    """The kind of a node in words."""
    return _SPOKEN.get(type(node).__name__, type(node).__name__)
