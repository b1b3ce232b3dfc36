"""Graphs: order, variables, copies."""

from gnomon.graph.node import Entry, Graph, Node, rebuilt, variable
from gnomon.ops import registry


def op(name, **params):
    return registry.find(name).parse(params)


def add(a, b, name):
    return Entry(Node(op("elemwise_add"), name, [a, b]))


def test_operands_come_first_and_each_node_once():
    x, y = variable("x"), variable("y")
    s = add(x, y, "s")
    out = add(s, add(s, x, "t"), "out")
    assert [n.name for n in Graph([out, s]).topo] == ["x", "y", "s", "t", "out"]


def test_states_are_no_arguments():
    x, gamma, beta, mean, var = map(variable, ["x", "gamma", "beta", "mean", "var"])
    bn = Node(op("BatchNorm"), "bn", [x, gamma, beta, mean, var])
    graph = Graph([Entry(bn)])
    assert [n.name for n in graph.arguments] == ["x", "gamma", "beta"]
    assert [n.name for n in graph.auxiliary] == ["mean", "var"]


def test_consumers_count_each_use():
    x = variable("x")
    twice = add(x, x, "twice")
    assert Graph([twice]).consumers == {x: [twice.node, twice.node]}


def test_a_copy_has_its_own_nodes_and_takes_replacements():
    x, y, new = variable("x"), variable("y"), variable("new")
    graph = Graph([add(x, y, "s")])
    copy = rebuilt(graph, {x.node: new})
    assert [n.name for n in copy.topo] == ["new", "y", "s"]
    assert copy.topo[0] is new.node
    assert copy.outputs[0].node is not graph.outputs[0].node
    copy.outputs[0].node.attrs["__a__"] = "1"
    assert graph.outputs[0].node.attrs == {}


def test_a_chain_of_a_hundred_thousand_nodes_is_walked():
    entry = x = variable("x")
    relu = op("relu")
    for k in range(100_000):
        entry = Entry(Node(relu, f"n{k}", [entry]))
    graph = Graph([entry])
    assert len(graph.topo) == 100_001
    assert len(rebuilt(graph, {}).topo) == 100_001
    assert graph.consumers[x][0].name == "n0"
