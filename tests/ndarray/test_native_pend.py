"""Operators that join a fusion group natively leave what they leave as Python, and keep nothing."""

from __future__ import annotations

import gc
import random
import sys
from functools import partial
from itertools import product

import numpy as np
import pytest

from gnomon import config, nd
from gnomon.ground.record import put
from gnomon.native.serve import binding
from gnomon.ndarray.core.array import Array
from gnomon.ndarray.lazy.fusion_group import here
from gnomon.ndarray.lazy.native_pend import Rules, native_pend
from gnomon.ndarray.lazy.numbers import sharing_of
from gnomon.ops import registry

SHAPES = [(3,), (2, 3)]


@pytest.fixture(autouse=True)
def natively():
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    here.own.compute()
    config.reset("native")


@pytest.fixture
def rules():
    """Of sums, after chains of them came by Python's way."""
    second = (lambda a, b, c: (c + b, a + b), lambda a, b, c: (c + c, c.sqrt()), lambda a, b, c: ())
    third = (lambda a, b: a + b, lambda a, b: a + 2.0, lambda a, b: a.sqrt(), lambda a, b: a + a)
    for shape, pending, more in product(SHAPES, second, third):
        a, b = nd.ones(shape), nd.ones(shape)
        a.wait_to_read()
        b.wait_to_read()
        for made in (*pending(a, b, a + b), more(a, b)):
            made.wait_to_read()
        kept = a + b, more(a, b)
        here.own.compute()
        assert len(kept) == 2
    pairs = sharing_of(registry.find("elemwise_add").parse({})).kind.rules
    singles = sharing_of(registry.find("_plus_scalar").parse({"scalar": 1.0})).kind.rules
    roots = sharing_of(registry.find("sqrt").parse({})).kind.rules
    return Rules(pairs, singles), Rules(roots, roots)


def spoiled(chance, a):
    """One of the states that are left to Python, or none; what undoes it."""
    kind, chunk, own = chance.randrange(14), a._chunk, here.own
    for k, (thing, name, value) in enumerate(
        [
            (chunk, "shared", True),
            (chunk, "failure", "failure"),
            (a, "_tape", "place"),
            (own, "settings", -1),
            *((own.groups[a.shape], name, True) for name in ("busy", "closed", "eager")),
        ]
    ):
        if k == kind and (k < 4 or a.shape in own.groups):
            before = getattr(thing, name)
            put(thing, name, value)
            return lambda: put(thing, name, before)
    return lambda: None


def outcome(run, seed):
    """What a call gives on fresh arrays, and how it leaves the group."""
    chance, own = random.Random(seed), here.own
    own.compute()
    shape = chance.choice(SHAPES)
    a, b = (nd.array(np.full(shape, chance.randrange(9), np.float32)) for _ in range(2))
    a.wait_to_read()
    b.wait_to_read()
    c = a + b if chance.random() < 0.7 else a
    others = [b, c, a, 2.0, 3, 2**53 + 1, 2**70, -(2**60), None, "x", np.float32(1), True]
    given = [(chance.choice([a, c]), chance.choice(others)), (a, b), (3, a), (c,), (a,)]
    undo = spoiled(chance, a) if a.shape in own.groups else lambda: None
    try:
        operands = chance.choice(given)
        found = run[len(operands) == 1](own, *operands)
    finally:
        undo()
    group = own.groups.get(shape)
    left = None if group is None else (
        len(group.read), len(group.results), list(group.numbers), group.held,
        sorted(group.places.values()), group.trace, len(a._chunk.pending_readers), group.busy,
    )  # fmt: skip
    kept = None if found is None else (found._index, found._pending_in is group, found._tape)
    return kept, left, None if found is None else found.asnumpy().tolist()


def test_joins_both_ways(rules):
    fast, slow = [*map(binding(native_pend), rules)], [partial(native_pend, each) for each in rules]
    done = 0
    for seed in range(400):
        python = outcome(slow, seed)
        assert outcome(fast, seed) == python, seed
        done += python[0] is not None
    assert done > 60


def test_nothing_is_kept(rules):
    both = [*map(binding(native_pend), rules)]
    fast = both[0]
    a = nd.ones((3,))
    things = (None, True, False, a, a._layout, a._chunk.ctx, Array.main, 2.0)

    def run():
        for seed in range(60):
            outcome(both, seed)
        for _ in range(30):
            fast(here.own, a, a)
            fast(here.own, a, 2.0)
            fast(here.own, a, "x")
            here.own.compute()

    run()
    gc.collect()
    gc.disable()
    try:
        before = [*map(sys.getrefcount, things)], len(gc.get_objects())
        run()
        after = [*map(sys.getrefcount, things)], len(gc.get_objects())
    finally:
        gc.enable()
    assert max(abs(x - y) for x, y in zip(before[0], after[0], strict=True)) < 20
    assert abs(after[1] - before[1]) < 40


def test_an_engine_that_waits_is_left_alone(rules):
    """What an operand's memory is being written by is seen."""
    fast = binding(native_pend)(rules[0])
    a = nd.ones((3,))
    a.wait_to_read()
    put(a._chunk, "writer", "somebody")
    try:
        assert fast(here.own, a, a) is None
        assert native_pend(rules[0], here.own, a, a) is None
    finally:
        put(a._chunk, "writer", None)
