"""Files of token vectors: a line has a token and its numbers."""

from __future__ import annotations

import io
import os
import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gnomon.base import FormatError
from gnomon.ground.files import opened


def read_vectors(
    path: str | os.PathLike[str], delimiter: str, encoding: str
) -> tuple[dict[str, int], np.ndarray]:
    """The tokens of a file with the numbers of their rows, and the rows, in float32.

    A line of a token and one number is a header and is passed over, as a token's second line is,
    each with a warning.

    Raises:
        FileError: it cannot be read.
        FormatError: a line has no number, or another count of them; there is no vector at all.
    """
    path = Path(path).expanduser()
    rows, values, length = {}, array("f"), 0
    for where, token, vector in _lines(path, delimiter, encoding):
        if token in rows:
            warnings.warn(f"{where}: token {token!r} had a vector, which stays", stacklevel=4)
            continue
        if len(vector) == 1:
            warnings.warn(f"{where}: {token!r} and one number are left out", stacklevel=4)
            continue
        length = length or len(vector)
        if len(vector) != length:
            raise FormatError(f"{where}: expected {length} numbers, got {len(vector)}")
        rows[token] = len(rows)
        values.extend(vector)
    if not rows:
        raise FormatError(f"{path}: expected lines of a token and its vector, got none")
    return rows, np.array(values, np.float32).reshape(-1, length)


def _lines(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[str, str, array[float]]]:
    """Where each line stands, its token and its numbers."""
    with opened("embedding", path, "rb") as stream:
        lines = io.TextIOWrapper(stream, encoding=encoding)
        for number, line in enumerate(lines, 1):
            where = f"{path}, line {number}"
            token, *numbers = line.rstrip().split(delimiter)
            yield where, token, _vector(where, token, numbers, delimiter)


def _vector(where: str, token: str, numbers: list[str], delimiter: str) -> array[float]:
    """The numbers of a line.

    Raises:
        FormatError: there is none, or one is no number.
    """
    if not numbers:
        expected = f"a token and numbers with {delimiter!r} between"
        raise FormatError(f"{where}: expected {expected}, got {token!r:.60}")
    try:
        return array("f", map(float, numbers))
    except ValueError as error:
        raise FormatError(f"{where}: expected numbers after {token!r:.60}: {error}") from None
