"""Order: writers in push order, readers between the right writes, the rest in parallel."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from gnomon import cpu, engine
from gnomon.base import EngineError
from gnomon.engine.waiting import patience
from tests.engine.pushing import push_and_wait

SECOND = 1.0


def test_writers_of_one_variable_run_in_push_order(any_engine):
    var, seen = any_engine.new_variable(), []
    for number in range(200):
        any_engine.push_sync(lambda ctx, n=number: seen.append(n), mutate_vars=[var])
    any_engine.wait_for_var(var)
    assert seen == list(range(200))
    assert var.version == 200


def test_a_reader_sees_what_was_pushed_before_it_and_nothing_else(any_engine):
    var, box, seen = any_engine.new_variable(), [0], []

    def write(value):
        any_engine.push_sync(lambda ctx: box.__setitem__(0, value), None, (), [var])

    def read():
        any_engine.push_sync(lambda ctx: seen.append(box[0]), None, [var], ())

    for number in range(1, 50):
        write(number)
        read()
        read()
    any_engine.wait_for_all()
    assert seen == [n for n in range(1, 50) for _ in range(2)]


def test_two_readers_run_at_the_same_time(threaded):
    var, meet = threaded.new_variable(), threading.Barrier(2, timeout=5)
    for _ in range(2):
        threaded.push_sync(lambda ctx: meet.wait(), None, [var])
    threaded.wait_for_all()


def test_independent_writers_run_at_the_same_time(threaded):
    meet = threading.Barrier(2, timeout=5)
    for var in (threaded.new_variable(), threaded.new_variable()):
        threaded.push_sync(lambda ctx: meet.wait(), None, (), [var])
    threaded.wait_for_all()


def test_many_that_wait_for_one_another_meet():
    one, meet = engine.create("ThreadedEngine"), threading.Barrier(9, timeout=60)
    for _ in range(9):
        one.push_sync(lambda ctx: meet.wait())
    one.wait_for_all()
    assert [patience(looks) for looks in range(9)] == [0.1] * 9
    assert [patience(looks) for looks in (9, 10, 12, 10_000)] == [0.2, 0.4, 1.0, 1.0]


def test_a_push_returns_at_once_and_runs_on_another_thread(threaded):
    go, ran_on = threading.Event(), []

    def function(ctx):
        go.wait(5)
        ran_on.append(threading.get_ident())

    threaded.push_sync(function)
    assert not ran_on
    go.set()
    threaded.wait_for_all()
    assert ran_on != [threading.get_ident()]


def test_a_wait_for_a_variable_waits_for_its_writes_alone(threaded):
    slow, quick, go = threaded.new_variable(), threaded.new_variable(), threading.Event()
    threaded.push_sync(lambda ctx: go.wait(5), None, (), [slow])
    threaded.push_sync(lambda ctx: None, None, (), [quick])
    threaded.wait_for_var(quick)
    assert (quick.version, slow.version) == (1, 0)
    go.set()
    threaded.wait_for_var(slow)
    assert slow.version == 1


def test_a_wait_to_write_waits_for_the_readers_too(threaded):
    var, go, read = threaded.new_variable(), threading.Event(), []
    threaded.push_sync(lambda ctx: read.append(go.wait(5)), None, [var])
    threaded.wait_for_var(var)
    assert not read
    threading.Timer(0.02, go.set).start()
    threaded.wait_for_var(var, write=True)
    assert read == [True]


def test_urgent_work_overtakes(any_engine):
    if isinstance(any_engine, engine.NaiveEngine):
        return  # nothing ever queues there
    lone = type(any_engine)(workers=1)
    go, seen = threading.Event(), []
    lone.push_sync(lambda ctx: go.wait(5))
    while lone.report().count("ready or runs") != 1:
        time.sleep(0.001)
    time.sleep(0.01)
    for priority in (0, -1, 5, 0, 9, -7):
        lone.push_sync(lambda ctx, p=priority: seen.append(p), priority=priority)
    go.set()
    lone.stop()
    assert seen == [9, 5, 0, 0, -1, -7]


@pytest.mark.parametrize("copy", [True, 1, np.True_], ids=str)
def test_copies_have_workers_of_their_own(copy):
    one = engine.ThreadedEnginePerDevice(workers=1)
    page, here, apart = one.new_variable(), set(), set()
    for _ in range(3):
        one.push_sync(lambda ctx: here.add(threading.get_ident()), mutate_vars=[page])
    tell = lambda ctx: apart.add(threading.get_ident())  # noqa: E731
    step = one.new_operator(tell, mutate_vars=[page], kind="sync", copy=copy)
    one.push(step)
    one.push_sync(tell, mutate_vars=[page], copy=copy)  # queues behind that
    one.wait_for_all()
    one.stop()
    assert here
    assert apart
    assert not here & apart


def test_each_device_has_workers_of_its_own():
    one = engine.ThreadedEnginePerDevice(workers=1)
    go, devices = threading.Event(), []
    one.push_sync(lambda ctx: (go.wait(5), devices.append(ctx.ctx)), cpu(0))
    one.push_sync(lambda ctx: (go.set(), devices.append(ctx.ctx)), cpu(1))
    one.wait_for_all()
    one.stop()
    assert sorted(map(str, devices)) == ["cpu(0)", "cpu(1)"]


def test_the_run_context_tells_the_device_and_its_stream(any_engine):
    seen = []
    any_engine.push_sync(lambda run_ctx: seen.append((run_ctx.ctx, run_ctx.get_stream())), cpu(3))
    any_engine.wait_for_all()
    assert seen == [(cpu(3), None)]


@pytest.mark.parametrize(
    ("const", "mutate", "message"),
    [
        ("a", "a", "argument 'mutate_vars': expected each variable either read or written"),
        (
            "aa",
            "",
            "argument 'const_vars': expected each variable once, got Var(a, version 0) twice",
        ),
        (
            "",
            "bb",
            "argument 'mutate_vars': expected each variable once, got Var(b, version 0) twice",
        ),
    ],
)
def test_a_variable_named_twice_is_refused(any_engine, const, mutate, message):
    named = {name: any_engine.new_variable(name) for name in "ab"}
    lists = [named[n] for n in const], [named[n] for n in mutate]
    function = lambda *args: None  # noqa: E731
    for push in (any_engine.push_sync, any_engine.push_async, any_engine.push_inline):
        with pytest.raises(EngineError, match="push_") as caught:
            push(function, None, *lists)
        assert message in str(caught.value)
    with pytest.raises(EngineError, match="new_operator"):
        any_engine.new_operator(function, *lists)
    any_engine.wait_for_all()


@pytest.mark.parametrize("bad", [7, [7], [None], "a"])
def test_what_is_no_variable_is_refused(any_engine, bad):
    for lists, argument in (((bad,), "const_vars"), (((), bad), "mutate_vars")):
        with pytest.raises(EngineError, match=f"'{argument}': expected a list of variables"):
            any_engine.push_sync(lambda ctx: None, None, *lists)
    with pytest.raises(EngineError, match="expected a function, got 3"):
        any_engine.push_sync(3)
    with pytest.raises(EngineError, match="expected a variable"):
        any_engine.wait_for_var(bad)


def test_many_threads_may_push(any_engine):
    var, box = any_engine.new_variable(), [0]

    def add(ctx):
        value = box[0]
        time.sleep(0)
        box[0] = value + 1

    def pusher():
        for _ in range(200):
            any_engine.push_sync(add, None, (), [var])

    threads = [threading.Thread(target=pusher) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    any_engine.wait_for_var(var)
    assert box[0] == 800


def test_wait_for_all_calls_the_hooks_that_hold_work_back(any_engine):
    held = [lambda ctx: seen.append("late")]
    seen = []
    any_engine.on_wait_all(lambda: any_engine.push_sync(held.pop()) if held else None)
    any_engine.wait_for_all()
    assert seen == ["late"]


def test_an_observer_is_told_of_every_function(any_engine):
    told = []
    any_engine.observe(lambda name, ctx, begin, end: told.append((name, ctx, end >= begin)))
    any_engine.push_sync(lambda ctx: None, name="first")
    any_engine.push_inline(lambda ctx: None, name="second")
    any_engine.wait_for_all()
    any_engine.observe(None)
    any_engine.push_sync(lambda ctx: None)
    any_engine.wait_for_all()
    assert sorted(told) == [("first", cpu(0), True), ("second", cpu(0), True)]


def test_functions_on_the_engine_may_push_and_wait():
    one = engine.ThreadedEngine(workers=1)
    outer, inner, seen = one.new_variable(), one.new_variable(), []

    def function(ctx):
        one.push_sync(lambda ctx: seen.append("inner"), None, (), [inner])
        one.wait_for_var(inner)
        one.wait_for_var(outer)  # its own: no wait
        seen.append("outer")

    for _ in range(3):
        one.push_sync(function, None, (), [outer])
    one.wait_for_all()
    one.stop()
    assert seen == ["inner", "outer"] * 3


def test_a_function_cannot_wait_for_everything(any_engine):
    def function(ctx):
        any_engine.wait_for_all()

    with pytest.raises(EngineError, match=r"function .*: it would wait for itself"):
        push_and_wait(any_engine.push_sync, function)


def test_a_stopped_engine_starts_again(any_engine):
    seen = []
    for number in range(3):
        any_engine.push_sync(lambda ctx, n=number: seen.append(n))
        any_engine.stop()
    assert seen == [0, 1, 2]


def test_workers_that_sleep_unseen_do_not_starve_what_they_wait_for(threaded):
    told = []

    def nested(depth):
        def work(run_ctx):
            if depth:  # a thread of its own waits for more work: the engine sees nobody wait here
                helper = threading.Thread(target=ask, args=(depth - 1,))
                helper.start()
                helper.join()
            told.append(depth)

        return work

    def ask(depth):
        box = threaded.new_variable()
        threaded.push_sync(nested(depth), mutate_vars=[box])
        threaded.wait_for_var(box)

    asking = [threading.Thread(target=ask, args=(3,), daemon=True) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(30)
    assert sorted(told) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("entry", ["_admit", "_settle"])
def test_an_interrupt_as_a_wait_enters_leaves_nothing_behind(any_engine, monkeypatch, entry):
    """A signal's handler may raise at a function's first instruction, before any `try` of its."""
    var = any_engine.new_variable()
    real, times = getattr(any_engine, entry), iter([True])

    def interrupted(*given):
        if next(times, False):
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(any_engine, entry, interrupted)
    with pytest.raises(KeyboardInterrupt):
        any_engine.wait_for_var(var, write=True)
    assert var.writer is None and not var.readers and not var.queue
    done = []
    any_engine.push_sync(lambda ctx: done.append(1), mutate_vars=[var])
    any_engine.wait_for_all()
    assert done == [1] and any_engine.report() == ""
