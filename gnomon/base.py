"""Every kind of error gnomon raises, and the one sentence they are all written in."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any


class Later:
    """A module that is imported when something of it is first asked for.

    For what most programs never need, or not until a kernel is compiled: it stands in the `else` of
    an `if TYPE_CHECKING` that imports the module by its name.

    >>> Later("math").floor(2.5)
    2
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._module), name)
        setattr(self, name, found)
        return found


class GnomonError(RuntimeError):
    """The root of gnomon's own errors; `MXNetError` is another name of it."""


MXNetError = GnomonError


class ShapeError(GnomonError, ValueError):
    """Shapes or ranks that do not go together."""


class DTypeError(GnomonError, TypeError):
    """Data types that are unknown or do not go together."""


class ParamError(GnomonError, ValueError):
    """A parameter or setting that is unknown, missing or out of range."""


class UnknownNameError(GnomonError, KeyError):
    """A name that nothing is registered under."""

    __str__ = GnomonError.__str__  # KeyError would print the message's repr


class FormatError(GnomonError, ValueError):
    """A file or byte stream that is not what it should be."""


class NotSupportedForSparseNDArray(GnomonError):
    """What an array in sparse storage cannot do: it has no memory of all its elements."""

    def __init__(self, function: Any, alias: str | None = None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        also = f" (or {alias})" if alias else ""
        given = f" with arguments {args}" if args else ""
        super().__init__(
            f"{name}{also}{given} is for arrays in default storage; x.tostype('default') gives one"
        )


class DeviceError(GnomonError):
    """A device that is missing, or refuses to work."""


class EngineError(GnomonError):
    """A misuse of the dependency engine."""


def complaint(where: str, argument: str, expected: object, got: object) -> str:
    """The sentence every error is written in: where, which argument, what was expected, what came.

    >>> complaint("dot", "rhs", "3 rows", "shape (4, 2)")
    "dot: argument 'rhs': expected 3 rows, got shape (4, 2)"
    """
    return f"{where}: argument {argument!r}: expected {expected}, got {got}"


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the known names closest to `name`, or an empty string where none is close.

    >>> nearest("momentun", ["momentum", "wd"])
    "; did you mean 'momentum'?"
    """
    by_lower = {known.lower(): known for known in names}
    close = importlib.import_module("difflib").get_close_matches(name.lower(), by_lower, n=3)
    return f"; did you mean {' or '.join(repr(by_lower[c]) for c in close)}?" if close else ""
