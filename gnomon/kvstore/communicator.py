"""The thread that makes all MPI calls of a process, and the collectives that it carries out.

A collective is a `Job`. Programs enter jobs in the same order on all ranks. For each, the thread
first gathers a *header* from all ranks, the digest of what the job is about: where they differ, the
job ends with a message that says in what, before any data go wrong or a rank waits for ever. A job
whose header agrees and whose data are *ready* is begun, in the order of entry; up to `WINDOW` jobs
that take one step go on at once. There are two such orders, each a *lane*: jobs that only follow
from others, as what is pulled from what was pushed, have no header and the *back* lane, where they
do not wait for data that are yet to leave. A *free* job has no header and no place in an order: it
is a message from one rank to another, as `mail.py` sends them.

States of a job: *entered* (its header is on the way), *agreed*, *running* (its requests are on the
way, step by step), *done*. Transitions are made by the thread alone; other threads hand it jobs
through `_inbox`, and `ready` is set by any thread, once.

The thread sleeps: in an event while nothing is on the way, else in native code that looks after
the requests between ever longer naps, without Python's lock.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import os
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from gnomon import __version__, config, engine
from gnomon.base import GnomonError
from gnomon.executor.programs.cuts import sending
from gnomon.kvstore import mpi
from gnomon.kvstore.join import GRACE_SECONDS, Peer, joined
from gnomon.kvstore.watch import Watch

WINDOW = 4
SPINS = 20  # how often requests are looked after before the first nap
#: a nap is this part of the time in which nothing has moved: each look costs calls of the system,
#: on a core that the program needs, and what is found late is late by that part at most
LOOKS, SHORTEST_NAP, LONGEST_NAP = 20, 20e-6, 1e-3
#: of a bucket: what takes some milliseconds in shared memory, and some ten on a network
NEAR_BYTES, FAR_BYTES = 8 << 20, 4 << 20
PROTOCOL = 1  # of headers and messages; ranks must have the same

#: yields the requests of each step, and gives a result at its end
Work = Callable[[Any], Generator[list[Any], None, Any]]


class Subject:
    """What a job is about: ranks must agree on it.

    >>> Subject("push", [("w", (2, 3), "float32")]).items
    ["key 'w' of shape (2, 3) in float32"]
    """

    __slots__ = ("digest", "items", "what")

    def __init__(self, what: str, rows: Sequence[tuple[Any, Any, Any]] = ()) -> None:
        self.what = what
        self.items = [f"key {k!r} of shape {tuple(s)} in {np.dtype(d).name}" for k, s, d in rows]
        content = repr((what, self.items)).encode()
        self.digest = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")

    def __str__(self) -> str:
        more = f" and {len(self.items) - 1} more" if len(self.items) > 1 else ""
        return f"{self.what} of {self.items[0]}{more}" if self.items else self.what


LAST = Subject("the end of the program")
END = Subject("the end of MPI")


class Job:
    """One collective; `result` and `ended` are set at its end."""

    __slots__ = (
        "back", "ended", "finish", "free", "header", "headers", "late", "patient", "ready",
        "requests", "result", "since", "single", "steps", "subject", "work",
    )  # fmt: skip

    def __init__(
        self,
        subject: Subject,
        work: Work | None,
        single: bool,
        finish: Callable[[], None] | None,
        back: bool = False,
        free: bool = False,
        patient: bool = False,
        late: Callable[[], str] | None = None,
    ) -> None:
        self.subject, self.work, self.single, self.finish = subject, work, single, finish
        self.back, self.free, self.patient = back, free, patient
        self.late = late or f"sent {subject}".__str__
        self.ready = work is None
        self.header: Any = None
        self.headers: Any = None
        self.steps: Any = None
        self.requests: list[Any] = []
        self.result: Any = None
        self.ended = threading.Event()
        self.since = time.monotonic()


class Lane:
    """Jobs that begin in the order in which they were entered, and what they travel on."""

    __slots__ = ("entered", "running", "world")

    def __init__(self) -> None:
        self.entered: deque[Job] = deque()
        self.running: list[Job] = []
        self.world: Any = None

    def first(self) -> Iterator[Job]:
        """The job that the others wait for, if there is one."""
        return itertools.islice(self.running or self.entered, 1)

    def may_begin(self) -> bool:
        """Whether the job that was entered first may begin beside those that go on."""
        job, running = self.entered[0], self.running
        return job.ready and (
            not running or (job.single and running[-1].single and len(running) < WINDOW)
        )


class Communicator:
    """The ranks of a job as one of them sees them; `get` gives the process's only one."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._inbox: deque[Job] = deque()
        self._lanes = there, back = Lane(), Lane()
        self._there, self._back = there, back
        self._free: list[Job] = []
        self._wake = threading.Event()
        self._count = 0
        self._latest = "its start"
        self._closed = False
        self.before_end: list[Callable[[], None]] = []  # what other parts do before the end
        self.standing: dict[int, Any] = {}  # requests for messages that may never come
        self._idle = 0.0  # when something last moved
        self._late = False
        self._pid = os.getpid()
        self._limit = config.get("dist_timeout_seconds")
        self._start_error: BaseException | None = None
        self._mpi_started, self._joined = threading.Event(), threading.Event()
        self._started = threading.Event()
        mpi.tell_launcher(came=True)
        threading.Thread(target=self._run, name="gnomon communication", daemon=True).start()
        self._wait_for_start()
        if self._start_error is not None:
            raise self._start_error

    def _wait_for_start(self) -> None:
        """Wait for each stage of the start, as long as for a collective."""
        limit = self._limit + 2 * GRACE_SECONDS if self._limit else None
        if not self._mpi_started.wait(limit):
            mpi.tell_launcher(waited=self._limit)
            raise GnomonError(
                f"kvstore.create: MPI did not start within {self._limit:g} s: did all processes "
                "start, and do their hosts reach one another?"
            )
        if not (self._joined.wait(limit) and self._started.wait(limit)):
            self.fail(f"could not talk to the other ranks by MPI within {self._limit:g} s")

    # --- what other threads call ----------------------------------------------------------------

    def enter(
        self,
        subject: Subject,
        work: Work | None = None,
        finish: Callable[[], None] | None = None,
        single: bool = False,
        back: bool = False,
    ) -> Job:
        """Enter a collective; it begins after `start`, at once where it has no `work`.

        `finish` is called by the communication thread. A `single` job takes one step, and others
        may go on beside it. One of the `back` lane follows from others, on which ranks agree.
        """
        return self._entered(Job(subject, work, single, finish, back))

    def send(
        self,
        subject: Subject,
        work: Work,
        finish: Callable[[], None] | None = None,
        patient: bool = False,
        late: Callable[[], str] | None = None,
    ) -> Job:
        """Begin a job without a place in an order; a `patient` one may take for ever.

        `late` says what this rank does, for the message where the job takes longer than the limit.
        """
        return self._entered(
            Job(subject, work, False, finish, free=True, patient=patient, late=late)
        )

    def _entered(self, job: Job) -> Job:
        if self._pid != os.getpid():
            raise GnomonError(f"{job.subject}: a forked process has no part in its parent's job")
        if self._closed:
            raise GnomonError(f"{job.subject}: this process has left its job already")
        self._inbox.append(job)
        self._rouse()
        return job

    def start(self, job: Job) -> None:
        """The data of the job are ready; any thread may say so."""
        job.ready = True
        self._rouse()

    def call(self, subject: Subject, work: Work | None = None) -> Any:
        """Carry a collective out, and wait for its result."""
        job = self.enter(subject, work)
        self.start(job)
        job.ended.wait()
        return job.result

    def fail(self, text: str) -> None:
        """End the whole job with one message that names this rank."""
        self.watch.fail(f"{self.watch.me} {text}")

    def close(self) -> None:
        """Wait for all ranks to come to their end, and let go of MPI."""
        if self._closed or self._pid != os.getpid():
            return
        with contextlib.suppress(Exception):
            engine.get().wait_for_all()
        if not self.is_server:
            self.call(LAST)
        for each in self.before_end:
            each()
        self.enter(END).ended.wait()
        if not self._thread_ended.wait(self._limit or None):
            self.fail(f"waits for the end of MPI for {self._limit:g} s")

    def _rouse(self) -> None:
        self._native.wake()
        self._wake.set()

    @property
    def bucket_bytes(self) -> int:
        """How many bytes of gradients travel at once: as set, or as suits the links."""
        near = self.local_size == self.size
        return config.get("dist_bucket_bytes") or (NEAR_BYTES if near else FAR_BYTES)

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._thread_ended = threading.Event()
        try:
            mpi.sleep_exactly()
            self._set_up()
        except BaseException as error:
            self._start_error = error
            return
        finally:
            for event in (self._mpi_started, self._joined, self._started):
                event.set()
        try:
            while not self._closed:
                self._native.block.words[0] = 0
                self._wake.clear()
                self._take()
                if self._advance():
                    self._idle = time.monotonic()
                else:
                    self._rest()
        except BaseException as error:
            text = f"failed in {self._latest}: {type(error).__name__}: {error}"
            self.watch.fail(f"{self.watch.me} {text}", certain=False)
        for request in self.standing.values():
            request.Cancel()
            request.Wait()
        self.watch.leave()
        if self._started_here:
            mpi.end(self.mpi)
        self._thread_ended.set()

    def _set_up(self) -> None:
        self.mpi, self._started_here = mpi.load(self._kind)
        everybody = self.mpi.COMM_WORLD
        mpi.check_launch(self.mpi, self._kind, self._started_here)
        self._native = mpi.Native(self.mpi)
        me = Peer(everybody.rank, socket.gethostname(), os.getpid())
        self.watch = Watch(me, self._where, everybody.size, self._native)
        self._mpi_started.set()
        self.peers = joined(everybody, self.watch, _what_must_agree(), self._limit)
        self._joined.set()
        self.servers = _servers(everybody.size)
        self.is_server = everybody.rank in self.servers and len(self.servers) < everybody.size
        world = everybody.Split(int(self.is_server))
        self.rank, self.size = world.rank, world.size  # workers come first: as among everybody
        self._control, self._talk, self.world = world, world.Dup(), world.Dup()
        self._there.world, self._back.world = self.world, world.Dup()
        self.mail, self.replies = everybody.Dup(), everybody.Dup()
        self.sums = world.Dup()
        lanes = [lane.world for lane in self._lanes]
        for each in (self._control, self._talk, *lanes, self.mail, self.replies, self.sums):
            each.Set_errhandler(self.mpi.ERRORS_RETURN)
        node = world.Split_type(self.mpi.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = node.rank, node.size
        if self.size > 1:
            sending.nbytes = self.bucket_bytes

    def _where(self) -> tuple[int, str]:
        """How many collectives this rank has come to, and what the last one is, for messages."""
        waiting = next(itertools.chain(*(lane.first() for lane in self._lanes)), None)
        if waiting is not None and not waiting.ready:
            later = sum(len(lane.entered) for lane in self._lanes)
            return self._count - later, f"{waiting.subject}, and waits for its own data"
        return self._count, f"{self._latest} (collective {self._count})"

    def _take(self) -> None:
        """Send the headers of the jobs that were entered."""
        while self._inbox:
            job = self._inbox.popleft()
            if job.free:
                self._free.append(job)
                job.steps = job.work(self.world) if job.work is not None else iter(())
                self._step(job, self._free)
                continue
            self._count += 1
            self._latest = str(job.subject)
            if job.back:
                self._back.entered.append(job)
                continue
            mine = np.array([job.subject.digest, self._count], np.uint64)
            job.headers = np.empty((self.size, 2), np.uint64)
            job.header = self._control.Iallgather(mine, job.headers)
            self._there.entered.append(job)

    def _advance(self) -> bool:
        """Move on whatever can be; False where there is nothing."""
        moved = False
        for lane in self._lanes:
            while lane.entered and self._agreed(lane.entered[0]) and lane.may_begin():
                self._begin(lane.entered.popleft(), lane)
                moved = True
        for jobs in (*(lane.running for lane in self._lanes), self._free):
            for job in list(jobs):
                job.requests = [r for r in job.requests if not r.Test()]
                if not job.requests:
                    self._step(job, jobs)
                    moved = True
        return moved

    def _agreed(self, job: Job) -> bool:
        if job.header is None:
            return True
        if not job.header.Test():
            return False
        job.header = None
        job.since = time.monotonic()
        if (job.headers != job.headers[0]).any():
            self._disagreement(job)
        return True

    def _begin(self, job: Job, lane: Lane) -> None:
        lane.running.append(job)
        job.steps = iter(()) if job.work is None else job.work(lane.world)
        self._step(job, lane.running)

    def _step(self, job: Job, among: list[Job]) -> None:
        try:
            job.requests = next(job.steps)
            return
        except StopIteration as end:
            job.result = end.value
        among.remove(job)
        if job.finish is not None:
            job.finish()
        job.ended.set()
        self._closed = job.subject is END

    def _rest(self) -> None:
        """Sleep until something may move."""
        there, back = self._there, self._back
        running = (*there.running, *back.running, *self._free)
        requests = [r for job in running for r in job.requests]
        if there.entered and there.entered[0].header is not None:
            requests.append(there.entered[0].header)
        if not requests:
            self._wake.wait()
            self._idle = time.monotonic()
            return
        idle = time.monotonic() - self._idle
        nap = min(max(SHORTEST_NAP, idle / LOOKS), LONGEST_NAP)
        self._native.wait(requests, max(100, int(0.01 / nap)), SPINS, nap)
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        """End the job where something takes longer than the limit."""
        begun = time.monotonic() - self._limit
        if self._late or not self._limit:
            return
        for job in itertools.chain(*(lane.first() for lane in self._lanes)):
            if job.since < begun:
                self._late = True
                self.watch.late(f"{job.subject} is not done after {self._limit:g} s")
        for job in self._free:
            if job.since < begun and not job.patient:
                self.fail(f"{job.late()}, which is not done after {self._limit:g} s")

    def _disagreement(self, job: Job) -> None:
        """All ranks have seen that headers differ: tell how, on rank 0."""
        self.watch.suspect(f"ranks disagree: {self.watch.me} does {job.subject}")
        found = self._talk.allgather((job.subject.what, job.subject.items, str(job.subject)))
        counts = Counter(digest for digest, _ in job.headers.tolist())
        most = counts.most_common(1)[0][0]
        if counts[most] <= self.size // 2:
            most = job.headers[0][0]
        wrong = [r for r in range(self.size) if job.headers[r][0] != most]
        right = next(r for r in range(self.size) if r not in wrong)
        parts = [_difference(self.peers[r], found[r], found[right]) for r in wrong]
        text = f"ranks disagree: {'; '.join(parts)}, while {self.peers[right]} does "
        text += _difference(None, found[right], found[wrong[0]])
        if self.rank != 0:
            time.sleep(2 * GRACE_SECONDS)  # rank 0 ends this process
        self.watch.fail(text)


def _difference(peer: Peer | None, mine: Any, others: Any) -> str:
    """What a rank does, from the first item on which it differs."""
    what, items, whole = mine
    for k, item in enumerate(items):
        if what == others[0] and (k >= len(others[1]) or item != others[1][k]):
            whole = f"{what} of {item}"
            break
    else:
        if what == others[0] and len(items) < len(others[1]):
            whole = f"{what} without {others[1][len(items)]}"
    return whole if peer is None else f"{peer} does {whole}"


def _what_must_agree() -> dict[str, Any]:
    """What ranks must have in common to understand one another."""
    return {
        "gnomon": __version__,
        "the protocol": PROTOCOL,
        "byte order": sys.byteorder,
        "the number of servers": os.environ.get("GNOMON_DIST_SERVERS", "0"),
        "setting dist_bucket_bytes": config.get("dist_bucket_bytes"),
        "setting dist_wire_dtype": config.get("dist_wire_dtype"),
    }


def _servers(ranks: int) -> list[int]:
    """The ranks that own keys of asynchronous stores: the last ones if set apart, else all.

    Raises:
        GnomonError: no worker would be left.
    """
    count = int(os.environ.get("GNOMON_DIST_SERVERS", "0"))
    if not 0 <= count < max(2, ranks):
        raise GnomonError(
            f"kvstore.create: {count} servers among {ranks} processes leave no worker"
        )
    return list(range(ranks - count, ranks)) if count and ranks > 1 else list(range(ranks))


_lock = threading.Lock()
_only: list[Communicator] = []


def get(kind: str) -> Communicator:
    """The process's communicator, started for a store of `kind` when first asked for.

    Raises:
        GnomonError: there is no MPI, or ranks have nothing in common.
    """
    with _lock:
        if not _only:
            _only.append(Communicator(kind))
            atexit.register(_only[0].close)
            _report_exceptions(_only[0])
        return _only[0]


def _report_exceptions(communicator: Communicator) -> None:
    """Have an exception that nothing catches end the whole job."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        if os.getpid() == communicator._pid:
            sys.stderr.flush()
            communicator.fail(f"failed: {kind.__name__}: {error}".splitlines()[0])

    sys.excepthook = hook
