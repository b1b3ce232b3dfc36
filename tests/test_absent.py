"""Names that are not there: MXNet's are told to be on their way, others get the nearest."""

import importlib
import importlib.util
import pkgutil
import subprocess
import sys

import pytest

import gnomon as mx
import gnomon.compat
from gnomon.compatibility import absent
from gnomon.ops import registry

NAMES = [(m, n) for m, names in absent.names().items() if m != "operators" for n in sorted(names)]


def lookup(module, name):
    """The attribute, or what the AttributeError says; None where the module is not there."""
    try:
        found = importlib.import_module(f"gnomon.{module}".rstrip("."))
    except ImportError:
        return None
    try:
        return getattr(found, name)
    except AttributeError as error:
        return str(error)


REFUSING = ("", "initializer", "io", "metric", "module", "ndarray", "optimizer", "symbol")


@pytest.mark.parametrize("module", REFUSING)
def test_every_public_name_is_there_or_on_its_way(module):
    names = [(m, n) for m, n in NAMES if m.partition(".")[0] == module]
    found = [lookup(m, n) for m, n in names]
    assert names
    assert None not in found
    wrong = [f for f in found if isinstance(f, str) and "has no attribute" in f]
    assert [f for f in wrong if "is not there yet" not in f] == []


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda: mx.sym.softmx, "did you mean 'softmax'"),
        (lambda: mx.nd.sparse.dott, "did you mean 'dot'"),
        (lambda: mx.io.NDArayIter, "did you mean 'NDArrayIter'"),
        (lambda: mx.optimizer.Adan, "did you mean 'Adam'"),
        (lambda: mx.metric.Acuracy, "did you mean 'Accuracy'"),
        (lambda: mx.init.Xavie, "did you mean 'Xavier'"),
        (lambda: mx.module.Modul, "did you mean 'Module'"),
        (lambda: mx.ndaray, "did you mean 'ndarray'"),
        (lambda: mx.gluon.Trainr, "did you mean 'Trainer'"),
        (lambda: mx.gluon.contrib.estimtor, "did you mean 'estimator'"),
        (lambda: mx.runtime.Feature_list, "did you mean 'feature_list'"),
        (lambda: mx.th, "Lua Torch is not there yet"),
        (lambda: mx.linalg, "there is mx.ndarray.linalg"),
        (lambda: mx.zeros, "there is mx.ndarray.zeros"),
        (lambda: mx.symbol.inverse, "there is mx.symbol.linalg.inverse"),
        (lambda: mx.gluon.Dense, "there is mx.gluon.nn.Dense"),
    ],
)
def test_misspelt_names(look, words):
    with pytest.raises(AttributeError, match=words):
        look()


def test_mxnets_own_names(monkeypatch):
    table = {**absent.names(), "symbol": {"Someday"}, "operators": {"_contrib_Someday"}}
    monkeypatch.setattr(absent, "names", lambda: table)
    with pytest.raises(AttributeError, match="MXNet's Someday is not there yet"):
        _ = mx.sym.Someday
    with pytest.raises(mx.MXNetError, match="'_contrib_Someday': MXNet's is not there yet"):
        registry.find("_contrib_Someday")
    with pytest.raises(mx.MXNetError, match="did you mean 'Convolution'"):
        registry.find("Convolutoin")


def test_operators_of_mxnets_quantisation_are_on_their_way():
    for space in (mx.nd.contrib, mx.sym.contrib):
        for name in ("quantize_v2", "quantized_conv", "dequantize", "requantize"):
            with pytest.raises(AttributeError, match="MXNet's quantization is not there yet"):
                getattr(space, name)
    with pytest.raises(mx.MXNetError, match="MXNet's quantization is not there yet"):
        registry.find("_contrib_quantized_conv")


def test_names_and_files_of_a_package_are_there_before_they_are_imported():
    program = """
import sys
import gnomon as mx
print({"CSVIter", "DataBatch", "MXDataIter"} <= set(dir(mx.io)), "gnomon.io.mnist" in sys.modules)
from gnomon.executor import arrays
print(mx.io.CSVIter.__module__, mx.io.mnist.__name__, arrays.__name__)
try:
    mx.io.CSVItr
except AttributeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "True False",
        "gnomon.io.csv_iter gnomon.io.mnist gnomon.executor.arrays",
        "module 'gnomon.io' has no attribute 'CSVItr'; did you mean 'CSVIter' or 'LibSVMIter'?",
    ]


def test_dunder_names_are_plain():
    with pytest.raises(AttributeError) as caught:
        _ = mx.nd.__wrapped__
    assert str(caught.value) == "module 'gnomon.ndarray' has no attribute '__wrapped__'"
    assert not hasattr(mx.optimizer, "__wrapped__")


@pytest.mark.parametrize("path", absent.ELSEWHERE)
def test_modules_that_stand_elsewhere_are_found_under_mxnets_path(path):
    module = pkgutil.resolve_name(f"gnomon.{absent.ELSEWHERE[path]}")
    assert pkgutil.resolve_name(f"mxnet.{path}") is module
    parent, _, name = path.rpartition(".")
    if importlib.util.find_spec(f"gnomon.{path}") is None:  # no part of ours is called so
        assert getattr(importlib.import_module(f"gnomon.{parent}".rstrip(".")), name) is module


GRADIENTS = ("gradientmultiplier", "hawkesll", "index_copy", "quadratic")  # of operators there
OUTSIDE = {
    "base": {"MXCallbackList", "add_fileline_to_docstring"},  # of its C library, of its pages
    "operator": {"MXCallbackList"},
    "ndarray.contrib": {f"backward_{n}" for n in GRADIENTS},
    "symbol.contrib": {f"backward_{n}" for n in GRADIENTS},
}


def test_no_name_in_scope_is_missing():
    """The tables of MXNet's names leave out what is not built: NumPy's manner, quantization."""
    missing: dict[str, set[str]] = {}
    for module, name in NAMES:
        found = lookup(module, name)
        if found is None or (isinstance(found, str) and "has no attribute" in found):
            missing.setdefault(module, set()).add(name)
    assert missing == OUTSIDE
    operators = absent.names()["operators"]
    assert [n for n in sorted(operators) if not registry.has(n)] == []
    assert len(NAMES) > 2000
    assert len(operators) > 500


def test_what_stands_elsewhere_is_found_by_mxnets_path():
    assert mx.optimizer.optimizer.NDabs is mx.optimizer.NDabs is mx.nd.abs
    assert mx.optimizer.optimizer.NDnorm is mx.nd.norm
    assert mx.kv.kvstore_server.KVStoreServer is mx.kv.KVStoreServer


def test_what_the_networks_of_the_zoo_are_made_of_has_mxnets_names_and_forms():
    vision = mx.gluon.model_zoo.vision
    kind, layers, channels = vision.resnet.resnet_spec[50]
    block = vision.resnet.resnet_block_versions[1][kind]
    network = vision.resnet.resnet_net_versions[1]
    assert (network, block) == (vision.ResNetV2, vision.BottleneckV2)
    assert (layers, channels) == ([3, 4, 6, 3], [64, 256, 512, 1024, 2048])
    assert vision.vgg.vgg_spec[11] == ([1, 1, 2, 2, 2], [64, 128, 256, 512, 512])
    assert vision.densenet.densenet_spec[121] == (64, 32, [6, 12, 24, 16])
