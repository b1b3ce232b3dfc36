"""Losses, recurrent layers and the zoo of Gluon against the real library."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ParamError

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import gluon_cases as cases  # noqa: E402

RECORD = json.loads(gzip.decompress((GOLDEN / "gluon_cases.json.gz").read_bytes()))
CELLS = dict(cases.cells(mx))
LAYERS = {name: (make, layout) for name, make, layout in cases.layers(mx)}


WAYS = {
    "plain": cases.How(),
    "hybrid": cases.How(True),
    "after a cast": cases.How(True, before="float64"),
}


def quick_and_long(titles):
    """Titles of cells and layers with ways to compute; what most give after a cast is long."""
    for title in titles:
        for how in WAYS:
            quick = how in ("plain", "hybrid") or title in ("LSTMCell NTC True", "LSTM")
            yield pytest.param(title, how, marks=() if quick else pytest.mark.long)


def close(found, expected, atol=2e-4):
    """Lists of names and numbers are alike."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if b and isinstance(b[0], float):
            np.testing.assert_allclose(a, b, rtol=max(1e-3, atol), atol=atol)
        else:
            assert a == b


@pytest.mark.parametrize("name", cases.NETWORKS)
def test_networks_are_composed_alike(name):
    found = json.loads(json.dumps(cases.described(mx, name)))
    for mine, theirs in zip(found, RECORD["networks"][name], strict=True):
        assert mine == theirs


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", RECORD["losses"])
def test_losses(name, hybrid):
    loss, given = next(found for title, *found in cases.losses(mx) if title == name)
    how = cases.How(hybrid and name != "SDML")
    close(cases.measured(mx, loss, given, how), RECORD["losses"][name])
    half = RECORD["half"][name]
    if half is not None:
        close(cases.measured(mx, loss, given, how._replace(dtype="float16")), half, 2e-2)


@pytest.mark.parametrize(("name", "how"), [*quick_and_long(LAYERS)])
def test_recurrent_layers(name, how):
    close(cases.run(mx, *LAYERS[name], WAYS[how]), RECORD["layers"][name])


@pytest.mark.parametrize(("title", "how"), [*quick_and_long(RECORD["cells"])])
def test_recurrent_cells(title, how):
    name, layout, valid = title.split()
    found = cases.unrolled(mx, CELLS[name], layout, valid == "True", WAYS[how])
    close(found, RECORD["cells"][title])


@pytest.mark.parametrize("how", WAYS)
def test_convolutional_cells(how):
    for name, cell, shape in cases.images(mx):
        found = cases.stepped(mx, cell, shape, WAYS[how])
        close(found, RECORD["images"][name])


@pytest.mark.parametrize(
    ("merge", "kind"), [(None, mx.nd.NDArray), (True, mx.nd.NDArray), (False, list)]
)
@pytest.mark.parametrize("length", [None, [2, 5]])
def test_the_form_of_what_variational_dropout_gives(merge, kind, length):
    cell = mx.gluon.contrib.rnn.VariationalDropoutCell(mx.gluon.rnn.LSTMCell(4), 0.1, 0.0, 0.1)
    cell.initialize()
    length = None if length is None else mx.nd.array(length)
    inputs = mx.nd.ones((2, 5, 3))
    found, _ = cell.unroll(5, inputs, merge_outputs=merge, valid_length=length)
    assert isinstance(found, kind)
    whole = mx.nd.stack(*found, axis=1) if merge is False else found
    assert whole.shape == (2, 5, 4)
    assert length is None or not whole.asnumpy()[0, 2:].any()


@pytest.mark.parametrize("layout", ["TNC", "NTC"])
def test_a_loop_over_steps(layout):
    cell = mx.gluon.rnn.LSTMCell(4, input_size=3)
    cell.initialize(mx.init.One())
    x = mx.nd.arange(30).reshape((5, 2, 3)) / 30
    x = x if layout == "TNC" else x.swapaxes(0, 1)
    unroll = mx.gluon.contrib.rnn.dynamic_unroll
    expected = {None: (27.224354, 7.9759297, 29.016823), (2, 5): (16.054136, 5.2702703, 17.558521)}
    for length, sums in expected.items():  # as in MXNet
        valid = None if length is None else mx.nd.array(length)
        outputs, states = unroll(cell, x, cell.begin_state(2), layout=layout, valid_length=valid)
        assert outputs.shape == (*x.shape[:2], 4)
        np.testing.assert_allclose([a.sum().asscalar() for a in (outputs, *states)], sums, 1e-6)

    class Looped(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, *states):
            outputs, states = unroll(self.cell, x, list(states), layout=layout)
            return [outputs, *states]

    net = Looped()
    net.cell = cell
    net.hybridize()
    found = [a.sum().asscalar() for a in net(x, *cell.begin_state(2))]
    np.testing.assert_allclose(found, expected[None], 1e-6)
    with mx.autograd.record():
        outputs, _ = unroll(cell, x, None, 0, 0.5, layout=layout)
    dropped = (outputs.asnumpy() == 0).all(axis=layout.find("T"))
    assert (dropped == (outputs.asnumpy() == 0).any(axis=layout.find("T"))).all()
    with pytest.raises(ParamError, match=r"dynamic_unroll: argument 'inputs'.*got . arrays"):
        unroll(cell, list(x), None)
