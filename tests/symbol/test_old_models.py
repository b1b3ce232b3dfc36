"""Models of MXNet 0.5 to 1.8, symbol and parameters: loaded, run and differentiated as by 1.9.1."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from golden import old_models

import gnomon as mx

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED = json.loads(gzip.decompress((GOLDEN / "old_models.json.gz").read_bytes()))
ALIASES = {"Convolution_v1": "Convolution", "BatchNorm_v1": "BatchNorm"}  # gnomon has one each


@pytest.mark.parametrize(("name", "version"), old_models.CASES)
def test_as_the_newest_version_loads_it(name, version, tmp_path):
    found = old_models.checked(mx, tmp_path, name, version)
    wanted = RECORDED[f"{name} {version}"]
    for key in ("arguments", "auxiliary", "outputs", "attributes"):
        assert found[key] == wanted[key], key
    for node in wanted["json"]["nodes"]:
        node["op"] = ALIASES.get(node["op"], node["op"])
    assert found["json"] == wanted["json"]
    for ours, theirs in zip(found["predicted"], wanted["predicted"], strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)
    assert found["gradients"].keys() == wanted["gradients"].keys()
    for key, total in wanted["gradients"].items():
        np.testing.assert_allclose(found["gradients"][key], total, 1e-3, 1e-4, err_msg=key)
