"""Parts of graphs that are matrices in `csr` storage: row and column are vertices, values edges.

Each operator's `parts` works on `Csr` matrices and gives such; `gnomon.ndarray.sparse.rules` calls
it on what arrays store. On dense matrices (`compute`) what is 0 is no edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.base import ShapeError, complaint
from gnomon.dtype import float32, int64
from gnomon.ops.case import case
from gnomon.ops.host import Array, HostOp
from gnomon.ops.infer import Shapes, Types, fixed_dtypes
from gnomon.ops.op import op
from gnomon.ops.param import Dims, count, param

NONE = -1  # stands behind the vertices that were sampled


class Csr(NamedTuple):
    """A matrix: its values row by row, the column of each, and where each row starts."""

    values: Array
    columns: Array
    starts: Array
    shape: tuple[int, int]

    @classmethod
    def of(cls, dense: Array) -> Csr:
        """What is not 0 in a dense matrix."""
        rows, columns = np.nonzero(dense)
        starts = np.searchsorted(rows, np.arange(len(dense) + 1))
        return cls(dense[rows, columns], columns, starts, dense.shape)

    @property
    def rows(self) -> Array:
        """The row of each value."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def dense(self) -> Array:
        """All elements."""
        found = np.zeros(self.shape, self.values.dtype)
        found[self.rows, self.columns] = self.values
        return found


class OnGraphs(HostOp):
    """What they share: inputs of which some are matrices, and parts that are."""

    numbers_outputs = True
    gradient = HostOp.without_gradient

    def graphs(self) -> int:
        """How many inputs, the first ones, are matrices."""
        return 1

    def parts(self, *inputs: Any, **context: Any) -> list[Any]:
        """The outputs, `Csr` or arrays."""
        raise NotImplementedError(f"{self.name}: says nothing of parts")

    def compute(self, *inputs: Any, **context: Any) -> Any:
        number = self.graphs()
        given = [*map(Csr.of, inputs[:number]), *inputs[number:]]
        found = self.parts(*given, **context)
        return tuple(x.dense() if isinstance(x, Csr) else x for x in found)

    def vertices(self, what: str, given: Array, total: int) -> Array:
        """Vertices as numbers below `total`; ShapeError where one is not."""
        found = np.asarray(given).astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() < total:
            got = f"{found.min()} to {found.max()}"
            expected = f"vertices from 0 to {total - 1}"
            raise ShapeError(complaint(self.name, what, expected, got))
        return found

    def square(self, s: Shapes, name: str) -> int:
        """How many vertices the graph of this name has."""
        rows, columns = s.rank(name, 2)
        if rows != columns and rows > 0 and columns > 0:
            raise s.refuse(name, "as many rows as columns", f"shape {(rows, columns)}")
        return rows


