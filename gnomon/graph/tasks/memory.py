"""Which bytes each value of a program lives in, decided before anything is allocated.

A value is alive from the step that makes it to the last one that reads it. Two values may share
bytes when they are never alive together, when one is a view of the other, or when a step
overwrites one by the other (in place). Where branches run side by side, the code that says so gives
a value of theirs the life of all of them; among values of one branch alone, its own steps count.
The plan works on sizes alone; it allocates nothing.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from typing import NamedTuple

from gnomon.ground.record import record

#: a block's begin, its number in order of size, its end, its life, and its branch
Taken = tuple[int, int, int, int, int, "Branch | None"]

ALIGNMENT = 64
EXACT = 4096  # up to so many blocks the better, quadratic packing is used


class Branch(NamedTuple):
    """Which branch, of all that there are, a value belongs to, and its life within."""

    number: int
    born: int
    dies: int


@record()
class Value:
    """Something to store: `size` bytes, made at step `born`, read last at step `dies`.

    `buffer` is the number of the one that it lies in, unless it is a view of what lies elsewhere.
    `branch` is the only one of those side by side that makes or reads it, if there is such.
    """

    key: Hashable
    size: int
    born: int
    dies: int
    buffer: int = 0
    branch: Branch | None = None


@record()
class Sharing:
    """That value `made` may live in the bytes of `source`: as a view of it, or overwriting it."""

    made: Hashable
    source: Hashable
    view: bool = False


class Place(NamedTuple):
    """Where a value lives: a buffer's number and the offset in it."""

    buffer: int
    offset: int


