"""Native work behind the program: order, errors, who waits for it, forks, exits, interrupts."""

from __future__ import annotations

import gc
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from streamed import Slow

from gnomon import engine
from gnomon.base import EngineError
from gnomon.engine import behind
from gnomon.engine.native_behind import FREE
from gnomon.runtime.execution import stream
from gnomon.runtime.execution.program import LONG, LONG_SECONDS, PassProgram, Program, Step
from gnomon.runtime.execution.stream import Task, Turn

ROOT = Path(__file__).parents[2]


class Noting(Turn):
    """Native work that notes its number in order: each time it puts the next one somewhere."""

    def __init__(self, slow: Slow, place: int = 0, value: int = 0) -> None:
        super().__init__(Program([slow.step], "noting"))
        self.pairs = [(place, value)] if place else []

    def task(self) -> Task:
        return Task(self.program, self.pairs)

    def __call__(self, run_ctx: Any) -> None:
        raise AssertionError("it is to run behind")


def push(to: engine.Engine, slow: Slow, const=(), mutate=(), name="slow") -> None:
    to.push_inline(slow.turn(), None, const, mutate, name=name)


def test_a_push_returns_before_its_work_is_done(threaded):
    x, slow = threaded.new_variable(), Slow(0.05)
    push(threaded, slow, (), (x,))
    assert slow.runs == 0 and x.version == 0
    threaded.wait_for_var(x)
    assert slow.runs == 1 and x.version == 1


def test_functions_before_and_behind_it_keep_their_order(threaded):
    x, slow, told = threaded.new_variable(), Slow(0.001), []
    for _ in range(5):
        threaded.push_sync(lambda run_ctx: told.append(slow.runs), mutate_vars=[x])
        push(threaded, slow, (), (x,))
        push(threaded, slow, (), (x,))
    threaded.wait_for_var(x)
    assert told == [0, 2, 4, 6, 8] and slow.runs == 10


def test_a_function_that_waits_for_it_runs_though_nobody_asks(threaded):
    x, slow, told = threaded.new_variable(), Slow(0.01), threading.Event()
    push(threaded, slow, (), (x,))
    threaded.push_sync(lambda run_ctx: told.set(), const_vars=[x])
    assert told.wait(30) and slow.runs == 1


def test_prepared_functions_wait_for_it_too(threaded):
    x, told = threaded.new_variable(), []
    slow = Slow(0.003)
    operator = threaded.new_operator(
        lambda run_ctx: told.append(slow.runs), const_vars=[x], kind="sync"
    )
    for _ in range(4):
        push(threaded, slow, (), (x,))
        threaded.push(operator)
    threaded.delete_operator(operator)
    assert told == [1, 2, 3, 4]


def test_a_prepared_one_is_deleted_once_its_work_is_over(threaded):
    x = threaded.new_variable()
    slow, before = Slow(0.05), Slow(0.0)
    for _ in range(3):
        push(threaded, before, (), (x,))
        threaded.wait_for_var(x)
    operator = threaded.new_operator(slow.turn(), mutate_vars=[x], kind="inline")
    threaded.push(operator)
    waits = threading.Thread(target=threaded.delete_operator, args=(operator,), daemon=True)
    waits.start()
    waits.join(30)
    assert not waits.is_alive() and slow.runs == 1


def test_no_more_tasks_are_kept_than_may_be_pending(threaded, monkeypatch):
    monkeypatch.setattr("gnomon.runtime.execution.program.SPARE", 2)
    x, program = threaded.new_variable(), Program([Slow(0.001).step])
    kept = program.kept_tasks()
    for _ in range(4):
        threaded.push_inline(Turn(program), None, (), (x,))
    threaded.wait_for_var(x)
    assert len(kept) == 2


def test_readers_do_not_wait_for_readers(threaded):
    x, y, slow = threaded.new_variable(), threaded.new_variable(), Slow(0.2)
    push(threaded, slow, (x,), (y,))
    threaded.wait_for_var(x)
    assert slow.runs == 0
    threaded.wait_for_var(x, write=True)
    assert slow.runs == 1


def test_short_work_in_its_way_goes_behind_and_other_work_does_not(threaded):
    x, y = threaded.new_variable(), threaded.new_variable()
    long, short, free = Slow(0.05), Slow(0.0, long=False), Slow(0.0, long=False)
    push(threaded, long, (), (x,))
    push(threaded, short, (x,), ())
    push(threaded, free, (), (y,))
    assert (long.runs, short.runs, free.runs) == (0, 0, 1)
    threaded.wait_for_all()
    assert (long.runs, short.runs) == (1, 1)


