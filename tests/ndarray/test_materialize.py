"""The wait that native code carries out gives what Python's does, and leaves to it all else."""

from __future__ import annotations

import gc
import inspect
import math
import threading
import weakref

import numpy as np
import pytest

from gnomon import autograd, config, engine, nd
from gnomon.base import DeviceError
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.lazy import materialize
from gnomon.ndarray.lazy.fusion_group import FusionGroup, here
from gnomon.ndarray.lazy.recipe import PASSING
from gnomon.runtime.devices import pool
from gnomon.runtime.statements.fields import readable


def left(found, count):
    """Whether so many waits came to the method in Python: all do where there is no native one."""
    return not readable() or len(found) == count


@pytest.fixture
def by_python(monkeypatch):
    """What comes to the method in Python: the arrays, in order."""
    found = []
    before = FusionGroup.materialize
    monkeypatch.setattr(FusionGroup, "materialize", lambda w, x: (found.append(x), before(w, x))[1])
    return found


def known(statement, *operands):
    """The statement's kernel is there."""
    for _ in range(PASSING + 1):
        statement(*operands).wait_to_read()


def add(a, b):
    return a + b


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (16, 16), (64, 33)])
def test_values(dtype, shape, by_python):
    a, b = (nd.array(np.arange(1, 1 + math.prod(shape)).reshape(shape) % k + 1, dtype=dtype)
            for k in (5, 7))  # fmt: skip
    known(add, a, b)
    by_python.clear()
    for _ in range(3):
        c = a + b
        c.wait_to_read()
        assert left(by_python, 0)
        np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())
        a = c
    assert c._chunk.version == 1 and not here.own.groups[shape].read


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("value", [2.5, -0.0, 3, 1e30, 3e38, 1e39, -math.inf, math.nan, 2**40])
def test_numbers_are_written_as_python_writes_them(dtype, value):
    if dtype == "int32" and (value != value or abs(value) > 1e9):
        value = 7
    a = nd.array([1, 2, 3], dtype=dtype)
    known(lambda x: x * 2.0, a)
    with np.errstate(all="ignore"):
        found = (a * value).asnumpy()
        config.set("lazy", False)
        try:
            np.testing.assert_array_equal(found, (a * value).asnumpy())
        finally:
            config.set("lazy", True)


def test_views_and_one_array_twice(by_python):
    a = nd.array(np.arange(12).reshape(3, 4))
    v = a[1:]
    known(lambda x: x + x, a), known(lambda x: x * x[:], v)
    by_python.clear()
    for x, f in ((a, add), (v, lambda x, y: x * y[:])):
        c = f(x, x)
        c.wait_to_read()
        np.testing.assert_array_equal(c.asnumpy(), f(x.asnumpy(), x.asnumpy()))
        assert not a._chunk.pending_readers
    assert left(by_python, 0)


def test_what_is_left_to_python(by_python):
    a, b = nd.array([1.0, 2.0, 3.0]), nd.array([3.0, 4.0, 5.0])
    known(add, a, b)
    by_python.clear()
    chain = (a + b) * a
    chain.wait_to_read()
    assert left(by_python, 1)
    c = a + b
    two = c * b
    c.wait_to_read()  # one of two
    assert left(by_python, 2)
    two.wait_to_read()
    a += b  # in place in its own memory
    a.wait_to_read()
    assert left(by_python, 3)
    np.testing.assert_array_equal(a.asnumpy(), [4, 6, 8])
    np.testing.assert_array_equal(two.asnumpy(), [12, 24, 40])


def test_an_engine_that_is_told_of_everything_is_told():
    a = nd.array([1.0, 2.0])
    known(add, a, a)
    told = []
    engine.get().observe(lambda name, *rest: told.append(name))
    try:
        (a + a).wait_to_read()
    finally:
        engine.get().observe(None)
    assert len(told) == 1


def test_what_is_held_back_comes_first():
    a = nd.array([1.0, 2.0])
    known(add, a, a)
    told = []
    with engine.bulk(10):
        engine.get().push_sync(lambda ctx: told.append(1), mutate_vars=[a._var])
        a.wait_to_read()
        assert told == [1]


def test_a_writer_is_waited_for_and_a_failure_is_raised():
    a, b = nd.array([1.0, 2.0]), nd.array([1.0, 2.0])
    known(add, a, b)
    go = threading.Event()
    c = a + b
    before = a._chunk
    engine.get().push_sync(lambda ctx: go.wait(5), mutate_vars=[b._var])
    d = a + b
    threading.Timer(0.05, go.set).start()
    d.wait_to_read()
    c.wait_to_read()
    assert go.is_set() and a._chunk is before
    engine.get().push_sync(lambda ctx: 1 // 0, mutate_vars=[b._var])
    with pytest.raises(engine.EngineError, match="ZeroDivisionError"):
        (a + b).wait_to_read()
    np.testing.assert_array_equal(c.asnumpy(), d.asnumpy())


def test_another_thread_waits_by_python(by_python):
    a = nd.array([1.0, 2.0])
    known(add, a, a)
    by_python.clear()
    c = a + a
    thread = threading.Thread(target=c.wait_to_read)
    thread.start()
    thread.join()
    assert left(by_python, 1) and c._pending_in is None
    (a + a).wait_to_read()
    assert left(by_python, 1)


@pytest.mark.native
def test_operands_that_are_gone_go_with_their_finalisers(by_python):
    a = nd.array([1.0, 2.0])
    known(add, a, a)
    by_python.clear()
    owner = np.full(2, 5, np.float32)
    x = Array._around(owner, a.context)
    seen = []
    # the finaliser uses the very group that is being emptied
    weakref.finalize(owner, lambda: seen.append((a + a).asnumpy()[0]))
    c = x + a
    del x, owner
    c.wait_to_read()
    gc.collect()
    assert seen == [2] and c.asnumpy().tolist() == [6, 7] and left(by_python, 0)


def test_no_memory_is_an_error_and_leaves_all_as_it_was():
    a = nd.array(np.ones(1000))
    known(add, a, a)
    c = a + a
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    try:
        with pytest.raises(DeviceError, match="memory_limit"):
            c.wait_to_read()
    finally:
        config.set("memory_limit", 0)
    assert c.asnumpy()[0] == 2


def test_a_raw_object_and_arguments_are_refused():
    materialize.native_wait()
    with pytest.raises(AttributeError):
        object.__new__(nd.NDArray).wait_to_read()
    with pytest.raises(TypeError):
        nd.array([1.0]).wait_to_read(1)
    with pytest.raises(TypeError if readable() else AttributeError):
        nd.NDArray.wait_to_read(3)
    assert "self" in inspect.signature(nd.NDArray.wait_to_read).parameters
    assert "EngineError" in nd.NDArray.wait_to_read.__doc__


def test_the_naive_engine_has_no_fast_path():
    before, naive = engine.get(), engine.NaiveEngine()
    a = nd.array([1.0, 2.0])
    known(add, a, a)
    engine.use(naive)
    try:
        (a + a).wait_to_read()
        assert not naive.try_fast_path(lambda *a: True, [], [], [], [])
    finally:
        engine.use(before)


def test_on_the_tape_and_again_after_a_write():
    a = nd.array([1.0, 2.0])
    a.attach_grad()
    with autograd.record():
        c = a * 3
        c.wait_to_read()
    c.backward()
    assert a.grad.asnumpy().tolist() == [3, 3]
    materialize.native_wait()  # once is enough
    b = nd.array([1.0, 1.0])
    c = b + b
    b[:] = 5
    c.wait_to_read()
    assert c.asnumpy().tolist() == [2, 2]
