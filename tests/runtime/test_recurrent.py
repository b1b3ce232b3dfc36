"""Steps in time are those of the first at other addresses, and give what each made apart gives."""

from __future__ import annotations

import numpy as np
import pytest

from gnomon import autograd, nd
from gnomon.ndarray.core.bounded_cache import LEARNT, RECIPES
from gnomon.runtime.libraries import recurrent_work

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1}
INPUTS, HIDDEN = 3, 4


def gradients(length, mode, batch=2):
    """The result of a layer with both directions, and the gradients of all that it reads."""
    size = 2 * GATES[mode] * HIDDEN * (INPUTS + HIDDEN + 2)
    shapes = [
        (length, batch, INPUTS),
        (size,),
        *[(2, batch, HIDDEN)] * (2 if mode == "lstm" else 1),
    ]
    values = np.random.default_rng(0)
    arrays = [nd.array(values.uniform(-1, 1, shape)) for shape in shapes]
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        out = nd.RNN(*arrays, state_size=HIDDEN, num_layers=1, mode=mode, bidirectional=True)
    out.backward()
    return [out.asnumpy(), *(x.grad.asnumpy() for x in arrays)]


class Forgetful(dict):
    """Keeps nothing."""

    def __setitem__(self, key, value):
        pass


@pytest.mark.parametrize("batch", [2, 40])  # all rows at once, and shared out among threads
@pytest.mark.parametrize("mode", GATES)
def test_steps_are_the_first_one_at_other_addresses(mode, batch, monkeypatch):
    made = []
    bound = recurrent_work._bound

    def noted(stores, name):
        made.append(name)
        return bound(stores, name)

    monkeypatch.setattr(recurrent_work, "_bound", noted)
    monkeypatch.setattr(recurrent_work, "_known", {})
    gradients(3, mode, batch)
    few = len(made)
    lengths = 1, 2, 9, 23
    found = [gradients(length, mode, batch) for length in lengths]
    assert 0 < len(made) <= 5 * few
    monkeypatch.setattr(recurrent_work, "_FEWEST", 1 << 30)
    monkeypatch.setattr(recurrent_work, "_known", Forgetful())
    RECIPES.forget()
    LEARNT.forget()
    expected = [gradients(length, mode, batch) for length in lengths]
    assert len(made) > 8 * few
    for ours, others in zip(found, expected, strict=True):
        for mine, other in zip(ours, others, strict=True):
            np.testing.assert_array_equal(mine, other)
