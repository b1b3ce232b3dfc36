"""Random functions over shared variables, from many threads, against a serial replay.

Each variable stands for a list that its writers append to. A function records the lists' lengths
as it runs; the replay says what lengths its place in the order of pushes demands. Dependants of a
failing function must not run, and everything else must.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import pytest

from gnomon import engine
from gnomon.base import EngineError

VARIABLES, PUSHERS = 12, 3


class Injected(Exception):
    """A failure made on purpose."""


@dataclass
class Call:
    """One pushed function: what it declared, whether it fails, and what it saw."""

    number: int
    const: list[int]
    mutate: list[int]
    how: str
    fails: bool
    seen: list[int] | None = None


@dataclass
class Program:
    """Pushes random functions, in an order that a lock of its own makes known."""

    engine: engine.Engine
    failing: float = 0.0
    calls: list[Call] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self):
        self.variables = [self.engine.new_variable(f"v{i}") for i in range(VARIABLES)]
        self.lists = [[] for _ in range(VARIABLES)]
        self.inside = [0] * VARIABLES  # how many writers are in; -n: readers
        self.errors = []
        self.waits = set()  # before which calls everything was waited for

    def run(self, call: Call):
        """The body of every function."""
        for i in call.mutate:
            if self.inside[i]:
                self.errors.append((call, "a writer beside another function"))
            self.inside[i] = 1
        call.seen = [len(self.lists[i]) for i in (*call.const, *call.mutate)]
        if random.random() < 0.01:
            time.sleep(0)
        if call.fails:
            self.leave(call)
            raise Injected(call.number)
        for i in call.mutate:
            self.lists[i].append(call.number)
        self.leave(call)

    def leave(self, call: Call):
        for i in call.mutate:
            self.inside[i] = 0

    def run_async(self, call: Call, on_complete):
        """The same, ended from another thread half of the time."""
        if call.number % 2:
            self.run(call)
            on_complete()
            return
        threading.Thread(target=self.elsewhere, args=(call, on_complete)).start()

    def elsewhere(self, call: Call, on_complete):
        try:
            self.run(call)
        except Injected as error:
            on_complete(error)
        else:
            on_complete()

    def push(self, rng: random.Random, ways: str):
        chosen = rng.sample(range(VARIABLES), rng.randint(1, 4))
        cut = rng.randint(0, len(chosen) - 1)
        how = rng.choices("sia", [6, 6, 1])[0] if ways == "sia" else rng.choice(ways)
        with self.lock:
            fails = rng.random() < self.failing
            call = Call(len(self.calls), chosen[:cut], chosen[cut:], how, fails)
            self.send(call, rng.choice((0, 0, 0, 3, -3)))

    def heal(self, how: str):
        """Write all variables, whose failures were told."""
        self.send(Call(len(self.calls), [], [*range(VARIABLES)], how, False))

    def send(self, call: Call, priority: int = 0):
        self.calls.append(call)
        lists = ([self.variables[i] for i in side] for side in (call.const, call.mutate))
        if call.how == "s":
            self.engine.push_sync(lambda ctx: self.run(call), None, *lists, priority)
        elif call.how == "i":
            self.engine.push_inline(lambda ctx: self.run(call), None, *lists)
        elif call.how == "p":
            operator = self.engine.new_operator(lambda ctx: self.run(call), *lists, kind="inline")
            self.engine.push(operator)
        else:
            self.engine.push_async(lambda ctx, done: self.run_async(call, done), None, *lists)

    def pusher(self, seed: int, count: int, ways: str):
        rng = random.Random(seed)
        for _ in range(count):
            self.push(rng, ways)

    def push_from_threads(self, count: int, ways: str = "sia"):
        threads = [
            threading.Thread(target=self.pusher, args=(seed, count, ways))
            for seed in range(PUSHERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def wait(self):
        """Wait for everything; whether any call failed."""
        self.waits.add(len(self.calls))
        try:
            self.engine.wait_for_all()
        except EngineError:
            return True
        return False

    def replay(self):
        """What every call should have seen: None where a failure kept it from running."""
        lists = [[] for _ in range(VARIABLES)]
        failed = [-1] * VARIABLES  # the number of the call whose failure lies on a variable
        told = 0  # failures of calls before it were told
        for call in self.calls:
            told = call.number if call.number in self.waits else told
            keep = [failed[i] for i in call.const if failed[i] >= 0]
            keep += [failed[i] for i in call.mutate if failed[i] >= told]
            touched = (*call.const, *call.mutate)
            expected = None if keep else [len(lists[i]) for i in touched]
            assert call.seen == expected, call
            for i in call.mutate:
                failed[i] = keep[0] if keep else call.number if call.fails else -1
                if failed[i] < 0:
                    lists[i].append(call.number)
        assert lists == self.lists
        assert not self.errors
        return [number >= 0 for number in failed]


@pytest.mark.parametrize("failing", [0.0, 0.0005])
def test_against_a_serial_replay(threaded, failing):
    program = Program(threaded, failing)
    program.push_from_threads(6000)
    assert program.wait() == bool(failing)
    poisoned = program.replay()
    assert any(poisoned) == bool(failing)
    for var, is_poisoned in zip(program.variables, poisoned, strict=True):
        assert (var.failure is not None) == is_poisoned
        assert not var.readers
        assert var.writer is None
        assert not var.queue
    assert threaded.report() == ""


def test_failures_that_are_told_and_healed_against_the_replay(threaded):
    program, failures = Program(threaded, 0.01), 0
    for seed in range(30):
        program.pusher(seed, 100, "sssppia")
        program.push_from_threads(20, "sip")
        failures += program.wait()
        if seed % 3:  # else single writers heal what they write
            program.heal("sipa"[seed % 4])
    assert failures > 10
    poisoned = program.replay()
    assert [var.failure is not None for var in program.variables] == poisoned
    assert sum(call.seen is not None for call in program.calls) > len(program.calls) / 5


def test_the_naive_engine_against_the_same_replay():
    program = Program(engine.NaiveEngine())
    program.push_from_threads(300)
    program.engine.wait_for_all()
    program.replay()


def test_waits_in_the_midst(threaded):
    program = Program(threaded)
    stop = threading.Event()

    def waiter():
        while not stop.is_set():
            for var in program.variables:
                threaded.wait_for_var(var)
            threaded.wait_for_all()

    threads = [threading.Thread(target=waiter) for _ in range(2)]
    for thread in threads:
        thread.start()
    program.push_from_threads(1500)
    stop.set()
    for thread in threads:
        thread.join()
    threaded.wait_for_all()
    program.replay()


def test_bulk_scopes_of_many_threads(threaded):
    program = Program(threaded, 0.001)

    def pusher(seed):
        with threaded.bulk(1 + 4 * seed):
            program.pusher(seed, 1500, "ssi")

    threads = [threading.Thread(target=pusher, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(EngineError):
        threaded.wait_for_all()
    program.replay()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("failing", [0.0, 0.000_002])
def test_a_million_functions(failing):
    one = engine.ThreadedEnginePerDevice(workers=2)
    program = Program(one, failing)
    program.push_from_threads(350_000)
    try:
        one.wait_for_all()
    except EngineError:
        assert failing
    assert len(program.calls) >= 1_000_000
    program.replay()
    assert one.report() == ""
    one.stop()


def test_functions_without_the_gil_run_side_by_side(threaded):
    """Two functions that meet: each waits, without the GIL, until the other is there too."""
    meeting = threading.Barrier(2, timeout=30)
    for _ in range(2):
        threaded.push_sync(lambda ctx: meeting.wait(), None, (), (threaded.new_variable(),))
    threaded.wait_for_all()
    assert not meeting.broken


def test_blocking_functions_overlap_with_others(threaded):
    """A function that waits for the world holds up only those that need what it writes."""
    world, order = threading.Event(), []
    slow, quick = threaded.new_variable(), threaded.new_variable()

    def blocking(ctx, done):
        def later():
            world.wait(30)
            order.append("blocking")
            done()

        threading.Thread(target=later).start()

    threaded.push_async(blocking, None, (), (slow,))
    for _ in range(50):
        threaded.push_sync(lambda ctx: order.append("quick"), None, (), (quick,))
    threaded.push_sync(lambda ctx: order.append("after"), None, (slow,), ())
    threaded.wait_for_var(quick)
    assert order == ["quick"] * 50
    world.set()
    threaded.wait_for_all()
    assert order[50:] == ["blocking", "after"]
