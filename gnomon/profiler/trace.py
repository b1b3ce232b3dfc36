"""A record as a trace that Perfetto and chrome://tracing open.

Spans of a thread become pairs of begin and end, properly nested and in the order of time; what the
user timed, which may overlap in any way, is asynchronous pairs on tracks of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from gnomon.profiler.record import Count, Mark, Record, Span, Stretch

Event = dict[str, Any]
SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}


def trace(record: Record) -> dict[str, Any]:
    """The record in the trace event format: times in microseconds from its first event on.

    >>> found = trace(Record([Span("kernel", "a", 1, 2.0, 2.5)], {1: "main"}))
    >>> [(e["ph"], e.get("ts")) for e in found["traceEvents"]]
    [('M', None), ('M', None), ('B', 0.0), ('E', 500000.0)]
    """
    events = list(record.events)
    start = min(map(_first, events), default=0.0)
    pid = os.getpid()
    found = [_named(pid, 0, "process_name", "gnomon")]
    found += [_named(pid, tid, "thread_name", name) for tid, name in record.threads.items()]
    timed: list[Event] = []
    for tid in dict.fromkeys(e.thread for e in events if isinstance(e, Span)):
        timed += _nested(s for s in events if isinstance(s, Span) and s.thread == tid)
    for number, event in enumerate(events):
        if isinstance(event, Stretch):
            timed += _pair(event, number)
        elif isinstance(event, Count) and isfinite(event.value):  # JSON has no other numbers
            args = {event.name: float(event.value)}
            timed.append(_event("C", event.category, event.name, event.time, args=args))
        elif isinstance(event, Mark):
            where = {"tid": event.thread, "s": SCOPES[event.scope]}
            timed.append(_event("i", event.category, event.name, event.time, **where))
    timed.sort(key=lambda e: e["ts"])  # stable: pairs of no length stay nested
    for each in timed:
        each.update(pid=pid, ts=round((each["ts"] - start) * 1e6, 3))
    return {"traceEvents": found + timed, "displayTimeUnit": "ms"}


def _first(event: Any) -> float:
    return float(event.begin if isinstance(event, Span | Stretch) else event.time)


def _named(pid: int, tid: int, what: str, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}


def _event(phase: str, category: str, name: str, time: float, **more: Any) -> Event:
    return {"ph": phase, "cat": category, "name": name, "ts": time, "tid": 0, **more}


def _nested(spans: Iterable[Span]) -> Iterator[Event]:
    """Begins and ends of one thread's spans; one that outlasts what it lies in ends with it."""
    open_: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.begin, -s.end)):
        while open_ and open_[-1].end <= span.begin:
            yield _end(open_.pop())
        if open_ and span.end > open_[-1].end:
            span = span._replace(end=open_[-1].end)
        open_.append(span)
        args = {"args": {"bytes": span.bytes, "flops": span.flops}} if span.bytes else {}
        yield _event("B", span.category, span.name, span.begin, **{"tid": span.thread, **args})
    while open_:
        yield _end(open_.pop())


def _end(span: Span) -> Event:
    return _event("E", span.category, span.name, span.end, tid=span.thread)


def _pair(stretch: Stretch, number: int) -> list[Event]:
    category, name, begin, end = stretch
    return [
        _event("b", category, name, begin, id=hex(number)),
        _event("e", category, name, end, id=hex(number)),
    ]
