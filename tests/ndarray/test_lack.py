"""Where memory is lacking for an operator of a chain, nothing else of it is lost."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from gnomon import autograd, config, nd
from gnomon.base import DeviceError
from gnomon.ground.record import put
from gnomon.ndarray.lazy import fused
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.runtime.devices import pool

SIZES = [30, 300_000]  # computed operator by operator, by one kernel


@pytest.fixture
def lacking():
    """Calling it leaves no memory for new arrays."""

    def lack(most=1):
        gc.collect()
        nd.waitall()
        pool.release_all("cpu")
        config.set("memory_limit", most)

    gc.collect()  # what other tests left would give memory back meanwhile
    nd.waitall()
    yield lack
    config.set("memory_limit", 0)


def ones(size):
    made = nd.array(np.ones(size))
    made.wait_to_read()
    return made


@pytest.mark.parametrize("size", SIZES)
def test_what_is_asked_for_may_be_asked_for_again(lacking, size):
    a = ones(size)
    y = a * 2 + 1
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    for _ in range(2):
        with pytest.raises(DeviceError, match="memory_limit"):
            y.asnumpy()
    config.set("memory_limit", 0)
    assert y.asnumpy()[0] == 3


@pytest.mark.parametrize("size", SIZES)
def test_operands_are_written_and_read_all_the_same(lacking, size):
    a, b = ones(size), ones(size)
    a += b
    y = a * 2  # held, with no memory for it
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    assert a.asnumpy()[0] == 2
    b[:] = 5
    a += b
    assert a.asnumpy()[0] == 7 and b.asnumpy()[0] == 5
    for ask in (y.asnumpy, lambda: y + 1, lambda: nd.dot(y, y), lambda: y[0], y.copy):
        with pytest.raises(DeviceError, match="memory_limit"):
            ask()
    config.set("memory_limit", 0)
    assert y.shape == (size,) and y.context == a.context
    assert (a * 3).asnumpy()[0] == 21


def test_there_is_as_much_as_there_is_memory_for(lacking):
    a = ones(300_000)
    several = [a * k for k in range(2, 6)]
    pool.release_all("cpu")
    config.set("memory_limit", pool.stats().used + 5 * a.size * 4 // 2)  # room for two
    a[:] = 3
    found = []
    for x in several:
        try:
            found.append(float(x.asnumpy()[0]))
        except DeviceError:
            found.append(None)
    assert found == [2, 3, None, None] and a.asnumpy()[0] == 3
    del x, several
    assert (a * 2).asnumpy()[0] == 6


def test_the_wait_for_all_tells_of_it_once(lacking):
    a = ones(30)
    y = a * 2
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    with pytest.raises(DeviceError, match="memory_limit"):
        nd.waitall()
    nd.waitall()
    with pytest.raises(DeviceError):
        y.wait_to_read()


@pytest.mark.parametrize("lazy", [False, True])
def test_an_operator_that_is_computed_at_its_call_raises_there(lacking, lazy):
    a = ones(300_000)
    view = a.asnumpy()
    shared = nd.from_numpy(view)  # memory of others: nothing about it waits
    with config.using(lazy=lazy):
        lacking()
        with pytest.raises(DeviceError, match="memory_limit"):
            shared * 2


def test_an_array_in_place_is_lost_until_it_is_written(lacking, monkeypatch):
    a = ones(300_000)
    a += 1
    place = fused.at_once

    def failing(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(fused, "at_once", failing)
    monkeypatch.setattr("gnomon.ndarray.lazy.fusion_group.lone", lambda *_: False)
    with pytest.raises(Exception, match="no room"):
        a.asnumpy()
    monkeypatch.setattr(fused, "at_once", place)
    a[:] = 4
    assert a.asnumpy()[0] == 4


WRITES = {
    "number": lambda y, a: y.__setitem__(slice(None), 5),
    "array": lambda y, a: y.__setitem__(slice(None), a),
    "pending": lambda y, a: y.__setitem__(slice(None), a * 1),
    "numpy": lambda y, a: y.__setitem__(slice(None), a.asnumpy()),
    "out": lambda y, a: nd.broadcast_add(a, nd.zeros((1,)), out=y),
    "sort": lambda y, a: nd.sort(a, out=y),
    "copyto": lambda y, a: a.copyto(y),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_is_lost_is_there_again_once_it_is_written(lacking, write):
    a = ones(30)
    y = a * 2
    lost = y
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    a[:] = 5
    a.wait_to_read()
    with pytest.raises(DeviceError):
        WRITES[write](y, a)
    config.set("memory_limit", 0)
    with pytest.raises(DeviceError):
        y += 1  # that reads it
    for part in (0, slice(1, 3)):
        with pytest.raises(DeviceError):
            y[part] = 1
    used = pool.stats().used
    for _ in range(3):
        WRITES[write](y, a)
        assert y is lost and y.asnumpy().tolist() == [5] * 30
    y += 1
    assert y.asnumpy()[0] == 6 and pool.stats().used - used <= 30 * 64


def test_what_was_noted_and_is_lost_says_where_it_was(lacking):
    put(here.own, "noted", None)  # noting may have been in vain before: it is not now
    w, x = nd.ones((300, 300)), nd.ones((300, 300))
    w.attach_grad()
    nd.waitall()
    with autograd.record():
        y = nd.dot(w, x)
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    x[:] = 2
    for ask in (y.asnumpy, lambda: y + 1):
        with pytest.raises(DeviceError, match="memory_limit"):
            ask()
    assert y.context == x.context and x.asnumpy()[0, 0] == 2
