"""The parts a record is made of: bytes of a record, a record from bytes, the way on after damage.

A file is a sequence of parts: magic word, a word with a kind in its upper 3 bits and a length in
the lower 29, that many bytes, zeros up to a multiple of 4. A record is one part (kind 0). Where it
holds the magic word itself at a multiple of 4, that word is left out and the record goes on in
another part: kinds 1, 2 ..., 3. So a magic word at a multiple of 4 always starts a part, and a
reader can find its way again.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator

import numpy as np

from gnomon.base import FormatError
from gnomon.files import Reader

MAGIC = struct.pack("<I", 0xCED7230A)
WORDS = np.dtype("<u4")
WORD = np.frombuffer(MAGIC, WORDS)
HEADER = struct.Struct("<4sI")
WHOLE, FIRST, MIDDLE, LAST = range(4)
LIMIT = 1 << 29
CHUNK = 1 << 20


def encode(data: bytes) -> bytes:
    """A record as it stands in a file."""
    cuts = aligned(data)
    starts, ends = [0, *(cut + 4 for cut in cuts)], [*cuts, len(data)]
    chunks = []
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        kind = WHOLE if not cuts else FIRST if i == 0 else LAST if i == len(cuts) else MIDDLE
        chunks += [MAGIC, struct.pack("<I", kind << 29 | (end - start)), data[start:end]]
        chunks.append(bytes(-(end - start) % 4))
    return b"".join(chunks)


def aligned(data: bytes) -> list[int]:
    """Where the magic word stands at a multiple of 4.

    >>> aligned(MAGIC + b"1" + MAGIC)
    [0]
    """
    found = np.frombuffer(data, WORDS, len(data) // 4) == WORD
    return (np.flatnonzero(found) * 4).tolist() if np.count_nonzero(found) else []


def record(r: Reader, take: Callable[[int, str], bytes]) -> bytes:
    """The record that starts here, its payload taken by `take`: `r.take`, or `r.skip` to pass."""
    kind, data = _part(r, take, (WHOLE, FIRST))
    if kind == WHOLE:
        return data
    parts = [data]
    while kind != LAST:
        kind, data = _part(r, take, (MIDDLE, LAST))
        parts.append(data)
    return MAGIC.join(parts)


def _part(
    r: Reader, take: Callable[[int, str], bytes], kinds: tuple[int, ...]
) -> tuple[int, bytes]:
    at = r.offset
    magic, word = HEADER.unpack(r.take(8, "record header"))
    if magic != MAGIC:
        raise r.fail("record header", f"magic word {MAGIC.hex()}", magic.hex(), at)
    kind, length = word >> 29, word & (LIMIT - 1)
    if kind not in kinds:
        raise r.fail("record header", f"part of kind {kinds[0]} or {kinds[1]}", kind, at)
    data = take(length, "record")
    if inside := aligned(data):  # the length is wrong, not the data
        raise r.fail("record", f"an end within {inside[0]} bytes", f"{length} and a magic word", at)
    if length % 4:
        r.skip(-length % 4, "padding of a record")
    return kind, data


def resync(r: Reader, damaged: int) -> None:
    """Go to the first whole record that starts after offset `damaged`, or to the end."""
    for at in _find_magic(r, damaged + 1):
        r.seek(at)
        with contextlib.suppress(FormatError):
            record(r, r.skip)
            if at % 4 == 0 or r.left == 0 or r.take(4, "magic word") == MAGIC:
                r.seek(at)
                return
    r.seek(r.end)


def _find_magic(r: Reader, start: int) -> Iterator[int]:
    """Offsets of the magic word from `start` on; the caller may move the reader meanwhile."""
    while start < r.end:
        r.seek(start)
        chunk = r.take(min(CHUNK, r.left), "record")
        at = chunk.find(MAGIC)
        while at >= 0:
            yield start + at
            at = chunk.find(MAGIC, at + 1)
        start += CHUNK - 3  # a word may lie across two chunks
