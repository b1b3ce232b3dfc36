"""A parameter that asks for very much, as a small file can, is refused or does no harm."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.ops import registry
from gnomon.ops.param import MOST, Param

OPERATORS = sorted({registry.find(name).name for name in registry.names()})
EVERY = 3  # of the operators, so many are left out for each that is tried at every change
LARGE = ["2147483647", "1000000000", str(MOST), f"({'2, ' * 20_000})", "(2147483647, 2147483647)"]
SECONDS = 20  # a hundred times what any of them takes
REFUSED = (GnomonError, TypeError, ValueError, IndexError, KeyError, OverflowError)


def plausible(param: Param) -> str:
    """A value that a parameter takes."""
    if param.choices:
        return str(param.choices[0])
    return {"tuple of ints": "(2, 2)", "string": "x", "dtype": "float32"}.get(param.kind.name, "2")


def cases(name: str) -> list[dict[str, str]]:
    """The attributes of a node with one parameter exchanged for each large value."""
    fields = registry.find(name).fields
    needed = {k: plausible(p) for k, p in fields.items() if p.required}
    asked = [k for k, p in fields.items() if "int" in p.kind.name or p.kind.name == "any value"]
    return [{**needed, k: v} for k in asked for v in LARGE]


def use(name: str, attributes: dict[str, str]) -> Any:
    """Load a file of one node and ask it for names and shapes."""
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": name, "name": "x", "attrs": attributes, "inputs": [[0, 0, 0]]},
    ]
    graph = {"nodes": nodes, "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]]}
    loaded = mx.sym.load_json(json.dumps(graph))
    loaded.list_arguments(), loaded.list_outputs(), loaded.tojson()
    loaded.infer_shape(data=(2, 3, 4, 4))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if k % EVERY else ())
        for k, name in enumerate(OPERATORS)
    ],
)
def test_no_count_takes_all_memory_or_time(name):
    def late(*_: object) -> None:
        raise AssertionError(f"{name} with {attributes}: more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    try:
        for attributes in cases(name):
            signal.alarm(SECONDS)
            with contextlib.suppress(*REFUSED):
                use(name, attributes)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("SliceChannel", {"num_outputs": "2147483647"}),
        ("RNN", {"num_layers": "1000000000", "state_size": "2", "mode": "lstm"}),
        ("Concat", {"num_args": "2147483647"}),
        ("_split_v2", {"indices": "()", "sections": "2147483647"}),
        (
            "_contrib_ROIAlign",
            {"pooled_size": "(2, 2)", "spatial_scale": "1", "sample_ratio": "2147483647"},
        ),
    ],
)
def test_a_small_file_that_asks_for_much_is_refused_at_once(name, attributes):
    began = time.monotonic()
    with pytest.raises(GnomonError, match=f"<= {MOST}"):
        use(name, attributes)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("kind", [mx.gluon.rnn.LSTM, mx.rnn.FusedRNNCell])
def test_layers_of_recurrent_networks_are_bounded(kind):
    with pytest.raises(GnomonError, match=f"num_layers.*<= {MOST}, got 9"):
        kind(2, num_layers=9_000_000_000)


def test_numbers_that_would_take_for_ever_are_refused_or_do_no_harm():
    x = mx.nd.array([[[[1.0]], [[2.0]], [[3.0]]]])
    mean = (1 + 4 + 9) / 50_000
    found = mx.nd.LRN(x, nsize=50_000, alpha=1.0, beta=1.0, knorm=0.0).asnumpy().ravel()
    np.testing.assert_allclose(found, np.array([1, 2, 3]) / mean, rtol=1e-5)
    for power in (mx.nd.power, mx.sym.power):
        assert power(3, 5) == 243
        with pytest.raises(OverflowError):
            power(3, 1 << 70)
    with pytest.raises(GnomonError, match="length"), pytest.warns(match="rnn_unroll"):
        mx.rnn.rnn_unroll(mx.rnn.RNNCell(2), 1 << 62)
    with pytest.raises(GnomonError, match="range_max"):
        mx.nd.contrib.rand_zipfian(mx.nd.ones((2,)), 3, 0)
    with pytest.raises(GnomonError, match="range_max"):
        mx.sym.contrib.rand_zipfian(mx.sym.var("x"), 3, 0)
