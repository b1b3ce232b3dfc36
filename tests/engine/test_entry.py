"""Pushes and workers' turns by native code: what Python's do, and the way back to them."""

from __future__ import annotations

import contextlib
import gc
import inspect
import threading
import traceback

import pytest

from gnomon import engine
from gnomon.base import EngineError
from gnomon.context import cpu
from gnomon.engine import threaded, turns
from gnomon.engine.engine import Engine
from gnomon.ground.record import put


@pytest.fixture
def started(threaded):
    """An engine with workers: from then on pushes may be native."""
    threaded.push_sync(lambda ctx: None)
    threaded.wait_for_all()
    return threaded


def test_arguments_by_place_and_by_name(started):
    told = []
    a, b = started.new_variable(), started.new_variable()
    started.push_sync(told.append, None, [a], (b,), 0, "one", False)
    started.push_sync(fn=told.append, mutate_vars=[b], const_vars=(a,), name="two")
    started.push_sync(**{"".join(["f", "n"]): told.append, "".join(["mutate", "_vars"]): [b]})
    started.push_sync(told.append, mutate_vars=iter([b]), priority=3)
    started.wait_for_all()
    assert len(told) == 4 and (a.version, b.version) == (0, 4)
    shown = inspect.signature(type(started).push_sync)
    assert [*shown.parameters] == [*inspect.signature(Engine.push_sync).parameters]


@pytest.mark.parametrize(
    ("arguments", "words", "error"),
    [
        ((), {}, TypeError),
        ((print,) * 9, {}, TypeError),
        ((print,), {"fn": print}, TypeError),
        ((print,), {"other": 1}, TypeError),
        ((3,), {}, EngineError),
        ((print, None, 3), {}, EngineError),
        ((print, None, [3]), {}, EngineError),
        ((print, "cpu"), {}, EngineError),
        ((print, None, (), (), "high"), {}, EngineError),
    ],
)
def test_mistakes_are_told_by_python(started, arguments, words, error):
    with pytest.raises(error):
        started.push_sync(*arguments, **words)
    assert started._pending == 0


def test_variables_are_checked(started):
    a, b, gone = (started.new_variable() for _ in range(3))
    started.delete_variable(gone)
    for const, mutate in [([a, a], []), ([], [b, b]), ([a], [b, a]), ([gone], []), ([], [gone])]:
        with pytest.raises(EngineError, match=r"once|either|deleted"):
            started.push_sync(print, None, const, mutate)
    many = [started.new_variable() for _ in range(20)]
    started.push_sync(lambda ctx: None, None, [a], many)
    started.wait_for_all()
    assert [x.version for x in many] == [1] * 20


def test_pending_readers_are_pushed_first(started):
    a, told = started.new_variable(), []

    def reader():
        put(a, "pending_readers", ())
        started.push_sync(lambda ctx: told.append("read"), const_vars=[a])

    put(a, "pending_readers", [reader])
    started.push_sync(lambda ctx: told.append("written"), mutate_vars=[a])
    started.wait_for_all()
    assert told == ["read", "written"]


def test_readers_enter_together_and_writers_alone(started):
    a, told, gate = started.new_variable(), [], threading.Event()
    both = threading.Barrier(2)
    started.push_sync(lambda ctx: gate.wait(5), mutate_vars=[a])
    for _ in range(2):
        started.push_sync(lambda ctx: told.append(both.wait(5) < 2), const_vars=[a])
    started.push_sync(lambda ctx: told.append("w"), mutate_vars=[a])
    started.push_async(lambda ctx, done: (told.append("async"), done()), mutate_vars=[a])
    started.push_inline(lambda ctx: told.append("inline"), mutate_vars=[a])
    started.push_sync(lambda ctx: told.append("urgent"), mutate_vars=[a], priority=1)
    started.push_sync(lambda ctx: told.append("last"), mutate_vars=[a])
    gate.set()
    started.wait_for_all()
    assert told == [True, True, "w", "async", "inline", "urgent", "last"]
    assert a.version == 6 and not a.queue and not a.readers and a.writer is None


def test_the_place_of_a_push_and_of_an_error_are_told(started):
    def wrong(ctx):
        return 1 // 0

    a = started.new_variable()
    started.push_sync(wrong, mutate_vars=[a])  # here
    with pytest.raises(EngineError, match=r"(?s)'.*wrong' failed: ZeroDivisionError.*# here") as e:
        started.wait_for_var(a)
    frames = traceback.extract_tb(e.value.__cause__.__traceback__)
    assert frames[-1].line == "return 1 // 0"


def test_functions_in_c_leave_others_their_turn(started):
    seen = threading.Event()
    threading.Timer(0.05, seen.set).start()
    variable = started.new_variable()
    told = []
    while not seen.is_set():
        for _ in range(1000):
            started.push_sync(told.append, None, (), (variable,))
    started.wait_for_all()
    assert len(told) == variable.version


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_it_was(started, on):
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        for _ in range(100):
            started.push_sync(lambda ctx: [[] for _ in range(10)])
        started.wait_for_all()
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()


