"""What native functions of arrays do is what they do as Python, on the same random arrays."""

from __future__ import annotations

import gc
import random
import sys
from functools import partial

import numpy as np
import pytest

from gnomon import autograd, config, engine, nd
from gnomon.base import DeviceError
from gnomon.engine.var import NO_JOBS
from gnomon.ground.record import put
from gnomon.native import serve
from gnomon.native.serve import served
from gnomon.ndarray.core import chunk
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.lazy import materialize, repeat
from gnomon.ndarray.lazy.applied import applying
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.recipe import PASSING
from gnomon.ndarray.lazy.trace import EMPTY
from gnomon.runtime.devices import pool
from gnomon.runtime.statements.fields import readable

SHAPES = [(), (1,), (3,), (0, 2), (2, 3), (4, 40)]


@pytest.fixture(autouse=True)
def natively(only_what_is_new_is_collected):
    """Native code is served, whatever the environment says, to traces met before as well."""
    config.set("native", True)
    EMPTY.after.clear()  # those met where none is served have no fast paths
    yield
    config.reset("native")


def known():
    """Operators, and what native code knows of them: the dictionary, operands, `out` or none."""
    found = []
    for shape in SHAPES:
        size = np.prod(shape, dtype=int)
        a, b = (nd.array(np.arange(k, k + size).reshape(shape)) for k in (1, 2))
        for name, given, operands, out in (
            ("sum", {}, (a,), None),
            ("split", {"num_outputs": 1, "axis": 0}, (a,), None),
            ("sgd_update", {"lr": 0.5}, (a, b), a),
            ("_copy", {}, (a,), b),
            ("_ones", {"shape": shape}, (), None),
        ):
            if name in ("split", "_ones") and (0 in shape or not shape):
                continue
            op = applying(name, **given)
            for _ in range(3):
                op(operands, out, a.context)
            found.append((op._known, operands, out, a.context))
    return found


def left(found):
    """What a call gave, as something to compare."""
    if found is None or isinstance(found, type):
        return found
    arrays = found if isinstance(found, list) else [found]
    return [(x.shape, x.asnumpy().tolist(), x._chunk.version > 0, x._tape) for x in arrays]


def spoiled(chance, operands, out):
    """One of the states that are left to Python, or none; what undoes it."""
    arrays = [*operands, *([] if out is None else [out])]
    kind = chance.randrange(9)
    if kind == 0 and arrays:
        engine.get().observe(lambda *given: None)
        return lambda: engine.get().observe(None)
    if kind == 1 and arrays:
        x = chance.choice(arrays)
        put(x._chunk, "shared", True)
        return lambda: put(x._chunk, "shared", False)
    if kind == 2 and arrays:
        x = chance.choice(arrays)
        put(x._chunk, "failure", "failure")
        return lambda: put(x._chunk, "failure", None)
    if kind == 3 and arrays:
        x = chance.choice(arrays)
        put(x, "_tape", "place")
        return lambda: put(x, "_tape", None)
    if kind == 4 and arrays:
        x = chance.choice(arrays)
        put(x._chunk, "readers", {1})
        return lambda: put(x._chunk, "readers", NO_JOBS)
    return lambda: None


def outcome(run, case, seed, values):
    """What `repeat` gives on fresh values, and what it leaves."""
    chance = random.Random(seed)
    known, operands, out, ctx = case
    arrays = [*operands, *([] if out is None else [out])]
    for x, value in zip(arrays, values, strict=True):
        x[:] = value
        x.wait_to_read()
    given = tuple(operands)
    if chance.random() < 0.05:
        out = chance.choice([3, "out", [], np.zeros(3)])
    if chance.random() < 0.1:
        given = (*given, 3)
    if chance.random() < 0.1 and given and isinstance(given[0], Array):
        given = (given[0].reshape((-1,)), *given[1:])
    versions = [x._chunk.version for x in arrays]
    undo = spoiled(chance, operands, out if isinstance(out, Array) else None)
    try:
        found = run(known, given, out, ctx)
    except Exception as error:
        found = type(error)
    finally:
        undo()
    grown = [x._chunk.version - v for x, v in zip(arrays, versions, strict=True)]
    return left(found), grown, [x.asnumpy().tolist() for x in arrays]


