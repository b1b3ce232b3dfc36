"""Every layer against MXNet: values, gradients, names, graphs and files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from golden import gluon_cases, layers

import gnomon as mx
from gnomon.base import ParamError
from gnomon.gluon import SymbolBlock

GOLDEN = Path(__file__).parent.parent / "golden"
ARRAYS = np.load(GOLDEN / "layers.npz")
TOLD = json.loads((GOLDEN / "layers.json").read_text())
CASES = layers.cases(mx)
FAULTS = {("selu", "grad0")}  # MXNet's is wrong below 0: see differences.md
HALF = sorted({key.split("/")[0] for key in ARRAYS.files if "/half/" in key})


def recorded(name: str) -> dict[str, np.ndarray]:
    """What MXNet gave in a case, `name/half` in half precision."""
    keys = [k for k in ARRAYS.files if k.rpartition("/")[0] == name]
    return {key.rpartition("/")[2]: ARRAYS[key] for key in keys}


def checked(name: str, expected: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """What MXNet gave, but for its faults."""
    return [(key, value) for key, value in expected.items() if (name, key) not in FAULTS]


def test_all_layers_are_there():
    assert set(CASES) == set(TOLD)
    assert len(HALF) > 30


UNCOMPARED = {
    "SymbolBlock",  # what the files that are imported say
    "SparseEmbedding",  # needs a Trainer: test_trainer.py
    "ModulatedDeformableConvolution",  # MXNet has it on GPUs alone: test_contrib_cnn.py
}


def public_blocks():
    """The classes of all layers, cells and losses."""
    gluon, more = mx.gluon, mx.gluon.contrib
    for space in (gluon.nn, gluon.rnn, gluon.loss, more.nn, more.cnn, more.rnn):
        for name, value in vars(space).items():
            if isinstance(value, type) and issubclass(value, mx.gluon.Block) and name[0] != "_":
                yield value


def test_no_layer_cell_or_loss_is_without_a_record():
    used = set()

    def walk(block):
        used.update(type(block).__mro__)
        for child in block._children.values():
            walk(child)

    for make, _ in CASES.values():
        walk(make())
    for _, loss, _ in gluon_cases.losses(mx):
        walk(loss)
    for _, make, *_ in (*gluon_cases.layers(mx), *gluon_cases.cells(mx)):
        walk(make())
    for _, cell, _ in gluon_cases.images(mx):
        walk(cell)
    assert {block.__name__ for block in public_blocks() if block not in used} == UNCOMPARED


def test_no_network_of_the_zoo_is_without_a_record():
    with pytest.raises(ParamError) as found:
        mx.gluon.model_zoo.vision.get_model("none")
    assert sorted(gluon_cases.NETWORKS) == re.findall(
        r"[a-z]+[\w.]*\d[\w.]*|alexnet", str(found.value)
    )


@pytest.mark.parametrize("hybrid", [False, True], ids=["plain", "hybrid"])
@pytest.mark.parametrize("name", CASES)
def test_values(name, hybrid):
    found = layers.result(mx, name, *CASES[name], hybrid=hybrid)
    expected = recorded(name)
    assert set(found) == set(expected)
    for key, value in checked(name, expected):
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("hybrid", [False, True], ids=["plain", "hybrid"])
@pytest.mark.parametrize("name", HALF)
def test_values_in_half_precision(name, hybrid):
    found = layers.result(mx, name, *CASES[name], dtype="float16", hybrid=hybrid)
    expected = recorded(f"{name}/half")
    assert set(found) == set(expected)
    for key, value in checked(name, expected):
        assert found[key].dtype == value.dtype, key
        value = value.astype(np.float32)
        found_here = found[key].astype(np.float32)
        np.testing.assert_allclose(found_here, value, rtol=2e-2, atol=2e-2, err_msg=key)


@pytest.mark.parametrize("hybrid", [False, True], ids=["plain", "hybrid"])
@pytest.mark.parametrize("name", CASES)
def test_values_after_a_cast(name, hybrid):
    found = layers.result(mx, name, *CASES[name], hybrid=hybrid, before="float64")
    for key, value in checked(name, recorded(name)):
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", CASES)
def test_names(name):
    found, told = layers.names(mx, name, *CASES[name]), TOLD[name]
    assert found["params"] == told["params"]
    assert found["keys"] == told["keys"]
    assert found["shown"].replace("\n", "") == told["shown"].replace("\n", "")


@pytest.mark.parametrize("name", [name for name in CASES if "nodes" in TOLD[name]])
def test_graph(name, tmp_path):
    block, _, args = layers.start(mx, name, *CASES[name], "float32")
    block.hybridize()
    block(*args)
    block.export(str(tmp_path / "net"))
    found = layers.nodes((tmp_path / "net-symbol.json").read_text())
    assert found == TOLD[name]["nodes"]


def golden_net():
    """The network of the files, its input and its output."""
    net, _, _ = layers.start(mx, "nested", *CASES["nested"], "float32")
    for param in net.collect_params().values():
        param.set_data(param.data() * 0)
    return net, *mx.nd.load(str(GOLDEN / "layers-output.params"))


def test_parameters_by_attributes_load():
    net, x, expected = golden_net()
    net.load_parameters(str(GOLDEN / "layers-attributes.params"))
    np.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("where", ["block", "params"])
def test_parameters_by_names_load(where):
    net, x, expected = golden_net()
    file = str(GOLDEN / "layers-names.params")
    if where == "block":
        net.load_parameters(file)
    else:
        net.collect_params().load(file, restore_prefix="net_")
    np.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


def test_exported_network_loads():
    _, x, expected = golden_net()
    files = [str(GOLDEN / f"layers{end}") for end in ("-symbol.json", "-0000.params")]
    block = SymbolBlock.imports(files[0], "data", files[1])
    np.testing.assert_allclose(block(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["attributes", "names"])
def test_saved_files_are_the_same(kind, tmp_path):
    net, _, _ = golden_net()
    net.load_parameters(str(GOLDEN / "layers-attributes.params"))
    file = tmp_path / "net.params"
    if kind == "attributes":
        net.save_parameters(str(file))
    else:
        net.collect_params().save(str(file), "net_")
    assert file.read_bytes() == (GOLDEN / f"layers-{kind}.params").read_bytes()


def test_model_loads(tmp_path):
    net, x, expected = golden_net()
    for end in (".json", ".params"):
        source = "layers-model.json" if end == ".json" else "layers-attributes.params"
        (tmp_path / f"net-model{end}").write_bytes((GOLDEN / source).read_bytes())
    net.load(str(tmp_path / "net"))
    assert net._active
    np.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


def test_model_is_saved_as_mxnet_does(tmp_path):
    net, x, _ = golden_net()
    net.hybridize()
    net(x)
    net.save(str(tmp_path / "net"))
    found = json.loads((tmp_path / "net-model.json").read_text())
    expected = json.loads((GOLDEN / "layers-model.json").read_text())
    assert shape_of(found) == shape_of(expected)


def shape_of(entry):
    """What a structure says, without the text of symbols."""
    return {
        k: shape_of(v) if isinstance(v, dict) else v
        for k, v in entry.items()
        if k not in ("symbol", "inputs")
    }