@pytest.mark.parametrize(
    ("share", "both"), [(1.1, (True, True)), (0.3, (False, True)), (0.2, (False, False))]
)
def test_less_work_of_a_pass_is_worth_to_go_behind(share, both):
    slow = Slow(0.0)
    slow.step.work = int(share * LONG)
    for kind, is_long in zip((Program, PassProgram), both, strict=True):
        estimated, measured = kind([slow.step], "work"), kind([Slow(0.0).step], "work")
        measured.took(share * LONG_SECONDS)
        assert estimated.is_long == measured.is_long == is_long


def test_what_is_measured_to_be_short_runs_at_the_push(threaded):
    x, slow = threaded.new_variable(), Slow(0.0)
    program = Program([slow.step], "short")
    for expected in (True, False):
        assert program.is_long is expected
        threaded.push_inline(Turn(program), None, (), (x,))
        threaded.wait_for_var(x)
    assert slow.runs == 2


def test_a_failure_is_raised_at_the_wait_with_the_place_that_pushed(threaded):
    x, y, z = (threaded.new_variable() for _ in range(3))
    fails, slow, other = Slow(0.001, fails=True), Slow(0.001), Slow(0.001)
    threaded.push_inline(fails.turn(), None, (), (x,), name="fails")  # the place
    push(threaded, slow, (x,), (y,))
    push(threaded, other, (), (z,))
    threaded.wait_for_var(z)
    with pytest.raises(EngineError, match="function 'fails' failed") as caught:
        threaded.wait_for_var(y)
    assert "status 1" in str(caught.value) and "# the place" in str(caught.value)
    assert slow.runs == 0 and other.runs == 1 and fails.runs == 1
    with pytest.raises(EngineError, match="fails"):
        threaded.wait_for_var(x)
    push(threaded, slow, (), (x,))  # it was told of: a write heals
    threaded.wait_for_var(x)
    threaded.wait_for_all()
    assert slow.runs == 1


def test_a_failure_that_nobody_was_told_of_is_raised_by_the_wait_for_all(threaded):
    x = threaded.new_variable()
    push(threaded, Slow(0.0, fails=True), (), (x,), "fails")
    with pytest.raises(EngineError, match="fails"):
        threaded.wait_for_all()


def test_another_engine_s_failure_does_not_stop_this_one(threaded):
    other = engine.create("ThreadedEnginePerDevice")
    x, y, slow = other.new_variable(), threaded.new_variable(), Slow(0.001)
    push(other, Slow(0.001, fails=True), (), (x,))
    push(threaded, slow, (), (y,))
    threaded.wait_for_var(y)
    assert slow.runs == 1
    with pytest.raises(EngineError):
        other.wait_for_var(x)
    other.stop()


def test_observers_are_told_when_it_ran(threaded):
    x, slow, told = threaded.new_variable(), Slow(0.01), []
    threaded.observe(lambda name, ctx, begin, end: told.append((name, begin, end)))
    before = time.perf_counter()
    push(threaded, slow, (), (x,))
    threaded.wait_for_var(x)
    threaded.observe(None)
    ((name, begin, end),) = told
    assert name == "slow" and before <= begin and begin + 0.01 <= end <= time.perf_counter()


def test_what_it_uses_lives_until_it_is_done(threaded):
    class Held:
        pass

    x, gone = threaded.new_variable(), []
    slow, held = Slow(0.02), Held()
    turn = slow.turn()
    turn.program.keep = held
    threading.Thread(target=gc.collect).start()

    def note(run_ctx: Any) -> None:
        gone.append(slow.runs)

    threaded.push_inline(turn, None, (), (x,))
    threaded.push_sync(note, const_vars=[x])
    del turn, held
    threaded.wait_for_all()
    assert gone == [1]


def test_many_pushes_are_bounded(threaded):
    x, slow = threaded.new_variable(), Slow(1e-6)
    most = 0
    for _ in range(3 * stream.ROOM):
        push(threaded, slow, (), (x,))
        most = max(most, stream.pending())
    assert most <= stream.ROOM
    threaded.wait_for_var(x)
    assert slow.runs == 3 * stream.ROOM == x.version


def test_memory_that_waits_for_work_behind_is_bounded(threaded, monkeypatch):
    x, slow, most = threaded.new_variable(), Slow(0.001), 0
    unit = FREE // 4
    monkeypatch.setattr(behind, "in_use", lambda pool: unit * len(threaded._behind))
    for _ in range(50):
        push(threaded, slow, (), (x,))
        most = max(most, len(threaded._behind))
    assert 1 < most <= 6
    threaded.wait_for_var(x)
    assert slow.runs == 50


def test_memory_that_the_program_holds_is_waited_for_once(threaded, monkeypatch):
    x, slow, waits, used = threaded.new_variable(), Slow(0.01), [], [FREE]
    wait = stream.wait
    monkeypatch.setattr(behind, "in_use", lambda pool: used[0])
    monkeypatch.setattr(stream, "wait", lambda *given: waits.append(given) or wait(*given))
    push(threaded, slow, (), (x,))
    used[0] = 100 * FREE
    push(threaded, slow, (), (x,))
    assert (slow.runs >= 1, len(waits)) == (True, 1)
    for _ in range(3):
        push(threaded, slow, (), (x,))
    assert len(waits) == 1


