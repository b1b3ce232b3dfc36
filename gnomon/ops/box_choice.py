"""Boxes chosen one after another, as native functions: what is left of those that overlap, matches.

Addresses are of dense arrays, numbers in float64 and places in int64.
"""

from __future__ import annotations

from gnomon.native.words import Reals, Words, native, single, variant


@native
def rounded(number: float) -> float:
    """A number as it is: `covers_single` has `narrowed` here."""
    return number


@native
def narrowed(number: float) -> float:
    """A number rounded to float32."""
    return single(number)


@native
def shared_side(low: float, high: float, first: float, last: float) -> float:
    """The length that two spans have in common; 0 where they have none."""
    start = low if low > first else first
    stop = high if high < last else last
    return stop - start if stop > start else 0.0


@native
def shared_area(sides: Reals, count: int, i: int, k: int) -> float:
    """The area that two boxes have in common; `sides` as for `survive`."""
    width = rounded(shared_side(sides[i], sides[2 * count + i], sides[k], sides[2 * count + k]))
    y = sides + count
    height = rounded(shared_side(y[i], y[2 * count + i], y[k], y[2 * count + k]))
    return rounded(width * height)


@native
def union(sides: Reals, count: int, i: int, k: int, shared: float) -> float:
    """The area of two boxes that have `shared` of it in common."""
    area = sides + 4 * count
    return rounded(rounded(area[i] + area[k]) - shared)


@native
def covers(sides: Reals, count: int, i: int, k: int, limit: float) -> bool:
    """Whether two boxes share more than `limit` times their union; `sides` as for `survive`."""
    shared = shared_area(sides, count, i, k)
    return shared > union(sides, count, i, k, shared) * limit


@native
def is_free(
    sides: Reals, classes: Reals, kept: Words, found: int, count: int, k: int, limit: float
) -> bool:
    """Whether none of the `found` boxes that were kept covers a box of its class."""
    return not any(
        classes[kept[j]] == classes[k] and covers(sides, count, kept[j], k, limit)
        for j in range(found)
    )


@native
def survive(
    sides_at: int, classes_at: int, kept_at: int, count: int, most: int, limit: float
) -> int:
    """Put the first `most` boxes that survive into `kept`: how many these are.

    Boxes come best first: `sides` (5, count) are left, top, right, bottom and area. One goes where
    a survivor of its class shares more than `limit` times the union with it.
    """
    sides = Reals(sides_at)
    classes = Reals(classes_at)
    kept = Words(kept_at)
    found = 0
    for k in range(count):
        if found == most:
            break
        if is_free(sides, classes, kept, found, count, k, limit):
            kept[found] = k
            found += 1
    return found


DOC = "The same with sums rounded to float32."
shared_area_single = variant(shared_area, "shared_area_single", DOC, rounded=narrowed)
union_single = variant(union, "union_single", DOC, rounded=narrowed)
AREAS = {"shared_area": shared_area_single, "union": union_single}
covers_single = variant(covers, "covers_single", DOC, **AREAS)
is_free_single = variant(is_free, "is_free_single", DOC, covers=covers_single)
survive_single = variant(survive, "survive_single", DOC, is_free=is_free_single)


@native
def highest(shares: Reals, best: Words, anchors: int) -> int:
    """The free anchor that a box shares most with, the first of several; -1 where all are taken."""
    found = -1
    for k in range(anchors):
        if best[k] < 0 and (found < 0 or shares[k] > shares[found]):
            found = k
    return found


@native
def first_equal(shares: Reals, most: float, anchors: int) -> int:
    """The first box that shares so much with an anchor, of those of which one does."""
    b = 0
    while shares[b * anchors] != most:
        b += 1
    return b


@native
def is_before(shares: Reals, one: int, place: int, other: int, at: int) -> bool:
    """Whether a box shares more with its anchor than another, or as much with an earlier one."""
    mine = shares[one + place]
    most = shares[other + at]
    return mine > most or (mine == most and place < at)


@native
def next_box(shares: Reals, places: Words, boxes: int, anchors: int) -> int:
    """The box whose own anchor shares most with it, the first anchor's of several; -1: none is."""
    found = -1
    for b in range(boxes):
        if places[b] >= 0 and (
            found < 0 or is_before(shares, b * anchors, places[b], found * anchors, places[found])
        ):
            found = b
    return found


@native
def share(
    sides: Reals, count: int, i: int, k: int, row: Reals, top: Reals, anchors: int
) -> None:  # fmt: skip
    """Put the share of their union that box `i` has in common with boxes from `k` on into `row`.

    `top` keeps the largest of each.
    """
    for j in range(anchors):
        shared = shared_area(sides, count, i, k + j)
        whole = union(sides, count, i, k + j, shared)
        row[j] = rounded(shared / whole) if whole > 0.0 else 0.0
        top[j] = row[j] if row[j] > top[j] else top[j]


@native
def match(
    sides_at: int, shares_at: int, places_at: int, best_at: int, top_at: int, count: int,
    begin: int, boxes: int, anchors: int, least: float, threshold: float,
) -> None:  # fmt: skip
    """Put the box of each anchor into `best` (anchors,), or -1, and its largest share into `top`.

    `sides` (5, count), as for `survive`, ends with the anchors; the boxes lie there from `begin`
    on. The pair that shares most is matched, then the one that shares most of all others, down to
    `least`; then the anchors that are left get the box they share most with, if that is above
    `threshold`. `shares` is room for a number of each box and anchor, `places` for a word of each
    box.
    """
    sides = Reals(sides_at)
    shares = Reals(shares_at)
    best = Words(best_at)
    top = Reals(top_at)
    places = Words(places_at)
    for k in range(anchors):
        best[k] = -1
        top[k] = 0.0
    for b in range(boxes):
        row = shares + b * anchors
        share(sides, count, begin + b, count - anchors, row, top, anchors)
        places[b] = highest(row, best, anchors)
    for _ in range(boxes):
        b = next_box(shares, places, boxes, anchors)
        if b < 0:
            break
        place = places[b]
        if not shares[b * anchors + place] > least:
            break
        best[place] = b
        places[b] = -1
        for other in range(boxes):
            if places[other] == place:
                places[other] = highest(shares + other * anchors, best, anchors)
    for k in range(anchors):
        if best[k] < 0 and top[k] > threshold:
            best[k] = first_equal(shares + k, top[k], anchors)


share_single = variant(share, "share_single", DOC, rounded=narrowed, **AREAS)
match_single = variant(match, "match_single", DOC, share=share_single)
