"""The maxima of parts of regions, as a native function."""

from __future__ import annotations

from gnomon.native.words import Reals, Words, native

LOWEST = -1e308


@native
def maxima(
    data_at: int, images_at: int, rows_at: int, columns_at: int, found_at: int, places_at: int,
    regions: int, channels: int, h: int, w: int, down: int, right: int,
) -> None:  # fmt: skip
    """The first maximum of each part, (regions, channels, down, right), and where it lies in data.

    `data` (images, channels, h, w) and `found` are float64; `images` (regions,), `rows` (regions,
    2, down) and `columns` (regions, 2, right), where parts begin and end, and `places` are int64. A
    part without pixels has 0, and lies at -1.
    """
    rows = Words(rows_at)
    columns = Words(columns_at)
    images = Words(images_at)
    out = 0
    for r in range(regions):
        for c in range(channels):
            plane = (images[r] * channels + c) * h * w
            data = Reals(data_at) + plane
            for i in range(down):
                top = rows[2 * r * down + i]
                bottom = rows[(2 * r + 1) * down + i]
                for j in range(right):
                    left = columns[2 * r * right + j]
                    beyond = columns[(2 * r + 1) * right + j]
                    best = LOWEST
                    place = -1
                    for y in range(top, bottom):
                        line = data + y * w
                        for x in range(left, beyond):
                            value = line[x]
                            if value > best:
                                best = value
                                place = y * w + x
                    (Reals(found_at) + out)[0] = best if place >= 0 else 0.0
                    (Words(places_at) + out)[0] = plane + place if place >= 0 else -1
                    out += 1
