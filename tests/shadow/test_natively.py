"""Launches and what came before: native functions do what they do as Python, and keep nothing."""

from __future__ import annotations

import gc
import random
import sys
from functools import partial

import numpy as np
import pytest

from gnomon import config
from gnomon.expr.arguments import Memory
from gnomon.expr.functions.scalar import SCALAR, ScalarFn
from gnomon.expr.node import Expr
from gnomon.expr.pattern import pattern_of
from gnomon.runtime.statements import (
    call_cache,
    call_cache_code,
    call_cache_tensor,
    dispatch,
    launch_code,
)
from gnomon.runtime.statements.fields import readable
from gnomon.shadow import Tensor, broadcast, fn, sum_rows, tcast

DTYPES = (np.float32, np.float64, np.int32)
BINARY = [row for row in call_cache._OPERATORS if row[2] != "own"]


@pytest.fixture(autouse=True)
def installed():
    """Native code has taken over, whatever the environment says."""
    config.set("native", True)
    a, b = Tensor(np.ones(3, np.float32)), Tensor(np.ones(3, np.float32))
    for _ in range(call_cache.PATIENCE + 4):
        b[:] = a + a
    assert bool(call_cache._installed) is readable()
    yield
    config.reset("native")


def tensor(chance, shape=(4, 3), dtype=np.float32):
    size = int(np.prod(shape))
    values = np.array([chance.randrange(1, 9) for _ in range(size)], dtype)
    return Tensor(values.reshape(shape))


def number(chance, dtype):
    whole = chance.choice([0, 3, 127, -1, 2**31 - 1, 2**40])
    return whole if dtype is np.int32 else chance.choice([whole, 0.5, np.float32(2.5)])


def shown(x):
    """A node with its leaves, as something to compare."""
    if isinstance(x, Tensor):
        return (type(x).__name__, x.numpy().tolist(), x.strides, id(x.owner), x.address)
    if isinstance(x, Expr):
        fields = [getattr(x, name, None) for name in ("fn", "value", "modular", "axis")]
        return type(x).__name__, x.shape, x.dtype, id(x.pattern), fields, [*map(shown, x.children)]
    return x


def outcome(run, *given):
    try:
        return shown(run(*given))
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_both_ways(dtype):
    chance, known = random.Random(5), 0
    for name, function, order in [*BINARY, *BINARY, *BINARY]:
        python = call_cache_code.operator(name, function, order)
        x = tensor(chance, dtype=dtype)
        y = chance.choice([tensor(chance, dtype=dtype), number(chance, dtype), x, x * 2])
        outcome(getattr(x, name), y)  # now it is known
        asked = []
        METHOD = python.__globals__["METHOD"]
        python.__globals__["METHOD"] = lambda *given, m=METHOD, asked=asked: (
            asked.append(1),
            m(*given),
        )[1]
        assert outcome(python, x, y) == outcome(getattr(x, name), y), name
        python.__globals__["METHOD"] = METHOD
        known += not asked
    assert known > 30


def test_calls_both_ways():
    chance = random.Random(6)
    python = call_cache_code.calling()
    for k in range(60):
        x, y = tensor(chance), chance.choice([tensor(chance), 1.5, 2, None, "x"])
        function = chance.choice([SCALAR["exp"], SCALAR["hypot"], SCALAR["where"]])
        operands = [x, y, x][: chance.randrange(1, 4)]
        outcome(function, *operands)
        assert outcome(python, function, *operands) == outcome(function, *operands), k
    assert outcome(python, SCALAR["exp"]) == outcome(ScalarFn.__call__, SCALAR["exp"])


def test_recalled_calls_both_ways():
    chance, found = random.Random(7), 0
    for k in range(80):
        x = tensor(chance, chance.choice([(4, 3), (5,)]))
        shape = (x.shape[0], 5) if x.ndim == 1 else (4, 3, 2)
        first, given, function = chance.choice(
            [
                ((), (), sum_rows),
                ((), (), Tensor.flat_to_1d),
                ((), (1, 3), Tensor.slice),
                ((), (shape, 0), broadcast),
                ((chance.choice(["int32", np.float64]),), (), tcast),
            ]
        )
        if chance.random() < 0.3:
            given = chance.choice([(0,), (2**70,), ((1, (2,)),), ("a",), (x,)])
        outcome(function, *first, x, *given)
        inner = getattr(function, "__wrapped__", function)
        results = [
            outcome(recall, Memory(), inner, (*first, x, *given))
            for recall in (call_cache_tensor.recall, Memory.recall)
        ]
        assert results[0] == results[1], k
        found += results[0] is not None
    assert found > 10 or not readable()


