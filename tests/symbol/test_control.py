"""Loops and choices in symbols: their files and values are MXNet's, gradients go through them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden import control
from golden.inputs import draw

import gnomon as mx
from gnomon.gluon import nn

GOLDEN = Path(__file__).parent.parent / "golden"
FILES = json.loads((GOLDEN / "control.json").read_text())
with np.load(GOLDEN / "control.npz") as arrays:
    RECORDED = {key: arrays[key] for key in arrays.files}
NETS = {function.__name__: function for function in control.NETS}


def named(name):
    return {k.partition("/")[2]: v for k, v in RECORDED.items() if k.startswith(name + "/")}


def renumbered(tree, names):
    """A file's tree with automatic names counted from the first one on."""
    if isinstance(tree, dict):
        return {k: renumbered(v, names) for k, v in tree.items()}
    if isinstance(tree, list):
        return [renumbered(v, names) for v in tree]
    if isinstance(tree, str) and tree.removesuffix("_output")[-1:].isdigit():
        return names.setdefault(tree, f"name{len(names)}")
    return tree


def values(name, symbol):
    """The arrays of a network's inputs, states among them."""
    args, _, aux = symbol.infer_shape(**control.NETS[NETS[name]])
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    return {
        n: np.full(s, control.VALUES[n], "f")
        if n in control.VALUES
        else draw(f"{name}:{n}", ["u", list(s), -1, 1])
        for n, s in zip(names, args + aux, strict=True)
    }


@pytest.mark.parametrize("name", [n for n in NETS if n != "normalized"])  # states come last here
def test_files_are_those_of_mxnet(name):
    ours, theirs = json.loads(NETS[name](mx).tojson()), FILES[name]
    assert renumbered(ours, {}) == renumbered(theirs, {})
    again = mx.sym.load_json(json.dumps(theirs))
    assert renumbered(json.loads(again.tojson()), {}) == renumbered(theirs, {})


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients_are_those_of_mxnet(name, loaded):
    symbol = mx.sym.load_json(json.dumps(FILES[name])) if loaded else NETS[name](mx)
    recorded, given = named(name), {k: mx.nd.array(v) for k, v in values(name, symbol).items()}
    aux = {k: given.pop(k) for k in symbol.list_auxiliary_states()}
    grads = {k: mx.nd.full(v.shape, 2) for k, v in given.items()}
    bound = symbol.bind(mx.cpu(), given, grads, "add", aux)
    for _ in range(2):  # the second time on the executors of the first
        outputs = bound.forward(is_train=True)
        heads = [draw(f"{name}:head{k}", ["n", list(o.shape)]) for k, o in enumerate(outputs)]
        for g in grads.values():
            g[:] = 2
        bound.backward(list(map(mx.nd.array, heads)))
    aux = {k: mx.nd.array(values(name, symbol)[k]) for k in aux}
    predicted = symbol.bind(mx.cpu(), given, aux_states=aux).forward()
    for k, output in enumerate(predicted):
        np.testing.assert_allclose(output.asnumpy(), recorded[f"out{k}"], 1e-5, 1e-6)
    for k, g in grads.items():
        if f"grad:{k}" in recorded:
            np.testing.assert_allclose(g.asnumpy() - 2, recorded[f"grad:{k}"], 1e-4, 1e-5, k)
    if not aux:
        for output, same in zip(outputs, predicted, strict=True):
            np.testing.assert_allclose(same.asnumpy(), output.asnumpy(), 1e-6)


