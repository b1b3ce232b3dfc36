"""Operators with their parameters, as functions of arrays that are quick where they came before.

A first call on arrays of some layouts goes the way of `invoke.py`; what it leaves there serves the
next one natively: an operator that waits joins a window (`join.py`), any other whose kernel is
short is applied again as it was (`repeat.py`). Anything unusual goes the first call's way.
"""

from __future__ import annotations

from typing import Any

from gnomon.ndarray.core import Array
from gnomon.ndarray.invoke import invoke
from gnomon.ndarray.join import Join, joining
from gnomon.ndarray.mode import mode
from gnomon.ndarray.numbers import home_of
from gnomon.ndarray.recipe import Recipe
from gnomon.ndarray.repeat import Repeat, repeating
from gnomon.ndarray.trace import of_inputs_alone
from gnomon.ndarray.window import here

_KEPT = 64  # layouts that one operator is quick for


class Applied:
    """An operator with its parameters, as a function of arrays alone."""

    __slots__ = ("_home", "_join", "_recipes", "_repeat", "_same", "op")

    def __init__(self, op: Any) -> None:
        self.op = op
        self._home = home_of(op)
        self._same = of_inputs_alone(type(op))  # whether equal inputs have equal outputs
        self._join: Join | None = None  # its native form where it waits
        self._repeat: Repeat = repeating()
        self._recipes: dict[Any, Recipe] = {}  # what that repeats, by the arrays' layouts

    def __call__(self, arrays: tuple[Any, ...]) -> Any:
        """The operator's outputs; None where an operand is no array, and nothing was done."""
        if self._join is not None:
            made = self._join(here.own, *arrays)
        else:
            made = self._repeat(self._recipes, arrays)
        if made is not None:
            return made
        for array in arrays:
            if array.__class__ is not Array.main:
                return None
        made = invoke(self.op, arrays)
        self._learn(arrays)
        return made

    def _learn(self, arrays: tuple[Any, ...]) -> None:
        """Be quick from now on for arrays like these, to which the operator was just applied."""
        layouts = tuple([x._layout for x in arrays])
        kind = self._home.kind
        if kind.rules.get(layouts) is not None:
            if self._join is None and len(arrays) <= 2 and not self._home.fields:
                self._join = joining(kind.rules, kind.rules)
        elif self._same and not mode.recording:
            recipe = kind.recipes.get((mode.training, False, *layouts))
            if recipe is None or recipe.address is None or recipe.numbers:
                return
            if len(self._recipes) >= _KEPT:
                self._recipes.clear()
            self._recipes[layouts] = recipe
