"""Sums of small arrays over ranks that have a name, and no place in the order of other calls.

They are asked for while functions of the engine run, whose order may differ between ranks where
they do not depend on one another. So each is met by its name: round `k` of a name on one rank is
round `k` of it on all. Every rank sends all others a *head*, which says what the sum is about and
the number of the round, and its array, both with a tag that the name determines; and adds up what
comes in the order of ranks. MPI keeps the rounds of a tag in order. Should two names that share a
tag be under way in another order on two ranks, their heads differ, and the job ends.

State: `_rounds` of each name so far, and the names that are `_under_way`.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon.base import GnomonError
from gnomon.kvstore.communicator import Communicator, Subject
from gnomon.ranks import Array

HEAD_BYTES = 256


class Totals:
    """Sums over the ranks of a job; `total` is what `gnomon.ranks` calls."""

    def __init__(self, communicator: Communicator) -> None:
        self._comm, self._world = communicator, communicator.sums
        self._tags = communicator.mpi.COMM_WORLD.Get_attr(communicator.mpi.TAG_UB) + 1
        self._rounds: dict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def total(self, name: str, values: Array) -> Array:
        """See `Ranks.total`."""
        with self._lock:
            if name in self._under_way:
                raise GnomonError(f"sum of {name!r} over ranks: it is in another call already")
            self._under_way.add(name)
            number = next(self._rounds[name])
        try:
            return self._summed(name, number, np.ascontiguousarray(values))
        finally:
            self._under_way.discard(name)

    def _summed(self, name: str, number: int, values: Array) -> Array:
        others = [r for r in range(self._world.size) if r != self._world.rank]
        what = f"sum of {name!r} of shape {values.shape} in {values.dtype.name}, round {number}"
        head = _head(what)
        heads = [np.empty_like(head) for _ in others]
        rows = [np.empty_like(values) for _ in others]
        tag = 2 * (_digest(name) % (self._tags // 2))
        coming: list[Any] = []

        def work(_: Any) -> Any:
            byte, sums = self._comm.mpi.BYTE, self._world
            coming[:] = [sums.Irecv([h, byte], r, tag) for h, r in zip(heads, others, strict=True)]
            leaving = [sums.Isend([head, byte], r, tag) for r in others]
            leaving += [sums.Isend([_bytes(values), byte], r, tag + 1) for r in others]
            yield coming
            for rank, found in zip(others, heads, strict=True):
                if (found != head).any():
                    self._comm.fail(f"does {what}, while {self._does(rank, found)}")
            yield leaving + [
                sums.Irecv([_bytes(row), byte], r, tag + 1)
                for row, r in zip(rows, others, strict=True)
            ]

        def missing() -> str:
            late = [r for r, c in zip(others, coming, strict=True) if not c.Get_status()]
            return f"waits for {', '.join(str(self._comm.peers[r]) for r in late)} in {what}"

        self._comm.send(Subject(what), work, late=missing).ended.wait()
        rows.insert(self._world.rank, values)
        return functools.reduce(np.add, rows)

    def _does(self, rank: int, head: Array) -> str:
        return f"{self._comm.peers[rank]} does {_text(head)}"


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _head(what: str) -> Array:
    """The digest of a text and as much of the text as fits."""
    whole = _digest(what).to_bytes(8, "little") + what.encode()
    return np.frombuffer(whole[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0"), np.uint8)


def _text(head: Sequence[int]) -> str:
    """What a head says.

    >>> _text(_head("sum of 'mean'"))
    "sum of 'mean'"
    """
    return bytes(head[8:]).rstrip(b"\0").decode(errors="ignore")


def _bytes(values: Array) -> Array:
    return values.reshape(-1).view(np.uint8)
