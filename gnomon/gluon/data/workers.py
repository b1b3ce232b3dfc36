"""Processes that make batches.

Each worker has a pipe of its own: it is sent the numbers of a batch's samples, and sends back the
batch or what went wrong. A batch goes to the worker that has the least to do. A worker that dies,
raises, or is too slow, ends the epoch with an error that names it; then all workers are ended, and
the next epoch starts new ones.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import shutil
import signal
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from gnomon import random as draws
from gnomon.base import GnomonError
from gnomon.gluon.data import shared

Batchify = Callable[[Sequence[Any]], Any]


class Task(NamedTuple):
    """A batch to make: its number, the samples, and the seed of what is drawn for it."""

    number: int
    samples: Sequence[int]
    seed: int


class Failure(NamedTuple):
    """What a worker sends in place of a batch: the exception, if it can be sent, and its text."""

    error: bytes | None
    text: str


class Worker:
    """A process, its pipe, and the batches that it was asked for."""

    def __init__(self, number: int, process: Any, pipe: Connection) -> None:
        self.number, self.process, self.pipe = number, process, pipe
        self.asked: deque[int] = deque()

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"


class Pool:
    """`count` processes that make batches of `dataset`."""

    def __init__(self, dataset: Any, batchify: Batchify, count: int) -> None:
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self._folder = shared.folder()
        self.workers: list[Worker] = []
        self._close = weakref.finalize(self, _end, self.workers, self._folder)
        pipes: list[Connection] = []
        for number in range(count):
            mine, theirs = context.Pipe()
            pipes.append(mine)
            args = theirs, list(pipes), dataset, batchify, self._folder
            process = context.Process(target=_work, args=args, daemon=True)
            process.start()
            theirs.close()
            self.workers.append(Worker(number, process, mine))

    def close(self) -> None:
        """End all workers and drop what they have made."""
        self._close()

    @property
    def is_open(self) -> bool:
        """Whether the workers are there."""
        return self._close.alive

    def ask(self, task: Task) -> None:
        """Have a batch made."""
        worker = min(self.workers, key=lambda each: len(each.asked))
        worker.asked.append(task.number)
        try:
            worker.pipe.send(task)
        except OSError:
            raise self._died(worker) from None

    def receive(self, number: int, timeout: float) -> tuple[int, Any]:
        """Number and content of a batch that is ready, while batch `number` is waited for.

        The content is the exception, with a note that says where, if making the batch raised one.

        Raises:
            GnomonError: a worker died, or nothing came for `timeout` seconds.
        """
        until = time.monotonic() + timeout
        sentinels = {worker.process.sentinel: worker for worker in self.workers}
        pipes = {worker.pipe: worker for worker in self.workers}
        while (left := until - time.monotonic()) > 0:
            ready = wait([*pipes, *sentinels], left)
            for each in ready:
                if isinstance(each, Connection):
                    return self._taken(pipes[each])
            for each in ready:
                raise self._died(sentinels[each])
        raise self._late(number, timeout)

    def _taken(self, worker: Worker) -> tuple[int, Any]:
        try:
            found = worker.pipe.recv()
        except (EOFError, OSError):
            raise self._died(worker) from None
        number = worker.asked.popleft()
        if isinstance(found, Failure):
            return number, _told(worker, number, found)
        return number, shared.unpack(found)

    def _died(self, worker: Worker) -> GnomonError:
        worker.process.join(5)
        code = worker.process.exitcode
        how = (
            f"by signal {signal.Signals(-code).name}" if code and code < 0 else f"with code {code}"
        )
        work = f" at batch {worker.asked[0]}" if worker.asked else ""
        return GnomonError(
            f"DataLoader: {worker} died{work}, {how}: see what it wrote to its error output; a "
            "signal KILL is often lack of memory"
        )

    def _late(self, number: int, timeout: float) -> GnomonError:
        slow = next((w for w in self.workers if number in w.asked), self.workers[0])
        return GnomonError(
            f"DataLoader: {slow} has not made batch {number} in {timeout:g} s: is the data set "
            "stuck? else give a larger timeout"
        )


def _told(worker: Worker, number: int, failure: Failure) -> BaseException:
    """The exception that a worker raised, saying where."""
    where = f"DataLoader: raised by {worker} at batch {number}:\n{failure.text}"
    if failure.error is not None:
        try:
            error = pickle.loads(failure.error)
        except Exception:  # its class does not take it back
            return GnomonError(where)
        error.add_note(where)
        return error
    return GnomonError(where)


def _end(workers: list[Worker], folder: str) -> None:
    """End processes, and remove what they left."""
    for worker in workers:
        worker.pipe.close()
    for worker in workers:
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join(5)
    shutil.rmtree(folder, ignore_errors=True)


def _work(
    pipe: Connection, others: list[Connection], dataset: Any, batchify: Batchify, folder: str
) -> None:
    """What a worker does until its pipe is closed."""
    for other in others:  # of the parent; held here, they would never be closed
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)  # its threads are not in this process
    tasks: SimpleQueue[Task] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks, folder), daemon=True).start()
    while True:
        answer = _answer(tasks.get(), dataset, batchify, folder)
        try:
            pipe.send_bytes(answer)
        except OSError:  # the parent is gone: `_listen` ends this process
            return


def _listen(pipe: Connection, tasks: SimpleQueue[Task], folder: str) -> None:
    """Take tasks in at once, so that the parent never waits to send; end with the parent.

    A parent that was killed has not removed the folder: its memory would stay taken.
    """
    try:
        while True:
            tasks.put(pipe.recv())
    except (EOFError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _answer(task: Task, dataset: Any, batchify: Batchify, folder: str) -> Any:
    """The batch of a task, or what went wrong, pickled as a pipe's `send` does it."""
    try:
        seed(task.seed)
        batch = batchify([dataset[i] for i in task.samples])
        return ForkingPickler.dumps(shared.pack(batch, folder))
    except Exception as error:
        try:
            sent = pickle.dumps(error)
            pickle.loads(sent)
        except Exception:
            sent = None
        return ForkingPickler.dumps(Failure(sent, traceback.format_exc()))


def seed(number: int) -> None:
    """Have all generators of random numbers begin at `number`."""
    random.seed(number)
    np.random.seed(number)
    draws.seed(number)
