"""Graphs as drawings: layers by longest path, ordered so that few edges cross, as SVG.

The forward pass goes down on the left, the backward pass up beside it, so that a gradient stands
near what it is the gradient of.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from gnomon.ground.record import record

WIDTH, HEIGHT = 150, 34  # of a box
ACROSS, DOWN = 172, 62  # from a box to the next
MARGIN = 12
SWEEPS = 4
LETTERS, SMALL_LETTERS = 22, 28  # that fit into a box

Edges = Sequence[tuple[Hashable, Hashable]]


class Box(NamedTuple):
    """What is drawn of a node: two lines, a tooltip, the colour inside, and what links to it."""

    title: str
    detail: str
    tooltip: str
    fill: str
    link: str


@record(slots=False)
class Column:
    """Nodes that are laid out together, operands first; `up` draws the first at the bottom."""

    nodes: Sequence[Hashable]
    up: bool = False


Points = dict[Hashable, tuple[float, float]]


def layers(nodes: Sequence[Hashable], edges: Edges) -> list[list[Hashable]]:
    """The nodes by the longest path that leads to each; `nodes` come operands first.

    >>> layers("abcd", [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")])
    [['a'], ['b', 'c'], ['d']]
    """
    members = set(nodes)
    before: dict[Hashable, list[Hashable]] = {n: [] for n in nodes}
    for source, reader in edges:
        if source in members and reader in members:
            before[reader].append(source)
    depth: dict[Hashable, int] = {}
    for node in nodes:
        depth[node] = max((depth[s] + 1 for s in before[node]), default=0)
    found: list[list[Hashable]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        found[depth[node]].append(node)
    return found


def ordered(rows: list[list[Hashable]], edges: Edges) -> list[list[Hashable]]:
    """Each layer's nodes near the middle of their neighbours, downwards and upwards in turn."""
    near: dict[Hashable, list[Hashable]] = {}
    for source, reader in edges:
        near.setdefault(source, []).append(reader)
        near.setdefault(reader, []).append(source)
    rows = [list(row) for row in rows]
    place = {n: k - (len(row) - 1) / 2 for row in rows for k, n in enumerate(row)}

    def middle(node: Hashable) -> float:
        places = [place[n] for n in near.get(node, ()) if n in place]
        return sum(places) / len(places) if places else 0.0

    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=middle)
            place.update((n, k - (len(row) - 1) / 2) for k, n in enumerate(row))
    return rows


def places(columns: Sequence[Column], edges: Edges) -> tuple[Points, float, float]:
    """The upper left corner of each node's box, and the width and height of it all."""
    points: Points = {}
    left, height = float(MARGIN), 0.0
    laid = [(c, ordered(layers(c.nodes, edges), edges)) for c in columns if c.nodes]
    deepest = max((len(rows) for _, rows in laid), default=0)
    for column, rows in laid:
        widest = max(map(len, rows))
        for number, row in enumerate(rows):
            level = deepest - 1 - number if column.up else number
            indent = (widest - len(row)) * ACROSS / 2
            for k, node in enumerate(row):
                points[node] = left + indent + k * ACROSS, MARGIN + level * DOWN
        left += widest * ACROSS + ACROSS / 2
    height = MARGIN + deepest * DOWN
    return points, max(left - ACROSS / 2, MARGIN), height


def drawing(columns: Sequence[Column], edges: Edges, boxes: Mapping[Hashable, Box]) -> str:
    """The graph as an SVG element."""
    points, width, height = places(columns, edges)
    lines = [
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img" aria-label="the graph after fusion">'
    ]
    lines += [_edge(points[a], points[b]) for a, b in edges if a in points and b in points]
    lines += [_box(points[node], boxes[node]) for node in points]
    return "\n".join([*lines, "</svg>"])


def _edge(source: tuple[float, float], reader: tuple[float, float]) -> str:
    """A curve from the side of a box that faces the other one."""
    (x0, y0), (x1, y1) = source, reader
    if abs(y1 - y0) < HEIGHT:
        y0, y1 = y0 + HEIGHT / 2, y1 + HEIGHT / 2
        x0, x1 = (x0 + WIDTH, x1) if x1 > x0 else (x0, x1 + WIDTH)
        middle = (x0 + x1) / 2
        return _curve((x0, y0), (middle, y0), (middle, y1), (x1, y1))
    y0, y1 = (y0 + HEIGHT, y1) if y1 > y0 else (y0, y1 + HEIGHT)
    x0, x1 = x0 + WIDTH / 2, x1 + WIDTH / 2
    middle = (y0 + y1) / 2
    return _curve((x0, y0), (x0, middle), (x1, middle), (x1, y1))


def _curve(*points: tuple[float, float]) -> str:
    start, *others = (f"{x:g} {y:g}" for x, y in points)
    return f'<path class="edge" d="M{start} C{" ".join(others)}"/>'


def _box(point: tuple[float, float], box: Box) -> str:
    x, y = point
    detail = escape(_short(box.detail, SMALL_LETTERS))
    return (
        f'<a href="#{escape(box.link)}"><g class="node"><title>{escape(box.tooltip)}</title>'
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{box.fill}"/>'
        f'<text x="{x + WIDTH / 2:g}" y="{y + 14:g}">{escape(_short(box.title))}</text>'
        f'<text class="small" x="{x + WIDTH / 2:g}" y="{y + 27:g}">{detail}</text>'
        "</g></a>"
    )


def _short(text: str, letters: int = LETTERS) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def unique(pairs: Iterable[tuple[Hashable, Hashable]]) -> list[tuple[Hashable, Hashable]]:
    """Each edge once, in order."""
    return list(dict.fromkeys(pairs))
