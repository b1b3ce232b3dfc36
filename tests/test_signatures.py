"""Names and parameters of Gluon, the older layers and helpers are those of the real library."""

from __future__ import annotations

import functools
import gzip
import importlib
import json
from pathlib import Path

import pytest
from golden import signatures

FILE = Path(__file__).parent / "golden" / "signatures.json.gz"
RECORD = json.loads(gzip.decompress(FILE.read_bytes()))
NAMED_OTHERWISE = {
    "gluon.block.load_json": "Python's own, of the text",
    "gluon.trainer.KVStore.__init__": "takes its kind: there is no handle of a library",
    "gluon.trainer.KVStore.is_capable": "is static here",
    "gluon.rnn.HybridSequentialRNNCell.__call__": "is every block's",
    "gluon.rnn.ModifierCell.hybrid_forward": "is every hybrid block's",
    "contrib.text.embedding.register": "is every family's, so it takes another name as well",
    "libinfo.find_lib_path": "looks for gnomon's",
    "metric.register": "takes any number of names",
}
LEFT_OUT = {
    "initializer.load": "what MXNet's imports of nd",
    "libinfo.find_conf_path": "no headers belong to it",
    "libinfo.find_include_path": "no headers belong to it",
    "metric.PearsonCorrelation.update_cov": "a step of `update`",
    "metric.PearsonCorrelation.update_variance": "a step of `update`",
}


@pytest.mark.parametrize("path", RECORD["names"])
def test_all_names_are_there(path):
    module = importlib.import_module(f"gnomon.{path}")
    left_out = [name for name in RECORD["names"][path] if f"{path}.{name}" in LEFT_OUT]
    assert [name for name in RECORD["names"][path] if not hasattr(module, name)] == left_out


def agree(found, expected):
    """Whether a parameter has this name and default; None of ours stands for one decided later."""
    plain = len(found) == len(expected) == 2 and found[1] is not None
    return found == expected if plain else found[0] == expected[0]


@pytest.mark.parametrize("path", RECORD["parameters"])
def test_parameters_may_be_given_alike(path):
    module = importlib.import_module(f"gnomon.{path}")
    wrong = {}
    for name, expected in RECORD["parameters"][path].items():
        if f"{path}.{name}" in LEFT_OUT:
            continue
        found = signatures.listed(functools.reduce(getattr, name.split("."), module))
        known = len(found) >= len(expected) and all(map(agree, found, expected))
        if known == (f"{path}.{name}" in NAMED_OTHERWISE):
            wrong[name] = found, expected
    assert wrong == {}


def test_automatic_names_begin_alike():
    for place, expected in RECORD["aliases"].items():
        path, name = place.split(":")
        kind = getattr(importlib.import_module(f"gnomon.{path}"), name)
        assert kind._alias(object.__new__(kind)) == expected, place