def test_repeat_both_ways():
    (fast,) = served(repeat.repeat)
    taken = 0
    for number, case in enumerate(known()):
        _, operands, out, _ = case
        values = [x.asnumpy() for x in (*operands, *([] if out is None else [out]))]
        for seed in range(40):
            results = [outcome(run, case, seed, values) for run in (repeat.repeat, fast)]
            assert repr(results[0]) == repr(results[1]), (number, seed)
            taken += results[0][0] is not None
    assert taken > 300


def test_pending_operands_both_ways():
    (fast,) = served(repeat.repeat)
    a = nd.array(np.ones((2, 3)))
    total = applying("sum")
    for _ in range(3):
        total((a,))
    for run in (repeat.repeat, fast):
        waiting = a * 3
        assert waiting._pending_in is not None
        assert run(total._known, (waiting,), None, a.context).asscalar() == 18
        assert waiting._pending_in is None
        waiting = a * 2
        assert run(total._known, (waiting,), waiting, a.context) is None
        assert waiting._pending_in is not None


def test_nothing_is_kept_and_nothing_is_lost():
    (fast,) = served(repeat.repeat)
    cases = known()
    things = [None, False, True, Array.main, 0, 1, NO_JOBS]

    def grown(case):
        known, operands, out, ctx = case
        things.extend([*operands, operands and operands[0]._layout, ctx])
        counts = []
        for times in (1, 300):
            for _ in range(times):
                fast(known, operands, out, ctx)
            counts.append([*map(sys.getrefcount, things), len(gc.get_objects())])
        return max(abs(a - b) for a, b in zip(*counts, strict=True))

    gc.collect()
    gc.disable()
    try:
        assert [n for n, case in enumerate(cases) if grown(case) > 100] == []
    finally:
        gc.enable()
    before = pool.stats("cpu").used
    for known_, operands, out, ctx in cases * 20:
        fast(known_, operands, out, ctx)
    assert pool.stats("cpu").used <= before


def test_no_memory_is_an_error_that_changes_nothing():
    (fast,) = served(repeat.repeat)
    a = nd.array(np.ones((40, 40)))
    ones = applying("transpose")
    for _ in range(3):
        ones((a,))
    gc.collect()
    pool.release_all("cpu")
    config.set("memory_limit", 1)
    try:
        for run in (repeat.repeat, fast):
            with pytest.raises(DeviceError, match="memory_limit"):
                run(ones._known, (a,), None, a.context)
    finally:
        config.set("memory_limit", 0)
    assert a._chunk.version <= 1 and a.asnumpy().all()


def test_wait_both_ways():
    taken = []
    (fast,) = served(materialize.is_there)
    a, b = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    for statement in (lambda: a + b, lambda: a * 2.5, lambda: a * b, lambda: a - 1e39):
        for _ in range(PASSING + 1):
            statement().wait_to_read()
        results = []
        for run in (materialize.is_there, fast):
            c = statement()
            results.append((run(c), c._pending_in is None, repr(here.own.groups.keys())))
            results.append(c.asnumpy().tolist() if c._pending_in is None else None)
        assert results[:2] == results[2:]
        taken.append(results[0][0])
    assert any(taken) and not taken[3]  # a number that large takes a closer look


