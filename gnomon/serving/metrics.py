"""Counts and times of a server, in the text format that Prometheus reads.

State: numbers by metric and labels, under one lock. Labels are names of models and statuses alone,
so there are as many as the server has, whatever clients send.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

Labels = tuple[tuple[str, str], ...]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metric:
    """A number for each set of labels: a counter, or a gauge that is read when it is shown."""

    kind = "counter"

    def __init__(self, name: str, doc: str) -> None:
        self.name, self.doc = name, doc
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Count `amount` more."""
        key = tuple(labels.items())
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def lines(self) -> Iterator[str]:
        """Its samples as text."""
        with self._lock:
            values = dict(self._values)
        for labels, value in values.items():
            yield sample(self.name, labels, value)


class Gauge(Metric):
    """A number that is asked for when it is shown, for each set of labels."""

    kind = "gauge"

    def __init__(self, name: str, doc: str) -> None:
        super().__init__(name, doc)
        self._sources: dict[Labels, Callable[[], float]] = {}

    def watch(self, source: Callable[[], float], **labels: str) -> None:
        """Show what `source` gives."""
        self._sources[tuple(labels.items())] = source

    def lines(self) -> Iterator[str]:
        """Its samples as text."""
        for labels, source in self._sources.items():
            yield sample(self.name, labels, source())


class Histogram(Metric):
    """How many values lie up to each bound, with their sum and number."""

    kind = "histogram"

    def __init__(self, name: str, doc: str, bounds: Sequence[float]) -> None:
        super().__init__(name, doc)
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}

    def observe(self, value: float, **labels: str) -> None:
        """Count a value."""
        key = tuple(labels.items())
        with self._lock:
            counts = self._counts.setdefault(key, [0] * (len(self._bounds) + 1))
            counts[bisect_left(self._bounds, value)] += 1
            self._values[key] = self._values.get(key, 0) + value

    def lines(self) -> Iterator[str]:
        """Its samples as text."""
        with self._lock:
            rows = [(key, list(counts), self._values[key]) for key, counts in self._counts.items()]
        for labels, counts, total in rows:
            below = 0
            for bound, count in zip((*self._bounds, "+Inf"), counts, strict=True):
                below += count
                yield sample(f"{self.name}_bucket", (*labels, ("le", str(bound))), below)
            yield sample(f"{self.name}_sum", labels, total)
            yield sample(f"{self.name}_count", labels, below)


def sample(name: str, labels: Labels, value: float) -> str:
    """A line of the text format.

    >>> sample("rows", (("model", 'a"b'),), 3)
    'rows{model="a\\\\"b"} 3'
    """
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Metrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self.requests = Metric("gnomon_requests_total", "Requests answered, by status.")
        self.latency = Histogram(
            "gnomon_request_seconds", "From the head of a request to the end of its reply.", SECONDS
        )
        self.received = Metric("gnomon_request_bytes_total", "Bytes of bodies received.")
        self.sent = Metric("gnomon_response_bytes_total", "Bytes of bodies sent.")
        self.batch_rows = Histogram("gnomon_batch_rows", "Items computed together.", ROWS)
        self.compute = Histogram("gnomon_batch_seconds", "Computing a batch.", SECONDS)
        self.queue = Gauge("gnomon_queue_length", "Requests that wait for a worker.")
        self.connections = Gauge("gnomon_connections", "Connections that are open.")

    def text(self) -> str:
        """Everything as text."""
        found = []
        for metric in vars(self).values():
            found += [f"# HELP {metric.name} {metric.doc}", f"# TYPE {metric.name} {metric.kind}"]
            found += metric.lines()
        return "\n".join(found) + "\n"
