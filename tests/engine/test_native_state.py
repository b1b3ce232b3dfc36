"""The engine's native functions do what they do as Python: state, what runs, errors, references."""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections import deque

import pytest

from gnomon import config
from gnomon.base import GnomonError
from gnomon.engine.bookkeeping import EngineState
from gnomon.engine.failure import Failure
from gnomon.engine.job import Operator, RunContext, make_job
from gnomon.engine.native_push import push, push_sync
from gnomon.engine.retry_until_done import call_until_done
from gnomon.engine.state import admit, leave
from gnomon.engine.thread import ThreadState
from gnomon.engine.turns import turns
from gnomon.engine.var import Var
from gnomon.engine.work_queue import WorkQueue
from gnomon.ground.lock import reentrant
from gnomon.ground.record import put
from gnomon.native.serve import compiled, served
from gnomon.runtime.statements.fields import lock_owner

FUNCTIONS = (push_sync, push, admit, leave, turns)


@pytest.fixture(autouse=True)
def natively(only_what_is_new_is_collected):
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    config.reset("native")


class Stopped(BaseException):
    """What a signal's handler may raise."""


class Threadless(EngineState):
    """An engine without threads, which tells what it is to do by Python's means."""

    __slots__ = ("told",)
    _retry_until_done = staticmethod(call_until_done)

    def __init__(self):
        for name in ("_behind", "_deferred", "_ready"):
            setattr(self, name, deque())
        for name in ("_brief", "_bulk", "_late", "_observer"):
            setattr(self, name, None)
        self._bulking = self._poisoned = False
        self._usual = True
        self._cpu_context = RunContext(None)
        self._hiring, self._sleepers, self.told = [], [], []
        self._local, self._lock = threading.local(), reentrant()
        self._pending = self._settled = 0
        self._work_queue = WorkQueue("test", 1)

    def _push(self, job):
        self.told.append(("pushed", job.name, len(job.const), len(job.mutate)))

    _push_inline = _push

    def run_brief(self, *kernel):
        return False

    def _go_on(self, job, state, raised):
        self.told.append(("on", job.name, repr(raised)))
        if len(self.told) % 3 == 0:
            raise Stopped(job.name)
        state.bouncing, state.job = False, job.outer
        leave(self, job)

    def _abandon(self, job):
        self.told.append(("abandoned", job.name))


class Work:
    """A function that is counted: it may fail, push, or answer what says that nothing has run."""

    alive = 0

    def __init__(self, name, engine, does, way):
        self.name, self.engine, self.does, self.way = name, engine, does, way
        Work.alive += 1

    def __del__(self):
        Work.alive -= 1

    def __repr__(self):
        return f"Work({self.name})"

    def __call__(self, run_ctx):
        self.engine.told.append(("ran", self.name, gc.isenabled()))
        if self.does == 1:
            raise ValueError(self.name)
        if self.does == 2:
            self.way[0](self.engine, bool, None, [], [], 0, f"within {self.name}")
        return (k for k in ()) if self.does == 3 else self.name if self.does == 4 else None


def random_step(chance, engine, state, variables, operators, way):
    """One of the things that programs and workers do."""
    push_sync, push, admit, leave, turns = way
    some = lambda: chance.sample(variables, chance.randrange(4))  # noqa: E731
    name = str(chance.random())
    work = Work(name, engine, chance.choice([0, 0, 0, 0, 1, 2, 3, 4]), way)
    does = chance.randrange(8)
    if does < 2:
        chosen = some()
        k = chance.randrange(len(chosen) + 1)
        lists = (chosen[:k], tuple(chosen[k:])) if chance.random() < 0.8 else (some(), some())
        rest = chance.choice([(), (), (0, name), (1,), (0, name, True), (0.0,), (True,)])
        push_sync(engine, work, None, *lists, *rest)
    elif does == 2:
        push(engine, chance.choice([*operators, *operators, work, None]))
    elif does == 3:
        job = make_job(work, chance.choice([0, 1, 2]), tuple(some()), (), None, 0, name)
        if admit(engine, job):
            engine._work_queue.normal.append(job)
            job.state = 2
    elif does == 4 and engine._work_queue.normal:
        job = engine._work_queue.normal.popleft()
        leave(engine, job)
    elif does == 5 and chance.random() < 0.4:
        spoil(chance, engine, variables, operators)
    else:
        answer = turns(engine, engine._work_queue, state)
        engine.told.append(("answered", getattr(answer, "name", answer)))


