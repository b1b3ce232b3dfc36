"""Bodies of control flow: graphs whose variables and outputs go by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph


class Body(Graph):
    """A graph that an operator computes: its variables in the order of a search, by number."""

    def __init__(self, outputs: Iterable[Entry]) -> None:
        super().__init__(outputs)
        self.changed = frozenset(k for k, n in enumerate(self.variables) if n in self.states)

    @property
    def num_inputs(self) -> int:
        """How many variables it has."""
        return len(self.variables)

    @property
    def num_outputs(self) -> int:
        """How many outputs it has."""
        return len(self.outputs)

    def infer(self, kind: str, known: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What follows of `shapes` or `types` for variables and outputs, by number.

        Raises:
            ShapeError, DTypeError: they contradict; it names the node.
        """
        given = dict(zip(self.variables, known, strict=True))
        found: Any = infer.shapes(self, given) if kind == "shapes" else infer.types(self, given)
        return [found[Entry(n, 0)] for n in self.variables], [found[e] for e in self.outputs]
