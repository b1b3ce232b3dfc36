"""Channels last: which operators go along, and where transposes stand, on small graphs."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.dtype import float32
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.passes.channels_last import channels_last
from gnomon.graph.typed_graph import Purpose, TypedGraph
from gnomon.ops import registry
from gnomon.ops.nn.convolution import WeightFirst

TRAIN = Purpose(True, True)


def node(name, op_name, *inputs, **params):
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def conv(name, data, filters=4, **params):
    sizes = {"kernel": (3, 3), "pad": (1, 1), "num_filter": filters, "no_bias": True, **params}
    return node(name, "Convolution", data, variable(f"{name}_weight"), **sizes)


def typed(*outputs, dtype=float32, purpose=TRAIN, **shapes):
    """The pass's result, and the lines of its operators: name, operator, what they read."""
    graph = Graph(outputs)
    known = infer.shapes(graph, {n: shapes[n.name] for n in graph.variables if n.name in shapes})
    kinds = infer.types(graph, dict.fromkeys(graph.variables, dtype))
    found = channels_last(TypedGraph(graph, known, kinds), purpose)
    lines = [
        f"{n.name}({', '.join(map(repr, n.inputs))})" for n in found.graph.topo if n.op is not None
    ]
    return found, lines


def test_a_convolution_stands_between_two_transposes():
    found, lines = typed(conv("c", variable("x")), x=(2, 3, 5, 6))
    assert lines == [
        "x_channels_last(x)",
        "c(x_channels_last, c_weight)",
        "c_channels_first(c)",
    ]
    made = found.graph.outputs[0]
    assert found.shapes[made] == (2, 4, 5, 6)
    assert found.shapes[made.node.inputs[0]] == (2, 5, 6, 4)
    assert isinstance(made.node.inputs[0].node.op, WeightFirst)


def test_what_lies_between_goes_along():
    x = conv("c", variable("x"))
    states = [variable(f"bn_{n}") for n in ("gamma", "beta", "moving_mean", "moving_var")]
    y = node("r", "Activation", node("bn", "BatchNorm", x, *states), act_type="relu")
    y = node("p", "Pooling", node("sum", "_plus", y, x), kernel=(2, 2), stride=(2, 2))
    y = node("join", "Concat", y, conv("d", y), num_args=2)
    found, lines = typed(node("flat", "Flatten", y), x=(2, 3, 4, 6))
    assert [line.split("(")[0] for line in lines if "channels" in line.split("(")[0]] == [
        "x_channels_last",
        "join_channels_first",
    ]
    ops = {n.name: n.op for n in found.graph.topo}
    assert ops["bn"].axis == 3
    assert ops["p"].layout == "NHWC"
    assert ops["join"].dim == 3
    shapes = {n.name: found.shapes[Entry(n, 0)] for n in found.graph.topo}
    assert shapes["join"] == (2, 2, 3, 8)
    assert shapes["flat"] == (2, 48)
    assert shapes["bn_gamma"] == (4,)


def test_what_cannot_go_along_gets_its_own_layout_once():
    x = conv("c", variable("x"))
    both = (
        node("l", "LRN", x, nsize=3),
        node("u", "UpSampling", x, scale=2, sample_type="nearest", num_args=1),
    )
    _, lines = typed(*both, x=(2, 3, 5, 5))
    assert sum("c_channels_first" in line.split("(")[0] for line in lines) == 1
    assert "l(c_channels_first)" in lines


@pytest.mark.parametrize(
    ("output", "shape", "dtype"),
    [
        (node("f", "FullyConnected", variable("x"), variable("w"), num_hidden=2, no_bias=True),
         (2, 3), float32),
        (conv("c", variable("x"), kernel=(3,), pad=(1,)), (2, 3, 5), float32),
        (conv("c", variable("x"), num_group=2), (2, 4, 5, 5), float32),
    ],
)  # fmt: skip
def test_graphs_without_such_convolutions_stay(output, shape, dtype):
    found, _ = typed(output, x=shape, dtype=dtype)
    assert found.graph.outputs == (output,)


def net(**params):
    x = mx.sym.Variable("data")
    x = mx.sym.Convolution(x, name="c1", kernel=(3, 3), pad=(1, 1), num_filter=20)
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="bn", fix_gamma=False), act_type="tanh")
    y = mx.sym.Pooling(x, kernel=(3, 2), stride=(2, 2), **params)
    y = mx.sym.Convolution(y, name="c2", kernel=(1, 3), stride=(1, 2), num_filter=5, no_bias=True)
    return mx.sym.Group([mx.sym.Flatten(y), mx.sym.mean(x, axis=1)])


@pytest.mark.parametrize("channels", [1, 3, 16])
@pytest.mark.parametrize("params", [{"pool_type": "max"}, {"pool_type": "avg", "pad": (1, 1)}])
@pytest.mark.parametrize("request_", ["write", "add"])
def test_values_and_gradients_stay(channels, params, request_):
    found, symbol = [], net(**params)
    for passes in (True, False):
        with config.using(passes=passes):
            e = symbol.simple_bind(mx.cpu(), grad_req=request_, data=(3, channels, 7, 9))
            rng = np.random.default_rng(0)
            for name, array in sorted(e.arg_dict.items()):
                array[:] = rng.standard_normal(array.shape)
                e.grad_dict[name][:] = 1
            outs = e.forward(is_train=True)
            e.backward([mx.nd.array(rng.standard_normal(o.shape)) for o in outs])
            arrays = {**e.grad_dict, **e.aux_dict, **e.output_dict}
            found.append({k: v.asnumpy() for k, v in arrays.items()})
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-3, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("kind", ["leaky", "elu", "gelu", "selu", "rrelu"])
def test_rectifiers_go_along_unless_they_draw(kind):
    x = node("act", "LeakyReLU", conv("c", variable("x")), act_type=kind)
    _, lines = typed(node("p", "Pooling", x, kernel=(2, 2)), x=(2, 3, 4, 6))
    first = [line.split("(")[0] for line in lines if "channels_first" in line.split("(")[0]]
    assert first == ["c_channels_first" if kind == "rrelu" else "p_channels_first"]
