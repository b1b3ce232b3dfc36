"""Bounds: whether an index rule reads inside its operands, shown by intervals.

Rules of the package are tested and trusted. A rule from outside the package is read for each form
when a node is built, with its sizes as numbers and as kernels have them: what it mixes wrongly is
told there (see `expr/coerce.py`). Every index it gives gets the interval it lies in, narrowed by
the guards it stands behind. Where all lie inside, the rule runs as it is; where that is not shown,
the node `clips`: an index outside is the nearest inside, as for `take`, and an operand without
elements reads as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from gnomon import dtype as dt
from gnomon.base import ParamError, complaint
from gnomon.expr.coerce import declared
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Cast, Expr, Map
from gnomon.expr.term import Arena, Term, compute_dtype

if TYPE_CHECKING:
    from gnomon.expr.composite import Composite, Scatter

Interval: TypeAlias = tuple[int, int]
Facts: TypeAlias = frozenset[Term]
EVERY: Interval = dt.int64.limits
MOST = 4096  # forms remembered

_known: dict[Hashable, bool] = {}


def clips(node: Composite) -> bool:
    """Whether the indices that a node's rule gives must be clipped.

    Raises:
        TypeError: the rule asks for the value of an index, mixes what does not go together, or
            gives no Term.
        ParamError: it divides by what may be 0.
    """
    key = (node.outline(), tuple([(c.shape, c.dtype) for c in node.children]))
    found = _known.get(key)
    if found is None:
        if len(_known) >= MOST:
            _known.clear()
        found = _known[key] = not shown(node)
    return found


def shown(node: Composite) -> bool:
    """Whether every element that a node's rule reads is seen to lie inside its operand."""
    arena, root, places = _read(node, Arena())
    symbolic = Arena()
    _read(_abstract(node, symbolic), symbolic)
    proof = _Proof(node, arena)
    within = proof.holds(root)
    if places is None:
        return within
    within = within and proof.all_inside(places, node.shape, frozenset())
    return within and all(proof.holds(place) for place in places)


def _given(name: str, rule: Callable[[Index], Any], i: Index) -> Any:
    """`rule(i)`; an axis that `i` does not have is an error with the name of the rule."""
    try:
        return rule(i)
    except IndexError as error:
        axes = f"i has {len(i)} axes" if len(i) != 1 else "i has 1 axis"
        raise IndexError(f"{name}: {error}; {axes}") from error


def _read(node: Composite, arena: Arena) -> tuple[Arena, Term, Index | None]:
    """What the rule of a node gives for any index, and where a scatter adds."""
    index = Index([arena.var(n) for n in node.shape], arena)
    arena.watched = node.label
    root: Any = _given(f"{node.label}.at", node.at, index)
    if not isinstance(root, Term):
        expected = "a Term, such as i.elem(self.src, i)"
        raise TypeError(complaint(f"{node.label}.at", "result", expected, f"{root!r:.60}"))
    root = declared(root, compute_dtype(node.dtype))
    places = None
    if hasattr(node, "onto"):
        scatter = cast("Scatter", node)
        start = Index([arena.var(n) for n in scatter.source[0].shape], arena)
        places = Index(_given(f"{node.label}.onto", scatter.onto, start), arena)
    arena.watched = ""
    if places is not None and len(places) != len(node.shape):
        expected = f"{len(node.shape)} components, for {node.shape}"
        raise TypeError(complaint(f"{node.label}.onto", "result", expected, len(places)))
    return arena, root, places


def _abstract(node: Composite, arena: Arena) -> Composite:
    """The same node with its sizes as kernels have them: Terms, but for 0 and 1."""

    def size(n: int) -> Any:
        return n if n in (0, 1) else arena.arg(("dim", n))

    def sized(e: Expr) -> Expr:
        shape: tuple[Any, ...] = tuple(map(size, e.shape))
        if isinstance(e, Buffer):
            return Buffer(shape, e.dtype, tuple(map(size, e.strides)))
        if isinstance(e, Map):
            return Map(
                e.fn, tuple([a if not a.shape else sized(a) for a in e.args]), shape, e.dtype
            )
        if isinstance(e, Cast):
            return Cast(e.src, e.dtype, shape)
        rebuild = getattr(e, "rebuild", None)
        return e if rebuild is None else rebuild(iter(e.children), size, shape)

    children = map(sized, node.children)
    return node.rebuild(children, size, tuple(map(size, node.shape)))


