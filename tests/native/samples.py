"""Native functions that use all that there is, each with what makes its arguments."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar, Final, cast

from gnomon.ground.record import Frozen, put, put_all
from gnomon.native.memory import swap
from gnomon.native.words import (
    Boxed,
    Given,
    Ints,
    Parts,
    Reals,
    Singles,
    Words,
    call,
    double_bits,
    keep_alive,
    native,
    new,
    popped,
    scratch,
    single,
    single_bits,
    there,
    variant,
    whole,
    word,
    wrapped,
)

LIMIT = 5
ABSENT = object()


class Leaf:
    """Something that is counted, and may do anything when it goes."""

    __slots__ = ("name",)

    alive: ClassVar[int] = 0
    last: ClassVar[Callable[[], object] | None] = None
    name: object

    def __init__(self, name: object) -> None:
        self.name = name
        Leaf.alive += 1

    def __del__(self) -> None:
        if type(self.name) is object:  # made to see where its slot lies
            return
        Leaf.alive -= 1
        if Leaf.last is not None:
            Leaf.last()

    def __repr__(self) -> str:
        return f"Leaf({self.name})"


class Node:
    __slots__ = ("big", "count", "flag", "items", "leaf", "left", "right", "table", "weight")

    big: Boxed
    count: int
    flag: bool
    items: list[Leaf]
    left: Node | None
    leaf: object
    right: Node | None
    table: dict[int, Leaf]
    weight: float

    def __repr__(self) -> str:
        shown = [f"{n}={getattr(self, n, 'unset')!r}" for n in sorted(Node.__slots__)]
        return f"Node({', '.join(shown)})"


@whole
class Pair(Frozen):
    __slots__ = ("first", "number", "second")

    first: Final[Leaf]
    number: int
    second: Leaf | None

    def __init__(self, first: Leaf, second: Leaf | None, number: int) -> None:
        put(self, "first", first)
        put(self, "second", second)
        put(self, "number", number)

    def __repr__(self) -> str:
        return f"Pair({self.first}, {self.second}, {self.number})"


class Young(Node):
    __slots__ = ("age",)

    age: int


def leaves(chance: random.Random) -> list[Leaf]:
    return [Leaf(chance.randrange(9)) for _ in range(chance.randrange(5))]


def node(chance: random.Random, depth: int = 2) -> Node:
    made = chance.choice([Node, Young])()
    made.big, made.count = chance.choice([1, 2**80, -5]), chance.randrange(-9, 9)
    made.flag, made.weight = chance.random() < 0.5, chance.choice([0.5, -2.0, 3.25])
    made.items, made.table = leaves(chance), {k: Leaf(k) for k in range(chance.randrange(4))}
    made.leaf = chance.choice([None, Leaf("x"), 7, "text"])
    made.left = node(chance, depth - 1) if depth and chance.random() < 0.6 else None
    made.right = node(chance, depth - 1) if depth and chance.random() < 0.6 else None
    if chance.random() < 0.15:
        delattr(made, chance.choice(Node.__slots__))
    return made


def explode(*given: object) -> object:
    if len(given) > 1:
        raise KeyError("given")
    return Leaf(given)


@native
def arithmetic(a: int, b: int, x: float) -> tuple[object, ...]:
    c = (a + b) * 3 - (a & 7) ^ (b | 2)
    d = (c >> 2) + (b << 3) - ~a - -b
    y = x * 2.0 - a + 0.1
    return (c, d, y, -y, abs(x), a < b, y >= x, float(a), int(a != b))


@native
def logic(a: int, b: int, leaf: object) -> tuple[object, ...]:
    one = (a > 3 and b > 3) or leaf is None
    two = not (a > b or not b)
    three = a if one else b
    four = leaf if two else (a, leaf)
    return (one, two, three, four, bool(leaf), leaf is not None, leaf is ABSENT)


@native
def loops(n: int, xs: list[Leaf], given: tuple[object, ...]) -> list[object]:
    made: list[object] = []
    for i in range(n):
        if i == LIMIT:
            break
        if i & 1:
            continue
        made.append(i)
    for x in xs:
        made.append(x.name)
        last = x
        made.append(last)
    for y in given:
        made.append((y, len(made)))
    k = 0
    while k < len(xs):
        k += 1
        if cast(int, xs[k - 1].name) == 3:
            return made
    for j in range(1, n):
        k -= j
    made.append(k)
    return made


@native
def slots(x: Node, leaf: Leaf) -> object:
    before = x.leaf
    x.leaf = leaf
    x.count = x.count + 2
    x.count += 1
    x.weight = x.weight * 2.0
    x.flag = not x.flag
    big = x.big
    if x.left is not None:
        x.left.leaf = x.leaf
        x.left.big = big
        x.right = x.left
    x.left = None
    return (before, big, x.flag)


@native
def made_new(x: Node, k: int, leaf: object) -> Node | None:
    if k < 0:
        return None
    made = new(Node)
    made.left = made.right = None
    made.count = k
    made.big = x.big
    made.flag = k > 2
    made.weight = 0.5
    made.leaf = leaf
    if k > 3:
        made.leaf = (leaf, x.leaf)
    made.items = [cast("Leaf", leaf), cast("Leaf", x.leaf)]
    made.table = x.table
    made.leaf = leaf
    return made


@native
def lists(xs: list[Leaf], k: int) -> object:
    one = popped(xs)
    if len(xs) > 1:
        xs[0] = xs[-1]
        xs[k] = xs[0]
        del xs[k]
    if k == 3:
        xs.clear()
    xs.append(Leaf(k))
    return (one, xs[0], len(xs))


@native
def tables(x: Node, k: int) -> object:
    found = x.table.get(k)
    if found is None:
        x.table[k] = Leaf(k)
    if k == 2:
        x.table.clear()
    return (found, x.table.get(k), len(x.table))


@native
def keys(xs: tuple[Leaf, ...], extra: object) -> tuple[object, ...]:
    key = Parts(len(xs) + 2)
    for k in range(len(xs)):
        key[k] = xs[k].name
    key[len(xs)] = extra
    return tuple(key)


@native
def calls(x: Node, leaf: object, k: int) -> object:
    made = made_new(x, k, (leaf, k))
    if made is None:
        return explode(leaf)
    deep = made_new(made, made.count - 1, explode(made.big))
    if k > 3:
        return explode(deep, made_new(x, 4, leaf))
    return (deep, explode(leaf), repr(k), made.table.get(k))


@native
def methods(x: Node, text: str) -> object:
    return (text.upper(), text.replace("e", text), x.table.keys(), getattr(x, "leaf"))  # noqa: B009


@native
def classes(x: object, k: int) -> object:
    if type(x) is Young:
        x.age = k
        return x.age
    if k == 3 or not isinstance(x, Node) or x.flag:
        return type(x)
    y: object = x
    for _ in range(k):
        if type(y) is Node and y.count > 2:
            y = y.left
    return (x.count, hasattr(x, "leaf"), y.count if type(y) is Node else None)


@native
def numbers(n: int, big: Boxed, x: float) -> tuple[object, ...]:
    words = scratch(n)
    for k in range(n):
        words[k] = wrapped(big) + k
    total = 0
    behind = words
    for _ in range(n):
        total += behind[0]
        behind = behind + 1
    again = Words(words.address)
    same = n == 0 or again[0] == words[0]
    return (total, same, double_bits(x), single_bits(x), single(x), get_ident() != 0)


@native
def called(address: int, n: int) -> int:
    return call(address, n)


@native
def swaps(x: Node, n: int) -> object:
    a: object = None
    b: object = x.leaf
    for _ in range(n):
        c = a
        a = b
        b = c
        x.leaf = a
    return (a, b)


@native
def passes(x: Node) -> object:
    one = x.items
    two = x.leaf
    x.items = []
    x.leaf = None
    first = one[0]
    del one[0]
    return (first, two, len(one))


@native
def moved(xs: list[Pair], first: Leaf, number: Boxed) -> object:
    made: list[object] = []
    for x in xs:
        put_all(x, ("first", "number"), (first, number), ("second",))
        made.append((x.first, x.number))
        put_all(x, ("second",), (None,))
    return made


@native
def pairs(xs: list[Pair], k: int) -> object:
    made: list[object] = []
    for x in xs:
        made.append(entitled(x.first, x.number))
        put(x, "number", x.number + k)
        second = x.second
        put(x, "second", None)
        made.append((x.first, second))
    if len(xs) > 1:
        one = xs[0]
        name = one.first
        xs.clear()
        made.append(entitled(name, k))
        made.append(one.first)
    return made


@native
def entitled(leaf: Leaf, k: int) -> object:
    return (explode(k), leaf.name, k)


@native
def given(k: int, *rest: object) -> object:
    found = counted(rest)
    if k >= 0:
        found = (found, rest[k])
    return (found, len(rest), explode(k, *rest) if len(rest) == 0 else explode(k))


@native
def counted(rest: Given) -> tuple[object, ...]:
    made: list[object] = []
    for k in range(len(rest)):
        one = rest[k]
        made.append((one, k))
    return (made, len(rest))


@native
def tried(x: Node, k: int, leaf: object) -> object:
    made: object = None
    try:
        made = (x.leaf, explode(k))
        made = (made, explode(k, leaf) if k > 3 else leaf)
        x.leaf = made
    except KeyError:
        made = (made, k)
    for n in range(3):
        try:
            if n == k:
                break
            made = (made, x.items[n], word(x.big))
        except OverflowError:
            made = explode(made)
        if n == 2:
            continue
    try:
        return (made, x.items[k])
    except IndexError:
        return made


@native
def addresses(x: Node, n: int) -> object:
    words = scratch(8)
    words[0] = id(x)
    words[1] = id(x.leaf)
    words[2] = words[3] = 0
    free = swap(words + 2, 0, 1)
    halves = Ints(words.address)
    halves[6] = n << 33 | n
    half = halves + 6
    held = x.leaf
    number = float(cast(Any, x.big)) if n > 2 else None
    x.leaf = explode(n)
    keep_alive(held)
    return (
        there(words[0]),
        free,
        swap(words + 2, 0, 1),
        half[0],
        halves[7],
        number,
        words[1] == id(held),
    )


@native
def put_by_name(x: Node, name: str, leaf: object) -> object:
    made = new(cast(type, type(x)))
    object.__setattr__(x, "right", None)
    object.__setattr__(x, name, (leaf, x.leaf))
    object.__setattr__(x, "leaf", made)
    return (leaf, x.right)


@native
def passed_on(x: Node, *rest: object) -> object:
    return MEANT(x, *rest) if x.flag else MEANT(x)


MEANT: Any = None
meant = variant(passed_on, "meant", "What it says.", MEANT=explode)


@native
def memory(numbers: list[float], count: int) -> object:
    own = scratch(count + 1)
    x = Reals(own.address)
    total = 0.0
    for k in range(count):
        x[k] = float(k) - 1.5
        x[k] = x[k] * 0.5
        rest = x + k
        total += rest[0] * 2.0
    narrow = Singles(scratch(count + 1).address)
    for k in range(count):
        narrow[k] = 0.1 * float(k)
    more = narrow + 1
    found = (total, x[0], x[count - 1], x.address == own.address)
    return (found, more[count - 2], narrow[0]) if count > 3 else None


@native
def quotient(a: float, b: float) -> object:
    """A float divided by another, and the ends of both."""
    return (min(a, b), max(a, b), min(b, a), a / b)


@native
def whole(number: float) -> object:
    return (int(number), int(-number * 0.5))


def given_of(function: Any, chance: random.Random) -> tuple[Any, ...]:
    """Arguments for one of the functions."""
    small = lambda: chance.randrange(-1, 7)  # noqa: E731
    leaf = chance.choice([None, Leaf("l"), ABSENT, 0, "", [], 3])
    makers: dict[str, Callable[[], tuple[Any, ...]]] = {
        "arithmetic": lambda: (chance.randrange(-99, 99), small(), chance.uniform(-9, 9)),
        "logic": lambda: (small(), small(), leaf),
        "loops": lambda: (small(), leaves(chance), tuple(leaves(chance))),
        "slots": lambda: (node(chance), Leaf("new")),
        "made_new": lambda: (node(chance), small(), leaf),
        "lists": lambda: (leaves(chance), max(0, small())),
        "tables": lambda: (node(chance), small()),
        "keys": lambda: (tuple(leaves(chance)), leaf),
        "calls": lambda: (node(chance), leaf, small()),
        "methods": lambda: (node(chance), chance.choice(["", "eel"])),
        "classes": lambda: (chance.choice([node(chance), leaf]), small()),
        "numbers": lambda: (chance.choice([0, 9, -1, 5000]), chance.choice([-7, 2**64 - 3]), 2.5),
        "swaps": lambda: (node(chance), small()),
        "passes": lambda: (node(chance),),
        "moved": lambda: (
            [Pair(Leaf(1), x, 3) for x in leaves(chance)], Leaf(2), chance.choice([1, 2**80])
        ),
        "given": lambda: (small(), *leaves(chance)),
        "tried": lambda: (node(chance), max(0, small()), leaf),
        "addresses": lambda: (node(chance), small()),
        "put_by_name": lambda: (node(chance), chance.choice(["left", "other", "leaf"]), leaf),
        "meant": lambda: (node(chance), *leaves(chance)),
        "memory": lambda: ([], max(0, small())),
        "quotient": lambda: (chance.uniform(-9, 9), chance.choice([0.0, -0.0, math.inf, 0.3])),
        "whole": lambda: (chance.choice([chance.uniform(-9, 9), -(2.0**63), math.inf, math.nan]),),
        "pairs": lambda: ([Pair(Leaf(1), x, small()) for x in (*leaves(chance), None)], small()),
    }  # fmt: skip
    return makers[function.__name__]()


ALL = (
    arithmetic, logic, loops, slots, made_new, lists, tables, keys, calls, methods, classes,
    numbers, swaps, passes, moved, pairs, given, tried, addresses, put_by_name, meant, memory,
    quotient, whole,
)  # fmt: skip