@record(frozen=False)
class Block:
    """Values that share one place, and the time in which any of them is alive."""

    values: list[Value]
    size: int
    born: int
    dies: int
    offset: int = 0
    branch: Branch | None = None

    @classmethod
    def of(cls, value: Value) -> Block:
        """The block of one value."""
        size = max(-(-value.size // ALIGNMENT), 1) * ALIGNMENT
        return cls([value], size, value.born, value.dies, branch=value.branch)

    @property
    def buffer(self) -> int:
        """The number of the buffer that it is part of."""
        return self.values[0].buffer

    def join(self, value: Value) -> None:
        """Let `value` live here too."""
        self.values.append(value)
        self.dies = max(self.dies, value.dies)
        ours, theirs = self.branch, value.branch
        self.branch = None
        if ours is not None and theirs is not None and ours.number == theirs.number:
            self.branch = ours._replace(dies=max(ours.dies, theirs.dies))


def times(a: Value | Block, b: Value | Block) -> tuple[tuple[int, int], tuple[int, int]]:
    """The lives of both, as they count between them: by their branch, where it is the same."""
    if a.branch is not None and b.branch is not None and a.branch.number == b.branch.number:
        return a.branch[1:], b.branch[1:]
    return (a.born, a.dies), (b.born, b.dies)


@record(slots=False)
class Plan:
    """Places of all values, the size of each buffer, and what shares a place with what."""

    places: dict[Hashable, Place]
    sizes: tuple[int, ...]
    blocks: list[Block] = field(repr=False)

    @property
    def total(self) -> int:
        """The bytes to allocate."""
        return sum(self.sizes)

    def offset(self, place: Place) -> int:
        """Where a place is, if the buffers lie one behind the other."""
        return sum(self.sizes[: place.buffer]) + place.offset

    def table(self) -> list[tuple[Value, Place]]:
        """Every value and its place, in the order they are made."""
        rows = [(v, self.places[v.key]) for b in self.blocks for v in b.values]
        return sorted(rows, key=lambda row: (row[0].born, row[0].branch or (), row[1]))


def plan(values: Sequence[Value], sharings: Iterable[Sharing] = ()) -> Plan:
    """Places for `values`, sharing bytes where they may; the earlier of two sharings wins.

    >>> p = plan([Value("a", 64, 0, 1), Value("b", 64, 1, 2), Value("c", 64, 2, 3)])
    >>> p.total, p.places["c"] == p.places["a"]
    (128, True)
    >>> plan([Value("a", 64, 0, 1), Value("b", 64, 1, 2)], [Sharing("b", "a")]).total
    64
    """
    blocks = join(values, sharings)
    count = 1 + max((block.buffer for block in blocks), default=0)
    parts: list[list[Block]] = [[] for _ in range(count)]
    for block in blocks:
        parts[block.buffer].append(block)
    sizes = tuple(pack(part) if len(part) <= EXACT else sweep(part) for part in parts)
    places = {v.key: Place(block.buffer, block.offset) for block in blocks for v in block.values}
    return Plan(places, sizes, blocks)


def join(values: Sequence[Value], sharings: Iterable[Sharing]) -> list[Block]:
    """Blocks of values that live in one place, by the sharings that hold."""
    options: dict[Hashable, list[Sharing]] = {}
    for sharing in sharings:
        options.setdefault(sharing.made, []).append(sharing)
    blocks: dict[Hashable, Block] = {}
    for value in sorted(values, key=lambda v: v.born):
        home = _home(value, options.get(value.key, ()), blocks)
        if home is None:
            home = Block.of(value)
        else:
            home.join(value)
        blocks[value.key] = home
    return list({id(b): b for b in blocks.values()}.values())


def _home(value: Value, options: Iterable[Sharing], blocks: dict[Hashable, Block]) -> Block | None:
    """The block of the first source that `value` may share, if any."""
    for option in options:
        block = blocks.get(option.source)
        if block is not None and value.size <= block.size and _allowed(value, option, block):
            return block
    return None


def _allowed(value: Value, option: Sharing, block: Block) -> bool:
    """Whether nothing that lives in `block` is harmed: a view harms nothing, unless overwritten."""
    newest = block.values[-1]  # they come in the order they are made
    (_, over), (made, _) = times(block, value)
    if not option.view:
        at_home = value.buffer == block.buffer
        return at_home and over <= made and _earlier(newest, value)
    # what overwrites the source at this very step would not be what the view shows
    before = block.values[-2:-1]
    return _earlier(newest, value) or (
        newest.key == option.source and all(_earlier(v, value) for v in before)
    )


def _earlier(a: Value, b: Value) -> bool:
    """Whether `a` is made before `b`, by another step."""
    (first, _), (second, _) = times(a, b)
    return first < second


def pack(blocks: Sequence[Block]) -> int:
    """Offsets for `blocks`, the largest first, each in the tightest gap; the bytes needed."""
    total, taken = 0, list[Taken]()  # by where they begin
    for number, block in enumerate(sorted(blocks, key=lambda b: (-b.size, b.born))):
        born, dies, own = block.born, block.dies, block.branch
        best, least, reach = -1, 0, 0
        for begin, _, end, first, last, branch in taken:
            if first > dies or last < born:
                continue
            if own is not None and branch is not None and apart(own, branch):
                continue
            gap = begin - reach
            if gap >= block.size and (best < 0 or gap < least):
                best, least = reach, gap
            reach = max(reach, end)
        block.offset = reach if best < 0 else best
        end = block.offset + block.size
        bisect.insort(taken, (block.offset, number, end, born, dies, own))
        total = max(total, end)
    return total


def apart(a: Branch, b: Branch) -> bool:
    """Whether lives within one branch are apart; they are parts of those that count elsewhere."""
    return a.number == b.number and (b.born > a.dies or b.dies < a.born)


def sweep(blocks: Sequence[Block]) -> int:
    """Offsets for `blocks` in the order they are made, each in the best fitting hole.

    As `pack`, but n log n: for graphs of many thousands of nodes.
    """
    holes = Holes()
    ending: list[tuple[int, int, Block]] = []
    for number, block in enumerate(sorted(blocks, key=lambda b: (b.born, -b.size))):
        while ending and ending[0][0] < block.born:
            holes.free(heapq.heappop(ending)[2])
        block.offset = holes.take(block.size)
        heapq.heappush(ending, (block.dies, number, block))
    return holes.end


class Holes:
    """The free intervals of one growing buffer."""

    def __init__(self) -> None:
        self.end = 0
        self._by_size: list[tuple[int, int]] = []  # (size, offset), sorted
        self._size_at: dict[int, int] = {}
        self._start_by_end: dict[int, int] = {}

    def take(self, size: int) -> int:
        """The offset of `size` bytes: in the smallest hole that fits, else in a longer buffer."""
        at = bisect.bisect_left(self._by_size, (size, -1))
        if at < len(self._by_size):
            length, offset = self._by_size[at]
            self._remove(offset)
            if length > size:
                self._add(offset + size, length - size)
            return offset
        last = self._start_by_end.get(self.end)
        offset = self.end if last is None else last
        if last is not None:
            self._remove(last)
        self.end = offset + size
        return offset

    def free(self, block: Block) -> None:
        """Give back what `block` took, joined with free neighbours."""
        start, end = block.offset, block.offset + block.size
        if start in self._start_by_end:
            before = self._start_by_end[start]
            self._remove(before)
            start = before
        if end in self._size_at:
            length = self._size_at[end]
            self._remove(end)
            end += length
        self._add(start, end - start)

    def _add(self, offset: int, size: int) -> None:
        bisect.insort(self._by_size, (size, offset))
        self._size_at[offset] = size
        self._start_by_end[offset + size] = offset

    def _remove(self, offset: int) -> None:
        size = self._size_at.pop(offset)
        del self._start_by_end[offset + size]
        del self._by_size[bisect.bisect_left(self._by_size, (size, offset))]


def overlaps(found: Plan, sharings: Iterable[Sharing] = ()) -> list[tuple[Value, Value]]:
    """The checker: pairs of values alive together in common bytes that no sharing allows.

    Written apart from the planner: it looks at places and lifetimes alone.
    """
    rules = _Rules(sharings)
    bad: list[tuple[Value, Value]] = []
    alive: list[tuple[Value, Place]] = []
    for value, place in found.table():
        alive = [(v, p) for v, p in alive if v.dies >= value.born]
        for other, where in alive:
            (_, over), (made, _) = times(other, value)
            common = (
                over >= made
                and place.buffer == where.buffer
                and (
                    place.offset < where.offset + other.size
                    and where.offset < place.offset + value.size
                )
            )
            if common and not (place == where and rules.excuse(value, other)):
                bad.append((other, value))
        alive.append((value, place))
    return bad


class _Rules:
    """Which values show the same content, and which may overwrite which."""

    def __init__(self, sharings: Iterable[Sharing]) -> None:
        self._shown: dict[Hashable, Hashable] = {}
        self._over: dict[Hashable, list[Hashable]] = {}
        for sharing in sharings:
            if sharing.view:
                self._shown[sharing.made] = self.content(sharing.source)
            else:
                self._over.setdefault(sharing.made, []).append(sharing.source)

    def content(self, key: Hashable) -> Hashable:
        """What `key` is a view of, through views of views."""
        while key in self._shown:
            key = self._shown[key]
        return key

    def excuse(self, value: Value, other: Value) -> bool:
        """Whether `value`, made while `other` is alive, may lie where it lies."""
        content = self.content(other.key)
        if self.content(value.key) == content:
            return True
        over = {self.content(k) for k in self._over.get(value.key, ())}
        (_, ends), (made, _) = times(other, value)
        return content in over and ends <= made
