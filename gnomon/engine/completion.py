"""The end of a function: its `on_complete`, where it has one, and what it may not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from gnomon.base import EngineError, complaint
from gnomon.engine.job import DONE, Job

#: what calling an `async def` or a generator function gives: nothing of it has run
UNBEGUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


def refuse(answer: object) -> None:
    """Raise for a function that ran nothing when it was called, but gave one of `UNBEGUN`."""
    if isinstance(answer, UNBEGUN):
        if isinstance(answer, CoroutineType):
            answer.close()  # else Python warns that it was not awaited, at some later time
        expected = "a function that does its work when it is called"
        raise EngineError(complaint("push", "fn", expected, f"one that gives {answer!r}"))


class Completion:
    """Ends one asynchronous job when called, from any thread.

    `on_complete(error)` ends it as failed. A second call is an EngineError for the caller. One that
    is forgotten altogether, so that it cannot be called any more, fails its job by itself.
    """

    __slots__ = ("_called", "_finish", "_job")

    def __init__(self, finish: Callable[[Job, BaseException | None], None], job: Job) -> None:
        self._finish = finish
        self._job = job
        self._called = False

    def __call__(self, error: Any = None) -> None:
        if error is not None and not isinstance(error, BaseException):
            got = repr(error)
            error = EngineError(complaint("on_complete", "error", "an exception or None", got))
        self._called = True
        self._finish(self._job, error)

    def __repr__(self) -> str:
        return f"on_complete of {self._job!r}"

    def __del__(self) -> None:
        if getattr(self, "_called", True):  # or an interrupt came before it was there
            return
        if self._job.state == DONE:
            return
        error = EngineError("the function let go of its on_complete without calling it")
        # A collector runs this anywhere, in the middle of the engine too: hence another thread.
        threading.Thread(target=self, args=(error,), daemon=True).start()
