"""A native function from the source of one in Python: its signature, ways out, and its flow."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.native.assignments import Assignments
from gnomon.native.emit import Facts, Value
from gnomon.native.kinds import (
    BOOL,
    GIVEN,
    INT,
    NOTHING,
    Kind,
    KitError,
    is_required,
    kind_of,
)

TRUTH = Kind("i8", bool)  # as functions give it: 2 stands for an error


@dataclass(frozen=True)
class Made:
    """A native function: its text, and what those who call it have to know."""

    symbol: str
    names: list[str]
    kinds: list[Kind]
    required: list[bool]  # parameters that native code reads slots of, and that are not to be None
    returns: Kind
    facts: Facts
    text: str


def make(unit: Any, function: Any, tree: ast.FunctionDef, linkage: str, symbol: str) -> Made:
    """The native form of a function of Python's.

    Raises:
        KitError: it does, or is, what is not supported; the error names file and line.
    """
    space = vars(builtins) | function.__globals__
    facts = Facts()
    while True:
        writer = unit.writer(unit, facts, function, tree, space)
        try:
            body = writer.write()
        except KitError as error:
            if error.placed:
                raise
            place = f"{function.__code__.co_filename}:{writer.line}"
            raise KitError(f"{place}: {error}", placed=True) from None
        if writer.is_settled():
            break
        facts = writer.facts.again()
    head = ", ".join(f"{k.llvm} %a.{n}" for n, k in zip(writer.names, writer.types, strict=True))
    start = f"define {linkage} {writer.returns.llvm} {symbol}({head})"
    text = f"{start} nounwind optsize {{\n{body}\n}}\n"
    names, kinds, required = writer.names, writer.types, writer.required
    return Made(symbol, names, kinds, required, writer.returns, writer.facts, text)


class Writer(Assignments):
    """Writes a function once, with what is known from before."""

    def __init__(
        self, unit: Any, before: Facts, function: Any, tree: ast.FunctionDef, space: dict[str, Any]
    ) -> None:
        self.tree = tree
        returns = _returned(function.__annotations__.get("return", object), space)
        super().__init__(unit, returns, before, space)
        self.line = tree.lineno
        rest = [] if tree.args.vararg is None else [tree.args.vararg]
        self.names = [a.arg for a in [*tree.args.args, *rest]]
        self.annotations = said = function.__annotations__
        self.result_required = is_required(said.get("return", object), space)
        self.types = [kind_of(said.get(a.arg, object), space) for a in tree.args.args]
        self.required = [is_required(said.get(a.arg, object), space) for a in tree.args.args]
        self.required += [False] * len(rest)
        self.types += [GIVEN] * len(rest)
        self.ends: list[tuple[str, str]] = []  # of the loops here: the next round, and the end

    def write(self) -> str:
        """The text of the body."""
        given = self.tree.args
        if given.kwonlyargs or given.kwarg or given.posonlyargs:
            raise KitError("parameters by position alone, or by name alone, are not supported")
        if missing := [a.arg for a in given.args if a.arg not in self.annotations]:
            raise KitError(f"parameter {missing[0]!r} has no annotation, as `{missing[0]}: object`")
        stored = _stored(self.tree)
        self.locals = stored | set(self.names)
        for name, kind in zip(self.names, self.types, strict=True):
            value = Value(f"%a.{name}", kind, steady=True)
            if name in stored:
                self.assign(name, value)
            else:
                self.given[name] = value
        if not self.block_of(self.tree.body):
            self.give(None)
        text = self.finish()
        self.find_kept()
        facts = self.facts
        if not self.returns.is_object or facts.runs:
            facts.lends = False
        return text

    def is_settled(self) -> bool:
        """Whether another writing would give the same."""
        return self.facts.variables() == self.before.variables()

    # --- statements: True where the flow does not go on behind them -----------------------------

    def block_of(self, body: Sequence[ast.stmt]) -> bool:
        """Write statements, up to the first behind which the flow does not go on."""
        for statement in body:
            self.line = statement.lineno
            method = getattr(self, "on_" + type(statement).__name__, None)
            if method is None:
                shown = ast.unparse(statement).splitlines()[0]
                raise KitError(f"{shown!r} is not supported")
            held = len(self.chain)
            if method(statement):
                return True
            if not isinstance(statement, (ast.If, ast.While, ast.Try)):  # whose bodies did
                self.let_go(self.chain[held:])
        return False

    def let_go(self, names: Sequence[str]) -> None:
        """Let go of what a statement or test in a loop held for itself, as Python does behind it.

        Outside of loops the way out does: nothing keeps a value for another round there.
        """
        for name in names:
            if self.loop is not None and name.startswith("."):
                text = self.value(f"load ptr, ptr %v{name}")
                self.emit(f"store ptr null, ptr %v{name}")
                self.drop_maybe(text, self.vars[name])

    def on_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.drop(self.of(node.value))

    def on_Return(self, node: ast.Return) -> bool:
        self.give(node.value)
        return True

    def give(self, node: ast.expr | None) -> None:
        """Leave with the value of an expression."""
        if self.returns == NOTHING:
            if node is not None and not (isinstance(node, ast.Constant) and node.value is None):
                self.drop(self.of(node))
            self.result("0")
        elif node is None:
            self.result_object(self.nothing())
        elif self.returns.is_object:
            self.result_object(self.of(node))
        elif self.returns == TRUTH:
            truth = self.fitted(self.of(node), BOOL, "return").text
            self.result(self.value(f"zext i1 {truth} to i8"))
        else:
            self.result(self.fitted(self.of(node), self.returns, "return").text)

    def result_object(self, value: Value) -> None:
        value = self.fitted(value, self.returns, "return")
        if self.result_required:
            self.no_none(value, TypeError, f"return: {self.returns} is expected, not None")
        if value.name in self.before.kept and not value.owned:
            self.emit(f"store ptr null, ptr %v{value.name}")  # its reference goes on
            self.facts.lends = False
        elif value.owned:
            self.facts.lends = False
        elif not self.before.lends:
            self.take(value)
        self.result(value.text)

    # --- flow -----------------------------------------------------------------------------------

    def on_If(self, node: ast.If) -> bool:
        self.fresh.clear()
        yes, no, on = self.label(), self.label(), self.label()
        narrow, held = self.narrow, len(self.chain)
        found = self.condition(node.test, yes, no)
        before, ways, tested = set(self.set), [], self.chain[held:]
        for label, body, known in ((yes, node.body, found[0]), (no, node.orelse, found[1])):
            self.set, self.narrow = set(before), narrow | known
            self.at(label)
            self.let_go(tested)
            if not self.block_of(body):
                self.go(on)
                ways.append((self.set, self.narrow))
            self.fresh.clear()
        return self.join(ways, on)

    def join(self, ways: Sequence[tuple[set[str], dict[str, Kind]]], on: str) -> bool:
        """Go on with what is known on all ways that come here; True where none does."""
        if not ways:
            return True
        self.set = set.intersection(*(known for known, _ in ways))
        self.narrow = dict(set.intersection(*(set(kinds.items()) for _, kinds in ways)))
        self.at(on)
        return False

    def on_Try(self, node: ast.Try) -> bool:
        """Statements whose errors of one class are taken back, then others."""
        if len(node.handlers) != 1 or node.orelse or node.finalbody:
            raise KitError("`try` has one `except`, and nothing else")
        (handler,) = node.handlers
        if handler.type is None or not self.constant(handler.type)[0]:
            raise KitError("`except` has one class")
        self.fresh.clear()
        before, narrow, ways, on = set(self.set), self.narrow, [], self.label()
        outer, self.catch = self.catch, f"catch.{self.number()}"
        if not self.block_of(node.body):
            self.go(on)
            ways.append((self.set, self.narrow))
        caught, self.catch = self.catch, outer
        self.set, self.narrow = set(before), narrow
        self.at(caught)
        self.caught(handler)
        if not self.block_of(handler.body):
            if handler.name is not None:
                self.assign(handler.name, self.nothing())
                self.set.discard(handler.name)
            self.go(on)
            ways.append((self.set, self.narrow))
        self.fresh.clear()
        return self.join(ways, on)

    def on_While(self, node: ast.While) -> None:
        if node.orelse:
            raise KitError("`else` of a loop is not supported")
        head, body, end = self.label(), self.label(), self.label()
        self.go(head)
        outermost, start = self.begin_loop(head, end)
        self.at(head)
        known, held = set(self.set), len(self.chain)
        self.narrow = self.narrow | self.condition(node.test, body, end)[0]
        self.at(body)
        tested = self.chain[held:]
        self.let_go(tested)
        if not self.block_of(node.body):
            self.go(head, back=True)
        self.close_loop(start, outermost, known, end)
        self.let_go(tested)

    def begin_loop(self, head: str, end: str) -> tuple[bool, int]:
        self.fresh.clear()
        self.steady_only()
        outermost = self.loop is None
        if outermost:
            self.loop = self.number()
        self.ends.append((head, end))
        return outermost, self.now()

    def steady_only(self) -> None:
        """Forget what comparisons said of variables that may be set in a loop."""
        self.narrow = {name: kind for name, kind in self.narrow.items() if name in self.given}

    def close_loop(self, start: int, outermost: bool, known: set[str], end: str) -> None:
        self.fresh.clear()
        self.steady_only()
        self.ends.pop()
        self.set = known
        self.end_loop(start, outermost)
        self.at(end)

    def on_Break(self, node: ast.Break) -> bool:
        self.go(self.ends[-1][1])
        return True

    def on_Continue(self, node: ast.Continue) -> bool:
        self.go(self.ends[-1][0])
        return True

    def on_For(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise KitError("a loop has one variable, and no `else`")
        source = node.iter
        known, thing = self.constant(source.func) if isinstance(source, ast.Call) else (False, None)
        if known and thing is range and isinstance(source, ast.Call):
            bounds = [self.unboxed(v) for v in self.operands(source.args)]
            if not 1 <= len(bounds) <= 2:
                raise KitError("range has one or two arguments here")
            first = bounds[0] if len(bounds) == 2 else Value("0", INT)
            self.count(node, first, bounds[-1], None)
        else:
            owner = self.hold(self.of(source))
            if owner.kind.cls not in (list, tuple):
                raise KitError(f"loops over {owner.kind} are not supported")
            self.count(node, Value("0", INT), None, owner)

    def count(self, node: ast.For, first: Value, last: Value | None, owner: Value | None) -> None:
        """A loop that counts: through numbers, or the places of a list or tuple."""
        name, head, step = self.hidden(), self.label(), self.label()
        body, end = self.label(), self.label()
        self.assign(name, first)
        self.go(head)
        outermost, start = self.begin_loop(step, end)
        self.at(head)
        if owner is not None:
            self.use([owner])
        bound = last.text if last is not None else self.size(owner)  # type: ignore[arg-type]
        index = self.read(name)
        self.branch(self.value(f"icmp slt i64 {index.text}, {bound}"), body, end)
        self.at(body)
        known = set(self.set)
        item = index if owner is None else self.element(owner, index)
        self.put(node.target, Value(item.text, item.kind, item.owned))
        if not self.block_of(node.body):
            self.go(step)
        self.at(step)
        self.assign(name, Value(self.value(f"add i64 {self.read(name).text}, 1"), INT))
        if owner is not None:
            self.use([owner])
        self.go(head, back=True)
        self.close_loop(start, outermost, known, end)


@functools.lru_cache(maxsize=256)
def _stored(tree: ast.FunctionDef) -> set[str]:
    """The variables that a function sets."""
    nodes = [*ast.walk(tree)]
    names = {x.id for x in nodes if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)}
    return names | {x.name for x in nodes if isinstance(x, ast.ExceptHandler) and x.name}


def _returned(said: Any, space: dict[str, Any]) -> Kind:
    """How a function gives what it says."""
    if said is None or said == "None":
        return NOTHING
    kind = kind_of(said, space)
    return TRUTH if kind == BOOL else kind
