"""What is learnt about operands of certain layouts, in many tables that are bounded together.

An entry too many takes the place of one drawn by chance. So work in rotation that needs a little
more than there is room for learns a little anew, where the oldest would always be the next wanted.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

Table = dict[Any, Any]


class BoundedCache:
    """The entries of many tables, at most `most` of them.

    >>> kept, table = BoundedCache(2), {}
    >>> for number in range(5):
    ...     kept.put(table, number, "learnt")
    >>> len(table), 4 in table
    (2, True)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: list[tuple[Table, Hashable]] = []
        self._draw = random.Random(0)

    def put(self, table: Table, key: Hashable, value: Any) -> None:
        """Enter `value` into one of the tables."""
        if key not in table:
            if len(self._entries) < self.most:
                self._entries.append((table, key))
            else:
                place = self._draw.randrange(self.most)
                before, gone = self._entries[place]
                self._entries[place] = table, key
                before.pop(gone, None)
        table[key] = value

    def forget(self) -> None:
        """Drop every entry."""
        for table, key in self._entries:
            table.pop(key, None)
        self._entries.clear()


#: recipes, 6 KB each
RECIPES = BoundedCache(8192)
#: how operands of certain layouts and parameters are served quickly, below 1 KB each
LEARNT = BoundedCache(16384)
