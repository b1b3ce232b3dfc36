"""Steps in time share what was read of the first, and give what each of its own gives."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.ndarray.core.bounded_cache import LEARNT, RECIPES
from gnomon.runtime.libraries import recurrent

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}
INPUTS, HIDDEN = 3, 4


def gradients(length, mode):
    """The result of a layer with both directions, and the gradients of all that it reads."""
    size = 2 * GATES[mode] * HIDDEN * (INPUTS + HIDDEN + 2)
    shapes = [(length, 2, INPUTS), (size,), *[(2, 2, HIDDEN)] * (2 if mode == "lstm" else 1)]
    values = np.random.default_rng(0)
    arrays = [nd.array(values.uniform(-1, 1, shape)) for shape in shapes]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        out = nd.RNN(*arrays, state_size=HIDDEN, num_layers=1, mode=mode, bidirectional=True)
    out.backward()
    return [out.asnumpy(), *(x.grad.asnumpy() for x in arrays)]


@pytest.mark.parametrize("mode", GATES)
def test_steps_are_the_first_one_at_other_addresses(mode, monkeypatch):
    made = []
    bound = recurrent._bound

    def noted(stores, name):
        made.append(name)
        return bound(stores, name)

    monkeypatch.setattr(recurrent, "_bound", noted)
    gradients(3, mode)
    few = len(made)
    found = gradients(9, mode)
    assert 0 < len(made) == 2 * few
    monkeypatch.setattr(recurrent._Work, "again", lambda w, _, make, name: w.kernel(make(), name))
    RECIPES.forget()
    LEARNT.forget()
    expected = gradients(9, mode)
    assert len(made) > 3 * few
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
