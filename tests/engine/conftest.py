"""Engines of each kind, fresh for each test and stopped after it."""

from __future__ import annotations

import threading

import pytest

from gnomon import engine

KINDS = ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice")


def stop(made):
    """Stop an engine; one that never comes to its end fails its test, and nothing else."""
    thread = threading.Thread(target=made.stop, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), made.report()


@pytest.fixture(params=KINDS)
def any_engine(request):
    made = engine.create(request.param)
    yield made
    stop(made)


@pytest.fixture(params=KINDS[1:])
def threaded(request):
    made = {"ThreadedEngine": engine.ThreadedEngine}.get(
        request.param, engine.ThreadedEnginePerDevice
    )(workers=2)
    yield made
    stop(made)
