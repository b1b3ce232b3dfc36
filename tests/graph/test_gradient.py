"""The backward graph: what it reads, what it adds up, what it leaves out; values by the oracle."""

import numpy as np
import pytest

from gnomon import dtype
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.graph import gradient, infer, verify
from gnomon.graph.gradient import Gradient
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.ops import registry


def node(name, op_name, *inputs, **params):
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def known(graph, **shapes):
    given = {n: shapes[n.name] for n in graph.variables if n.name in shapes}
    types = dict.fromkeys(graph.variables, dtype.float64)
    return infer.shapes(graph, given), infer.types(graph, types)


def back(outputs, wrt, **shapes):
    graph = Graph(outputs)
    heads = [variable(f"head{k}") for k in range(len(outputs))]
    found = gradient.backward(graph, *known(graph, **shapes), [e.node for e in wrt], heads)
    verify.check(Graph([*found.grads.values()]))
    return found, heads


def ops(found):
    return [n.op.name for n in found.nodes]


def names(entry):
    return [repr(e) for e in entry.node.inputs]


def test_a_chain_runs_backwards():
    x = variable("x")
    y = node("y", "tanh", x)
    z = node("z", "exp", y)
    found, (head,) = back([z], [x], x=(3,))
    assert ops(found) == ["_backward_exp", "_backward_tanh"]
    first, second = found.nodes
    assert first.inputs == (head, z)  # exp's gradient reads its output alone
    assert second.inputs == (Entry(first, 0), y)
    assert found.grads == {x.node: Entry(second, 0)}
    assert found.shapes[Entry(second, 0)] == (3,)


def test_a_gradient_reads_what_it_needs_alone():
    data, weight, bias = map(variable, ["data", "weight", "bias"])
    fc = node("fc", "FullyConnected", data, weight, bias, num_hidden=4)
    found, (head,) = back([fc], [data, weight, bias], data=(2, 3))
    assert set(found.nodes[0].inputs) == {head, data, weight}  # not its output
    found, (head,) = back([fc], [bias], data=(2, 3))
    assert found.nodes[0].inputs == (head,)
    found, (head,) = back([fc], [weight], data=(2, 3))
    assert set(found.nodes[0].inputs) == {head, data}


def test_what_leads_to_no_wanted_variable_is_left_out():
    a, b = variable("a"), variable("b")
    out = node("out", "elemwise_mul", node("left", "exp", a), node("right", "tanh", b))
    found, _ = back([out], [a], a=(2,))
    assert ops(found) == ["_backward_elemwise_mul", "_backward_exp"]
    assert set(found.grads) == {a.node}


def test_shares_are_added_up():
    x = variable("x")
    out = node("out", "elemwise_mul", x, x)
    found, _ = back([out], [x], x=(2,))
    assert ops(found) == ["_backward_elemwise_mul", "add_n"]
    assert names(found.grads[x.node]) == ["out_backward", "out_backward:1"]


def test_many_shares_are_added_up_as_they_come():
    x = variable("x")
    parts = [node(f"p{k}", "exp", x) for k in range(20)]
    found, _ = back(parts, [x], x=(2,))
    sums = [n for n in found.nodes if n.op.name == "add_n"]
    assert [len(n.inputs) for n in sums] == [8, 8, 6]


def test_nothing_flows_through_what_blocks():
    x = variable("x")
    found, _ = back([node("stop", "BlockGrad", node("e", "exp", x))], [x], x=(2,))
    assert found.nodes == ()
    assert found.grads == {}


def test_a_loss_needs_no_head():
    data, label = variable("data"), variable("label")
    out = node("out", "SoftmaxOutput", data, label)
    found, (head,) = back([out], [data], data=(2, 3))
    assert head not in found.nodes[0].inputs
    # also where its output goes nowhere else that has a gradient
    found, _ = back([node("stop", "BlockGrad", out)], [data], data=(2, 3))
    assert set(found.grads) == {data.node}


def test_outputs_without_a_gradient_count_as_zeros():
    x = variable("x")
    parts = Node(registry.find("SliceChannel").parse({"num_outputs": 2, "axis": 0}), "parts", [x])
    found, _ = back([Entry(parts, 1)], [x], x=(4,))
    assert ops(found) == ["_zeros", "_backward_SliceChannel"]


def test_an_output_that_is_a_variable_gets_its_head():
    x = variable("x")
    found, (head,) = back([x], [x], x=(2,))
    assert found.grads == {x.node: head}


def test_a_gradient_names_what_it_reads():
    x = variable("x")
    found, _ = back([node("y", "tanh", x)], [x], x=(3,))
    op = found.nodes[0].op
    assert isinstance(op, Gradient)
    assert op.inputs() == ("output_grad", "output")
    assert op.outputs() == ("output",)
    assert hash(op) == hash(op)


def test_a_hundred_thousand_nodes_are_differentiated():
    entry = x = variable("x")
    relu = registry.find("relu").parse({})
    for k in range(100_000):
        entry = Entry(Node(relu, f"n{k}", [entry]))
    found, _ = back([entry], [x], x=(1,))
    assert len(found.nodes) == 100_000


def run(entries, values):
    """Entries by the oracle, one node after the other."""
    done = dict(values)

    def leaf(array):
        array = np.ascontiguousarray(array)
        kind = dtype.of(array.dtype)
        return Buffer(array.shape, kind, address=array.ctypes.data, owner=array)

    for n in Graph(entries).topo:
        if n.op is not None:
            outputs = n.op.apply([leaf(done[e]) for e in n.inputs], train=True)
            pairs = zip(n.entries(), outputs, strict=True)
            done.update((e, evaluate(v)) for e, v in pairs if v is not None)
    return [done[e] for e in entries]


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_agree_with_differences(seed):
    rng = np.random.default_rng(seed)
    leaves = [variable("a"), variable("b")]
    pool = list(leaves)
    for k in range(8):
        pick = lambda: pool[rng.integers(len(pool))]  # noqa: E731
        kind = rng.choice(["tanh", "sigmoid", "elemwise_add", "elemwise_mul", "elemwise_sub"])
        inputs = [pick(), pick()] if kind.startswith("elem") else [pick()]
        pool.append(node(f"n{k}", kind, *inputs))
    outputs = pool[-2:]
    found, heads = back(outputs, leaves, a=(3,), b=(3,))
    values = {e: rng.standard_normal(3) for e in leaves}
    weights = {h: rng.standard_normal(3) for h in heads}

    def total(at):
        return sum((o * weights[h]).sum() for o, h in zip(run(outputs, at), heads, strict=True))

    for leaf in leaves:
        if leaf.node not in found.grads:
            continue
        (got,) = run([found.grads[leaf.node]], {**values, **weights})
        for k in range(3):
            step = np.zeros(3)
            step[k] = 1e-6
            up, down = ({**values, leaf: values[leaf] + s} for s in (step, -step))
            assert got[k] == pytest.approx((total(up) - total(down)) / 2e-6, rel=1e-5, abs=1e-7)
