"""Recompute for memory: what the forward pass made is dropped, and made again before it is read.

The forward pass is cut into stretches where little is alive; what crosses a cut is kept, what lies
within a stretch is computed a second time when the backward pass gets there. With stretches of
equal weight a chain of n layers needs about sqrt(n) of the memory for one more forward pass (Chen
et al., "Training Deep Nets with Sublinear Memory Cost", 2016). Nodes whose attribute
`__force_mirroring__` is true are dropped wherever they stand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from gnomon.dtype import DType
from gnomon.graph.gradient import Backward
from gnomon.graph.node import Entry, Graph, Node
from gnomon.shape import prod

T = TypeVar("T")
Shapes = Mapping[Entry, tuple[int, ...]]
Types = Mapping[Entry, DType]

SMALL = 4096  # bytes of a value that is kept wherever it stands: statistics, masks of channels


def recomputed(
    graph: Graph, back: Backward, shapes: Shapes, types: Types, everywhere: bool
) -> Backward:
    """`back` that reads copies of the nodes to be dropped; these stand before their first reader.

    With `everywhere` the pass chooses what to drop; otherwise only what nodes ask for is dropped.
    """
    sizes = {e: prod(shapes[e]) * types[e].size for e in graph.entries}
    read = {e for node in back.nodes for e in node.inputs}
    dropped = {n for n in graph.topo if _asked(n)}
    if everywhere:
        dropped |= _chosen(graph, read, sizes)
    dropped = {n for n in dropped if may_repeat(n)}
    if not dropped:
        return back
    kept = {*graph.outputs, *(e for e, size in sizes.items() if size <= SMALL)}
    again = _Again(dropped, kept)
    nodes = [each for node in back.nodes for each in again.before(node)]
    grads = {n: Entry(again.moved[e.node], e.index) for n, e in back.grads.items()}
    return Backward(
        grads,
        tuple(nodes),
        again.known(back.shapes) | again.copied(shapes),
        again.known(back.types) | again.copied(types),
    )


def may_repeat(node: Node) -> bool:
    """Whether computing a node twice gives the same: expressions that draw nothing."""
    op = node.op
    return op is not None and op.is_expression and not getattr(op, "is_random", False)


def _asked(node: Node) -> bool:
    for key in ("__force_mirroring__", "force_mirroring"):
        if node.attrs.get(key, "").lower() in ("true", "1"):
            return True
    return False


class _Again:
    """Copies of dropped nodes, made when they are first read."""

    def __init__(self, dropped: Collection[Node], kept: Collection[Entry]) -> None:
        self.dropped, self.kept = dropped, kept
        self.copies: dict[Node, Node] = {}
        self.moved: dict[Node, Node] = {}

    def known(self, facts: Mapping[Entry, T]) -> dict[Entry, T]:
        """What was known of gradients, of those that stand for them now."""
        return {Entry(self.moved.get(e.node, e.node), e.index): fact for e, fact in facts.items()}

    def copied(self, facts: Mapping[Entry, T]) -> dict[Entry, T]:
        """What is known of nodes, of their copies."""
        return {
            e: facts[Entry(old, e.index)] for old, new in self.copies.items() for e in new.entries()
        }

    def before(self, node: Node) -> list[Node]:
        """The copies that `node` needs and that are not there yet, in order; then `node`."""
        made = self._missing(node.inputs)
        inputs = [self._now(e) for e in node.inputs]
        new = node
        if inputs != list(node.inputs):
            new = Node(node.op, node.name, inputs, node.attrs)
        self.moved[node] = new
        return [*made, new]

    def _now(self, entry: Entry) -> Entry:
        if entry.node in self.moved:
            return Entry(self.moved[entry.node], entry.index)
        if self._is_dropped(entry):
            return Entry(self.copies[entry.node], entry.index)
        return entry

    def _is_dropped(self, entry: Entry) -> bool:
        return entry.node in self.dropped and entry not in self.kept

    def _missing(self, entries: Iterable[Entry]) -> list[Node]:
        """New copies of all dropped nodes behind `entries`, what is read before what reads it."""
        made: list[Node] = []
        stack = [e.node for e in entries if self._is_dropped(e)][::-1]
        while stack:
            node = stack[-1]
            if node in self.copies:
                stack.pop()
                continue
            behind = [e.node for e in node.inputs if self._is_dropped(e)]
            waiting = [n for n in behind if n not in self.copies]
            if waiting:
                stack += waiting[::-1]
                continue
            inputs = [self._now(e) for e in node.inputs]
            self.copies[node] = Node(node.op, f"{node.name}_again", inputs, node.attrs)
            made.append(self.copies[stack.pop()])
        return made


def _chosen(graph: Graph, read: Collection[Entry], sizes: Mapping[Entry, int]) -> set[Node]:
    """The nodes to be dropped: all that lie within a stretch but the last one."""
    nodes = [n for n in graph.topo if n.op is not None]
    crossing = _crossing(graph, nodes, sizes)
    weights = [sum(sizes[e] for e in n.entries() if e in read) for n in nodes]
    whole, best = sum(weights), (sum(weights), [len(nodes)])
    parts = 2
    while whole and parts <= max(2.0, 3 * len(nodes) ** 0.5):  # backward may read none of it
        cuts = _cuts(weights, crossing, whole / parts)
        stretches = zip([0, *cuts[:-1]], cuts, strict=True)
        cost = sum(crossing[k] for k in cuts[:-1]) + max(sum(weights[a:b]) for a, b in stretches)
        best = min(best, (cost, cuts))
        parts += max(1, parts // 4)
    cuts = best[1]
    last = cuts[-2] if len(cuts) > 1 else 0
    alive = _alive(graph, nodes, cuts[:-1])
    return {n for n in nodes[:last] if not any(e in alive for e in n.entries())}


def _cuts(weights: Sequence[int], crossing: Sequence[int], share: float) -> list[int]:
    """Where stretches of about `share` bytes end: at the least crossing near there."""
    cuts, begin = [], 0
    while begin < len(weights):
        end, held = begin, 0.0
        while end < len(weights) and held < share:
            held += weights[end]
            end += 1
        if end < len(weights):
            near = range(max(begin + 1, end - (end - begin) // 2), end + 1)
            end = min(near, key=lambda k: (crossing[k], -k))
        cuts.append(end)
        begin = end
    return cuts


def _last_reads(graph: Graph, nodes: Sequence[Node]) -> dict[Entry, int]:
    """Where in the forward pass each entry is read last."""
    return {e: k for k, node in enumerate(nodes) for e in node.inputs}


def _crossing(graph: Graph, nodes: Sequence[Node], sizes: Mapping[Entry, int]) -> list[int]:
    """For each place between nodes: the bytes made before it and read by the forward pass after."""
    change, last = [0] * (len(nodes) + 2), _last_reads(graph, nodes)
    for k, node in enumerate(nodes):
        for entry in node.entries():
            if last.get(entry, -1) > k:
                change[k + 1] += sizes[entry]
                change[last[entry] + 1] -= sizes[entry]
    found, held = [], 0
    for k in range(len(nodes) + 1):
        held += change[k]
        found.append(held)
    return found


def _alive(graph: Graph, nodes: Sequence[Node], cuts: Sequence[int]) -> set[Entry]:
    """The entries that cross one of `cuts`."""
    last, places = _last_reads(graph, nodes), sorted(cuts)
    found: set[Entry] = set()
    for k, node in enumerate(nodes):
        after = next((c for c in places if c > k), None)
        if after is not None:
            found.update(e for e in node.entries() if last.get(e, -1) >= after)
    return found
