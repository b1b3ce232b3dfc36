"""Operators applied to symbols: what functions, methods and Python's operators have in common."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from gnomon.base import ParamError, complaint, shown
from gnomon.graph.node import Entry
from gnomon.ops import registry
from gnomon.ops.signature import dress, sort
from gnomon.symbol import compose

TAIL = (
    inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
    inspect.Parameter("attr", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
    inspect.Parameter("out", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
)


class Composite:
    """What every symbol is: a tuple of entries, made by `_of`."""

    __slots__ = ()
    _entries: tuple[Entry, ...]

    @classmethod
    def _of(cls, entries: Sequence[Entry]) -> Any:
        return cls(entries)  # type: ignore[call-arg]


def is_symbol(value: object) -> bool:
    """Whether `value` is a symbol."""
    return isinstance(value, Composite)


def single(where: str, argument: str, symbol: Any) -> Entry:
    """The one entry of `symbol`.

    Raises:
        TypeError: it is no symbol.
        ParamError: it has several outputs.
    """
    if not is_symbol(symbol):
        raise TypeError(complaint(where, argument, "a symbol", shown(symbol)))
    if len(symbol._entries) != 1:
        got = f"{symbol!r} with {len(symbol._entries)}"
        raise ParamError(complaint(where, argument, "a symbol of one output", got))
    return symbol._entries[0]


def apply(
    kind: type[Composite],
    alias: str,
    hint: str,
    inputs: Sequence[Any],
    named: Mapping[str, Any],
    params: Mapping[str, Any],
    name: str | None = None,
    attr: Mapping[str, str] | None = None,
) -> Any:
    """The outputs of the operator called `alias`, as a symbol; `hint` begins its name."""
    cls = registry.find(alias)
    names = [] if cls.variadic else list(cls.input_names)
    names += [f"arg{k}" for k in range(len(names), len(inputs))]
    pairs = zip(names, inputs, strict=False)
    entries = [None if s is None else single(cls.name, n, s) for n, s in pairs]
    by_name = {k: single(cls.name, k, s) for k, s in named.items()}
    node = compose.make(cls, hint, entries, by_name, params, name, attr)
    return kind._of(node.visible())


def function(kind: type[Composite], alias: str, name: str, module: str) -> Any:
    """The function `name` that applies the operator called `alias` and gives a `kind`."""
    cls = registry.find(alias)

    def composed(*args: Any, **kwargs: Any) -> Any:
        own, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
        kwargs.pop("out", None)
        inputs, named, params = sort(cls, args, kwargs, is_symbol, "a Symbol")
        return apply(kind, alias, name, inputs, named, params, own, attr)

    return dress(composed, cls, name, module, "Symbol", TAIL)
