"""Arrays whose memory another thread may move: what looks at it holds on to it first."""

from __future__ import annotations

import pytest

from gnomon import nd
from gnomon.ndarray.core.gather import gather
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy import invoke
from gnomon.record import put


def during(monkeypatch, place, name, work):
    """Have `work` done while a function runs, as another thread may."""
    function = getattr(place, name)

    def meanwhile(*args, **named):
        work()
        return function(*args, **named)

    monkeypatch.setattr(place, name, meanwhile)


def arrays(*values):
    """Arrays that may be moved into one block of memory."""
    made = [nd.full((2,), v) for v in values]
    nd.waitall()
    return made


def test_what_is_small_is_moved():
    x, y = arrays(1, 2)
    gather([x, y])
    assert x._chunk is y._chunk and y._address - x._address == 64
    assert (x.asnumpy() + y.asnumpy()).tolist() == [3, 3]


def test_an_address_is_asked_for_through_the_memory():
    (x,) = arrays(1)
    view = x[1:]
    assert (view._chunk, view._offset) == (x._chunk, 4)
    assert view._address == x._chunk.address + 4
    with pytest.raises(AttributeError):
        put(view, "_address", x._address)


def test_a_view_for_numpy_lies_in_the_memory_that_it_keeps(monkeypatch):
    x, y = arrays(1, 2)
    during(monkeypatch, Layout, "steps", lambda: gather([x, y]))
    view = x._numpy()
    assert view.ctypes.data == x._address


def test_an_operator_works_on_the_memory_that_it_holds(monkeypatch):
    x, y = arrays(2, 3)
    during(monkeypatch, invoke, "generator", lambda: gather([x, y]))
    nd.random.uniform(0, 1, out=x)
    assert (x < 2).asnumpy().tolist() == [1, 1]
