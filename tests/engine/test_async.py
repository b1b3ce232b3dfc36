"""Asynchronous functions: done when `on_complete` is called, from any thread, once."""

from __future__ import annotations

import gc
import logging
import threading
import time

import pytest

from gnomon import config
from gnomon.base import EngineError
from gnomon.engine.completion import Completion
from tests.engine.pushing import push_and_wait


def later(function, *args):
    timer = threading.Timer(0.01, function, args)
    timer.daemon = True
    timer.start()


def test_a_function_is_done_when_its_callback_is_called(any_engine):
    var, out, order = any_engine.new_variable(), any_engine.new_variable(), []

    def function(ctx, on_complete):
        later(lambda: (order.append("io"), on_complete()))

    any_engine.push_async(function, None, (), [var])
    any_engine.push_sync(lambda ctx: order.append("next"), None, [var], [out])
    any_engine.wait_for_var(out)
    assert order == ["io", "next"]


def test_the_callback_may_come_before_the_function_returns(any_engine):
    var = any_engine.new_variable()
    for _ in range(20):
        any_engine.push_async(lambda ctx, on_complete: on_complete(), None, (), [var])
    any_engine.wait_for_var(var)
    assert var.version == 20


def test_many_wait_at_once_on_one_worker(threaded):
    done = []
    for _ in range(100):
        threaded.push_async(lambda ctx, on_complete: done.append(on_complete))
    while len(done) < 100:
        time.sleep(0.001)
    for on_complete in done:
        on_complete()
    threaded.wait_for_all()


def test_a_second_call_is_an_error_of_the_caller(threaded):
    kept = []
    threaded.push_async(lambda ctx, on_complete: (kept.append(on_complete), on_complete()))
    threaded.wait_for_all()
    with pytest.raises(EngineError, match="the function had ended"):
        kept[0]()


def test_a_function_may_end_as_failed(threaded):
    var = threaded.new_variable()
    threaded.push_async(lambda ctx, done: later(done, OSError("disk full")), None, (), [var])
    with pytest.raises(EngineError, match="OSError: disk full"):
        threaded.wait_for_var(var)


def test_a_function_that_raises_is_done(any_engine):
    var = any_engine.new_variable()
    with pytest.raises((EngineError, ZeroDivisionError), match=r"zero"):
        push_and_wait(any_engine.push_async, lambda ctx, on_complete: 1 // 0, (), [var])


def test_an_error_after_the_callback_is_not_lost(threaded):
    var = threaded.new_variable()

    def function(ctx, on_complete):
        on_complete()
        raise RuntimeError("too late")

    threaded.push_async(function, None, (), [var])
    threaded.wait_for_var(var)
    with pytest.raises(EngineError, match="too late"):
        threaded.wait_for_all()


def test_a_callback_whose_making_was_interrupted_says_nothing():
    made = Completion.__new__(Completion)
    made.__del__()


def test_a_callback_that_is_forgotten_fails_at_once(any_engine):
    var = any_engine.new_variable()
    with pytest.raises(EngineError, match="let go of its on_complete without calling it"):
        push_and_wait(any_engine.push_async, lambda ctx, on_complete: None, (), [var])


def test_a_callback_that_never_comes_is_reported(threaded, caplog):
    fetched, parsed, kept = threaded.new_variable("fetched"), threaded.new_variable(), []
    threaded.push_async(
        lambda ctx, on_complete: kept.append(on_complete), None, (), [fetched], name="fetch"
    )
    threaded.push_sync(lambda ctx: None, None, [fetched], [parsed], name="parse")
    later(lambda: (time.sleep(0.15), kept[0]()))
    with caplog.at_level(logging.WARNING, "gnomon.engine"), config.using(hang_report_seconds=0.05):
        threaded.wait_for_var(parsed)
    text = caplog.records[0].getMessage()
    assert "nothing was done for 0.05 s" in text
    assert "'fetch' has begun, and its on_complete was not called" in text
    assert "'parse' waits for Var(fetched, version 0), written by 'fetch'" in text
    assert "in test_a_callback_that_never_comes_is_reported" in text


def test_waiting_for_one_function_by_a_callback_at_its_end(threaded):
    ended = threading.Event()

    def function(ctx, on_complete):
        on_complete()
        ended.set()

    threaded.push_async(function)
    assert ended.wait(5)


def test_a_finaliser_may_push_and_complete(threaded):
    seen = []

    class Page:
        def __del__(self):
            threaded.push_sync(lambda ctx: seen.append(1))

    for _ in range(100):
        page = Page()
        page.self = page
        threaded.push_inline(lambda ctx, page=page: None)
    del page
    gc.collect()
    threaded.wait_for_all()
    assert len(seen) == 100


def test_what_an_engine_is_given_is_checked_before_it_is_taken(any_engine):
    var = any_engine.new_variable()
    for wrong, words in (
        ({"ctx": "cpu"}, r"push.*ctx.*expected a Context or None, got 'cpu'"),
        ({"priority": "high"}, r"push.*priority.*expected a number, got 'high'"),
    ):
        operator = any_engine.new_operator(lambda ctx: None, mutate_vars=[var], kind="sync")
        for push in (any_engine.push_sync, any_engine.push_async):
            with pytest.raises(EngineError, match=words):
                push(lambda ctx, *_: None, mutate_vars=[var], **wrong)
        with pytest.raises(EngineError, match=words):
            any_engine.push(operator, **wrong)
    for wrong in (3, var):
        with pytest.raises(EngineError, match=r"push.*expected one of new_operator"):
            any_engine.push(wrong)
    any_engine.wait_for_var(var)


def test_what_a_callback_is_given_is_no_exception(threaded):
    var = threaded.new_variable()
    threaded.push_async(lambda ctx, on_complete: on_complete("text"), mutate_vars=[var])
    for _ in range(2):
        with pytest.raises(EngineError, match="an exception or None, got 'text'"):
            threaded.wait_for_var(var)
