"""Give sizes that are equal by chance different names: a square runs the kernel of rectangles.

A structure tells sizes apart by value (see `statement.py`): a square would have one size where
others have two, and so a kernel of its own. Which sizes have to be equal follows from the nodes:
those of a map's operands, of what a reduction keeps, of what is repeated along other axes alone. Of
other nodes those are taken to be that are equal within one. Where more are equal than have to be,
each that is not bound to another is set `Apart`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gnomon.expr.composite import Composite
from gnomon.expr.ext.reduce import Broadcast, Reduce
from gnomon.expr.node import Buffer, Cast, Expr, Map, Scalar
from gnomon.expr.walk import postorder
from gnomon.ground.record import put
from gnomon.plan.statement import Apart, Store, identity

Names = tuple[int, ...]  # of sizes, one for each axis


@dataclass
class _Named:
    """Names of sizes: two that are bound to be equal have one root."""

    values: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    of: dict[Expr, Names] = field(default_factory=dict)  # the sizes of nodes' shapes,
    inner: dict[Expr, Names] = field(default_factory=dict)  # and of their own

    def new(self, sizes: Sequence[int]) -> Names:
        """Names for these sizes."""
        first = len(self.values)
        self.values += sizes
        self.above += range(first, len(self.values))
        return tuple(range(first, len(self.values)))

    def root(self, name: int) -> int:
        """The one name of all that are bound to this one."""
        while self.above[name] != name:
            name = self.above[name]
        return name

    def bind(self, names: Names, others: Names) -> None:
        """Sizes that have to be equal, by pairs."""
        for a, b in zip(map(self.root, names), map(self.root, others), strict=True):
            self.above[max(a, b)] = min(a, b)

    def bind_equal(self, names: Sequence[int]) -> None:
        """Bind all that are equal."""
        first: dict[int, int] = {}
        for name in names:
            self.bind((first.setdefault(self.values[name], name),), (name,))

    @property
    def are_apart(self) -> bool:
        """Whether no two are equal but those that have to be."""
        roots = {self.root(name) for name, n in enumerate(self.values) if n > 1}
        return len({self.values[root] for root in roots}) == len(roots)

    def axes(self, names: Names) -> tuple[int, ...]:
        """These sizes; those that are no other size are `Apart`, by name."""
        roots = [self.root(name) for name in names]
        return tuple([n if n < 2 else Apart(n, r) for n, r in ((self.values[r], r) for r in roots)])


def told_apart(stores: Sequence[Store]) -> Sequence[Store]:
    """The same statements, with sizes apart that are equal by chance."""
    order = postorder([e for s in stores for e in (s.value, s.dest)])
    if any(isinstance(n, Apart) for node in order for n in node.shape):
        return stores
    named = _named(stores, order)
    if named.are_apart:
        return stores
    new: dict[Expr, Expr] = {}
    for node in order:
        new[node] = _over(node, [new[c] for c in node.children], named)
    # a destination is a leaf, and stays one
    return [Store(new[s.dest], s.saver, new[s.value]) for s in stores]  # type: ignore[arg-type]


def _named(stores: Sequence[Store], order: Sequence[Expr]) -> _Named:
    """The names of all sizes of some statements, whose nodes these are."""
    named, leaves = _Named(), dict[object, Names]()
    for node in order:
        if isinstance(node, Buffer):
            who = identity(node)
            if who not in leaves:
                leaves[who] = named.new(node.shape)
            named.of[node] = leaves[who]
        elif isinstance(node, Composite):
            _name_composite(named, node)
        else:
            _name_map(named, node)
    for store in stores:
        if store.value.shape:
            named.bind(named.of[store.dest], named.of[store.value])
    return named


def _name_map(named: _Named, node: Expr) -> None:
    """Of a map, a cast or a number: operands with a shape have one."""
    names = [named.of[c] for c in node.children if c.shape]
    for other in names[1:]:
        named.bind(names[0], other)
    named.of[node] = names[0] if names else named.new(node.shape)


def _name_composite(named: _Named, node: Composite) -> None:
    """Of a chainer: what is known of its kind, else what is equal."""
    own = named.inner[node] = named.new(node.size_values())
    names = named.of[node] = named.new(node.shape)
    if isinstance(node, Reduce):
        every = zip(node.src.shape, named.of[node.src], strict=True)
        kept = [name for a, (_, name) in enumerate(every) if a not in node.axes]
        mine = [name for a, name in enumerate(names) if not (node.keepdims and a in node.axes)]
        named.bind(tuple(mine), tuple(kept))
    elif isinstance(node, Broadcast):
        named.bind(names, own)
        pairs = enumerate(named.of[node.src], node.front)
        for axis, name in pairs:
            if axis not in node.along:
                named.bind((names[axis],), (name,))
    elif not own and all(c.shape == node.shape for c in node.children):
        for child in node.children:
            named.bind(names, named.of[child])
    else:
        named.bind_equal([*names, *own, *(n for c in node.children for n in named.of[c])])


def _over(node: Expr, children: Sequence[Expr], named: _Named) -> Expr:
    """The same node over other operands; its sizes have names."""
    shape = named.axes(named.of[node])
    if isinstance(node, Buffer):
        made = Buffer(shape, node.dtype, node.strides, node.address, node, node.device)
        put(made, "_layout", node.layout)
        return made
    if isinstance(node, Map):
        return Map(node.fn, tuple(children), shape, node.dtype)
    if isinstance(node, Cast):
        return Cast(children[0], node.dtype, shape)
    if isinstance(node, Scalar):
        return node
    assert isinstance(node, Composite), type(node)
    own: Iterator[int] = iter(named.axes(named.inner[node]))
    return node.rebuild(iter(children), lambda _: next(own), shape)
