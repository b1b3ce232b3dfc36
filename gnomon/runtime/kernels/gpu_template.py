"""Templates of a GPU's steps: made once for a kind of work, bound to its operands at each run.

As `template.py` for the processor, the steps are made for stand-in addresses, which no memory has.
A step knows which of its words are addresses; those that are numbers of the caller's are found by a
second making. A run copies the words, puts in its addresses and takes temporaries from the pool,
which get them back when the steps are given to the queue: no memory is held between runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.gpu import Queue
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.execution.makings import differing
from gnomon.runtime.kernels.gpu_kernel import GpuStep
from gnomon.runtime.kernels.rebind import Where
from gnomon.runtime.kernels.template import Make, Place, stand_ins, stood_for, storages_of


class GpuTemplate:
    """Work on `count` operands on a GPU; `make(addresses)` gives its steps for operands that lie
    there.

    `numbers` are words that come with each run after the addresses: each is what the steps hold for
    it when made by `make(addresses, 0)` and by `make(addresses, 1)`.
    """

    __slots__ = ("_device", "_held", "_numbers", "_places", "_steps")

    def __init__(
        self, make: Make, count: int, numbers: Sequence[tuple[int, int]] = (), device: str = "gpu"
    ) -> None:
        steps: list[Any] = list(make(stand_ins(count), *((0,) if numbers else ())))
        others: list[Any] = list(make(stand_ins(count), 1)) if numbers else steps
        held = {s.address: s for step in steps for s in storages_of(step)}
        taken = list(enumerate(held.values(), count + len(numbers)))
        pairs = {pair: count + k for k, pair in enumerate(numbers)}
        words = [
            (at, s.word, step.words[s.word]) for at, step in enumerate(steps) for s in step.spans
        ]
        self._places = [
            Place(at, word, *(stood_for(address, count) or _within(address, taken)))
            for at, word, address in words
        ]
        self._places += [
            Place(word.at, word.number, pairs[word.first, word.second], 0)
            for word in differing(zip(steps, others, strict=True))
            if (word.first, word.second) in pairs
        ]
        self._steps = [step.with_words(list(step.words), None) for step in steps]
        self._held = [s.nbytes for s in held.values()]
        self._device = device
        self._numbers = range(count, count + len(numbers))

    @property
    def takes_numbers(self) -> bool:
        """Whether every number is a word of some step."""
        return {place.operand for place in self._places}.issuperset(self._numbers)

    def bound(
        self, given: Sequence[int], keep: Any = None, queue: Queue | None = None
    ) -> list[GpuStep]:
        """The steps for these addresses and numbers, to be run once, by `queue`; they hold `keep`.

        Without a queue it is that of the making.
        """
        own = [pool.allocate(nbytes, self._device) for nbytes in self._held]
        values = [*given, *[storage.address for storage in own]]
        words = [list(step.words) for step in self._steps]
        for at, word, operand, offset in self._places:
            words[at][word] = values[operand] + offset
        pairs = zip(self._steps, words, strict=True)
        return [step.with_words(mine, (own, keep), queue) for step, mine in pairs]


def _within(address: int, taken: Sequence[tuple[int, Storage]]) -> Where:
    """Which temporary an address is in, by number, and how far behind its beginning."""
    for number, storage in taken:
        if 0 <= address - storage.address < storage.capacity:
            return Where(number, address - storage.address)
    raise AssertionError(f"{address:#x}: no operand, and memory that the steps do not keep")
