"""Scatters in push form: what is added here and there, added there, in one fixed order.

As an index rule a scatter asks for every element of its result which elements of the source belong
there: n times m comparisons. Pushed, it is a loop over the source that adds each element where it
belongs. Axes along which elements may meet are gone through in order by the task that has the
others, so the sums are the same for any number of threads.

A statement whose value is a scatter fills the destination with 0 and adds to it in one kernel, but
for `PUT`, which stores each element where it belongs, in any order, and nothing elsewhere. One
that a scatter is a summand of is stored without it, and then the scatter is added to the
destination: nothing is allocated. Anywhere else, and in half floats, whose sums need more bits
than their memory has, it is added up in scratch memory of its own size first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gnomon import dtype as dt
from gnomon.base import Later
from gnomon.expr.composite import Scatter
from gnomon.expr.ext.scan import Scan
from gnomon.expr.index import Index
from gnomon.expr.node import MAPPER, Buffer, Expr, Map, Scalar, cast
from gnomon.expr.rewrite import substitute
from gnomon.expr.term import Arena, compute_dtype
from gnomon.expr.walk import postorder
from gnomon.plan.carry import alone
from gnomon.plan.cut import Libraries, Piece, Temporary, cut, overlap
from gnomon.plan.lower import Expander, Nest, Root, offset_of
from gnomon.plan.materialize import materialized
from gnomon.plan.operand import Abstract, Operand
from gnomon.plan.statement import PUT, Saver, Store

if TYPE_CHECKING:
    from gnomon.plan.gpu import long_scans, segments
else:  # for machines whose threads have no order
    long_scans, segments = Later("gnomon.plan.gpu.long_scans"), Later("gnomon.plan.gpu.segments")

PUSHED: dict[Saver, Saver] = {"saveto": "plusto", "plusto": "plusto", "minusto": "minusto"}


class Summand(NamedTuple):
    """A scatter that a value is the sum of and of others, and how many additions lead to it."""

    scatter: Scatter
    scaled: Scatter
    additions: int


def push(statements: Abstract, arena: Arena) -> list[Nest]:
    """The nest that adds the elements of a scatter's source where they belong, the last of these.

    None at all where the statements are anything but one scatter, to be stored or added.
    """
    dest, saver, value = statements.stores[0]
    if len(statements.stores) > 1 or not pushes(saver, value):
        return []
    assert isinstance(value, Scatter)
    source, meeting = value.source
    index = Index([arena.var(n) if n != 1 else 0 for n in source.shape], arena)
    expand = Expander(arena)
    place = [expand(t) for t in value.places(index)]
    term = arena.cast(expand(arena.elem(source, index)), compute_dtype(dest.dtype))
    variables = tuple(i.payload for i in index if i.op == "var")
    offset = offset_of(arena, dest, place)
    if saver == PUT:
        return [Nest(variables, (Root(dest, "saveto", offset, term),))]
    turns = tuple(i.payload for i in index[:meeting] if i.op == "var")
    added = Nest(variables, (Root(dest, PUSHED[saver], offset, term),), turns)
    return [zeros(dest, arena), added] if saver == "saveto" else [added]


def zeros(dest: Operand, arena: Arena) -> Nest:
    """The nest that fills a destination with 0."""
    index = [arena.var(n) if n != 1 else arena.const(0) for n in dest.shape]
    value = arena.const(0, compute_dtype(dest.dtype))
    variables = tuple(i.payload for i in index if i.op == "var")
    return Nest(variables, (Root(dest, "saveto", offset_of(arena, dest, index), value),))


def pushes(saver: Saver, value: Expr) -> bool:
    """Whether a statement stores or adds a scatter, and nothing else, in its own dtype."""
    return puts(saver, value) or (isinstance(value, Scatter) and saver in PUSHED and sums(value))


def puts(saver: Saver, value: Expr) -> bool:
    """Whether a statement puts the elements of a scatter where they belong."""
    return saver == PUT and isinstance(value, Scatter)


def sums(scatter: Scatter) -> bool:
    """Whether memory of the scatter's dtype holds its sums as they are computed."""
    return scatter.dtype.kind in "fiu" and compute_dtype(scatter.dtype) is scatter.dtype


def pieces(
    stores: Sequence[Store], libraries: Libraries, temporary: Temporary, has_order: bool
) -> list[Piece]:
    """What carries out `stores`, in order: calls, and groups whose scatters are apart.

    Where threads have no order (`has_order`), scatters are summed by sorted segments.
    """
    found: list[Piece] = []
    for piece in cut(stores, libraries, temporary):
        if not isinstance(piece, list) or not any(s.value.exp_type & ~MAPPER for s in piece):
            found.append(piece)
            continue
        order = postorder([s.value for s in piece])
        if has_order and not any(isinstance(n, (Scan, Scatter)) for n in order):
            found.extend(materialized(piece, temporary, order))
            continue
        for group in alone(piece, temporary):
            found.extend(_groups(group, temporary, has_order))
    return found


def _groups(stores: Sequence[Store], temporary: Temporary, has_order: bool) -> Iterator[Piece]:
    """Groups for kernels that do in turn what a group of one shape does."""
    for part in separate(stores, temporary):
        for one in [part] if has_order else _without_order(part, temporary):
            yield from materialized(one, temporary)