class _Proof:
    """Intervals of the Terms of one rule, under what its guards say."""

    def __init__(self, node: Composite, arena: Arena) -> None:
        self.node, self.arena = node, arena
        self.memo: dict[tuple[int, Facts], Interval] = {}

    def holds(self, root: Term) -> bool:
        stack: list[tuple[Term, Facts]] = [(root, frozenset())]
        seen: set[tuple[int, Facts]] = set()
        inside = True
        while stack:
            term, facts = stack.pop()
            if (term.id, facts) in seen:
                continue
            seen.add((term.id, facts))
            if term.op == "guard":
                cond, value, other = term.args
                stack += [(cond, facts), (value, facts | both(cond)), (other, facts)]
                continue
            if term.op in ("elem", "load"):
                inside = inside and self.reads_inside(term, facts)
            elif term.op in ("idiv", "imod"):
                self.check_divisor(term, facts)
            stack += [(arg, facts) for arg in term.args]
        return inside

    def reads_inside(self, term: Term, facts: Facts) -> bool:
        shape = term.payload.shape
        index = term.args[: len(shape)] if term.op == "load" else term.args
        if not shape:
            return True  # one value wherever it is asked for
        if len(index) != len(shape):
            expected = f"{len(shape)} components, for {term.payload!r}"
            raise TypeError(complaint(f"{self.node.label}.at", "index", expected, len(index)))
        return self.all_inside(index, shape, facts)

    def all_inside(self, index: Sequence[Term], shape: Sequence[int], facts: Facts) -> bool:
        for at, n in zip(index, shape, strict=True):
            low, high = self.interval(at, facts)
            if low <= high and not 0 <= low <= high < n:
                return False
        return True

    def check_divisor(self, term: Term, facts: Facts) -> None:
        low, high = self.interval(term.args[1], facts)
        if low <= 0 <= high:
            expected = "an index divided by what is never 0"
            raise ParamError(complaint(f"{self.node.label}.at", "divisor", expected, f"{term!r}"))

    def interval(self, root: Term, facts: Facts) -> Interval:
        """From the least to the greatest that an index may be; empty where it is never asked."""
        memo, stack = self.memo, [root]
        while stack:
            term = stack[-1]
            needed = (*term.args, *(a for f in facts if term in f.args for a in f.args))
            waiting = [a for a in needed if (a.id, facts) not in memo and a is not term]
            waiting = [a for a in waiting if a not in stack]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            memo[term.id, facts] = self.narrowed(term, facts)
        return memo[root.id, facts]

    def narrowed(self, term: Term, facts: Facts) -> Interval:
        low, high = self.plain(term, facts)
        for fact in facts:
            if term not in fact.args or fact.op not in ("lt", "le", "eq"):
                continue
            first = fact.args[0] is term
            other = self.memo.get((fact.args[first].id, facts), EVERY)
            step = fact.op == "lt"
            if first or fact.op == "eq":
                high = min(high, other[1] - step)
            if not first or fact.op == "eq":
                low = max(low, other[0] + step)
        return low, high

    def plain(self, term: Term, facts: Facts) -> Interval:
        ends = _ENDS.get(term.dtype)
        if ends is None:
            return EVERY
        if term.op == "const":
            return int(term.payload), int(term.payload)
        if term.op == "var":
            last = self.arena.extent[term.payload]
            return 0, max(0, self.interval(last, frozenset())[1] - 1)
        rule = _RULES.get(term.op)
        if rule is None:
            return EVERY
        found = rule([self.memo.get((a.id, facts), EVERY) for a in term.args])
        return found if ends[0] <= found[0] and found[1] <= ends[1] else EVERY


def both(cond: Term) -> Facts:
    """What holds where `cond` does."""
    found, stack = set(), [cond]
    while stack:
        term = stack.pop()
        stack += term.args if term.op == "and" else ()
        found.add(term)
    return frozenset(found)


def _ends(values: Sequence[int]) -> Interval:
    return min(values), max(values)


def _divided(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 or a[0] < 0:
        return EVERY
    return a[0] // b[1], a[1] // b[0]


def _rest(a: Interval, b: Interval) -> Interval:
    return EVERY if b[0] <= 0 or a[0] < 0 else (0, min(a[1], b[1] - 1))


_ENDS = {dt.int64: EVERY, dt.int32: (-(2**31), 2**31 - 1)}  # beyond them numbers wrap
_RULES: dict[str, Callable[[list[Interval]], Interval]] = {
    "add": lambda x: (x[0][0] + x[1][0], x[0][1] + x[1][1]),
    "sub": lambda x: (x[0][0] - x[1][1], x[0][1] - x[1][0]),
    "mul": lambda x: _ends([a * b for a in x[0] for b in x[1]]),
    "neg": lambda x: (-x[0][1], -x[0][0]),
    "cast": lambda x: x[0],
    "idiv": lambda x: _divided(x[0], x[1]),
    "imod": lambda x: _rest(x[0], x[1]),
    "min": lambda x: (min(x[0][0], x[1][0]), min(x[0][1], x[1][1])),
    "max": lambda x: (max(x[0][0], x[1][0]), max(x[0][1], x[1][1])),
    "select": lambda x: (min(x[1][0], x[2][0]), max(x[1][1], x[2][1])),
}
