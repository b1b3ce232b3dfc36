"""Fusion and splitting, on small graphs: which nodes become one task, and which stay apart."""

from itertools import pairwise

from gnomon import dtype
from gnomon.expr.composite import Call
from gnomon.graph import infer
from gnomon.graph.gradient import backward
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.tasks.fuse import LARGEST, fuse
from gnomon.graph.tasks.share import aliases, sharings
from gnomon.graph.tasks.split import split
from gnomon.graph.tasks.task import Buffers, express, lives, used_entries
from gnomon.ops import registry


def node(name, op_name, *inputs, **params):
    return Entry(Node(registry.find(op_name).parse(params), name, inputs))


def tasks(outputs, **shapes):
    """The tasks of a graph, each node one, and its buffers."""
    graph = Graph(outputs)
    known = infer.shapes(graph, {n: shapes[n.name] for n in graph.variables})
    kinds = infer.types(graph, dict.fromkeys(graph.variables, dtype.float32))
    buffers = Buffers(known, kinds)
    used = used_entries(graph.topo, outputs)
    return express(graph.topo, buffers, used, lambda n: {"train": False}), buffers


def fused(outputs, **shapes):
    """The names of the tasks after fusion."""
    found, buffers = tasks(outputs, **shapes)
    parts = split(found, buffers, lambda call: True)
    return [t.name for t in fuse(parts, buffers, set(outputs))]


def test_a_chain_of_maps_is_one_task():
    x = variable("x")
    assert fused([node("b", "exp", node("a", "tanh", x))], x=(4,)) == ["a+b"]


def test_what_two_read_or_the_caller_wants_stays():
    x = variable("x")
    a = node("a", "tanh", x)
    twice = node("d", "elemwise_add", node("b", "exp", a), node("c", "relu", a))
    assert fused([twice], x=(4,)) == ["a", "b+c+d"]
    assert fused([node("b", "exp", a), a], x=(4,)) == ["a", "b"]


def test_what_is_read_at_other_indices_stays():
    x = variable("x")
    assert fused([node("s", "sum", node("a", "exp", x), axis=1)], x=(4, 5)) == ["a", "s"]
    assert fused([node("s", "softmax", node("a", "exp", x))], x=(4, 5)) == ["a", "s"]


def test_maps_follow_reductions_and_products():
    x, w, b = map(variable, ["x", "w", "b"])
    assert fused([node("e", "exp", node("s", "sum", x, axis=1))], x=(4, 5)) == ["s+e"]
    fc = node("fc", "FullyConnected", x, w, b, num_hidden=3)
    assert fused([node("act", "relu", fc)], x=(4, 5), w=(3, 5), b=(3,)) == ["fc", "fc+act"]


def test_what_is_read_once_in_another_order_is_composed():
    x, y = variable("x"), variable("y")
    a = node("a", "broadcast_add", x, variable("b"))
    turned = node("t", "transpose", a)
    assert fused([node("e", "exp", turned)], x=(4, 5), b=(1, 5)) == ["a+t+e"]
    joined = node("j", "Concat", x, y, num_args=2, dim=0)
    assert fused([node("t", "transpose", joined)], x=(4, 5), y=(3, 5)) == ["j+t"]
    softmax = node("s", "softmax", x)  # its rows share a maximum and a sum
    assert fused([node("t", "transpose", softmax)], x=(4, 5)) == ["s", "t"]
    product = node("p", "elemwise_mul", x, y)  # two arrays would be read across in place of one
    assert fused([node("t", "transpose", product)], x=(4, 5), y=(4, 5)) == ["p", "t"]
    assert fused([node("m", "broadcast_mul", x, node("e", "exp", y))], x=(4, 5), y=(1, 5)) == [
        "e",
        "m",
    ]


def test_parts_that_readers_take_are_computed_by_them():
    x, w = variable("x"), variable("w")
    fc = node("fc", "FullyConnected", x, w, variable("b"), num_hidden=6)
    halves = node("h", "SliceChannel", fc, num_outputs=2).node
    outputs = [node("r", "relu", Entry(halves, 0)), node("t", "tanh", Entry(halves, 1))]
    shapes = {"x": (4, 5), "w": (6, 5), "b": (6,)}
    assert fused(outputs, **shapes) == ["fc", "fc+h+r", "fc+h+t"]
    assert fused([*outputs, node("n", "exp", fc)], **shapes)[:2] == ["fc", "fc"]  # thrice the work


