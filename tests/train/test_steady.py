"""What is updated again: native code and Python look at arrays, states and counts alike."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.native.serve import served
from gnomon.optimizer import steady


@pytest.fixture(autouse=True)
def natively():
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    config.reset("native")


def both(function):
    (fast,) = served(function)
    return function, fast


@pytest.mark.parametrize("are_at", both(steady.are_at), ids=["python", "native"])
def test_arrays_are_where_they_were(are_at):
    arrays = [mx.nd.ones((n,)) for n in (1, 2, 3)]
    mx.nd.waitall()
    places = [x._address for x in arrays]
    assert are_at(arrays, places) and are_at([], [])
    assert not are_at(arrays, places[:2])
    assert not are_at(arrays, [*places[:2], places[2] + 64])
    pending = arrays[0] + 1
    assert pending._pending_in is not None
    assert not are_at([pending], places[:1])
    assert pending.asnumpy() == 2


class Unequal:
    """A key that cannot be looked up."""

    def __hash__(self):
        raise ArithmeticError("no hash")


@pytest.mark.parametrize("are_known", both(steady.are_known), ids=["python", "native"])
def test_states_are_those_of_before(are_known):
    first, second = object(), object()
    states = {0: first, "a": None}
    assert are_known(states, (0, "a"), (first, None)) and are_known(states, (), ())
    assert not are_known(states, (0,), (second,))
    assert not are_known(states, (0, "b"), (first, None))  # None is a state, and "b" has none
    assert not are_known(states, (0, "a"), (first,))
    with pytest.raises(ArithmeticError):
        are_known(states, (Unequal(),), (first,))


@pytest.mark.parametrize("count_updates", both(steady.count_updates), ids=["python", "native"])
def test_counts(count_updates):
    counts = {0: 1, 7: 5}
    count_updates(counts, (0, "a"), 10**30)
    assert counts == {0: 10**30, 7: 5, "a": 10**30}
    with pytest.raises(ArithmeticError):
        count_updates(counts, (Unequal(),), 1)


def test_nothing_is_kept():
    state, index = object(), ("index",)
    counts = {index: 1}
    before = sys.getrefcount(state), sys.getrefcount(index)
    for function in both(steady.are_known):
        for _ in range(1000):
            function({index: state}, (index,), (state,))
    for function in both(steady.count_updates):
        for _ in range(1000):
            function(counts, (index,), 3)
    gc.collect()
    assert (sys.getrefcount(state), sys.getrefcount(index)) == before


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
