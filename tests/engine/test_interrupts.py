"""Ctrl-C, and whatever else signals' handlers raise, at any instruction: the state stays right."""

from __future__ import annotations

import signal

import pytest

from tests.engine.processes import HEAD, run


@pytest.mark.parametrize("wait", ["e.wait_for_var(v)", "e.wait_for_all()"])
def test_ctrl_c_ends_a_wait_and_the_work_goes_on(wait):
    code, out = run(
        HEAD
        + f"""
    go = threading.Event()
    e.push_sync(lambda ctx: (go.wait(20), print("done")), None, (), [v])
    try:
        print("waiting")
        {wait}
    except KeyboardInterrupt:
        print("interrupted")
    go.set()
    e.wait_for_all()
    e.push_sync(lambda ctx: print("and on"), None, (), [v])
    e.wait_for_var(v)
    """,
        "waiting",
    )
    assert (code, out.split("\n")[:4]) == (0, ["waiting", "interrupted", "done", "and on"])


def test_ctrl_c_ends_the_program():
    code, out = run(
        HEAD
        + """
    import atexit
    go = threading.Event()
    atexit.register(go.set)  # the exit waits for the work
    e.push_sync(lambda ctx: go.wait(20), None, (), [v])
    print("waiting")
    e.wait_for_all()
    """,
        "waiting",
    )
    assert code == -signal.SIGINT
    assert "KeyboardInterrupt" in out


STORM = """
    import signal, sys, itertools
    from gnomon.engine import ThreadedEngine
    sys.setswitchinterval(1e-4)
    e = ThreadedEngine(2)
    variables = [e.new_variable() for _ in range(4)]
    def step(i):
        a, b, c = variables[i % 4], variables[(i + 1) % 4], variables[(i + 2) % 4]
        e.push_sync(lambda ctx: None, None, [a], [b])
        e.push_inline(lambda ctx: None, None, [b], [c])
        e.push_sync(lambda ctx: None, None, [c, b], [a], priority=i % 3 - 1)
        e.push_inline(lambda ctx: None, None, (), [a])
        if i % 50 == 0:
            e.wait_for_var(b)
    armed, interrupts = False, 0
    def interrupt(*args):
        global armed
        if armed:
            armed = False
            raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 7e-4)
    end = time.monotonic() + 3
    for i in itertools.count():
        if time.monotonic() > end:
            break
        try:
            armed = True
            step(i)
            armed = False
        except KeyboardInterrupt:
            interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    e.wait_for_all()
    for v in variables:
        e.push_sync(lambda ctx: None, None, (), [v])
        e.push_inline(lambda ctx: None, None, (), [v])
        e.wait_for_var(v)
        assert not v.readers and v.writer is None and not v.queue
    e.wait_for_all()
    print(f"pushes {i > 1000} interrupts {interrupts > 100} {e.report() == ''}")
"""


def test_ctrl_c_at_any_instruction_leaves_the_books_right():
    code, out = run(HEAD + STORM, limit=60)
    assert (code, out.split("\n")[-2]) == (0, "pushes True interrupts True True")


FLURRY = """
    import contextlib, random, signal
    from gnomon import engine
    e = engine.create({kind!r})
    variables = [e.new_variable() for _ in range(5)]
    e.push_sync(lambda ctx: None)  # no interrupts while native code is made
    e.wait_for_all()
    class Bang(Exception):
        pass
    armed, bangs, ended, runs = False, 0, 0, []
    def bang(*args):
        global bangs
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 3e-4))
        if armed:
            bangs += 1
            raise Bang
    def nothing(ctx):
        pass
    again = engine.Repeatable(nothing)
    def once():
        runs.append(0)
        at = len(runs) - 1
        def run(ctx):
            runs[at] += 1
        return run
    here = e.new_operator(again, [variables[3]], [variables[0]], kind="inline")
    there = e.new_operator(nothing, [variables[0]], [variables[1]], kind="sync")
    def step(i):
        a, b = variables[i % 5], variables[(i + 1 + random.randrange(4)) % 5]
        e.push_sync(nothing, None, [a], [b])
        e.push_sync(once(), None, [a], [b], priority=i % 3 - 1)
        e.push_inline(once(), None, [b], [a])
        e.push_inline(again, None, [a], [b])
        e.push(here)
        e.push(there, None, i % 2)
        if i % 7 == 0:
            e.push_later(again, None, [a], [b])
        if i % 11 == 0:
            e.push_async(lambda ctx, done: done(), None, [a], [b])
        if i % 13 == 0:
            with e.bulk(3):
                e.push_sync(once(), None, [a], [b])
                e.push_sync(once(), None, (), [b])
        if i % 10 == 0:
            e.wait_for_var(b)
        if i % 100 == 0:
            e.wait_for_all()
    signal.signal(signal.SIGALRM, bang)
    signal.setitimer(signal.ITIMER_REAL, 1e-3)
    end, i = time.monotonic() + 3, 0
    def is_over():
        return bangs > 1000 and time.monotonic() >= end
    while not is_over():
        try:
            try:
                armed = True
                while True:  # a condition's jump back would be outside of the `try`
                    if is_over():
                        break
                    step(i)
                    i += 1
            finally:
                armed = False
        except (Bang, engine.EngineError):
            ended += 1
        armed = False
        for v in variables:  # else a step that reads what failed fails for ever
            with contextlib.suppress(Bang, engine.EngineError):
                e.push_sync(nothing, None, (), [v])
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for v in variables:
        e.push_sync(nothing, None, (), [v])
        e.push_inline(again, None, (), [v])
    while e._pending:
        time.sleep(0.01)
    assert not here.active and not there.active and e.report() == "", e.report()
    for v in variables:
        assert not v.readers and v.writer is None and not v.queue
    print(f"pushes {len(runs) > 100} none twice {max(runs) == 1}")
"""


@pytest.mark.parametrize("kind", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_interrupts_within_the_clean_up_of_others_leave_the_books_right(kind):
    code, out = run(HEAD + FLURRY.replace("{kind!r}", repr(kind)), limit=60)
    assert code == 0, out
    assert "pushes True none twice True" in out
