"""What is learnt about operands of certain layouts, in many tables that are bounded together.

Where they weigh too much, entries drawn by chance go. So work in rotation that needs a little
more than there is room for learns a little anew, where the oldest would always be the next wanted.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

Table = dict[Any, Any]


class BoundedCache:
    """The entries of many tables, at most `most` of them, or as many as weigh so much.

    >>> kept, table = BoundedCache(2), {}
    >>> for number in range(5):
    ...     kept.put(table, number, "learnt")
    >>> len(table), 4 in table
    (2, True)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.made = 0  # entries in all, as long as it lives
        self._entries: list[tuple[Table, Hashable, int]] = []
        self._weight = 0
        self._draw = random.Random(0)

    def put(self, table: Table, key: Hashable, value: Any, weight: int = 1) -> None:
        """Enter `value` into one of the tables."""
        if key not in table:
            while self._entries and not self.has_room(weight):
                self._drop(self._draw.randrange(len(self._entries)))
            self._entries.append((table, key, weight))
            self._weight += weight
            self.made += 1
        table[key] = value

    def has_room(self, weight: int) -> bool:
        """Whether an entry that weighs so much takes the place of none."""
        return self._weight + weight <= self.most

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


#: recipes, 6 KB each
RECIPES = BoundedCache(8192)
#: how operands of certain layouts and parameters are served quickly, below 1 KB each
LEARNT = BoundedCache(16384)
#: programs of steps that came often, by their operators
STEPS = BoundedCache(16384)
