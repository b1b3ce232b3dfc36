"""What a program makes of parameters alone and keeps: weights as its layers read them best.

They have a normalization in them, or the layout that a library takes.

State: `_seen` are the versions of the parameters when it was made last, None before; each part has
its own, so that one parameter which changes often has not all of them made again. The caller
`refresh` holds the parameters and the program's memory in the engine, so that no version changes
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gnomon.engine import Var
from gnomon.executor import arrays
from gnomon.runtime.execution.stream import Pair


class Making(Protocol):
    """A program, of whichever device."""

    @property
    def work(self) -> int:
        """What the processor does for it, by estimate."""

    def run(self) -> None:
        """Do it, or give it to the device."""


class Part:
    """A program and the variables of what it reads; it runs where one of them has changed."""

    __slots__ = ("_seen", "program", "variables")

    def __init__(self, program: Making, variables: Iterable[Var]) -> None:
        self.program = program
        self.variables = tuple(variables)
        self._seen: list[int] | None = None

    def refresh(self) -> None:
        """Make the values again, unless nothing that they are made of was written since.

        What others beside gnomon may write (`Chunk.shared`) counts as changed each time.
        """
        if self.is_fresh():
            return
        versions = [v.version for v in self.variables]
        self._seen = None
        self.program.run()
        self._seen = versions

    def is_fresh(self) -> bool:
        """Whether nothing was written since the values were made."""
        versions = [v.version for v in self.variables]
        return versions == self._seen and not any(map(arrays.is_shared, self.variables))


class Prepared:
    """All parts of a program's parameters; `work` estimates what making all of them takes."""

    def __init__(self, parts: Iterable[tuple[Making, Iterable[Var]]]) -> None:
        self._parts = [Part(*part) for part in parts]
        self.variables = tuple(dict.fromkeys(v for part in self._parts for v in part.variables))
        self.work = sum(part.program.work for part in self._parts)
        self._members = frozenset(self.variables)

    def reads(self, var: Var) -> bool:
        """Whether it depends on what `var` stands for."""
        return var in self._members

    def put(self, nothing: object) -> None:
        """As `refresh`, for a train step."""
        self.refresh()

    def pairs(self, nothing: object) -> list[Pair] | None:
        """No word is put anywhere, where all is up to date for sure; else None."""
        certain = all(v.writer is None and not v.queue for v in self.variables)
        return [] if certain and all(part.is_fresh() for part in self._parts) else None

    def refresh(self) -> None:
        """Make what is not up to date again."""
        for part in self._parts:
            part.refresh()
