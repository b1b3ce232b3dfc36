"""Fusing: statements one after the other as groups of statements at once, each one loop nest.

In a group all values are taken before anything is stored (see `plan/statement.py`). A statement
joins the group before it when the two go over the same range and every element that it reads of
what the group writes is the one that it stands at itself. Such an element is *forwarded*: the
statement takes the expression that was stored instead of loading it again, rounded as memory
rounds it. A second store into the same memory takes the place of the first.

Statements with reductions, windows or a library's work stay alone: their loops are planned for
what they read. So do those that read their own destination at other elements than they store: what
they do in place, or through a temporary, is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gnomon.expr.ext.iota import Iota
from gnomon.expr.ext.philox import Philox
from gnomon.expr.ext.range_ import Range
from gnomon.expr.ext.reduce import Broadcast
from gnomon.expr.functions.scalar import SCALAR
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.rewrite import substitute
from gnomon.expr.walk import postorder
from gnomon.plan.cut import overlap
from gnomon.plan.statement import SAVERS, Store, identity

NODES = 256  # in the values of a group: registers, and what is compiled at once, are not endless
STREAMS = 12  # of memory that a loop goes through
STEADY = (Broadcast, Iota, Philox, Range)  # index rules that cost next to nothing


def fused(stores: Sequence[Store]) -> list[list[Store]]:
    """Groups that do, in their order, what `stores` do one after the other.

    >>> from gnomon.expr.node import Buffer
    >>> m, w, g = (Buffer((8,), address=a << 12) for a in (1, 2, 3))
    >>> [len(group) for group in fused([Store(m, "saveto", m * 0.9 - g), Store(w, "plusto", m)])]
    [2]
    """
    groups: list[list[Store]] = []
    for store in stores:
        joined = None if not groups else join(groups[-1], store)
        if joined is None:
            groups.append([store])
        else:
            groups[-1] = joined
    return groups


def join(group: Sequence[Store], store: Store) -> list[Store] | None:
    """`group` and then `store` as one group; None where that is not the same, or does not pay."""
    if not _same_range(group[0].dest, store.dest):
        return None
    there, here = [Reads([s.value for s in group]), Reads([store.value])]
    if not there.simple or not here.simple:
        return None
    written = [s.dest for s in group]
    dests = [*written, store.dest]
    if not all(_meets(d, b, there) for d in dests for b in there.leaves):
        return None
    if not all(_meets(d, b, here) for d in dests for b in here.leaves):
        return None
    if not all(_meets(d, store.dest, here) for d in written):
        return None
    made = _forwarded(group, store, here)
    values = [s.value for s in made]
    count = len(postorder(values))
    streams = {identity(b) for b in [*Reads(values).leaves, *(s.dest for s in made)]}
    return made if count <= NODES and len(streams) <= STREAMS else None


class Reads:
    """The leaves of values, those that stand below index rules, and whether all is simple."""

    def __init__(self, values: Sequence[Expr]) -> None:
        self.leaves: list[Buffer] = []
        self.elsewhere: set[int] = set()
        self.simple = True
        for node in postorder(values):
            if isinstance(node, Buffer):
                self.leaves.append(node)
            elif isinstance(node, STEADY):
                self.elsewhere.update(id(n) for n in postorder([node]))
            elif not isinstance(node, (Map, Cast, Scalar)):
                self.simple = False


def _same_range(a: Buffer, b: Buffer) -> bool:
    """Whether one loop suits both destinations: the same elements, in the same order of memory."""
    dense = a.contiguous and b.contiguous
    return a.shape == b.shape and (dense or a.strides == b.strides) and a.device == b.device


def _meets(dest: Buffer, leaf: Buffer, reads: Reads) -> bool:
    """Whether `leaf` is nothing of `dest`, or its very elements, each read where it is written."""
    if not overlap(dest, leaf):
        return True
    return identity(dest) == identity(leaf) and id(leaf) not in reads.elsewhere


def _forwarded(group: Sequence[Store], store: Store, reads: Reads) -> list[Store]:
    """`group` and `store` over the values before: what the group stores is put in."""
    content = {identity(s.dest): k for k, s in enumerate(group)}
    made = list(group)
    used = {identity(b) for b in [*reads.leaves, store.dest]}
    for k in [k for who, k in content.items() if who in used]:
        made[k] = plain(made[k])
    put: dict[Expr, Expr] = {
        b: rounded(made[content[identity(b)]].value) for b in reads.leaves if identity(b) in content
    }
    place = content.get(identity(store.dest))
    if place is not None:
        store = plain(store)  # which reads its destination
        old = rounded(made[place].value)
        put.update((b, old) for b in _data([store.value]) if identity(b) == identity(store.dest))
    (value,) = substitute([store.value], put)
    last = store if value is store.value else Store(store.dest, store.saver, value)
    if place is None:
        return [*made, last]
    made[place] = last
    return made


def _data(values: Sequence[Expr]) -> Iterator[Buffer]:
    return (n for n in postorder(values) if isinstance(n, Buffer))


def plain(store: Store) -> Store:
    """The same by `saveto`: the update is part of the value."""
    update = SAVERS[store.saver]
    if update is None:
        return store
    dest, value = store.dest, store.value
    return Store(dest, "saveto", Map(SCALAR[update], (dest, value), dest.shape, dest.dtype))


def rounded(value: Expr) -> Expr:
    """`value` as it is read back from memory: half floats are computed in float32."""
    return Cast(value, value.dtype) if value.dtype.size == 2 and value.dtype.kind == "f" else value
