"""Loop nests as readable pseudo-C, and as an outline of their phases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from gnomon.expr.term import Arena, Term
from gnomon.plan.ir import Body, Fold, Kernel, Let, Phase, Put, every, reducer_of

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "idiv": "/",
    "imod": "%",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "lshr": ">>",
    "shr": ">>",
}
SAVES = {"saveto": "=", "plusto": "+=", "minusto": "-=", "multo": "*=", "divto": "/="}
INDENT = "  "
LETTERS = "ijkpqr"


def outline(kernel: Kernel) -> str:
    """One line a phase: its loops, what is vectorised, what may be cut among threads."""
    printer = _Printer(kernel)
    lines = []
    for number, phase in enumerate(kernel.phases):
        loops = [f"{printer.var(v)} < {printer.extent(v)}" for v in phase.rows]
        loops += [f"{printer.var(v)} < {printer.extent(v)} in order" for v in phase.turns]
        if phase.inner is not None:
            how = " in lanes" if phase.vector else ""
            loops.append(f"{printer.var(phase.inner)} < {printer.extent(phase.inner)}{how}")
        cut = "cut anywhere" if phase.split else "cut between rows"
        stores = ", ".join(f"{p.dest!r} {p.saver}" for p in puts(phase.body))
        lines.append(f"phase {number}: for {', '.join(loops) or 'once'}; {cut}; {stores}")
    for operand, size in kernel.scratch:
        lines.append(f"scratch {operand!r}: {printer.text(size)} of {operand.dtype.name}")
    return "\n".join(lines)


def loops(kernel: Kernel) -> str:
    """The whole kernel as pseudo-C; n0, n1, ... are sizes, a0, a1, ... numbers."""
    return "\n".join(line for phase in kernel.phases for line in _Printer(kernel).phase(phase))


def size(kernel: Kernel, term: Term) -> str:
    """An expression of sizes as text."""
    return _Printer(kernel).text(term)


def slot(key: Hashable) -> str:
    """The name of a kernel argument: l0 a leaf, s0 scratch memory, n0 a size, a0 a number."""
    if isinstance(key, tuple) and key[0] in ("leaf", "scratch"):
        return f"{key[0][0]}{key[1]}"
    return _argument(key)


def puts(body: Body) -> Iterator[Put]:
    """The stores of a body."""
    return (stmt for stmt in body if isinstance(stmt, Put))


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.arena: Arena = kernel.arena
        self.names: dict[int, str] = {}
        self.variables: dict[int, int] = {}
        self.uses: Counter[int] = Counter()
        self.inline: set[int] = set()

    def phase(self, phase: Phase) -> Iterator[str]:
        self.count(phase)
        yield from self.body(phase.entry, 0)
        depth = 0
        for v in phase.rows:
            yield f"{INDENT * depth}parallel for {self.head(v)}"
            depth += 1
        for v in phase.turns:
            yield f"{INDENT * depth}for {self.head(v)}"
            depth += 1
        yield from self.body(phase.row, depth)
        if phase.inner is not None:
            kind = "" if phase.rows else "parallel "
            lanes = "vector " if phase.vector else ""
            yield f"{INDENT * depth}{kind}{lanes}for {self.head(phase.inner)}"
            depth += 1
        yield from self.body(phase.body, depth)

    def count(self, phase: Phase) -> None:
        """How often each kept value is used: those used once are printed where they are."""
        for stmt in every([*phase.entry, *phase.row, *phase.body]):
            if isinstance(stmt, Let):
                self.uses.update(a.id for a in stmt.term.args)
            elif isinstance(stmt, Fold):
                self.uses.update(a.id for t in stmt.terms for a in t.args)
            else:
                self.uses.update((stmt.value.id, stmt.offset.id))

    def head(self, v: int) -> str:
        return f"{self.var(v)} in 0..{self.extent(v)}:"

    def var(self, v: int) -> str:
        """The name of a variable: letters in the order in which they are met."""
        k = self.variables.setdefault(v, len(self.variables))
        return LETTERS[k] if k < len(LETTERS) else f"i{k}"

    def extent(self, v: int) -> str:
        return self.text(self.arena.extent[v])

    def body(self, body: Body, depth: int) -> Iterator[str]:
        pad = INDENT * depth
        for stmt in body:
            if isinstance(stmt, Let):
                often = self.uses[stmt.term.id] > 1 or stmt.term.op == "keep"
                if often or len(self.expression(stmt.term)) > 60:
                    text = self.expression(stmt.term)
                    yield f"{pad}{self.named(stmt.term)} = {text}"
            elif isinstance(stmt, Fold):
                yield from self.fold(stmt, depth)
            else:
                place = f"{stmt.dest!r}[{self.text(stmt.offset)}]"
                yield f"{pad}{place} {SAVES[stmt.saver]} {self.text(stmt.value)}"

    def fold(self, fold: Fold, depth: int) -> Iterator[str]:
        pad = INDENT * depth
        for term in fold.terms:
            name = self.names.setdefault(term.id, f"r{len(self.names)}")
            yield f"{pad}{name} = {reducer_of(term).name} of nothing"
        for k, v in enumerate(fold.vars):
            lanes = "vector " if fold.vector and k == len(fold.vars) - 1 else ""
            yield f"{INDENT * (depth + k)}{lanes}for {self.head(v)}"
            yield from self.body(fold.bodies[k], depth + k + 1)
        pad = INDENT * (depth + len(fold.vars))
        for term in fold.terms:
            name, values = self.names[term.id], ", ".join(self.text(a) for a in term.args)
            yield f"{pad}{name} = {reducer_of(term).name}({name}, {values})"

    def named(self, term: Term) -> str:
        return self.names.setdefault(term.id, f"t{len(self.names)}")

    def text(self, term: Term) -> str:
        return self.names.get(term.id) or self.expression(term)

    def expression(self, term: Term) -> str:
        op, args = term.op, term.args
        if op == "const":
            return f"{term.payload}"
        if op == "arg":
            return _argument(term.payload)
        if op == "var":
            return self.var(term.payload)
        if op == "part":
            suffix = f".{term.payload}" if args[0].payload[0].arity > 1 else ""
            return f"{self.text(args[0])}{suffix}"
        if op == "read":
            place = f"{term.payload!r}[{self.text(args[0])}]"
            return place if len(args) == 1 else f"({place} if {self.text(args[1])})"
        if op == "keep":
            return f"({term.payload!r}[{self.text(args[1])}] = {self.text(args[0])})"
        parts = [self.text(a) for a in args]
        if op in SYMBOLS:
            return f"({parts[0]} {SYMBOLS[op]} {parts[1]})"
        if op == "cast":
            return f"{term.dtype.name}({parts[0]})"
        if op == "select":
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        if op == "scan":
            return f"{term.payload[0].name} of all before and {parts[0]}"
        return f"{op}({', '.join(parts)})"


def _argument(slot: object) -> str:
    if isinstance(slot, tuple) and slot[0] == "dim":
        return f"n{slot[1]}"
    if isinstance(slot, tuple) and slot[0] == "scalar":
        return f"a{slot[1]}"
    if isinstance(slot, tuple) and slot[0] == "stride":
        return f"{slot[1][0][0]}{slot[1][1]}.stride{slot[2]}"
    return str(slot)
