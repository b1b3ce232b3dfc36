"""Whole networks as ONNX files: written, run by ONNX's own Python, read again; and the API."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import gnomon as mx
from gnomon import cli
from gnomon.gluon import nn, rnn
from gnomon.gluon.model_zoo.vision.names import MODELS
from tests.onnx.roundtrip import check, reference

RNG = np.random.default_rng(3)


def reals(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def round_trip(net: Any, x: np.ndarray[Any, Any], path: Path, oracle: Any = reference) -> Any:
    """Export a block by way of its files, compare with an oracle, and with the block read back."""
    net.hybridize()
    expected = net(mx.nd.array(x)).asnumpy()
    net.export(str(path / "net"))
    symbol, params = f"{path}/net-symbol.json", f"{path}/net-0000.params"
    file = str(path / "net.onnx")
    mx.onnx.export_model(symbol, params, [x.shape], onnx_file_path=file, dynamic=True)
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    back = mx.contrib.onnx.import_to_gluon(file, mx.cpu())
    found = back(mx.nd.array(x)).asnumpy()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)
    if oracle is not None:
        by_onnx = oracle(model, {"data": x})[0]
        np.testing.assert_allclose(by_onnx / scale, expected / scale, atol=1e-4)
    return model


def made(name: str) -> Any:
    net = mx.gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    return net


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "resnet18_v2"])
def test_networks_of_the_zoo(name, tmp_path):
    model = round_trip(made(name), reals(1, 3, 64, 64), tmp_path, oracle=None)
    batch = model.graph.input[0].type.tensor_type.shape.dim[0]
    assert not batch.HasField("dim_value")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_network_of_the_zoo(name, tmp_path):
    size = 299 if "inception" in name else 224
    round_trip(made(name), reals(1, 3, size, size), tmp_path, oracle=None)


def test_a_small_network_by_others(tmp_path):
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(4, 3, padding=1),
        nn.BatchNorm(),
        nn.PReLU(),
        nn.MaxPool2D(),
        nn.Dense(5, activation="tanh"),
    )
    net.initialize(mx.init.Xavier())
    model = round_trip(net, reals(2, 3, 8, 8), tmp_path)
    assert [n.op_type for n in model.graph.node][:3] == ["Conv", "BatchNormalization", "PRelu"]


@pytest.mark.parametrize("kind", [rnn.LSTM, rnn.GRU, rnn.RNN])
def test_recurrent_blocks(kind, tmp_path):
    net = nn.HybridSequential()
    net.add(kind(6, num_layers=2, bidirectional=True), nn.Dense(3, flatten=False))
    net.initialize(mx.init.Xavier())
    round_trip(net, reals(5, 2, 4), tmp_path, oracle=None)


def encoder() -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """One layer of a transformer's encoder over (length, batch, 8), and its parameters."""
    x, sym = mx.sym.var("data"), mx.sym

    def fc(y: Any, n: int, name: str) -> Any:
        return sym.FullyConnected(y, num_hidden=n, flatten=False, name=name)

    qkv = fc(x, 24, "qkv")
    scores = sym.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2)
    weights = sym.Dropout(sym.softmax(scores))
    mixed = sym.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=2)
    y = sym.LayerNorm(x + fc(mixed, 8, "out"), name="ln")
    z = fc(sym.LeakyReLU(fc(y, 16, "up"), act_type="gelu"), 8, "down")
    net = sym.elemwise_add(y, z, name="encoded")
    shapes = dict(zip(net.list_arguments(), net.infer_shape(data=(5, 2, 8))[0], strict=True))
    return net, {n: reals(*s) for n, s in shapes.items() if n != "data"}


def test_an_encoder(tmp_path):
    net, params = encoder()
    check(net, {"data": reals(5, 2, 8)}, params)


def test_sizes_that_are_left_open(tmp_path):
    net, params = encoder()
    given = {n: mx.nd.array(a) for n, a in params.items()}
    file = str(tmp_path / "net.onnx")
    shapes = [("length", "batch", 8)]
    mx.onnx.export_model(
        net, given, [(5, 2, 8)], onnx_file_path=file, dynamic=True, dynamic_input_shapes=shapes
    )
    assert mx.contrib.onnx.get_model_metadata(file) == {
        "input_tensor_data": [("data", ("length", "batch", 8), 1)],
        "output_tensor_data": [("encoded", ("length", "batch", 8))],
    }
    for length, batch in ((5, 2), (3, 4), (1, 1)):
        x = reals(length, batch, 8)
        expected = net.eval(data=mx.nd.array(x), **given)[0].asnumpy()
        found = reference(onnx.load(file), {"data": x})[0]
        np.testing.assert_allclose(found, expected, atol=1e-4)
        how = {"data": (length, batch, 8)}
        back, arguments, _ = mx.contrib.onnx.import_model(file, input_shapes=how)
        found = back.eval(data=mx.nd.array(x), **arguments)[0].asnumpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_module(tmp_path):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    net = mx.sym.SoftmaxOutput(mx.sym.BatchNorm(net, name="bn"), name="softmax")
    module = mx.mod.Module(net)
    module.bind([("data", (2, 4))], [("softmax_label", (2,))], for_training=False)
    module.init_params(mx.init.Xavier())
    module.save_checkpoint(str(tmp_path / "m"), 0)
    file = mx.contrib.onnx.export_model(
        f"{tmp_path}/m-symbol.json",
        f"{tmp_path}/m-0000.params",
        [(2, 4)],
        np.float32,
        f"{tmp_path}/m.onnx",
    )
    x = mx.nd.array(reals(2, 4))
    module.forward(mx.io.DataBatch([x]), is_train=False)
    back, arguments, states = mx.contrib.onnx.import_model(file)
    assert sorted(states) == ["bn_moving_mean", "bn_moving_var"]
    again = mx.mod.Module(back, label_names=None)
    again.bind([("data", (2, 4))], for_training=False)
    again.set_params(arguments, states)
    again.forward(mx.io.DataBatch([x]), is_train=False)
    pair = (module.get_outputs()[0].asnumpy(), again.get_outputs()[0].asnumpy())
    np.testing.assert_allclose(*pair, rtol=1e-5)


