"""`dist_async`: every push changes the weights at once, and a pull gets what is there.

Keys lie in pieces on the ranks that own them (all workers, or ranks of their own: `gnomon launch
-s n`), which update them as pushes come, in whatever order those of several workers come. A worker
sees its own pushes in the values that it pulls. `init` takes the value of worker 0.

State: `_stored` says of each key only what is like it; the elements are on the servers. `_order`
has an engine variable a server: messages to it leave in the order of the calls.
"""

from __future__ import annotations

import itertools
import pickle
from typing import Any, NamedTuple

import numpy as np

from gnomon import engine
from gnomon import ndarray as nd
from gnomon.base import GnomonError, ParamError, complaint
from gnomon.context import Context, cpu
from gnomon.ground.files import read_bytes, replacing
from gnomon.kvstore import server, states
from gnomon.kvstore.communicator import Subject
from gnomon.kvstore.local import Key, KVStore, command_bytes, grouped
from gnomon.kvstore.mail import NOTHING
from gnomon.kvstore.rows import of_rows, to_rows
from gnomon.kvstore.shards import ELEMENTWISE, Piece, Shards, in_a_row, view
from gnomon.kvstore.transfer import add_up
from gnomon.ndarray.core.layout import Layout, dense
from gnomon.optimizer import Optimizer, get_updater

_numbers = itertools.count(1)


class Like(NamedTuple):
    """What a worker knows of a key; it is asked what an array would be."""

    layout: Layout
    stype: str
    context: Context = cpu()  # from where it is sent

    @property
    def _layout(self) -> Layout:
        return self.layout

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def dtype(self) -> Any:
        return self.layout.dtype.numpy.type


