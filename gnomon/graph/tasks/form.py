"""Forms: what tasks compute, over stand-ins for what they read, and what follows from that alone.

Networks repeat their layers. Tasks that do the same with values of the same shapes, dtypes and
strides share one form, so that each question (what may be overwritten, what stands alone, how two
are composed) is answered once for all of them. A stand-in is a buffer without memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gnomon.dtype import DType
from gnomon.expr.composite import Call, Chainer
from gnomon.expr.ext.concat import Concat
from gnomon.expr.ext.flip import Flip
from gnomon.expr.ext.reduce import Broadcast
from gnomon.expr.ext.reshape import Reshape
from gnomon.expr.ext.slice_ import Slice
from gnomon.expr.ext.transpose import Transpose
from gnomon.expr.node import CHAINER, Buffer, Cast, Expr, Map
from gnomon.expr.rewrite import substitute, with_children
from gnomon.expr.walk import postorder
from gnomon.ground.record import cached_property
from gnomon.plan.view import viewed
from gnomon.shape import prod, row_major

_ONCE = (Map, Cast, Concat, Flip, Reshape, Slice, Transpose)  # read an element of theirs once
# elements of a joined part side by side: computed there, parts of 2 took up to 5 times as long,
# parts of 200 took 0.6 of the time
RUN = 64
NOWHERE = 1 << 60  # stands for the address of a buffer that has none yet


class Spec(NamedTuple):
    """What of a buffer decides what can be done with it."""

    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]

    @classmethod
    def dense(cls, shape: tuple[int, ...], dtype: DType) -> Spec:
        """That of a buffer without gaps."""
        return cls(shape, dtype, row_major(shape))


class Seen(NamedTuple):
    """A value that is a view: of which leaf (None: of memory that is no leaf), and how."""

    leaf: int | None
    contiguous: bool
    same_bytes: bool  # all bytes of the leaf, in their order


class Form:
    """`values` over the buffers `leaves`; whatever else they read is their own for good."""

    def __init__(
        self,
        values: Sequence[Expr],
        leaves: Sequence[Buffer],
        nodes: Sequence[Expr] | None = None,
    ) -> None:
        """`nodes` are the values and all that is below them, operands first, if that is known."""
        self.values, self.leaves = tuple(values), tuple(leaves)
        self.nodes = postorder(values) if nodes is None else nodes

    @classmethod
    def of(cls, values: Sequence[Expr], known: Iterable[Buffer]) -> Form:
        """The form of `values`; its leaves are those of `known` that they read, in their order."""
        ids, nodes = {id(b) for b in known}, postorder(values)
        return cls(values, [n for n in nodes if isinstance(n, Buffer) and id(n) in ids], nodes)

    @classmethod
    def itself(cls, spec: Spec) -> Form:
        """What it reads, as it is."""
        leaf = Buffer(*spec)
        return cls([leaf], [leaf])

    def over(self, buffers: Sequence[Buffer]) -> list[Expr]:
        """The values with these buffers in place of the stand-ins."""
        return substitute(self.values, dict(zip(self.leaves, buffers, strict=True)), self.nodes)

    @cached_property
    def has_call(self) -> bool:
        """Whether a library has a part in it."""
        return any(v.exp_type & ~CHAINER for v in self.values)

    @cached_property
    def elsewhere(self) -> frozenset[int]:
        """The leaves, by number, that a value reads at another index than its own."""
        found = moved_in(self.nodes)
        return frozenset(k for k, leaf in enumerate(self.leaves) if id(leaf) in found)

    @cached_property
    def taken(self) -> tuple[float, ...]:
        """For each leaf: how many of its elements the value takes, each as often as it is computed
        then, where maps and moves alone read them; else `inf`. Of several values, each may take the
        same ones."""
        if len(self.values) != 1:
            return (math.inf,) * len(self.leaves)
        same, apart = {id(self.values[0]): 1.0}, dict[int, float]()  # how often, in one and in all
        for node in reversed(self.nodes):  # readers first
            times = same.get(id(node), 0) + apart.get(id(node), 0)
            for child in node.children:
                if isinstance(node, (Map, Cast)):  # all of them at one place: computed once
                    same[id(child)] = max(same.get(id(child), 0), times)
                else:
                    apart[id(child)] = apart.get(id(child), 0) + times * _part_of(node, child)
        every = [same.get(id(x), 0) + apart.get(id(x), 0) for x in self.leaves]
        return tuple([t * prod(x.shape) for t, x in zip(every, self.leaves, strict=True)])

    @cached_property
    def moves(self) -> bool:
        """Whether reading the value's elements in another order costs about as much as reading one
        buffer so: it is made by maps and moves, of not much more elements than it has."""
        plain = all(isinstance(n, (Broadcast, *_ONCE)) for n in self.nodes if n.children)
        return plain and sum(prod(x.shape) for x in self.leaves) < 2 * prod(self.values[0].shape)

    @cached_property
    def seen(self) -> tuple[Seen | None, ...]:
        """For each value: what it is a view of, None where it computes."""
        numbers = {id(leaf): k for k, leaf in enumerate(self.leaves)}
        return tuple(_seen(value, numbers) for value in self.values)

    @cached_property
    def overwrites(self) -> tuple[tuple[int, int], ...]:
        """Pairs (value, leaf): the value may lie where the leaf does, which nothing reads after."""
        return tuple((k, n) for k in range(len(self.values)) for n in self._overwritten(k))

    def _overwritten(self, number: int) -> Iterable[int]:
        value, seen = self.values[number], self.seen[number]
        nodes = self.nodes if len(self.values) == 1 else postorder([value])
        if (seen is not None and seen.same_bytes) or any(isinstance(n, Call) for n in nodes):
            return  # a library may write before it has read everything
        others = [v for k, v in enumerate(self.values) if k != number]
        elsewhere = moved_in(nodes, (Map, Cast, Reshape)).union(map(id, postorder(others)))
        mine, size = set(map(id, nodes)) - elsewhere, prod(value.shape)
        for k, leaf in enumerate(self.leaves):
            if id(leaf) not in mine or leaf.dtype is not value.dtype:
                continue
            if leaf.shape == value.shape or (prod(leaf.shape) == size and leaf.contiguous):
                yield k


def _part_of(node: Expr, child: Expr) -> float:
    """Which part of an operand a node that is no map computes, `inf` of one that reads it often.

    What is joined in runs shorter than a few registers is chosen element by element.
    """
    if isinstance(node, Slice):
        return prod(node.shape) / max(prod(child.shape), 1)
    if isinstance(node, Concat) and prod(child.shape[node.axis :]) < RUN:
        return math.inf
    return 1 if isinstance(node, _ONCE) else math.inf


def moved_in(nodes: Iterable[Expr], stay: tuple[type[Expr], ...] = (Map, Cast)) -> set[int]:
    """Ids of those that values read at another index than their own; `nodes` are all below these.

    What is read at its own index alone, which `stay` say of what they read, can be overwritten by
    a value, and can be composed into it without being computed twice.
    """
    moved = [c for n in nodes if not isinstance(n, stay) for c in n.children]
    return {id(n) for n in postorder(moved)}


def seen_through(value: Expr) -> tuple[Buffer, Buffer] | None:
    """The buffer that `value` is a view of, and `value` as that view; None if it computes.

    A view is a buffer in another shape or with other strides: no data moves. Where the buffer has
    no place yet, the view is one of memory at `NOWHERE`.
    """
    steps = []
    while not isinstance(value, Buffer):
        moves = isinstance(value, Chainer) and len(value.children) == 1
        if not moves and not (isinstance(value, Map) and value.fn.name == "identity"):
            return None
        steps.append(value)
        value = value.children[0]
    source = seen = value
    if steps and not seen.address:
        seen = Buffer(seen.shape, seen.dtype, seen.strides, NOWHERE)
    for step in reversed(steps):
        found = seen if isinstance(step, Map) else viewed(with_children(step, [seen]))
        if not isinstance(found, Buffer):
            return None
        seen = found
    return source, seen


def _seen(value: Expr, numbers: dict[int, int]) -> Seen | None:
    found = seen_through(value)
    if found is None:
        return None
    source, view = found
    moved = view is not source and view.address != (source.address or NOWHERE)
    whole = source.contiguous and prod(source.shape) == prod(view.shape)
    same = view.contiguous and not moved and whole
    return Seen(numbers.get(id(source)), view.contiguous, same)
