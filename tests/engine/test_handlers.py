"""Signals' handlers that work with arrays amid native work; recursion that comes to its limit."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import threading

import pytest

from gnomon import engine
from gnomon.base import EngineError
from gnomon.engine.backlog import Backlog
from tests.engine.processes import run


class Kernel:
    """Native work, with handlers that come right before that and right after."""

    resumable = True

    def __init__(self, told, before=None, after=None, error=None):
        self.done, self.told, self.before, self.after = [], told, before, after
        self.error = error

    def __call__(self, run_ctx):
        before, self.before = self.before, None
        if before is not None:
            before()
        if not self.done:
            self.told.append("kernel")
            self.done.append(None)
        if self.error is not None:
            raise self.error
        after, self.after = self.after, None
        if after is not None:
            after()


def brief(one, kernel, const, mutate):
    one.push_brief(kernel, None, const, mutate)


def inline(one, kernel, const, mutate):
    one.push_inline(kernel, None, const, mutate)


def prepared(one, kernel, const, mutate):
    one.push(one.new_operator(kernel, const, mutate, kind="inline"))


WAYS = pytest.mark.parametrize("push", [brief, inline, prepared])


@WAYS
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_handler_amid_native_work_finds_it_done(any_engine, push, when):
    one, told = any_engine, []
    var, out, late = (one.new_variable() for _ in range(3))

    def handler():
        one.push_sync(lambda ctx: told.append("read"), None, (var,), (out,))
        one.wait_for_var(out)
        one.push_inline(lambda ctx: told.append("written"), None, (), (var,))
        one.wait_for_var(var, write=True)
        one.wait_for_all()
        other = threading.Thread(target=one.push_inline, args=(bool, None, (), (late,)))
        other.start()
        other.join(20)
        assert not other.is_alive()  # nothing of the engine's is held
        told.append("handler")

    push(one, Kernel(told, **{when: handler}), (), (var,))
    assert told == ["kernel", "read", "written", "handler"]
    one.push_sync(lambda ctx: told.append("after"), None, (var,), (out,))
    one.wait_for_all()
    state = one._state()
    assert told[4:] == ["after"] and state.job is None and not state.hand
    assert not state.bouncing and one._lock.acquire(blocking=False)
    assert not one._pending and var.writer is None and not var.queue
    one._lock.release()


@WAYS
def test_a_handler_may_raise_once_it_has_had_native_work_done(any_engine, push):
    one, told, var = any_engine, [], any_engine.new_variable()

    def handler():
        one.push_inline(lambda ctx: told.append("handler"), None, (), (var,))
        one.wait_for_var(var)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        push(one, Kernel(told, after=handler), (), (var,))
    assert told == ["kernel", "handler"]
    one.wait_for_all()
    assert not one._lock._is_owned() and one._state().job is None


@pytest.mark.parametrize("push", [brief, inline])
def test_handlers_within_one_another(threaded, push):
    told, variables = [], [threaded.new_variable() for _ in range(5)]

    def handler(depth):
        if depth < 5:
            more = Kernel(told, before=lambda: handler(depth + 1), after=lambda: handler(5))
            push(threaded, more, (), (variables[depth],))
            threaded.wait_for_var(variables[depth])
        told.append(depth)

    handler(0)
    assert told.count("kernel") == 5 and told[-1] == 0
    threaded.wait_for_all()
    assert not threaded._lock._is_owned() and threaded._brief is None


@pytest.mark.parametrize("push", [brief, inline])
def test_what_failed_natively_is_not_taken_for_done(threaded, push):
    told, var, out = [], threaded.new_variable(), threaded.new_variable()

    def handler():
        threaded.push_inline(lambda ctx: told.append("read"), None, (var,), (out,))
        with pytest.raises(EngineError, match=r"failed|within the engine"):
            threaded.wait_for_var(out)

    push(threaded, Kernel(told, handler, error=ValueError("natively")), (), (var,))
    with pytest.raises(EngineError, match="ValueError: natively"):
        threaded.wait_for_var(var)
    assert told == ["kernel"]


def test_a_handler_between_two_jobs_of_a_backlog(threaded, monkeypatch):
    told, a, b = [], threaded.new_variable(), threaded.new_variable()
    execute = Backlog._execute

    def interrupted(self, job, state):
        if job.label == "second":
            monkeypatch.undo()
            threaded.push_inline(lambda ctx: told.append("handler"), None, (b,), (a,))
            threaded.wait_for_var(a)
        return execute(self, job, state)

    def first(ctx):
        threaded.push_inline(Kernel(told), None, (a,), (b,), name="second")

    monkeypatch.setattr(Backlog, "_execute", interrupted)
    threaded.push_inline(first, None, (), (a,))
    assert told == ["kernel", "handler"]
    threaded.wait_for_all()


def test_a_handler_reads_what_a_kernel_of_the_programs_own_is_to_write(threaded):
    """Such a kernel cannot be brought to its end: the handler is told, and nothing hangs."""
    var, out, told = threaded.new_variable(), threaded.new_variable(), []

    def kernel(ctx):
        threaded.push_inline(lambda ctx: told.append("read"), None, (var,), (out,))
        with pytest.raises(EngineError, match=r"would wait for itself|within the engine"):
            threaded.wait_for_var(out)
        told.append("kernel")

    for way in (threaded.push_inline, threaded.push_sync):
        way(kernel, None, (), (var,))
        threaded.wait_for_all()
    brief(threaded, kernel, (), (var,))
    assert told == ["kernel", "read"] * 3


STORM = """
    import itertools, random, signal, threading, time, os
    import numpy as np
    import gnomon as mx
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(512, activation="relu"), mx.gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    x, loss = mx.nd.ones((64, 10)), mx.gluon.loss.L2Loss()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-3})
    sums, made, told = [mx.nd.zeros((size,)) for size in (10, 30_000)], 0, []
    def step():
        global made
        with mx.autograd.record():
            error = loss(net(x), mx.nd.zeros((64, 3)))
        error.backward()
        trainer.step(64)
        for s in sums:
            s += 1
        made += 1
    for _ in range(30):
        step()
    busy = False
    def handler(*_):
        global busy
        if busy:
            return
        busy = True
        try:
            net.save_parameters("net.params")
            for s in sums:
                values = s.asnumpy()
                assert (values == values[0]).all() and values[0] - made in (0, 1), values
            told.append("saved")
        except mx.engine.EngineError as error:
            told.append(str(error))
        busy = False
    signal.signal(signal.SIGUSR1, handler)
    ended = threading.Event()
    def send():
        while not ended.wait(random.uniform(0.004, 0.008)):
            os.kill(os.getpid(), signal.SIGUSR1)
    sender = threading.Thread(target=send)
    sender.start()
    end = time.monotonic() + 20
    while len(told) <= 100 and time.monotonic() < end:
        step()
    ended.set()
    sender.join()
    refused = len(told) - told.count("saved")
    print(f"many {len(told) > 50} refused {refused > 0.15 * len(told)}")
