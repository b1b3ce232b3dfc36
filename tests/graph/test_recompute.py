"""Recompute for memory: what is dropped, what is kept, and that values stay what they were."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.dtype import float32
from gnomon.graph import infer
from gnomon.graph.gradient import backward
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.recompute import recomputed
from gnomon.ops import registry


def node(name, op, *inputs, attrs=None, **params):
    return Entry(Node(registry.find(op).parse(params), name, inputs, attrs))


def differentiated(output, everywhere=False, shape=(64, 64)):
    """The nodes of the backward pass, as text: what each reads."""
    graph = Graph([output])
    known = dict.fromkeys(graph.variables, shape)
    shapes, types = infer.shapes(graph, known), infer.types(graph, dict.fromkeys(known, float32))
    head = variable("head")
    shapes[head], types[head] = shapes[output], float32
    found = backward(graph, shapes, types, graph.arguments, [head])
    again = recomputed(graph, found, shapes, types, everywhere)
    assert all(e in again.shapes for n in again.nodes for e in n.entries())
    assert again.grads.keys() == found.grads.keys()
    return [f"{n.name}: {', '.join(map(repr, n.inputs))}" for n in again.nodes]


FORCED = {"__force_mirroring__": "True"}


def test_nothing_is_dropped_unasked():
    assert differentiated(node("b", "tanh", node("a", "exp", variable("x")))) == [
        "b_backward: head, b",
        "a_backward: b_backward, a",
    ]


def test_what_asks_for_it_is_made_again_before_it_is_read():
    a = node("a", "exp", variable("x"), attrs=FORCED)
    b = node("b", "tanh", a, attrs=FORCED)
    assert differentiated(node("c", "sqrt", b)) == [
        "c_backward: head, c",
        "a_again: x",
        "b_again: a_again",
        "b_backward: c_backward, b_again",
        "a_backward: b_backward, a_again",
    ]


def test_small_values_outputs_and_draws_are_kept():
    drop = node("d", "Dropout", variable("x"), attrs=FORCED, p=0.5)
    assert differentiated(node("b", "tanh", drop, attrs=FORCED))[0] == "b_backward: head, b"
    assert not any("again" in n for n in differentiated(node("b", "tanh", drop)))
    a = node("a", "exp", variable("x"), attrs=FORCED)
    assert not any("again" in n for n in differentiated(node("b", "tanh", a), shape=(3,)))


def test_a_chain_is_cut_into_stretches_of_equal_weight():
    x = variable("x")
    for k in range(36):
        x = node(f"n{k}", "tanh", x)
    made = [n.split(":")[0] for n in differentiated(x, everywhere=True)]
    again = [n for n in made if n.endswith("_again")]
    assert 20 < len(again) < 34
    assert made.index("n0_again") > made.index("n20_backward")


def test_nothing_is_dropped_where_gradients_read_variables_alone():
    product = node("p", "dot", variable("x"), variable("y"))
    assert differentiated(product, everywhere=True) == ["p_backward: head, x, y"]


def test_a_long_chain():
    x = variable("x")
    for k in range(30_000):
        x = node(f"n{k}", "tanh", x)
    assert 57_000 < len(differentiated(x, everywhere=True)) < 60_000


def net(depth=12):
    x = mx.sym.var("data")
    for k in range(depth):
        y = mx.sym.FullyConnected(x, name=f"fc{k}", num_hidden=32)
        y = mx.sym.Activation(mx.sym.BatchNorm(y, name=f"bn{k}", fix_gamma=False), act_type="tanh")
        x = x + mx.sym.Dropout(y, p=0.3)
    return mx.sym.LinearRegressionOutput(x, mx.sym.zeros_like(mx.sym.BlockGrad(x)))


@pytest.mark.parametrize("way", ["everywhere", "asked"])
def test_memory_falls_and_values_stay(way):
    found, sizes = [], []
    for mirror in (False, True):
        mx.random.seed(3)
        attrs = {"force_mirroring": "True"} if mirror and way == "asked" else {}
        with config.using(backward_do_mirror=mirror and way == "everywhere"):
            with mx.AttrScope(**attrs):
                symbol = net()
            bound = symbol.simple_bind(mx.cpu(), data=(256, 32))
            rng = np.random.default_rng(0)
            for array in bound.arg_dict.values():
                array[:] = rng.normal(size=array.shape)
            for _ in range(2):
                bound.forward(is_train=True)
                bound.backward()
            arrays = [*bound.outputs, *bound.grad_dict.values(), *bound.aux_dict.values()]
            found.append([a.asnumpy() for a in arrays])
            sizes.append(_planned(bound))
    for plain, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-5, atol=1e-6)
    assert sizes[1] < 0.7 * sizes[0]


def _planned(bound):
    """MB of the memory plan."""
    (line,) = [x for x in bound.debug_str().splitlines() if x.startswith("Total") and "MB" in x]
    return float(line.split()[1])
