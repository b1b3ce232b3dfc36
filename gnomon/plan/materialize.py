"""Materializing: what is read at very many indices is kept in a buffer.

Index rules are expanded into each other (see `plan/lower.py`), so a node is computed once for every
index at which it is asked for. Where nodes are shared between different rules that number grows
exponentially: `e = take(index, e) + flip(e, 0)` asks for the first `e` at 2**n indices. A node that
is asked for at more than `MOST` is computed by a statement of its own before, once an element. So
no kernel is longer than `MOST` times its expression. Operands of rules that say so (`rereads`) are
kept as well.

The indices are counted from the roots, without expanding anything: an index is the chain of rules
that lead to it. Equal chains are equal indices; that others may be equal too is not looked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from gnomon.expr.composite import Composite
from gnomon.expr.index import Index
from gnomon.expr.node import Buffer, Cast, Expr, Map
from gnomon.expr.rewrite import with_children
from gnomon.expr.term import Arena
from gnomon.expr.walk import postorder
from gnomon.plan.cut import Temporary
from gnomon.plan.statement import Store
from gnomon.plan.terms import postorder as terms_below
from gnomon.shape import prod

MOST = 32  # indices at which a node is computed again
LARGER = 2  # times the largest operand or destination: what is larger is not kept
KNOWN = 4096  # rules remembered

Chains = dict[int, None]  # numbers of chains of rules, in order

_reads: dict[Hashable, tuple[int, ...]] = {}


def materialized(
    stores: Sequence[Store], temporary: Temporary, order: Sequence[Expr] = ()
) -> list[list[Store]]:
    """Groups that do in turn what the group `stores` does, the last one to its destinations.

    `temporary(e)` gives a buffer with memory for the value of `e`. `order` has all nodes of the
    values, operands first, if it is known.
    """
    order = order or postorder([s.value for s in stores])
    if sum(isinstance(node, Composite) for node in order) < 2:
        return [list(stores)]
    kept = _asked_often(order, stores)
    if not kept:
        return [list(stores)]
    groups: list[list[Store]] = []
    memory = _Memory(order, kept, stores, temporary)
    new: dict[Expr, Expr] = {}
    for node in order:
        made = with_children(node, [new[c] for c in node.children])
        if node in kept:
            buffer = memory.take(node)
            groups.append([Store(buffer, "saveto", made)])
            made = buffer
        new[node] = made
    return [*groups, [Store(s.dest, s.saver, new[s.value]) for s in stores]]


def _asked_often(order: Sequence[Expr], stores: Sequence[Store]) -> set[Expr]:
    """The nodes of `order` (operands first) that are to be kept in buffers."""
    leaves = [node for node in order if isinstance(node, Buffer)]
    most = LARGER * max(prod(b.shape) for b in (*leaves, *(s.dest for s in stores)))
    numbers: dict[Hashable, int] = {}
    chains: dict[Expr, Chains] = {node: {} for node in order}
    for store in stores:
        chains[store.value][0] = None
    kept: set[Expr] = set()
    reread: set[Expr] = set()
    for node in reversed(order):
        if not node.children:
            continue
        if isinstance(node, Composite) and node.rereads:
            reread.update(node.children)
        mine = chains[node]
        if (len(mine) > MOST or node in reread) and prod(node.shape) <= most:
            kept.add(node)
            mine = {_number(numbers, id(node)): None}
        for child, rule, count in _rules(node):
            _extend(chains[child], mine, rule, count, numbers)
    return kept


def _extend(
    into: Chains, chains: Chains, rule: Hashable, count: int, numbers: dict[Hashable, int]
) -> None:
    """Add to `into` what each chain is by one more rule, which reads at `count` indices."""
    for chain in chains:
        if len(into) > MOST:  # more do not matter
            break
        if rule is None:
            into[chain] = None
        else:
            into.update((_number(numbers, (chain, rule, k)), None) for k in range(count))


def _number(numbers: dict[Hashable, int], chain: Hashable) -> int:
    return numbers.setdefault(chain, len(numbers) + 1)


def _rules(node: Expr) -> list[tuple[Expr, Hashable, int]]:
    """For each operand: by which rule it is read, and at how many indices; no rule: at the same."""
    if isinstance(node, Map | Cast):
        return [(child, None, 1) for child in node.children]
    assert isinstance(node, Composite)
    children = node.children
    kind = (type(node), node.static(), tuple(node.size_values()), node.shape)
    return [
        (child, (*kind, k, *(id(c) for j, c in enumerate(children) if j != k)), count)
        for k, (child, count) in enumerate(zip(children, reads_of(node), strict=True))
    ]


def reads_of(node: Composite) -> tuple[int, ...]:
    """At how many indices the rule of a node reads each of its operands for one element.

    >>> from gnomon.expr.ext import flip
    >>> reads_of(flip(Buffer((3,)), 0))
    (1,)
    """
    children = node.children
    key = (type(node), node.static(), node.clips, node.ndim, *(c.ndim for c in children))
    found = _reads.get(key)
    if found is None:
        if len(_reads) >= KNOWN:
            _reads.clear()
        found = _reads[key] = _counted(node)
    return found


def _counted(node: Composite) -> tuple[int, ...]:
    arena = Arena()
    leaves = [Buffer(c.shape, c.dtype) for c in node.children]
    alone = node.over_operands(leaves)
    root = alone.element(Index([arena.var(n) for n in node.shape], arena))
    counts = {id(leaf): 0 for leaf in leaves}
    for term in terms_below([root]):
        if term.op in ("elem", "load") and id(term.payload) in counts:
            counts[id(term.payload)] += 1
    return tuple(counts.values())


class _Memory:
    """Buffers for what is kept: one that nothing reads any more is taken again."""

    def __init__(
        self,
        order: Sequence[Expr],
        kept: set[Expr],
        stores: Sequence[Store],
        temporary: Temporary,
    ) -> None:
        self.temporary = temporary
        self.free: dict[Hashable, list[Buffer]] = {}
        self.waiting = _last_uses(order, kept, stores)
        self.made: dict[Expr, Buffer] = {}

    def take(self, node: Expr) -> Buffer:
        """Memory for `node`; what only statements before it read is free for later ones."""
        free = self.free.setdefault((node.shape, node.dtype), [])
        made = self.made[node] = free.pop() if free else self.temporary(node)
        for done in self.waiting.get(node, ()):
            self.free[done.shape, done.dtype].append(self.made[done])
        return made


def _last_uses(
    order: Sequence[Expr], kept: set[Expr], stores: Sequence[Store]
) -> dict[Expr, list[Expr]]:
    """For each node that is kept, those whose last reader its statement is."""
    last: dict[Expr, Expr] = {}
    final = set(_read_below([s.value for s in stores], kept))
    for node in order:
        if node in kept:
            last.update(dict.fromkeys(_read_below(node.children, kept), node))
    found: dict[Expr, list[Expr]] = {}
    for node, reader in last.items():
        if node not in final:
            found.setdefault(reader, []).append(node)
    return found


def _read_below(roots: Sequence[Expr], kept: set[Expr]) -> list[Expr]:
    """The nodes of `kept` that are reached from `roots` through none of them."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in kept:
            found.append(node)
        else:
            stack.extend(node.children)
    return found