def test_functions_are_let_go_of_when_they_are_done(started):
    class Marked:
        def __call__(self, ctx):
            return None

        def __del__(self):
            # it pushes, from wherever it is let go of
            started.push_sync(lambda ctx: gone.append(1))

    gone = []
    for _ in range(200):
        started.push_sync(Marked())
    for _ in range(3):
        started.wait_for_all()
    assert len(gone) >= 199


def prepared(one, fn, const=(), mutate=(), kind="inline"):
    return one.new_operator(fn, const, mutate, kind=kind)


@pytest.mark.parametrize("kind", ["inline", "sync"])
def test_prepared_operators(started, kind):
    a, b = started.new_variable(), started.new_variable()
    told = []
    operator = prepared(started, told.append, [a], [b], kind)
    for _ in range(100):
        started.push(operator)
    started.push(operator, ctx=None, priority=2)
    started.delete_operator(operator)
    assert len(told) == 101 and b.version == 101 and not operator.active
    with pytest.raises(EngineError, match="deleted"):
        started.push(operator)
    with pytest.raises(EngineError, match="new_operator"):
        started.push(3)
    with pytest.raises(TypeError):
        started.push()
    gone = prepared(started, told.append, [a], [b], kind)
    started.delete_variable(a)
    with pytest.raises(EngineError, match="deleted"):
        started.push(gone)


def test_what_an_inline_function_makes_ready(started):
    a, told = started.new_variable(), []
    here = threading.get_ident()

    def tell(ctx):
        told.append(threading.get_ident() == here)

    def outer(ctx):
        told.append("outer")
        started.push(inner)  # it waits for the variable, and runs next on this thread
        started.push_sync(lambda ctx: told.append("worker"), mutate_vars=[a])
        started.push(inner)
        started.push(other)  # of no common variable, but not within this one

    inner = prepared(started, tell, (), [a])
    other = prepared(started, lambda ctx: told.append("other"))
    started.push(prepared(started, outer, (), [a]))
    started.wait_for_all()
    assert told[:2] == ["outer", "other"] or told[:2] == ["outer", True]
    assert sorted(map(str, told)).count("True") >= 1 and "worker" in told and len(told) == 5
    assert a.version == 4 and not started._state().bouncing


def test_an_inline_function_on_a_worker_and_one_that_waits(started):
    a, b, told = started.new_variable(), started.new_variable(), []
    inner = prepared(started, lambda ctx: told.append("inner"), (), [b])

    def outer(ctx):
        started.push(inner)
        started.wait_for_var(b)
        told.append("outer")

    started.push_sync(outer, mutate_vars=[a])
    started.wait_for_var(a)
    started.push(prepared(started, outer, (), [a]))
    started.wait_for_all()
    assert told == ["inner", "outer"] * 2 or told[:2] == ["inner", "outer"]


