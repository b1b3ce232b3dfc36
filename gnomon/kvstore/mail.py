"""Messages from one rank to another, and answers: what asynchronous stores are made of.

A message is a *notice* of fixed size, a header (any objects, pickled) and bytes. Every rank always
has a receive on its way for a notice from each rank; header and bytes are received when it comes,
and handed over in the order of that rank's notices, by a thread of their own: what is done with
them may take long, and the communication thread may not. There is no receive for notices from any
rank: over TCP, MPICH 5.0 does not complete it.

An answer goes through a communicator of its own, under the number that the question gave it.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gnomon.kvstore.communicator import Communicator, Job, Subject

TAGS = 10_000  # messages of one rank that may be on their way at once
NOTICE = 0  # the tag of notices; header and bytes of message k have 2 k + 1 and 2 k + 2

NOTHING = np.empty(0, np.uint8)

#: takes a message: the sender's rank, the header and the bytes
Handler = Callable[[int, Any, Any], None]


class Mail:
    """Sends and receives messages between all ranks, servers among them."""

    def __init__(self, communicator: Communicator, handler: Handler) -> None:
        self._comm, self._handler = communicator, handler
        self._numbers = itertools.count()
        ranks = [peer.rank for peer in communicator.peers]
        self._coming: dict[int, deque[Job]] = {rank: deque() for rank in ranks}
        self._arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._byte = communicator.mpi.BYTE
        threading.Thread(target=self._serve, name="gnomon server", daemon=True).start()
        for rank in ranks:
            listen = functools.partial(self._listen, rank)
            communicator.send(Subject(f"notices of {rank}"), listen, patient=True)

    # --- sending --------------------------------------------------------------------------------

    def send(
        self, to: int, header: Any, data: Any, finish: Callable[[], None] | None = None
    ) -> Job:
        """Send a message; `finish` is called when `data` may be used again."""
        subject = Subject(f"a message to {self._comm.peers[to]}")
        return self._comm.send(subject, lambda _: self._sending(to, header, data), finish)

    def _sending(self, to: int, header: Any, data: Any) -> Any:
        mail, content = self._comm.mail, pickle.dumps(header, protocol=5)
        number = next(self._numbers) % TAGS
        notice = np.array([number, len(content), data.size], np.int64)
        yield [
            mail.Isend(notice, to, NOTICE),
            mail.Isend([np.frombuffer(content, np.uint8), self._byte], to, 2 * number + 1),
            mail.Isend([data, self._byte], to, 2 * number + 2),
        ]

    def ask(self, to: int, header: Any, finish: Callable[[Any], None], data: Any = NOTHING) -> Job:
        """Send a question; `finish` gets the answer's bytes."""
        number = next(self._numbers) % TAGS

        def work(_: Any) -> Any:
            replies, size = self._comm.replies, np.empty(1, np.int64)
            coming = replies.Irecv(size, to, 2 * number)
            yield from self._sending(to, (*header, number), data)
            yield [coming]
            answer = np.empty(int(size[0]), np.uint8)
            yield [replies.Irecv([answer, self._byte], to, 2 * number + 1)]
            finish(answer)

        return self._comm.send(Subject(f"a question to {self._comm.peers[to]}"), work)

    def answer(self, to: int, number: int, data: Any, finish: Callable[[], None] | None) -> None:
        """Answer the question of that number; `finish` is called when `data` may be used again."""

        def work(_: Any) -> Any:
            replies = self._comm.replies
            yield [
                replies.Isend(np.array([data.size], np.int64), to, 2 * number),
                replies.Isend([data, self._byte], to, 2 * number + 1),
            ]

        self._comm.send(Subject(f"an answer to {self._comm.peers[to]}"), work, finish)

    # --- receiving ------------------------------------------------------------------------------

    def _listen(self, source: int, _: Any) -> Any:
        take = functools.partial(self._hand_over, self._coming[source])
        subject = Subject(f"a message from {self._comm.peers[source]}")
        while True:
            notice = np.empty(3, np.int64)
            request = self._comm.mail.Irecv(notice, source, NOTICE)
            self._comm.standing[source] = request
            yield [request]
            work = functools.partial(self._receiving, source, *notice.tolist())
            self._coming[source].append(self._comm.send(subject, work, take))

    def _receiving(self, source: int, number: int, header: int, size: int, _: Any) -> Any:
        content, data = np.empty(header, np.uint8), np.empty(size, np.uint8)
        yield [
            self._comm.mail.Irecv([content, self._byte], source, 2 * number + 1),
            self._comm.mail.Irecv([data, self._byte], source, 2 * number + 2),
        ]
        return source, pickle.loads(content.data), data

    def _hand_over(self, coming: deque[Job]) -> None:
        """Hand over the messages that are here, in the order of their notices."""
        while coming and coming[0].result is not None:
            self._arrived.put(coming.popleft().result)

    def _serve(self) -> None:
        while True:
            source, header, data = self._arrived.get()
            try:
                self._handler(source, header, data)
            except BaseException as error:
                traceback.print_exc()
                self._comm.fail(f"failed as a server: {type(error).__name__}: {error}")