class AsyncStore(KVStore):
    """A store whose ranks push and pull at their own pace."""

    def __init__(self, kind: str = "dist_async") -> None:
        super().__init__(kind)
        self._comm = server.join(kind)
        self._server = server.get(self._comm)
        self._number = next(_numbers)
        self._servers = self._comm.servers
        self._shards = Shards(len(self._servers))
        self._optimizer: Any = None
        self._order = {rank: engine.get().new_variable() for rank in self._servers}
        self._comm.call(Subject(f"creation ({kind} store {self._number})"))

    @property
    def rank(self) -> int:
        return self._comm.rank

    @property
    def num_workers(self) -> int:
        return self._comm.size

    def barrier(self) -> None:
        """Wait until all workers have come here: a pull sees then what any of them has pushed."""
        for rank in self._servers:
            self._asked(rank, ("ping",))
        self._comm.call(Subject(f"barrier ({self._kind} store {self._number})"))

    _barrier = barrier

    def init(self, key: Any, value: Any) -> None:
        """Store worker 0's values under new keys; ParamError where a key exists already."""
        groups = grouped("init", key, value)
        for each, arrays in groups.items():
            if each in self._stored or len(arrays) > 1:
                raise ParamError(complaint("KVStore.init", "key", "a new key", repr(each)))
        likes = {k: Like(dense(v[0].shape, v[0]._dtype), v[0].stype) for k, v in groups.items()}
        self._stored.update(likes)
        for each, like in likes.items():
            pieces = self._pieces(each)
            if self.rank:
                continue
            array = groups[each][0]
            for piece in pieces:
                rows = like.stype == "row_sparse"
                data = pickle.dumps(to_rows(array)) if rows else _part(array, piece)
                header = ("init", self._number, [(piece, like.shape, _name(like.dtype), rows)])
                self._post(piece.owner, header, np.frombuffer(data, np.uint8))
        rows = [(k, like.shape, like.dtype) for k, like in likes.items()]
        for rank in self._servers if self.rank == 0 else ():
            self._asked(rank, ("ping",))
        self._comm.call(Subject(f"init ({self._kind} store {self._number})", rows))

    def _pieces(self, key: Key) -> list[Piece]:
        """The pieces of a key; their owners are ranks among all processes."""
        like: Any = self._stored[key]
        splits = like.stype == "default" and self._splits()
        found = self._shards.pieces(key, like.shape, np.dtype(like.dtype).itemsize, splits)
        return [p._replace(owner=self._servers[p.owner]) for p in found]

    def _splits(self) -> bool:
        return self._optimizer is None or type(self._optimizer) in ELEMENTWISE

    def _post(self, to: int, header: Any, data: Any) -> None:
        """Send a message after those that went to the same server before."""

        def begin(_: Any, on_complete: Any) -> None:
            self._server.mail.send(to, header, data, on_complete)

        engine.get().push_async(begin, None, (), (self._order[to],), 0, str(header[0]))

    # --- pushes ---------------------------------------------------------------------------------

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Send each key's values, summed over this worker's devices, to be used at once.

        Raises:
            GnomonError: there is no optimizer yet.
        """
        groups = {k: v for k, v in grouped("push", key, value).items() if v}
        self._check("push", groups, same_dtype=True)
        if self._optimizer is None:
            raise GnomonError(
                f"kvstore {self.type!r} updates at each push: call set_optimizer before push"
            )
        if self._compression is not None:
            groups = self._compressed(self._compression, groups)
        sums = self._sums(groups, priority)
        for k in [k for k, total in sums.items() if total.stype == "row_sparse"]:
            data = pickle.dumps(to_rows(sums.pop(k)))
            header = ("push_rows", self._number, k)
            self._post(self._pieces(k)[0].owner, header, np.frombuffer(data, np.uint8))
        for (owner, dtype), pieces in self._by_owner(sums).items():
            self._push_pieces(owner, dtype, pieces, sums, priority)

    def _by_owner(self, keys: Any) -> dict[tuple[int, str], list[Piece]]:
        """The pieces of keys that go together: of one owner and one type."""
        found: dict[tuple[int, str], list[Piece]] = {}
        for k in keys:
            for piece in self._pieces(k):
                found.setdefault((piece.owner, _name(self._stored[k].dtype)), []).append(piece)
        return found

    def _push_pieces(
        self, owner: int, dtype: str, pieces: list[Piece], sums: dict[Key, Any], priority: int
    ) -> None:
        packs = self._compression
        params = None if packs is None else {"type": packs.type, "threshold": packs.threshold}
        header = ("push", self._number, pieces, dtype, params)
        sent = nd.empty((sum(p.size for p in pieces),), dtype=np.dtype(dtype))
        jobs = []
        for piece, there in zip(pieces, in_a_row(sent, pieces), strict=True):
            whole = sums[piece.key]
            whole = whole if whole._layout.strides is None else whole.copy()
            jobs.append((there, [view(whole, piece.start, piece.stop)]))
        add_up(jobs, priority)

        def begin(_: Any, on_complete: Any) -> None:
            values = sent._numpy()
            if packs is None:
                data = values.view(np.uint8)
            else:
                ends = list(itertools.accumulate(p.size for p in pieces))
                parts = np.split(values, ends[:-1])
                data = np.concatenate([packs.packed(part) for part in parts])
            self._server.mail.send(owner, header, data, on_complete)

        const, order = (sent._var,), (self._order[owner],)
        engine.get().push_async(begin, None, const, order, priority, "push")

    # --- pulls ----------------------------------------------------------------------------------

    def _copy(self, wanted: dict[Key, list[Any]], priority: int) -> None:
        """Copy what the servers have now.

        Raises:
            GnomonError: a key in row-sparse storage: `row_sparse_pull` gets its rows.
        """
        for k in wanted:
            if self._stored[k].stype != "default":
                raise GnomonError(
                    f"KVStore.pull: key {k!r} is stored by rows: row_sparse_pull gets them"
                )
        whole = {k: nd.empty(self._stored[k].shape, dtype=self._stored[k].dtype) for k in wanted}
        for (owner, dtype), pieces in self._by_owner(wanted).items():
            self._pull_pieces(owner, dtype, pieces, whole, priority)
        add_up([(x, [whole[k]]) for k, arrays in wanted.items() for x in arrays], priority)

    def _pull_pieces(
        self, owner: int, dtype: str, pieces: list[Piece], whole: dict[Key, Any], priority: int
    ) -> None:
        got = nd.empty((sum(p.size for p in pieces),), dtype=np.dtype(dtype))

        def begin(_: Any, on_complete: Any) -> None:
            def finish(answer: Any) -> None:
                got._numpy().view(np.uint8)[:] = answer
                on_complete()

            self._server.mail.ask(owner, ("pull", self._number, pieces, dtype), finish)

        written = (got._var, self._order[owner])
        engine.get().push_async(begin, None, (), written, priority, "pull")
        targets = [view(whole[p.key], p.start, p.stop) for p in pieces]
        add_up([(t, [x]) for t, x in zip(targets, in_a_row(got, pieces), strict=True)], priority)

    def _pull_rows(self, key: Key, out: Any, rows: Any) -> None:
        like: Any = self._stored[key]
        header = ("pull_rows", self._number, key)
        answer = self._asked(self._pieces(key)[0].owner, header, rows)
        out[:] = of_rows(pickle.loads(answer), like.shape, like.dtype)

    def _asked(self, owner: int, header: Any, data: Any = NOTHING) -> bytes:
        """A server's answer, after what went to it before."""
        engine.get().wait_for_var(self._order[owner])
        found: list[bytes] = []
        data = data.view(np.uint8)
        job = self._server.mail.ask(owner, header, lambda x: found.append(x.tobytes()), data)
        job.ended.wait()
        return found[0]

    # --- optimizers -----------------------------------------------------------------------------

    def set_updater(self, updater: Any) -> None:
        """Take the optimizer of an `Updater`: functions of this process cannot run on servers."""
        if not hasattr(updater, "optimizer"):
            raise GnomonError(
                f"kvstore {self.type!r} updates on servers, which other processes may be: "
                "call set_optimizer"
            )
        self.set_optimizer(updater.optimizer)

    _set_updater = set_updater

    def set_optimizer(self, optimizer: Any) -> None:
        """Have the servers update by a copy of worker 0's optimizer; all workers call this."""
        if not isinstance(optimizer, Optimizer):
            got = type(optimizer).__name__
            raise ParamError(complaint("KVStore.set_optimizer", "optimizer", "an Optimizer", got))
        if self._stored and type(optimizer) not in ELEMENTWISE and self._has_cuts():
            raise GnomonError(
                f"kvstore {self.type!r}: {type(optimizer).__name__} needs whole weights, and keys "
                "were cut among servers already: call set_optimizer before init"
            )
        self._optimizer = optimizer
        if self.rank == 0:
            data = np.frombuffer(pickle.dumps(optimizer), np.uint8)
            for rank in self._servers:
                self._post(rank, ("optimizer", self._number), data)
        self.barrier()

    def _has_cuts(self) -> bool:
        return any(len(self._pieces(k)) > 1 for k in self._stored)

    def send_command_to_servers(self, head: int, body: str | bytes) -> None:
        """Send a command to the servers; one with `head` 0 has a pickled optimizer as its body."""
        data = np.frombuffer(command_bytes(head, body), np.uint8)
        header = ("optimizer", self._number) if head == 0 else ("command", head)
        for rank in self._servers:
            self._post(rank, header, data)

    _send_command_to_servers = send_command_to_servers

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the states of all servers to a file; one worker may call this alone."""
        self._need_optimizer("save")
        parts = [self._asked(rank, ("states", self._number)) for rank in self._servers]
        likes = self._stored
        updater = get_updater(pickle.loads(pickle.dumps(self._optimizer)))
        data = states.joined(updater, parts, self._shards, likes, dump_optimizer)
        with replacing("KVStore.save_optimizer_states", fname) as stream:
            stream.write(data)

    def load_optimizer_states(self, fname: str) -> None:
        """Have the servers take over the states in a file; one worker may call this alone."""
        self._need_optimizer("load")
        data = np.frombuffer(read_bytes("KVStore.load_optimizer_states", fname), np.uint8)
        for rank in self._servers:
            self._post(rank, ("load_states", self._number), data)

    def _need_optimizer(self, verb: str) -> None:
        if self._optimizer is None:
            raise GnomonError(
                f"KVStore.{verb}_optimizer_states: there is no optimizer; call set_optimizer first"
            )


def _name(dtype: Any) -> str:
    return str(np.dtype(dtype).name)


def _part(array: Any, piece: Piece) -> bytes:
    """The bytes of a piece."""
    values = np.ascontiguousarray(array.asnumpy()).reshape(-1)
    return bytes(values[piece.start : piece.stop].tobytes())