def interrupted(run, file, after):
    """Run with an interrupt before one of a file's instructions; whether it came."""
    left = after

    def trace(frame, event, argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_filename in file:
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.native
def test_an_interrupt_between_any_two_instructions_leaves_all_well():
    files = (repeat.__file__, chunk.__file__)
    for known_, operands, out, ctx in known()[:6]:
        values = [x.asnumpy() for x in operands]
        expected = None
        for after in range(1, 2000, 3):
            run = partial(repeat.repeat, known_, operands, out, ctx)
            came = interrupted(run, files, after)
            for x, value in zip(operands, values, strict=True):
                x[:] = value
            found = left(repeat.repeat(known_, operands, out, ctx))
            expected = found if expected is None else expected
            assert found == expected
            if not came:
                break
        assert not came


@pytest.mark.native
@pytest.mark.parametrize("nbytes", [60, 5000, 3 << 20])
def test_chunks_both_ways(nbytes):
    (take,) = served(chunk.idle)
    _, shelf = chunk.CPU.take(nbytes)
    ctx = nd.zeros((1,)).context
    slots = ("address", "ctx", "nbytes", "owner", "shared", "version", "deleted", "writer", "queue")
    for run in (chunk.idle, take):
        shelf.idle.append(shelf.pool.make(shelf)[0])
        before, count = shelf.taken, len(shelf.idle)
        made = run(nbytes, ctx)
        assert [getattr(made, n) for n in slots[1:]] == [
            ctx,
            nbytes,
            None,
            False,
            0,
            False,
            None,
            None,
        ]
        assert made.pending_readers == [] and made.readers is NO_JOBS and made.address % 64 == 0
        assert (shelf.taken, len(shelf.idle)) == (before + 1, count - 1)
        address = made.address
        del made
        assert shelf.idle[-1] == address
        every = (*chunk.CPU.small[1:], *chunk.CPU.large)
        idle = [list(x.idle) for x in every]
        for x in every:
            x.idle.clear()
        assert run(nbytes, ctx) is None
        for x, addresses in zip(every, idle, strict=True):
            x.idle[:] = addresses
    unmade = object.__new__(chunk.Pooled)
    del unmade
    if readable():
        assert not isinstance(chunk.Pooled.__del__, type(chunk.forget))


def test_kernels_on_a_megabyte_run_natively(monkeypatch):
    """What is too long for that is long enough to go behind the program: nothing lies between."""
    x, y = nd.ones((256, 1024)), nd.zeros((256, 1024))
    statements = [
        lambda: nd.reverse(x, axis=1),
        lambda: nd.sgd_update(y, x, lr=0.5, out=y),
        lambda: nd.abs(x) - y,
        lambda: nd.sum(x, axis=1),
    ]
    for statement in statements * 3:
        statement().wait_to_read()
    for name in ("run_brief", "_push_inline") if readable() else ():
        monkeypatch.setattr(type(engine.get()), name, None)
    values = [statement().asnumpy() for statement in statements]
    monkeypatch.undo()
    assert [float(v.flat[0]) for v in values] == [1, -2, 3, 1024]


def test_what_is_recorded_is_left_to_python():
    a = nd.array(np.ones((2, 3)))
    total = applying("sum")
    for _ in range(3):
        total((a,))
    a.attach_grad()
    for run in (repeat.repeat, *served(repeat.repeat)):
        with autograd.record():
            assert run(total._known, (a,), None, a.context) is None


def test_it_is_compiled_once_that_pays(monkeypatch):
    asked = []
    monkeypatch.setattr(serve, "served_from_disk", lambda f: asked.append("disk"))
    monkeypatch.setattr(serve, "served", lambda f: asked.append("made") or (lambda *a: "done",))
    repeater = serve.Later(repeat.repeat, None, 5)
    answers = [repeater.way({}, (), None, None) for _ in range(6)]
    assert answers == [*[None] * 4, "done", "done"]
    assert asked == ["disk", "made"]


@pytest.mark.parametrize(("kept", "answers"), [(False, [False, False, True]), (True, [True] * 3)])
def test_what_is_on_disk_pays_at_once(monkeypatch, kept, answers):
    monkeypatch.setattr(serve, "_name", lambda *given, **more: "name")
    monkeypatch.setattr(serve, "is_kept", lambda name: kept)
    due = serve.Due(3, repeat.repeat)
    assert [due() for _ in range(3)] == answers