def _without_order(stores: Sequence[Store], temporary: Temporary) -> Iterator[list[Store]]:
    """Groups that do in turn what a group does, for threads that have no order."""
    for group in segments.in_segments(stores, temporary):
        yield from long_scans.in_pieces(group, temporary)


def separate(stores: Sequence[Store], temporary: Temporary) -> list[list[Store]]:
    """`stores` as groups in order, where every scatter is one that `push` takes."""
    before: list[list[Store]] = []
    stores = list(stores)
    while True:
        inner = _innermost(stores)
        if inner is None:
            break
        filling, value = _summed(inner, temporary)
        before.extend(filling)
        values = substitute([s.value for s in stores], {inner: value})
        stores = [Store(s.dest, s.saver, v) for s, v in zip(stores, values, strict=True)]
    now: list[Store] = []
    after: list[list[Store]] = []
    for store in stores:
        found = None if pushes(store.saver, store.value) else summand(store)
        if found is None:
            now.append(store)
            continue
        if not found.additions:
            after.append([Store(store.dest, store.saver, found.scaled)])
            continue
        rest: dict[Expr, Expr] = {found.scatter: Scalar(0, store.value.dtype)}
        now.append(Store(store.dest, store.saver, substitute([store.value], rest)[0]))
        after.append([Store(store.dest, PUSHED[store.saver], found.scaled)])
    return [*before, *([now] if now else []), *after]


def _innermost(stores: Sequence[Store]) -> Scatter | None:
    """The first scatter that cannot be added to a destination."""
    order = postorder([s.value for s in stores])
    scatters = [n for n in order if isinstance(n, Scatter)]
    if not scatters:
        return None
    free = {s.value for s in stores if pushes(s.saver, s.value) and len(stores) == 1}
    for store in stores:
        found = summand(store)
        if found is not None and _apart(found.scatter, store, stores):
            free.add(found.scatter)
    below = {n for s in scatters for n in postorder(s.children) if isinstance(n, Scatter)}
    return next((s for s in scatters if s not in free or s in below), None)


def _apart(scatter: Scatter, store: Store, stores: Sequence[Store]) -> bool:
    """Whether storing the rest of the statements first leaves all that the scatter needs."""
    leaves = [n for n in postorder(scatter.children) if isinstance(n, Buffer)]
    if any(overlap(s.dest, leaf) for s in stores for leaf in leaves):
        return False
    others = [s for s in stores if s is not store]
    used = [n for n in postorder([s.value for s in others]) if isinstance(n, Buffer | Scatter)]
    if any(n is scatter or (isinstance(n, Buffer) and overlap(store.dest, n)) for n in used):
        return False
    return not any(overlap(store.dest, s.dest) for s in others)


def _summed(scatter: Scatter, temporary: Temporary) -> tuple[list[list[Store]], Expr]:
    """The statement that adds a scatter up in scratch memory, and what it is then."""
    wide = scatter if sums(scatter) else scatter.over(cast(scatter.source[0], dt.float32))
    memory = temporary(wide)
    return [[Store(memory, "saveto", wide)]], cast(memory, scatter.dtype)


def summand(store: Store) -> Summand | None:
    """The scatter that a statement's value is the sum of and of others, maybe scaled."""
    if store.saver not in PUSHED:
        return None
    found: list[Summand] = []
    waiting: list[tuple[Expr, tuple[Map, ...], int]] = [(store.value, (), 0)]
    while waiting:
        e, factors, additions = waiting.pop()
        if isinstance(e, Scatter) and sums(e):
            found.append(Summand(e, _scaled(e, factors), additions))
        elif isinstance(e, Map):
            waiting.extend(_steps(e, factors, additions))
    if len(found) != 1:
        return None
    return found[0] if _ways(store.value, found[0].scatter) == 1 else None


def _ways(value: Expr, part: Expr) -> int:
    """How many ways lead from `value` to `part`, 2 standing for more: what is shared counts."""
    ways: dict[Expr, int] = {value: 1}
    for node in reversed(postorder([value])):
        for child in node.children:
            ways[child] = min(2, ways.get(child, 0) + ways[node])
    return ways[part]


def _steps(
    e: Map, factors: tuple[Map, ...], additions: int
) -> list[tuple[Expr, tuple[Map, ...], int]]:
    """The operands of a map that it is linear in."""
    name, args = e.fn.name, e.args
    if name == "add":
        return [(a, factors, additions + 1) for a in args]
    if name == "sub":
        negated = Map(NEGATE.fn, (args[1],), e.shape, e.dtype)
        return [(args[0], factors, additions + 1), (args[1], (*factors, negated), additions + 1)]
    if name == "neg":
        return [(args[0], (*factors, e), additions)]
    numbers = [isinstance(a, Scalar) for a in args]
    if name == "mul" and True in numbers:
        return [(args[numbers.index(True) - 1], (*factors, e), additions)]
    if name == "div" and numbers[1] and e.dtype.kind == "f":
        return [(args[0], (*factors, e), additions)]
    return []


def _scaled(scatter: Scatter, factors: Sequence[Map]) -> Scatter:
    """`scatter` of its source with factors and signs applied, the innermost first."""
    source = scatter.source[0]
    for outer in reversed(factors):
        args = tuple(a if isinstance(a, Scalar) else source for a in outer.args)
        source = Map(outer.fn, args, source.shape, source.dtype)
    return scatter.over(source) if factors else scatter


NEGATE = -Buffer(())
