"""One line of JSON asked, one answered: how a benchmark talks to workers in other interpreters.

A worker answers `{"do": "setup", ...}` with facts about the prepared work and `{"do": "run",
"steps": k}` with the seconds those steps took. It needs nothing but the standard library, because
each worker lives in the virtual environment of its peer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Step = Callable[[], object]


class PeerError(RuntimeError):
    """A worker that cannot be started, or failed at what it was asked."""


class Peer:
    """A worker process, started with `python script arguments` and asked by `ask`.

    One that has died is started again when it is next asked to set up work.
    """

    def __init__(self, name: str, python: str, script: Path, *arguments: str) -> None:
        self.name = name
        self._command = [python, str(script), *arguments]
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.about = self._answer()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """The worker's answer; PeerError when it failed or died."""
        if do == "setup" and self.process.poll() is not None:
            self.close()
            self._start()
        assert self.process.stdin is not None
        try:
            print(json.dumps({"do": do, **fields}), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise PeerError("the worker has died") from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise PeerError(f"the worker has died with status {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self) -> None:
        """End the worker."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # it has ended by itself
                self.process.stdin.close()
        self.process.wait()


def timed(step: Step, wait: Step, steps: int) -> float:
    """Seconds that `steps` steps and waiting for their end take."""
    start = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return time.perf_counter() - start


def serve(
    about: str,
    setup: Callable[..., tuple[Step, Step, dict[str, Any]]],
    timed: Callable[[Step, Step, int], float] = timed,
) -> None:
    """Be a worker: `setup(**fields)` gives the step, what waits for the end of steps, and facts.

    Whatever the libraries print goes to the standard error, not among the answers.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    step: Step = lambda: None  # noqa: E731
    wait: Step = step

    def reply(**fields: Any) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    reply(about=about)
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        try:
            if do == "setup":
                step = wait = reply  # the last work's memory goes before the next is prepared
                step, wait, facts = setup(**request)
                reply(**facts)
            else:
                reply(seconds=timed(step, wait, request["steps"]))
        except Exception as e:
            reply(error=f"{type(e).__name__}: {e}".splitlines()[0])


def start(wanted: dict[str, tuple[str | None, Path, tuple[str, ...]]]) -> list[Peer]:
    """The workers that start; of the others it is said why they are left out."""
    peers = []
    for name, (python, script, arguments) in wanted.items():
        try:
            if python is None:
                raise PeerError("no interpreter given (--peer NAME=PYTHON)")
            peers.append(Peer(name, python, script, *arguments))
        except (OSError, PeerError) as e:
            print(f"{name}: left out: {e}", file=sys.stderr)
    return peers
