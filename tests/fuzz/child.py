"""The child of the fuzzer: makes and runs programs, or runs one that is given.

Every line is written to the journal before it runs, with the addresses of what the program has
made so far, and Python's stacks go to the standard error when the process crashes: so the parent
can tell what a crash ended.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import signal
import sys
from typing import Any

import numpy as np

from gnomon import shadow
from gnomon.expr.node import Buffer
from tests.fuzz.generate import Generator
from tests.fuzz.world import World, attempt

MEMORY = 12 << 30
SLOW = 60  # seconds of the processor for a line
STUCK = 900  # seconds for a line; a process at low priority may wait for long
LINES = (4, 16)


def fresh() -> dict[str, Any]:
    """The namespace a program begins with."""
    return {"w": World(), "shadow": shadow, "np": np}


def run_line(line: str, names: dict[str, Any]) -> str:
    """Run a line; what is wrong about it, or nothing."""

    def execute() -> None:
        exec(compile(line, "<program>", "exec"), names)

    watch(SLOW, STUCK)
    found = attempt(names["w"], execute)
    watch(0, 0)
    return found


def watch(busy: int, waiting: int) -> None:
    """End the process after so many seconds: the parent then sees which line was slow."""
    signal.setitimer(signal.ITIMER_PROF, busy)
    signal.alarm(waiting)


def replay(lines: list[str]) -> str:
    """What is wrong about a program, or nothing."""
    names = fresh()
    for line in lines:
        found = run_line(line, names)
        if found:
            return found
    return ""


class Journal:
    """All programs so far, in a file: what was written stays when the process crashes.

    A row is [number of the program, line, addresses of the tensors there are].
    """

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        self.number = -1

    def begin(self) -> None:
        self.number += 1

    def note(self, line: str, names: dict[str, Any]) -> None:
        at = {name: hex(t.address) for name, t in names.items() if isinstance(t, Buffer)}
        os.write(self.descriptor, (json.dumps([self.number, line, at]) + "\n").encode())


def explore(seed: int, count: int, journal: Journal) -> None:
    """Make and run `count` programs; report each finding, and the counts, as lines of JSON."""
    rng = random.Random(seed)
    for _ in range(count):
        journal.begin()
        names = fresh()
        generator, lines = Generator(rng, names), []
        for _ in range(rng.randint(*LINES)):
            lines.append(generator.line())
            journal.note(lines[-1], names)
            found = run_line(lines[-1], names)
            if found:
                print(json.dumps({"finding": found, "lines": lines}), flush=True)
                break
        w = names["w"]
        counts = {"lines": len(lines), "refused": w.refused}
        print(json.dumps(counts | {"stored": w.stored, "compared": w.compared}), flush=True)


def main() -> None:
    """`explore SEED COUNT JOURNAL`, or `replay` of the lines on the standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    np.seterr(all="ignore")
    faulthandler.enable()
    if sys.argv[1] == "explore":
        explore(int(sys.argv[2]), int(sys.argv[3]), Journal(sys.argv[4]))
    else:
        print(json.dumps({"finding": replay(json.load(sys.stdin))}), flush=True)


if __name__ == "__main__":
    main()
