"""Composition, inference and JSON as the real library has them; older JSON is read."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from golden import graphs

import gnomon as mx

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED = json.loads((GOLDEN / "graphs.json").read_text())
LEGACY = json.loads((GOLDEN / "legacy.json").read_text())

every = pytest.mark.parametrize("name", graphs.GRAPHS)


def compose(name):
    with mx.name.NameManager():
        return graphs.GRAPHS[name](mx)


def plain(result):
    """Shapes or types as JSON has them."""
    if result is None or isinstance(result, int):
        return result
    if isinstance(result, list | tuple):
        return [plain(r) for r in result]
    return np.dtype(result).name


def ask(function, known):
    """What an inference gives, or the word error; shapes come in as tuples."""
    known = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(**known))
        except mx.MXNetError:
            return "error"


@every
def test_lists_of_names(name):
    symbol, recorded = compose(name), RECORDED[name]
    assert symbol.list_arguments() == recorded["arguments"]
    assert symbol.list_outputs() == recorded["outputs"]
    assert symbol.list_auxiliary_states() == recorded["auxiliary"]
    assert symbol.get_internals().list_outputs() == recorded["internals"]
    assert symbol.name == recorded["name"]


@every
def test_json_and_attributes(name):
    symbol, recorded = compose(name), RECORDED[name]
    assert json.loads(symbol.tojson()) == json.loads(recorded["json"])
    assert symbol.attr_dict() == recorded["attributes"]
    back = mx.sym.load_json(recorded["json"])
    assert json.loads(back.tojson()) == json.loads(recorded["json"])


@every
def test_inference(name):
    symbol = compose(name)
    for known, result in RECORDED[name]["shapes"]:
        assert ask(symbol.infer_shape, known) == result, known
    for known, result in RECORDED[name]["types"]:
        assert ask(symbol.infer_type, known) == result, known


def refines(ours, theirs):
    """Do we know all that is known in `theirs`, or more? 0 and () are unknown."""
    return not theirs or (
        len(ours) == len(theirs) and all(b in (0, a) for a, b in zip(ours, theirs, strict=True))
    )


@every
def test_partial_inference(name):
    symbol = compose(name)
    for known, result in RECORDED[name]["partial"]:
        found = ask(symbol.infer_shape_partial, known)
        if "error" in (found, result):
            assert found == result, known
            continue
        for ours, theirs in zip(found, result, strict=True):
            assert len(ours) == len(theirs)
            assert all(map(refines, ours, theirs)), known


@pytest.mark.parametrize("record", LEGACY, ids=[f"{r['graph']}-{r['style']}" for r in LEGACY])
def test_older_json_is_read(record):
    symbol, recorded = mx.sym.load_json(record["json"]), RECORDED[record["graph"]]
    assert symbol.list_arguments() == recorded["arguments"]
    assert symbol.list_outputs() == recorded["outputs"]
    assert symbol.list_auxiliary_states() == recorded["auxiliary"]
    known, result = recorded["shapes"][0]
    if record["graph"] != "normalised":  # 0.8 cannot say a variable's shape
        assert ask(symbol.infer_shape, known) == result


@pytest.mark.parametrize("record", LEGACY, ids=[f"{r['graph']}-{r['style']}" for r in LEGACY])
def test_attributes_of_older_json(record):
    assert mx.sym.load_json(record["json"]).attr_dict() == record["attrs"]
