"""Storage of every value of a graph: dense (`default`), `csr` or `row_sparse`.

What an operator gives follows from its parameters and the storages of what it reads: operators
without a rule here give dense arrays. Gradients have storages of their own: those of weights behind
products with a `csr` matrix and look-ups with `sparse_grad` have only the rows that were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gnomon.graph.node import Entry, Graph, Node
from gnomon.ground.tables import entering

DENSE, ROWS, CSR = "default", "row_sparse", "csr"
STORAGE = (DENSE, ROWS, CSR)  # in the order of their numbers in files

Kinds = tuple[str, ...]
Rule = Callable[[Any, Kinds], str | Kinds]  # of the first output, or of each

#: operators that give 0 for 0, whatever their parameters
ZERO_TO_ZERO = """
abs arcsin arcsinh arctan arctanh cbrt ceil degrees expm1 fix floor log1p negative radians relu
rint round sign sin sinh sqrt square tan tanh trunc make_loss BlockGrad _copy
_mul_scalar _div_scalar _scatter_plus_scalar _scatter_minus_scalar _CrossDeviceCopy
""".split()
#: operators on graphs, which are `csr` matrices
GRAPHS = [
    f"_contrib_dgl_{name}"
    for name in (
        "csr_neighbor_uniform_sample",
        "csr_neighbor_non_uniform_sample",
        "subgraph",
        "graph_compact",
        "adjacency",
    )
]
#: operators that give 0 for 0 where their parameters say so
ZERO_SOMETIMES: dict[str, Callable[[Any], bool]] = {
    "_plus_scalar": lambda op: op.scalar == 0,
    "_minus_scalar": lambda op: op.scalar == 0,
    "_equal_scalar": lambda op: op.scalar != 0,
    "_not_equal_scalar": lambda op: op.scalar == 0,
    "_greater_scalar": lambda op: not op.scalar < 0,
    "_greater_equal_scalar": lambda op: not op.scalar <= 0,
    "_lesser_scalar": lambda op: not op.scalar > 0,
    "_lesser_equal_scalar": lambda op: not op.scalar >= 0,
    "clip": lambda op: op.a_min <= 0 <= op.a_max,
}


def storage(graph: Graph, known: Mapping[Node, str]) -> dict[Entry, str]:
    """The storage of each value, given that of the variables in `known`, of others by attribute."""
    found: dict[Entry, str] = {}
    for node in graph.topo:
        kinds = tuple(found[e] for e in node.inputs)
        found.update(dict.fromkeys(node.entries(), DENSE))
        if node.op is None:
            found[Entry(node, 0)] = known.get(node) or attribute(node)
        elif any(kind != DENSE for kind in kinds) or node.op.name == "cast_storage":
            given = _given(node.op, kinds)
            each = (given,) if isinstance(given, str) else given
            found.update(zip(node.entries(), each, strict=False))
    return found


def attribute(node: Node) -> str:
    """The storage that a variable names, `default` where it names none."""
    number = node.attrs.get("__storage_type__", "0")
    return STORAGE[int(number)] if number in ("0", "1", "2") else DENSE


def gradients(graph: Graph, kinds: Mapping[Entry, str]) -> dict[Node, str]:
    """The storage of each variable's gradient, given that of each value.

    A sum is sparse where all that is added up is of one storage.
    """
    came: dict[Entry, set[str]] = {}
    for entry in graph.outputs:
        came.setdefault(entry, set()).add(kinds[entry])
    for node in reversed(graph.topo):
        if node.op is not None:
            out = _sum(came.get(Entry(node, 0), ()))
            ins = tuple(kinds[e] for e in node.inputs)
            for k, entry in enumerate(node.inputs):
                came.setdefault(entry, set()).add(_sent_on(node.op, k, ins, out))
    return {n: _sum(came.get(Entry(n, 0), ())) for n in graph.variables}


def _sum(kinds: Iterable[str]) -> str:
    one = set(kinds)
    return one.pop() if len(one) == 1 else DENSE


def _given(op: Any, kinds: Kinds) -> str | Kinds:
    if op.name in ZERO_TO_ZERO:
        return kinds[0]
    if op.name in ZERO_SOMETIMES:
        return kinds[0] if ZERO_SOMETIMES[op.name](op) else DENSE
    rule = RULES.get(op.name)
    return DENSE if rule is None else rule(op, kinds)


def _sent_on(op: Any, k: int, ins: Kinds, out: str) -> str:
    """The storage of what argument `k` of an operator receives; `out` is what the operator did."""
    if op.sparse_grad and k == 1:
        return ROWS
    if op.name == "dot" and k == 1 and ins[0] == CSR and ins[1] != CSR:
        return DENSE if op.transpose_a or op.transpose_b else ROWS
    if op.name == "_square_sum":
        return ins[0]
    return out if op.name in _PASSED_ON else DENSE


#: operators whose gradient is that of the output, but for a factor
_PASSED_ON = """
elemwise_add elemwise_sub _mul_scalar _div_scalar negative cast_storage _copy _CrossDeviceCopy
""".split()

RULES: dict[str, Rule] = {}
_rule = entering(RULES)


@_rule("cast_storage")
def _cast(op: Any, kinds: Kinds) -> str:
    return str(op.stype)


@_rule(*GRAPHS)
def _parts(op: Any, kinds: Kinds) -> Kinds:
    if kinds[: op.graphs()] != (CSR,) * op.graphs():
        return (DENSE,) * len(op.outputs())
    return tuple(CSR if n.startswith(_MATRICES) else DENSE for n in op.outputs())


_MATRICES = ("edges", "graph", "mapping", "output")


@_rule("zeros_like")
def _alike(op: Any, kinds: Kinds) -> str:
    return kinds[0]


@_rule("_square_sum")
def _squares(op: Any, kinds: Kinds) -> str:
    return ROWS if kinds[0] == ROWS and op.keepdims and op.axis == (1,) else DENSE


@_rule("slice")
def _slice(op: Any, kinds: Kinds) -> str:
    return CSR if kinds[0] == CSR and all(s in (None, 1) for s in op.step or ()) else DENSE


@_rule("take")
def _take(op: Any, kinds: Kinds) -> str:
    return CSR if kinds[0] == CSR and op.axis == 0 else DENSE


@_rule("_sparse_retain")
def _retain(op: Any, kinds: Kinds) -> str:
    return ROWS if kinds[0] == ROWS else DENSE


@_rule("elemwise_add", "elemwise_sub", "_grad_add")
def _both(op: Any, kinds: Kinds) -> str:
    return kinds[0] if kinds[0] == kinds[1] else DENSE


@_rule("elemwise_mul")
def _product(op: Any, kinds: Kinds) -> str:
    sparse = {*kinds} - {DENSE}
    return sparse.pop() if len(sparse) == 1 else DENSE


@_rule("broadcast_mul", "broadcast_div")
def _stretched(op: Any, kinds: Kinds) -> str:
    return CSR if kinds == (CSR, DENSE) else DENSE


@_rule("_scatter_elemwise_div")
def _quotient(op: Any, kinds: Kinds) -> str:
    return ROWS if kinds == (ROWS, DENSE) else DENSE


@_rule("add_n")
def _all_rows(op: Any, kinds: Kinds) -> str:
    return ROWS if {*kinds} == {ROWS} else DENSE


@_rule("Concat")
def _below(op: Any, kinds: Kinds) -> str:
    return CSR if op.dim == 0 and {*kinds} == {CSR} else DENSE


@_rule("dot")
def _dot(op: Any, kinds: Kinds) -> str:
    if op.forward_stype:
        return str(op.forward_stype)
    if kinds[0] == CSR and kinds[1] != CSR:
        return ROWS if op.transpose_a and not op.transpose_b else DENSE
    return CSR if kinds == (DENSE, CSR) and not op.transpose_a else DENSE
