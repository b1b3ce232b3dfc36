"""Sums over parts of regions whose weights are those of rows times those of columns, natively.

A *tap* is a place in an image (images, channels, h, w), and its weight. Those of part k of the
regions are number `ends[k]` to `ends[k + 1]`, in the first channel that the part takes; the others
of its group lie `step` further each. Weights are float64, data and sums float32, or float64 where
the name says so.
"""

from __future__ import annotations

from gnomon.native.words import Reals, Singles, Words, native, single, variant

Values = Singles
FARTHEST = 4e15  # numbers of samples up to which one more changes a float64


@native
def between(place: float, weight: float, last: int, begin: int, weights: Reals) -> int:
    """Share a sample's weight among the pixels before and behind it; where the weights begin.

    The samples of a part come in order: `begin` is below 0 for the first one.
    """
    inside = min(max(place, 0.0), float(last))
    low = int(inside)
    if begin < 0:
        begin = low
    share = inside - float(low)
    weights[low - begin] += weight * (1.0 - share)
    weights[low - begin + int(low < last)] += weight * share
    return begin


@native
def place_of(start: float, k: float, step: float, count: float, narrow: bool) -> float:
    """Where sample k of `count` lies in a part `step` long, rounded as numbers of the data are.

    A sample on the border of the image is in it by that rounding or not.
    """
    if narrow:
        return single(start + single(single((k + 0.5) * step) / count))
    return start + (k + 0.5) * step / count


@native
def sampled(
    start: float, samples: float, apart: Reals, size: int, weights: Reals, narrow: bool
) -> int:
    """Weights along an axis of so many samples behind `start`: where they begin.

    They are in a part `apart[0]` pixels long, `apart[1]` of them in a pixel, and count `apart[2]`
    each. A sample lies between two pixels and is interpolated; up to 1 outside of the image it is
    the pixel at the border, and 0 beyond, where no time is spent.
    """
    begin = -1
    k = (-1.0 - start) * apart[1] - 2.0
    if k > FARTHEST:
        return 0
    k = float(int(max(0.0, k)))  # 0 of NaN
    count = samples
    if apart[1] > 0.0:
        count = min(count, (float(size) - start) * apart[1] + 2.0)
    while k < count:
        place = place_of(start, k, apart[0], samples, narrow)
        k += 1.0
        if place >= -1.0 and place <= float(size):
            begin = between(place, apart[2], size - 1, begin, weights)
    return begin if begin > 0 else 0


@native
def sampled_parts(
    starts_at: int, counts_at: int, apart_at: int, begins_at: int, weights_at: int, regions: int,
    bins: int, width: int, size: int, narrow: int,
) -> None:  # fmt: skip
    """`sampled` for all parts (regions, bins), each with room for `width` weights, which are 0.

    They begin at `starts` (regions, bins); `counts` (regions,) and `apart` (regions, 3) say which
    samples they have.
    """
    starts = Reals(starts_at)
    counts = Reals(counts_at)
    begins = Words(begins_at)
    for r in range(regions):
        for b in range(bins):
            at = r * bins + b
            weights = Reals(weights_at) + at * width
            apart = Reals(apart_at) + 3 * r
            begins[at] = sampled(starts[at], counts[r], apart, size, weights, narrow != 0)


@native
def of_part(
    down: Reals, tall: int, right: Reals, wide: int, place: int, w: int, places: Words,
    weights: Reals,
) -> int:  # fmt: skip
    """The taps of one part, whose first pixel lies at `place`: how many these are."""
    count = 0
    for y in range(tall):
        if down[y] == 0.0:
            continue
        for x in range(wide):
            if right[x] == 0.0:
                continue
            places[count] = place + y * w + x
            weights[count] = down[y] * right[x]
            count += 1
    return count


@native
def of_regions(
    images_at: int, groups_at: int, tops_at: int, downs_at: int, lefts_at: int, rights_at: int,
    ends_at: int, places_at: int, weights_at: int, regions: int, rows: int, columns: int,
    tall: int, wide: int, channels: int, h: int, w: int,
) -> None:  # fmt: skip
    """The taps of all parts (regions, rows, columns) in order.

    A region is of one of `images` (below 0: of none), and a part of (rows, columns) takes the
    channels from the one on that `groups` says. Weights are `downs` (regions, rows, tall) of the
    pixels from `tops` on, and `rights` (regions, columns, wide) of those from `lefts` on.
    """
    images = Words(images_at)
    groups = Words(groups_at)
    tops = Words(tops_at)
    lefts = Words(lefts_at)
    ends = Words(ends_at)
    found = 0
    part = 0
    ends[0] = 0
    for r in range(regions):
        seen = tall if images[r] >= 0 else 0
        for i in range(rows):
            for j in range(columns):
                down = r * rows + i
                right = r * columns + j
                plane = images[r] * channels + groups[i * columns + j]
                found += of_part(
                    Reals(downs_at) + down * tall, seen, Reals(rights_at) + right * wide, wide,
                    (plane * h + tops[down]) * w + lefts[right], w, Words(places_at) + found,
                    Reals(weights_at) + found,
                )  # fmt: skip
                part += 1
                ends[part] = found


@native
def take(places: Words, weights: Reals, data: Values, first: int, last: int, sums: Values) -> None:
    """Store the sum of `data` by the taps from number `first` to before `last`."""
    total = 0.0
    for tap in range(first, last):
        total += weights[tap] * data[places[tap]]
    sums[0] = total


@native
def give(places: Words, weights: Reals, data: Values, first: int, last: int, sums: Values) -> None:
    """Add to `data` what a sum says of it."""
    value = sums[0]
    for tap in range(first, last):
        data[places[tap]] += weights[tap] * value


visit = take


@native
def summed(
    ends_at: int, places_at: int, weights_at: int, data_at: int, sums_at: int, regions: int,
    parts: int, channels: int, step: int,
) -> None:  # fmt: skip
    """Sums (regions, channels, parts) of `data` by the taps."""
    places = Words(places_at)
    weights = Reals(weights_at)
    for r in range(regions):
        ends = Words(ends_at) + r * parts
        for c in range(channels):
            data = Values(data_at) + c * step
            sums = Values(sums_at) + (r * channels + c) * parts
            for k in range(parts):
                visit(places, weights, data, ends[k], ends[k + 1], sums + k)


DOC = "The same of float64."
TRANSPOSED = "The transposed map: adds to `data` what each of the sums says of it."
take_doubles = variant(take, "take_doubles", DOC, Values=Reals)
give_doubles = variant(give, "give_doubles", DOC, Values=Reals)
summed_doubles = variant(summed, "summed_doubles", DOC, Values=Reals, visit=take_doubles)
shared_out = variant(summed, "shared_out", TRANSPOSED, visit=give)
shared_out_doubles = variant(
    summed, "shared_out_doubles", TRANSPOSED, Values=Reals, visit=give_doubles
)
