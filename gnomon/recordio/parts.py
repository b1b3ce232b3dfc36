"""The parts a record is made of: bytes of a record, a record from bytes, the way on after damage.

A file is a sequence of parts: magic word, a word with a kind in its upper 3 bits and a length in
the lower 29, that many bytes, zeros up to a multiple of 4. A record is one part (kind 0). Where it
holds the magic word itself at a multiple of 4, that word is left out and the record goes on in
another part: kinds 1, 2 ..., 3. So a magic word at a multiple of 4 always starts a part, and a
reader can find its way again. A length is believed where a magic word follows what it tells of;
elsewhere the bytes are searched for one, which would show that the length is wrong.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import TYPE_CHECKING

import numpy as np

from gnomon.base import FormatError, GnomonError, Later
from gnomon.ground.files import kind_of
from gnomon.native.words import native, word_at

if TYPE_CHECKING:
    from gnomon.native import serve
else:
    serve = Later("gnomon.native.serve")

MAGIC_WORD = 0xCED7230A
MAGIC = struct.pack("<I", MAGIC_WORD)
WORDS = np.dtype("<u4")
WORD = np.frombuffer(MAGIC, WORDS)
HEADER = struct.Struct("<4sI")
WORD_AT = struct.Struct("<I")
WHOLE, FIRST, MIDDLE, LAST = range(4)
LIMIT = 1 << 29
CHUNK = 1 << 20
LARGE = 1 << 14
FEW = 16  # blocks cut in Python before native code is loaded, which takes milliseconds
AT_ONCE = 1 << 16  # few enough that a cache holds them until they go

ReadAt = Callable[[int, int], bytes]


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


class Blocks:
    """Bytes of a file in turn, cut out of a block of them that is held.

    `read_at(nbytes, offset)` gives bytes of the file, fewer at its end, which is at `end`. The
    block are the bytes from offset `begin` on. `ahead` is how many are read at once: more than are
    asked for as long as records are small, and so few that the cache still holds them when they are
    copied out; large records are read one by one, to where they stay.
    """

    def __init__(self, read_at: ReadAt, end: int, name: str, ahead: int) -> None:
        self.read_at, self.end, self.name, self.ahead = read_at, end, name, ahead
        self.offset = self.begin = 0
        self.block = b""
        self.found: list[bytes] = []
        self.rest = iter(self.found)
        self.told = 0, 0

    def close(self) -> None:
        """Refuse to read from now on: the number of a closed file may be another one's."""
        self.read_at, self.begin, self.block = self._closed, 0, b""
        self.seek(0)
        self.end = max(1, self.end)

    def _closed(self, nbytes: int, at: int) -> bytes:
        raise GnomonError(f"{self.name}: read: the file was closed")

    def handing(self, found: list[bytes], end: int) -> Iterator[bytes]:
        """The records from here up to `end`; none any more when the reader is moved."""
        self.told = 0, self.offset
        self.offset, self.found, self.rest = end, found, iter(found)
        return self.rest

    def tell(self) -> int:
        """Where the record begins that comes next."""
        left = length_hint(self.rest)
        if not left:
            return self.offset
        number, at = self.told  # a record found, and where it begins
        passed = self.found[number : len(self.found) - left]
        at += sum(8 + (len(data) + 3 & ~3) for data in passed)
        self.told = number + len(passed), at
        return at

    def seek(self, at: int) -> None:
        """Go on at another place."""
        self.found.clear()
        self.offset = at

    @property
    def left(self) -> int:
        """Bytes between here and the end."""
        return self.end - self.offset

    def fail(self, what: str, expected: object, got: object, at: int) -> FormatError:
        """The error for `what` at the offset `at`, ready to be raised."""
        return FormatError(f"{self.name}: offset {at}: {what}: expected {expected}, got {got}")

    def hold(self, nbytes: int) -> None:
        """Have the block begin here, and hold `nbytes` bytes if there are so many."""
        self.begin = at = self.offset
        self.block = self.read_at(nbytes if nbytes > LARGE else max(nbytes, self.ahead), at)

    def take(self, nbytes: int, what: str) -> bytes:
        """The next `nbytes` bytes."""
        start = self.offset - self.begin
        if start < 0 or start + nbytes > len(self.block):
            self.hold(nbytes)
            start = 0
        data = self.block[start : start + nbytes]
        if len(data) < nbytes:
            got = f"{len(data)} before the end"
            raise self.fail(what, f"{nbytes} bytes", got, self.offset)
        self.offset += nbytes
        return data

    def skip(self, nbytes: int, what: str) -> bytes:
        """Pass over `nbytes` bytes, which must be there; gives none of them."""
        if nbytes > self.left:
            got = f"{self.left} before the end"
            raise self.fail(what, f"{nbytes} bytes", got, self.offset)
        self.offset += nbytes
        return b""

    def is_at_record(self) -> bool:
        """Whether a magic word is next."""
        if self.left < 4:
            return False
        found = self.take(4, "magic word") == MAGIC
        self.offset -= 4
        return found


