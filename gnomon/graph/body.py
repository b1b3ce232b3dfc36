"""Bodies of control flow: graphs whose variables and outputs go by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph

MOST_KEPT = 16  # inferences


class Body(Graph):
    """A graph that an operator computes: its variables in the order of a search, by number."""

    def __init__(self, outputs: Iterable[Entry]) -> None:
        super().__init__(outputs)
        self.changed = frozenset(k for k, n in enumerate(self.variables) if n in self.states)
        self._inferred: dict[tuple[Any, ...], tuple[list[Any], list[Any]]] = {}

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
        key = (kind, *known)
        if key not in self._inferred:  # an operator asks twice: bodies in bodies would 2^n times
            if len(self._inferred) >= MOST_KEPT:
                self._inferred.clear()
            self._inferred[key] = self._infer(kind, known)
        inputs, outputs = self._inferred[key]
        return list(inputs), list(outputs)

    def _infer(self, kind: str, known: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given = dict(zip(self.variables, known, strict=True))
        found: Any = infer.shapes(self, given) if kind == "shapes" else infer.types(self, given)
        return [found[Entry(n, 0)] for n in self.variables], [found[e] for e in self.outputs]
