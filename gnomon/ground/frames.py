"""Tracebacks that end where a program calls gnomon: the frames inside are left out.

An error says which operator, argument or block it is about, so the frames that found it out only
hide the program's own line. The setting `short_tracebacks` switches this off, to look for a fault
of gnomon itself. Other exceptions than gnomon's keep all frames, as they may be such faults.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from gnomon import config
from gnomon.base import GnomonError

_HOME = str(Path(__file__).parents[1]) + os.sep
_LIBRARY = str(Path(os.__file__).parent) + os.sep
P = ParamSpec("P")
T = TypeVar("T")


def shorten(error: BaseException) -> None:
    """Leave out gnomon's frames behind the first, which is the caller's own.

    For an `except` clause that ends in `raise`. A cause whose message the error repeats is left
    out too, and what gnomon was handling when the error came.
    """
    trace = error.__traceback__
    if trace is None or not config.get("short_tracebacks"):
        return
    kept = None
    for entry in reversed([trace, *_outside(trace)]):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept
    cause = error.__cause__
    if isinstance(cause, GnomonError) and str(cause) in str(error):
        error.__cause__ = None
        error.__suppress_context__ = True
    elif error.__context__ is not None and _is_handled_inside(error.__context__):
        error.__suppress_context__ = True


def _outside(trace: TracebackType) -> Iterator[TracebackType]:
    """The entries behind the first that are not of gnomon's code, nor of code that it generated."""
    was_inside = True
    entry = trace.tb_next
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        was_inside = name.startswith(_HOME) or (was_inside and _is_python_s(name))
        if not was_inside:
            yield entry
        entry = entry.tb_next


def _is_handled_inside(context: BaseException) -> bool:
    """Whether gnomon itself caught an exception before another one came."""
    trace = context.__traceback__
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HOME)


def _is_python_s(name: str) -> bool:
    """Whether a file is of Python's own library, or code without one, as dataclasses make it."""
    return name == "<string>" or (name.startswith(_LIBRARY) and "site-packages" not in name)


def entrance(function: Callable[P, T]) -> Callable[P, T]:
    """A function that programs call; errors of gnomon's have no frames behind it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except GnomonError as error:
            shorten(error)
            raise

    return call
