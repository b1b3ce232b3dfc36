"""What a rank does with the keys of asynchronous stores that it owns: it answers messages.

State: by store and key, the piece that this rank owns, as an array in the key's shape where it is
all of the key; and for each store an updater, once an optimizer has come. A push is applied as soon
as it comes: no rank waits for another. Messages of one rank are taken in the order in which it sent
them, so that it pulls what it pushed.

A process that is a server alone spends its life in `join`.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import engine, ranks
from gnomon import ndarray as nd
from gnomon.base import GnomonError
from gnomon.context import cpu
from gnomon.kvstore import communicator, states
from gnomon.kvstore.compression import Compression
from gnomon.kvstore.mail import NOTHING, Mail
from gnomon.kvstore.rows import of_rows, to_rows
from gnomon.kvstore.shards import Piece, in_a_row, shaped, view
from gnomon.kvstore.total import Totals
from gnomon.kvstore.transfer import add_up
from gnomon.ndarray.core.array import Array
from gnomon.optimizer import get_updater

#: a piece with its key's shape and type, and whether it is kept row-sparse
Row = tuple[Piece, tuple[int, ...], str, bool]


class Server:
    """The keys that this rank owns, of all asynchronous stores."""

    def __init__(self, comm: communicator.Communicator) -> None:
        self._stored: dict[tuple[int, Any], Any] = {}
        self._pieces: dict[tuple[int, Any], Piece] = {}
        self._updaters: dict[int, Any] = {}
        self.stopped = threading.Event()
        self.mail = Mail(comm, self._handle)

    def _handle(self, source: int, header: Any, data: Any) -> None:
        getattr(self, f"_{header[0]}")(source, data, *header[1:])

    def _init(self, source: int, data: Any, store: int, rows: Sequence[Row]) -> None:
        start = 0
        for piece, shape, dtype, is_rows in rows:
            if is_rows:
                array = of_rows(pickle.loads(data.data), shape, dtype)
            else:
                stop = start + piece.size * np.dtype(dtype).itemsize
                array = _around(data[start:stop].view(np.dtype(dtype))).copy()
                start = stop
            whole = not is_rows and piece.size == array.size == int(np.prod(shape))
            self._stored[store, piece.key] = shaped(array, tuple(shape)) if whole else array
            self._pieces[store, piece.key] = piece

    def _optimizer(self, source: int, data: Any, store: int) -> None:
        self._updaters[store] = get_updater(pickle.loads(data.data))

    def _updater_of(self, store: int) -> Any:
        if store not in self._updaters:
            raise GnomonError(
                "kvstore 'dist_async' updates at each push, and has no optimizer: call "
                "set_optimizer before push"
            )
        return self._updaters[store]

    def _push(
        self, source: int, data: Any, store: int, pieces: Sequence[Piece], dtype: str, params: Any
    ) -> None:
        if params is not None:
            data = _unpacked(Compression(params), data, pieces, dtype)
        weights = [self._stored[store, p.key] for p in pieces]
        parts = in_a_row(_around(data.view(np.dtype(dtype))), pieces)
        gradients = [shaped(x, w.shape) for x, w in zip(parts, weights, strict=True)]
        self._updater_of(store)([p.key for p in pieces], gradients, weights)

    def _push_rows(self, source: int, data: Any, store: int, key: Any) -> None:
        weight = self._stored[store, key]
        gradient = of_rows(pickle.loads(data.data), weight.shape, weight.dtype)
        self._updater_of(store)(key, gradient, weight)

    def _pull(
        self, source: int, _: Any, store: int, pieces: Sequence[Piece], dtype: str, number: int
    ) -> None:
        found = nd.empty((sum(p.size for p in pieces),), dtype=np.dtype(dtype))
        sources = [view(self._stored[store, p.key], 0, p.size) for p in pieces]
        add_up([(x, [s]) for x, s in zip(in_a_row(found, pieces), sources, strict=True)])

        def answer(_: Any, on_complete: Any) -> None:
            self.mail.answer(source, number, found._numpy().view(np.uint8), on_complete)

        engine.get().push_async(answer, None, (found._var,), (), 0, "answer a pull")

    def _pull_rows(self, source: int, data: Any, store: int, key: Any, number: int) -> None:
        rows = nd.array(np.unique(data.view(np.int64)), dtype="int64")
        kept = nd.sparse.retain(self._stored[store, key], rows)
        self._reply(source, number, pickle.dumps(to_rows(kept)))

    def _states(self, source: int, _: Any, store: int, number: int) -> None:
        self._reply(source, number, states.dumped(self._updater_of(store)))

    def _load_states(self, source: int, data: Any, store: int) -> None:
        updater = self._updater_of(store)
        updater.set_states(data.tobytes())
        own = {key: p for (number, key), p in self._pieces.items() if number == store}
        states.keep_pieces(updater, own)

    def _command(self, source: int, data: Any, head: int) -> None:
        """A command of the program's own: there is none that this server knows."""

    def _ping(self, source: int, _: Any, number: int) -> None:
        """What the rank sent before has been taken."""
        self._reply(source, number, b"")

    def _stop(self, source: int, _: Any) -> None:
        self.stopped.set()

    def _reply(self, source: int, number: int, content: bytes) -> None:
        self.mail.answer(source, number, np.frombuffer(content, np.uint8), None)


def _around(values: Any) -> Any:
    """An array on the memory of a NumPy array."""
    return Array._around(values, cpu(0))


def _unpacked(compression: Compression, data: Any, pieces: Sequence[Piece], dtype: str) -> Any:
    """The levels of packed pieces, one after the other."""
    found, start = [], 0
    for piece in pieces:
        stop = start + compression.packed_size(piece.size)
        found.append(compression.unpacked(data[start:stop], piece.size, np.dtype(dtype)))
        start = stop
    return np.concatenate(found)


_only: list[Server] = []


def get(comm: communicator.Communicator) -> Server:
    """This process's server, made when first asked for."""
    if not _only:
        _only.append(Server(comm))
    return _only[0]


def join(kind: str) -> communicator.Communicator:
    """The communicator of a worker; a process that is a server alone answers until the end."""
    comm = communicator.get(kind)
    if comm.is_server:
        get(comm).stopped.wait()
        sys.exit(0)
    if comm.size > 1 and ranks.job.carry is None:
        ranks.job.rank, ranks.job.count = comm.rank, comm.size
        ranks.job.carry = Totals(comm).total
    if len(comm.servers) < len(comm.peers) and not comm.before_end:
        comm.before_end.append(lambda: _stop_servers(comm))
    return comm


def _stop_servers(comm: communicator.Communicator) -> None:
    """Have the processes that are servers alone come to their end; worker 0 says so."""
    for rank in comm.servers if comm.rank == 0 else ():
        get(comm).mail.send(rank, ("stop",), NOTHING).ended.wait()


class KVStoreServer:
    """A process that keeps keys for others: `run` answers them until the workers have ended.

    gnomon's servers are run by `gnomon launch`, and start when a store is made; this is for
    programs that start them by hand.
    """

    def __init__(self, kvstore: Any) -> None:
        self.kvstore = kvstore

    def run(self) -> None:
        """Answer until the end; return at once in a process that is a worker, too."""
        join(str(getattr(self.kvstore, "type", "dist_async")))