def test_an_inline_failure_poisons_and_is_told_with_its_place(started):
    a, b = started.new_variable(), started.new_variable()
    started.push(prepared(started, lambda ctx: 1 // 0, (), [a]))  # here
    ran = []
    started.push(prepared(started, ran.append, [a], [b]))
    with pytest.raises(EngineError, match=r"(?s)ZeroDivisionError.*# here"):
        started.wait_for_var(b)
    assert not ran and not started._state().bouncing and started._state().job is None
    started.push(prepared(started, ran.append, (), [a]))
    started.wait_for_var(a)
    assert len(ran) == 1


class Interrupt(BaseException):
    """What a signal's handler may raise."""


@pytest.mark.parametrize("resumable", [True, False])
def test_an_interrupt_in_an_inline_function_is_the_programs(started, resumable):
    a, runs = started.new_variable(), []

    def stopped(ctx):
        runs.append(1)
        if len(runs) == 1:
            raise KeyboardInterrupt

    fn = engine.Repeatable(stopped) if resumable else stopped
    operator = prepared(started, fn, (), [a])
    with pytest.raises(KeyboardInterrupt):
        started.push(operator)
    assert len(runs) == 1 + resumable and not started._state().bouncing
    started.push(operator)
    started.wait_for_all()
    assert not a.queue and a.writer is None and not operator.active


@pytest.mark.native
def test_interrupts_that_keep_python_from_going_on(started, monkeypatch):
    kind = type(started)
    a, told = started.new_variable(), []

    def outer(ctx):
        started.push(inner)  # so that Python has to go on

    inner = prepared(started, told.append, (), [a])
    operator = prepared(started, outer, (), [a])
    code, interrupts = kind._bounce, iter(range(5))

    def bounce(*arguments):
        for _ in interrupts:
            raise Interrupt
        code(*arguments)

    monkeypatch.setattr(kind, "_bounce", bounce)
    with pytest.raises(Interrupt):
        started.push(operator)
    started.wait_for_all()
    assert len(told) == 1 and a.version == 2
    assert not started._state().bouncing and started._state().job is None


def test_many_inline_functions_without_a_worker():
    one = engine.ThreadedEngine(2)
    variable, told = one.new_variable(), []
    operator = prepared(one, told.append, (), [variable])
    for _ in range(1500):
        one.push(operator)
    assert len(told) == variable.version == 1500
    one.stop()


def test_without_native_code_workers_do_it_all():
    one = engine.ThreadedEngine(2)
    told, variable = [], one.new_variable()
    try:
        one.push_sync(lambda ctx: None)
        one.wait_for_all()
        one._turns = turns.in_python
        for k in range(100):
            Engine.push_sync(one, lambda ctx, k=k: told.append(k), None, (), (variable,))
        one.wait_for_all()
    finally:
        one.stop()
    assert told == [*range(100)] and variable.version == 100


def test_functions_that_are_held_back_are_entered_natively_once_there_are_many(monkeypatch):
    asked = []
    monkeypatch.setattr(threaded, "native_turns", lambda kind: asked.append(kind) or print)
    one = engine.ThreadedEngine(2)
    variable = one.new_variable()
    for count, wanted in ((1000, 0), (2, 1), (2, 1)):
        for _ in range(count):
            one.push_later(engine.Repeatable(lambda ctx: None), None, (), (variable,))
            one.wait_for_var(variable)
        assert len(asked) == wanted
    one.stop()


def test_engines_of_others_do_it_their_own_way(started):
    seen = []

    class Kind(type(started)):
        def push_sync(self, *arguments, **words):
            seen.append("push_sync")
            super().push_sync(*arguments, **words)

        def _push(self, job):
            seen.append("_push")
            super()._push(job)

    own = Kind(2)
    for _ in range(3):
        own.push_sync(lambda ctx: None, mutate_vars=[own.new_variable()])
    own.stop()
    assert seen == ["push_sync", "_push"] * 3


def test_what_is_no_engine_yet_is_refused_and_so_are_a_million_arguments(started):
    with pytest.raises(AttributeError):
        object.__new__(type(started)).push_sync(print)
    with pytest.raises(TypeError):
        started.push_sync(*[None] * 2_000_000)
    strange = started.new_variable()
    put(strange, "pending_readers", None)
    started.push_sync(lambda ctx: None, mutate_vars=[strange])
    started.wait_for_all()


def test_finalisers_of_functions_may_wait_for_what_was_to_be_next(threaded):
    a, told = threaded.new_variable(), []

    class Last:
        def __del__(self):
            threaded.wait_for_var(a)
            told.append(self)

    def ended_by(last):
        return lambda ctx: last and None

    for k in range(20):
        for ctx in (None, cpu(0)):  # by native code, by Python
            threaded.push_sync(ended_by(Last()), ctx, mutate_vars=[a])
            threaded.push_sync(lambda ctx: None, ctx, mutate_vars=[a], name=f"next {k}")
    threaded.wait_for_all()
    threaded.stop()
    assert len(told) == 40


@pytest.mark.parametrize("kind", ["inline", "sync"])
@pytest.mark.native
def test_native_code_goes_on_after_a_failure(started, monkeypatch, kind):
    """Python runs what touches a variable with a failure, and hardly anything else."""
    bad, good, out = (started.new_variable() for _ in range(3))
    told, in_python, execute = [], [], Engine._execute

    def spy(one, job, state):
        in_python.append(job)
        return execute(one, job, state)

    def push_many(const):
        in_python.clear()
        told.clear()
        gate = threading.Event()
        if kind == "sync":  # all of them wait, so that no worker goes to sleep between two
            started.push_sync(lambda ctx: gate.wait(5), mutate_vars=[out])
        operator = prepared(started, told.append, [const], [out], kind)
        for _ in range(200):
            started.push(operator)
        gate.set()
        with contextlib.suppress(EngineError):
            started.wait_for_var(out)
        started.delete_operator(operator)
        return len(told), len(in_python)

    monkeypatch.setattr(type(started), "_execute", spy)
    started.push_sync(lambda ctx: 1 // 0, mutate_vars=[bad])
    with pytest.raises(EngineError, match="ZeroDivisionError"):
        started.wait_for_var(bad)
    ran, slowly = push_many(good)
    assert ran == 200 and slowly < 100
    ran, slowly = push_many(bad)
    assert ran == 0 and slowly >= 200
    for variable in (bad, out):
        started.push_sync(lambda ctx: None, mutate_vars=[variable])
    started.wait_for_all()
    ran, slowly = push_many(bad)
    assert ran == 200 and slowly < 100
