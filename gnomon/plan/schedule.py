"""Scheduling: a nest becomes a phase, with a variable for the lanes and a place for each Term.

Terms go as far out as their variables allow; index arithmetic is left to the printers of code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from gnomon.expr.term import Arena, Term, mask_of
from gnomon.ground.record import record
from gnomon.plan.carry import carries
from gnomon.plan.ir import IN_ORDER, Body, Fold, Let, Own, Phase, Put, reducer_of
from gnomon.plan.lower import Nest, Root
from gnomon.plan.share import CHEAP
from gnomon.plan.terms import affine, index_terms, postorder

SHORT = 16  # a fold of so few elements is not worth spreading over lanes
LONG = 64  # elements of a fold for which it is worth going through memory in its order
TOGETHER = 6  # folds in one loop: their partial results must find room in registers
# the work of what is more than an instruction or two, of numbers of up to 4 bytes and of 8, as
# `benchmarks/primitives.py` finds it with AVX-512; a division has other work to hide behind
COSTS = {
    "read": (2, 2), "idiv": (8, 8), "imod": (8, 8), "fmod": (24, 50), "div": (7, 20),
    "sqrt": (16, 60), "exp": (12, 26), "exp2": (12, 26), "expm1": (20, 41), "log": (28, 83),
    "log2": (27, 80), "log10": (28, 80), "log1p": (33, 98), "pow": (155, 290), "cbrt": (62, 142),
    "sin": (21, 51), "cos": (21, 53), "tan": (35, 107), "sinpi": (17, 36), "cospi": (13, 28),
    "arcsin": (23, 75), "arccos": (23, 75), "arctan": (31, 75), "arctan2": (47, 122),
    "sinh": (31, 100), "cosh": (21, 46), "tanh": (25, 60), "erf": (26, 95), "erfinv": (93, 350),
    "gelu": (75, 250), "gelu_slope": (78, 260), "gamma": (558, 558), "gammaln": (513, 513),
    "digamma": (390, 390), "trigamma": (325, 325),
}  # fmt: skip


def order_by_store(nest: Nest) -> Nest:
    """The variable along which the first destination is dense becomes the innermost."""
    root = nest.roots[0]
    units = [v for v in nest.vars if stride(root.offset, v) == 1]
    if not units or units[-1] == nest.vars[-1]:
        return nest
    return Nest((*(v for v in nest.vars if v != units[-1]), units[-1]), nest.roots, nest.turns)


def stride(offset: Term, var: int) -> int | None:
    """The constant step of `offset` along `var`; None where it is not constant."""
    form = affine(offset, 1 << var)
    if form is None:
        return None
    factor = form.factors.get(var)
    constant = 0 if factor is None else factor.constant
    return None if constant is None else int(constant)


def schedule(nest: Nest, arena: Arena) -> Phase:
    """The loop nest of one phase."""
    order = postorder([t for r in nest.roots for t in (r.offset, r.value)])
    spread, turns = tuple(v for v in nest.vars if v not in nest.turns), nest.turns
    ordered = any(t.op in IN_ORDER for t in order)
    if ordered:
        spread, turns = (*spread, *turns), ()
    inner = spread[-1] if spread else None
    across = [t for t in order if t.op == "fold" and inner is not None and t.free >> inner & 1]
    vector = inner is not None and lanes_across(inner, across, nest.roots)
    phase = Phase(spread[:-1], inner, vector or ordered, turns, ordered=ordered)
    builder = _Builder(arena, phase, order)
    builder.place([t for r in nest.roots for t in (r.offset, r.value)])
    phase.body.extend(Put(r.dest, r.saver, r.offset, r.value) for r in nest.roots)
    phase.split = not ordered and not any(isinstance(s, Fold) for s in phase.row)
    phase.columns = phase.split and vector and _turned(order, phase)
    phase.striped = vector and not ordered and _is_striped(phase, across)
    phase.cost = _costs(order, inner, turns)
    phase.own = None if ordered else _own(nest, phase)
    return phase


def _own(nest: Nest, phase: Phase) -> Own | None:
    """How the rows of a dense destination may be shared out, where each turn adds to one of them.

    The inner loop must be a whole row: then nothing that it stores lies in another one.
    """
    dest, arena = nest.roots[0].dest, nest.roots[0].offset.arena
    if not nest.turns or phase.rows or phase.inner is None or dest.ndim < 2 or carries(nest):
        return None
    dense = arena.const(1)
    for n, step in zip(reversed(dest.shape), reversed(dest.strides), strict=True):
        if dense is not arena.const(1) * step:
            return None
        dense = dense * n
    row = row_offset(nest.roots[0].offset, phase.inner)
    whole = arena.extent[phase.inner] is arena.const(1) * dest.strides[0]
    if not whole or row is None or row.free & ~mask_of(nest.turns):
        return None
    turns = arena.const(1)
    for v in nest.turns:
        turns = turns * arena.extent[v]
    return Own(arena.const(1) * dest.shape[0], turns, False)


def row_offset(offset: Term, inner: int) -> Term | None:
    """Where a row that is stored densely along `inner` begins; None where it is not."""
    form = affine(offset, 1 << inner)
    return form.rest if form is not None and stride(offset, inner) == 1 else None


def join(phases: Sequence[Phase]) -> None:
    """Tell the last phase, a scatter's adding, whether the one before fills what it adds to.

    A scatter is not cut in pieces, so what comes right before its adding is its fill;
    `whole` says that the fill stores in memory's order.
    """
    own, fill = phases[-1].own, phases[-2]
    put = fill.body[-1]
    if own is not None and isinstance(put, Put) and not fill.rows:
        whole = put.offset.op == "var" and put.offset.payload == fill.inner
        phases[-1].own = Own(own.rows, own.turns, whole)


def _turned(order: Sequence[Term], phase: Phase) -> bool:
    """Whether something is read across: far apart along the inner variable, densely along the rows.

    Going down a narrow column then uses every cache line and page whole before it is left.
    """
    if not phase.rows or phase.inner is None:
        return False
    reads = [t.args[0] for t in order if t.op == "read"]
    return any(_density(o, phase.inner) < 0 and stride(o, phase.rows[-1]) == 1 for o in reads)


def _is_striped(phase: Phase, across: Sequence[Term]) -> bool:
    """Whether the folds of the elements may be long, and nothing dear is between their loops.

    Not those that may end early: in a row of columns some would always go on. Nor those of which
    all that is read lies along the fold: each of thousands of rows would be touched for little.
    """
    reads = [t.args[0] for t in postorder(across) if t.op == "read"]
    if phase.inner is None or max((_density(o, phase.inner) for o in reads), default=0) < 0:
        return False
    folds = [s for s in phase.body if isinstance(s, Fold)]
    if any(reducer_of(t).enough is not None for f in folds for t in f.terms):
        return False
    sizes = [f.terms[0].arena.extent[v].constant for f in folds for v in f.vars]
    between = [s for f in folds for body in f.bodies[:-1] for s in body]
    dear = any(isinstance(s, Let) and s.term.op not in CHEAP for s in between)
    return any(n is None or n > LONG for n in sizes) and not dear


def lanes_across(inner: int, across: Sequence[Term], roots: Sequence[Root]) -> bool:
    """Whether lanes along the innermost variable read more densely than lanes along folds."""
    if not across:
        return True
    votes = 0
    for fold in across:
        last = fold.payload[1][-1]
        extent = fold.arena.extent[last].constant
        short = extent is not None and extent < SHORT
        for read in (t for t in postorder(fold.args) if t.op == "read"):
            votes += _density(read.args[0], inner)
            votes -= -1 if short else _density(read.args[0], last)
    votes += sum(_density(root.offset, inner) for root in roots)
    return votes >= 0


def _density(offset: Term, var: int) -> int:
    """1 for a step of one, 0 for none or of two, -2 for any other (a gather)."""
    step = stride(offset, var)
    return {0: 0, 1: 1, 2: 0}.get(-2 if step is None else step, -2)


def _cost(term: Term) -> int:
    """The work of one Term."""
    return COSTS[term.op][term.dtype.size == 8] if term.op in COSTS else 1


def _costs(
    order: Sequence[Term], inner: int | None, turns: Sequence[int]
) -> list[tuple[int, Term | None]]:
    """Pairs (work, how often for an inner iteration); None: once."""
    folds: list[tuple[int, Term]] = []
    once = 4
    inside: set[int] = set()
    for term in order:
        if term.op == "fold":
            count = term.arena.const(1)
            for v in term.payload[1]:
                count = count * term.arena.extent[v]
            below = [t for t in postorder(term.args) if t.free & mask_of(term.payload[1])]
            inside.update(t.id for t in below)
            if inner is not None and not term.free >> inner & 1:  # once for a row
                n = term.arena.extent[inner]
                count = term.arena.op("idiv", count + n - 1, n)
            if not count.free:
                folds.append((sum(map(_cost, below)), count))
            else:
                once += 1024
        elif term.id not in inside and inner is not None and term.free >> inner & 1:
            once += _cost(term)
    if not turns:
        return [(once, None), *folds]
    often = order[0].arena.const(1)
    for v in turns:
        often = often * often.arena.extent[v]
    return [(once, often), *((work, count * often) for work, count in folds)]


def _groups(order: Sequence[Term]) -> dict[int, list[Term]]:
    """For every fold those that run in its loops: over the same ranges, waiting for as many."""
    depth: dict[int, int] = {}
    levels: dict[Hashable, list[Term]] = {}
    for term in order:
        depth[term.id] = max((depth[a.id] for a in term.args), default=0)
        if term.op == "fold":
            depth[term.id] += 1
            level = depth[term.id], term.payload[1]
            levels.setdefault(level, []).append(term)
    return {t.id: same for same in levels.values() for t in same}


@record(frozen=False)
class _Scope:
    """A place in the nest: what runs there, the variable of its loop, the Terms kept so far.

    `loop` tells that it is inside of a fold.
    """

    mask: int
    body: Body
    kept: set[int]
    loop: bool = False


class _Builder:
    def __init__(self, arena: Arena, phase: Phase, order: Sequence[Term]) -> None:
        self.arena, self.phase, self.index = arena, phase, index_terms(order)
        self.groups = _groups(order)
        inner = 0 if phase.inner is None else 1 << phase.inner
        self.scopes = [
            _Scope(0, phase.entry, set()),
            _Scope(mask_of((*phase.rows, *phase.turns)), phase.row, set()),
            _Scope(inner, phase.body, set()),
        ]
        if phase.inner is None:  # a single iteration: everything in its place there
            self.scopes = [_Scope(~0, phase.body, set())]

    def scope(self, free: int) -> _Scope:
        """The outermost place where everything that `free` names is known."""
        for scope in reversed(self.scopes):
            if scope.mask & free or scope.mask == -1:
                return scope
        return self.scopes[0]

    def bound(self, free: int) -> bool:
        """Whether everything that `free` names is known here, in the loops that are open."""
        for scope in self.scopes:
            free &= ~(0 if scope.mask == -1 else scope.mask)
        return not free

    def place(self, roots: Iterable[Term]) -> None:
        """Put every Term below `roots` where it belongs, arguments first."""
        stack = [(root, False) for root in reversed(list(roots))]
        while stack:
            term, done = stack.pop()
            if self.known(term):
                continue
            if done:
                self.put(term)
                continue
            stack.append((term, True))
            if term.op != "fold":
                stack.extend((a, False) for a in reversed(term.args))

    def known(self, term: Term) -> bool:
        if term.op in ("const", "arg", "var") or term.id in self.index:
            return True
        return any(term.id in scope.kept for scope in self.scopes)

    def put(self, term: Term) -> None:
        scope = self.scope(term.free)
        if term.op == "fold":
            same = [t for t in self.groups[term.id] if t is not term and not self.known(t)]
            fits = (t for t in same if self.bound(t.free) and self.scope(t.free) is scope)
            together = [term, *fits][:TOGETHER]
            scope.body.append(self.fold(together))
            scope.kept.update(t.id for t in together)
            return
        if term.op != "part":
            scope.body.append(Let(term))
        scope.kept.add(term.id)

    def fold(self, terms: list[Term]) -> Fold:
        """The loops of `terms`; what does not depend on their variables lands outside of them."""
        variables = terms[0].payload[1]
        args = [a for t in terms for a in t.args]
        self.index |= index_terms(postorder(args))
        bodies: list[Body] = [[] for _ in variables]
        home = self.scopes.index(self.scope(terms[0].free))
        hidden, self.scopes = self.scopes[home + 1 :], self.scopes[: home + 1]
        for v, body in zip(variables, bodies, strict=True):
            self.scopes.append(_Scope(1 << v, body, set(), True))
        self.place(args)
        self.scopes = self.scopes[: home + 1] + hidden
        return Fold(terms, bodies, not self.scopes[home].loop and self.spread(terms[0]))

    def spread(self, term: Term) -> bool:
        """Whether a fold is spread over lanes: outside of the vector loop, and where it is long."""
        inner = self.phase.inner
        if self.phase.vector and inner is not None and term.free >> inner & 1:
            return False
        last = self.arena.extent[term.payload[1][-1]].constant
        return last is None or last >= SHORT
