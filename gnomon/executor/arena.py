"""Working memory of executors: one block that programs, which never run together, take turns in.

State: `storage`, the block, which only grows; programs laid out before it grew keep the block they
were given. `workspace` is another one, in which the libraries' steps work one after the other.
`var` orders who works here. `content` says whose forward pass left its values here: a backward pass
begins where its own forward pass did, or computes that again.
"""

from __future__ import annotations

from collections.abc import Iterable

from gnomon import engine
from gnomon.context import Context
from gnomon.runtime import pool
from gnomon.runtime.dnn import share_workspace
from gnomon.runtime.program import Step


class Arena:
    """Memory for values between tasks, shared by the programs of one executor or of several."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.var = engine.Var(f"working memory on {ctx}")
        self.storage: pool.Storage | None = None
        self.workspace: pool.Storage | None = None
        self.content: object = None

    def share(self, steps: Iterable[Step]) -> None:
        """Let all of oneDNN's steps among `steps` work in one place; none runs beside another."""
        self.workspace = share_workspace(steps, self.workspace)

    @property
    def nbytes(self) -> int:
        """The size of the block."""
        return 0 if self.storage is None else self.storage.nbytes

    def reserve(self, nbytes: int) -> pool.Storage:
        """A block of at least `nbytes` bytes: the one there is, or a larger one from now on."""
        if self.storage is None or self.storage.nbytes < nbytes:
            self.storage = pool.allocate(max(nbytes, 1), self.ctx)
        return self.storage
