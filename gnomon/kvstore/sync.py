"""`dist_sync` and `dist_device_sync`: every rank's pushes are summed before a pull returns.

State, beside that of the store of one process: each rank has every stored array whole. `_pending`
has single keys that were pushed one at a time, with snapshots of their values: they wait until
others of them fill a bucket, or until anything else is asked of the store. They leave in the order
of priority, which is the same on all ranks, as is the order of all calls.

Without an optimizer the sums of all ranks are the new content. With one, each rank updates the
pieces of keys that it owns and sends them to all; optimizers that cannot be divided, updaters of
users and row-sparse gradients are applied whole, by every rank alike.
"""

from __future__ import annotations

import functools
import itertools
import operator
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnomon import config
from gnomon import ndarray as nd
from gnomon.base import ParamError, complaint
from gnomon.ground.files import read_bytes, replacing
from gnomon.kvstore import server, states
from gnomon.kvstore.bucket import Bucket, pieces_of, push_collective
from gnomon.kvstore.communicator import Subject
from gnomon.kvstore.local import Key, KVStore, command_bytes, grouped
from gnomon.kvstore.rows import of_rows, to_rows
from gnomon.kvstore.shards import ELEMENTWISE, INDIVISIBLE, Piece, Shards, view
from gnomon.kvstore.transfer import add_up
from gnomon.optimizer import Updater

_numbers = itertools.count(1)
KEPT = 256  # groups of keys whose division into buckets is remembered


