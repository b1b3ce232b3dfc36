"""A native function from the tree of one in Python: its signature, statements, and their flow."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

from gnomon.ground.collector import resting
from gnomon.native.assignments import Assignments
from gnomon.native.builder import stored
from gnomon.native.emit import Emitter
from gnomon.native.ir import Value
from gnomon.native.kinds import BOOL, GIVEN, INT, NOTHING, Kind, KitError, is_required, kind_of
from gnomon.native.ownership import Ownership, find_ownership
from gnomon.native.words import not_annotated

TRUTH = Kind("i8", bool)  # as functions give it: 2 stands for an error
_NONE = ast.Constant(None)
#: of variables: which are set, which may be None, and what comparisons say of them
Here = tuple[set[str], set[str], dict[str, Kind]]


class Loop(NamedTuple):
    """The labels of its next round and its end, and what is known of variables before it."""

    head: str
    end: str
    kinds: dict[str, Kind]
    set_before: set[str]
    optional: set[str]


class Parameter(NamedTuple):
    """A parameter; of one that is `required` native code reads slots, and it is not to be None."""

    name: str
    kind: Kind
    required: bool = False


class Made(NamedTuple):
    """A native function: its text, and what those who call it have to know."""

    symbol: str
    parameters: list[Parameter]
    returns: Kind
    found: Ownership
    text: str


def make(unit: Any, function: Any, tree: ast.FunctionDef, linkage: str, symbol: str) -> Made:
    """The native form of a function of Python's.

    Raises:
        KitError: it does, or is, what is not supported; the error names file and line.
    """
    space = vars(builtins) | function.__globals__
    lowered = unit.lowering(unit, function, tree, space)
    try:
        lowered.lower()
    except KitError as error:
        if error.placed:
            raise
        place = f"{function.__code__.co_filename}:{lowered.line}"
        raise KitError(f"{place}: {error}", placed=True) from None
    parameters, returns = lowered.parameters, lowered.returns
    found = find_ownership(lowered.blocks, lowered.registers, may_lend=returns.is_object)
    head = ", ".join(f"{p.kind.llvm} %a.{p.name}" for p in parameters)
    start = f"define {linkage} {returns.llvm} {symbol}({head})"
    text = f"{start} nounwind optsize {{\n{Emitter(lowered, found).text()}\n}}\n"
    return Made(symbol, parameters, returns, found, text)


class Lowering(Assignments):
    """Builds the intermediate form of a function."""

    def __init__(
        self, unit: Any, function: Any, tree: ast.FunctionDef, space: dict[str, Any]
    ) -> None:
        self.function, self.tree = function, tree
        returns = _returned(function.__annotations__.get("return", object), space)
        super().__init__(unit, returns, space)
        self.line = tree.lineno
        said = function.__annotations__
        self.result_required = is_required(said.get("return", object), space)
        kinds = [(a.arg, said.get(a.arg, object)) for a in tree.args.args]
        self.parameters = [Parameter(n, kind_of(x, space), is_required(x, space)) for n, x in kinds]
        if tree.args.vararg is not None:
            self.parameters.append(Parameter(tree.args.vararg.arg, GIVEN))

    def lower(self) -> None:
        """Build the body."""
        given = self.tree.args
        if given.kwonlyargs or given.kwarg or given.posonlyargs:
            raise KitError("parameters by position alone, or by name alone, are not supported")
        if missing := [a for a in given.args if a.arg not in self.function.__annotations__]:
            raise not_annotated(self.function, missing[0].arg, missing[0].lineno)
        changed = stored(self.tree.body)
        self.locals = changed | {p.name for p in self.parameters}
        for name, kind, _ in self.parameters:
            value = Value(f"%a.{name}", kind)
            if name in changed:
                self.assign(name, value)
            else:
                self.given[name] = value
        if not self.block_of(self.tree.body):
            self.give(None)

    # --- statements: True where the flow does not go on behind them -----------------------------

    def block_of(self, body: Sequence[ast.stmt]) -> bool:
        """Write statements, up to the first behind which the flow does not go on."""
        for statement in body:
            self.line = statement.lineno
            method = getattr(self, "on_" + type(statement).__name__, None)
            if method is None:
                shown = ast.unparse(statement).splitlines()[0]
                raise KitError(f"{shown!r} is not supported")
            if method(statement):
                return True
        return False

    def on_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.of(node.value)

    def on_Return(self, node: ast.Return) -> bool:
        self.give(node.value)
        return True

    def give(self, node: ast.expr | None) -> None:
        """Leave with the value of an expression."""
        kind = self.returns
        if kind == NOTHING:
            if node is not None and not (isinstance(node, ast.Constant) and node.value is None):
                self.of(node)
            self.result(Value("0", kind))
        elif kind == TRUTH:
            truth = self.fitted(self.of(node or _NONE), BOOL, "return").text
            self.result(Value(self.value(f"zext i1 {truth} to i8"), kind))
        else:
            value = self.fitted(self.of(node or _NONE), kind, "return")
            if kind.is_object and self.result_required:
                self.no_none(value, TypeError, f"return: {kind} is expected, not None")
            self.result(value)

    # --- flow -----------------------------------------------------------------------------------

    def on_If(self, node: ast.If) -> bool:
        self.fresh.clear()
        yes, no, on = self.label(), self.label(), self.label()
        narrow = self.narrow
        found = self.condition(node.test, yes, no)
        (known_set, optional, _), ways = self.here(), list[Here]()
        for label, body, known in ((yes, node.body, found[0]), (no, node.orelse, found[1])):
            self.set, self.optional = set(known_set), set(optional)
            self.narrow = narrow | known
            self.at(label)
            if not self.block_of(body):
                self.go(on)
                ways.append(self.here())
            self.fresh.clear()
        return self.join(ways, on)

    def here(self) -> Here:
        """What is known of variables at this place."""
        return self.set, self.optional, self.narrow

    def join(self, ways: Sequence[Here], on: str) -> bool:
        """Go on with what is known on all ways that come here; True where none does."""
        if not ways:
            return True
        self.set = set.intersection(*(known for known, _, _ in ways))
        self.optional = set.union(*(known for _, known, _ in ways))
        self.narrow = dict(set.intersection(*(set(kinds.items()) for _, _, kinds in ways)))
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
        known, narrow, ways, on = set(self.set), self.narrow, list[Here](), self.label()
        outer, self.catch = self.catch, f"catch.{self.number()}"
        if not self.block_of(node.body):
            self.go(on)
            ways.append(self.here())
        caught, self.catch = self.catch, outer
        self.set, self.narrow = known, narrow
        self.optional = self.optional | stored(node.body)
        self.at(caught)
        self.caught(handler)
        if not self.block_of(handler.body):
            if handler.name is not None:
                self.assign(handler.name, self.nothing())
                self.set.discard(handler.name)
            self.go(on)
            ways.append(self.here())
        self.fresh.clear()
        return self.join(ways, on)

    def on_With(self, node: ast.With) -> bool:
        """Statements during which the collector rests."""
        made = node.items[0].context_expr
        known = isinstance(made, ast.Call) and not made.args and self.constant(made.func)
        if not known or known[1] is not resting or len(node.items) > 1:
            raise KitError("`with` is for `resting()`")
        if any(isinstance(part, (ast.Break, ast.Continue)) for part in ast.walk(node)):
            raise KitError("no round of a loop ends where the collector rests")
        outer, self.catch = self.catch, f"catch.{self.number()}"
        was_on, on = self.call("PyGC_Disable", "i32"), self.label()
        self.rests.append(was_on)
        ended = self.block_of(node.body)
        caught, self.catch = self.catch, outer
        self.rests.pop()
        if not ended:
            self.end_rest(was_on)
            self.go(on)
        self.at(caught)
        self.end_rest(was_on)
        self.go(self.failure())
        if not ended:
            self.at(on)
        return ended

    def on_While(self, node: ast.While) -> None:
        if node.orelse:
            raise KitError("`else` of a loop is not supported")
        head, body, end = self.label(), self.label(), self.label()
        self.go(head)
        self.begin_loop(node.body, head, end)
        self.at(head)
        self.narrow = self.narrow | self.condition(node.test, body, end)[0]
        self.at(body)
        if not self.block_of(node.body):
            self.go(head, back=True)
        self.end_loop()

    def begin_loop(self, body: Sequence[ast.stmt], head: str, end: str) -> None:
        """Begin a loop: what holds where it ends also holds where it begins."""
        self.fresh.clear()
        self.forget_compared()
        self.optional = self.optional | stored(body)
        kinds = {name: self.variables[name].kind for name in self.set}
        self.loops.append(Loop(head, end, kinds, set(self.set), set(self.optional)))

    def forget_compared(self) -> None:
        """Forget what comparisons said of variables that may be set in a loop."""
        self.narrow = {name: kind for name, kind in self.narrow.items() if name in self.given}

    def end_loop(self) -> None:
        """Go on behind a loop, with what was known where it began."""
        self.fresh.clear()
        self.forget_compared()
        loop = self.loops.pop()
        for name, kind in loop.kinds.items():
            if self.variables[name].kind != kind:
                raise KitError(f"{name!r} is {kind} before a loop that sets it: annotate it")
        self.set, self.optional = loop.set_before, loop.optional
        self.at(loop.end)

    def on_Break(self, node: ast.Break) -> bool:
        self.go(self.loops[-1].end)
        return True

    def on_Continue(self, node: ast.Continue) -> bool:
        self.go(self.loops[-1].head)
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
            owner = self.of(source)
            if owner.kind.cls not in (list, tuple):
                raise KitError(f"loops over {owner.kind} are not supported")
            if owner.name in stored(node.body):  # the loop goes on with what it began with
                place = self.temporary(owner.kind)
                self.put_in(place, owner)
                owner = self.loaded(place)
            self.count(node, Value("0", INT), None, owner)

    def count(self, node: ast.For, first: Value, last: Value | None, owner: Value | None) -> None:
        """A loop that counts: through numbers, or the places of a list or tuple."""
        place, head, step = self.temporary(INT), self.label(), self.label()
        body, end = self.label(), self.label()
        self.put_in(place, first)
        self.go(head)
        self.begin_loop(node.body, step, end)
        self.at(head)
        bound = last.text if last is not None else self.size(owner)  # type: ignore[arg-type]
        index = self.loaded(place)
        self.branch(self.value(f"icmp slt i64 {index.text}, {bound}"), body, end)
        self.at(body)
        self.put(node.target, index if owner is None else self.element(owner, index))
        if not self.block_of(node.body):
            self.go(step)
        self.at(step)
        self.put_in(place, Value(self.value(f"add i64 {self.loaded(place).text}, 1"), INT))
        self.go(head, back=True)
        self.end_loop()


def _returned(said: Any, space: dict[str, Any]) -> Kind:
    """How a function gives what it says."""
    if said is None or said == "None":
        return NOTHING
    kind = kind_of(said, space)
    return TRUTH if kind == BOOL else kind
