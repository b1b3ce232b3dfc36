"""Splitting: however many calls a form has, and an error where a fallback leads back to itself."""

import pytest

from gnomon.expr.call import Dot, dot
from gnomon.expr.node import Buffer
from gnomon.graph.tasks import split
from gnomon.graph.tasks.form import Form


class Endless(Dot):
    """A product whose fallback is itself."""

    def fallback(self):
        return Endless(self.a, self.b) + 0.0


def test_many_calls_of_one_form_are_split(monkeypatch):
    monkeypatch.setattr(split, "DEEPEST", 4)
    leaves = [Buffer((2, 2)) for _ in range(9)]
    value = leaves[0]
    for leaf in leaves[1:]:
        value = dot(value, leaf) + leaf
    found = split._split(Form([value], leaves), [None], lambda call: True, "chain")
    assert sum(piece.form.has_call for piece in found.pieces) == 8


def test_a_fallback_that_leads_back_to_itself_is_an_error():
    leaves = [Buffer((2, 2)), Buffer((2, 2))]
    form = Form([Endless(*leaves)], leaves)
    with pytest.raises(RecursionError, match="loop: the fallback of a call leads back to itself"):
        split._split(form, [None], lambda call: False, "loop")
