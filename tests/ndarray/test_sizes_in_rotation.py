"""Recorded steps whose sizes take turns are programs, which are made by each other."""

from __future__ import annotations

import numpy as np
import pytest
from ndarray.noted_steps import AT_FIRST, begin_soon, counted, counted_runs, forward, variables

from gnomon import autograd, config, nd
from gnomon.executor import recorded_step
from gnomon.executor.passes import Passes
from gnomon.executor.recorded_step import Plan
from gnomon.ndarray.core import bounded_cache
from gnomon.ndarray.core.bounded_cache import BoundedCache
from gnomon.ndarray.lazy import forwarded, marks, notes, recorded
from gnomon.ndarray.lazy.marks import TRUST

SIZES = (7, 5, 11, 9, 13, 17, 8, 19, 23, 10)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    begin_soon(monkeypatch)


def numbers(n):
    return np.arange(n * 3, dtype="float32").reshape(n, 3) % 7 - 2


def train(x, w, b):
    with autograd.record():
        loss = (forward(x, w, b) ** 2).sum()
    loss.backward()
    return loss


def read(x, w, b):
    with autograd.record():
        loss = (forward(x, w, b) ** 2).sum()
    loss.wait_to_read()
    loss.backward()
    return loss


def unrolled(x, w, b):
    with autograd.record():
        loss = sum(forward(x[k], w, b).sum() for k in range(len(x)))
    loss.backward()
    return loss


def rotated(step, turns, make=lambda n: nd.array(numbers(n))):
    """What steps of all sizes give in turn: the losses, and the variables' gradients."""
    w, b = variables()
    found = []
    for n in SIZES * turns:
        loss = step(make(n), w, b)
        found.append([loss.asnumpy(), w.grad.asnumpy(), b.grad.asnumpy()])
    return found


def agree(found, step, turns, *make):
    with config.using(programs=False):
        right = rotated(step, turns, *make)
    for one, other in zip(found, right, strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(("step", "calls"), [(train, "run"), (read, "forward")])
def test_a_step_that_came_often_in_other_sizes_is_a_program(step, calls, monkeypatch):
    runs, made = counted(monkeypatch, Plan, calls), counted(monkeypatch, Passes, "__init__")
    found = rotated(step, 3)
    assert len(runs) >= 2 * len(SIZES)
    assert len(made) == len(SIZES)
    assert sum(x.is_resized for x in made) > len(SIZES) / 2
    agree(found, step, 3)


def test_what_no_program_tells_of_others_is_one_where_it_came_often(monkeypatch):
    monkeypatch.setattr(Passes, "is_resized", False)
    made = counted(monkeypatch, Passes, "__init__")
    found = rotated(train, AT_FIRST)
    assert len(made) == TRUST
    agree(found, train, AT_FIRST)


def test_few_programs_are_tried_of_steps_of_a_structure_that_may_have_none(monkeypatch):
    """The gradient of a variable lies where the step reads it."""

    def step(x, w, b):
        w._tape.grad = w  # what may have no program
        return train(x, w, b)

    tried = counted(monkeypatch, recorded_step.Planned, "_made")
    rotated(step, AT_FIRST)
    assert len(tried) == TRUST


def test_unrolled_steps_are_noted_again_when_they_take_turns(monkeypatch):
    """Each length is a structure of its own: new ones end in a rest, which ends as all is known."""
    runs = counted_runs(monkeypatch)
    monkeypatch.setattr(recorded, "PATIENCE", 2)
    found = rotated(
        unrolled, AT_FIRST + 4, lambda n: nd.array(np.tile(numbers(3)[None], (n, 1, 1)))
    )
    assert len(runs) >= len(SIZES)
    agree(found, unrolled, AT_FIRST + 4, lambda n: nd.array(np.tile(numbers(3)[None], (n, 1, 1))))


def test_programs_are_bounded_and_do_not_drive_each_other_out(monkeypatch):
    made = counted(monkeypatch, Passes, "__init__")
    few = BoundedCache(4 * 80 << 10)
    for place in (bounded_cache, forwarded, marks, notes):
        monkeypatch.setattr(place, "STEPS", few)
    monkeypatch.setattr(notes, "OFTEN", 12)
    found = rotated(train, 5)
    assert len(few._entries) <= 5
    assert len(made) < 2 * len(SIZES)
    agree(found, train, 5)
