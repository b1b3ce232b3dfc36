"""The passes that rewrite graphs, on small ones: the lines before and after, and equal values."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, dtype
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.passes.constants import SMALL, constants
from gnomon.graph.passes.cse import cse
from gnomon.graph.passes.fold_norm import fold_norm
from gnomon.graph.passes.pipeline import PIPELINE, rewritten
from gnomon.graph.passes.simplify import simplify
from gnomon.graph.tasks.dce import alive
from gnomon.graph.tasks.task import Buffers, express, used_entries
from gnomon.graph.typed_graph import Purpose, TypedGraph
from gnomon.graph.verify import check
from gnomon.ops import registry
from gnomon.runtime.libraries import tile

PREDICT, TRAIN = Purpose(False, False), Purpose(True, True)


def node(name, op_name, *inputs, **params):
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def typed(*outputs, kind=dtype.float32, **shapes):
    graph = Graph(outputs)
    known = infer.shapes(graph, {n: shapes[n.name] for n in graph.variables})
    return TypedGraph(graph, known, infer.types(graph, dict.fromkeys(graph.variables, kind)))


def lines(found):
    """The operators: name and what they read; every entry is known by shape and dtype."""
    check(found.graph)
    for n in found.graph.topo:
        for entry in n.entries():
            assert found.shapes[entry] is not None
            assert found.types[entry] is not None
    return [f"{n.name}({', '.join(map(repr, n.inputs))})" for n in found.graph.topo if n.op]


X = variable("x")


@pytest.mark.parametrize(
    ("op_name", "params"),
    [
        ("_copy", {}),
        ("_mul_scalar", {"scalar": 1}),
        ("_div_scalar", {"scalar": 1}),
        ("_power_scalar", {"scalar": 1}),
        ("_minus_scalar", {"scalar": 0}),
        ("Cast", {"dtype": "float32"}),
        ("Reshape", {"shape": (2, 3)}),
        ("Flatten", {}),
        ("add_n", {"num_args": 1}),
        ("Concat", {"num_args": 1}),
    ],
)
def test_operators_that_give_what_they_read_go(op_name, params):
    before = typed(node("b", "exp", node("a", op_name, X, **params)), x=(2, 3))
    for purpose in (PREDICT, TRAIN):
        assert lines(simplify(before, purpose)) == ["b(x)"]


@pytest.mark.parametrize(
    ("op_name", "params"),
    [
        ("_plus_scalar", {"scalar": 0}),  # -0 becomes 0
        ("_mul_scalar", {"scalar": 2}),
        ("Cast", {"dtype": "float16"}),
        ("Reshape", {"shape": (3, 2)}),
        ("transpose", {}),
    ],
)
def test_operators_that_do_something_stay(op_name, params):
    before = typed(node("a", op_name, X, **params), x=(2, 3))
    assert simplify(before, PREDICT) is before


@pytest.mark.parametrize("op_name", ["BlockGrad", "make_loss", "MakeLoss", "Dropout"])
def test_what_matters_in_training_goes_in_prediction(op_name):
    before = typed(node("b", "exp", node("a", op_name, X)), x=(2, 3))
    assert lines(simplify(before, PREDICT)) == ["b(x)"]
    assert simplify(before, TRAIN) is before
    always = typed(node("a", "Dropout", X, mode="always"), x=(2, 3))
    assert simplify(always, PREDICT) is always


def test_pairs_cancel():
    before = typed(
        node("t2", "transpose", node("t1", "transpose", X, axes=(1, 2, 0)), axes=(2, 0, 1)),
        node("u2", "transpose", node("u1", "transpose", X), axes=(1, 0, 2)),
        node("n2", "negative", node("n1", "negative", X)),
        x=(2, 3, 4),
    )
    found = simplify(before, PREDICT)
    assert found.graph.outputs[0] == X == found.graph.outputs[2]
    assert lines(found) == ["u2(x)"]
    assert found.graph.outputs[1].node.op.axes == (1, 2, 0)
    assert found.shapes[found.graph.outputs[1]] == (3, 4, 2)


def test_a_chain_of_nothing_is_a_variable():
    entry = X
    for k in range(2000):
        entry = node(f"c{k}", "_copy", entry)
    assert simplify(typed(entry, x=(2,)), TRAIN).graph.outputs == (X,)


def test_equal_operators_are_one():
    a, b = node("a", "exp", X), node("b", "exp", X)
    before = typed(node("s", "elemwise_add", node("c", "tanh", a), node("d", "tanh", b)), x=(2,))
    assert lines(cse(before, TRAIN)) == ["a(x)", "c(a)", "s(c, c)"]


def test_operators_that_draw_or_differ_are_not_one():
    drops = [node(f"d{k}", "Dropout", X, mode="always") for k in range(2)]
    clips = [node(f"c{k}", "clip", X, a_min=0, a_max=k + 1) for k in range(2)]
    before = typed(*drops, *clips, x=(2,))
    assert cse(before, TRAIN) is before


def test_each_of_equal_losses_counts():
    """Merged into one, equal losses would give the gradient of one alone."""
    before = typed(node("a", "MakeLoss", X), node("b", "MakeLoss", X), x=(2,))
    assert cse(before, TRAIN) is before
    assert lines(cse(before, PREDICT)) == ["a(x)"]


def test_constants_are_computed_once():
    one = node("one", "_ones", shape=(3, 4))
    row = node("row", "sum", node("e", "exp", one), axis=0)
    found = constants(typed(node("y", "broadcast_add", X, row), x=(2, 4)))
    assert lines(found) == ["row_constant()", "y(x, row_constant)"]
    constant = found.graph.topo[1].op.buffer.numpy()
    np.testing.assert_allclose(constant, 3 * np.exp(np.ones(4)), rtol=1e-6)


def test_maps_of_constants_are_computed_where_they_are_read_unless_small():
    many = SMALL // 4 + 1
    for size, expected in ((many - 1, ["e_constant()"]), (many, ["zero()", "e(zero)"])):
        zero = node("zero", "_zeros", shape=(size,))
        found = constants(typed(node("y", "elemwise_add", X, node("e", "exp", zero)), x=(size,)))
        assert lines(found)[:-1] == expected


def test_a_constant_larger_than_what_it_is_made_of_is_not_kept():
    a = node("a", "_arange", start=0, stop=1000)
    outer = node("o", "dot", node("c", "Reshape", a, shape=(1000, 1)),
                 node("r", "Reshape", a, shape=(1, 1000)))  # fmt: skip
    found = constants(typed(node("y", "elemwise_add", X, outer), x=(1000, 1000)))
    assert "o" in [n.name for n in found.graph.topo]


def test_what_is_random_or_depends_on_an_input_is_no_constant():
    drop = node("d", "Dropout", node("one", "_ones", shape=(4,)), mode="always")
    before = typed(drop, node("y", "exp", X), x=(4,))
    assert constants(before) is before


def test_tasks_that_nobody_reads_are_left_out():
    zero = node("z", "zeros_like", node("b", "sum", node("a", "exp", X), axis=1))
    side = node("s", "tanh", X)
    found = typed(zero, side, x=(3, 4))
    buffers = Buffers(found.shapes, found.types)
    used = used_entries(found.graph.topo, [zero])
    tasks = express(found.graph.topo, buffers, used, lambda n: {"train": False})
    assert [t.name for t in tasks] == ["a", "b", "z"]
    assert [t.name for t in alive(tasks, {zero})] == ["z"]


def everything():
    """A network in which every pass finds something, and its arguments."""
    sym = mx.sym
    x = sym.Variable("x")
    h = sym.identity(sym.Dropout(sym.FullyConnected(x, num_hidden=4, name="fc"), p=0.5))
    twice = sym.exp(h) + sym.exp(h) * 1
    row = sym.sum(sym.arange(12).reshape((3, 4)), axis=0)
    h = sym.broadcast_add(sym.transpose(sym.transpose(twice)), row) + sym.zeros_like(h)
    return sym.Group([sym.BlockGrad(h), sym.sum(h, axis=1)])


@pytest.mark.parametrize("train", [False, True])
def test_all_passes_together_keep_values_and_gradients(train):
    net, found = everything(), []
    for passes in (False, True):
        with config.using(passes=passes):
            mx.random.seed(3)
            bound = net.simple_bind(mx.cpu(), x=(2, 3), grad_req="write" if train else "null")
            rng = np.random.default_rng(0)
            for array in bound.arg_arrays:
                array[:] = rng.standard_normal(array.shape)
            bound.forward(is_train=train)
            if train:
                bound.backward([mx.nd.ones(o.shape) for o in bound.outputs])
        found.append([a.asnumpy() for a in (*bound.outputs, *bound.grad_arrays) if a is not None])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)


def test_each_pass_shows_before_and_after(capsys):
    before = typed(node("b", "exp", node("a", "_copy", X)), x=(2,))
    with config.using(debug=6):
        rewritten(before, PREDICT)
    text = capsys.readouterr().err
    assert "simplify, before:\n" in text
    assert "_copy(x)" in text
    assert "simplify, after:\n" in text
    assert "exp(x)" in text
    assert "channels last" not in text


def normalized(op_name="Convolution", axis=1, **params):
    """A layer and its normalization, and their shapes."""
    sizes = {"num_filter": 4, "kernel": (3, 3)} if op_name == "Convolution" else {"num_hidden": 4}
    weight, gamma, beta, mean, var = map(variable, ["w", "gamma", "beta", "mean", "var"])
    layer = node("layer", op_name, X, weight, no_bias=True, **sizes)
    norm = node("bn", "BatchNorm", layer, gamma, beta, mean, var, axis=axis, **params)
    w, x = ((4, 3, 3, 3), (2, 3, 5, 5)) if op_name == "Convolution" else ((4, 3), (2, 3))
    channels = dict.fromkeys(("gamma", "beta", "mean", "var"), (4,))
    return layer, norm, {"x": x, "w": w, **channels}


@pytest.mark.parametrize("op_name", ["Convolution", "FullyConnected"])
def test_a_normalization_becomes_part_of_the_layer_before(op_name):
    _, norm, shapes = normalized(op_name)
    found = fold_norm(typed(norm, **shapes), PREDICT)
    assert lines(found) == [
        "bn_folded(w, gamma, beta, mean, var)",
        "layer+bn(x, bn_folded, bn_folded:1)",
    ]
    assert found.shapes[found.graph.outputs[0]] == found.shapes[norm]
    known = typed(norm, **shapes)
    for purpose in (TRAIN, Purpose(True, False), Purpose(False, True)):
        assert fold_norm(known, purpose) is known


def test_normalizations_that_cannot_be_folded_stay():
    layer, norm, shapes = normalized()
    both = typed(norm, layer, **shapes)
    assert fold_norm(both, PREDICT) is both  # somebody else reads the layer's output
    _, norm, shapes = normalized(output_mean_var=True)
    shown = typed(norm, Entry(norm.node, 1), **shapes)
    assert fold_norm(shown, PREDICT) is shown
    other = typed(
        normalized(axis=2)[1], **{**shapes, **dict.fromkeys(("gamma", "beta", "mean", "var"), (3,))}
    )
    assert fold_norm(other, PREDICT) is other
    alone = typed(node("n", "BatchNorm", X, *norm.node.inputs[1:]), **{**shapes, "x": (2, 4)})
    assert fold_norm(alone, PREDICT) is alone
    statistics = typed(normalized(use_global_stats=True)[1], **shapes)
    assert len(lines(fold_norm(statistics, Purpose(True, False)))) == 2


def test_recurrent_weights_are_packed_apart():
    told = {"mode": "lstm", "state_size": 7, "num_layers": 1}
    layers = node("rnn", "RNN", X, *map(variable, ("w", "h", "c")), **told)
    sizes = {"w": (4 * 7 * (3 + 7 + 2),), "h": (1, 40, 7), "c": (1, 40, 7)}
    known, pack_weights = typed(layers, x=(2, 40, 3), **sizes), dict(PIPELINE)["packed weights"]
    if tile.packs(dtype.float32):
        assert lines(pack_weights(known, PREDICT)) == [
            "rnn_w_in0(w)",
            "rnn_w_hid0(w)",
            "rnn(x, w, h, c, rnn_w_in0, rnn_w_hid0)",
        ]
    assert pack_weights(known, TRAIN) is known
    few = typed(layers, x=(2, 1, 3), **{**sizes, "h": (1, 1, 7), "c": (1, 1, 7)})
    assert pack_weights(few, PREDICT) is few