class Sampling(OnGraphs):
    """Neighbours drawn along edges, a few of each vertex, from the seeds on."""

    num_args: int = count(doc="Inputs.")
    num_hops: int = param(1, low=0, doc="How many edges away from a seed vertices may be.")
    num_neighbor: int = param(2, low=0, doc="How many neighbours of a vertex are drawn.")
    max_num_vertices: int = param(100, low=1, doc="Vertices at most; seeds count.")
    first = 1  # the number of the first input of seeds

    @property
    def num_seeds(self) -> int:
        """How many inputs are seeds."""
        return max(self.num_args - self.first, 0)

    def groups(self) -> tuple[str, ...]:
        """What is given for each input of seeds."""
        return ("vertices", "edges", "layer")

    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{name}{k}" for name in self.groups() for k in range(self.num_seeds))

    def shapes(self, s: Shapes) -> None:
        total, most = self.square(s, "arg0"), self.max_num_vertices
        for k in range(self.num_seeds):
            seeds = s.rank(f"arg{self.first + k}", 1)[0]
            if seeds > most:
                expected = f"at most max_num_vertices={most} seeds"
                raise s.refuse(f"arg{self.first + k}", expected, seeds)
            s[f"vertices{k}"], s[f"layer{k}"] = (most + 1,), (most,)
            s[f"edges{k}"] = (most, total)

    def types(self, t: Types) -> None:
        t["arg0"] = int64
        for k in range(self.num_seeds):
            t[f"arg{self.first + k}"] = int64
            for name in ("vertices", "edges", "layer"):
                t[f"{name}{k}"] = int64

    def order(self, graph: Csr, edges: Array, weights: Any, random: np.random.Generator) -> Array:
        """Numbers by which the edges of a vertex are chosen, least first."""
        raise NotImplementedError(f"{self.name}: says nothing of order")

    def parts(self, graph: Csr, *rest: Array, random: np.random.Generator) -> list[Any]:
        weights = rest[0] if self.first == 2 else None
        found = [self.sampled(graph, s, weights, random) for s in rest[self.first - 1 :]]
        return [each[k] for k in range(len(self.groups())) for each in found]

    def sampled(
        self, graph: Csr, seeds: Array, weights: Array | None, random: np.random.Generator
    ) -> tuple[Any, ...]:
        """What is drawn from these seeds on: one of each of `groups`."""
        total, most = graph.shape[0], self.max_num_vertices
        level = np.full(total, NONE)
        queue = self.vertices("seeds", seeds, total)
        queue = queue[np.sort(np.unique(queue, return_index=True)[1])]
        level[queue] = 0
        known, hop, kept = len(queue), 0, list[Array]()
        while len(queue) and hop < self.num_hops and known < most:
            edges, of = self.drawn(graph, queue, weights, random)
            ends = graph.columns[edges]
            is_new = level[ends] == NONE
            first = np.zeros(len(ends), bool)
            first[np.unique(ends, return_index=True)[1]] = True
            number = known + np.cumsum(first & is_new)  # of vertices, this edge's end counted
            before = np.concatenate([[known], number])[np.searchsorted(of, of)]
            kept.append(edges[before < most])  # a vertex has neighbours where there is still room
            queue = ends[first & is_new & (before < most) & (number <= most)]
            hop += 1
            level[queue] = hop
            known += len(queue)
        ids = np.flatnonzero(level != NONE)
        return self.told(graph, ids, level, np.concatenate([*kept, []]).astype(np.int64), weights)

    def drawn(
        self, graph: Csr, queue: Array, weights: Array | None, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """Edges from the vertices of `queue`, at most so many of each, and the vertex's place."""
        first, sizes = graph.starts[queue], np.diff(graph.starts)[queue]
        of = np.repeat(np.arange(len(queue)), sizes)
        begins = np.cumsum(sizes) - sizes
        edges = np.arange(len(of)) - np.repeat(begins - first, sizes)
        order = np.lexsort((self.order(graph, edges, weights, random), of))
        chosen = np.sort(order[np.arange(len(of)) - np.repeat(begins, sizes) < self.num_neighbor])
        return edges[chosen], of[chosen]

    def reference(self, graph: Array, *rest: Array) -> list[Array]:
        """The outputs where all neighbours are taken, one vertex after the other."""
        weights = rest[0] if self.first == 2 else None
        found = [self._walked(graph, seeds, weights) for seeds in rest[self.first - 1 :]]
        return [each[name] for name in self.groups() for each in found]

    def _walked(self, graph: Array, seeds: Array, weights: Array | None) -> dict[str, Array]:
        most = self.max_num_vertices
        hops = {int(seed): 0 for seed in seeds}
        queue, visited = list(hops), list[int]()
        while queue and len(hops) < most:
            visited.append(at := queue.pop(0))
            if hops[at] == self.num_hops:
                continue
            for end in np.flatnonzero(graph[at]):
                if end not in hops and len(hops) < most:
                    hops[int(end)] = hops[at] + 1
                    queue.append(int(end))
        ids = sorted(hops)
        rows = np.zeros((most, len(graph)), graph.dtype)
        for k, vertex in enumerate(ids):
            rows[k] = graph[vertex] * (vertex in visited and hops[vertex] < self.num_hops)
        pad = [NONE] * (most - len(ids))
        found = {"vertices": np.array([*ids, *pad, len(ids)]), "edges": rows}
        found["layer"] = np.array([*(hops[v] for v in ids), *pad])
        if weights is not None:
            found["weight"] = np.append(weights[ids], np.zeros(len(pad)))
        return found

    def told(
        self, graph: Csr, ids: Array, level: Array, edges: Array, weights: Array | None
    ) -> tuple[Any, ...]:
        """Vertices in order with their number behind, the edges of each, and its layer."""
        most = self.max_num_vertices
        vertices, layer = np.full(most + 1, NONE), np.full(most, NONE)
        vertices[: len(ids)], vertices[-1] = ids, len(ids)
        layer[: len(ids)] = level[ids]
        edges = np.sort(edges)
        rows = np.searchsorted(graph.starts, edges, side="right") - 1
        starts = np.searchsorted(np.searchsorted(ids, rows), np.arange(most + 1))
        part = Csr(graph.values[edges], graph.columns[edges], starts, (most, graph.shape[1]))
        return vertices, part, layer


@op("_contrib_dgl_csr_neighbor_uniform_sample", inputs=("graph",), variadic="num_args")
class UniformSample(Sampling):
    """Vertices around seeds, `num_neighbor` of those next to each, for `num_hops` edges.

    Inputs are a graph (n, n) and arrays of seeds; outputs, for each of these: the vertices, and
    behind them how many there are (`max_num_vertices` + 1,); the edges drawn from each, a row a
    vertex (`max_num_vertices`, n); how many edges each is away from a seed. Where there is no room
    for more vertices, no more are visited. Behind the last vertex stands -1.
    """

    cases = (
        case([[0, 1], [2, 0]], [0], num_args=2, max_num_vertices=2),
        case([[0, 1], [2, 0]], [0, 1], num_args=2, max_num_vertices=3),
    )

    def order(self, graph: Csr, edges: Array, weights: Any, random: np.random.Generator) -> Array:
        return random.random(len(edges))

    def compute(self, *inputs: Array, random: np.random.Generator) -> Any:
        return super().compute(*inputs, random=random)


@op("_contrib_dgl_csr_neighbor_non_uniform_sample", inputs=("graph",), variadic="num_args")
class WeightedSample(Sampling):
    """As `dgl_csr_neighbor_uniform_sample`, but a neighbour is drawn by its weight.

    The weights (n,) of vertices come behind the graph; outputs have, behind the edges, the weight
    of each vertex. Draws without replacement are the least of numbers distributed exponentially,
    each divided by its weight (Efraimidis and Spirakis, 2006).
    """

    first = 2
    cases = (case([[0, 1], [2, 0]], [0.5, 1], [0], num_args=3, max_num_vertices=2),)

    def groups(self) -> tuple[str, ...]:
        return ("vertices", "edges", "weight", "layer")

    def shapes(self, s: Shapes) -> None:
        super().shapes(s)
        s["arg1"] = (self.square(s, "arg0"),)
        for k in range(self.num_seeds):
            s[f"weight{k}"] = (self.max_num_vertices,)

    def types(self, t: Types) -> None:
        super().types(t)
        t.same("arg1", *(f"weight{k}" for k in range(self.num_seeds)))

    def order(self, graph: Csr, edges: Array, weights: Any, random: np.random.Generator) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(random.exponential(size=len(edges)) / weights[graph.columns[edges]])

    def told(
        self, graph: Csr, ids: Array, level: Array, edges: Array, weights: Array | None
    ) -> tuple[Any, ...]:
        assert weights is not None
        vertices, part, layer = super().told(graph, ids, level, edges, weights)
        found = np.zeros(self.max_num_vertices, weights.dtype)
        found[: len(ids)] = weights[ids]
        return vertices, part, found, layer

    def compute(self, *inputs: Array, random: np.random.Generator) -> Any:
        return super().compute(*inputs, random=random)


def numbered(graph: Csr) -> Csr:
    """The same edges, whose values are their numbers in order."""
    return graph._replace(values=np.arange(len(graph.columns)))


class Renumbering(OnGraphs):
    """Parts of graphs whose vertices are numbered anew."""

    return_mapping: bool = param(doc="Whether to give the values of the edges, too.")

    def among(self, what: str, graph: Csr, ids: Array, strict: bool) -> Csr:
        """The edges of `graph` to the vertices `ids`, numbered by their places.

        Raises:
            ShapeError: with `strict`, an edge to another vertex.
        """
        order = np.argsort(ids, kind="stable")
        at = np.searchsorted(ids, graph.columns, sorter=order)
        at = np.append(order, NONE)[at]
        inside = (at != NONE) & (np.append(ids, NONE)[at] == graph.columns)
        if strict and not inside.all():
            got = f"an edge to {graph.columns[~inside][0]}"
            raise ShapeError(complaint(self.name, what, "edges between its vertices", got))
        starts = np.concatenate([[0], np.cumsum(inside)])[graph.starts]
        columns, values = at[inside], graph.values[inside]
        order = np.lexsort((columns, graph.rows[inside]))
        return Csr(values[order], columns[order], starts, (len(ids), len(ids)))

    def listed(self, found: Sequence[Csr]) -> list[Csr]:
        """Graphs with edges numbered anew, and behind them those with their values."""
        return [*map(numbered, found), *(found if self.return_mapping else ())]


@op("_contrib_dgl_subgraph", inputs=("graph",), variadic="num_args")
class Subgraph(Renumbering):
    """The edges of a graph (n, n) between vertices, for each array of them, in rising order.

    Vertices are numbered as they stand there, edges from 0 on. With `return_mapping` outputs
    follow, for each array, that hold the edges' values.
    """

    num_args: int = count(doc="Inputs.")
    cases = (case([[0, 1, 2], [3, 0, 0], [0, 4, 0]], [0, 2], num_args=2, return_mapping=True),)

    def outputs(self) -> tuple[str, ...]:
        names = ("graph", "mapping") if self.return_mapping else ("graph",)
        return tuple(f"{name}{k}" for name in names for k in range(self.num_args - 1))

    def shapes(self, s: Shapes) -> None:
        self.square(s, "arg0")
        for k in range(self.num_args - 1):
            (size,) = s.rank(f"arg{k + 1}", 1)
            for name in self.outputs()[k :: self.num_args - 1]:
                s[name] = (size, size)

    def types(self, t: Types) -> None:
        for name in (*self.arguments(), *self.outputs()):
            t[name] = int64

    def parts(self, graph: Csr, *rest: Array, **context: Any) -> list[Any]:
        found = []
        for k, given in enumerate(rest):
            ids = self.vertices(f"arg{k + 1}", given, graph.shape[0])
            if (ids[1:] <= ids[:-1]).any():
                expected = "vertices in rising order, each once"
                raise ShapeError(complaint(self.name, f"arg{k + 1}", expected, ids.tolist()))
            found.append(self.among("arg0", rows_of(graph, ids), ids, strict=False))
        return list(self.listed(found))

    def reference(self, graph: Array, *rest: Array) -> list[Array]:
        wholes = [graph[np.ix_(ids.astype(int), ids.astype(int))] for ids in rest]
        return _reference(wholes, self.return_mapping)


def rows_of(graph: Csr, rows: Array) -> Csr:
    """Rows of a matrix, one after the other."""
    sizes = np.diff(graph.starts)[rows]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(starts[-1]) - np.repeat(starts[:-1] - graph.starts[rows], sizes)
    shape = (len(rows), graph.shape[1])
    return Csr(graph.values[places], graph.columns[places], starts, shape)


def _reference(wholes: Sequence[Array], mapping: bool) -> list[Array]:
    """Dense matrices with edges numbered from 0 on, and those with their values."""
    numbers = []
    for whole in wholes:
        number = np.zeros(whole.shape, np.int64)
        number[whole != 0] = np.arange(np.count_nonzero(whole))
        numbers.append(number)
    return [*numbers, *(wholes if mapping else ())]


@op("_contrib_dgl_graph_compact", inputs=("graph",), variadic="num_args")
class Compact(Renumbering):
    """Graphs of samples without the vertices that were not drawn.

    Inputs are the edges that a sample gave, for each graph, then its vertices. Vertices are
    numbered in their order, edges from 0 on; with `return_mapping` outputs follow that hold the
    edges' values.
    """

    num_args: int = count(doc="Inputs, two for each graph.")
    graph_sizes: Dims = param(doc="How many vertices each graph has.")
    cases = (
        case([[0, 0, 1], [2, 0, 0], [0, 0, 0]], [0, 2, -1, 2], num_args=2, graph_sizes=(2,),
             return_mapping=True),
    )  # fmt: skip

    def check(self) -> None:
        if self.num_args != 2 * len(self.graph_sizes):
            expected = f"{self.num_args // 2} sizes, for two inputs each"
            raise ShapeError(complaint(self.name, "graph_sizes", expected, self.graph_sizes))

    def graphs(self) -> int:
        return len(self.graph_sizes)

    def outputs(self) -> tuple[str, ...]:
        names = ("graph", "mapping") if self.return_mapping else ("graph",)
        return tuple(f"{name}{k}" for name in names for k in range(self.graphs()))

    def shapes(self, s: Shapes) -> None:
        for k, size in enumerate(self.graph_sizes):
            rows, _ = s.rank(f"arg{k}", 2)
            s[f"arg{self.graphs() + k}"] = (rows + 1 if rows >= 0 else -1,)
            if not 0 <= size <= max(rows, size if rows < 0 else 0):
                raise s.refuse(f"arg{k}", f"at least {size} rows, as graph_sizes says", rows)
            for name in self.outputs()[k :: self.graphs()]:
                s[name] = (size, size)

    def types(self, t: Types) -> None:
        for name in (*self.arguments(), *self.outputs()):
            t[name] = int64

    def parts(self, *inputs: Any, **context: Any) -> list[Any]:
        found = []
        for k, size in enumerate(self.graph_sizes):
            graph, ids = inputs[k], np.asarray(inputs[self.graphs() + k])
            if ids[-1] != size:
                expected = f"{size} vertices, as graph_sizes says"
                raise ShapeError(complaint(self.name, f"arg{self.graphs() + k}", expected, ids[-1]))
            rows = rows_of(graph, np.arange(size))
            found.append(self.among(f"arg{k}", rows, ids[:size], strict=True))
        return list(self.listed(found))

    def reference(self, *inputs: Array) -> list[Array]:
        number = self.graphs()
        wholes = [
            graph[:size][:, ids[:size].astype(int)]
            for graph, ids, size in zip(
                inputs[:number], inputs[number:], self.graph_sizes, strict=True
            )
        ]
        return _reference(wholes, self.return_mapping)


@op("_contrib_dgl_adjacency")
class Adjacency(OnGraphs):
    """1 for each edge of a graph (n, n), as float32."""

    cases = (case([[0, 3], [2, 0]]),)
    types = fixed_dtypes(output=float32)

    def shapes(self, s: Shapes) -> None:
        self.square(s, "data")
        s.same("data", "output")

    def parts(self, data: Csr, **context: Any) -> list[Any]:
        return [data._replace(values=np.ones(len(data.columns), np.float32))]

    def compute(self, data: Array) -> Any:
        return super().compute(data)

    def reference(self, data: Array) -> Array:
        return np.asarray(data != 0, np.float32)
