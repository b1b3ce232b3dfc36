"""Failures: poison, travel, are raised at the wait with both places, and the engine goes on."""

from __future__ import annotations

import functools
import threading
import traceback

import pytest

from gnomon import engine
from gnomon.base import EngineError, GnomonError
from gnomon.engine import Var, execution
from tests.engine.pushing import push_and_wait


def explode(run_ctx):
    raise ValueError("no such page")


def test_a_failure_is_raised_at_the_wait_with_both_places(threaded):
    var = threaded.new_variable()
    threaded.push_sync(explode, None, (), [var])  # the place that pushed
    with pytest.raises(EngineError) as caught:
        threaded.wait_for_var(var)
    assert isinstance(caught.value, GnomonError)
    text = str(caught.value)
    assert text.startswith("function 'explode' failed: ValueError: no such page")
    assert "test_failures.py" in text
    assert "in test_a_failure_is_raised_at_the_wait_with_both_places" in text
    assert "# the place that pushed" in text
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert "explode" in "".join(traceback.format_tb(cause.__traceback__))


def test_failures_that_were_told_keep_none_from_being_told(threaded, monkeypatch):
    monkeypatch.setattr(execution, "_KEPT_FAILURES", 3)
    for _ in range(5):
        push_and_wait_in_vain(threaded)
    assert len(threaded._failures) == 1  # the others went with what their functions held
    threaded.push_sync(explode, None, (), [threaded.new_variable()])
    with pytest.raises(EngineError, match="no such page"):
        threaded.wait_for_all()


def push_and_wait_in_vain(on):
    var = on.new_variable()
    on.push_sync(explode, None, (), [var])
    with pytest.raises(EngineError):
        on.wait_for_var(var)


@pytest.mark.parametrize("how", ["push_sync", "push_inline"])
def test_a_failure_travels_to_dependants_and_no_further(threaded, how):
    a, b, c, other = (threaded.new_variable() for _ in range(4))
    ran, push = [], getattr(threaded, how)
    push(explode, None, (), [a])
    push(lambda ctx: ran.append("b"), None, [a], [b])
    push(lambda ctx: ran.append("c"), None, [b], [c])
    push(lambda ctx: ran.append("other"), None, (), [other])
    threaded.wait_for_var(other)
    for var in (c, b, a, c):
        with pytest.raises(EngineError, match="'explode' failed"):
            threaded.wait_for_var(var)
    assert ran == ["other"]
    threaded.wait_for_all()  # told already


def test_a_write_before_anybody_was_told_does_not_hide_the_failure(threaded):
    var, ran = threaded.new_variable(), []
    threaded.push_sync(explode, None, (), [var])
    threaded.push_sync(lambda ctx: ran.append(1), None, (), [var])
    with pytest.raises(EngineError):
        threaded.wait_for_var(var)
    assert not ran


def test_a_write_after_that_heals(any_engine):
    var, out = any_engine.new_variable(), any_engine.new_variable()
    with pytest.raises((EngineError, ValueError)):
        push_and_wait(any_engine.push_sync, explode, (), [var])
    with pytest.raises(EngineError):  # a read of what was never computed
        push_and_wait(any_engine.push_sync, lambda ctx: None, [var], [out])
    any_engine.push_sync(lambda ctx: None, None, (), [var])
    any_engine.wait_for_var(var)
    any_engine.push_sync(lambda ctx: None, None, [var], ())
    any_engine.wait_for_all()


class Lasting(Var):
    """As memory of arrays."""

    __slots__ = ()

    def has_value(self):
        return self.version > 0


def test_what_a_failure_keeps_from_being_changed_has_its_value_once_it_was_told(threaded):
    grad, weight, fresh = (Lasting() for _ in range(3))
    ran = []
    threaded.push_sync(lambda ctx: ran.append("begin"), None, (), [weight])
    for again in range(2):  # the gradient's failure stays, and is told again
        if not again:
            threaded.push_sync(explode, None, (), [grad])
        for written in (weight, fresh, weight):
            threaded.push_sync(lambda ctx: ran.append("never"), None, [grad], [written])
        threaded.push_sync(lambda ctx: ran.append("never"), None, [weight], [])
        told, slow = threading.Event(), Lasting()
        threaded.push_sync(lambda ctx, told=told: told.wait(9), None, (), [slow])
        threaded.push_sync(lambda ctx: ran.append("never"), None, [weight, slow], [])
        with pytest.raises(EngineError, match="no such page"):
            threaded.wait_for_var(weight)
        told.set()
        threaded.push_sync(lambda ctx: ran.append("read"), None, [weight], [])
        threaded.wait_for_var(weight)
        for lacking in (grad, fresh):
            with pytest.raises(EngineError, match="no such page"):
                threaded.wait_for_var(lacking)
    threaded.wait_for_all()
    assert ran == ["begin", "read", "read"]


