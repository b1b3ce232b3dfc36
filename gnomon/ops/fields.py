"""Arguments of layers that are parameters of operators: they take what these take."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection
from typing import Any, ClassVar

from gnomon.ground.record import record
from gnomon.ops.param import Param
from gnomon.ops.registry import find

_SINGLE = frozenset((bool, int, float, str, type(None)))


@record()
class Field:
    """A parameter of an operator, as `Dropout.axes`, under whatever name an argument has.

    >>> Field("LeakyReLU.slope").check("ELU", "alpha", "a")
    Traceback (most recent call last):
    gnomon.base.ParamError: ELU: argument 'alpha': expected float, got 'a'
    """

    parameter: str
    optional: bool = False  # whether None leaves it out
    plain: ClassVar[Collection[type]] = ()

    def check(self, where: str, argument: str, value: Any) -> None:
        """Refuse what the operator refuses, before it is called."""
        if self.optional and value is None:
            return
        if value.__class__ in _SINGLE:
            _checked(self.parameter, where, argument, value)
        else:
            _field(self.parameter, argument).parse(where, value)


@functools.lru_cache(maxsize=256)
def _field(parameter: str, argument: str) -> Param:
    """The parameter under another name."""
    op, _, name = parameter.partition(".")
    found = copy.copy(find(op).fields[name])
    found.name = argument
    return found


@functools.lru_cache(maxsize=256, typed=True)
def _checked(parameter: str, where: str, argument: str, value: Any) -> None:
    """Looks at a value once only."""
    _field(parameter, argument).parse(where, value)
