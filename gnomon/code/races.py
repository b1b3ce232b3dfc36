"""The race detector: what threads of one launch touch in the same place without an order.

Two threads are ordered where one block has a barrier between what they do; threads of two blocks
never are. In one instruction several threads of a warp may write the same value to one place.
Memory is watched by places: the elements of a dtype, as the kernel moves them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gnomon.base import DeviceError
from gnomon.plan.gpu.grid import WARP

Array: TypeAlias = "np.ndarray[Any, Any]"
MANY = -1  # in the place of the number of a thread or a block: several


class Race(DeviceError):
    """Two threads touched one place without an order between them, and one of them wrote."""


class Actors(NamedTuple):
    """Threads that do something at once: their numbers in the launch, their blocks, and how many
    barriers each has passed."""

    threads: Array
    blocks: Array
    barriers: Array


class Watch:
    """What was done to each place of some memory since a launch began."""

    def __init__(self, name: str, places: int) -> None:
        self.name = name
        self.writer, self.reader = _Last(places), _Last(places)

    def read(self, places: Array, actors: Actors) -> None:
        """Threads read a place each.

        Raises:
            Race: another thread wrote there, without a barrier since.
        """
        self._check(self.writer.unordered(places, actors), "read", "written", places, actors)
        self.reader.note(places, actors, alone=False)

    def write(self, places: Array, actors: Actors, values: Array) -> None:
        """Threads write a value to a place each.

        Raises:
            Race: another thread wrote or read there, without a barrier since.
        """
        for last, done in ((self.writer, "written"), (self.reader, "read")):
            self._check(last.unordered(places, actors), "written", done, places, actors)
        self.writer.note(places, actors, alone=True)
        self._check(self._collisions(places, actors, values), "written", "written", places, actors)

    def _collisions(self, places: Array, actors: Actors, values: Array) -> Array:
        """Where another thread has just written another value, or is of another warp."""
        winner = self.writer.thread[places] - 1
        twice = winner != actors.threads
        if not twice.any():
            return np.asarray(twice)
        order = np.argsort(actors.threads)
        which = order[np.searchsorted(actors.threads, winner, sorter=order)]
        bits = values.view(f"u{values.dtype.itemsize}")
        alike = (winner // WARP == actors.threads // WARP) & (bits[which] == bits)
        return np.asarray(twice & ~alike)

    def _check(self, bad: Array, now: str, before: str, places: Array, actors: Actors) -> None:
        if bad.any():
            k = int(np.argmax(bad))
            raise Race(
                f"race: place {int(places[k])} of {self.name} is {now} by thread "
                f"{int(actors.threads[k])} of the launch (block {int(actors.blocks[k])}) and was "
                f"{before} by another one, with no barrier between"
            )


class _Last:
    """The thread that last touched each place (plus one, 0: none), its block, its barriers."""

    def __init__(self, places: int) -> None:
        self.thread, self.block, self.barriers = (np.zeros(places, np.int64) for _ in range(3))

    def unordered(self, places: Array, actors: Actors) -> Array:
        """Which threads come after another one without an order."""
        before = self.thread[places]
        other = (before != 0) & (before != actors.threads + 1)
        same_block = self.block[places] == actors.blocks
        return np.asarray(other & ~(same_block & (self.barriers[places] < actors.barriers)))

    def note(self, places: Array, actors: Actors, alone: bool) -> None:
        """Threads touch these places; unless one does so `alone`, all of them are remembered."""
        thread, block = actors.threads + 1, actors.blocks
        if not alone:
            old, home = self.thread[places], self.block[places]
            earlier = (home == block) & (self.barriers[places] < actors.barriers)
            fresh = (old == 0) | earlier
            thread = np.where(fresh | (old == thread), thread, MANY)
            block = np.where(fresh | (home == block), block, MANY)
        self.thread[places], self.block[places] = thread, block
        self.barriers[places] = actors.barriers
        if not alone:  # several of these threads may have met in one place
            self.thread[places[self.thread[places] != actors.threads + 1]] = MANY
            self.block[places[self.block[places] != actors.blocks]] = MANY