@pytest.mark.parametrize("name", ["nested", "limited"])
def test_gradients_that_mxnet_lacks_are_those_of_single_steps(name):
    symbol = NETS[name](mx)
    given = {k: mx.nd.array(v) for k, v in values(name, symbol).items()}
    grads = {k: mx.nd.zeros(v.shape) for k, v in given.items()}
    bound = symbol.bind(mx.cpu(), given, grads)
    outputs = bound.forward(is_train=True)
    bound.backward([mx.nd.ones(o.shape) for o in outputs])
    for x in given.values():
        x.attach_grad()
    with mx.autograd.record():
        if name == "nested":
            inner = lambda part, state: (part * given["w"], state + part)  # noqa: E731

            def outer(part, state):
                outputs, state = mx.nd.contrib.foreach(inner, part, state)
                return outputs * part, state

            outputs, state = mx.nd.contrib.foreach(outer, given["x"], given["h"])
            total = outputs.sum() + state.sum()
        else:
            outputs, (last,) = mx.nd.contrib.while_loop(
                lambda i: i < given["far"], lambda i: ([i * i, i], [i + 1]), [given["i"]], 3
            )
            total = outputs[0].sum() + outputs[1].sum() + last.sum()
    total.backward()
    for k, x in given.items():
        np.testing.assert_allclose(grads[k].asnumpy(), x.grad.asnumpy(), 1e-6, 1e-6, k)


