"""The oracle, which says what is right: what several expressions share is computed once."""

from __future__ import annotations

import numpy as np

from gnomon.expr import call
from gnomon.expr.call.dot import Dot
from gnomon.expr.oracle import evaluate, evaluate_all
from gnomon.shadow import Tensor


def test_a_call_in_several_expressions_is_made_once(monkeypatch):
    made, reference = [], Dot.reference

    def counted(self, *operands):
        made.append(self)
        return reference(self, *operands)

    monkeypatch.setattr(Dot, "reference", counted)
    x = Tensor(np.arange(6.0).reshape(2, 3))
    product = call.dot(x, x, transpose_b=True)
    several = [product + 1.0, product * product, x]
    found = evaluate_all(several)
    assert len(made) == 1
    for values, e in zip(found, several, strict=True):
        np.testing.assert_array_equal(values, evaluate(e))
    assert evaluate_all([]) == []
