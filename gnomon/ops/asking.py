"""What a function asks for by its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any


@functools.lru_cache(maxsize=1024)
def parameters(function: Callable[..., Any]) -> Sequence[str]:
    """Names of parameters; of a function in a tenth of the time that its signature takes."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return tuple(inspect.signature(function).parameters)
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def with_context(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method` taking any context, passing on what its keyword-only parameters ask for."""
    code = inspect.unwrap(method).__code__
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return method
    asked = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **context: Any) -> Any:
        return method(self, *args, **{k: context[k] for k in asked if k in context})

    vars(call)["asked"] = asked
    return call
