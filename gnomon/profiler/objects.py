"""What users put into profiles themselves: tasks, frames, events, counters, markers, scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gnomon.base import GnomonError, ParamError, complaint
from gnomon.profiler.control import PROFILER, now
from gnomon.profiler.record import Count, Mark, Span, Stretch
from gnomon.profiler.trace import SCOPES


class Domain:
    """A group of tasks, frames, counters and markers.

    >>> from gnomon import profiler
    >>> domain = profiler.Domain("loading")
    >>> files = domain.new_counter("files", 3)
    >>> files += 2
    >>> print(domain, files, files.value)
    loading files 5
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(complaint("profiler.Domain", "name", "a string", repr(name)))
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A new task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A new frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """A new counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A new marker of this domain."""
        return Marker(self, name)


class _Timed:
    """Something that `start` begins and `stop` ends; between them is one stretch of time."""

    def __init__(self, category: str, name: str) -> None:
        self.category, self.name = category, name
        self._begin: float | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Begin."""
        self._begin = now()

    def stop(self) -> None:
        """End, and record what was between.

        Raises:
            GnomonError: it was not begun.
        """
        if self._begin is None:
            kind = type(self).__name__
            raise GnomonError(f"profiler.{kind} {self.name!r}: stop comes after start")
        if PROFILER.active:
            stretch = Stretch(self.category, self.name, self._begin, now())
            PROFILER.record.events.append(stretch)
        self._begin = None


class Task(_Timed):
    """A piece of work, on whatever threads."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(domain.name, name)


class Frame(_Timed):
    """One of many like it, as a pass over a batch."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(f"{domain.name},frame", name)


class Event(_Timed):
    """Something that takes time and belongs to no domain."""

    def __init__(self, name: str) -> None:
        super().__init__("event", name)


class Counter:
    """A number that changes over time."""

    def __init__(self, domain: Domain, name: str, value: float | None = None) -> None:
        self.domain, self.name = domain, name
        self.value: float = 0
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """Let the counter be `value` from now on."""
        self.value = value
        if PROFILER.active:
            count = Count(self.domain.name, self.name, now(), value)
            PROFILER.record.events.append(count)

    def increment(self, delta: float = 1) -> None:
        """Add `delta`."""
        self.set_value(self.value + delta)

    def decrement(self, delta: float = 1) -> None:
        """Take `delta` away."""
        self.set_value(self.value - delta)

    def __iadd__(self, delta: float) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:
        self.decrement(delta)
        return self


class Marker:
    """A moment that is worth a mark."""

    def __init__(self, domain: Domain, name: str) -> None:
        self.domain, self.name = domain, name

    def mark(self, scope: str = "process") -> None:
        """Mark this moment; `scope` is 'global', 'process', 'thread', 'task' or 'marker'.

        Raises:
            ParamError: another scope.
        """
        if scope not in SCOPES:
            expected = f"one of {', '.join(SCOPES)}"
            raise ParamError(complaint("Marker.mark", "scope", expected, repr(scope)))
        if PROFILER.active:
            category, thread = f"{self.domain.name},instant_marker", PROFILER.record.here()
            PROFILER.record.events.append(Mark(category, self.name, thread, now(), scope))


_scope: ContextVar[str] = ContextVar("scope", default="<unk>:")


@contextmanager
def scope(name: str = "<unk>:", append_mode: bool = True) -> Iterator[str]:
    """A named span around what happens inside; with `append_mode` after the names around it.

    >>> from gnomon import profiler
    >>> with profiler.scope("net"), profiler.scope("layer") as inner:
    ...     inner
    'net:layer:'
    """
    name = name if name.endswith(":") else f"{name}:"
    around = _scope.get()
    whole = f"{around}{name}" if append_mode and around != "<unk>:" else name
    token, begin = _scope.set(whole), now()
    try:
        yield whole
    finally:
        _scope.reset(token)
        if PROFILER.active:
            span = Span("scope", whole, PROFILER.record.here(), begin, now())
            PROFILER.record.events.append(span)
