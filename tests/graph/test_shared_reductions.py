"""Shared reductions, on small graphs: which are tasks of their own, and that values stay."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, dtype
from gnomon.expr.ext.reduce import Reduce
from gnomon.expr.walk import postorder
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.tasks.fuse import fuse
from gnomon.graph.tasks.shared_reductions import cut_reductions
from gnomon.graph.tasks.task import Buffers, express
from gnomon.ops import registry

PICTURES = (2, 4, 3, 3)


def cut(op_name, used, shapes, **params):
    """The tasks of one operator in training, of which the outputs `used` are; and its buffers."""
    op = registry.find(op_name).parse(params)
    node = Node(op, "n", [variable(f"v{k}") for k in range(len(shapes))])
    entries = [Entry(node, k) for k in range(len(node.entries()))]
    known = infer.shapes(
        Graph(entries), {e.node: s for e, s in zip(node.inputs, shapes, strict=True)}
    )
    buffers = Buffers(known, dict.fromkeys(known, dtype.float32))
    wanted = {entries[k] for k in used}
    assert all(buffers[e].shape for e in wanted)  # somebody reads them
    found = express([node], buffers, wanted, lambda n: {"train": True})
    return cut_reductions(found, buffers), buffers, wanted


def reduced(task):
    """How many reductions a task has."""
    return sum(isinstance(n, Reduce) for n in postorder(list(task.values.values())))


def made(tasks):
    return [[e.index for e in t.made] for t in tasks]


NORM = [PICTURES, *[(4,)] * 4]


@pytest.mark.parametrize("axis", [1, 3])
def test_statistics_come_before_what_they_normalize(axis):
    shapes = [PICTURES, *[(PICTURES[axis],)] * 4]
    found, _, _ = cut("BatchNorm", (0, 1, 2), shapes, axis=axis, fix_gamma=False)
    assert made(found) == [[1, 2], [0]]
    assert [reduced(t) for t in found] == [2, 0]
    assert set(found[0].made) <= set(found[1].reads)


def test_what_nobody_else_wants_lies_between():
    found, buffers, _ = cut("BatchNorm", (0, 1), NORM, fix_gamma=False)
    assert [reduced(t) for t in found] == [2, 0]
    mean, spread = found[0].made
    assert mean.index == 1 and repr(spread) == "n:reduce"
    assert buffers[spread].shape == (4,)


def test_a_task_of_one_value_stays_whole():
    found, _, _ = cut("BatchNorm", (0,), NORM, fix_gamma=False)
    assert made(found) == [[0]] and reduced(found[0]) == 2


def test_a_row_is_normalized_where_it_is_read():
    shapes = [(4, 6), (6,), (6,)]
    assert made(cut("LayerNorm", (0,), shapes)[0]) == [[0]]
    found, _, _ = cut("LayerNorm", (0, 1, 2), shapes)
    assert made(found) == [[1, 2], [0]] and [reduced(t) for t in found] == [2, 0]


def test_what_does_not_share_a_reduction_stays():
    whole = cut("BatchNorm", (0, 1, 2), NORM, use_global_stats=True)[0]
    assert made(cut_reductions(whole, Buffers({}, {}))) == made(whole)


def test_what_is_left_goes_into_its_reader():
    data = variable("data")
    names = "gamma", "beta", "mean", "var"
    norm = registry.find("BatchNorm").parse({})
    node = Node(norm, "bn", [data, *map(variable, names)])
    out = Entry(Node(registry.find("relu").parse({}), "act", [Entry(node, 0)]), 0)
    shapes = {v: PICTURES if v.name == "data" else (4,) for v in Graph([out]).variables}
    known = infer.shapes(Graph([out]), shapes)
    buffers = Buffers(known, dict.fromkeys(known, dtype.float32))
    wanted = {out, Entry(node, 1), Entry(node, 2)}
    tasks = express(Graph([out]).topo, buffers, wanted | {Entry(node, 0)}, lambda n: {"train": 1})
    found = fuse(cut_reductions(tasks, buffers), buffers, wanted)
    assert [t.name for t in found] == ["bn", "bn+act"]


def passed(net, shape, request):
    """Outputs, gradients and states of a step."""
    bound = net.simple_bind(mx.cpu(), request, x=shape)
    rng = np.random.default_rng(3)
    for array in (*bound.arg_arrays, *bound.aux_arrays, *bound.grad_arrays):
        array[:] = rng.random(array.shape) + 0.1
    for _ in range(2):
        bound.forward(is_train=True)
        bound.backward([mx.nd.array(rng.random(o.shape)) for o in bound.outputs])
    arrays = [*bound.outputs, *bound.grad_arrays, *bound.aux_arrays]
    return [a.asnumpy() for a in arrays]


NORMS = {
    "batch": lambda x: mx.sym.BatchNorm(x, fix_gamma=False, name="n"),
    "batch, fixed": lambda x: mx.sym.BatchNorm(x, name="n"),
    "batch, last axis": lambda x: mx.sym.BatchNorm(x, axis=-1, output_mean_var=True, name="n"),
    "batch, known": lambda x: mx.sym.BatchNorm(x, use_global_stats=True, fix_gamma=False, name="n"),
    "layer": lambda x: mx.sym.LayerNorm(x, name="n"),
    "layer, first axis": lambda x: mx.sym.LayerNorm(x, axis=0, output_mean_var=True, name="n"),
    "group": lambda x: mx.sym.GroupNorm(x, num_groups=2, name="n"),
    "instance": lambda x: mx.sym.InstanceNorm(x, name="n"),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (1, 2, 1, 7), (1, 2, 1, 1), (6, 2, 17)])
@pytest.mark.parametrize("request_", ["write", "add"])
def test_values_stay(norm, shape, request_):
    x = mx.sym.Variable("x")
    net = mx.sym.relu(NORMS[norm](mx.sym.tanh(x))[0])
    with config.using(passes=False):
        expected = passed(net, shape, request_)
    for a, b in zip(passed(net, shape, request_), expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-4)
