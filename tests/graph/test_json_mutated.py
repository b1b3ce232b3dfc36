"""Model files with parts replaced or removed: an error that names the file, or a graph."""

import contextlib
import copy
import json
import random

import pytest

import gnomon as mx
from gnomon.base import FormatError, GnomonError
from gnomon.graph import infer
from gnomon.graph.json import dumps, loads

JUNK = (
    None, -1, 0, 1, 10**30, 1.5, True, "", "-1", "1e400", "(", "((((1))))", "(1,)*3", "(2,2)",
    "9" * 5000, "\x00", "relu", [], [[]], [0, 0], [-1, 0, 0], [99, 0, 0], [0, 9, 0], {}, {"a": 1},
)  # fmt: skip
KEYS = ("kernel", "axis", "__shape__", "__dtype__", "lr_mult", "weight_lr_mult", "num_args", "op")


def network():
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.Pooling(mx.sym.BatchNorm(x, name="norm"), kernel=(2, 2), name="pool")
    halves = mx.sym.split(mx.sym.Flatten(x), num_outputs=2, name="halves")
    both = mx.sym.Concat(halves[0], halves[1] * 2, dim=1)
    both = mx.sym.LeakyReLU(both, act_type="prelu", name="slope")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(both, num_hidden=3), name="softmax")


def versions():
    """The network as versions of MXNet keep it: where parameters stand, and which number."""
    for key, version in (("param", None), ("attr", 901), ("attr", 1100), ("attrs", 10901)):
        found = json.loads(network().tojson())
        for node in found["nodes"]:
            node[key] = node.pop("attrs", {})
            node.setdefault("attr", {}).update(weight_lr_mult="2")
        found["attrs"] = {} if version is None else {"mxnet_version": ["int", version]}
        yield found


def places(value):
    """Each list and dict inside, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def mutate(found, rng):
    """Change one place of a model file's object."""
    within, key = rng.choice(list(places(found)))
    junk = copy.deepcopy(rng.choice(JUNK))
    kind = rng.randrange(4)
    if kind == 0:
        del within[key]
    elif kind == 1 and isinstance(within, dict):
        within[rng.choice(KEYS)] = junk
    elif kind == 1:
        within.insert(key, junk)
    else:
        within[key] = junk


@pytest.mark.parametrize("seed", range(8))
def test_no_change_does_anything_but_an_error_of_gnomon(seed):
    rng, starts = random.Random(seed), list(versions())
    for _ in range(60):
        found = copy.deepcopy(rng.choice(starts))
        for _ in range(rng.choice((1, 1, 2, 3))):
            mutate(found, rng)
        text = json.dumps(found)
        if rng.random() < 0.1:
            text = text[: rng.randrange(len(text))]
        graph = read(text)
        if graph is None:
            continue
        assert dumps(loads(dumps(graph))) == dumps(graph)
        with contextlib.suppress(GnomonError):
            infer.types(graph)
            infer.shapes(graph)


def read(text):
    """The graph in a file's text; None where there is none, and the error names the file."""
    found = None
    try:
        found = loads(text, "net.json")
    except FormatError as error:
        told = str(error)
    assert found is not None or told.startswith("net.json: ")
    return found


@pytest.mark.parametrize("source", ["x", 7, {"op": "null", "name": "w", "attrs": 3}, None])
def test_what_an_old_attribute_is_for_may_be_broken(source):
    nodes = [source, {"op": "relu", "name": "r", "attr": {"data_lr_mult": "2"}, "inputs": [[0, 0]]}]
    with pytest.raises(FormatError, match=r"net.json: node (number 0|'w'|'r')"):
        loads(json.dumps({"nodes": nodes, "heads": [[1, 0]]}), "net.json")


@pytest.mark.parametrize("text", ["1e400", "(2.5, 3)", "-" * 9000 + "1", "(" * 150, "x"])
def test_shapes_and_dtypes_of_variables_are_refused_by_name(text):
    for key, ask in (("__shape__", infer.shapes), ("__dtype__", infer.types)):
        with pytest.raises(GnomonError, match=f"variable x: argument '{key}'"):
            ask(mx.sym.Variable("x", **{key: text})._graph)


@pytest.mark.parametrize("version", [700, 901, 1200, 10800])
def test_rates_of_inputs_are_handed_on_by_every_older_version(version):
    found = json.loads(mx.sym.FullyConnected(num_hidden=2, name="fc").tojson())
    found["nodes"][-1]["attrs"].update(weight_lr_mult="3", lr_mult="2")
    found["attrs"] = {"mxnet_version": ["int", version]}
    layer = mx.sym.load_json(json.dumps(found))
    assert layer.attr_dict()["fc_weight"]["lr_mult"] == "3"
    assert layer.list_attr() == {"num_hidden": "2", "__lr_mult__": "2", "lr_mult": "2"}


def test_operators_of_the_first_kind_are_those_of_today():
    found = json.loads(network().tojson())
    for node in found["nodes"]:
        node["param"] = node.pop("attrs", {}) if node["op"] != "null" else {}
        if node["op"] in ("Convolution", "BatchNorm"):
            node["op"] += "_v1"
    del found["attrs"]
    again = mx.sym.load_json(json.dumps(found))
    shapes = network().infer_shape(data=(2, 3, 8, 8))
    assert again.infer_shape(data=(2, 3, 8, 8)) == shapes
    starts = {k: v["__init__"] for k, v in again.attr_dict().items() if "__init__" in v}
    assert starts == {
        "norm_moving_mean": '["zero", {}]',
        "norm_moving_var": '["one", {}]',
        "slope_gamma": '["Constant", {"value": 0.25}]',
    }
