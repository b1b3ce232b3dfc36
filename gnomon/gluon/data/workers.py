"""Processes that make batches.

Each worker has two pipes of its own: by one it is sent the numbers of a batch's samples, by the
other it sends back the batch or what went wrong. A batch goes to the worker that has the least to
do. A worker that dies, raises, or is too slow, ends the epoch with an error that names it; then all
workers are ended, and the next epoch starts new ones.

The parent never waits to send: what a pipe does not hold yet is kept, and sent when the parent next
looks. So a worker needs no thread that takes tasks in, which would want the interpreter lock amidst
its work. It has one that sleeps until the parent ends.
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
from typing import Any, NamedTuple

import numpy as np

from gnomon import random as draws
from gnomon.base import GnomonError
from gnomon.gluon.data import shared

_LOOK = 0.01  # seconds after which tasks are sent on that a pipe did not hold

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
    """A process, its pipes, and the batches that it was asked for; `unsent` are bytes of tasks."""

    def __init__(self, number: int, process: Any, tasks: Connection, answers: Connection) -> None:
        self.number, self.process, self.tasks, self.answers = number, process, tasks, answers
        self.asked: deque[int] = deque()
        self.unsent = b""
        os.set_blocking(tasks.fileno(), False)

    def ask(self, task: Task) -> None:
        """Have a batch made.

        Raises:
            OSError: the process has ended.
        """
        self.asked.append(task.number)
        self.unsent += pickle.dumps(task)
        self.send()

    def send(self) -> None:
        """Send of the tasks what the pipe holds; OSError where the process has ended."""
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(self.tasks.fileno(), self.unsent) :]
        except BlockingIOError:
            pass

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"


class Pool:
    """`count` processes that make batches of `dataset`."""

    def __init__(self, dataset: Any, batchify: Batchify, count: int) -> None:
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self._folder = shared.folder()
        self.workers: list[Worker] = []
        self._close = weakref.finalize(self, _end, self.workers, self._folder, os.getpid())
        mine: list[Connection] = []
        for number in range(count):
            asked, tasks = context.Pipe(duplex=False)
            answers, told = context.Pipe(duplex=False)
            mine += [tasks, answers]
            args = asked, told, list(mine), dataset, batchify, self._folder
            process = context.Process(target=_work, args=args, daemon=True)
            process.start()
            asked.close()
            told.close()
            self.workers.append(Worker(number, process, tasks, answers))

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
        try:
            worker.ask(task)
        except OSError:
            raise self._died(worker) from None

    def receive(self, number: int, timeout: float) -> tuple[int, Any]:
        """Number and content of a batch that is ready, while batch `number` is waited for.

        The content is a message of `shared`, or the exception, with a note that says where, if
        making the batch raised one.

        Raises:
            GnomonError: a worker died, or nothing came for `timeout` seconds.
        """
        until = time.monotonic() + timeout
        sentinels = {worker.process.sentinel: worker for worker in self.workers}
        pipes = {worker.answers: worker for worker in self.workers}
        while (left := until - time.monotonic()) > 0:
            is_sent = all(map(self._has_sent, self.workers))
            ready = wait([*pipes, *sentinels], left if is_sent else min(left, _LOOK))
            for each in ready:
                if isinstance(each, Connection):
                    return self._taken(pipes[each])
            for each in ready:
                raise self._died(sentinels[each])
        raise self._late(number, timeout)

    def _has_sent(self, worker: Worker) -> bool:
        """Whether all tasks of a worker are sent, now at the latest."""
        if worker.unsent:
            try:
                worker.send()
            except OSError:
                return True  # it has ended, which its sentinel tells
        return not worker.unsent

    def _taken(self, worker: Worker) -> tuple[int, Any]:
        try:
            found = worker.answers.recv()
        except (EOFError, OSError):
            raise self._died(worker) from None
        number = worker.asked.popleft()
        if isinstance(found, Failure):
            return number, _told(worker, number, found)
        return number, found

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


def _end(workers: list[Worker], folder: str, maker: int) -> None:
    """End processes, and remove what they left: the process that made them does.

    A child that was forked meanwhile, as a worker of another loader, has a copy of their pool.
    """
    if os.getpid() != maker:
        return
    for worker in workers:
        worker.tasks.close()
        worker.answers.close()
    for worker in workers:
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join(5)
    shutil.rmtree(folder, ignore_errors=True)


def _work(
    asked: Connection,
    told: Connection,
    others: list[Connection],
    dataset: Any,
    batchify: Batchify,
    folder: str,
) -> None:
    """What a worker does until its pipes are closed."""
    for other in others:  # of the parent; held here, they would never be closed
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)  # its threads are not in this process
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    with os.fdopen(os.dup(asked.fileno()), "rb") as tasks:
        while True:
            try:
                task = pickle.load(tasks)
                told.send_bytes(_answer(task, dataset, batchify, folder))
            except (EOFError, OSError):  # the parent is gone, or done
                _leave(folder)


def _end_with_parent(folder: str) -> None:
    """Sleep until the parent ends, which may have been killed: then the folder is there still."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        _leave(folder)


def _leave(folder: str) -> None:
    """End this process, and give the memory of batches back."""
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