class SyncStore(KVStore):
    """A store whose ranks push, sum and pull in step.

    All ranks make the same calls in the same order. `init` takes the value of rank 0.
    """

    def __init__(self, kind: str = "dist_sync") -> None:
        super().__init__(kind)
        self._comm = server.join(kind)
        self._number = next(_numbers)
        self._shards = Shards(self._comm.size)
        self._buckets: dict[Any, Bucket] = {}
        self._splits: dict[tuple[Key, ...], tuple[int, list[tuple[Key, ...]]]] = {}
        self._pending: list[tuple[int, int, Key, Any]] = []
        self._pending_bytes = 0
        self._comm.call(self._subject("creation"))

    def _subject(self, what: str, rows: Any = ()) -> Subject:
        return Subject(f"{what} ({self._kind} store {self._number})", rows)

    @property
    def rank(self) -> int:
        return self._comm.rank

    @property
    def num_workers(self) -> int:
        return self._comm.size

    @property
    def local_rank(self) -> int:
        """This worker's number among those on its machine."""
        return self._comm.local_rank

    def barrier(self) -> None:
        """Wait until all workers have come here."""
        self._flush()
        self._comm.call(self._subject("barrier"))

    _barrier = barrier

    def init(self, key: Any, value: Any) -> None:
        """Store rank 0's values under new keys; ParamError where a key exists already."""
        self._flush()
        before = set(self._stored)
        super().init(key, value)
        self._spread({k: a for k, a in self._stored.items() if k not in before}, "init")

    def _spread(self, arrays: dict[Key, Any], what: str) -> None:
        """Give the arrays the values that rank 0 has."""
        rows = [(k, a.shape, a.dtype) for k, a in arrays.items()]
        if self._comm.size == 1 or not rows:
            return
        dense = [a for a in arrays.values() if a.stype == "default"]

        def work(world: Any) -> Any:
            memory = [a._numpy().reshape(-1).view(np.uint8) for a in dense]
            yield [world.Ibcast([m, self._comm.mpi.BYTE], root=0) for m in memory if m.size]

        subject = self._subject(what, rows)
        if dense:
            push_collective(self._comm, subject, work, (), dense, single=False)
        for k, array in arrays.items():
            if array.stype != "default":
                subject = self._subject(what, [(k, array.shape, array.dtype)])
                mine = pickle.dumps(to_rows(array)) if self.rank == 0 else b""
                array[:] = of_rows(
                    pickle.loads(self._from_root(subject, mine)), array.shape, array.dtype
                )

    def _from_root(self, subject: Subject, data: bytes) -> bytes:
        """Rank 0's bytes."""

        def work(world: Any) -> Any:
            size = np.array([len(data)], np.int64)
            yield [world.Ibcast(size, root=0)]
            content = np.frombuffer(bytearray(data or int(size[0])), np.uint8)
            yield [world.Ibcast([content, self._comm.mpi.BYTE], root=0)]
            return content.tobytes()

        found: bytes = self._comm.call(subject, work)
        return found

    def _from_all(self, subject: Subject, data: bytes) -> list[bytes]:
        """Every rank's bytes."""

        def work(world: Any) -> Any:
            sizes = np.empty(world.size, np.int64)
            yield [world.Iallgather(np.array([len(data)], np.int64), sizes)]
            counts = sizes.tolist()
            ends = [0, *itertools.accumulate(counts)]
            found = np.empty(ends[-1], np.uint8)
            there = [found, (counts, ends[:-1]), self._comm.mpi.BYTE]
            yield [world.Iallgatherv([np.frombuffer(data, np.uint8), self._comm.mpi.BYTE], there)]
            return [found[a:b].tobytes() for a, b in itertools.pairwise(ends)]

        found: list[bytes] = self._comm.call(subject, work)
        return found

    # --- pushes ---------------------------------------------------------------------------------

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum each key's values over devices and ranks; update the stored array, or replace it."""
        if self._comm.size == 1:
            super().push(key, value, priority)
            return
        groups = {k: v for k, v in grouped("push", key, value).items() if v}
        self._check("push", groups, same_dtype=True)
        rows, dense = _by_storage(groups)
        if self._compression is not None:
            for k, values in dense.items():
                self._compression.applies_to(k, values[0])  # or raises
        if len(groups) == 1 and dense:
            self._snapshot(*dense.items(), priority)
            return
        self._flush()
        self._reduce(dense, priority)
        for k, values in rows.items():
            self._push_rows(k, values)

    def _snapshot(self, row: tuple[Key, Sequence[Any]], priority: int) -> None:
        """Keep the sum of a key's values until there are more; send it at once where it is big."""
        key, values = row
        if any(key == k for _, _, k, _ in self._pending):
            self._flush()
        if values[0]._layout.nbytes >= self._comm.bucket_bytes:
            self._flush()
            self._reduce({key: values}, priority)
            return
        total = nd.empty(values[0].shape, dtype=values[0].dtype)
        add_up([(total, values)], priority)
        self._pending.append((-priority, len(self._pending), key, total))
        self._pending_bytes += total._layout.nbytes
        if self._pending_bytes >= self._comm.bucket_bytes:
            self._flush()

    def _flush(self) -> None:
        """Send what waits, the highest priority first."""
        if not self._pending:
            return
        waiting, self._pending, self._pending_bytes = sorted(self._pending)[:], [], 0
        self._reduce({k: [total] for _, _, k, total in waiting}, -waiting[0][0])

    def _reduce(self, groups: dict[Key, Sequence[Any]], priority: int) -> None:
        """Sum over ranks in buckets: all are on their way before the first comes back."""
        updater = self._updater
        divided = self._divides(updater)
        buckets = [self._bucket(keys, updater) for keys in self._split(tuple(groups))]
        for bucket in buckets:
            bucket.send({k: groups[k] for k in bucket.keys}, priority)
        for bucket in buckets:
            if updater is None or divided:
                targets = {k: self._stored[k] for k in bucket.keys}
            else:
                targets = {
                    k: nd.empty(groups[k][0].shape, dtype=groups[k][0].dtype) for k in bucket.keys
                }
            bucket.receive(targets, self._update if divided else None, priority)
            if updater is not None and not divided:
                self._apply(targets)

    @staticmethod
    def _divides(updater: Any) -> bool:
        """Whether each rank updates the pieces that it owns, and no others."""
        return isinstance(updater, Updater) and not isinstance(updater.optimizer, INDIVISIBLE)

    def _split(self, keys: tuple[Key, ...]) -> list[tuple[Key, ...]]:
        """Keys in buckets of one dtype and not more than a bucket's bytes; large keys are alone.

        A bucket leaves when it is full, in the order of the keys, or at the end.
        """
        limit = self._comm.bucket_bytes
        known = self._splits.get(keys)
        if known is None or known[0] != limit:
            if len(self._splits) >= KEPT:
                self._splits.clear()
            layouts = [self._stored[k]._layout for k in keys]
            known = self._splits[keys] = limit, _split(keys, layouts, limit)
        return known[1]

    def _bucket(self, keys: tuple[Key, ...], updater: Any) -> Bucket:
        found = self._buckets.get(keys)
        if found is None:
            arrays = [self._stored[k] for k in keys]
            optimizer = getattr(updater, "optimizer", None)
            splits = updater is None or type(optimizer) in ELEMENTWISE
            wire, dtype = config.get("dist_wire_dtype"), arrays[0].dtype
            found = self._buckets[keys] = Bucket(
                self._comm,
                keys,
                [a.shape for a in arrays],
                dtype,
                pieces_of(self._shards, keys, arrays, splits),
                dtype if wire == "same" or dtype != np.float32 else wire,
                self._compression,
            )
            if updater is None or self._divides(updater):
                self._move(found.homes)
        return found

    def _move(self, homes: dict[Key, Any]) -> None:
        """Keep stored arrays where a bucket receives them from now on."""
        homes = {k: home for k, home in homes.items() if self._stored[k].stype == "default"}
        add_up([(home, [self._stored[k]]) for k, home in homes.items()])
        self._stored.update(homes)

    def _update(self, pieces: Sequence[Piece], gradients: Sequence[Any]) -> list[Any]:
        """Update the pieces that this rank owns; gives them."""
        weights = []
        for piece, gradient in zip(pieces, gradients, strict=True):
            flat = view(self._stored[piece.key], piece.start, piece.stop)
            weights.append(flat.reshape(gradient.shape) if gradient.ndim != 1 else flat)
        self._updater([p.key for p in pieces], list(gradients), weights)
        return weights

    def _push_rows(self, key: Key, values: Sequence[Any]) -> None:
        """Sum row-sparse values: the rows of all ranks are gathered by all."""
        total = functools.reduce(operator.add, values)
        subject = self._subject("push of rows", [(key, total.shape, total.dtype)])
        parts = self._from_all(subject, pickle.dumps(to_rows(total), protocol=5))
        whole = functools.reduce(
            operator.add, [of_rows(pickle.loads(part), total.shape, total.dtype) for part in parts]
        )
        if self._updater is None:
            self._stored[key][:] = whole
        else:
            self._apply({key: whole})

    # --- everything else ------------------------------------------------------------------------

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        self._flush()
        super().pull(key, out, priority, ignore_sparse)

    def _copy(self, wanted: dict[Key, list[Any]], priority: int) -> None:
        for keys in self._split(tuple(wanted)):
            super()._copy({k: wanted[k] for k in keys}, priority)  # each as soon as it is there

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        self._flush()
        super().row_sparse_pull(key, out, priority, row_ids)

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        self._flush()
        super().set_gradient_compression(compression_params)
        self._buckets.clear()

    def set_updater(self, updater: Any) -> None:
        self._flush()
        super().set_updater(updater)
        self._forget_shards()

    _set_updater = set_updater

    def set_optimizer(self, optimizer: Any) -> None:
        self._flush()
        super().set_optimizer(optimizer)
        self._forget_shards()

    def _forget_shards(self) -> None:
        """Another updater has no states yet, and may divide keys in another way."""
        self._shards = Shards(self._comm.size)
        self._buckets.clear()

    def send_command_to_servers(self, head: int, body: str | bytes) -> None:
        """Take the pickled optimizer in a `body` with `head` 0: each rank is its own server."""
        data = command_bytes(head, body)
        if head == 0:
            self.set_optimizer(pickle.loads(data))

    _send_command_to_servers = send_command_to_servers

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the states of all ranks to a file, on rank 0; every rank has to call this."""
        self._flush()
        updater = self._states("save")
        parts = self._from_all(self._subject("save_optimizer_states"), states.dumped(updater))
        if self.rank == 0:
            data = states.joined(updater, parts, self._shards, self._stored, dump_optimizer)
            with replacing("KVStore.save_optimizer_states", fname) as stream:
                stream.write(data)
        self.barrier()

    def load_optimizer_states(self, fname: str) -> None:
        """Read the states from a file of rank 0's; every rank has to call this."""
        self._flush()
        updater = self._states("load")
        mine = read_bytes("KVStore.load_optimizer_states", fname) if self.rank == 0 else b""
        updater.set_states(self._from_root(self._subject("load_optimizer_states"), mine))
        splits = type(updater.optimizer) in ELEMENTWISE
        if not isinstance(updater.optimizer, INDIVISIBLE):
            arrays = {k: self._stored[k] for k in updater.states if k in self._stored}
            pieces_of(self._shards, list(arrays), list(arrays.values()), splits)
            states.keep_own(updater, self._shards, self.rank)


