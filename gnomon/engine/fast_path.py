"""Fast paths: a short native step, with its variables' check and its results' landing, in one call.

A fast path answers False, with nothing done, where a variable is in use or an error lies on one:
then the step is pushed as any other. It needs Python's own lock to be held by one thread at a time;
an interpreter without it has no fast paths.

A prepared one is a record, in words:

    0  integers that are expected
    1  places, their address             each: address of a word, number of the integer, offset
    3  function, block                   of the step
    5  number of the integer that is the address of the first result's memory; the others follow
    6  numbers, their address            each: which one, how it is written (see `recipe.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from gnomon.native.serve import binding
from gnomon.native.words import Words, call, native
from gnomon.runtime.execution.program import Step
from gnomon.runtime.ffi import Block
from gnomon.runtime.statements.fields import readable

HEAD = 8  # words of a record, before its tables
#: `fast_path(read, written, integers, holders)`: whether it was done; see `landing.py`
FastPath = Callable[[list[Any], list[Any], list[int], list[Any]], bool]


class PreparedFastPath:
    """A step prepared as a fast path: `run(record, read, written, integers, holders)` does it.

    `places` say which integer goes where: address of a word, number of the integer, offset. There
    are `integers` of them; from number `first` on they are the addresses of what the holders get.
    `numbers` are for native code that makes such integers by itself: for each of the last ones,
    which of the numbers that it has, and how that is written. The record lies at `address`.
    """

    __slots__ = ("_keep", "address", "call")

    def __init__(
        self,
        step: Step,
        places: Sequence[tuple[int, int, int]],
        integers: int,
        first: int,
        run: Any,
        numbers: Sequence[tuple[int, int]] = (),
    ) -> None:
        record = Block([integers, len(places), 0, step.function, step.block, first, len(numbers), 0,
                        *chain.from_iterable(places), *chain.from_iterable(numbers)])  # fmt: skip
        record.words[2] = record.address + 8 * HEAD
        record.words[7] = record.words[2] + 24 * len(places)
        self._keep = step, record
        self.address = record.address
        self.call: FastPath = binding(run)(record.address)


@native
def fire(fast_path: Words, integers: Words) -> None:
    """Put integers where a fast path's record says, and run its step."""
    row = Words(fast_path[2])
    for _ in range(fast_path[1]):
        word = Words(row[0])
        word[0] = integers[row[1]] + row[2]
        row = row + 3
    call(fast_path[3], fast_path[4])


def fits(step: Step) -> bool:
    """Whether a short step can be a fast path: it cannot fail.

    Others wait for Python's lock for 200 us at most; a thread in Python keeps it for 5 ms.
    """
    return readable() and step.status is None
