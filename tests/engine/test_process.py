"""Fork and exit with work pending: no hang and no loss, each in a process of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback

import pytest

from gnomon import engine
from gnomon.base import EngineError
from tests.engine.processes import HEAD, run


def in_child(function) -> None:
    """Run `function` in a forked child, which must end well within ten seconds."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    for _ in range(1000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


# --- fork -----------------------------------------------------------------------------------

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def use(one: engine.Engine) -> None:
    """Use every part of an engine."""
    var, out, seen = one.new_variable(), one.new_variable(), []
    one.push_sync(lambda ctx: seen.append(1), None, (), [var])
    one.push_inline(lambda ctx: seen.append(2), None, [var], [out])
    one.push_async(lambda ctx, done: (seen.append(3), done()), None, (), [out])
    one.wait_for_var(out)
    one.wait_for_all()
    assert seen == [1, 2, 3]


def test_a_child_has_a_fresh_engine(any_engine):
    use(any_engine)
    in_child(lambda: use(any_engine))
    use(any_engine)


def test_pending_work_stays_with_the_parent(threaded):
    busy, queued, free, go = (threaded.new_variable(name) for name in ("b", "q", "f")), 0, 0, 0
    busy, queued, free = busy
    go, seen = threading.Event(), []
    threaded.push_sync(lambda ctx: seen.append(go.wait(10)), None, [free], [busy], name="slow")
    threaded.push_sync(lambda ctx: seen.append("queued"), None, [busy], [queued])
    threaded.push_async(lambda ctx, done: seen.append(done), None, (), ())

    def child():
        threaded.wait_for_all()  # nothing is pending here
        for var in (busy, queued):
            with pytest.raises(EngineError, match="pending in the parent when the process forked"):
                threaded.wait_for_var(var)
            threaded.push_sync(lambda ctx: None, None, (), [var])
            threaded.wait_for_var(var)
        threaded.push_sync(lambda ctx: None, None, (), [free])
        threaded.wait_for_all()
        use(threaded)

    in_child(child)
    go.set()
    threaded.wait_for_var(queued)
    assert True in seen
    assert "queued" in seen
    next(done for done in seen if callable(done))()
    threaded.wait_for_all()


