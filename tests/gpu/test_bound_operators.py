"""Every operator, bound on a GPU, gives in some steps what it gives bound on the processor."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from tests.gpu.test_operators import FIRST
from tests.ops.test_golden import RECORDS, function, in_place, inputs, settings

STEPS = 3  # the second captures a graph, the third launches it
TOLERANCE = {"float16": 2e-2, "bfloat16": 2e-2}
#: one operator in so many; all of them with `-m long`
STRIDE = 12
EVERY = [n for n in FIRST if not in_place(RECORDS[n])]
FEW = EVERY[::STRIDE]


def stepped(record, ctx):
    """Outputs, gradients and states of each step of a record's operator."""
    mx.random.seed(3)
    arrays = {k: mx.nd.array(v, ctx=ctx, dtype=v.dtype) for k, v in inputs(record).items()}
    operands = map(mx.sym.Variable, arrays)
    symbol = function(mx.sym, record["op"])(*operands, **settings(record))
    args, states = (
        {n: arrays[n] for n in names}
        for names in (symbol.list_arguments(), symbol.list_auxiliary_states())
    )
    grads = {n: mx.nd.ones_like(arrays[n]) for n in record.get("grad", [])}
    request = "add" if record["train"] else "write"
    bound = symbol.bind(ctx, args, grads, dict.fromkeys(grads, request), states)
    numbers, found = np.random.RandomState(0), []
    for _ in range(STEPS):
        bound.forward(is_train=record["train"])
        outputs = bound.outputs
        if grads:
            drawn = [numbers.randn(*x.shape) for x in outputs]
            pairs = zip(drawn, outputs, strict=True)
            bound.backward([mx.nd.array(v, ctx=ctx, dtype=x.dtype) for v, x in pairs])
        found += [x.asnumpy() for x in (*outputs, *grads.values(), *states.values())]
    return found


def agrees(number):
    record = RECORDS[number]
    found, want = (stepped(record, ctx) for ctx in (mx.gpu(0), mx.cpu()))
    for ours, theirs in zip(found, want, strict=True):
        wide = np.float64 if theirs.dtype.kind not in "iub" else theirs.dtype
        got, expected = ours.astype(wide), theirs.astype(wide)
        bound = TOLERANCE.get(theirs.dtype.name, 1e-4)
        largest = np.max(np.abs(expected[np.isfinite(expected)]), initial=1).astype(wide)
        np.testing.assert_allclose(got, expected, bound, bound * largest)


@pytest.mark.parametrize("number", FEW, ids=[RECORDS[n]["id"] for n in FEW])
def test_an_operator(number):
    agrees(number)


REST = sorted(set(EVERY) - set(FEW))


@pytest.mark.long
@pytest.mark.parametrize("number", REST, ids=[RECORDS[n]["id"] for n in REST])
def test_every_operator(number):
    agrees(number)
