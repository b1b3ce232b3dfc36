"""Model files: what is written is read back; what is broken is refused with the node's name."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.base import FormatError
from gnomon.graph import verify
from gnomon.graph.json import dumps, loads
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.ops import registry


def network():
    data, weight = variable("data"), variable("w", __lr_mult__="2.0", free="text")
    op = registry.find("FullyConnected").parse({"num_hidden": 3, "no_bias": True})
    fc = Node(op, "fc", [data, weight], op.attrs())
    parts = registry.find("SliceChannel").parse({"num_outputs": 2})
    split = Node(parts, "parts", [Entry(fc)], parts.attrs())
    return Graph([Entry(split, 1), Entry(fc)])


def text(**changes):
    """The network's object with some of its parts replaced."""
    return json.dumps({**json.loads(dumps(network())), **changes})


def node(at, **changes):
    """The nodes of the network, one of them changed."""
    nodes = json.loads(dumps(network()))["nodes"]
    nodes[at] = {**nodes[at], **changes}
    return nodes


def test_what_is_written_is_read_back():
    again = loads(dumps(network()))
    verify.check(again)
    assert dumps(again) == dumps(network())
    assert again.outputs[0].index == 1
    assert again.outputs[0].node.op == network().outputs[0].node.op


BAD = {
    "": "expected JSON",
    "{": "expected JSON",
    "[]": "expected an object",
    "[" * 100_000: "expected JSON",
    '{"nodes": 3, "heads": []}': "a list 'nodes'",
    '{"nodes": []}': "a list 'heads'",
    text(nodes=node(2, op="FullyConected")): "node 'fc'.*FullyConected.*FullyConnected",
    text(nodes=node(2, attrs={"num_hidden": "x"})): "node 'fc'.*num_hidden.*'x'",
    text(nodes=node(2, attrs={"num_hidden": "3", "colour": "red"})): "node 'fc'.*colour",
    text(nodes=node(2, attrs={"num_hidden": 3})): "node 'fc'.*strings as attributes",
    text(nodes=node(2, attrs=[])): "node 'fc'.*strings as attributes",
    text(nodes=node(2, inputs=[[0, 0, 0]])): "node 'fc'.*expected 2 inputs.*got 1",
    text(nodes=node(2, inputs=[[9, 0, 0], [1, 0, 0]])): "node 'fc'.*node below 4",
    text(nodes=node(2, inputs=[[-1, 0, 0], [1, 0, 0]])): "node 'fc'.*node below 4",
    text(nodes=node(2, inputs=[[0, 5, 0], [1, 0, 0]])): "node 'fc'.*output",
    text(nodes=node(2, inputs=[["0", 0], [1, 0]])): "node 'fc'.*expected inputs as",
    text(nodes=node(2, inputs={"data": 0})): "node 'fc'.*a list of inputs",
    text(nodes=node(2, inputs=[[3, 0, 0], [1, 0, 0]])): "'fc', 'parts' read each other",
    text(nodes=node(0, inputs=[[1, 0, 0]])): "node 'data'.*no inputs of a variable",
    text(nodes=node(2, name=None)): "node number 2.*with a name",
    text(nodes=node(2, op=None)): "node 'fc'.*an operator and",
    text(nodes=[3]): "node number 0",
    text(heads=[[9, 0, 0]]): "head 0",
    text(heads=[[3, 2, 0]]): "head 0",
    text(heads=["x"]): "head 0",
    text(attrs={"mxnet_version": ["int", "new"]}): "mxnet_version",
    text(attrs={"mxnet_version": ["int", 30000]}): "mxnet_version",
}


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_what_is_broken_is_refused(bad):
    with pytest.raises(FormatError, match=BAD[bad]) as caught:
        loads(bad, "file.json")
    assert str(caught.value).startswith("file.json")


def test_nodes_may_come_in_any_order():
    found = json.loads(dumps(network()))
    order = [3, 2, 1, 0]
    place = {old: new for new, old in enumerate(order)}
    for spec in found["nodes"]:
        spec["inputs"] = [[place[a], b, c] for a, b, c in spec["inputs"]]
    found["nodes"] = [found["nodes"][old] for old in order]
    found["heads"] = [[place[a], b, c] for a, b, c in found["heads"]]
    assert dumps(loads(json.dumps(found))) == dumps(network())


def test_attributes_of_older_versions_come_under_any_key():
    for key in ("attr", "attrs", "param"):
        nodes = json.loads(dumps(network()))["nodes"]
        for spec in nodes:
            spec[key] = spec.pop("attrs", {})
        assert dumps(loads(text(nodes=nodes))) == dumps(network())


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3))
def test_any_name_and_attribute_survives(name, attrs):
    graph = Graph([Entry(Node(None, name, (), attrs))])
    again = loads(dumps(graph)).outputs[0].node
    kept = {legacy(k): v for k, v in attrs.items()}
    assert (again.name, again.attrs) == (name, kept)


def legacy(key):
    """Keys such as lr_mult are kept with underscores around."""
    return f"__{key}__" if key in ("lr_mult", "wd_mult", "ctx_group") else key


@given(
    st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8), st.integers(0, 3)
)
def test_no_junk_does_anything_but_format_error(junk, at):
    for key in ("inputs", "attrs", "op", "name"):
        with contextlib.suppress(FormatError):
            loads(text(nodes=node(at, **{key: junk})))
