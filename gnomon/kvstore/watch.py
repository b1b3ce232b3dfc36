"""Watches over the processes of a job, and ends all of them where one has failed.

Every rank has a TCP connection to rank 0, and a native thread that sends a beat along it several
times a second, whatever Python does meanwhile. A Python thread listens. What it may find:

| finding | by whom | the message says |
|---|---|---|
| a connection is closed without a farewell | rank 0; of rank 0, the others | which rank died |
| no beat for `dist_heartbeat_seconds` | the same | which rank was stopped or lost its link |
| a rank says that it failed | rank 0 | which rank, and its exception |
| a rank says that a collective takes too long | rank 0, which asks all | who is behind, and where |
| rank 0 does not ask though it was told to | the rank that told it | that rank 0 does not say |

Rank 0 prints one message, tells the others to end quietly and ends itself; the launcher then ends
what is stopped. Without rank 0, the rank that finds it gone prints the message.

States: *watching*, from the start until *leaving* (`leave`: all ranks are done, what closes now is
no failure) or *ending* (a failure is known; every thread but one only waits for the end).
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from gnomon import config
from gnomon.kvstore.join import GRACE_SECONDS, Line, Peer
from gnomon.kvstore.mpi import BEAT_COUNT, Native, beats
from gnomon.runtime.ffi import Block

SURVEY_SECONDS = 2.0  # for all ranks to say where they are
ENDING_SECONDS = 5.0  # for a process to end once it has to
FAILED = 1  # the exit code of every process of a job that failed


class Watch:
    """The watch of one rank; `where` says what the rank does, for a survey.

    Connections are added while the job starts; `peers` are all ranks, once they have come.

    Args:
        me: this process.
        where: gives the number of collectives entered so far and what the last one is.
        ranks: the number of all ranks.
        native: sends the beats.
    """

    def __init__(
        self, me: Peer, where: Callable[[], tuple[int, str]], ranks: int, native: Native
    ) -> None:
        self.me, self._where = me, where
        self.peers: list[Peer] = []
        self.refusal: str | None = None
        self.welcomed = threading.Event()
        self._limit = config.get("dist_heartbeat_seconds")
        self._leaving = False
        self._ending = threading.Lock()
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        self._suspicion: tuple[float, str] | None = None
        self._survey: tuple[float, str] | None = None
        self._answers: dict[int, tuple[int, str]] = {}
        self._lines: list[Line] = []
        self._poll = select.poll()
        self._sockets = Block([0] * ranks)
        interval, flags = self._limit / 20, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        self._beats = beats(self._sockets, interval, flags)
        for name, work in (("beat", lambda: native.beat(self._beats)), ("watch", self._run)):
            threading.Thread(target=work, name=f"gnomon {name}", daemon=True).start()

    # --- the start ------------------------------------------------------------------------------

    def add(self, line: Line) -> None:
        """Watch a connection, and send beats along it."""
        self._sockets.words[len(self._lines)] = line.link.fileno()
        self._lines.append(line)
        self._poll.register(line.link, select.POLLIN)
        self._beats.words[BEAT_COUNT] = len(self._lines)

    def welcome(self, peers: list[Peer], refusal: str | None) -> None:
        """All ranks have come: tell each who they are, or why the job cannot go on."""
        self.peers = peers
        for line in self._lines:
            line.send(peers=peers, refusal=refusal)

    # --- what other threads call ----------------------------------------------------------------

    def fail(self, text: str, certain: bool = True) -> NoReturn:
        """End the whole job with one message; `certain` unless another rank may be the cause."""
        if self.me.rank == 0:
            if not certain:
                time.sleep(GRACE_SECONDS)
            self._end(text)
        for line in self._lines:
            line.send(failed=text, certain=certain)
        time.sleep(GRACE_SECONDS * (1 if certain else 3))
        self._end(text)

    def late(self, text: str) -> None:
        """Have all ranks asked where they are, since a collective takes too long."""
        if self.me.rank == 0:
            self._ask(text)
        for line in self._lines:
            line.send(late=text)
        self.suspect(f"{text}: {self.peers[0]} did not ask where ranks are")

    def suspect(self, text: str) -> None:
        """End the job with this message, unless rank 0 soon ends it with one of its own."""
        if self._suspicion is None:
            grace = 2 * SURVEY_SECONDS + 0.5 * self.me.rank  # one message: of the first rank
            self._suspicion = time.monotonic() + grace, text

    def leave(self) -> None:
        """All ranks are done: what closes from now on is no failure."""
        self._leaving = True
        self._beats.words[0] = 1
        for line in self._lines:
            line.send(farewell=True)

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._leaving:
                self._look()
        except BaseException as error:
            self._end(f"{self.me} failed to watch others: {type(error).__name__}: {error}")

    def _look(self) -> None:
        before = time.monotonic()
        ready = {fd for fd, _ in self._poll.poll(self._limit * 50)}
        for line in self._lines:
            if line.link.fileno() in ready:
                self._read(line)
        if not self._leaving:
            now = time.monotonic()
            if now - before < self._limit / 4:  # else this process was stopped itself, or late
                self._judge_beats(now)
            self._judge(now)

    def _read(self, line: Line) -> None:
        for message in line.lines():
            self._hear(line, message)
        if not line.open:
            self._poll.unregister(line.link)
            if not (self._leaving or line.farewell):
                self._lost(line.peer, "died: its connection was closed without a farewell")

    def _hear(self, line: Line, message: dict[str, Any]) -> None:
        if "farewell" in message:
            line.farewell = True
        elif "peers" in message:
            self.refusal = message["refusal"]
            self.peers = [Peer(*each) for each in message["peers"]]
            self.welcomed.set()
        elif "end" in message:
            _leave_process()
        elif "where" in message:
            line.send(at=self._where())
        elif "at" in message:
            self._answers[line.peer.rank] = tuple(message["at"])
        elif "late" in message:
            self._ask(message["late"])
        elif message.get("certain"):
            self._end(message["failed"])
        elif self._suspicion is None:
            self._suspicion = time.monotonic() + GRACE_SECONDS, message["failed"]

    def _judge_beats(self, now: float) -> None:
        for line in self._lines:
            if line.open and not line.farewell and now - line.last > self._limit:
                self._lost(line.peer, f"gave no sign of life for {self._limit:g} s", stopped=True)

    def _judge(self, now: float) -> None:
        if self._suspicion is not None and now > self._suspicion[0]:
            self._end(self._suspicion[1])
        if self._survey is not None:
            answered = len(self._answers) == len(self.peers)
            if answered or now > self._survey[0]:
                self._end(self._verdict(self._survey[1]))

    def _lost(self, peer: Peer, what: str, stopped: bool = False) -> None:
        if stopped and peer.host == self.me.host and not _is_stopped(peer.process):
            what += " (the process runs: was its link lost?)"
        if self.me.rank > 1:
            time.sleep(0.5 * self.me.rank)  # one message: that of the first rank left
        self._end(f"{peer} {what}", kill=peer if stopped else None)

    def _ask(self, text: str) -> None:
        if self._survey is not None:
            return
        self._answers = {self.me.rank: self._where()}
        self._survey = time.monotonic() + SURVEY_SECONDS, text
        for line in self._lines:
            line.send(where=True)

    def _verdict(self, text: str) -> str:
        """Who is behind, of the ranks that answered the survey, or did not answer."""
        silent = [str(p) for p in self.peers if p.rank not in self._answers]
        if silent:
            return f"{text}: {', '.join(silent)} did not say where it is"
        last = max(n for n, _ in self._answers.values())
        behind = [
            f"{self.peers[rank]} is at {what}"
            for rank, (n, what) in sorted(self._answers.items())
            if n < last
        ]
        return f"{text}: " + ("; ".join(behind) or "all ranks came to it, and its data did not")

    def _end(self, text: str, kill: Peer | None = None) -> NoReturn:
        while not self._ending.acquire(blocking=False):
            time.sleep(ENDING_SECONDS)  # another thread ends the process
        # natively, whatever holds Python's lock, and where the output is not taken
        faulthandler.dump_traceback_later(ENDING_SECONDS, exit=True, file=self._nowhere)
        os.write(2, f"gnomon: {text}; the job ends\n".encode())
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        for line in self._lines:
            line.send(end=True)
        if kill is not None and kill.host == self.me.host:
            with contextlib.suppress(OSError):
                os.kill(kill.process, signal.SIGKILL)
        time.sleep(0.2)
        _leave_process()


def _leave_process() -> NoReturn:
    """End this process at once: MPI, stuck in a collective, would never let it."""
    os._exit(FAILED)


def _is_stopped(process: int) -> bool:
    """Whether a process of this machine is stopped, as by SIGSTOP."""
    try:
        about = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return about.rpartition(")")[2].split()[0] in "Tt"