def test_views_and_assignments_both_ways():
    chance = random.Random(8)
    get, store = call_cache_tensor.assignments({})
    add = call_cache_tensor.assignments({"__iadd__": "plusto"})[0]
    for k in range(120):
        x, y = tensor(chance, (5,)), tensor(chance, (5,))
        key = chance.choice(
            [slice(None), slice(1, 4), slice(0, 9, 2), 2, -1, 7, None, slice(2**70), slice("a")]
        )  # fmt: skip
        assert outcome(get, x, key) == outcome(Tensor.__getitem__, x, key), k
        value = chance.choice([y, y + 1, 2.0, x, y[1:4], "x", 2**70])
        results = []
        for run in (store, Tensor.__setitem__):
            x.numpy()[...] = range(5)
            results.append((outcome(run, x, key, value), x.numpy().tolist()))
        assert results[0] == results[1], k
        results = []
        for run in (add, Tensor.__iadd__):
            x.numpy()[...] = range(5)
            results.append((outcome(run, x, value), x.numpy().tolist()))
        assert results[0] == results[1], k


def launches(chance):
    """Launches, each with operands of its own form."""
    for statement in (
        lambda a, b, s: a + b * s,
        lambda a, b, s: fn.exp(a) - s,
        lambda a, b, s: b,
        lambda a, b, s: sum_rows(broadcast(a, (5, 5), 0)) * s,
    ):
        a, b, dest = (tensor(chance, (5,)) for _ in range(3))
        for _ in range(3):
            dispatch.store(dest, "saveto", statement(a, b, 2.0))
        value = statement(a, b, 2.0)
        launch = dispatch.KNOWN["saveto"][pattern_of(value), pattern_of(dest)]
        yield launch, dest, statement, a, b


def left_by(run, given, arrays):
    """What a launch says, and what it leaves in memory."""
    for x, first in zip(arrays, (1, 7, 100), strict=True):
        x.numpy()[...] = range(first, first + 5)
    return run(*given), [shown(x) for x in arrays]


def test_launches_both_ways():
    chance, done = random.Random(9), 0
    for launch, dest, statement, a, b in launches(chance):
        python = partial(launch_code.launch, launch.recipe)
        for k in range(60):
            value = statement(*chance.choice([(a, b), (b, a), (dest, b), (a, a)]), chance.random())
            odd = [(dest, dest), (dest, 3), (None, None), (a, value)]
            given = chance.choice([(dest, value)] * 6 + odd)
            results = [left_by(run, given, (a, b, dest)) for run in (python, launch.call)]
            assert results[0] == results[1], k
            done += results[0][0] is True
    assert done > 80


def test_a_launch_that_runs_is_left_alone():
    for launch, dest, statement, a, b in launches(random.Random(1)):
        words = launch_code.Words(launch.recipe)
        words[14] = 1
        assert launch.call(dest, statement(a, b, 1.0)) is False
        assert launch_code.launch(launch.recipe, dest, statement(a, b, 1.0)) is False
        words[14] = 0
        assert launch.call(dest, statement(a, b, 1.0)) is True


def test_references_stay_as_they_are():
    chance = random.Random(10)
    x, y = tensor(chance, (5,)), tensor(chance, (5,))
    things = (None, True, False, 2, x, y, x.owner, x.dtype, x.pattern, SCALAR["add"], ())

    def run():
        for _ in range(50):
            x[:] = x * 2.0 + y
            x[1:3] = y[1:3]
            fn.hypot(x, y)
            sum_rows(broadcast(x, (5, 5), 0))
            y.slice(1, 3)
            outcome(Tensor.__getitem__, x, "a")
            outcome(Expr.__add__, x, "a")
            outcome(SCALAR["exp"], x, x)

    run()
    gc.collect()
    gc.disable()
    try:
        before = [*map(sys.getrefcount, things)], len(gc.get_objects())
        run()
        after = [*map(sys.getrefcount, things)], len(gc.get_objects())
    finally:
        gc.enable()
    assert max(abs(a - b) for a, b in zip(before[0], after[0], strict=True)) < 20
    assert abs(before[1] - after[1]) < 20
