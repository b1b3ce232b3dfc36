"""The records of a file by their numbers, read from any thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from gnomon.base import FormatError
from gnomon.ground.files import RandomAccess, access
from gnomon.recordio.parts import HEADER, LARGE, MAGIC, Blocks, record, resync, skip_record

HEADERS = 1 << 13  # bytes read at once while records are passed over


class Records:
    """A record file opened for reading at random; `len` is the number of its records.

    Where each record begins is found once, by a walk over their headers. With `skip_corrupt`
    damaged ones are passed over and counted in `skipped`.

    Raises:
        FileError: the file cannot be read.
        FormatError: a record is damaged; it names file and offset.
    """

    def __init__(self, where: str, path: str, *, skip_corrupt: bool = False) -> None:
        self.path = path
        self.skipped = 0
        with access(where, path):
            self._file = RandomAccess(where, path)
            reader = Blocks(self._file.read, self._file.size, path, HEADERS)
            starts = self._walk(reader, skip_corrupt)
        self._starts = np.array(starts, np.int64)  # and, last, where the last one ends

    def _walk(self, reader: Blocks, skip_corrupt: bool) -> list[int]:
        starts = []
        while reader.left:
            start = reader.offset
            try:
                skip_record(reader)
            except FormatError:
                if not skip_corrupt:
                    raise
                self.skipped += 1
                resync(reader, start)
                continue
            starts.append(start)
        return [*starts, reader.end]

    def __len__(self) -> int:
        return len(self._starts) - 1

    def offsets(self, numbers: Any) -> Any:
        """Where the record of a number, or of each number in an array, begins in the file."""
        return self._starts[numbers]

    def __getitem__(self, number: int) -> bytes:
        """The bytes of a record.

        Raises:
            FormatError: it holds another one, as its length is damaged; or the file has changed.
        """
        start, end = self._starts[number : number + 2].tolist()
        size = end - start
        reader = Blocks(self._file.read, self._file.size, self.path, 0)
        reader.offset = start
        reader.hold(size + len(MAGIC) if size <= LARGE else HEADER.size)
        return record(reader)
