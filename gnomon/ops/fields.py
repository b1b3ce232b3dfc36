"""Arguments of layers that are parameters of operators: they take what these take."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from gnomon.ops.registry import find


class Field(NamedTuple):
    """A parameter of an operator, as `Dropout.axes`, under whatever name an argument has.

    >>> Field("LeakyReLU.slope").check("ELU", "alpha", "a")
    Traceback (most recent call last):
    gnomon.base.ParamError: ELU: argument 'alpha': expected float, got 'a'
    """

    parameter: str
    optional: bool = False  # whether None leaves it out

    def check(self, where: str, argument: str, value: Any) -> None:
        """Refuse what the operator refuses, before it is called."""
        if self.optional and value is None:
            return
        op, _, name = self.parameter.partition(".")
        field = copy.copy(find(op).fields[name])
        field.name = argument
        field.parse(where, value)