def test_wait_for_all_raises_the_first_and_counts_the_others(threaded):
    for _ in range(3):
        threaded.push_sync(explode, None, (), [threaded.new_variable()])
    with pytest.raises(EngineError, match="no such page") as caught:
        threaded.wait_for_all()
    assert caught.value.__notes__ == ["2 more functions failed independently"]
    threaded.wait_for_all()


def test_a_failure_without_variables_is_not_lost(threaded):
    threaded.push_sync(explode)
    with pytest.raises(EngineError, match="no such page"):
        threaded.wait_for_all()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_whatever_a_worker_raises_is_a_failure(threaded, kind):
    def function(ctx):
        raise kind

    threaded.push_sync(function)
    with pytest.raises(EngineError, match=kind.__name__):
        threaded.wait_for_all()
    threaded.push_sync(lambda ctx: None)
    threaded.wait_for_all()


def test_ctrl_c_in_an_inline_kernel_reaches_the_program(threaded):
    def function(ctx):
        raise KeyboardInterrupt

    var = threaded.new_variable()
    with pytest.raises(KeyboardInterrupt):
        threaded.push_inline(function, None, (), [var])
    threaded.wait_for_all()
    with pytest.raises(EngineError, match="KeyboardInterrupt"):
        threaded.wait_for_var(var)


def test_the_naive_engine_raises_at_the_push():
    naive = engine.NaiveEngine()
    var, out = naive.new_variable(), naive.new_variable()
    with pytest.raises(ValueError, match="no such page"):
        naive.push_sync(explode, None, (), [var])
    with pytest.raises(EngineError, match="'explode' failed"):
        naive.push_sync(lambda ctx: None, None, [var], [out])
    naive.wait_for_all()


def test_failures_in_four_threads_at_once(threaded):
    errors = []

    def program():
        var = threaded.new_variable()
        for _ in range(50):
            threaded.push_sync(explode, None, (), [var])
            threaded.push_inline(lambda ctx: None, None, (), [var])
            try:
                threaded.wait_for_var(var)
            except EngineError as error:
                errors.append(error)

    threads = [threading.Thread(target=program) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 200
    threaded.wait_for_all()


def test_a_place_is_found_outside_of_gnomon(threaded):
    operator = threaded.new_operator(explode, name="reader", kind="inline")
    threaded.push(operator)
    with pytest.raises(EngineError, match="function 'reader' failed") as caught:
        threaded.wait_for_all()
    assert "in test_a_place_is_found_outside_of_gnomon" in str(caught.value)


async def fetch(*arguments):
    raise AssertionError


def count(*arguments):
    yield 1


async def stream(*arguments):
    yield 1


PUSHES = {
    "push_sync": lambda e, fn, var: e.push_sync(fn, None, (), [var]),
    "urgent": lambda e, fn, var: e.push_sync(fn, None, (), [var], priority=1),
    "push_async": lambda e, fn, var: e.push_async(fn, None, (), [var]),
    "push_inline": lambda e, fn, var: e.push_inline(fn, None, (), [var]),
} | {
    kind: lambda e, fn, var, kind=kind: e.push(e.new_operator(fn, (), [var], kind=kind))
    for kind in ("sync", "async", "inline", "brief")
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fn", [fetch, count, stream, functools.partial(fetch)])
@pytest.mark.parametrize("how", PUSHES)
def test_a_function_of_which_nothing_runs_is_refused(any_engine, how, fn):
    any_engine.push_sync(lambda ctx: None)
    any_engine.wait_for_all()  # from here on by native code
    var = any_engine.new_variable()
    told = "push: argument 'fn': expected a function that does its work when it is called, got one"

    def push_and_wait_for_it():
        PUSHES[how](any_engine, fn, var)
        any_engine.wait_for_var(var)

    with pytest.raises(EngineError, match=told):
        push_and_wait_for_it()
    any_engine.wait_for_all()  # once is enough


@pytest.mark.parametrize("how", ["push_sync", "push_inline", "sync", "inline", "brief"])
def test_what_else_a_function_answers_is_dropped(any_engine, how):
    var, given = any_engine.new_variable(), [0, (), [1], any_engine, iter([])]
    for answer in given:
        PUSHES[how](any_engine, lambda ctx, answer=answer: answer, var)
    any_engine.wait_for_all()
    assert var.version == len(given) and var.failure is None
