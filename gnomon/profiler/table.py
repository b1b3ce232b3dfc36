"""A record summed up by category and name, as a table and as JSON in the form of MXNet's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from gnomon.base import ParamError, complaint
from gnomon.ground.record import record
from gnomon.profiler.record import Count, Happening, Span, Stretch

ORDERS = ("total", "avg", "min", "max", "count")
MEMORY = "Device Storage"  # the category of memory in use


@record(slots=False)
class Row:
    """What all events of one name come to: in milliseconds, or in kB for memory."""

    name: str
    count: int
    total: float
    min: float
    max: float
    avg: float


Sums = dict[str, list[Row]]


def sums(events: Iterable[Happening], sort_by: str, ascending: bool) -> Sums:
    """The rows of each category.

    Raises:
        ParamError: there is no such column to sort by.
    """
    if sort_by not in ORDERS:
        raise ParamError(complaint("dumps", "sort_by", f"one of {', '.join(ORDERS)}", sort_by))
    values: dict[tuple[str, str], list[float]] = {}
    for event in events:
        value = _value(event)
        if value is not None:
            values.setdefault((event.category, event.name), []).append(value)
    found: Sums = {}
    for (category, name), each in values.items():
        row = Row(name, len(each), sum(each), min(each), max(each), sum(each) / len(each))
        found.setdefault(category, []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: float(getattr(row, sort_by)), reverse=not ascending)
    return dict(sorted(found.items()))


def _value(event: Happening) -> float | None:
    if isinstance(event, Span | Stretch):
        return (event.end - event.begin) * 1e3
    if isinstance(event, Count):
        return event.value / 1e3 if event.category == MEMORY else event.value
    return None


def as_text(found: Sums) -> str:
    """The rows as tables, one for each category."""
    parts = ["\nProfile Statistics:\n\tNote the difference in units for different entries."]
    for category, rows in found.items():
        parts += [category, "================="]
        if category == MEMORY:
            titles = ["Name", "Total Count", "Min Use  (kB)", "Max Use  (kB)", "Avg Use  (kB)"]
            lines = [[r.name, r.count, r.min, r.max, r.avg] for r in rows]
        else:
            times = (f"{what}Time (ms)" for what in ("", "Min ", "Max ", "Avg "))
            titles = ["Name", "Total Count", *times]
            lines = [[r.name, r.count, r.total, r.min, r.max, r.avg] for r in rows]
        parts += [_line(titles), _line(["-" * len(t) for t in titles]), *map(_line, lines), ""]
    return "\n".join(parts) + "\n"


def _line(cells: Sequence[Any]) -> str:
    first, count, *rest = cells
    text = f"{first!s:<40.40} {count!s:>12}"
    return text + "".join(f" {c:>16.4f}" if isinstance(c, float) else f" {c:>16}" for c in rest)


def as_json(found: Sums) -> str:
    """The rows as JSON: `Time`, `Memory`, `Unit`."""
    parts: dict[str, Any] = {"Time": {}, "Memory": {}, "Unit": {"Time": "ms", "Memory": "kB"}}
    for category, rows in found.items():
        memory = category == MEMORY
        parts["Memory" if memory else "Time"][category] = {
            r.name: {
                "Count": r.count,
                **({} if memory else {"Total": round(r.total, 6)}),
                "Min": round(r.min, 6),
                "Max": round(r.max, 6),
                "Avg": round(r.avg, 6),
            }
            for r in rows
        }
    return json.dumps(parts, indent=4)
