"""Lists of images: lines `number<TAB>labels<TAB>path`, as `.lst` files hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gnomon.base import FormatError


class Row(NamedTuple):
    """A line of a list: number, labels, path below the root."""

    number: int
    labels: list[float]
    path: str


def rows(name: str, text: str) -> Iterator[Row]:
    """The rows of a list's text; `name` is the file that errors name.

    >>> next(rows("x.lst", "3\\t1.5\\t2\\tcat.png"))
    Row(number=3, labels=[1.5, 2.0], path='cat.png')

    Raises:
        FormatError: a line is of another form.
    """
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip().split("\t")
        if words == [""]:
            continue
        try:
            yield Row(int(words[0]), [float(word) for word in words[1:-1]], words[-1])
        except ValueError:
            expected = "'number<TAB>labels<TAB>path'"
            raise FormatError(
                f"{name}: line {number}: expected {expected}, got {f'{line:.60}'!r}"
            ) from None
