"""Handlers of signals that wait until what is made at this moment is whole.

A handler comes amid whatever the main thread does. One that computes or saves may ask for the very
module that is half imported then, or the library that is half loaded, and that cannot go on before
the handler returns. So its signal is noted, and the handler called when all is there.

A handler that raises may also come while notes begin to be taken, or end. What takes notes and is
left over then gives its place back itself, when the next signal comes.
"""

from __future__ import annotations

# `signal`'s own take 15 times as long; typeshed has none for these
from _signal import NSIG, getsignal, signal  # type: ignore[import-not-found]
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

_put_off: list[bool] = []  # filled while handlers are
_places: list[tuple[int, _Notes]] = []  # what stands in the places of handlers
_came: dict[int, tuple[Handler, FrameType | None]] = {}  # the handlers to be called, by signal


class _Notes:
    """What notes a signal in the place of its `handler`."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _put_off:
            _came.setdefault(number, (self.handler, frame))
            return
        self.leave(number)
        self.handler(number, frame)

    def leave(self, number: int) -> None:
        """Give the place back, unless the program has changed handlers meanwhile."""
        if getsignal(number) is self:
            signal(number, self.handler)


def _is_called_here() -> bool:
    """Whether this is the thread that handlers are called in.

    `threading.main_thread()` is another one where a program in C runs Python in several threads.
    `signal` looks at the thread first, and then at what it is given.
    """
    try:
        signal(1, None)
    except TypeError:
        return True
    except ValueError:
        return False
    raise AssertionError("a signal took None for a handler")


def put_off() -> None:
    """Note signals from now on, if this is the thread that handlers are called in."""
    if not _is_called_here():
        return
    _put_off.append(True)
    for number, handler in enumerate(map(getsignal, range(1, NSIG)), 1):
        if callable(handler):
            _places.append((number, _Notes(handler)))
            signal(*_places[-1])


def resume() -> None:
    """Have handlers called as ever, those first whose signals came meanwhile."""
    if not _is_called_here():
        return
    _put_off.clear()
    try:
        while _places:
            number, notes = _places.pop()
            notes.leave(number)
    finally:
        _call_noted()


def _call_noted() -> None:
    """Call the handlers that were put off, each of them whatever another one raises."""
    if _came:
        number = next(iter(_came))
        handler, frame = _came.pop(number)
        try:
            handler(number, frame)
        finally:
            _call_noted()
