"""Initializers with given values: constants, values of another model, and mixtures by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon import ndarray as nd
from gnomon.base import (
    ArgumentError,
    DTypeError,
    Later,
    ParamError,
    ShapeError,
    check_kind,
    complaint,
    shown,
)
from gnomon.initializer.base import Initializer, register

if TYPE_CHECKING:
    import json
else:
    json = Later("json")

Filler = Callable[[str, Any], None]


class Zero(Initializer):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 0.0


class One(Initializer):
    """Ones."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: Any) -> None:
        arr[:] = 1.0


register(Zero, "zeros")
register(One, "ones")


@register
class Constant(Initializer):
    """One number everywhere, or an array of values of the parameter's shape.

    >>> Constant(3).dumps()
    '["constant", {"value": 3}]'
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, _: str, arr: Any) -> None:
        value = self.value
        arr[:] = _number(value) if isinstance(value, str) else value

    def dumps(self) -> str:
        value = self.value
        if hasattr(value, "asnumpy"):
            value = value.asnumpy()
        if hasattr(value, "tolist"):
            value = value.tolist()
        return json.dumps(["constant", {"value": value}])


def _number(text: str) -> float:
    """What a `Constant` of a text holds.

    Raises:
        DTypeError: it is none.
    """
    try:
        return float(text)
    except ValueError as error:
        raise DTypeError(complaint("Constant", "value", "a number", shown(text))) from error


class Load:
    """Values from a file of `nd.save` or a mapping, by name; `default_init` fills the others.

    Names may carry the prefixes `arg:` and `aux:` of checkpoints.
    """

    def __init__(
        self,
        param: str | Mapping[str, Any],
        default_init: Filler | None = None,
        verbose: bool = False,
    ) -> None:
        loaded = nd.load(param) if isinstance(param, str) else param
        if not isinstance(loaded, Mapping):
            expected = "named arrays, or a file of them"
            raise ParamError(
                complaint("initializer.Load", "param", expected, type(loaded).__name__)
            )
        self.param = {re.sub("^(arg|aux):", "", name): value for name, value in loaded.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: Any) -> None:
        """Fill `arr`; ShapeError or ParamError where the loaded values do not do."""
        if name in self.param:
            value = self.param[name]
            if tuple(value.shape) != tuple(arr.shape):
                raise ShapeError(complaint("initializer.Load", name, arr.shape, value.shape))
            arr[:] = value
            self._log(name, "loading")
            return
        if self.default_init is None:
            expected = "a loaded array of this name, or default_init"
            raise ParamError(complaint("initializer.Load", name, expected, sorted(self.param)))
        self.default_init(name, arr)
        self._log(name, "default")

    def _log(self, name: str, how: str) -> None:
        if self.verbose:
            logging.info("Initialized %s by %s", name, how)


def _compiled(pattern: Any) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        got = f"{shown(pattern)} ({error})"
        expected = "regular expressions"
        where = "initializer.Mixed"
        raise ArgumentError(complaint(where, "patterns", expected, got)) from None


class Mixed:
    """The first initializer whose regular expression is found in the parameter's name.

    >>> from gnomon.initializer import Uniform, Zero
    >>> init = Mixed(["bias", ".*"], [Zero(), Uniform(0.1)])
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Filler]) -> None:
        for name, value in (("patterns", patterns), ("initializers", initializers)):
            check_kind("initializer.Mixed", name, value, (list, tuple), "a list")
        if len(patterns) != len(initializers):
            expected = f"{len(patterns)}, one per pattern"
            raise ParamError(
                complaint("initializer.Mixed", "initializers", expected, len(initializers))
            )
        self.map = list(zip(map(_compiled, patterns), initializers, strict=True))

    def __call__(self, name: str, arr: Any) -> None:
        """Fill `arr`; ParamError where no pattern is found in `name`."""
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        patterns = [pattern.pattern for pattern, _ in self.map]
        expected = f"a name that one of {patterns} matches ('.*' at the end matches the rest)"
        raise ParamError(complaint("initializer.Mixed", "name", expected, repr(name)))
