"""The maxima of parts of regions, as a native function."""

from __future__ import annotations

from gnomon.native.words import Reals, Words, native

LOWEST = -3.4028234663852886e38  # the lowest float32; MXNet takes it for any dtype


@native
def maximum(
    data: Reals, w: int, rows: Words, columns: Words, down: int, right: int, found: Reals,
    places: Words, plane: int,
) -> None:  # fmt: skip
    """The first maximum of one part of an image, and where it lies; `plane` is where that does."""
    best = LOWEST if rows[0] < rows[down] and columns[0] < columns[right] else 0.0
    place = -1
    for y in range(rows[0], rows[down]):
        for x in range(columns[0], columns[right]):
            value = data[y * w + x]
            if value > best:
                best = value
                place = y * w + x
    found[0] = best
    places[0] = plane + place if place >= 0 else -1


@native
def maxima(
    data_at: int, images_at: int, rows_at: int, columns_at: int, found_at: int, places_at: int,
    regions: int, channels: int, h: int, w: int, down: int, right: int,
) -> None:  # fmt: skip
    """The first maximum of each part, (regions, channels, down, right), and where it lies in data.

    `data` (images, channels, h, w) and `found` are float64; `images` (regions,), `rows` (regions,
    2, down) and `columns` (regions, 2, right), where parts begin and end, and `places` are int64. A
    part without pixels has 0, one without a pixel above `LOWEST` has that; both lie at -1.
    """
    images = Words(images_at)
    size = down * right
    for r in range(regions):
        for c in range(channels):
            plane = (images[r] * channels + c) * h * w
            data = Reals(data_at) + plane
            rows = Words(rows_at) + 2 * r * down
            columns = Words(columns_at) + 2 * r * right
            found = Reals(found_at) + (r * channels + c) * size
            places = Words(places_at) + (r * channels + c) * size
            of_plane(data, w, rows, columns, down, right, found, places, plane)


@native
def of_plane(
    data: Reals, w: int, rows: Words, columns: Words, down: int, right: int, found: Reals,
    places: Words, plane: int,
) -> None:  # fmt: skip
    """The maxima of all parts of a region, in one channel."""
    for i in range(down):
        for j in range(right):
            out = i * right + j
            maximum(data, w, rows + i, columns + j, down, right, found + out, places + out, plane)
