"""What tests of recorded steps share: a small step, and a count of the programs that ran."""

from __future__ import annotations

from typing import Any

from gnomon import nd
from gnomon.executor import recorded_step
from gnomon.ndarray.lazy import notes
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.record import put

AT_FIRST = 2  # times that a step comes here before it is a program


def begin_anew() -> None:
    """Have the thread note again, whatever was in vain before."""
    put(here.own, "noted", None)


def begin_soon(monkeypatch: Any) -> None:
    """Have steps be programs after few times."""
    monkeypatch.setattr(notes, "OFTEN", AT_FIRST)
    begin_anew()


def counted_runs(monkeypatch: Any) -> list[Any]:
    """A list that gets an item for each step that a program does."""
    found, run = [], recorded_step.Plan.run

    def counted(self: Any, *given: Any) -> Any:
        found.append(self)
        return run(self, *given)

    monkeypatch.setattr(recorded_step.Plan, "run", counted)
    return found


def variables() -> tuple[Any, Any]:
    """A weight and a bias."""
    w, b = nd.array([[1, 2, -1], [0, -2, 3]]), nd.array([1, -1])
    w.attach_grad()
    b.attach_grad()
    return w, b


def forward(x: Any, w: Any, b: Any) -> Any:
    """A layer."""
    return nd.relu(nd.FullyConnected(x, w, b, num_hidden=2)) * 2
