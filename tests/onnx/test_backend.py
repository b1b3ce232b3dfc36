"""ONNX's own tests of operators: none fails; what has no translation is told as such."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.onnx import backend

# tests of a file each that take long, or say the same of many types
SHORT = ("expanded", "bf16", "fp16", "float16", "bfloat16", "attention", "cast", "_ii_")
EVERY = 10  # of the tests, so many are left out for each that runs at every change


def counted(cases) -> Counter[str]:
    found = [backend.outcome(case) for case in cases]
    assert [o for o in found if o.kind == "fail"] == []
    return Counter(o.kind for o in found)


def test_some_operators():
    cases = [c for c in backend.cases() if not any(word in c.name for word in SHORT)]
    counts = counted(cases[::EVERY])
    print(dict(counts))
    assert counts["pass"] > 54


@pytest.mark.long
def test_every_operator():
    counts = counted(backend.cases())
    print(dict(counts))
    assert counts["pass"] >= 1260
