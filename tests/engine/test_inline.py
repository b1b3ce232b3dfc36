"""Inline kernels: on the pushing thread when ready, in order, and never by recursion."""

from __future__ import annotations

import threading
import time

import pytest

from gnomon import engine
from gnomon.base import EngineError
from gnomon.ground.record import put


def test_a_ready_kernel_runs_on_the_pushing_thread_before_the_push_returns(any_engine):
    var, ran_on = any_engine.new_variable(), []
    any_engine.push_inline(lambda ctx: ran_on.append(threading.get_ident()), None, (), [var])
    assert ran_on == [threading.get_ident()]
    assert var.version == 1


def test_a_kernel_that_is_not_ready_runs_when_it_is(threaded):
    var, out, go, seen = threaded.new_variable(), threaded.new_variable(), threading.Event(), []
    threaded.push_sync(lambda ctx: seen.append(go.wait(5)), None, (), [var])
    for number in range(5):
        threaded.push_inline(lambda ctx, n=number: seen.append(n), None, [var], [out])
    assert seen == []
    go.set()
    threaded.wait_for_var(out)
    assert seen == [True, 0, 1, 2, 3, 4]


def test_a_hundred_thousand_kernels_in_a_chain(threaded):
    var, go, count = threaded.new_variable(), threading.Event(), [0]

    def kernel(ctx):
        count[0] += 1

    threaded.push_sync(lambda ctx: go.wait(30), None, (), [var])
    for _ in range(100_000):
        threaded.push_inline(kernel, None, (), [var])
    go.set()
    threaded.wait_for_var(var)
    assert count[0] == 100_000


def test_kernels_that_push_kernels_do_not_recurse(threaded):
    var, count = threaded.new_variable(), [0]

    def kernel(ctx):
        count[0] += 1
        if count[0] < 5000:
            threaded.push_inline(kernel, None, (), [var])

    threaded.push_inline(kernel, None, (), [var])
    threaded.wait_for_all()  # workers go on with a long chain
    assert count[0] == 5000


def test_a_kernel_made_ready_by_a_completion_elsewhere_runs_on_a_worker(threaded):
    var, ran_on, finish = threaded.new_variable(), [], []
    threaded.push_async(lambda ctx, done: finish.append(done), None, (), [var])
    threaded.push_inline(lambda ctx: ran_on.append(threading.get_ident()), None, [var])
    while not finish:
        threading.Event().wait(0.001)
    finish[0]()
    threaded.wait_for_all()
    assert ran_on != [threading.get_ident()]


def test_kernels_of_many_threads_on_shared_variables(threaded):
    variables, boxes = [threaded.new_variable() for _ in range(3)], [0] * 3

    def add(ctx, i):
        value = boxes[i]
        threading.Event().wait(0) if value % 50 == 0 else None
        boxes[i] = value + 1

    def pusher():
        for number in range(600):
            i = number % 3
            threaded.push_inline(lambda ctx, i=i: add(ctx, i), None, (), [variables[i]])

    threads = [threading.Thread(target=pusher) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threaded.wait_for_all()
    assert boxes == [800] * 3


@pytest.mark.parametrize("pushes", [False, True])
def test_no_thread_runs_for_ever_what_another_pushes_without_an_end(threaded, pushes):
    var, enough, counts = threaded.new_variable(), threading.Event(), {"pushed": 0, "run": 0}

    def kernel(ctx):  # does not end before another waits for it
        counts["run"] += 1
        while counts["run"] > counts["pushed"] and not enough.is_set():
            time.sleep(0)
        if pushes:
            threaded.push_inline(lambda ctx: None, None, (), [var])

    def flood():
        while not enough.is_set():
            threaded.push_inline(kernel, None, (), [var])
            counts["pushed"] += 1

    another = threading.Thread(target=flood)
    threaded.push_inline(lambda ctx: (another.start(), kernel(ctx)), None, (), [var])
    assert not enough.is_set()  # the push has returned
    enough.set()
    another.join()
    threaded.wait_for_var(var)
    most = 500 if pushes else 1000  # kernels in the 1,000 jobs that a thread runs at one time
    assert counts["run"] == counts["pushed"] + 1 > most


def test_a_brief_kernel_runs_where_nobody_is_in_its_way(threaded):
    var, out, seen = threaded.new_variable(), threaded.new_variable(), []
    assert threaded.run_brief(lambda ctx: seen.append(ctx.get_stream()), (var, var), (out, var))
    assert (seen, var.version, out.version) == ([None], 1, 1)
    go = threading.Event()
    threaded.push_sync(lambda ctx: go.wait(5), None, [var])
    assert threaded.run_brief(lambda ctx: None, (var,), (out,))
    assert not threaded.run_brief(lambda ctx: None, (out,), (var,))
    go.set()
    threaded.wait_for_var(var, write=True)
    assert threaded.run_brief(lambda ctx: None, (), (var,))


def test_a_brief_push_waits_its_turn_and_pushes_pending_readers(threaded):
    var, out, seen = threaded.new_variable(), threaded.new_variable(), []
    go = threading.Event()
    threaded.push_sync(lambda ctx: go.wait(5), None, [var])
    threaded.push_brief(lambda ctx: seen.append("written"), None, (), (var,))
    assert seen == []
    go.set()
    threaded.wait_for_var(var)
    assert seen == ["written"]

    def read():
        put(out, "pending_readers", ())
        threaded.push_inline(lambda ctx: seen.append("pending_readers"), None, (out,))

    put(out, "pending_readers", (read,))
    threaded.push_brief(lambda ctx: seen.append("after"), None, (var,), (out,))
    assert seen[1:] == ["pending_readers", "after"]


def test_a_brief_kernel_that_fails_poisons(threaded):
    var = threaded.new_variable()
    assert threaded.run_brief(lambda ctx: 1 // 0, (), (var,))
    assert not threaded.run_brief(lambda ctx: None, (var,), ())
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        threaded.wait_for_var(var)


def test_a_handler_within_a_brief_kernel_reads_nothing_too_early(threaded):
    """What it pushes runs behind the kernel, before all that is pushed later; its waits say so."""
    var, out, other, seen = *(threaded.new_variable() for _ in range(3)), []

    def kernel(ctx):
        threaded.push_inline(lambda ctx: seen.append("handler's"), None, (), (out,))
        with pytest.raises(EngineError, match="signal handler within the engine"):
            threaded.wait_for_var(out)
        assert threaded.run_brief(lambda ctx: seen.append("within"), (), (other,))
        seen.append("kernel")

    assert threaded.run_brief(kernel, (), (var,))
    assert threaded.run_brief(lambda ctx: seen.append("later"), (out,), (var,))
    assert seen == ["within", "kernel", "handler's", "later"]


def test_what_a_handler_pushes_amid_an_entry_stays_in_order(threaded):
    """A brief kernel does not overtake what was put off."""
    var, told = threaded.new_variable(), []
    with threaded._lock:
        threaded.push_inline(lambda ctx: told.append("first"), None, (), (var,))
        threaded.push_brief(lambda ctx: told.append("second"), None, (), (var,))
        assert told == []
    threaded.wait_for_all()
    assert told == ["first", "second"]


def test_brief_kernels_and_naive_engines():
    naive = engine.NaiveEngine()
    assert not naive.run_brief(print, (), ())
