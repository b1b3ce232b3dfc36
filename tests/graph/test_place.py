"""Placement: which context each node gets, and where copies stand, on small graphs."""

from gnomon.context import cpu, gpu
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.place import place, with_copies
from gnomon.graph.verify import check
from gnomon.ops import registry

GROUPS = {"one": cpu(1), "two": cpu(2)}


def node(name, op_name, *inputs, group=None, **params):
    attrs = {"__ctx_group__": group} if group else {}
    return Entry(Node(registry.find(op_name).parse(params), name, inputs, attrs))


def placed(graph, groups=GROUPS, given=None):
    found = place(graph, cpu(0), groups, given)
    return {n.name: found[n].device_id for n in graph.topo}


def test_groups_go_on_to_what_reads_them_and_to_what_they_read():
    x, y = variable("x", __ctx_group__="one"), variable("y")
    b = node("b", "exp", node("a", "tanh", x))
    graph = Graph([node("d", "elemwise_add", b, node("c", "exp", y), group="two"), variable("z")])
    expected = {"x": 1, "a": 1, "b": 1, "y": 2, "c": 2, "d": 2, "z": 0}
    assert placed(graph) == expected
    assert placed(graph, {}) == dict.fromkeys(expected, 0)
    assert placed(graph, given={y.node: cpu(5)})["c"] == 5


def test_a_copy_stands_between_contexts_once_for_each():
    x = variable("x", __ctx_group__="one")
    a = node("a", "exp", x)
    graph = Graph([node(n, "tanh", a, group="two") for n in "bc"] + [node("d", "sin", a)])
    found = check(with_copies(graph, place(graph, cpu(0), GROUPS)))
    assert [f"{n.name}({', '.join(map(repr, n.inputs))})" for n in found.topo if n.op] == [
        "a(x)",
        "a_0_copy(a)",
        "b(a_0_copy)",
        "c(a_0_copy)",
        "d(a)",
    ]
    assert found.variables == (x.node,)


def test_one_context_needs_no_copy():
    graph = Graph([node("a", "exp", variable("x"))])
    assert with_copies(graph, place(graph, cpu(0), GROUPS)) is graph


def test_states_stay_where_they_are():
    states = [variable(n) for n in ("x", "gamma", "beta", "mean", "var")]
    graph = Graph([node("bn", "BatchNorm", *states, group="one")])
    given = {e.node: cpu(2) for e in states}
    found = with_copies(graph, place(graph, cpu(0), GROUPS, given))
    names = [repr(e) for e in found.outputs[0].node.inputs]
    assert names == ["x_0_copy", "gamma_0_copy", "beta_0_copy", "mean", "var"]


def test_every_device_has_a_place():
    graph = Graph([node("a", "exp", variable("x"), group="one")])
    assert set(place(graph, gpu(0), {}).values()) == {gpu(0)}
    assert set(place(graph, cpu(0), {"one": gpu(3)}).values()) == {gpu(3)}
