"""The first few of many keys in order, in native code: a heap, whose root is the last of them."""

from __future__ import annotations

from gnomon.native.memory import Struct
from gnomon.native.words import Reals, Singles, Words, native, variant

Values = Singles
DOC = "Where the first `count` of each row stand, in order: equal ones as they were."


class Selection(Struct):
    """Rows of keys, and room for the places of the first `count` of each."""

    keys: int
    places: int
    rows: int
    length: int
    count: int
    size: int  # bytes of a key
    sign: float  # times which the greatest keys come first
    lacking: int  # becomes 1 where a row has fewer numbers


@native
def first_singles(s: Selection) -> None:
    """Where the first `count` of each row stand, in order: equal ones as they were."""
    for row in range(s.rows):
        keys = Values(s.keys + row * s.length * s.size)
        heap = Words(s.places + row * s.count * 8)
        place = fill_single(s, keys, heap)
        if place < 0:
            s.lacking = 1
            return
        while place < s.length:
            heap[0] = place
            sink_single(s, keys, heap, 0, s.count)
            place = next_single(s, keys, heap[0], place + 1)
        for k in range(1, s.count):
            last = heap[s.count - k]
            heap[s.count - k] = heap[0]
            heap[0] = last
            sink_single(s, keys, heap, 0, s.count - k)


@native
def fill_single(s: Selection, keys: Values, heap: Words) -> int:
    """Make a heap of the first numbers: the place of the next key that belongs there, or -1."""
    have = 0
    place = 0
    while place < s.length and have < s.count:
        if keys[place] == keys[place]:
            heap[have] = place
            have += 1
        place += 1
    if have < s.count:
        return -1
    for k in range(have):
        sink_single(s, keys, heap, have - 1 - k, have)
    return next_single(s, keys, heap[0], place)


@native
def next_single(s: Selection, keys: Values, last: int, place: int) -> int:
    """The place from this one on of a key that comes before the last one: NaN never does."""
    sign = s.sign
    bound = keys[last] * sign
    length = s.length
    while place < length and not keys[place] * sign > bound:
        place += 1
    return place


@native
def sink_single(s: Selection, keys: Values, heap: Words, at: int, size: int) -> None:
    """Let the place at a node of a heap sink below those that come behind it."""
    place = heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and is_before_single(s, keys, heap[child], heap[child + 1]):
            child += 1
        if not is_before_single(s, keys, place, heap[child]):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = place


@native
def is_before_single(s: Selection, keys: Values, one: int, other: int) -> bool:
    a = keys[one] * s.sign
    b = keys[other] * s.sign
    return one < other if a == b else a > b


is_before_double = variant(is_before_single, "is_before_double", None, Values=Reals)
sink_double = variant(
    sink_single, "sink_double", None, Values=Reals, is_before_single=is_before_double
)
next_double = variant(next_single, "next_double", None, Values=Reals)
fill_double = variant(
    fill_single, "fill_double", None, Values=Reals, sink_single=sink_double, next_single=next_double
)
first_doubles = variant(
    first_singles, "first_doubles", DOC, Values=Reals, sink_single=sink_double,
    next_single=next_double, fill_single=fill_double,
)  # fmt: skip
