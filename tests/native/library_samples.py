"""Native functions that use Python's library, and errors; each with what makes its arguments."""

from __future__ import annotations

import gc
import random
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from native.samples import ABSENT, LIMIT, Leaf, Node, explode, leaves, node

from gnomon.ground.collector import resting
from gnomon.native.words import Boxed, native, word_at


@native
def queues(x: deque[Leaf], n: int) -> tuple[object, ...]:
    spare: deque[Leaf] = deque()
    if n < 3:
        first = x[0]
        del x[0]
        x.append(first)
        spare.append(x[n - 1])
        first.name = n
        del x[n - 2]
    return (len(x), len(spare), bool(spare), spare, x[-1])


@native
def sets(xs: tuple[Leaf, ...], name: str) -> object:
    if not xs:
        return name.startswith("ee")
    found = {xs[0], xs[0]}
    for x in xs:
        found.add(x)
    before = len(found)
    found.discard(xs[-1])
    found.discard(xs[-1])
    found.add(cast("Leaf", Leaf(before)))
    return (before, len(found), xs[0] if found else None)


@native
def conditions(xs: list[Leaf], ys: tuple[Leaf, ...], n: int, count: Callable[[], int]) -> object:
    """What is asked of each element ends with the question, as does its variable."""
    few = all(k < n and xs[k].name is not ABSENT for k in range(len(xs)))
    if few and any(cast(int, fresh_leaf(cast(int, x.name)).name) == n for x in xs):
        return (few, count(), not any(any(y is x for y in ys) for x in xs))
    made = all(popped_leaf(xs) is not None and cast(int, y.name) == 3 for y in ys)
    return (made, count(), len(xs), any(x is ys for x in (xs, ys)))


@native
def spread(x: list[Leaf], *rest: object) -> object:
    every = tuple(x)
    return (callable(explode), callable(every), every, explode(*rest))


@native
def raised(n: int, leaf: object) -> object:
    found = 0
    first: BaseException = KeyError(leaf)
    for k in range(n):
        try:
            if k & 1:
                explode(k, leaf)
            elif k == LIMIT - 1:
                raise ValueError(leaf)
        except KeyError as error:
            first = error
            found += 1
    if found > 1:
        raise first
    try:
        if n == LIMIT - 2:
            return len(cast("list[int]", []))
        raise first
    except KeyError as again:
        return (found, again is first, again)


@native
def collector(x: Node, n: int) -> tuple[object, ...]:
    held: tuple[object, ...] = ()
    try:
        with resting():
            held = (x.leaf, gc.isenabled())
            held = (held, rest_again(n), gc.isenabled())
    except KeyError:
        return (held, gc.isenabled())
    return (held, gc.isenabled())


@native
def rest_again(n: int) -> object:
    with resting():
        while n > 2:
            n -= 1
            if n == 4:
                return explode(n, gc.isenabled())
        if n < 1:
            return gc.isenabled()
    return (n, gc.isenabled())


@native
def bits(n: int, m: Boxed) -> tuple[int, ...]:
    return (n.bit_length(), (n << 40).bit_length(), (-n).bit_length(), m.bit_length())


@native
def cut(data: bytes, a: int, b: int) -> object:
    part = data[a:b]
    return (part, word_at(part, b - a - 4), word_at(data, a))


@native
def place(within: str) -> object:
    depth = 0
    frame = sys._getframe()
    while frame.f_code.co_filename.startswith(within):
        depth += 1
        try:
            frame = sys._getframe(depth)
        except ValueError as error:
            return (frame.f_code, str(error))
    return (frame.f_code, frame.f_lasti)


@native
def left_out(x: object, n: int = 3, name: object = None, flag: bool = False) -> object:
    return (x, n + 1, name, flag)


@native
def rounds(xs: list[Leaf], n: int, count: Callable[[], int]) -> object:
    """How many leaves live in each round, which no value of a round before is to change."""
    made: object = None
    for k in range(n):
        leaf = popped_leaf(xs) if k != 2 else None
        made = (made, leaf is None)
        leaf = None
        made = (made, count())
        made = (made, fresh_leaf(k).name)
        made = (made, count())
        if len(fresh_leaves(k)) > k:
            made = (made, count())
    return made


@native
def replaced(n: int) -> object:
    """A loop goes on with the list that it began with."""
    items: list[Leaf] = [Leaf(n), Leaf(n + 1)]
    made: list[object] = []
    for x in items:
        items = []
        made.append(Leaf(n))
        made.append(x.name)
    return (made, len(items))


@native
def last_left(x: Node, n: int) -> int:
    """A variable may be None where one way leaves the loop, and not at its end."""
    left: Node | None = x
    for k in range(n):
        left = x.left
        if k == 1:
            break
        left = x
    return left.count  # type: ignore[union-attr]


@native
def counted_rest(*rest: object) -> object:
    return len(rest)


def popped_leaf(xs: list[Leaf]) -> Leaf | None:
    return xs.pop() if xs else None


def fresh_leaf(k: int) -> Leaf:
    return Leaf(k)


def fresh_leaves(k: int) -> list[Leaf]:
    return [Leaf(j) for j in range(2 * k)]


def living() -> int:
    return Leaf.alive


def given_of(function: Any, chance: random.Random) -> tuple[Any, ...]:
    """Arguments for one of the functions."""
    small = lambda: chance.randrange(-1, 7)  # noqa: E731
    leaf = chance.choice([None, Leaf("l"), ABSENT, 0, "", [], 3])
    makers: dict[str, Callable[[], tuple[Any, ...]]] = {
        "queues": lambda: (deque(leaves(chance)), small()),
        "sets": lambda: (tuple(leaves(chance)), chance.choice(["eel", "", "e"])),
        "conditions": lambda: (leaves(chance), tuple(leaves(chance)), small(), living),
        "spread": lambda: (leaves(chance), *leaves(chance)),
        "raised": lambda: (max(0, small()), leaf),
        "collector": lambda: (node(chance), small()),
        "bits": lambda: (chance.randrange(-(1 << 20), 1 << 20), small() << chance.randrange(60)),
        "cut": lambda: (chance.randbytes(9), chance.randrange(-10, 6), chance.randrange(-3, 12)),
        "place": lambda: (chance.choice([__file__, str(Path(__file__).parent), ""]),),
        "replaced": lambda: (small(),),
        "last_left": lambda: (node(chance), small()),
        "rounds": lambda: (leaves(chance), small(), living),
        "left_out": lambda: (leaf, small(), leaf, True)[: chance.randrange(6)],
    }
    return makers[function.__name__]()


ALL = (
    queues, sets, conditions, spread, raised, collector, bits, cut, place, left_out, rounds,
    replaced, last_left,
)  # fmt: skip
