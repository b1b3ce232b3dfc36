"""What a statement takes from the storage pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gnomon.runtime.devices import pool


@contextmanager
def watched_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes, in bytes, of all blocks that are asked for inside."""
    sizes: list[int] = []
    allocate = pool.Pool.allocate

    def noting(self: pool.Pool, nbytes: int) -> pool.Storage:
        sizes.append(nbytes)
        return allocate(self, nbytes)

    with monkeypatch.context() as patch:
        patch.setattr(pool.Pool, "allocate", noting)
        yield sizes
