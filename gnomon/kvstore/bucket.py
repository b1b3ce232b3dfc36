"""Buckets: several keys that travel between ranks together, summed, updated and handed out.

| step | by | what is written |
|---|---|---|
| fill | engine | `sent`: the sums over this rank's devices, pieces in the order of their owners |
| exchange | MPI, all to all | `got`: a row from each other rank, of the pieces of this rank |
| sum | engine | the rows and its own, in the order of ranks: the same bits on any machine |
| update | engine | the new elements of these pieces, where the store has an optimizer |
| gather | MPI, all gather | `whole`: beside the pieces of this rank, those of all others |
| deliver | engine | the arrays of the keys that lie elsewhere |

The sum is made where its pieces lie in `whole`, or, where there is an update, in `part`.

Exchange and gather are what an all-reduce of large arrays is made of. In between lies the update,
of a rank's own part alone, so that optimizer states take the memory of one copy over all ranks; and
what travels first may be of other types than MPI knows how to add: halves, or bits.

A bucket keeps its memory, and is used again whenever the same keys are pushed together. `homes` are
the places in `whole` of keys that lie there in one piece: a store that keeps its arrays there has
nothing to deliver. A key alone in its bucket needs no copies: its gradient is sent from where it
lies, and arrives where it is wanted.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gnomon import engine
from gnomon import ndarray as nd
from gnomon.kvstore.communicator import Communicator, Job, Subject
from gnomon.kvstore.compression import Compression
from gnomon.kvstore.shards import Piece, Shards, in_a_row, shaped, view
from gnomon.kvstore.transfer import add_up
from gnomon.shape import prod

PART_BYTES = 4 << 20  # what one message of a collective carries: several move at the same time

#: updates the pieces that this rank owns by their gradients, and gives the new elements
Update = Callable[[Sequence[Piece], Sequence[Any]], Sequence[Any]]


class Bucket:
    """Keys of one dtype whose gradients are summed together.

    Args:
        communicator: the ranks.
        keys: the keys, with a shape for each.
        shapes: the shapes of the keys.
        dtype: NumPy's type of all of them.
        pieces: the pieces of all keys.
        wire: the type that gradients have between ranks.
        compression: what makes fewer bits of them, or None.
    """

    def __init__(
        self,
        communicator: Communicator,
        keys: Sequence[Any],
        shapes: Sequence[tuple[int, ...]],
        dtype: Any,
        pieces: Sequence[tuple[Piece, ...]],
        wire: Any,
        compression: Compression | None,
    ) -> None:
        self.keys = keys
        self._shapes = dict(zip(keys, shapes, strict=True))
        self._comm, self._compression = communicator, compression
        self._dtype, self._wire = np.dtype(dtype), np.dtype(wire)
        ranks = range(communicator.size)
        flat = [p for each in pieces for p in each]
        self._pieces = [p for rank in ranks for p in flat if p.owner == rank]
        self.mine = [p for p in self._pieces if p.owner == communicator.rank]
        counts = [sum(p.size for p in self._pieces if p.owner == rank) for rank in ranks]
        self._counts, self._own = counts, counts[communicator.rank]
        self._own_start = sum(counts[: communicator.rank])
        self._source: Any = None  # what was sent last
        rows = list(zip(keys, shapes, itertools.repeat(dtype)))
        self._subjects = (
            Subject(f"push ({compression})" if compression else "push", rows),
            Subject("pull", rows),
        )
        self._cuts: dict[str, tuple[list[Any], list[list[Any]]]] = {}
        self._make_memory()

    def _make_memory(self) -> None:
        size, ranks, own = sum(self._counts), self._comm.size, self._own
        if self._compression is None:
            self._sent_bytes = [n * self._wire.itemsize for n in self._counts]
            self._sent = nd.empty((size,), dtype=self._wire)
            self._got = nd.empty((max(1, (ranks - 1) * own),), dtype=self._wire)
        else:
            packed = self._compression.packed_size
            self._sent_bytes = [
                sum(packed(p.size) for p in self._pieces if p.owner == rank)
                for rank in range(ranks)
            ]
            mine = self._sent_bytes[self._comm.rank]
            self._sent = nd.empty((sum(self._sent_bytes),), dtype=np.uint8)
            self._got = nd.empty((max(1, (ranks - 1) * mine),), dtype=np.uint8)
        self._part = nd.empty((max(1, own),), dtype=self._dtype)
        self._whole = nd.empty((size,), dtype=self._dtype)
        self._sent_views = in_a_row(self._sent, self._pieces) if not self._packs else []
        self._whole_views = in_a_row(self._whole, self._pieces)
        self.homes = (
            {}
            if self._direct
            else {
                p.key: shaped(there, self._shapes[p.key])
                for p, there in zip(self._pieces, self._whole_views, strict=True)
                if p.size == prod(self._shapes[p.key])
            }
        )
        news = view(self._whole, self._own_start, self._own_start + own)
        self.gradients, self._news = (
            list(map(self.in_shape, self.mine, in_a_row(x, self.mine))) for x in (self._part, news)
        )

    @property
    def _packs(self) -> bool:
        return self._compression is not None

    @property
    def _direct(self) -> bool:
        """Whether the memory of a key's own arrays may be sent from and received in."""
        return len(self.keys) == 1

    def in_shape(self, piece: Piece, flat: Any) -> Any:
        """A piece's elements, in the shape of its key where they are all of it."""
        shape = self._shapes[piece.key]
        return shaped(flat, shape) if piece.size == prod(shape) else flat

    # --- the way there --------------------------------------------------------------------------

    def send(self, values: dict[Any, Sequence[Any]], priority: int) -> None:
        """Fill and exchange; `values` are the gradients of each key on this rank's devices."""
        self._source = self._filled(values, priority)
        self._travel(False, self._exchange, self._source, self._got, priority)

    def _filled(self, values: dict[Any, Sequence[Any]], priority: int) -> Any:
        values = {k: [_dense(v) for v in each] for k, each in values.items()}
        if self._packs:
            self._pack({k: self._total(each, priority) for k, each in values.items()}, priority)
            return self._sent
        if self._direct and self._wire == self._dtype:
            (only,) = values.values()
            if len(only) == 1:
                return only[0]
        jobs = list(zip(self._sent_views, self._cut("values", values), strict=True))
        add_up(jobs, priority, overtakes=True)  # the rest of backward, which is pushed already
        return self._sent

    def _cut(self, which: str, arrays: dict[Any, Sequence[Any]]) -> list[list[Any]]:
        """The pieces of arrays of each key; most often the arrays are those of the last time."""
        places = [(a._chunk, a._offset) for each in arrays.values() for a in each]
        known, pieces = self._cuts.get(which, ([], []))
        if known != places:
            pieces = [
                [view(a, p.start, p.stop) for a in arrays[p.key]]
                for p in self._pieces
                if p.key in arrays
            ]
            self._cuts[which] = places, pieces
        return pieces

    def _total(self, values: Sequence[Any], priority: int) -> Any:
        if len(values) == 1:
            return values[0]
        total = nd.empty(values[0].shape, dtype=values[0].dtype)
        add_up([(total, values)], priority)
        return total

    def _pack(self, totals: dict[Any, Any], priority: int) -> None:
        compression: Any = self._compression
        levels = {k: _dense(compression.quantized(k, total)) for k, total in totals.items()}

        def pack(_: Any) -> None:
            parts = [
                compression.packed(levels[p.key]._numpy().reshape(-1)[p.start : p.stop])
                for p in self._pieces
            ]
            np.concatenate(parts, out=self._sent._numpy())

        const = dict.fromkeys(each._var for each in levels.values())
        engine.get().push_sync(pack, None, tuple(const), (self._sent._var,), priority)

    def _exchange(self, world: Any, source: Any, target: Any) -> list[Any]:
        counts, byte, me = self._sent_bytes, self._comm.mpi.BYTE, world.rank
        starts, rows = _offsets(counts), [counts[me] * self._row(r) for r in range(world.size)]
        parts, found = self._parts(sum(counts)), []
        for k in range(parts):
            there = _part_of(counts, starts, k, parts)
            here = _part_of([counts[me]] * world.size, rows, k, parts)
            there[0][me] = here[0][me] = 0  # a rank's own row stays where it is
            found.append(world.Ialltoallv([source, there, byte], [target, here, byte]))
        return found

    def _row(self, rank: int) -> int:
        """Which row of what came is that of a rank; rows are in the order of the other ranks."""
        return rank - (rank > self._comm.rank)

    def _parts(self, nbytes: int) -> int:
        """In how many messages so many bytes travel: MPI moves several at the same time."""
        return max(1, -(-nbytes // PART_BYTES))

    # --- the way back ---------------------------------------------------------------------------

    def receive(self, targets: dict[Any, Any], update: Update | None, priority: int) -> None:
        """Sum, update, gather and deliver; `targets` are the arrays that the keys' elements go to.

        With `update`, the elements that this rank owns are in the targets already.
        """
        whole, only = self._whole, targets[self.keys[0]]
        if self._direct and only._layout.strides is None and only.dtype == self._dtype:
            whole = only
        away = {k: [a] for k, a in targets.items() if a is not self.homes.get(k)}
        if self._own and update is None:
            self._add(view(whole, self._own_start, self._own_start + self._own), priority)
        elif self._own and update is not None:
            self._add(view(self._part, 0, self._own), priority)
            news = update(self.mine, self.gradients)
            if whole is self._whole:
                rows = zip(self.mine, self._news, news, strict=True)
                add_up([(x, [new]) for p, x, new in rows if p.key in away], priority)
        self._travel(True, self._gather, None, whole, priority)
        if whole is self._whole and away:
            cut = self._cut("targets", away)
            rows = zip(self._pieces, self._whole_views, strict=True)
            sources = [[there] for p, there in rows if p.key in away]
            add_up([(t, s) for (t,), s in zip(cut, sources, strict=True)], priority)

    def _add(self, total: Any, priority: int) -> None:
        """The sum of the rows of all ranks, each of the pieces that this rank owns."""
        source, got = self._source, self._got
        if self._packs:
            read = source._var, got._var
            unpack = functools.partial(self._unpack, total)
            engine.get().push_sync(unpack, None, read, (total._var,), priority)
            return
        own, at = self._own, self._own_start
        rows = [view(got, own * k, own * (k + 1)) for k in range(self._comm.size - 1)]
        rows.insert(self._comm.rank, view(source, at, at + own))
        if self._wire != self._dtype:
            rows = [row.astype(self._dtype) for row in rows]
        add_up([(total, rows)], priority)

    def _unpack(self, total: Any, _: Any) -> None:
        compression: Any = self._compression
        starts, own = _offsets(self._sent_bytes), self._sent_bytes[self._comm.rank]
        data, sent = self._got._numpy(), self._source._numpy()[starts[self._comm.rank] :][:own]
        part = total._numpy()
        part[:] = 0
        for rank in range(self._comm.size):
            row = self._row(rank)
            packed = sent if rank == self._comm.rank else data[own * row : own * (row + 1)]
            at = start = 0
            for piece in self.mine:
                count = compression.packed_size(piece.size)
                levels = compression.unpacked(packed[at : at + count], piece.size, self._dtype)
                part[start : start + piece.size] += levels
                at, start = at + count, start + piece.size

    def _gather(self, world: Any, _: Any, target: Any) -> list[Any]:
        counts, mpi = [n * self._dtype.itemsize for n in self._counts], self._comm.mpi
        starts, parts = _offsets(counts), self._parts(sum(counts))
        return [
            world.Iallgatherv(mpi.IN_PLACE, [target, _part_of(counts, starts, k, parts), mpi.BYTE])
            for k in range(parts)
        ]

    def _travel(self, back: bool, post: Any, source: Any, target: Any, priority: int) -> None:
        """Have a collective read one array and write another, as an operation of the engine."""
        subject = self._subjects[back]

        def work(world: Any) -> Any:
            yield post(world, None if source is None else _bytes(source), _bytes(target))

        read = [] if source is None else [source]
        push_collective(self._comm, subject, work, read, [target], priority, back=back)


def push_collective(
    communicator: Communicator,
    subject: Subject,
    work: Any,
    read: Sequence[Any],
    written: Sequence[Any],
    priority: int = 0,
    single: bool = True,
    back: bool = False,
) -> Job:
    """Enter a collective that begins when the engine has its arrays ready, and ends for it."""
    job = communicator.enter(subject, work, single=single, back=back)

    def begin(_: Any, on_complete: Any) -> None:
        job.finish = on_complete
        communicator.start(job)

    mutate = dict.fromkeys(x._var for x in written)
    const = dict.fromkeys(x._var for x in read if x._var not in mutate)
    engine.get().push_async(begin, None, tuple(const), tuple(mutate), priority, str(subject))
    return job


def pieces_of(
    shards: Shards, keys: Sequence[Any], arrays: Sequence[Any], splits: bool
) -> list[tuple[Piece, ...]]:
    """The pieces of keys whose arrays are like those given."""
    return [
        shards.pieces(k, a.shape, np.dtype(a.dtype).itemsize, splits)
        for k, a in zip(keys, arrays, strict=True)
    ]


def _dense(array: Any) -> Any:
    """The array itself, or a copy where its elements do not lie in a row."""
    return array if array._layout.strides is None else array.copy()


def _bytes(array: Any) -> Any:
    """The memory of an array as bytes, for MPI."""
    return array._numpy().reshape(-1).view(np.uint8)


def _part_of(
    counts: Sequence[int], starts: Sequence[int], number: int, parts: int
) -> tuple[list[int], list[int]]:
    """Bytes and offsets of part `number` of `parts`, of each rank's bytes.

    >>> _part_of([10, 4], [0, 10], 0, 2), _part_of([10, 4], [0, 10], 1, 2)
    (([5, 2], [0, 10]), ([5, 2], [5, 12]))
    """
    low = [count * number // parts for count in counts]
    high = [count * (number + 1) // parts for count in counts]
    sizes = [b - a for a, b in zip(low, high, strict=True)]
    return sizes, [start + a for start, a in zip(starts, low, strict=True)]


def _offsets(counts: Sequence[int]) -> list[int]:
    return [0, *itertools.accumulate(counts)][:-1]