def spoil(chance, engine, variables, operators):
    """Make something unusual, or usual again."""
    var, operator = chance.choice(variables), chance.choice(operators)
    failure = Failure(ValueError("old"), "old", None)
    changes = [
        lambda: put(var, "failure", failure if var.failure is None else None),
        lambda: put(var, "deleted", chance.random() < 0.2),
        lambda: put(var, "pending_readers", () if var.pending_readers else [bool]),
        lambda: operator.gates.clear() or (chance.random() < 0.3 and operator.gates.append(None)),
        lambda: setattr(engine, "_observer", None if engine._observer else print),
        lambda: setattr(engine, "_bulking", not engine._bulking),
        engine._sleepers.clear,
        engine._ready.clear,
    ]
    chance.choice(changes)()


def state_of(engine, variables):
    """All that stands in an engine's state."""
    name = lambda job: job and job.name  # noqa: E731
    shown = [
        (
            var.version, name(var.writer), sorted(map(name, var.readers)),
            [x[0].name if type(x) is tuple else x.name for x in var.queue or ()],
        )
        for var in variables
    ]  # fmt: skip
    jobs = [(x.name, x.state, x.kind, x.blockers, x.copy) for x in engine._work_queue.normal]
    sites = [x.site and x.site[0].co_name for x in engine._work_queue.normal]
    ready = [x.name for x in engine._ready]
    return shown, jobs, sites, ready, engine._pending, engine._settled, engine._work_queue.waking


def run_through(seed, way):
    """What random steps tell and leave behind."""
    chance, engine, state = random.Random(seed), Threadless(), ThreadState()
    engine._local.state = state
    variables = [Var(str(k)) for k in range(5)]
    operators = []
    for k in range(6):
        const, mutate = variables[: k % 3], variables[3 : 3 + k % 2 + 1]
        work = Work(f"operator {k}", engine, chance.choice([0, 0, 1, 2, 4]), way)
        kind = (0, 1, 1, 6)[k % 4]
        operators.append(Operator(work, kind, tuple(const), tuple(mutate), f"operator {k}", False))
    found = []
    for _ in range(40):
        try:
            random_step(chance, engine, state, variables, operators, way)
        except (Exception, Stopped) as error:
            found.append((type(error).__name__, str(error).partition("\n")[0][:40]))
            state.job, state.bouncing = None, False
        found.append(state_of(engine, variables))
    assert gc.isenabled()
    told = [[x for x in entry if "0x" not in str(x)] for entry in engine.told]
    for operator in operators:
        operator.fn = None
    return found, told, [x.active for x in operators]


@pytest.mark.parametrize("part", range(6))
def test_both_ways(part):
    fast = served(*FUNCTIONS)
    for seed in range(part, 180, 6):
        first = run_through(seed, FUNCTIONS)
        gc.collect()
        left = Work.alive
        assert run_through(seed, fast) == first, seed
        gc.collect()
        assert Work.alive == left == 0, seed


def test_references_stay_as_they_are():
    fast = served(*FUNCTIONS)
    things = (None, True, False, 0, 1, 2, Var, Operator, (), print)

    def grown(seed):
        run_through(seed, fast)
        gc.collect()
        before = [*map(sys.getrefcount, things), len(gc.get_objects())]
        for _ in range(10):
            run_through(seed, fast)
        gc.collect()
        after = [*map(sys.getrefcount, things), len(gc.get_objects())]
        return max(abs(a - b) for a, b in zip(before, after, strict=True))

    assert [seed for seed in range(6) if grown(seed) > 8] == []


def test_a_lock_that_is_held_is_seen():
    fast = served(*FUNCTIONS)
    assert lock_owner() is not None
    for way in (FUNCTIONS, fast):
        engine = Threadless()
        with engine._lock:
            way[0](engine, bool)
        assert [entry[0] for entry in engine.told] == ["pushed"] and not engine._pending
        way[0](engine, bool)
        assert len(engine.told) == 1 and engine._pending == 1


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_called_until_done(failures):
    for run in (call_until_done, *compiled(call_until_done)):
        left, told = failures, []

        def work(*given, told=told):
            nonlocal left
            told.append(given)
            left -= 1
            if left >= 0:
                raise Stopped(left)

        if failures:
            with pytest.raises(Stopped, match="0") as found:
                run(work, 1, "two")
            assert found.value.__traceback__.tb_next is not None
        else:
            assert run(work, 1, "two") is None
        assert told == [(1, "two")] * (failures + 1)


def test_an_error_that_comes_each_time_is_raised():
    for run in (call_until_done, *compiled(call_until_done)):
        with pytest.raises(ZeroDivisionError):
            run(lambda: 1 // 0)
        with pytest.raises(TypeError):
            run()


def test_an_error_of_gnomon_s_own_is_not_tried_a_thousand_times():
    for run in (call_until_done, *compiled(call_until_done)):
        told = []

        def work(told=told):
            told.append(None)
            raise GnomonError("cannot be compiled")

        with pytest.raises(GnomonError, match="cannot be compiled"):
            run(work)
        assert len(told) == 4
