"""Inference: both directions, partial knowledge, errors that name what is known."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, dtype
from gnomon.base import DTypeError, ShapeError
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.ops import registry


def node(name, op_name, *inputs, **params):
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def layer():
    names = ("data", "fc_weight", "fc_bias")
    data, weight, bias = map(variable, names)
    return data, weight, bias, node("fc", "FullyConnected", data, weight, bias, num_hidden=4)


def test_forwards():
    data, weight, bias, fc = layer()
    known = infer.shapes(Graph([fc]), {data.node: (2, 3)})
    assert [known[e] for e in (data, weight, bias, fc)] == [(2, 3), (4, 3), (4,), (2, 4)]


def test_backwards():
    a, b = variable("a"), variable("b")
    total = node("s", "elemwise_add", a, b)
    known = infer.shapes(Graph([node("t", "relu", total)]), {b.node: (5, 6)})
    assert known[a] == known[total] == (5, 6)


def test_what_is_partly_known_is_completed():
    a, b = variable("a"), variable("b")
    graph = Graph([node("s", "elemwise_add", a, b)])
    known = infer.shapes(graph, {a.node: (-1, 3), b.node: (2, -1)})
    assert known[a] == known[b] == known[graph.outputs[0]] == (2, 3)


def test_nothing_is_known_of_nothing():
    data, _, _, fc = layer()
    known = infer.shapes(Graph([fc]))
    assert known[data] is None
    assert not infer.complete(known[fc])


def test_attributes_say_shapes_and_dtypes_and_what_is_given_wins():
    x = variable("x", __shape__="(2, 3)", __dtype__="2")
    graph = Graph([node("r", "relu", x)])
    assert infer.shapes(graph)[graph.outputs[0]] == (2, 3)
    assert infer.types(graph)[graph.outputs[0]] is dtype.float16
    assert infer.shapes(graph, {x.node: (4, 3)})[graph.outputs[0]] == (4, 3)
    assert infer.types(graph, {x.node: dtype.float64})[graph.outputs[0]] is dtype.float64


def test_a_shape_that_is_given_in_part_is_completed_by_the_variables_own():
    x = mx.sym.Variable("x", shape=(0, 3))
    net = mx.sym.elemwise_add(x, mx.sym.Variable("y"))
    assert net.infer_shape(x=(0, 0), y=(4, 0))[0] == [(4, 3)] * 2
    assert net.infer_shape(x=(4, 0))[0] == [(4, 3)] * 2
    assert net.infer_shape_partial(x=(0, 2))[0] == [(0, 2)] * 2


@pytest.mark.parametrize("text", ["(2,", "x", "(2.5, 'a')", "{}"])
def test_a_bad_shape_attribute_is_refused(text):
    x = variable("x", __shape__=text)
    with pytest.raises(ShapeError, match="variable x: argument '__shape__'"):
        infer.shapes(Graph([x]))


def test_a_contradiction_names_node_inputs_and_shapes():
    data, weight, _, fc = layer()
    with pytest.raises(ShapeError) as caught:
        infer.shapes(Graph([fc]), {data.node: (2, 3), weight.node: (4, 7)})
    text = str(caught.value)
    for part in ("node 'fc'", "FullyConnected", "weight", "(4, 7)", "(4, 3)", "data", "(2, 3)"):
        assert part in text


def test_a_contradiction_of_dtypes_names_node_inputs_and_dtypes():
    a, b = variable("a"), variable("b")
    graph = Graph([node("s", "elemwise_add", a, b)])
    with pytest.raises(DTypeError) as caught:
        infer.types(graph, {a.node: dtype.float32, b.node: dtype.float16})
    for part in ("node 's'", "elemwise_add", "float32", "float16", "rhs (b)"):
        assert part in str(caught.value)


def test_a_state_of_another_shape_is_refused():
    x, gamma, beta, mean, var = map(variable, ["x", "gamma", "beta", "mean", "var"])
    graph = Graph([node("bn", "BatchNorm", x, gamma, beta, mean, var)])
    assert infer.shapes(graph, {x.node: (2, 3, 4)})[mean] == (3,)
    with pytest.raises(ShapeError, match="node 'bn'"):
        infer.shapes(graph, {x.node: (2, 3, 4), mean.node: (5,)})


def test_an_entry_read_twice_learns_from_both_places():
    x = variable("x")
    graph = Graph([node("s", "dot", x, x)])
    known = infer.shapes(graph, {x.node: (3, 3)})
    assert known[graph.outputs[0]] == (3, 3)


def test_a_long_chain_is_inferred_backwards():
    entry = first = variable("x")
    for k in range(20_000):
        entry = node(f"n{k}", "relu", entry)
    other = variable("y")
    graph = Graph([node("s", "elemwise_add", entry, other)])
    assert infer.shapes(graph, {other.node: (2, 3)})[first] == (2, 3)


@pytest.mark.parametrize(
    ("op_name", "params", "output", "inputs"),
    [
        ("expand_dims", {"axis": 1}, (2, 1, 3), [(2, 3)]),
        ("expand_dims", {"axis": -1}, (2, 3, 1), [(2, 3)]),
        ("_linalg_potrf", {}, (2, 3, 3), [(2, 3, 3)]),
        ("_linalg_potri", {}, (3, 3), [(3, 3)]),
        ("_linalg_trmm", {}, (4, 2, 3), [(4, 2, 2), (4, 2, 3)]),
        ("_linalg_trsm", {"rightside": True}, (2, 3), [(3, 3), (2, 3)]),
        ("SliceChannel", {"num_outputs": 3}, (2, 4), [(2, 12)]),
    ],
)
def test_inputs_that_follow_from_the_output(op_name, params, output, inputs):
    names = [variable(f"x{k}") for k in range(len(inputs))]
    other = variable("y")
    made = node("made", op_name, *names, **params)
    known = infer.shapes(Graph([node("s", "elemwise_add", made, other)]), {other.node: output})
    assert [known[x] for x in names] == inputs


def test_an_output_that_parameters_tell():
    made = node("made", "scatter_nd", variable("data"), variable("indices"), shape=(2, 3))
    assert infer.shapes(Graph([made]), {})[made] == (2, 3)


def test_a_rule_is_asked_once_of_the_same_shapes(monkeypatch):
    """Graphs, gradients and calls ask the same; what 0 says is part of the question."""
    data, *_, fc = layer()
    asked, rule = [], type(fc.node.op).shapes
    monkeypatch.setattr(type(fc.node.op), "shapes", lambda op, s: (asked.append(op), rule(op, s)))
    first = infer.shapes(Graph([fc]), {data.node: (17, 23)})
    assert asked
    asked.clear()
    assert infer.shapes(Graph([fc]), {data.node: (17, 23)}) == first
    assert not asked
    zeros = node("z", "_zeros", shape=(0, 2))
    for is_size, wanted in ((False, (-1, 2)), (True, (0, 2)), (False, (-1, 2))):
        with config.using(np_shape=is_size):
            assert infer.shapes(Graph([zeros]))[zeros] == wanted


@pytest.mark.parametrize(
    ("params", "data", "label", "expected"),
    [
        ({}, (2, 3), (0,), (2,)),
        ({}, (2, 3, 4), (2, 0), (2, 3)),
        ({"preserve_shape": True}, (2, 3, 4), (0, 0), (2, 3)),
        ({"multi_output": True}, (2, 3, 4, 5), None, (2, 20)),
    ],
)
def test_labels_that_are_partly_known_are_completed(params, data, label, expected):
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("data"), mx.sym.Variable("label"), **params)
    given = {"data": data} if label is None else {"data": data, "label": label}
    assert net.infer_shape(**given)[0] == [data, expected]


def test_labels_of_cross_entropy_have_the_datas_type():
    net = mx.sym.softmax_cross_entropy(mx.sym.Variable("data"), mx.sym.Variable("label"))
    assert net.infer_type(data="float16")[0] == [np.float16] * 2
    assert net.infer_type(data="float16", label="int32")[0] == [np.float16, np.int32]