"""


def test_a_handler_saves_amid_the_steps_of_a_small_network(tmp_path):
    """Half of them were refused, where a thread sends the signal while native work runs."""
    code, out = run(STORM.replace("net.params", str(tmp_path / "net.params")), limit=60)
    assert code == 0, out
    assert "many True refused False" in out


# --- recursion ------------------------------------------------------------------------------------


def at(depth, work):
    return at(depth - 1, work) if depth else work()


@pytest.mark.parametrize("busy", [False, True])
def test_a_recursion_that_comes_to_its_limit_within_the_engine(threaded, busy):
    var, limit = threaded.new_variable(), sys.getrecursionlimit()
    operators = [
        threaded.new_operator(lambda ctx: None, (), (var,), kind=kind)
        for kind in ("sync", "async", "inline", "brief")
    ]
    operators[1].fn = lambda ctx, on_complete: on_complete()
    fine = engine.Repeatable(lambda ctx: None)
    ways = [
        *(lambda operator=operator: threaded.push(operator) for operator in operators),
        lambda: threaded.push_sync(fine, None, (), (var,)),
        lambda: threaded.push_sync(fine, None, (), (var,), priority=1),
        lambda: threaded.push_inline(fine, None, (), (var,)),
        lambda: threaded.push_later(fine, None, (), (var,)),
    ]
    if not busy:
        ways += [lambda: threaded.wait_for_var(var, write=True), threaded.wait_for_all]
    for way in ways:
        at(0, way)
    reached = 0
    for way in ways:
        for depth in itertools.count():
            begun, free = [], threading.Event()
            if busy:
                threaded.push_sync(lambda ctx, free=free: free.wait(20), None, (), (var,))
            try:
                sys.setrecursionlimit(_frames() + 60)
                at(depth, lambda way=way, begun=begun: (begun.append(way), way()))
            except RecursionError:
                reached += bool(begun)
            except EngineError:
                pass  # a function came to the limit, and is told of
            finally:
                sys.setrecursionlimit(limit)
                free.set()
            state = threaded._state()
            assert not threaded._lock._is_owned() and not state.bouncing, (way, depth)
            assert state.job is None and not state.hand
            threaded.push_sync(fine, None, (), (var,))
            assert _all_is_done(threaded), (way, depth)
            if not begun:
                break
    assert reached > len(ways)


def down(depth, work):
    """As `at`, by a function in C at each level."""
    return functools.reduce(lambda *_: down(depth - 1, work), (0, 0)) if depth else work()


def _deepest():
    """At how many such levels the limit comes."""
    reached = 0

    def further(*_):
        nonlocal reached
        reached += 1
        functools.reduce(further, (0, 0))

    with contextlib.suppress(RecursionError):
        further()
    return reached


def _come_to_the_limit_in_c(one, found):
    """Have each way of pushing come to the limit at every depth; `found` gets what it left."""
    var, fine = one.new_variable(), engine.Repeatable(lambda ctx: None)
    told = one.new_operator(lambda ctx, on_complete: on_complete(), (), (var,), kind="async")
    ways = [
        lambda: one.push(told),
        lambda: one.push_sync(fine, None, (), (var,)),
        lambda: one.push_inline(fine, None, (), (var,)),
        lambda: one.push_later(fine, None, (), (var,)),
        lambda: one.wait_for_var(var, write=True),
        one.wait_for_all,
    ]
    deepest = _deepest()
    for way in ways:
        for less in range(24):
            work = way if less % 2 else lambda way=way: sorted((0,), key=lambda _: way() or 0)
            with contextlib.suppress(RecursionError, EngineError):
                down(deepest - less // 2, work)
            state = one._state()
            left = one._lock._is_owned() or state.bouncing or state.job or state.hand
            if left or not _all_is_done(one):
                found.append((way, less))
                return
    found.append("done")


def test_a_recursion_through_c_that_comes_to_its_limit_within_the_engine(threaded):
    for _ in range(1200):  # until native code does it
        threaded.push_inline(lambda ctx: None, None, (), (threaded.new_variable(),))
    threaded.push_sync(lambda ctx: None)
    threaded.wait_for_all()
    limit, size, found = sys.getrecursionlimit(), threading.stack_size(512 << 20), []
    try:
        thread = threading.Thread(target=_come_to_the_limit_in_c, args=(threaded, found))
        sys.setrecursionlimit(2000 if sys.version_info < (3, 12) else 100_000)
        thread.start()
        threading.stack_size(size)
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    assert found == ["done"]


def _all_is_done(one):
    """Whether nothing is pending any more, after at most 20 seconds."""

    def wait():
        with contextlib.suppress(EngineError):
            one.wait_for_all()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


def _frames():
    frame, found = sys._getframe(1), 0
    while frame is not None:
        frame, found = frame.f_back, found + 1
    return found


def test_many_pushes_that_were_put_off_are_no_recursion(threaded):
    var, told = threaded.new_variable(), []

    def kernel(ctx):
        for k in range(2000):
            threaded.push_inline(lambda ctx, k=k: told.append(k), None, (), (var,))

    assert threaded.run_brief(kernel, (), (var,))
    assert told == list(range(2000))