def _by_storage(groups: dict[Key, list[Any]]) -> tuple[dict[Key, Any], dict[Key, list[Any]]]:
    """The keys whose values are all row-sparse, and the others, with values that are dense."""
    if {x.stype for values in groups.values() for x in values} <= {"default"}:
        return {}, groups
    rows = {k: v for k, v in groups.items() if {x.stype for x in v} == {"row_sparse"}}
    dense = {
        k: [x if x.stype == "default" else x.tostype("default") for x in v]
        for k, v in groups.items()
        if k not in rows
    }
    return rows, dense


def _split(keys: Sequence[Key], layouts: Sequence[Any], limit: int) -> list[tuple[Key, ...]]:
    """See `SyncStore._split`."""
    found, open_ones = list[list[Key]](), dict[Any, tuple[list[Key], int]]()
    for key, layout in zip(keys, layouts, strict=True):
        if layout.nbytes >= limit:
            found.append([key])
            continue
        together, size = open_ones.pop(layout.dtype, ([], 0))
        if size + layout.nbytes > limit:
            found.append(together)
            together, size = [], 0
        together.append(key)
        open_ones[layout.dtype] = together, size + layout.nbytes
    found += [together for together, _ in open_ones.values()]
    return [tuple(together) for together in found]


class Horovod(SyncStore):
    """Sums over ranks under the names of Horovod's store: `broadcast` and `pushpull` alone."""

    def __init__(self, kind: str = "horovod") -> None:
        super().__init__(kind)

    @staticmethod
    def is_capable(capability: str) -> bool:
        KVStore.is_capable(capability)
        return False

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy rank 0's values into `out`, and keep their keys."""
        self.init(key, value)
        KVStore.pull(self, key, out, priority, ignore_sparse=False)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values over ranks into `out`, or in place; keys need no `broadcast` before."""
        for each, arrays in grouped("pushpull", key, value).items():
            if each not in self._stored and arrays:
                self._stored[each] = arrays[0].zeros_like()
        super().pushpull(key, value, out, priority)

    def set_optimizer(self, optimizer: Any) -> None:
        raise ParamError(
            complaint("KVStore.set_optimizer", "kvstore", "one that updates", repr(self.type))
        )
