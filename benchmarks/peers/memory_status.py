"""What a worker says of its own process."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path


def status(key: str) -> int:
    """A number of /proc/self/status in bytes."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


def held() -> int:
    """Bytes of the process and its children, of shared pages their part."""
    tasks = Path("/proc/self/task").glob("*/children")
    numbers = ["self", *(child for task in tasks for child in task.read_text().split())]
    texts = [Path(f"/proc/{number}/smaps_rollup").read_text() for number in numbers]
    return sum(int(re.search(r"^Pss:\s+(\d+) kB", t, re.MULTILINE)[1]) << 10 for t in texts)


def held_later() -> int:
    """What is held two seconds from now: what was only needed to begin has gone then."""
    time.sleep(2)
    return held()


def seconds(step: Callable[[], object]) -> float:
    """The median time of a step."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