def test_older_opsets_mean_what_they_say(tmp_path):
    """Softmax of opset 11 joins the axes behind; Unsqueeze and Clip have attributes."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Unsqueeze", ["x"], ["a"], axes=[0]),
        helper.make_node("Clip", ["a"], ["b"], min=-1.0, max=1.0),
        helper.make_node("Softmax", ["b"], ["y"], axis=2),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", 1, (2, 3, 4))], [info("y", 1, (1, 2, 3, 4))])
    path = tmp_path / "old.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)]), path)
    net, _, _ = mx.contrib.onnx.import_model(path)
    x = reals(2, 3, 4)
    powers = np.exp(np.clip(x, -1, 1))
    expected = (powers / powers.sum((1, 2), keepdims=True))[None]
    found = net.eval(x=mx.nd.array(x))[0].asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_large_models_keep_their_weights_beside(tmp_path):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    params = {"fc_weight": mx.nd.array(reals(3, 4)), "fc_bias": mx.nd.array(reals(3))}
    file = str(tmp_path / "net.onnx")
    mx.onnx.export_model(net, params, [(2, 4)], onnx_file_path=file, large_model=True)
    assert (tmp_path / "net.onnx.data").stat().st_size >= 60
    onnx.checker.check_model(file)
    _, arguments, _ = mx.contrib.onnx.import_model(file)
    for name, array in params.items():
        np.testing.assert_array_equal(arguments[name].asnumpy(), array.asnumpy())


def test_what_is_missing_is_told():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    params = {"fc_weight": mx.nd.ones((3, 4)), "fc_bias": mx.nd.ones((3,))}
    with pytest.raises(mx.MXNetError, match=r"in_shapes.*one for each input: data, got 2"):
        mx.onnx.export_model(net, params, [(2, 4), (1,)])
    with pytest.raises(mx.MXNetError, match="a shape and a dtype for each of data"):
        mx.onnx.export_model(net, params)
    with pytest.raises(mx.MXNetError, match="params"):
        mx.onnx.export_model(net, 3, [(2, 4)])
    with pytest.raises(mx.MXNetError, match="sym"):
        mx.onnx.export_model(3, params, [(2, 4)])
    with pytest.raises(mx.MXNetError, match="opset_version"):
        mx.onnx.get_operator_support(12)


def test_without_the_package(tmp_path):
    """The error names the extra."""
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import gnomon as mx\n"
        "try: mx.onnx.export_model(mx.sym.relu(mx.sym.var('x')), {}, [(2,)])\n"
        "except mx.MXNetError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'gnomon[onnx]'" in done.stdout


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (
            mx.onnx.export_model,
            "sym params in_shapes in_types onnx_file_path verbose dynamic dynamic_input_shapes "
            "run_shape_inference input_type input_shape",
        ),
        (mx.onnx.get_operator_support, "opset_version"),
        (mx.contrib.onnx.import_model, "model_file"),
        (mx.contrib.onnx.import_to_gluon, "model_file ctx"),
        (mx.contrib.onnx.get_model_metadata, "model_file"),
    ],
)
def test_arguments_are_those_of_mxnet(function, names):
    given = list(inspect.signature(function).parameters)
    assert given[: len(names.split())] == names.split()


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    net = nn.Dense(3)
    net.initialize()
    net.hybridize()
    x = mx.nd.array(reals(2, 4))
    expected = net(x).asnumpy()
    net.export("m")
    words = "onnx export m-symbol.json m-0000.params --shapes data:2x4 -o m.onnx".split()
    assert cli.main(words) == 0
    assert cli.main(["onnx", "import", "m.onnx", "--prefix", "back"]) == 0
    assert capsys.readouterr().out.split() == ["m.onnx", "back-symbol.json", "back-0000.params"]
    back = mx.gluon.SymbolBlock.imports("back-symbol.json", ["data"], "back-0000.params")
    np.testing.assert_allclose(back(x).asnumpy(), expected, rtol=1e-6)
    assert cli.main(["onnx", "export", "none", "none", "--shapes", "data:2", "-o", "x"]) == 1
    assert cli.main(words[:4] + ["--shapes", "data", "-o", "x"]) == 1