def test_no_more_elements_are_computed_than_there_are():
    x = variable("x")
    e = node("e", "exp", x)
    twice = node("j", "Concat", e, e, num_args=2, dim=0)
    assert fused([twice], x=(64, 64)) == ["e", "j"]
    flipped = node("f", "reverse", e, axis=0)
    assert fused([node("s", "elemwise_add", e, flipped)], x=(64, 64)) == ["e", "f+s"]


def test_what_is_joined_element_by_element_is_computed_before():
    x, y = variable("x"), variable("y")
    parts = [node("a", "exp", x), node("b", "exp", y)]
    joined = node("j", "Concat", *parts, num_args=2, dim=1)
    assert fused([joined], x=(64, 64), y=(64, 64)) == ["a+b+j"]
    assert fused([joined], x=(64, 2), y=(64, 2)) == ["a", "b", "j"]


def test_a_map_of_many_is_no_sum():
    many = [variable(f"x{k}") for k in range(10)]
    value = many[0]
    for k, x in enumerate(many[1:]):
        value = node(f"m{k}", "elemwise_mul", value, x)
    shapes = {f"x{k}": (4, 4) for k in range(10)}
    assert len(fused([node("r", "relu", value)], **shapes)) == 1


def test_views_and_constants_go_into_every_reader():
    x = variable("x")
    flat = node("flat", "Flatten", x)
    out = node("out", "elemwise_add", node("a", "tanh", flat), node("b", "exp", flat))
    assert fused([out], x=(2, 3, 4)) == ["flat+a+b+out"]
    ones = node("ones", "_ones", shape=(4,))
    both = [node("p", "elemwise_add", x, ones), node("q", "elemwise_mul", x, ones)]
    assert fused(both, x=(4,)) == ["ones+p", "ones+q"]
    ones, w = node("ones", "_ones", shape=(4, 5)), variable("w")
    assert fused([node("p", "dot", ones, w)], w=(5, 6)) == ["ones", "p"]  # a library reads memory


def test_tasks_do_not_grow_without_end():
    entry = variable("x")
    for k in range(3 * LARGEST):
        entry = node(f"n{k}", "tanh", entry)
    assert len(fused([entry], x=(4,))) == 3


def test_calls_stand_alone():
    x, w, b = map(variable, ["x", "w", "b"])
    fc = node("fc", "FullyConnected", x, w, b, num_hidden=3)
    outputs = [node("act", "relu", fc)]
    found, buffers = tasks(outputs, x=(4, 5), w=(3, 5), b=(3,))
    product, rest = fuse(split(found, buffers, lambda call: True), buffers, set(outputs))
    (value,) = product.values.values()
    assert isinstance(value, Call)
    assert product.made[0] in rest.reads
    assert [(s.source, s.view) for s in sharings([product, rest])] == [(product.made[0], False)]


def test_a_product_goes_into_what_only_multiplies_it():
    x, y = variable("x"), variable("y")
    shapes = {"x": (2, 3, 4), "y": (2, 4, 5)}
    dot = node("d", "batch_dot", x, y)
    half = node("h", "_mul_scalar", dot, scalar=0.5)
    assert fused([half], **shapes) == ["d+h"]
    assert fused([node("e", "exp", half)], **shapes) == ["d+h", "e"]
    assert fused([half, dot], **shapes) == ["d", "h"]
    assert fused([node("p", "_plus_scalar", dot, scalar=0.5)], **shapes) == ["d", "p"]
    for scalar in (0.0, float("inf"), 1e39):
        assert fused([node("m", "_mul_scalar", dot, scalar=scalar)], **shapes) == ["d", "m"]


def test_a_reshape_of_a_call_is_no_task():
    x, w = variable("x"), variable("w")
    fc = node("fc", "FullyConnected", x, w, num_hidden=3, flatten=False, no_bias=True)
    found, buffers = tasks([fc], x=(2, 4, 5), w=(3, 5))
    (whole,) = split(found, buffers, lambda call: True)
    assert whole.made == (fc,) and whole.form.has_call


def test_a_call_without_a_library_becomes_its_fallback():
    x, w = variable("x"), variable("w")
    out = node("c", "Convolution", x, w, kernel=(3, 3), num_filter=2, no_bias=True)
    found, buffers = tasks([out], x=(1, 1, 5, 5), w=(2, 1, 3, 3))
    kinds = {"Dot", "BatchDot"}
    parts = split(found, buffers, lambda call: type(call).__name__ in kinds)
    calls = [v for t in parts for v in t.values.values() if isinstance(v, Call)]
    assert {type(c).__name__ for c in calls} <= kinds
    assert parts[-1].made == (out,)


