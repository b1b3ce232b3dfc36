"""A train step that is held back for its update is at every moment there for a signal's handler."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest

import gnomon as mx

PLACES = {"follow", "is_held_back", "hold_instead", "push_held", "push", "enter"}


class Steps:
    """Training steps of a small network, one of which a handler interrupts."""

    def __init__(self):
        layers = mx.gluon.nn
        self.net = layers.HybridSequential()
        self.net.add(layers.Dense(6, activation="tanh", in_units=5), layers.Dense(3, in_units=6))
        self.net.initialize(mx.init.Xavier())
        self.net.hybridize()
        self.loss = mx.gluon.loss.L2Loss()
        self.params = [*self.net.collect_params().values()]
        self.trainer = mx.gluon.Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.0})

    def step(self, factor, watch=None):
        """A step, whose update the trace function `watch` looks at."""
        x, y = mx.nd.ones((4, 5)) * factor, mx.nd.zeros((4, 3))
        with mx.autograd.record():
            error = self.loss(self.net(x), y)
        error.backward()
        sys.settrace(watch)
        try:
            self.trainer.step(4, ignore_stale_grad=True)
        finally:
            sys.settrace(None)

    def gradients(self):
        return [param.grad().asnumpy() for param in self.params]

    def interrupted(self, line, raises):
        """The gradients, read amid that line of the update or after it, and whether it came."""
        left, found = line, []

        def watch(frame, event, arg):
            nonlocal left
            if frame.f_code.co_name not in PLACES or "gnomon" not in frame.f_code.co_filename:
                return watch if event == "call" else None
            left -= event == "line" and not mx.engine.get()._lock._is_owned()
            if left == 0:
                left = -1
                if raises:
                    raise InterruptedError
                found.append(self.gradients())
            return watch

        self.step(3.0)
        mx.nd.waitall()
        with contextlib.suppress(InterruptedError):
            self.step(1.0, watch)
        return found or [self.gradients()], left < 0


@pytest.mark.parametrize("raises", [False, True])
def test_gradients_are_there_amid_the_update_that_they_are_joined_with(raises):
    steps = Steps()
    for _ in range(40):
        steps.step(1.0)
        steps.step(3.0)
    steps.step(1.0)
    right, line, came = steps.gradients(), 0, True
    while came:
        line += 1
        (found,), came = steps.interrupted(line, raises)
        for one, other in zip(found, right, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
    assert line > 20


def test_a_handler_that_trains_amid_a_push_does_no_step_twice():
    """What it pushes amid an entry is put off, and nothing is entered twice."""
    steps, within = Steps(), []
    one = mx.engine.get()
    for _ in range(40):
        steps.step(1.0)
    admit = type(one)._admit

    def interrupted(self, job):
        ready = admit(self, job)
        if not within:
            within.append(job)
            steps.step(3.0)
        return ready

    type(one)._admit = interrupted
    try:
        for _ in range(3):
            steps.step(1.0)
    finally:
        type(one)._admit = admit
    one.wait_for_all()
    assert within and one._pending == 0
