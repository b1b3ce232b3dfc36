"""Arrays whose memory another thread may move: what looks at it holds on to it first."""

from __future__ import annotations

import gc
from threading import Thread

import pytest

from gnomon import nd
from gnomon.expr.ext import cumsum
from gnomon.expr.fn import exp
from gnomon.ground.record import put
from gnomon.ndarray.core.layout import Layout
from gnomon.ndarray.lazy import gather as gather_module
from gnomon.ndarray.lazy import invoke
from gnomon.ndarray.lazy.batch import Batch, Group
from gnomon.ndarray.lazy.gather import gather
from gnomon.runtime.devices import pool
from gnomon.runtime.ffi import ffi
from gnomon.runtime.statements.prepare import Store


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


class Meanwhile:
    """In place of `ffi`: after the first copy of memory, `work` is done."""

    def __init__(self, work):
        self.work = work

    def memmove(self, *given):
        ffi.memmove(*given)
        work, self.work = self.work, None
        if work is not None:
            work()


def test_what_another_thread_writes_while_arrays_are_moved_stays(monkeypatch):
    x, y = arrays(1, 2)
    other = Thread(target=lambda: x.__setitem__(slice(None), 7))

    def begin():
        other.start()
        other.join(0.2)  # it waits until the arrays are moved

    monkeypatch.setattr(gather_module, "ffi", Meanwhile(begin))
    gather([x, y])
    other.join()
    assert x._chunk is y._chunk and x.asnumpy().tolist() == [7, 7]


def test_what_is_asked_for_amid_a_move_stays_where_it_is(monkeypatch):
    x, y = arrays(1, 2)
    was = x._chunk.address
    monkeypatch.setattr(gather_module, "ffi", Meanwhile(x.asnumpy))  # as a signal's handler may
    gather([x, y])
    assert (x._address, x.asnumpy().tolist(), y.asnumpy().tolist()) == (was, [1, 1], [2, 2])


def test_arrays_whose_move_fails_stay_where_they_are(monkeypatch):
    x, y = arrays(1, 2)
    places = [x._address, y._address]

    def fail():
        raise KeyboardInterrupt

    monkeypatch.setattr(gather_module, "ffi", Meanwhile(fail))
    with pytest.raises(KeyboardInterrupt):
        gather([x, y])
    assert [x._address, y._address] == places
    assert (x + y).asnumpy().tolist() == [3, 3]


def test_what_others_know_is_not_moved():
    x, y, z = arrays(1, 2, 3)
    view = y[1:]
    gather([x, y, z])
    assert x._chunk is z._chunk and y._chunk is view._chunk is not x._chunk
    assert (x + y + z).asnumpy().tolist() == [6, 6]


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


def test_a_step_of_ones_own_is_freed_with_its_memory():
    """Nothing waits for the collector, which may come late."""
    (x,) = arrays(1)
    batch = Batch("sums", [x._layout], lambda every: [Group(every, sums)])
    before = pool.stats().used
    step = batch.fixed([x._address])
    assert pool.stats().used > before
    collector_was_on = gc.isenabled()
    gc.disable()
    try:
        del step
        assert pool.stats().used == before
    finally:
        if collector_was_on:
            gc.enable()


def sums(operands):
    """Sums so far, which go by a temporary."""
    (x,) = operands
    return [Store(x, "saveto", exp(cumsum(x, 0)) + 1)]
