"""What tests of recorded steps share: a small step, and a count of the programs that ran."""

from __future__ import annotations

from typing import Any

from gnomon import nd
from gnomon.executor import recorded_step
from gnomon.ground.record import put
from gnomon.ndarray.core.bounded_cache import STEPS
from gnomon.ndarray.lazy import notes
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.marks import KEPT, Mark, admit

AT_FIRST = 2  # times that a step comes here before it is a program


def begin_anew() -> None:
    """Have the thread note again, whatever was in vain before."""
    put(here.own, "noted", None)
    put(here.own, "predicted", None)


def begin_soon(monkeypatch: Any) -> None:
    """Have steps be programs after few times, whatever other tests noted before: it is dropped."""
    monkeypatch.setattr(notes, "OFTEN", AT_FIRST)
    monkeypatch.setattr(Mark, "made", KEPT)
    admit()
    STEPS.forget()
    begin_anew()


def counted_runs(monkeypatch: Any) -> list[Any]:
    """A list that gets an item for each step that a program does in one call."""
    return counted(monkeypatch, recorded_step.Plan, "run")


def counted(monkeypatch: Any, owner: type[Any], name: str) -> list[Any]:
    """A list that gets an item for each call of a method: the object it is of."""
    found, method = [], getattr(owner, name)

    def counting(self: Any, *given: Any) -> Any:
        found.append(self)
        return method(self, *given)

    monkeypatch.setattr(owner, name, counting)
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
