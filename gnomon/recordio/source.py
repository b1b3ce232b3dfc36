"""The records of a file by their numbers, read from any thread."""

from __future__ import annotations

import io
import os

import numpy as np

from gnomon.base import FormatError, GnomonError
from gnomon.files import Reader, is_remote, opened
from gnomon.lock import exclusive
from gnomon.recordio.parts import record, resync


class Records:
    """A record file opened for reading at random; `len` is the number of its records.

    Where each record begins is found once, by a walk over their headers. With `skip_corrupt`
    damaged ones are passed over and counted in `skipped`.

    Raises:
        GnomonError: the file cannot be read.
        FormatError: a record is damaged; it names file and offset.
    """

    def __init__(self, path: str, *, skip_corrupt: bool = False) -> None:
        self.path = path
        self.skipped = 0
        try:
            with opened(path, "rb") as stream:
                starts = self._walk(Reader(stream, path), skip_corrupt)
            self._file = _Remote(path) if is_remote(path) else _Local(path)
        except OSError as error:
            reason = error.strerror or error
            raise GnomonError(f"cannot read the records of {path!r}: {reason}") from error
        self._starts = np.array(starts, np.int64)  # and, last, where the last one ends

    def _walk(self, reader: Reader, skip_corrupt: bool) -> list[int]:
        starts = []
        while reader.left:
            start = reader.offset
            try:
                record(reader, reader.skip)
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

    def offset(self, number: int) -> int:
        """Where the record `number` begins in the file."""
        return int(self._starts[number])

    def __getitem__(self, number: int) -> bytes:
        """The bytes of a record.

        Raises:
            FormatError: the file has changed since it was opened.
        """
        start, end = (int(x) for x in self._starts[number : number + 2])
        block = self._file.read(start, end - start)
        reader = Reader(io.BytesIO(block), f"{self.path}, from offset {start} on")
        return record(reader, reader.take)


class _Local:
    """A file read at any place by any thread."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def read(self, start: int, nbytes: int) -> bytes:
        return os.pread(self._file, nbytes, start)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


class _Remote:
    """A file of another place, read by one thread after the other."""

    def __init__(self, path: str) -> None:
        self._lock = exclusive()
        self._file = opened(path, "rb")

    def read(self, start: int, nbytes: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return bytes(self._file.read(nbytes))
