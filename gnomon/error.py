"""`mx.error`: errors that native code of a program may name, and how to register more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gnomon.base import GnomonError, MXNetError, ParamError, complaint, shown

__all__ = ["InternalError", "MXNetError", "register", "register_error"]

ERROR_TYPES: dict[str, type[BaseException]] = {
    kind.__name__: kind
    for kind in (AttributeError, GnomonError, IndexError, KeyError, TypeError, ValueError)
}


class InternalError(GnomonError):
    """A fault of gnomon itself: please report it."""


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Enter an error class under a name, its own by default; also a decorator.

    >>> @register_error
    ... class Overheated(MXNetError): ...
    >>> ERROR_TYPES["Overheated"] is Overheated
    True
    """
    if isinstance(func_name, type):
        func_name, cls = func_name.__name__, func_name
    if cls is None:
        return lambda kind: register_error(func_name or kind.__name__, kind)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        raise ParamError(complaint("register_error", "cls", "an exception class", shown(cls)))
    ERROR_TYPES[func_name] = cls
    return cls


register: Callable[..., Any] = register_error
register_error(InternalError)
