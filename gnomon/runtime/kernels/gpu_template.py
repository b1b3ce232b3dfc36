"""Templates of a GPU's steps: made once for a kind of work, bound to its operands at each run.

As `template.py` for the processor, the steps are made for stand-in addresses, which no memory has.
A step knows which of its words are addresses; those that are numbers of the caller's are found by a
second making. A run copies the words, puts in its addresses and takes temporaries from the pool,
which get them back when the steps are given to the queue: no memory is held between runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gnomon.runtime.devices import pool
from gnomon.runtime.devices.cuda.gpu import Queue
from gnomon.runtime.devices.pool import Storage
from gnomon.runtime.kernels.gpu_kernel import GpuStep
from gnomon.runtime.kernels.template import SPACING, Make, storages_of


class Slot(NamedTuple):
    """A word of a step: which of the operands, numbers and temporaries it holds, and how far on."""

    word: int
    operand: int
    offset: int


class GpuTemplate:
    """Work on `count` operands on a GPU; `make(addresses)` gives its steps for operands that lie
    there.

    `numbers` are words that come with each run after the addresses: each is what the steps hold for
    it when made by `make(addresses, 0)` and by `make(addresses, 1)`.
    """

    __slots__ = ("_device", "_held", "_numbers", "_steps")

    def __init__(
        self, make: Make, count: int, numbers: Sequence[tuple[int, int]] = (), device: str = "gpu"
    ) -> None:
        stand_ins = [(k + 1) * SPACING for k in range(count)]
        steps: list[Any] = list(make(stand_ins, *((0,) if numbers else ())))
        others: list[Any] = list(make(stand_ins, 1)) if numbers else steps
        held = {s.address: s for step in steps for s in storages_of(step)}
        places = _Places(count, len(numbers), list(held.values()))
        pairs = {pair: count + k for k, pair in enumerate(numbers)}
        self._steps = [
            (
                step.with_words(list(step.words), None),
                [*places.of_addresses(step), *_of_numbers(step, other, pairs)],
            )
            for step, other in zip(steps, others, strict=True)
        ]
        self._held = [s.nbytes for s in held.values()]
        self._device = device
        self._numbers = range(count, count + len(numbers))

    @property
    def takes_numbers(self) -> bool:
        """Whether every number is a word of some step."""
        found = {slot.operand for _, slots in self._steps for slot in slots}
        return found.issuperset(self._numbers)

    def bound(
        self, given: Sequence[int], keep: Any = None, queue: Queue | None = None
    ) -> list[GpuStep]:
        """The steps for these addresses and numbers, to be run once, by `queue`; they hold `keep`.

        Without a queue it is that of the making.
        """
        own = [pool.allocate(nbytes, self._device) for nbytes in self._held]
        values = [*given, *[storage.address for storage in own]]
        found = []
        for step, slots in self._steps:
            words = list(step.words)
            for word, operand, offset in slots:
                words[word] = values[operand] + offset
            found.append(step.with_words(words, (own, keep), queue))
        return found


class _Places:
    """What lies where when the steps are made: operands at stand-ins, then the temporaries."""

    def __init__(self, count: int, numbers: int, held: Sequence[Storage]) -> None:
        self.first, self.held = count + numbers, held

    def of_addresses(self, step: GpuStep) -> list[Slot]:
        """The words of a step that are addresses."""
        return [Slot(s.word, *self._place(step.words[s.word])) for s in step.spans]

    def _place(self, address: int) -> tuple[int, int]:
        operand = (address + SPACING // 2) // SPACING
        if operand > 0:
            return operand - 1, address - operand * SPACING
        for k, storage in enumerate(self.held):
            if 0 <= address - storage.address < storage.capacity:
                return self.first + k, address - storage.address
        raise AssertionError(f"{address:#x}: no operand, and memory that the steps do not keep")


def _of_numbers(step: GpuStep, other: GpuStep, pairs: dict[tuple[int, int], int]) -> list[Slot]:
    """The words that differ between two makings as the stand-ins of the numbers do."""
    addresses = {span.word for span in step.spans}
    return [
        Slot(word, pairs[x, y], 0)
        for word, (x, y) in enumerate(zip(step.words, other.words, strict=True))
        if word not in addresses and (x, y) in pairs
    ]
