"""Fast paths by native code do what they do as Python: what is read, written, landed, let go of."""

from __future__ import annotations

import ctypes
import gc
import random
import sys
from collections import deque

import pytest

import gnomon as mx
from gnomon import config
from gnomon.engine.job import make_job
from gnomon.engine.var import NO_JOBS
from gnomon.ground.record import put
from gnomon.native.serve import binding
from gnomon.native.words import MOST
from gnomon.ndarray.core.chunk import Chunk
from gnomon.ndarray.lazy.landing import fast_path
from gnomon.runtime.ffi import Block

KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


@pytest.fixture(autouse=True)
def natively(only_what_is_new_is_collected):
    """Native code is served, whatever the environment says."""
    config.set("native", True)
    yield
    config.reset("native")


class Pending:
    """What arrays let go of: it may look at them then."""

    alive = 0

    def __init__(self, look):
        self.look = look
        Pending.alive += 1

    def __del__(self):
        Pending.alive -= 1
        self.look()


def chunk_of(chance):
    """Memory that is mostly free."""
    chunk = Chunk(chance.randrange(1 << 40), mx.cpu(), None, 8)
    job = make_job(bool, 0, (), ())
    busy = [
        ("writer", job),
        ("failure", ValueError()),
        ("queue", deque([job])),
        ("queue", deque()),
        ("readers", {job}),
        ("readers", set()),
    ]
    if chance.random() < 0.15:
        put(chunk, *chance.choice(busy))
    return chunk


def outcome(seed, bind):
    """What a call answers, writes and leaves."""
    chance, seen = random.Random(seed), []
    read, written = ([chunk_of(chance) for _ in range(chance.randrange(4))] for _ in range(2))
    integers = [chance.choice([5, 2**64 - 3, -7, chunk.address]) for chunk in (*read, *written)]
    integers += [1] * (chance.random() < 0.1)
    words = Block(len(integers) or 1)
    rows = [(words.address + 8 * k, k, chance.randrange(9)) for k in range(len(integers))]
    places = Block([x for row in rows for x in row] or 1)
    run = KERNEL(lambda block: seen.append((block, [*words.words])) or 0)
    function = ctypes.cast(run, ctypes.c_void_p).value
    count = len(read) + len(written)
    record = Block([count, len(rows), places.address, function, 77, len(read), 0, 0])
    holders = [mx.nd.zeros((2,)) for _ in range(chance.randrange(len(written) + 1))]
    for array in holders:
        look = lambda array=array: seen.append((array._address, array._pending_in))  # noqa: E731
        put(array, "_pending_in", Pending(look) if chance.random() < 0.7 else None)
    answer = bind(record.address)(read, written, integers, holders)
    landed = [
        (x._pending_in is None, x._address, answer and written.index(x._chunk))
        for x in holders
        if answer
    ]
    for array in holders:
        put(array, "_pending_in", None)
    versions = [x.version for x in (*read, *written)]
    unread = [x.readers is NO_JOBS for x in written]
    return answer, landed, versions, unread, seen if answer else []


def in_python(record):
    return lambda *given: fast_path(record, *given)


def test_both_ways():
    native, ran = binding(fast_path), 0
    for seed in range(150):
        first = outcome(seed, in_python)
        gc.collect()
        assert outcome(seed, native) == first, seed
        gc.collect()
        assert Pending.alive == 0
        ran += first[0]
    assert 40 < ran < 140


def test_references_stay_as_they_are():
    native, things = binding(fast_path), (None, True, False, 5, Chunk, NO_JOBS)

    def grown(seed):
        outcome(seed, native)
        gc.collect()
        before = [*map(sys.getrefcount, things), len(gc.get_objects())]
        for _ in range(10):
            outcome(seed, native)
        gc.collect()
        after = [*map(sys.getrefcount, things), len(gc.get_objects())]
        return max(abs(a - b) for a, b in zip(before, after, strict=True))

    assert [seed for seed in range(8) if grown(seed) > 8] == []


def test_too_many_integers_are_left_to_others():
    record, many = Block([MOST + 1, 0, 0, 0, 0, 0, 0, 0]), [0] * (MOST + 1)
    for bind in (in_python, binding(fast_path)):
        assert bind(record.address)([], [], many, []) is False


def test_a_group_counts_the_bytes_that_it_alone_holds():
    kept = mx.nd.ones((1000,))
    made = kept * 3 + mx.nd.ones((1000,))
    assert made._pending_in._held_alone() == 4000
    del kept
    assert made._pending_in._held_alone() == 8000