def test_a_reshape_is_a_view_and_a_map_may_overwrite():
    x = variable("x")
    e = node("e", "exp", x)
    flat = node("flat", "Flatten", e)
    turned = node("t", "transpose", e)
    outputs = [node("r", "relu", flat), turned]
    found, _ = tasks(outputs, x=(2, 3, 4))
    pairs = {(s.made.node.name, s.source.node.name, s.view) for s in sharings(found)}
    assert pairs == {("e", "x", False), ("flat", "e", True), ("r", "flat", False)}


def test_a_map_behind_a_reshape_may_overwrite():
    x, b = variable("x"), variable("b")
    shifted = node("s", "broadcast_add", node("flat", "Flatten", x), b)
    outputs = [node("back", "reshape_like", shifted, x)]
    found, buffers = tasks(outputs, x=(2, 3, 4), b=(1, 12))
    (whole,) = fuse(found, buffers, set(outputs))
    assert [(s.made, s.source, s.view) for s in sharings([whole])] == [(outputs[0], x, False)]


def test_sums_of_many_let_go_of_what_they_sum():
    shares = [node(f"e{k}", "dot", variable(f"x{k}"), variable("w")) for k in range(15)]
    first = node("first", "add_n", *shares[:8], num_args=8)
    rest = node("rest", "add_n", first, *shares[8:], num_args=8)
    shapes = {f"x{k}": (4, 4) for k in range(15)}
    names = fused([node("r", "relu", rest)], w=(4, 4), **shapes)
    assert [n for n in names if n[0] != "e"] == ["first", "rest", "r"]


def test_the_gradient_of_the_data_comes_behind_that_of_the_weight():
    x, w, g = variable("x"), variable("w"), variable("g")
    fc = node("fc", "FullyConnected", x, w, num_hidden=3, no_bias=True)
    graph = Graph([fc])
    known = infer.shapes(graph, {x.node: (4, 5), w.node: (3, 5)})
    kinds = infer.types(graph, dict.fromkeys(graph.variables, dtype.float32))
    known[g], kinds[g] = (4, 3), dtype.float32
    back = backward(graph, known, kinds, [x.node, w.node], [g])
    buffers = Buffers({**known, **back.shapes}, {**kinds, **back.types})
    made = express(back.nodes, buffers, set(back.grads.values()), lambda n: {"train": True})
    assert [t.made[0] for t in made] == [back.grads[w.node], back.grads[x.node]]


def test_a_view_of_an_argument_needs_no_memory():
    x = variable("x")
    flat = node("flat", "Flatten", x)
    stop = node("stop", "BlockGrad", flat)
    outputs = [node("s", "sum", stop, axis=1)]
    found, _ = tasks(outputs, x=(2, 3, 4))
    assert aliases(found, {x}, set(outputs)) == {flat: x, stop: x}
    assert aliases(found, {x}, {stop}) == {flat: x}


def test_lives_end_with_the_last_reader():
    x = variable("x")
    a = node("a", "tanh", x)
    out = node("d", "elemwise_add", node("b", "exp", a), a)
    found, _ = tasks([out], x=(4,))
    life = lives(found)
    assert (life.born[a], life.dies[a]) == (0, 2)
    assert life.dies[out] == 2
    assert lives(found, [out]).dies[out] == 3


def test_layers_that_are_alike_share_forms():
    x, w = variable("x"), variable("w")
    layers = [x]
    for k in range(3):
        fc = node(f"fc{k}", "FullyConnected", layers[-1], w, num_hidden=5, no_bias=True)
        layers.append(node(f"act{k}", "tanh", fc))
    found, buffers = tasks(layers[-1:], x=(4, 5), w=(5, 5))
    parts = fuse(split(found, buffers, lambda call: True), buffers, set(layers))
    assert len(parts) == 6
    assert [t.form for t in parts[:2]] == [t.form for t in parts[2:4]]  # nobody reads the last
    assert [t.made[0] in later.reads for t, later in pairwise(parts)] == [True] * 5


def test_what_reads_one_entry_twice_is_no_form_of_two():
    x, y = variable("x"), variable("y")
    both = [node("square", "elemwise_mul", x, x), node("product", "elemwise_mul", x, y)]
    found, _ = tasks(both, x=(4,), y=(4,))
    assert [len(t.reads) for t in found] == [1, 2]
