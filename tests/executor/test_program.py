"""Programs on NumPy arrays: values, gradients, requests, states, draws, fusion, memory."""

import numpy as np
import pytest
from executor.nets import Bound, node

from gnomon import resource
from gnomon.graph.node import Entry, Node, variable
from gnomon.graph.tasks.memory import overlaps
from gnomon.graph.tasks.share import sharings
from gnomon.ops import registry


def floats(*shape, seed=0, kind=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def mlp(batch=5):
    data, label = variable("data"), variable("label")
    w1, b1, w2, b2 = map(variable, ["w1", "b1", "w2", "b2"])
    hidden = node("fc1", "FullyConnected", data, w1, b1, num_hidden=4)
    act = node("act", "Activation", hidden, act_type="tanh")
    scores = node("fc2", "FullyConnected", act, w2, b2, num_hidden=3)
    out = node("softmax", "SoftmaxOutput", scores, label)
    arrays = {
        "data": floats(batch, 6),
        "label": np.arange(batch, dtype=np.float32) % 3,
        "w1": floats(4, 6, seed=1),
        "b1": floats(4, seed=2),
        "w2": floats(3, 4, seed=3),
        "b2": floats(3, seed=4),
    }
    return [out], arrays


def mlp_by_hand(a):
    h = np.tanh(a["data"] @ a["w1"].T + a["b1"])
    s = h @ a["w2"].T + a["b2"]
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = p - np.eye(3)[a["label"].astype(int)]
    g = (d @ a["w2"]) * (1 - h * h)
    grads = {"w2": d.T @ h, "b2": d.sum(0), "w1": g.T @ a["data"], "b1": g.sum(0)}
    return p, {**grads, "data": g @ a["w1"]}


@pytest.mark.parametrize("fuse", [True, False])
def test_an_mlp_gives_outputs_and_gradients(fuse):
    outputs, arrays = mlp()
    out, grads = mlp_by_hand(arrays)
    bound = Bound(outputs, arrays, {k: np.full_like(arrays[k], np.nan) for k in grads})
    bound.run(fuse=fuse)
    np.testing.assert_allclose(bound.outputs[0], out, rtol=1e-5, atol=1e-6)
    for name, expected in grads.items():
        np.testing.assert_allclose(bound.grads[name], expected, rtol=1e-4, atol=1e-5)


def test_adding_gradients_keeps_what_was_there():
    outputs, arrays = mlp()
    _, grads = mlp_by_hand(arrays)
    bound = Bound(outputs, arrays, {k: np.ones_like(arrays[k]) for k in grads}, "plusto")
    bound.run()
    for name, expected in grads.items():
        np.testing.assert_allclose(bound.grads[name], 1 + expected, rtol=1e-4, atol=1e-5)


def test_only_wanted_gradients_are_computed():
    outputs, arrays = mlp()
    bound = Bound(outputs, arrays, {"b2": np.zeros(3, np.float32)})
    names = [t.name for t in bound.layout().tasks]
    assert not any("fc1_backward" in n for n in names)


def test_one_gradient_for_two_variables():
    a, b = variable("a"), variable("b")
    arrays = {"a": floats(3), "b": floats(3, seed=1)}
    grads = {"a": np.zeros(3, np.float32), "b": np.zeros(3, np.float32)}
    for savers, expected in (("saveto", 1), ("plusto", 2)):
        Bound([node("s", "elemwise_add", a, b)], arrays, grads, savers).run()
        assert (grads["a"] == expected).all() and (grads["b"] == expected).all()


def test_a_variable_with_no_gradient_gets_zeros_or_stays():
    x = variable("x")
    stop = node("stop", "BlockGrad", node("e", "exp", x))
    grad = np.full(3, 5, np.float32)
    bound = Bound([stop], {"x": floats(3)}, {"x": grad}, "plusto")
    bound.run()
    assert (grad == 5).all()
    Bound([stop], {"x": floats(3)}, {"x": grad}).run()
    assert (grad == 0).all()


def test_outputs_that_are_variables_or_twice_the_same():
    x = variable("x")
    e = node("e", "exp", x)
    values = floats(4)
    grad = np.zeros(4, np.float32)
    bound = Bound([e, x, e], {"x": values}, {"x": grad})
    bound.run()
    np.testing.assert_allclose(bound.outputs[0], np.exp(values), rtol=1e-6)
    np.testing.assert_array_equal(bound.outputs[1], values)
    np.testing.assert_array_equal(bound.outputs[2], bound.outputs[0])
    np.testing.assert_allclose(grad, 2 * np.exp(values) + 1, rtol=1e-6)


def batch_norm():
    x, gamma, beta, mean, var = map(variable, ["x", "gamma", "beta", "mean", "var"])
    params = {"fix_gamma": False, "momentum": 0.5, "eps": 1e-3}
    out = node("bn", "BatchNorm", x, gamma, beta, mean, var, **params)
    arrays = {
        "x": floats(6, 3, 2),
        "gamma": floats(3, seed=1),
        "beta": floats(3, seed=2),
        "mean": np.zeros(3, np.float32),
        "var": np.ones(3, np.float32),
    }
    return [out], arrays


def test_states_change_in_a_training_step_alone():
    outputs, arrays = batch_norm()
    x = arrays["x"]
    mean, var = x.mean((0, 2)), x.var((0, 2))
    bound = Bound(outputs, arrays, {"x": np.zeros_like(x)})
    bound.run(train=True)
    normal = (x - mean[:, None]) / np.sqrt(var + 1e-3)[:, None]
    expected = normal * arrays["gamma"][:, None] + arrays["beta"][:, None]
    np.testing.assert_allclose(bound.outputs[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(arrays["mean"], mean / 2, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays["var"], (1 + var) / 2, rtol=1e-4)
    before = arrays["mean"].copy()
    predicting = Bound(outputs, arrays)
    predicting.run(train=False)
    np.testing.assert_array_equal(arrays["mean"], before)
    shifted = (x - before[:, None]) / np.sqrt(arrays["var"] + 1e-3)[:, None]
    expected = shifted * arrays["gamma"][:, None] + arrays["beta"][:, None]
    np.testing.assert_allclose(predicting.outputs[0], expected, rtol=1e-4, atol=1e-5)


def test_an_update_operator_changes_its_state_in_forward():
    w, g, m = map(variable, ["w", "g", "m"])
    out = node("step", "sgd_mom_update", w, g, m, lr=0.1, momentum=0.9)
    arrays = {"w": np.ones(2, np.float32), "g": np.ones(2, np.float32)}
    arrays["m"] = np.full(2, 0.5, np.float32)
    bound = Bound([out], arrays)
    bound.run(train=False)
    np.testing.assert_allclose(arrays["m"], 0.9 * 0.5 - 0.1, rtol=1e-6)
    np.testing.assert_allclose(bound.outputs[0], 1 + arrays["m"], rtol=1e-6)


def test_draws_differ_from_run_to_run_and_gradients_use_the_same():
    x = variable("x")
    out = node("drop", "Dropout", x, p=0.5)
    values, grad = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    bound = Bound([out], {"x": values}, {"x": grad})
    resource.seed(3)
    bound.run()
    first = bound.outputs[0].copy()
    assert set(np.unique(first)) == {0, 2}
    np.testing.assert_array_equal(grad, first)
    bound.run()
    assert (bound.outputs[0] != first).any()
    resource.seed(3)
    bound.run()
    np.testing.assert_array_equal(bound.outputs[0], first)
    bound.run(train=False)
    np.testing.assert_array_equal(bound.outputs[0], values)


def test_maps_across_operators_are_one_task():
    x = variable("x")
    entry = x
    for k, name in enumerate(["tanh", "exp", "relu", "sigmoid"]):
        entry = node(f"n{k}", name, entry)
    bound = Bound([entry], {"x": floats(50)})
    layout = bound.layout(train=False, differentiate=False)
    assert len(layout.tasks) == 1
    assert layout.plan.total == 0
    assert len(bound.layout(train=False, differentiate=False, fuse=False).tasks) == 4
    bound.run(train=False)
    x = np.maximum(np.exp(np.tanh(bound.inputs["x"])), 0)
    np.testing.assert_allclose(bound.outputs[0], 1 / (1 + np.exp(-x)), rtol=1e-5)


def test_a_chain_works_in_place():
    entry = variable("x")
    for k in range(6):
        entry = node(f"n{k}", "exp" if k % 2 else "tanh", entry)
    bound = Bound([entry], {"x": floats(64)})
    layout = bound.layout(train=False, differentiate=False, fuse=False)
    assert layout.plan.total == 64 * 4
    bound.run(train=False, fuse=False)


def test_a_reshape_moves_nothing():
    x = variable("x")
    flat = node("flat", "Flatten", node("e", "exp", x))
    out = node("out", "sum", flat, axis=1)
    bound = Bound([out], {"x": floats(4, 3, 2)})
    assert not any(t.name == "flat" for t in bound.layout(False, False).tasks)
    bound.run(train=False)
    expected = np.exp(bound.inputs["x"]).reshape(4, 6).sum(1)
    np.testing.assert_allclose(bound.outputs[0], expected, rtol=1e-5)


def test_several_outputs_and_one_unused():
    x = variable("x")
    op = registry.find("SliceChannel").parse({"num_outputs": 3, "axis": 1})
    parts = Node(op, "parts", [x])
    outputs = [Entry(parts, 0), Entry(parts, 2)]
    values, grad = floats(2, 6), np.full((2, 6), np.nan, np.float32)
    bound = Bound(outputs, {"x": values}, {"x": grad})
    bound.run()
    np.testing.assert_array_equal(bound.outputs[1], values[:, 4:])
    np.testing.assert_array_equal(grad, [[1, 1, 0, 0, 1, 1]] * 2)


KINDS = ["tanh", "sigmoid", "add", "mul", "flip", "turn", "dot", "softmax", "sum"]


def random_graph(rng, count):
    leaves = [variable("a"), variable("b"), variable("c")]
    pool = list(leaves)
    shape = dict.fromkeys(leaves, (4, 6))
    for k in range(count):
        kind = rng.choice(
            ["tanh", "sigmoid", "add", "mul", "flip", "turn", "dot", "softmax", "sum"]
        )
        x = pool[rng.integers(len(pool))]
        like = [e for e in pool if shape[e] == shape[x]]
        other = like[rng.integers(len(like))]
        if kind in ("add", "mul"):
            made, size = node(f"n{k}", f"elemwise_{kind}", x, other), shape[x]
        elif kind == "flip":
            made, size = node(f"n{k}", "reverse", x, axis=0), shape[x]
        elif kind == "turn":
            made, size = node(f"n{k}", "transpose", x), shape[x][::-1]
        elif kind == "dot":
            made = node(f"n{k}", "dot", x, other, transpose_b=True)
            made = node(f"d{k}", "broadcast_mul", made, node(f"s{k}", "sum", x, keepdims=True))
            size = (shape[x][0], shape[x][0])
        elif kind == "sum":
            made, size = node(f"n{k}", "sum", x, axis=1, keepdims=True), shape[x]
            made = node(f"b{k}", "broadcast_add", made, x)
        else:
            made, size = node(f"n{k}", kind, x), shape[x]
        shape[made] = size
        pool.append(made)
    outputs = list(dict.fromkeys(pool[rng.integers(3, len(pool))] for _ in range(2)))
    return leaves, outputs


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_the_same_with_every_pass_off(seed):
    rng = np.random.default_rng(seed)
    leaves, outputs = random_graph(rng, 12)
    arrays = {e.node.name: 0.3 * rng.standard_normal((4, 6)) for e in leaves}
    results = []
    for fuse in (True, False):
        grads = {k: np.full((4, 6), np.nan) for k in arrays}
        bound = Bound(outputs, arrays, grads)
        bound.grads = {k: g for k, g in grads.items() if k in {n.name for n in bound.graph.topo}}
        layout = bound.run(fuse=fuse)
        assert not overlaps(layout.plan, sharings(layout.tasks))
        results.append((bound.outputs, bound.grads))
    for one, other in zip(results[0][0], results[1][0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    for name in results[0][1]:
        np.testing.assert_allclose(results[0][1][name], results[1][1][name], rtol=1e-7, atol=1e-9)
