"""Operators that draw parts of graphs, on `csr` arrays: as MXNet 1.9.1 gives them."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import DTypeError, GnomonError, ShapeError

c = mx.nd.contrib
COMPLETE = [k for row in range(5) for k in range(5) if k != row]


def ints(*values: int) -> Any:
    return mx.nd.array(values, dtype="int64")


def csr(values: Any, columns: Any, starts: Any, size: int) -> Any:
    parts = [np.array(each, np.int64) for each in (values, columns, starts)]
    return mx.nd.sparse.csr_matrix(tuple(parts), shape=(size, size), dtype="int64")


def complete() -> Any:
    """A graph of 5 vertices with every edge, numbered from 1 on."""
    return csr(range(1, 21), COMPLETE, range(0, 21, 4), 5)


def uneven() -> Any:
    return csr([1, 3, 1, 1, 2, 1, 1], [0, 1, 2, 3, 0, 2, 3], [0, 3, 4, 6, 7], 4)


def told(array: Any) -> tuple[Any, ...]:
    """Values, columns and starts of a matrix."""
    assert array.stype == "csr"
    return tuple(x.asnumpy().tolist() for x in (array.data, array.indices, array.indptr))


def listed(array: Any) -> list[Any]:
    found: list[Any] = array.asnumpy().tolist()
    return found


def check_sample(graph: Any, found: Any, seeds: set[int], hops: int, most: int) -> None:
    """What holds of every sample, whatever was drawn."""
    ids, part, layer = found[0], found[1], found[-1]
    count = int(ids.asnumpy()[-1])
    vertices, layers = listed(ids)[:count], listed(layer)[:count]
    assert vertices == sorted(set(vertices))
    assert {v for v, hop in zip(vertices, layers, strict=True) if hop == 0} == seeds
    assert listed(ids)[count:-1] == [-1] * (len(listed(ids)) - 1 - count)
    values, columns, starts = told(part)
    whole = graph.asnumpy()
    for k, vertex in enumerate(vertices):
        row = columns[starts[k] : starts[k + 1]]
        assert len(row) <= most
        assert layers[k] < hops or not row
        assert [whole[vertex, end] for end in row] == values[starts[k] : starts[k + 1]]
        for end in row:
            assert layers[vertices.index(end)] <= layers[k] + 1


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_are_parts_of_the_graph(hops: int, weighted: bool) -> None:
    graph = complete()
    given = {"num_hops": hops, "num_neighbor": 2, "max_num_vertices": 8}
    for seeds in ([0], [2, 2], [4, 1]):
        if weighted:
            weights = mx.nd.array([0.9, 0.8, 0.2, 0.4, 0.1])
            found = c.dgl_csr_neighbor_non_uniform_sample(graph, weights, ints(*seeds), **given)
            count = int(found[0].asnumpy()[-1])
            ids = listed(found[0])[:count]
            np.testing.assert_array_equal(found[2].asnumpy()[:count], weights.asnumpy()[ids])
        else:
            found = c.dgl_csr_neighbor_uniform_sample(graph, ints(*seeds), **given)
        assert [str(np.dtype(x.dtype)) for x in found[:2]] == ["int64", "int64"]
        check_sample(graph, found, set(seeds), hops, 2)


def test_what_mxnet_gives_where_nothing_is_drawn_by_chance() -> None:
    graph, sample = complete(), c.dgl_csr_neighbor_uniform_sample
    ids, part, layer = sample(graph, ints(0), num_hops=2, num_neighbor=10, max_num_vertices=8)
    assert listed(ids) == [0, 1, 2, 3, 4, -1, -1, -1, 5]
    assert listed(layer)[:5] == [0, 1, 1, 1, 1]
    whole = list(range(1, 21)), COMPLETE, [0, 4, 8, 12, 16, 20, 20, 20, 20]
    assert told(part) == whole
    ids, part, layer = sample(graph, ints(0), num_hops=2, num_neighbor=4, max_num_vertices=3)
    assert (listed(ids), listed(layer)) == ([0, 1, 2, 3], [0, 1, 1])
    assert told(part) == ([1, 2, 3, 4], [1, 2, 3, 4], [0, 4, 4, 4])
    ids, part, layer = sample(graph, ints(0, 1, 2, 3, 4), num_neighbor=2, max_num_vertices=5)
    assert (listed(ids), listed(layer)) == ([0, 1, 2, 3, 4, 5], [0] * 5)
    assert told(part) == ([], [], [0] * 6)
    several = sample(graph, ints(0), ints(3), num_neighbor=1, max_num_vertices=4)
    assert [x.shape for x in several] == [(5,), (5,), (4, 5), (4, 5), (4,), (4,)]


def test_draws_are_distributed_as_they_should() -> None:
    graph, weights = complete(), [1.0, 2.0, 3.0, 4.0, 5.0]
    mx.random.seed(7)
    even: collections.Counter[int] = collections.Counter()
    uneven: collections.Counter[int] = collections.Counter()
    for _ in range(600):
        given = {"num_neighbor": 1, "max_num_vertices": 3}
        part = c.dgl_csr_neighbor_uniform_sample(graph, ints(0), **given)[1]
        even.update(listed(part.indices))
        part = c.dgl_csr_neighbor_non_uniform_sample(graph, mx.nd.array(weights), ints(0), **given)[
            1
        ]
        uneven.update(listed(part.indices))
    for counts, shares in ((even, [0.25] * 4), (uneven, [w / 14 for w in weights[1:]])):
        expected = 600 * np.array(shares)
        found = np.array([counts[k] for k in range(1, 5)])
        assert ((found - expected) ** 2 / expected).sum() < 16.3  # 0.1% of 3 degrees of freedom


def test_subgraphs() -> None:
    numbered, values = c.dgl_subgraph(uneven(), ints(0, 1, 2), return_mapping=True)
    places = [0, 1, 2, 0, 2], [0, 3, 3, 5]
    assert told(numbered) == ([0, 1, 2, 3, 4], *places)
    assert told(values) == ([1, 3, 1, 2, 1], *places)
    assert told(c.dgl_subgraph(uneven(), ints(0, 1, 2), return_mapping=False))[1:] == places
    found = c.dgl_subgraph(uneven(), ints(0, 2, 3), ints(1, 3), return_mapping=True)
    assert [told(x) for x in found] == [
        ([0, 1, 2, 3, 4], [0, 1, 0, 1, 2], [0, 2, 4, 5]),
        ([0, 1], [1, 1], [0, 1, 2]),
        ([1, 1, 2, 1, 1], [0, 1, 0, 1, 2], [0, 2, 4, 5]),
        ([1, 1], [1, 1], [0, 1, 2]),
    ]


def test_compact_leaves_out_what_was_not_drawn() -> None:
    part = csr([2, 3, 6, 7], [2, 3, 2, 3], [0, 2, 4, 4, 4, 4, 4], 6)
    ids = ints(0, 1, 2, 3, 0, 0, 4)
    found = c.dgl_graph_compact(part, ids, graph_sizes=4, return_mapping=True)
    places = [2, 3, 2, 3], [0, 2, 4, 4, 4]
    assert [told(x) for x in found] == [([0, 1, 2, 3], *places), ([2, 3, 6, 7], *places)]
    far = csr([1], [5], [0, 1, 1, 1, 1, 1, 1], 6)
    with pytest.raises(ShapeError, match=r"arg0.*edges between its vertices.*5"):
        c.dgl_graph_compact(far, ids, graph_sizes=4, return_mapping=False)
    with pytest.raises(ShapeError, match=r"arg1.*3 vertices"):
        c.dgl_graph_compact(part, ids, graph_sizes=3, return_mapping=False)


def test_adjacency_edges_and_counts() -> None:
    found = c.dgl_adjacency(uneven())
    assert told(found) == ([1.0] * 7, [0, 1, 2, 3, 0, 2, 3], [0, 3, 4, 6, 7])
    assert found.dtype == np.float32
    u, v = ints(0, 0, 1, 1, 2, 2), ints(0, 1, 1, 2, 0, 2)
    for graph in (uneven(), uneven().astype("float32")):
        edges = c.edge_id(graph, u, v)
        assert listed(edges) == [1, 3, -1, -1, 2, 1]
        assert edges.dtype == graph.dtype
    with pytest.raises(ShapeError, match=r"'u'.*0 to 3"):
        c.edge_id(uneven(), ints(9), ints(0))
    zero = csr([0, 5], [1, 0], [0, 1, 2], 2)
    assert listed(c.edge_id(zero, ints(0, 1, 1), ints(1, 0, 1))) == [0, 5, -1]
    for axis, want in ((None, [7]), (1, [3, 1, 2, 1]), (0, [2, 1, 2, 2])):
        assert listed(c.getnnz(uneven(), axis=axis)) == want
    assert listed(c.getnnz(zero)) == [2]


def test_symbols() -> None:
    graph, ids = mx.sym.var("g", stype="csr"), mx.sym.var("v")
    net = mx.sym.contrib.dgl_subgraph(graph, ids, return_mapping=True, num_args=2)
    bound = net.bind(mx.cpu(), {"g": uneven(), "v": ints(0, 1, 2)})
    found = bound.forward()
    assert [told(x)[0] for x in found] == [[0, 1, 2, 3, 4], [1, 3, 1, 2, 1]]


def test_mistakes() -> None:
    sample = c.dgl_csr_neighbor_uniform_sample
    with pytest.raises(ShapeError, match=r"arg1.*at most max_num_vertices=4 seeds.*5"):
        sample(complete(), ints(0, 1, 2, 3, 4), max_num_vertices=4)
    with pytest.raises(DTypeError, match=r"arg1.*int64.*float32"):
        sample(complete(), mx.nd.array([0]))
    with pytest.raises(GnomonError, match=r"0 to 4.*7"):
        sample(complete(), ints(7))
    with pytest.raises(ShapeError, match="rising"):
        c.dgl_subgraph(uneven(), ints(2, 0), return_mapping=True)
    with pytest.raises(ShapeError, match=r"0 to 3.*7"):
        c.dgl_subgraph(uneven(), ints(3, 7), return_mapping=True)
    with pytest.raises(ShapeError, match="as many rows as columns"):
        c.dgl_adjacency(mx.nd.ones((2, 3)))
