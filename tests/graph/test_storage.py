"""Storage of a graph's values: what is inferred is what arrays have when they are computed."""

from __future__ import annotations

import itertools

import pytest

import gnomon as mx
from gnomon import nd
from gnomon.graph.node import Entry
from gnomon.graph.storage import RULES, STORAGE, ZERO_SOMETIMES, ZERO_TO_ZERO, gradients, storage
from gnomon.ops import registry

DGL = "_contrib_dgl_"
GIVEN = {
    "_square_sum": [{"axis": 1}, {"axis": 1, "keepdims": True}, {"axis": 0}],
    "slice": [{"begin": (0,), "end": (2,)}, {"begin": (0, 1), "end": (3, 3), "step": (1, 2)}],
    "take": [{}, {"axis": 1}],
    "Concat": [{"dim": 0, "num_args": 2}, {"dim": 1, "num_args": 2}],
    "add_n": [{"num_args": 2}],
    "dot": [{}, {"transpose_a": True}, {"transpose_b": True}, {"forward_stype": "csr"}],
    "clip": [{"a_min": -1, "a_max": 1}, {"a_min": 1, "a_max": 2}],
    "_mul_scalar": [{"scalar": 2}],
    f"{DGL}csr_neighbor_uniform_sample": [{"num_args": 2, "max_num_vertices": 4}],
    f"{DGL}csr_neighbor_non_uniform_sample": [{"num_args": 3, "max_num_vertices": 4}],
    f"{DGL}subgraph": [{"num_args": 2, "return_mapping": m} for m in (False, True)],
    f"{DGL}graph_compact": [{"num_args": 2, "graph_sizes": (2,), "return_mapping": True}],
}
NUMBERS = [{"scalar": 0}, {"scalar": 1}, {"scalar": -1}]
PLACED = {"cast_storage", "_CrossDeviceCopy"}  # by `graph`, where storage or device demand it
NAMES = sorted({*RULES, *ZERO_SOMETIMES, *ZERO_TO_ZERO} - PLACED)


def stored(stype):
    x = nd.array([[1, 0, 2], [0, 0, 0], [0, 0.5, 0]])
    return x if stype == "default" else x.tostype(stype)


def operands(op, kinds):
    """Arrays of these storages; None where they are not what the operator takes."""
    arrays = [stored(kind) for kind in kinds]
    if op.name in ("take", "_sparse_retain"):
        if kinds[1] != "default":
            return None
        arrays[1] = nd.array([0, 2])
    if op.name.startswith(DGL):
        if [*kinds] != ["csr", *["default"] * (len(kinds) - 1)]:
            return None
        edges = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
        arrays = [nd.array(edges, dtype="int64").tostype("csr"), nd.array([0, 1], dtype="int64")]
        if "non_uniform" in op.name:
            arrays.insert(1, nd.array([0.5, 1, 1]))
        if op.name == f"{DGL}graph_compact":
            small = nd.array([[0, 1, 0], [2, 0, 0], [0, 0, 0]], dtype="int64")
            arrays = [small.tostype("csr"), nd.array([0, 1, -1, 2], dtype="int64")]
    return arrays[: len(kinds)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_inferred_is_what_arrays_have(name):
    cls = registry.find(name)
    default = NUMBERS if name in ZERO_SOMETIMES else [{}]
    for given in GIVEN.get(name, default):
        op = cls.parse(given)
        for kinds in itertools.product(STORAGE, repeat=len(op.arguments())):
            arrays = operands(op, kinds)
            if arrays is None or set(kinds) == {"default"}:
                continue
            made = nd.invoke(op, arrays)
            variables = [mx.sym.var(f"x{k}") for k in range(len(kinds))]
            graph = getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)
            symbol = graph(*variables, **{k: v for k, v in given.items() if k != "num_args"})
            known = {n: kinds[int(n.name[1:])] for n in symbol._graph.variables}
            inferred = storage(symbol._graph, known)
            found = [x.stype for x in made] if isinstance(made, list) else [made.stype]
            outputs = [inferred[x] for x in symbol._graph.outputs]
            assert outputs == found, (name, given, kinds)


CSR, ROWS = mx.sym.var("x", stype="csr"), mx.sym.var("w", stype="row_sparse")
DENSE = mx.sym.var("d")
#: outputs, and gradients by name, as MXNet 1.9.1 infers them
SEEN = {
    "dot": (mx.sym.dot(CSR, DENSE), "default", {"x": "default", "d": "row_sparse"}),
    "dot rows": (mx.sym.dot(CSR, ROWS), "default", {"w": "row_sparse"}),
    "turned": (mx.sym.dot(CSR, DENSE, transpose_a=True), "row_sparse", {"d": "default"}),
    "look-up": (
        mx.sym.Embedding(DENSE, ROWS, input_dim=9, output_dim=2, sparse_grad=True),
        "default",
        {"d": "default", "w": "row_sparse"},
    ),
    "dense look-up": (
        mx.sym.Embedding(DENSE, ROWS, input_dim=9, output_dim=2),
        "default",
        {"w": "default"},
    ),
    "number": (CSR * 2, "csr", {"x": "csr"}),
    "root": (mx.sym.sqrt(CSR), "csr", {"x": "default"}),
    "exp": (mx.sym.exp(CSR), "default", {"x": "default"}),
    "sum": (CSR + CSR, "csr", {"x": "csr"}),
    "product": (mx.sym.elemwise_mul(ROWS, DENSE), "row_sparse", {"w": "default", "d": "default"}),
    "cast": (mx.sym.cast_storage(DENSE, stype="row_sparse"), "row_sparse", {"d": "row_sparse"}),
    "squares": (
        mx.sym._internal._square_sum(ROWS, axis=1, keepdims=True),
        "row_sparse",
        {"w": "row_sparse"},
    ),
    "two readers": (
        mx.sym.dot(CSR, ROWS) + mx.sym.dot(DENSE, ROWS),
        "default",
        {"w": "default"},
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_storages_are_those_of_mxnet(name):
    symbol, output, wanted = SEEN[name]
    graph = symbol._graph
    kinds = storage(graph, {})
    assert kinds[graph.outputs[0]] == output
    found = {n.name: stype for n, stype in gradients(graph, kinds).items()}
    assert {k: found[k] for k in wanted} == wanted


def test_what_is_told_goes_before_what_a_variable_names():
    node = CSR._graph.variables[0]
    assert storage(CSR._graph, {node: "row_sparse"})[Entry(node, 0)] == "row_sparse"
