"""What is updated again: weights and states that changed since the last time are noticed."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_weights_that_moved_and_states_that_were_replaced(name):
    """An updater of many weights does what as many updaters of one do."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=3).astype("f") for _ in range(12)]

    def run(together):
        weights = [mx.nd.array(v) for v in values]
        optimizer = mx.optimizer.create(name, learning_rate=0.1, wd=0.01)
        updater = mx.optimizer.get_updater(optimizer)
        for step in range(8):
            grads = [mx.nd.array(v * (step + 1)) for v in values]
            if step == 3:
                weights[4][:] = weights[4] * 2  # another place, and pending
            if step == 5:
                updater.states.pop(2)
            if step == 6:
                weights[9] = weights[9].copy()
            if together:
                updater(list(range(12)), grads, weights)
            else:
                for k in range(12):
                    updater(k, grads[k], weights[k])
        return [w.asnumpy() for w in weights]

    for ours, wanted in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)
