"""What is learnt about operands of certain layouts, in many tables that are bounded together.

Where they weigh too much, entries drawn by chance go. So work in rotation that needs a little
more than there is room for learns a little anew, where the oldest would always be the next wanted.

An entry says how much it weighs by its `kept_bytes`. It is weighed again when the next one comes,
as much is made only when it first runs.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

Table = dict[Any, Any]


class BoundedCache:
    """The entries of many tables, as many as weigh `most`; one that does not say it weighs `each`.

    >>> kept, table = BoundedCache(2), {}
    >>> for number in range(5):
    ...     kept.put(table, number, "learnt")
    >>> len(table), 4 in table
    (2, True)
    """

    def __init__(self, most: int, each: int = 1) -> None:
        self.most, self.each = most, each
        self.made = 0  # entries in all, as long as it lives
        self._entries: list[tuple[Table, Hashable, int]] = []
        self._weight = 0
        self._draw = random.Random(0)

    def put(self, table: Table, key: Hashable, value: Any) -> None:
        """Enter `value` into one of the tables."""
        if key not in table:
            self._weigh_latest()
            weight = self._weight_of(value)
            while self._entries and self._weight + weight > self.most:
                self._drop(self._draw.randrange(len(self._entries)))
            self._entries.append((table, key, weight))
            self._weight += weight
            self.made += 1
        table[key] = value

    @property
    def has_room(self) -> bool:
        """Whether one more of the usual weight takes the place of none."""
        return self._weight + self._weight // max(1, len(self._entries)) <= self.most

    def _weight_of(self, value: Any) -> int:
        found: int = getattr(value, "kept_bytes", self.each)
        return found

    def _weigh_latest(self) -> None:
        """Weigh the latest entry again, unless another thread enters one meanwhile."""
        for latest in self._entries[-1:]:
            table, key, before = latest
            weight = self._weight_of(table.get(key))
            if self._entries and self._entries[-1] is latest:
                self._entries[-1] = table, key, weight
                self._weight += weight - before

    def _drop(self, place: int) -> None:
        """Drop an entry; the last one takes its place."""
        entries = self._entries
        entries[place], (table, key, weight) = entries[-1], entries[place]
        entries.pop()
        self._weight -= weight
        table.pop(key, None)

    def forget(self) -> None:
        """Drop every entry."""
        while self._entries:
            self._drop(-1)


#: recipes
RECIPES = BoundedCache(64 << 20, 6 << 10)
#: how operands of certain layouts and parameters are served quickly, below 1 KB each
LEARNT = BoundedCache(16384)
#: programs of steps that came often, by their operators
STEPS = BoundedCache(160 << 20, 64 << 10)
