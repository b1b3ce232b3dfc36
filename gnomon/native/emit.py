"""The text of one native function: blocks, variables, references, and its ways out.

A value is *borrowed*, as Python's own code in C has it, or *owned*: a new reference. A variable
holds what is borrowed, unless that might go while the variable is needed: unless, between where it
is set and where it is used, other code may run, as a finaliser does, or something is let go of.
Such a variable, and one that is set to what is owned, is *kept*: it owns what it holds. Which are
kept is found by writing the function several times, until no more are.

Every way out lets go of the kept variables that may be set there; an error's also gives the value
that stands for errors: null of objects, 2 of truths; -1 of numbers where an error is raised.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gnomon.native.kinds import HARMLESS, INT, OBJECT, Kind, KitError

FAILED = {"i64": "-1", "double": "-1.0", "i8": "2", "ptr": "null"}
RARE = "!prof !0"  # the first of two ways is taken rarely
ONCE = "!llvm.loop !1"  # a loop's body is written once


@dataclass
class Value:
    """What an expression gives: the name in the text, its kind, and who owns the reference.

    `name` is the variable that it was read from, `root` one that keeps it for as long as it holds
    what it does; `steady` means that the value outlives the call.
    """

    text: str
    kind: Kind
    owned: bool = False
    name: str | None = None
    steady: bool = False
    root: str | None = None
    moment: int = 0  # when it was read from the variable
    sure: bool = False  # it is what its kind says, as a tuple's elements are, without a look
    optional: bool = False  # it was read from a slot that may hold None


@dataclass
class Facts:
    """What one writing of a function found out, for the next one and for those who call it."""

    kept: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)  # variables whose values may go meanwhile
    kinds: dict[str, Kind] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)  # variables set from slots that may hold None
    fails: bool = False  # it may raise an error
    runs: str = ""  # "all": any code may run in it; "plain": numbers may be let go of
    lends: bool = True  # the object that it gives is borrowed

    last: dict[str, int] = field(default_factory=dict)  # moments at which variables are last used

    def variables(self) -> tuple[Any, ...]:
        """What the text depends on."""
        return self.kept, self.loose, self.kinds, self.optional, self.lends, self.last

    def again(self) -> Facts:
        """What another writing begins with."""
        kinds, last = dict(self.kinds), dict(self.last)
        sets = set(self.kept), set(self.loose), kinds, set(self.optional)
        return Facts(*sets, lends=self.lends, last=last)


class Emitter:
    """Writes lines; `kinds` and `kept` are what is known of the variables from before."""

    def __init__(self, unit: Any, returns: Kind, before: Facts) -> None:
        self.unit = unit
        self.returns = returns
        self.before = before
        self.facts = before.again()
        self.lines: list[str] = []
        self.places: list[str] = []  # variables' memory
        self.chain: list[str] = []  # kept variables, as they come
        self.vars: dict[str, Kind] = {}
        self.set: set[str] = set()  # variables that have a value here, on whichever way
        self.narrow: dict[str, Kind] = {}  # what comparisons with classes say of variables here
        self.fresh: dict[str, set[str]] = {}  # new objects in variables: slots set so far
        self.line = 0
        self.position = 0, 0  # of the expression that is written: line and column
        self._hidden: dict[tuple[int, int], int] = {}
        self.catch: str | None = None  # where errors go, within `try`
        self.block = "start"
        self.loop: int | None = None  # the outermost loop here
        self._count = self.moment = 0
        self._exits: dict[str, int] = {}
        self._fails: set[str] = set()
        self._raised: dict[str, list[tuple[str, str, str]]] = {}
        self._defs: dict[str, list[int]] = {}
        self._uses: dict[str, list[int]] = {}
        self._runs: list[tuple[int, str]] = []
        self._loops: list[tuple[int, int]] = []

    # --- text -----------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def number(self) -> int:
        self._count += 1
        return self._count

    def hidden(self) -> str:
        """A name for a variable that the source has not: the same one each time it is written."""
        self._hidden[self.position] = k = self._hidden.get(self.position, 0) + 1
        return ".{}.{}.{}".format(*self.position, k)

    def value(self, text: str) -> str:
        """A name for the result of an instruction."""
        name = f"%t{self.number()}"
        self.emit(f"{name} = {text}")
        return name

    def label(self) -> str:
        return f"L{self.number()}"

    def at(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def go(self, label: str, back: bool = False) -> None:
        self.emit(f"br label %{label}" + f", {ONCE}" * back)

    def branch(self, truth: str, yes: str, no: str, rare: bool = False) -> None:
        hint = f", {RARE}" if rare else ""
        self.emit(f"br i1 {truth}, label %{yes}, label %{no}{hint}")

    def call(self, name: str, result: str, *given: tuple[str, str]) -> str:
        """Call a function in C; its result, "" where it has none."""
        types, varying = [t for t, _ in given], "..." in [v for _, v in given]
        shown = ", ".join(f"{t} {v}" for t, v in given if v != "...")
        if varying:
            types = types[: [v for _, v in given].index("...")] + ["..."]
        self.unit.declare(name, result, types)
        signature = f"{result} ({', '.join(types)})" if varying else result
        text = f"call {signature} @{name}({shown})"
        if result == "void":
            self.emit(text)
            return ""
        return self.value(text)

    # --- what runs when -------------------------------------------------------------------------

    def now(self) -> int:
        self.moment += 1
        return self.moment

    def runs(self, what: str) -> None:
        """Here any code may run ("all"), or numbers may be let go of ("plain")."""
        if what:
            self._runs.append((self.now(), what))
            if self.facts.runs != "all":
                self.facts.runs = what

    def letting_go(self, kind: Kind) -> str:
        """What may run where a value of a kind is let go of."""
        return "plain" if kind.cls in HARMLESS else "all"

    def used(self, name: str) -> None:
        self._uses.setdefault(name, []).append(self.now())

    def defined(self, name: str) -> None:
        self._defs.setdefault(name, []).append(self.now())
        self.set.add(name)

    def find_kept(self) -> None:
        """Adds the variables that are needed after something may have freed what they hold."""
        self.facts.last = {name: max(moments) for name, moments in self._uses.items()}
        for name, kind in self.vars.items():
            if name in self.facts.loose and any(
                self._endangered(*span, kind) for span in self._spans(name)
            ):
                self.facts.kept.add(name)

    def _spans(self, name: str) -> Iterable[tuple[int, int]]:
        """From where a variable is set to where it is used, also the next time round."""
        pairs = itertools.product(self._defs.get(name, ()), self._uses.get(name, ()))
        return [self._span(start, end) for start, end in pairs]

    def _span(self, start: int, end: int) -> tuple[int, int]:
        """What lies between two moments, the first of which may be in a round before."""
        low, high = start, end
        for first, last in self._loops:
            if first < end < last and start < last and (start < first or end < start):
                low, high = min(low, first) if end < start else low, max(high, last)
        return low, high

    def _endangered(self, start: int, end: int, kind: Kind) -> bool:
        held = kind.cls in HARMLESS or kind.cls is object
        return any(start < at < end and (what == "all" or held) for at, what in self._runs)

    # --- references -----------------------------------------------------------------------------

    def take(self, value: Value) -> str:
        """A reference of its own to a value: that of a variable, if nothing needs it any more."""
        name = value.name
        last = name in self.before.kept and self.before.last.get(name or "") == value.moment
        if last and self.loop is None and not value.owned:
            self.emit(f"store ptr null, ptr %v{name}")
        elif not value.owned:
            self.increase(value.text)
        return value.text

    def increase(self, text: str) -> None:
        """A reference more to an object."""
        self.emit(f"call void @kit.take(ptr {text})")

    def decrease(self, text: str) -> None:
        """A reference less to an object, or to null."""
        self.emit(f"call void @kit.drop(ptr {text})")

    def drop(self, value: Value) -> None:
        """Let go of a value, if that is owned."""
        if value.owned:
            self.drop_maybe(value.text, value.kind)

    def drop_maybe(self, text: str, kind: Kind) -> None:
        """Let go of what may be null."""
        self.decrease(text)
        self.runs(self.letting_go(kind))

    def declare(self, name: str, kind: Kind) -> Kind:
        """The kind of a variable, which is made now if it is new."""
        known = self.facts.kinds.get(name)
        if known is not None:
            kind = _joined(known, kind, name)
        self.facts.kinds[name] = kind
        if name not in self.vars:
            self.places.append(f"  %v{name} = alloca {kind.llvm}")
            if kind.is_object and name in self.before.kept:
                self.places.append(f"  store ptr null, ptr %v{name}")
        self.vars[name] = kind
        return kind

    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""
        kind = self.declare(name, value.kind)
        self.fresh.pop(name, None)
        self.narrow.pop(name, None)
        if kind.is_object and not value.steady:
            self.facts.loose.add(name)
        if value.optional:
            self.facts.optional.add(name)
        if kind.is_object and name in self.before.kept:
            text = self.take(value)
            again = name in self.chain or self.loop is not None
            if name not in self.chain:
                self.chain.append(name)
            old = self.value(f"load ptr, ptr %v{name}") if again else ""
            self.emit(f"store ptr {text}, ptr %v{name}")
            if again:
                self.drop_maybe(old, kind)
        else:
            if value.owned:
                self.facts.kept.add(name)
            self.emit(f"store {kind.llvm} {value.text}, ptr %v{name}")
        self.defined(name)

    def read(self, name: str) -> Value:
        """What a variable holds."""
        if name not in self.set:
            raise KitError(f"{name!r} may not be set here")
        kind = self.vars[name]
        self.used(name)
        steady = name not in self.before.loose
        text = self.value(f"load {kind.llvm}, ptr %v{name}")
        optional = name in self.facts.optional
        return Value(text, kind, False, name, steady, moment=self.moment, optional=optional)

    def hold(self, value: Value) -> Value:
        """A value that stays while other code runs: in a variable, where it is in none."""
        if not value.kind.is_object or value.steady or value.name or value.root:
            return value
        name = self.hidden()
        self.assign(name, value)
        return replace(self.read(name), sure=value.sure)

    def firm(self, value: Value) -> Value:
        """A value that goes with the function, if it is a new one."""
        return self.hold(value) if value.owned else value

    def no_none(self, value: Value, cls: type, said: str) -> Value:
        """A value that is not None: a slot may have changed since it was compared with None."""
        if value.optional:
            self.refuse(self.value(f"icmp eq ptr {value.text}, @None"), cls, said)
        return value

    # --- ways out -------------------------------------------------------------------------------

    def way_out(self) -> str:
        """The label behind which all is let go of that may be held here."""
        where = f"exit.{len(self.chain)}" if self.loop is None else f"exit.loop.{self.loop}"
        if self.loop is None:
            self._exits[where] = len(self.chain)
        return where

    def failure(self) -> str:
        """The label behind which the function ends with the error that is raised."""
        if self.catch is not None:
            return self.catch
        self.facts.fails = True
        where = self.way_out()
        self._fails.add(where)
        return f"fail.{where}"

    def check(self, failed: str) -> None:
        """End with an error if that is so."""
        fine = self.label()
        self.branch(failed, self.failure(), fine, rare=True)
        self.at(fine)

    def refuse(self, wrong: str, cls: type, said: str) -> None:
        """End with an error of that class if something is wrong."""
        fine, where = self.label(), self.failure()
        self.branch(wrong, f"raise.{where}", fine, rare=True)
        case = f"@{cls.__name__}", self.unit.text_symbol(said), self.block
        self._raised.setdefault(where, []).append(case)
        self.at(fine)

    def end_loop(self, start: int, outermost: bool) -> None:
        """The loop that began at that moment ends here."""
        self._loops.append((start, self.now()))
        if outermost:
            self._exits[f"exit.loop.{self.loop}"] = len(self.chain)
            self.loop = None

    def result(self, text: str) -> None:
        """Set the result, and leave."""
        self.emit(f"store {self.returns.llvm} {text}, ptr %result")
        self.go(self.way_out())

    def finish(self) -> str:
        """The body's text, with all ways out."""
        for where, cases in self._raised.items():
            classes = ", ".join(f"[{cls}, %{at}]" for cls, _, at in cases)
            said = ", ".join(f"[{text}, %{at}]" for _, text, at in cases)
            self.lines += [f"raise.{where}:"]
            error = self.value(f"phi ptr {classes}"), self.value(f"phi ptr {said}")
            self.call("PyErr_SetString", "void", *(("ptr", x) for x in error))
            self.go(where)
        for where in sorted(self._fails):
            self.lines += [f"fail.{where}:"]
            self.emit(f"store {self.returns.llvm} {FAILED[self.returns.llvm]}, ptr %result")
            self.go(where)
        for where, count in self._exits.items():
            if where.startswith("exit.loop"):
                self.lines += [f"{where}:", f"  br label %exit.{count}"]
        for k in range(len(self.chain), 0, -1):
            self.lines += [f"exit.{k}:"]
            name = self.chain[k - 1]
            text = self.value(f"load ptr, ptr %v{name}")
            self.drop_maybe(text, self.vars[name])
            self.go(f"exit.{k - 1}")
        kind = self.returns.llvm
        self.lines += ["exit.0:", f"  %answer = load {kind}, ptr %result", f"  ret {kind} %answer"]
        places = [f"  %result = alloca {kind}", *self.places]
        return "\n".join(["entry:", *places, "  br label %start", "start:", *self.lines])


def _joined(known: Kind, kind: Kind, name: str) -> Kind:
    """The kind of a variable that holds values of both."""
    if name.startswith(".") and known.is_object != kind.is_object:
        # of a choice, whose cases are objects when it is written again
        return Kind("ptr", kind.cls) if known.cls is kind.cls else OBJECT
    if known == kind or kind.cls is type(None) or (known == INT and kind.cls is int):
        return known
    if known.cls is type(None) and kind.is_object:
        return kind
    if known.is_object and kind.is_object:
        if issubclass(kind.cls, known.cls):
            return known if known.items or not kind.items else kind
        return kind if issubclass(known.cls, kind.cls) else OBJECT
    raise KitError(f"{name!r} is {known} and {kind}")