class Recurrent(mx.gluon.HybridBlock):
    """A layer whose steps are a loop."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.cell = nn.Dense(3, flatten=False, activation="tanh")
            self.norm = nn.BatchNorm()

    def hybrid_forward(self, F, x, state):
        def step(part, states):
            made = self.norm(self.cell(F.concat(part, states[0], dim=1)))
            return made, [made]

        outputs, states = F.contrib.foreach(step, x, [state])
        return F.contrib.cond(F.sum(x) > 0, lambda: outputs * 2, lambda: outputs), states[0]


def trained(hybrid):
    """What a network with a loop gives, and its gradients, compiled or not."""
    mx.random.seed(1)
    net = Recurrent(prefix="net_")
    net.initialize(mx.init.Uniform(0.5))
    net(mx.nd.ones((4, 2, 2)), mx.nd.zeros((2, 3)))
    for name, p in net.collect_params().items():
        if "running" not in name:
            p.set_data(mx.nd.array(draw(name, ["u", list(p.shape), -1, 1])))
    if hybrid:
        net.hybridize()
    x, h = (mx.nd.array(draw(n, ["u", s, -1, 1])) for n, s in (("x", [4, 2, 2]), ("h", [2, 3])))
    x.attach_grad()
    found = []
    for _ in range(2):
        with mx.autograd.record():
            outputs, state = net(x, h)
            loss = (outputs * outputs).sum() + state.sum()
        loss.backward()
        params = net.collect_params().values()
        found += [outputs, x.grad] + [
            p.grad() if p.grad_req != "null" else p.data() for p in params
        ]
    return [f.asnumpy() for f in found] + [net(x, h)[0].asnumpy()]


def test_compiled_blocks_have_loops_with_states():
    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_what_is_not_chosen_is_not_computed():
    x = mx.sym.var("x")
    net = mx.sym.contrib.cond(x > 0, lambda: mx.sym.log(x), lambda: x * 3)
    grad = mx.nd.zeros(1)
    bound = net.bind(mx.cpu(), {"x": mx.nd.array([-1])}, {"x": grad})
    assert bound.forward(is_train=True)[0].asscalar() == -3
    bound.backward(mx.nd.ones(1))
    assert grad.asscalar() == 3
    (value,) = bound.forward(is_train=True, x=mx.nd.array([2]))
    bound.backward(mx.nd.ones(1))
    assert value.asscalar() == pytest.approx(np.log(2))
    assert grad.asscalar() == 0.5


def test_loops_without_a_step_and_of_other_dtypes():
    i = mx.sym.var("i")
    steps, last = mx.sym.contrib.while_loop(lambda i: i < 5, lambda i: (i * 2, i + 1), i, 3)
    net = mx.sym.Group([steps, last])
    grad = mx.nd.zeros(1, dtype="float64")
    bound = net.bind(mx.cpu(), {"i": mx.nd.array([7], dtype="float64")}, {"i": grad})
    found = bound.forward(is_train=True)
    assert [x.asnumpy().tolist() for x in found] == [[[0]] * 3, [7]]
    bound.backward([mx.nd.ones((3, 1), dtype="float64"), mx.nd.array([4], dtype="float64")])
    assert grad.asscalar() == 4
    (whole, _) = net.eval(i=mx.nd.array([3], dtype="int32"))
    assert whole.asnumpy().ravel().tolist() == [6, 8, 0]
    assert whole.dtype == np.int32


def test_random_numbers_are_those_of_each_step():
    step = lambda part, state: (mx.sym.Dropout(part, p=0.5), state)  # noqa: E731
    net = mx.sym.contrib.foreach(step, mx.sym.var("x"), [])[0]
    grad = mx.nd.zeros((3, 50))
    bound = net.bind(mx.cpu(), {"x": mx.nd.ones((3, 50))}, {"x": grad})
    (out,) = bound.forward(is_train=True)
    bound.backward(mx.nd.ones((3, 50)))
    assert np.array_equal(grad.asnumpy(), out.asnumpy())
    assert not np.array_equal(out.asnumpy()[0], out.asnumpy()[1])


def identity(x, state):
    return x, state


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda f, x: f.foreach(identity, 3, x), TypeError, "foreach.*data.*symbols"),
        (lambda f, x: f.foreach(identity, [], x), mx.MXNetError, "foreach.*data.*one symbol"),
        (lambda f, x: f.foreach(lambda x, s: (x, [s, s]), x, x), mx.MXNetError, "foreach.*body"),
        (lambda f, x: f.foreach(lambda x, s: (x, x), x, x), mx.MXNetError, "all of them read"),
        (lambda f, x: f.foreach(lambda x, s: (1, s), x, x), TypeError, "foreach.*body.*symbols"),
        (lambda f, x: f.while_loop(lambda i: i, lambda i: (i, i), x), mx.MXNetError, "max_iter"),
        (lambda f, x: f.while_loop(lambda i: i, lambda i: (i, [i, i]), x, 3), mx.MXNetError,
         "while_loop.*func.*1 variables"),
        (lambda f, x: f.while_loop(lambda i: 1, lambda i: (i, i), x, 3), TypeError, "cond"),
        (lambda f, x: f.while_loop(lambda: 1, lambda: (1, 1), [], 3), mx.MXNetError, "loop_vars"),
        (lambda f, x: f.cond(True, lambda: x, lambda: x), TypeError, "cond.*pred"),
        (lambda f, x: f.cond(x, lambda: [x, x], lambda: x), mx.MXNetError, "cond.*then_func"),
    ],
)  # fmt: skip
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make(mx.sym.contrib, mx.sym.var("x"))


def test_files_that_are_damaged_are_refused():
    node = next(n for n in FILES["alone"]["nodes"] if n["op"] == "_foreach")
    for change, words in (
        ({"subgraphs": []}, "_foreach.*subgraphs.*graphs of body"),
        ({"subgraphs": 3}, "expected a list of subgraphs"),
        ({"subgraphs": [{"nodes": 3, "heads": []}]}, "expected a list 'nodes'"),
        ({"attrs": {**node["attrs"], "in_data_locs": "[3]"}}, "_foreach.*locs"),
        ({"attrs": {**node["attrs"], "num_outputs": "2"}}, "_foreach.*in_state_locs"),
        ({"attrs": {**node["attrs"], "subgraphs": "x"}}, "subgraphs"),
    ):
        nodes = [n if n["op"] == "null" else {**n, **change} for n in FILES["alone"]["nodes"]]
        with pytest.raises(mx.MXNetError, match=words):
            mx.sym.load_json(json.dumps({**FILES["alone"], "nodes": nodes}))


def test_shapes_that_contradict_name_the_node():
    net = NETS["several"](mx)
    with pytest.raises(mx.MXNetError, match=r"_foreach.*as many parts"):
        net.infer_shape(x=(3, 2), y=(4, 2), h=(2,))
    with pytest.raises(mx.MXNetError, match=r"_foreach"):
        net.infer_shape(x=(3, 2), y=(3, 2), h=(5,))


def test_shapes_of_loops_in_loops_are_inferred_once():
    def body(x, s):
        return x * s, s + x

    def around(inner):
        def outer(x, s):
            out, last = mx.sym.contrib.foreach(inner, mx.sym.expand_dims(x, 0), s)
            return out, s + last

        return outer

    for _ in range(40):  # each level asks twice for those of its body
        body = around(body)
    out, last = mx.sym.contrib.foreach(body, mx.sym.var("data"), mx.sym.var("state"))
    shapes = mx.sym.Group([out, last]).infer_shape(data=(3, 2), state=(2,))[1]
    assert shapes == [(3, *(1,) * 40, 2), (2,)]


def test_conditions_with_working_memory_of_their_own():
    sym, nd = mx.sym, mx.nd
    names = sym.var("i"), sym.var("word"), sym.var("total")

    def goes_on(i, word, total):
        return sym.broadcast_logical_and(i < 30, sym.sum(word != 9) > 0)

    def step(i, word, total):
        after = sym.broadcast_mod(word + 3, sym.ones((1,)) * 7)
        return after, [i + 1, after, total + sym.sum(after)]

    rows, ends = sym.contrib.while_loop(goes_on, step, list(names), 30)
    for k in range(5):
        start = {"i": nd.zeros((1,)), "word": nd.array([k, 5]), "total": nd.zeros((1,))}
        found = sym.Group([rows, *ends]).bind(mx.cpu(), start).forward()
        steps = np.arange(1, 31)[:, None]
        wanted = (np.array([k, 5]) + 3 * steps) % 7
        np.testing.assert_array_equal(found[0].asnumpy(), wanted)
        assert (found[1].asscalar(), found[3].asscalar()) == (30, wanted.sum())


def test_saved_loops_run_where_none_was_composed(tmp_path):
    x, s = mx.sym.var("x"), mx.sym.var("s")
    outputs, _ = mx.sym.contrib.foreach(lambda x, s: (x + s, x + s), x, s)
    outputs.save(str(tmp_path / "loop.json"))
    script = (
        "import sys, gnomon as mx; loop = mx.sym.load(sys.argv[1]);"
        "given = {'x': mx.nd.ones((3, 1)), 's': mx.nd.ones((1,))};"
        "print(loop.eval(**given)[0].asnumpy().ravel().tolist())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "loop.json")]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "[2.0, 3.0, 4.0]\n"


def test_averages_move_in_each_step_of_a_loop_that_is_replayed():
    """As those of the operator that is called as often: the last step's first."""
    x = mx.nd.array(np.random.default_rng(0).uniform(size=(12, 4, 3)))
    ones, zeros = mx.nd.ones((3,)), mx.nd.zeros((3,))
    names = ("gamma", "beta", "mean", "var")
    body = mx.sym.BatchNorm
    y, _ = mx.sym.contrib.foreach(
        lambda a, s: (body(a, *map(mx.sym.var, names), name="norm"), s + 1),
        mx.sym.var("x"),
        mx.sym.zeros((1,)),
    )
    states = {"mean": mx.nd.zeros((3,)), "var": mx.nd.ones((3,))}
    args = {"x": x, "gamma": ones, "beta": zeros}
    bound = y.bind(mx.cpu(), args, {"x": mx.nd.zeros(x.shape)}, "write", states)
    want = np.zeros(3)
    for _ in range(3):
        (out,) = bound.forward(is_train=True)
        np.testing.assert_allclose(states["mean"].asnumpy(), want, 1e-5)
        bound.backward(mx.nd.ones(out.shape))
        for batch in x.asnumpy()[::-1]:
            want = want * 0.9 + batch.mean(0) * 0.1
    np.testing.assert_allclose(states["mean"].asnumpy(), want, 1e-5)
