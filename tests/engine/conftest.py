"""Engines of each kind, fresh for each test and stopped after it."""

from __future__ import annotations

import pytest

from gnomon import engine

KINDS = ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")


@pytest.fixture(params=KINDS)
def any_engine(request):
    made = engine.create(request.param)
    yield made
    made.stop()


@pytest.fixture(params=KINDS[1:])
def threaded(request):
    made = {"ThreadedEngine": engine.ThreadedEngine}.get(
        request.param, engine.ThreadedEnginePerDevice
    )(workers=2)
    yield made
    made.stop()
