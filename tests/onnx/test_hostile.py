"""Files that are broken or hostile: an error that says what is wrong, and nothing else happens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import gnomon as mx

F = TensorProto.FLOAT


def info(name: str, *shape: Any, kind: int = F) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list[Any], weights: Any = (), opset: int = 17, shape: Any = (2, 3)) -> Any:
    graph = helper.make_graph(nodes, "g", [info("x", *shape)], [info("y")], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def read(proto: Any, folder: Path) -> Any:
    path = folder / "model.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    return mx.contrib.onnx.import_model(path)


def node(kind: str, *inputs: str, **attrs: Any) -> Any:
    return helper.make_node(kind, list(inputs), ["y"], "n", **attrs)


WEIGHT = numpy_helper.from_array(np.ones((3, 2), np.float32), "w")
PLAIN = model([node("MatMul", "x", "w")], [WEIGHT])


def test_the_plain_model_is_read(tmp_path):
    net, params, _ = read(PLAIN, tmp_path)
    assert net.list_arguments() == ["x", "w"]
    assert params["w"].shape == (3, 2)


def test_files_that_are_cut_off(tmp_path):
    data = PLAIN.SerializeToString()
    for size in range(len(data)):
        with pytest.raises(mx.MXNetError):
            read(data[:size], tmp_path)


def test_bytes_that_are_changed(tmp_path):
    data, chance = PLAIN.SerializeToString(), random.Random(5)
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            read(bytes(broken), tmp_path)
        except mx.MXNetError:
            continue


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (model([node("Foo", "x")]), "node 'n': operator Foo: is not known"),
        (model([node("Relu", "z")]), "'z' is read before it is made"),
        (model([node("Relu", "y")]), "'y' is read before it is made"),
        (model([helper.make_node("Relu", ["x"], ["z"])]), "output 'y' is never made"),
        (model([node("Relu", "x")], opset=5), "expected opset 7 or later, got 5"),
        (model([node("Softmax", "x", axis=7)]), "axis 7 of 2 axes"),
        (model([node("Softmax", "x", axis="a")]), "attribute 'axis'"),
        (model([node("Cast", "x")]), "attribute 'to' is missing"),
        (model([node("Conv", "x")]), "input 1 is missing"),
        (model([node("Tanh")]), "operator Tanh: input 0 is missing"),
        (model([node("LeakyRelu", "")]), "operator LeakyRelu: input 0 is missing"),
        (model([node("MatMul", "x", "w")], [WEIGHT], shape=(2, 4)), "operator MatMul"),
        (model([node("Reshape", "x", "x")]), "must be constant"),
        (model([node("Relu", "x")], shape=(2, 0)), "expected sizes above 0"),
        (b"", "no graph or opset"),
        (b"\xff" * 40, "is no ONNX model"),
    ],
)
def test_models_that_are_wrong(proto, words, tmp_path):
    with pytest.raises(mx.MXNetError, match=words):
        read(proto, tmp_path)


def test_every_unknown_node_is_told_at_once(tmp_path):
    nodes = [helper.make_node(f"No{k}", ["x"], [f"a{k}"], f"n{k}") for k in range(3)]
    nodes.append(node("Add", "a0", "a1"))
    with pytest.raises(mx.MXNetError, match="3 nodes") as caught:
        read(model(nodes), tmp_path)
    assert all(f"'n{k}': operator No{k}" in str(caught.value) for k in range(3))


def test_huge_constants_are_refused(tmp_path):
    shape = numpy_helper.from_array(np.array([1 << 40], np.int64), "s")
    for kind, inputs in (("ConstantOfShape", ["s"]), ("Expand", ["one", "s"])):
        one = numpy_helper.from_array(np.ones(1, np.float32), "one")
        with pytest.raises(mx.MXNetError, match="at most"):
            read(model([node(kind, *inputs)], [shape, one]), tmp_path)
    tensor = TensorProto(name="w", data_type=F, dims=[1 << 40])
    with pytest.raises(mx.MXNetError, match="weight 'w'"):
        read(model([node("Relu", "w")], [tensor]), tmp_path)


def outside(location: str, **entries: str) -> Any:
    tensor = TensorProto(name="w", data_type=F, dims=[3, 2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return model([node("MatMul", "x", "w")], [tensor])


def test_weights_are_read_from_the_models_folder_alone(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for place in (tmp_path / "secret", folder / "w.bin"):
        place.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    (folder / "link").symlink_to(tmp_path / "secret")
    for location in ("../secret", str(tmp_path / "secret"), "link", "", "none"):
        with pytest.raises(mx.MXNetError, match="a file of the model's folder"):
            read(outside(location), folder)
    for entries in ({"offset": "8"}, {"length": "99"}, {"offset": "-4"}, {"offset": "a"}):
        with pytest.raises(mx.MXNetError, match="weight 'w'"):
            read(outside("w.bin", **entries), folder)
    params = read(outside("w.bin"), folder)[1]
    np.testing.assert_array_equal(params["w"].asnumpy().ravel(), np.arange(6))


def test_functions_that_call_themselves(tmp_path):
    call = helper.make_node("Self", ["a"], ["b"], domain="own")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Self", ["a"], ["b"], [call], opsets)
    graph = helper.make_graph(
        [helper.make_node("Self", ["x"], ["y"], domain="own")], "g", [info("x", 2)], [info("y", 2)]
    )
    proto = helper.make_model(graph, functions=[function], opset_imports=opsets)
    with pytest.raises(mx.MXNetError, match="more than 32 deep"):
        read(proto, tmp_path)


def test_an_export_that_fails_leaves_the_file(tmp_path):
    path = tmp_path / "old.onnx"
    path.write_text("old")
    x = mx.sym.var("x")
    net = mx.sym.Group([mx.sym.gamma(x, name="a"), mx.sym.erfinv(x, name="b"), mx.sym.relu(x)])
    with pytest.raises(mx.MXNetError, match="2 nodes") as caught:
        mx.onnx.export_model(net, {}, [(2,)], onnx_file_path=path)
    assert "'a': operator gamma" in str(caught.value)
    assert "'b': operator erfinv" in str(caught.value)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["old.onnx"]


def test_a_folder_that_is_not_there():
    with pytest.raises(mx.MXNetError, match="cannot write"):
        mx.onnx.export_model(mx.sym.relu(mx.sym.var("x")), {}, [(2,)], onnx_file_path="/no/x.onnx")


def test_onnx_checks_what_is_written(tmp_path):
    path = mx.onnx.export_model(
        mx.sym.relu(mx.sym.var("x")), {}, [(2,)], onnx_file_path=tmp_path / "x.onnx"
    )
    onnx.checker.check_model(path, full_check=True)