@native
def cut(block: bytes, at: int, found: list[bytes]) -> int:
    """Append the records that start at a place in a block; gives where the last of them ends.

    Those are of one part each, about `AT_ONCE` bytes of them, and a magic word follows the last.
    """
    last = len(block) - 4
    limit = at + AT_ONCE
    if at < 0 or at > last - 4 or word_at(block, at) != MAGIC_WORD:
        return at
    while at < limit:
        length = word_at(block, at + 4)
        end = at + 8 + (length + 3 & -4)
        if length >= LIMIT or end > last or word_at(block, end) != MAGIC_WORD:
            return at
        found.append(block[at + 8 : at + 8 + length])
        at = end
        if at > last - 4:
            return at
    return at


@functools.cache
def _cut_natively() -> serve.Later:
    """`cut` as native code, compiled where that pays: it takes half a second."""
    return serve.Later(cut, None, 4096)


def records(r: Blocks) -> Iterator[bytes | None]:
    """The records from where `r` stands on, and None where it stands at the end.

    It may be moved between two of them.

    Raises:
        FormatError: as `record`.
    """
    times = 0
    while True:
        found, at = list[bytes](), r.offset - r.begin
        times += 1
        end = _cut_natively().way(r.block, at, found) if times > FEW else None
        if end is None:
            end = cut(r.block, at, found)
        if found:
            yield from r.handing(found, r.begin + end)
        elif r.offset < r.end:
            yield record(r)
            yield from large_records(r)
        else:
            yield None


def large_records(r: Blocks) -> Iterator[bytes]:
    """The records from here on that are large, of one part and not in the block.

    Each is read by itself, to where it stays; then the header of the next one, which is the block.
    """
    read, header, stop, here = r.read_at, HEADER.unpack_from, r.end, r.offset
    start, held = here - r.begin, r.begin + len(r.block)
    if start < 0 or here + 8 > held:
        return
    magic, length = header(r.block, start)
    while magic == MAGIC and LARGE < length < LIMIT:
        end = here + 8 + (length + 3 & ~3)
        if not held < end < stop - 8:
            return
        data, block = read(length, here + 8), read(HEADER.size, end)
        if len(data) < length or not block.startswith(MAGIC) or len(block) < HEADER.size:
            return
        r.offset = r.begin = here = end
        r.block = block
        yield data
        if r.offset != here:
            return
        magic, length = header(block)


def record(r: Blocks) -> bytes:
    """The record that starts here.

    Raises:
        FormatError: it is damaged; it names file and offset. `r` stays where it is.
    """
    offset, start, block = r.offset, r.offset - r.begin, r.block
    if not 0 <= start <= len(block) - HEADER.size:
        r.hold(HEADER.size)
        start, block = 0, r.block
    if block.startswith(MAGIC, start) and start + 8 <= len(block):
        (length,) = WORD_AT.unpack_from(block, start + 4)
        size = 8 + (length + 3 & ~3)
        if start + size + 4 > len(block) and size < LIMIT and offset + size < r.end:
            for data in large_records(r):
                return data
            r.hold(size + 8)
            start, block = 0, r.block
        if block.startswith(MAGIC, start + size):  # most are of one part
            r.offset += size
            return block[start + 8 : start + 8 + length]
    try:
        return _record(r, r.take)
    except FormatError:
        r.offset = offset
        raise


def skip_record(r: Blocks) -> None:
    """Pass over the record that starts here; FormatError as far as its headers tell."""
    _record(r, r.skip)


def _record(r: Blocks, take: Callable[[int, str], bytes]) -> bytes:
    """A record of any form, its payload taken by `take`."""
    kind, data = _part(r, take, (WHOLE, FIRST))
    if kind == WHOLE:
        return data
    parts = [data]
    while kind != LAST:
        kind, data = _part(r, take, (MIDDLE, LAST))
        parts.append(data)
    return MAGIC.join(parts)


def _part(
    r: Blocks, take: Callable[[int, str], bytes], kinds: tuple[int, ...]
) -> tuple[int, bytes]:
    at = r.offset
    head = r.take(8, "record header")
    magic, word = HEADER.unpack(head)
    if magic != MAGIC:
        got = magic.hex() + ("" if at else kind_of(head))
        raise r.fail("record header", f"magic word {MAGIC.hex()}", got, at)
    kind, length = word >> 29, word & (LIMIT - 1)
    if kind not in kinds:
        raise r.fail("record header", f"part of kind {kinds[0]} or {kinds[1]}", kind, at)
    data = take(length, "record")
    if length % 4:
        r.skip(-length % 4, "padding of a record")
    if not r.is_at_record() and (inside := aligned(data)):  # the length is wrong, not the data
        raise r.fail("record", f"an end within {inside[0]} bytes", f"{length} and a magic word", at)
    return kind, data


def resync(r: Blocks, damaged: int) -> None:
    """Go to the first whole record that starts after offset `damaged`, or to the end."""
    for at in _find_magic(r, damaged + 1):
        r.offset = at
        with contextlib.suppress(FormatError):
            skip_record(r)
            if at % 4 == 0 or r.left == 0 or r.is_at_record():
                r.offset = at
                return
    r.offset = r.end


def _find_magic(r: Blocks, start: int) -> Iterator[int]:
    """Offsets of the magic word from `start` on; the caller may move the reader meanwhile."""
    while start < r.end:
        r.offset = start
        chunk = r.take(min(CHUNK, r.left), "record")
        at = chunk.find(MAGIC)
        while at >= 0:
            yield start + at
            at = chunk.find(MAGIC, at + 1)
        start += CHUNK - 3  # a word may lie across two chunks
