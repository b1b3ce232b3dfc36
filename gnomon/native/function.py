"""A native function from the tree of one in Python: signature, statements, flow, what they set."""

from __future__ import annotations

import ast
import builtins
from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from gnomon.ground.collector import resting
from gnomon.native.builder import stored
from gnomon.native.calls import Calls
from gnomon.native.emit import Emitter
from gnomon.native.ir import ANY, Value, freeing
from gnomon.native.kinds import (
    BOOL,
    GIVEN,
    INT,
    NONE,
    NOTHING,
    OBJECT,
    Kind,
    KitError,
    has_parts,
    is_required,
    kind_of,
    named,
    slot_name,
    slot_of,
    word_type,
)
from gnomon.native.ownership import Ownership, find_ownership
from gnomon.native.words import Parts, not_annotated

TRUTH = Kind("i8", bool)  # as functions give it: 2 stands for an error
_NONE = ast.Constant(None)


class Loop(NamedTuple):
    """The labels of its next round and its end, and the kinds of variables before it."""

    again: str
    end: str
    kinds: dict[str, Kind]


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


class Lowering(Calls):
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
        yes, no, on = self.label(), self.label(), self.label()
        self.condition(node.test, yes, no)
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.at(label)
            if not self.block_of(body):
                self.go(on)
        return self.join(on)

    def on_Try(self, node: ast.Try) -> bool:
        """Statements whose errors of one class are taken back, then others."""
        if len(node.handlers) != 1 or node.orelse or node.finalbody:
            raise KitError("`try` has one `except`, and nothing else")
        (handler,) = node.handlers
        if handler.type is None or not self.constant(handler.type)[0]:
            raise KitError("`except` has one class")
        on, outer, self.catch = self.label(), self.catch, f"catch.{self.number()}"
        if not self.block_of(node.body):
            self.go(on)
        caught, self.catch = self.catch, outer
        self.at(caught)
        self.caught(handler)
        if not self.block_of(handler.body):
            if handler.name is not None:
                self.end_of(handler.name)
            self.go(on)
        return self.join(on)

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

    def end_of(self, name: str) -> None:
        """A variable has ended, and lets go of what it held."""
        if self.variables[name].kind.is_object:
            self.assign(name, self.nothing())
        self.unset(name)

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
        return self.join(on)

    def on_While(self, node: ast.While) -> None:
        if node.orelse:
            raise KitError("`else` of a loop is not supported")
        head, body, end = self.label(), self.label(), self.label()
        self.begin_loop(node, head, head, end)
        self.condition(node.test, body, end)
        self.at(body)
        if not self.block_of(node.body):
            self.go(head, back=True)
        self.end_loop()

    def begin_loop(self, node: ast.stmt, head: str, again: str, end: str) -> None:
        """Begin a loop at its head, where no more holds than in every round."""
        self.go(head)
        self.at(head)
        self.known = self.known.in_loop(stored([node]))
        kinds = {name: self.variables[name].kind for name in self.known.values}
        self.loops.append(Loop(again, end, kinds))

    def end_loop(self) -> None:
        """Go on behind a loop."""
        loop = self.loops.pop()
        for name, kind in loop.kinds.items():
            if self.variables[name].kind != kind:
                raise KitError(f"{name!r} is {kind} before a loop that sets it: annotate it")
        self.at(loop.end)

    def on_Break(self, node: ast.Break) -> bool:
        self.go(self.loops[-1].end)
        return True

    def on_Continue(self, node: ast.Continue) -> bool:
        self.go(self.loops[-1].again)
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

    def do_all(self, node: ast.expr) -> Value:
        return self.sought(node, False)

    def do_any(self, node: ast.expr) -> Value:
        return self.sought(node, True)

    def sought(self, node: ast.expr, truth: bool) -> Value:
        """This truth if a condition has it of some element, with which the loop ends."""
        match node:
            case ast.GeneratorExp(elt, [ast.comprehension(ast.Name() as each, things, [])]):
                test = elt if truth else ast.UnaryOp(ast.Not(), elt)
            case _:
                raise KitError("all() and any() ask `f(x) for x in things`")
        if each.id in self.locals:
            raise KitError(f"{each.id!r} is a variable outside as well")
        found = ast.Name(f"found.{self.number()}")
        self.put(found, Value(str(not truth).lower(), BOOL))
        ends = [ast.Assign([found], ast.Constant(truth)), ast.Break()]
        loop = ast.For(each, things, [ast.If(test, ends, [])], [])
        self.locals.add(each.id)
        self.on_For(ast.fix_missing_locations(ast.copy_location(loop, node)))
        self.locals.remove(each.id)
        self.end_of(each.id)
        return self.read(found.id)

    def count(self, node: ast.For, first: Value, last: Value | None, owner: Value | None) -> None:
        """A loop that counts: through numbers, or the places of a list or tuple."""
        place, head, step = self.temporary(INT), self.label(), self.label()
        body, end = self.label(), self.label()
        self.put_in(place, first)
        self.begin_loop(node, head, step, end)
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

    # --- what is set and deleted ----------------------------------------------------------------

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


def _returned(said: Any, space: dict[str, Any]) -> Kind:
    """How a function gives what it says."""
    if said is None or said == "None":
        return NOTHING
    kind = kind_of(said, space)
    return TRUTH if kind == BOOL else kind