def test_a_fork_in_the_midst_of_pushes(threaded):
    stop, var = threading.Event(), threaded.new_variable()

    def pusher():
        while not stop.is_set():
            threaded.push_sync(lambda ctx: None, None, (), [var])
            threaded.push_inline(lambda ctx: None, None, [var])
            threaded.wait_for_var(var)

    threads = [threading.Thread(target=pusher) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        in_child(lambda: use(threaded))
    stop.set()
    for thread in threads:
        thread.join()
    threaded.wait_for_all()


def test_a_function_may_fork(threaded):
    threaded.push_sync(lambda ctx: in_child(lambda: use(threaded)))
    threaded.push_inline(lambda ctx: in_child(lambda: use(threaded)))
    threaded.wait_for_all()
    use(threaded)


@pytest.mark.parametrize("push", ["push_sync", "push_inline"])
def test_a_child_waits_for_nothing_that_ran_and_was_not_settled(any_engine, push):
    """The function is over, and its thread waits for the lock that the fork holds."""
    var, started, over = any_engine.new_variable(), threading.Event(), threading.Event()

    def work(ctx):
        started.set()
        over.wait()

    def child():
        with pytest.raises(EngineError, match="pending in the parent when the process forked"):
            any_engine.wait_for_var(var)
        any_engine.push_sync(lambda ctx: None, None, (), [var])
        any_engine.wait_for_var(var)
        use(any_engine)

    pusher = threading.Thread(target=lambda: getattr(any_engine, push)(work, None, (), [var]))
    pusher.start()
    started.wait()
    with any_engine._lock:
        over.set()
        time.sleep(0.05)
        in_child(child)
    pusher.join()
    any_engine.wait_for_all()


def test_forks_while_threads_flood_the_engine(threaded):
    """Thousands of functions queue for each variable, and others for all of them."""
    stop, shared, start = threading.Event(), threaded.new_variable(), threading.Event()
    mine, pushed, ran = [threaded.new_variable() for _ in range(4)], [0] * 4, [0] * 4

    def count(k):
        ran[k] += 1

    def flood(k):
        while not stop.is_set() and pushed[k] < 30_000:
            threaded.push_sync(lambda ctx: count(k), None, [shared], [mine[k]])
            pushed[k] += 1

    def child():
        use(threaded)
        for var in (shared, *mine):
            with pytest.raises(EngineError, match="pending in the parent when the process forked"):
                threaded.wait_for_var(var)
        threaded.push_sync(lambda ctx: None, None, (), [shared])
        for var in mine:
            threaded.push_sync(lambda ctx: None, None, [shared], [var])
            threaded.wait_for_var(var)
        threaded.wait_for_all()

    threaded.push_sync(lambda ctx: start.wait(60), None, (), [shared])
    threads = [threading.Thread(target=flood, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    try:
        while min(pushed) < 1000:
            time.sleep(0.001)
        for _ in range(3):
            in_child(child)
        start.set()
        in_child(lambda: use(threaded))
    finally:
        start.set()
        stop.set()
    for thread in threads:
        thread.join()
    threaded.wait_for_all()
    assert ran == pushed


def test_what_is_told_of_many_is_told_at_once(threaded):
    go, first = threading.Event(), threaded.new_variable("first")
    threaded.push_sync(lambda ctx: go.wait(20), None, (), [first])
    before = first
    for _ in range(20_000):
        after = threaded.new_variable()
        threaded.push_sync(lambda ctx: None, None, [first, before][before is first :], [after])
        before = after
    assert "and 19981 more" in threaded.report()
    go.set()
    threaded.wait_for_all()


def test_a_child_may_delete_an_operator_that_the_parent_pushed(threaded):
    go, var = threading.Event(), threaded.new_variable()
    step = threaded.new_operator(lambda ctx: go.wait(20), mutate_vars=[var], kind="sync")
    later = threaded.new_operator(lambda ctx: None, const_vars=[var], kind="sync")
    for operator in (step, step, later):
        threaded.push(operator)

    def child():
        threaded.delete_operator(step)
        threaded.delete_operator(later)

    in_child(child)
    go.set()
    threaded.delete_operator(step)
    threaded.wait_for_all()


def test_a_failure_is_one_in_a_child_too(threaded):
    bad, out = threaded.new_variable(), threaded.new_variable()
    threaded.push_sync(lambda ctx: 1 // 0, None, (), [bad])
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        threaded.wait_for_var(bad)

    def child():
        threaded.push_sync(lambda ctx: None, None, [bad], [out])
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            threaded.wait_for_var(out)

    in_child(child)


def test_a_child_sees_what_was_held_back_before_the_fork(threaded):
    seen, var = [], threaded.new_variable()
    threaded.push_later(lambda ctx: seen.append(1), mutate_vars=[var])
    in_child(lambda: (threaded.wait_for_var(var), seen == [1] or 1 // 0))
    with threaded.bulk(100):
        threaded.push_sync(lambda ctx: time.sleep(0.2), None, (), [var])

        def child():
            with pytest.raises(EngineError, match="pending in the parent when the process forked"):
                threaded.wait_for_var(var)

        in_child(child)
    threaded.wait_for_all()


# --- exit -----------------------------------------------------------------------------------


def test_work_pending_at_exit_is_done():
    code, out = run(
        HEAD
        + """
    def tell(i):
        time.sleep(0.05)
        os.write(1, b"done %d\\n" % i)  # in one piece, unlike print
    for i in range(3):
        e.push_sync(lambda ctx, i=i: tell(i), None, (), [v])
    """
    )
    assert (code, out.split("\n")[:3]) == (0, ["done 0", "done 1", "done 2"])


def test_asynchronous_work_is_waited_for_at_exit():
    # the thread stands before the exit, at which Python 3.12.0 and 3.12.1 start none
    code, out = run(
        HEAD
        + """
    import queue
    asked = queue.Queue()
    def serve():
        done = asked.get()
        time.sleep(0.2)
        print("fetched")
        done()
    threading.Thread(target=serve, daemon=True).start()
    e.push_async(lambda ctx, done: asked.put(done), None, (), [v])
    e.push_sync(lambda ctx: print("parsed"), None, [v])
    """
    )
    assert (code, out.split()) == (0, ["fetched", "parsed"])


def test_an_engine_that_cannot_end_keeps_no_other_from_it():
    _, out = run(
        HEAD
        + """
    from gnomon.engine import lifecycle
    class Broken:
        def finish(self):
            raise RuntimeError("no thread to be had")
    broken = [Broken() for _ in range(50)]  # a set has no order: most come before the others
    lifecycle.engines.update(broken)
    others = [engine.ThreadedEngine() for _ in range(2)]
    def tell(k):
        time.sleep(0.1)
        os.write(1, b"done %d\\n" % k)  # in one piece, unlike print
    for k, other in enumerate(others):
        var = other.new_variable()
        other.push_sync(lambda ctx, k=k: tell(k), None, (), [var])
    """
    )
    assert {"done 0", "done 1"} <= set(out.split("\n"))
    assert "no thread to be had" in out


def test_a_callback_that_never_comes_does_not_keep_the_interpreter():
    code, out = run(
        HEAD
        + """
    kept = []
    e.push_async(lambda ctx, done: kept.append(done), None, (), [v], name="fetch")
    e.push_sync(lambda ctx: print("never"), None, [v], name="parse")
    print("leaving")
    """
    )
    assert code == 0
    assert "'fetch' has begun, and its on_complete was not called" in out
    assert "'parse' waits for Var(v, version 0)" in out
    assert "never\n" not in out


def test_a_failure_nobody_waited_for_is_told_at_exit():
    code, out = run(HEAD + "    e.push_sync(lambda ctx: 1 // 0, None, (), [v], name='divide')")
    assert code == 0
    assert "not waited for: function 'divide' failed: ZeroDivisionError" in out


def test_an_engine_used_by_exit_handlers():
    code, out = run(
        """
    import atexit
    atexit.register(lambda: (e.push_inline(lambda ctx: print("late")), e.wait_for_all()))
    from gnomon import engine
    e = engine.get()
    e.push_sync(lambda ctx: print("early"))
    """
    )
    assert (code, out.split()) == (0, ["early", "late"])


def test_threads_that_push_more_than_is_done_while_the_interpreter_ends():
    code, out = run(
        HEAD
        + """
    def pusher():
        while True:
            e.push_sync(lambda ctx: time.sleep(0.002), None, (), [v])
            time.sleep(0.001)
    for _ in range(3):
        threading.Thread(target=pusher, daemon=True).start()
    time.sleep(0.1)
    e.push_sync(lambda ctx: print("done"), None, (), [v])
    """
    )
    assert (code, out.split()) == (0, ["done"])


def test_a_thread_that_pushes_while_the_interpreter_ends():
    code, out = run(
        HEAD
        + """
    def pusher():
        while True:
            e.push_sync(lambda ctx: None, None, (), [v])
            e.push_inline(lambda ctx: None, None, [v])
            time.sleep(0.0001)
    threading.Thread(target=pusher, daemon=True).start()
    time.sleep(0.1)
    """
    )
    assert (code, out) == (0, "")


def test_signal_handlers_that_compute():
    """An error at worst, where what they interrupt holds what they need; never a hang."""
    code, out = run(
        """
    import signal
    import gnomon as mx
    x, calls, inside = mx.nd.ones((2000,)), [], []
    def handler(*_):
        if inside:
            return
        inside.append(1)
        try:
            (mx.nd.ones((2000,)) * 2).wait_to_read()
            mx.nd.waitall()
        except mx.MXNetError:
            pass
        calls.append(inside.pop())
    handler()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.001)
    while len(calls) < 300:
        y = x * 2 + 1
        z = mx.nd.sort(y)
        mx.nd.waitall()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(y[:1].asscalar())
    """
    )
    assert (code, out.split()) == (0, ["3.0"])
