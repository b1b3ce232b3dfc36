"""Sorting, looking up by several indices, sequences: as recorded, and every request."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import statements

import gnomon as mx
from gnomon import nd

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "lookup.json").read_text())


@pytest.mark.parametrize("case", statements.cases("lookup"))
def test_statement(case):
    statements.check(mx, case, RECORDED[case])


LENGTHS = [1, 3, 2]
OPERATORS = {
    "sort": ({"data": (3, 4)}, {"axis": 0}),
    "argsort": ({"data": (3, 4)}, {}),
    "topk": ({"data": (3, 4)}, {"k": 2, "ret_typ": "value"}),
    "gather_nd": ({"data": (3, 4), "indices": [[0, 2, 2], [1, 3, 3]]}, {}),
    "scatter_nd": ({"data": (3,), "indices": [[0, 2, 1], [1, 3, 3]]}, {"shape": (3, 4)}),
    "diag": ({"data": (3, 4)}, {"k": 1}),
    "SequenceMask": (
        {"data": (4, 3, 2), "sequence_length": LENGTHS},
        {"use_sequence_length": True},
    ),
    "SequenceLast": (
        {"data": (3, 4, 2), "sequence_length": LENGTHS},
        {"use_sequence_length": True, "axis": 1},
    ),
    "SequenceReverse": (
        {"data": (4, 3), "sequence_length": LENGTHS},
        {"use_sequence_length": True},
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPERATORS)
def test_requests_and_derivatives(name, dtype):
    inputs, params = OPERATORS[name]
    draw = np.random.default_rng(4)
    values = {
        k: draw.permutation(int(np.prod(v))).reshape(v) * 0.5 if isinstance(v, tuple) else v
        for k, v in inputs.items()
    }
    arrays = {k: nd.array(v, dtype=dtype) for k, v in values.items()}
    net = getattr(mx.sym, name)(*map(mx.sym.Variable, arrays), **params)
    gradients = {}
    for req in ("write", "add", "null"):
        grad = nd.full(arrays["data"].shape, 7, dtype=dtype)
        bound = net.bind(mx.cpu(), arrays, {"data": grad}, {"data": req})
        out = bound.forward(is_train=True)[0]
        head = nd.array(np.arange(out.size).reshape(out.shape), dtype=out.dtype)
        bound.backward(head)
        gradients[req] = grad.asnumpy()
    assert (gradients["null"] == 7).all()
    np.testing.assert_array_equal(gradients["add"], gradients["write"] + 7)
    step, at = 0.125, (0,) * arrays["data"].ndim
    moved = arrays["data"].copy()
    moved[at] += step
    other = net.bind(mx.cpu(), {**arrays, "data": moved}).forward()[0]
    slope = ((other - out).asnumpy() * head.asnumpy()).sum() / step
    np.testing.assert_allclose(gradients["write"][at], slope, 1e-4, 1e-4)


def test_not_a_number_comes_last():
    x = nd.array([3, float("nan"), 1, 2])
    np.testing.assert_array_equal(x.sort().asnumpy(), [1, 2, 3, np.nan])
    np.testing.assert_array_equal(x.sort(is_ascend=False).asnumpy(), [3, 2, 1, np.nan])


def test_what_is_refused():
    with pytest.raises(mx.MXNetError, match="topk: argument 'k': expected at most 2"):
        nd.topk(nd.ones((3, 2)), k=3)
    with pytest.raises(mx.MXNetError, match="gather_nd: argument 'indices'"):
        nd.gather_nd(nd.ones((3,)), nd.zeros((2, 1)))
    with pytest.raises(mx.MXNetError, match="SequenceMask: argument 'axis': expected 0 or 1"):
        nd.SequenceMask(nd.ones((2, 2)), axis=2)
