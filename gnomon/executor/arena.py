"""Working memory of executors: a room for each context, which programs take turns in.

State of a room: `storage`, a block, which only grows; programs laid out before it grew keep the
block they were given. `workspaces` are others, in which the libraries' steps of that context work
one after the other: one for each branch of a region, the first also for what is in none. Copies of
weights live as long as a program that reads them.
Of all: `var` orders which passes work here. `content` says whose forward pass left its values here:
a backward pass begins where its own forward pass did, or computes that again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from weakref import WeakValueDictionary

from gnomon import engine
from gnomon.context import Context
from gnomon.runtime.devices import pool
from gnomon.runtime.execution.program import Step
from gnomon.runtime.libraries.dnn import share_workspace


class Room:
    """The memory of one context."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.storage: pool.Storage | None = None
        self.workspaces: dict[int, pool.Storage | None] = {}
        self._copies: WeakValueDictionary[Hashable, pool.Storage] = WeakValueDictionary()

    def share(self, steps: Iterable[Step], branch: int = 0) -> None:
        """Let all of oneDNN's steps among `steps` work in one place; none runs beside another."""
        self.workspaces[branch] = share_workspace(steps, self.workspaces.get(branch))

    def copies(self, key: Hashable, nbytes: int) -> pool.Storage:
        """Memory for copies of a weight; the same for all programs that ask for the same ones."""
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = pool.allocate(nbytes, self.ctx)
        return found

    @property
    def nbytes(self) -> int:
        """The size of the block."""
        return 0 if self.storage is None else self.storage.nbytes

    def reserve(self, nbytes: int) -> pool.Storage:
        """A block of at least `nbytes` bytes: the one there is, or a larger one from now on."""
        if self.storage is None or self.storage.nbytes < nbytes:
            self.storage = pool.allocate(max(nbytes, 1), self.ctx)
        return self.storage


class Arena:
    """Memory for values between tasks, shared by the programs of one executor or of several."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.var = engine.Var(f"working memory on {ctx}")
        self.content: object = None
        self._rooms: dict[Context, Room] = {}

    def room(self, ctx: Context) -> Room:
        """The memory of one context."""
        found = self._rooms.get(ctx)
        return self._rooms.setdefault(ctx, Room(ctx)) if found is None else found

    @property
    def nbytes(self) -> int:
        """The size of all blocks."""
        return sum(room.nbytes for room in self._rooms.values())
