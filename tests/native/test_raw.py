"""Functions that need no Python: both ways on the same memory, refused, by threads at once."""

from __future__ import annotations

import ctypes
import random
import threading

import pytest
from native import raw_samples
from native.raw_samples import Record

from gnomon import config
from gnomon.base import GnomonError
from gnomon.native.kinds import KitError
from gnomon.native.memory import shared
from gnomon.native.serve import raw_code
from gnomon.native.unit import RawUnit
from gnomon.native.words import Words, native
from gnomon.runtime.ffi import Block


def called(code, function, block, count):
    """What native code gives for a struct and a number."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return kind(code.address(function.__name__))(block.address, count)


@pytest.mark.parametrize("function", raw_samples.ALL, ids=lambda f: f.__name__)
def test_both_ways(function):
    code = raw_code(function)
    chance = random.Random(5)
    for _ in range(60):
        numbers = [chance.choice((0, 1, 7, -3, 2**40, chance.randrange(100))) for _ in range(12)]
        count = chance.randrange(5)
        blocks = [Block(numbers), Block(numbers)]
        expected = function(Record(blocks[0].address), count)
        found = called(code, function, blocks[1], count)
        assert list(blocks[0].words) == list(blocks[1].words), (numbers, count)
        found = bool(found & 1) if isinstance(expected, bool) else found
        assert expected is None or expected == found


def test_they_need_no_native_setting():
    config.set("native", False)
    try:
        block = Block([3] * 12)
        called(raw_code(raw_samples.summed), raw_samples.summed, block, 2)
    finally:
        config.reset("native")
    assert block.words[0] == 6


def test_source_that_is_not_there_is_named():
    space = {"__name__": "nowhere"}
    exec(compile("def lost(count: int) -> None:\n    return\n", "/nowhere.py", "exec"), space)
    with pytest.raises(GnomonError, match=r"lost: compiled from source, which is not there"):
        raw_code(native(space["lost"]))


def test_threads_count_together():
    code, block = raw_code(raw_samples.counted), Block(12)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    work = [
        threading.Thread(target=run(code.address("counted")), args=(block.address, 200_000))
        for _ in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert list(block.words[0:3]) == [800_000, 800_000, 800_000]


@pytest.mark.parametrize("function", raw_samples.REFUSED, ids=lambda f: f.__name__)
def test_what_is_refused_names_the_line(function):
    with pytest.raises(KitError) as error:
        RawUnit((function,))
    first = function.__code__.co_firstlineno
    place, _, said = str(error.value).partition(": ")
    assert place == f"{raw_samples.__file__}:{first + 3}"
    assert said == function.__doc__


def test_shared_words_are_apart():
    first, second = shared(Words), shared(Words, 2)
    assert abs(first.address - second.address) >= 128
    assert (first[0], second[1]) == (0, 0)
