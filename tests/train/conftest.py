"""What several tests of training need."""

import threading

import pytest

import gnomon as mx
from gnomon import engine


@pytest.fixture
def slow_gradient():
    """Makes arrays whose values come only when the second thing it gives is called."""
    if engine.get().__class__.__name__ == "NaiveEngine":
        pytest.fail("this test needs an engine with threads")

    def make(value, shape=(1,)):
        array, ready = mx.nd.zeros(shape), threading.Event()

        def write(run_ctx):
            assert ready.wait(20)
            array._numpy()[...] = value

        engine.get().push_sync(write, mutate_vars=[array._var])
        return array, ready.set

    return make
