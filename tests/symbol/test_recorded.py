"""Symbols are what MXNet 1.9.1 makes of the same program: names, text, shapes, listing."""

import json
from pathlib import Path

import pytest
from symbol.symbol_networks import FILES, GIVEN, NETWORKS

import gnomon as mx

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))


def built(name):
    if name in FILES:
        return mx.sym.load_json(FILES[name])
    (build,) = (b for b in NETWORKS if b.__name__ == name)
    with mx.name.NameManager():
        return build(mx)


@pytest.fixture(params=[*(b.__name__ for b in NETWORKS), *FILES], scope="module")
def pair(request):
    return request.param, built(request.param), RECORDED[request.param]


def test_the_text_is_equal_byte_for_byte(pair):
    _, net, recorded = pair
    assert net.tojson() == recorded["json"]


def test_names_are_equal(pair):
    _, net, recorded = pair
    assert net.list_arguments() == recorded["arguments"]
    assert net.list_outputs() == recorded["outputs"]
    assert net.list_auxiliary_states() == recorded["auxiliary"]
    assert repr(net) == recorded["repr"]


def test_attributes_are_equal(pair):
    _, net, recorded = pair
    assert net.attr_dict() == recorded["attributes"]


def test_the_listing_is_equal(pair):
    _, net, recorded = pair
    assert net.debug_str() == recorded["debug"]


def test_the_listing_of_a_variable_alone_is_its_name():
    x = mx.sym.Variable("x", shape=(2, 3))
    assert x.debug_str() == "Variable:x\n"
    assert mx.sym.Group([x, mx.sym.Variable("y")]).debug_str().startswith("Symbol Outputs:\n")


@pytest.mark.parametrize("name", GIVEN)
def test_shapes_are_equal(name):
    found = built(name).infer_shape(**GIVEN[name])
    assert json.loads(json.dumps(found)) == RECORDED[name]["shapes"]


def test_what_was_written_is_read_as_it_was(pair):
    _, net, recorded = pair
    again = mx.sym.load_json(recorded["json"])
    assert again.tojson() == net.tojson()
