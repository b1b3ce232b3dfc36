"""Rows of a benchmark, run in processes of their own and written down one by one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

MINUTE = 60
ANEW = 3  # the status of a process whose GPU has failed


class Results:
    """What was found by a script, in a file."""

    def __init__(self, script: Path, options: argparse.Namespace) -> None:
        self.script, self.options, self.lock = script, options, Lock()

    def done(self) -> set[str]:
        """The rows that need not be run."""
        out = self.options.out
        found = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        failed = {f["row"] for f in found if "error" in f} if self.options.again else set()
        return {f["row"] for f in found} - failed

    def note(self, name: str, found: dict[str, Any]) -> None:
        """Write a row down."""
        line = json.dumps({"row": name, "size": self.options.size, **found})
        with self.lock, self.options.out.open("a") as out:
            print(line, flush=True)
            out.write(line + "\n")

    def run(self, names: Sequence[str]) -> None:
        """Rows one after the other, in as few processes as they allow."""
        left = list(names)
        while left:
            status, error = self._some(left)
            if left and status != ANEW:
                self.note(left.pop(0), {"error": error})

    def _some(self, left: list[str]) -> tuple[int, str]:
        """Rows in one process, taken from `left`, until it ends: how, and what it said."""
        own = ["--size", self.options.size, "--repeats", self.options.repeats, "--these", *left]
        command = [sys.executable, self.script, *map(str, own)]
        with (
            tempfile.TemporaryFile("w+") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
        ):
            assert process.stdout is not None
            late: list[int] = []
            while left and not late:
                timer = Timer(MINUTE, lambda: (late.append(1), process.kill()))
                timer.start()
                line = process.stdout.readline()
                timer.cancel()
                if not line:
                    break
                self.note(left.pop(0), json.loads(line))
            status = process.wait()
            said.seek(0)
            lines = said.read().strip().splitlines() or [f"status {status}"]
            return status, f"took more than {MINUTE} s" if late else "\n".join(lines[-5:])
