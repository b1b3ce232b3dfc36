"""Gluon's layers: values, gradients, names, and files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import layers
import mxnet as mx
import numpy as np


def make(folder: Path) -> None:
    """Write layers.npz, layers.json and the files of one network."""
    arrays, told = {}, {}
    for name, (block, shapes) in layers.cases(mx).items():
        found = layers.result(mx, name, block, shapes)
        arrays.update((f"{name}/{key}", x.astype(np.float32)) for key, x in found.items())
        try:
            again = layers.result(mx, name, block, shapes, hybrid=True)
            for key, value in found.items():
                np.testing.assert_allclose(again[key], value, rtol=1e-4, atol=1e-5, err_msg=name)
        except (mx.base.MXNetError, AssertionError) as error:
            print(f"{name}: otherwise hybridized: {error}")
        try:
            half = layers.result(mx, name, block, shapes, "float16")
            arrays.update((f"{name}/half/{key}", x) for key, x in half.items())
        except mx.base.MXNetError as error:
            print(f"{name}: not in half precision: {str(error).splitlines()[-1][:100]}")
        told[name] = layers.names(mx, name, block, shapes)
        if hasattr(block(), "export"):
            told[name]["nodes"] = graph(name, block, shapes)
    np.savez_compressed(folder / "layers.npz", **arrays)
    text = json.dumps(told, indent=0, separators=(",", ":"))
    (folder / "layers.json").write_text(text + "\n")
    files(folder)


def graph(name, block, shapes):
    """The operators of the hybridized block."""
    made, _, args = layers.start(mx, name, block, shapes, "float32")
    made.hybridize()
    made(*args)
    return layers.nodes(made._cached_graph[1].tojson())


def files(folder: Path) -> None:
    """The files of one network: parameters by attributes and by names, symbol, model."""
    net, (x,), _ = layers.start(mx, "nested", *layers.cases(mx)["nested"], "float32")
    net.hybridize()
    expected = net(x)
    net.save_parameters(str(folder / "layers-attributes.params"))
    net.collect_params().save(str(folder / "layers-names.params"), "net_")
    with tempfile.TemporaryDirectory() as other:
        net.save(f"{other}/net")
        text = (Path(other) / "net-model.json").read_text()
    (folder / "layers-model.json").write_text(text)
    net.export(str(folder / "layers"))
    mx.nd.save(str(folder / "layers-output.params"), [x, expected])