@pytest.mark.parametrize("seed", range(4))
def test_threads_with_functions_of_both_kinds(threaded, seed):
    """Each adds to what it writes by native work, or in Python; the sums are what order gives."""
    rng = random.Random(seed)
    variables = [threaded.new_variable(f"v{k}") for k in range(4)]
    counts = [Slow(0.0) for _ in variables]
    written = [0] * 4
    lock = threading.Lock()

    def add(number: int, run_ctx: Any) -> None:
        counts[number].block.words[2] += 1

    def work(seed: int) -> None:
        own = random.Random(seed)
        for _ in range(150):
            k, other = own.sample(range(4), 2)
            with lock:  # two writers of one count in a known order
                written[k] += 1
            if own.random() < 0.3:
                threaded.push_sync(
                    lambda run_ctx, k=k: add(k, run_ctx), None, [variables[other]], [variables[k]]
                )
            else:
                push(threaded, counts[k], (variables[other],), (variables[k],))
            if own.random() < 0.05:
                threaded.wait_for_var(variables[other])

    threads = [threading.Thread(target=work, args=(rng.random(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    threaded.wait_for_all()
    assert [c.runs for c in counts] == written == [v.version for v in variables]


# a weak set that is interrupted as one of its jobs goes can only report it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_leave_the_books_right(threaded):
    """A handler raises again and again while work is pushed, waited for and settled."""

    class Told(Exception):
        pass

    def handler(*_: Any) -> None:
        raise Told

    x, slow = threaded.new_variable(), Slow(2e-6)
    y, told, came = threaded.new_variable(), [], 0
    before = signal.signal(signal.SIGALRM, handler)
    rng = random.Random(0)
    push(threaded, slow, (), (x,))  # the first one reads files to compile
    threaded.wait_for_var(x)
    gc.disable()  # hypothesis has it call a function of Python's, which says so where it is left
    try:
        for _ in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 3e-4))
                push(threaded, slow, (), (x,))
                threaded.push_sync(lambda run_ctx: told.append(1), const_vars=[x], mutate_vars=[y])
                push(threaded, slow, (y,), (x,))
                threaded.wait_for_var(x)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Told:
                came += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    threaded.wait_for_all()
    assert came and x.version == slow.runs and y.version == len(told)
    assert not threaded._pending and not threaded._behind


def test_another_engine_takes_over_when_it_is_done():
    before, slow = engine.get(), Slow(0.01)
    one = engine.create("ThreadedEnginePerDevice")
    try:
        engine.use(one)
        x = one.new_variable()
        push(one, slow, (), (x,))
        engine.use(engine.create("NaiveEngine"))
        engine.get().wait_for_var(x)
        assert slow.runs == 1
    finally:
        engine.use(before)
        one.stop()


def test_the_naive_engine_runs_it_at_the_push():
    naive, slow = engine.create("NaiveEngine"), Slow(0.0)
    push(naive, slow, (), (naive.new_variable(),))
    assert slow.runs == 1


def test_work_that_is_held_back_goes_behind_what_it_waits_for(threaded):
    x = threaded.new_variable()
    long, short = Slow(0.02), Slow(0.0, long=False)
    push(threaded, long, (), (x,))
    threaded.push_later(short.turn(), None, (), (x,))
    push(threaded, long, (), (x,))
    assert short.runs == 0
    threaded.wait_for_var(x)
    assert (long.runs, short.runs) == (2, 1)


def test_what_two_threads_send_behind_at_one_time_goes_once(threaded):
    x, slow = threaded.new_variable(), Slow(0.05)
    asked = []

    class Overtaken(Turn):
        is_long = True

        def task(self) -> Task:
            made = Task(self.program)
            asked.append(made)
            if len(asked) == 1:
                other = threading.Thread(target=threaded._flush)
                other.start()
                other.join()
            return made

    push(threaded, slow, (), (x,))
    threaded.push_later(Overtaken(Program([slow.step], "slow")), None, (), (x,))
    threaded.wait_for_var(x)
    assert (slow.runs, x.version, len(asked)) == (2, 2, 2)
    threaded.wait_for_all()


def test_a_step_without_a_status_cannot_fail(threaded):
    slow = Slow(0.0)
    assert isinstance(slow.step, Step) and slow.step.status is None
    x = threaded.new_variable()
    threaded.push_inline(Noting(slow, slow.block.address + 16, 9), None, (), (x,))
    threaded.wait_for_var(x)
    assert slow.runs == 10
