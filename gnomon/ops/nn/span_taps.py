"""The taps of parts of regions whose weights are those of rows times those of columns, natively."""

from __future__ import annotations

from gnomon.native.words import Reals, Words, native


@native
def of_part(
    down: Reals, tall: int, right: Reals, wide: int, source: int, row: int, step: int, target: int,
    targets: Words, sources: Words, weights: Reals,
) -> int:  # fmt: skip
    """The taps of one part: how many these are.

    The first pixel's row of channels is `source`, that below it is `row` further, that beside it
    `step`.
    """
    count = 0
    for y in range(tall):
        if down[y] == 0.0:
            continue
        for x in range(wide):
            if right[x] == 0.0:
                continue
            targets[count] = target
            sources[count] = source + y * row + x * step
            weights[count] = down[y] * right[x]
            count += 1
    return count


@native
def of_regions(
    images_at: int, groups_at: int, tops_at: int, downs_at: int, lefts_at: int, rights_at: int,
    targets_at: int, sources_at: int, weights_at: int, first: int, regions: int, rows: int,
    columns: int, tall: int, wide: int, h: int, w: int, groups: int,
) -> int:  # fmt: skip
    """The taps of all parts (regions, rows, columns) in order: how many these are.

    The image of each region (`images`; below 0: none) has h w rows of channels for each of so many
    `groups`, of which a part takes the one of (rows, columns). Weights are float64: `downs`
    (regions, rows, tall) of the pixels from `tops` on, `rights` (regions, columns, wide) of those
    from `lefts` on. The target of the first part is `first`.
    """
    images = Words(images_at)
    which = Words(groups_at)
    tops = Words(tops_at)
    lefts = Words(lefts_at)
    found = 0
    target = first
    for r in range(regions):
        if images[r] < 0:
            target += rows * columns
            continue
        for i in range(rows):
            for j in range(columns):
                down = r * rows + i
                right = r * columns + j
                pixel = (images[r] * h + tops[down]) * w + lefts[right]
                found += of_part(
                    Reals(downs_at) + down * tall, tall, Reals(rights_at) + right * wide, wide,
                    pixel * groups + which[i * columns + j], w * groups, groups, target,
                    Words(targets_at) + found, Words(sources_at) + found,
                    Reals(weights_at) + found,
                )  # fmt: skip
                target += 1
    return found
