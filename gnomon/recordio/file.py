"""Files of records, read or written in turn, or read in any order by an index.

A record file is closed, reading or writing. Every write reaches the operating system before `write`
returns, so that a forked child has nothing of it in a buffer. A reader that was forked or unpickled
opens the file anew and starts at the beginning; a writer belongs to the process that opened it and
cannot be pickled.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterator
from typing import IO, Any, Self

from gnomon.base import (
    FormatError,
    GnomonError,
    ParamError,
    UnknownNameError,
    complaint,
)
from gnomon.ground.arguments import CheckedArguments
from gnomon.ground.files import RandomAccess, file_error, opened, path_of, read_bytes
from gnomon.ground.lock import exclusive
from gnomon.recordio.parts import LIMIT, Blocks, encode, record, records, resync

log = logging.getLogger(__name__)


class MXRecordIO(CheckedArguments):
    """A file of records, read or written one after the other.

    Args:
        uri: path of the file; `s3://bucket/x` and its like are reached by fsspec.
        flag: "r" to read it, "w" to write it anew.
        skip_corrupt: a reader's `read` passes over damage to the next whole record, logs a warning
            and counts it in `skipped`, instead of raising.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/x.rec"
    >>> with MXRecordIO(path, "w") as f:
    ...     f.write(b"one"), f.write(b"two")
    (None, None)
    >>> list(MXRecordIO(path, "r"))
    [b'one', b'two']

    Raises:
        ParamError: `flag` is something else.
        FileError: the file cannot be opened.
    """

    _ahead = 1 << 18  # bytes read at once, of small records

    def __init__(
        self, uri: str | os.PathLike[str], flag: str, *, skip_corrupt: bool = False
    ) -> None:
        self.uri = path_of(type(self).__name__, uri)
        self.flag = flag
        self.skip_corrupt = skip_corrupt
        self.skipped = 0
        self.is_open = False
        self.pid: int | None = None
        self._reader: Blocks | None = None
        self._records: Iterator[bytes | None] = iter(())
        self._file: RandomAccess | None = None
        self._stream: IO[bytes] | None = None
        self.open()

    # --- states ---

    def open(self) -> None:
        """Open the file at its beginning; a writer empties it.

        Raises:
            ParamError, FileError: as the constructor.
        """
        if self.flag not in ("r", "w"):
            raise ParamError(complaint(type(self).__name__, "flag", "'r' or 'w'", repr(self.flag)))
        self.writable = self.flag == "w"
        if self.writable:
            self._stream = opened(type(self).__name__, self.uri, "wb")
        else:
            self._file = file = RandomAccess(type(self).__name__, self.uri)
            self._reader = Blocks(file.read, file.size, self.uri, self._ahead)
            self._records = self._sound()
        self.pid = os.getpid()
        self.is_open = True

    def close(self) -> None:
        """Close the file; closing twice is no fault."""
        try:
            for each in (self._stream, self._file, self._reader):
                if each is not None:
                    each.close()
        except OSError as error:  # of what was not written yet
            raise file_error(type(self).__name__, "write", self.uri, error) from error
        self._stream = self._file = self._reader = None
        self._records = iter(())
        self.is_open = False
        self.pid = None

    def reset(self) -> None:
        """Start over: a reader at the first record, a writer with an empty file.

        Raises:
            FileError: the file cannot be opened any more.
        """
        self.close()
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if "_stream" in self.__dict__:  # the constructor got that far
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            raise GnomonError(f"{self.uri}: a record file open for writing cannot be pickled")
        kept = dict.fromkeys(("_reader", "_file", "_stream", "pid"))
        return {**self.__dict__, **kept, "_records": iter(())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.is_open:
            self.open()

    def _reading(self) -> Blocks:
        """The reader; in a forked child one of its own."""
        if self.is_open and not self.writable and self.pid != os.getpid():
            self.reset()
        if self._reader is None:
            raise GnomonError(f"{self.uri}: read: expected a file open for reading, got {self}")
        return self._reader

    def _writing(self) -> IO[bytes]:
        if self._stream is None or not self.writable:
            raise GnomonError(f"{self.uri}: write: expected a file open for writing, got {self}")
        if self.pid != os.getpid():
            raise GnomonError(f"{self.uri}: write: opened by process {self.pid}, not by this one")
        return self._stream

    def __repr__(self) -> str:
        state = "closed" if not self.is_open else "writing" if self.writable else "reading"
        return f"<{type(self).__name__} {self.uri!r} {state}>"

    # --- records ---

    def read(self) -> bytes | None:
        """The next record, or None at the end.

        Raises:
            FormatError: the record is damaged: says the file and offset. The position stays there,
                so reading again says the same. Not with `skip_corrupt`.
            GnomonError: the file is not open for reading.
        """
        if self.pid != os.getpid() or self._reader is None:
            self._reading()
        for data in self._records:
            return data
        self._records = self._sound()  # an error ended it
        return next(self._records)

    def _sound(self) -> Iterator[bytes | None]:
        """The records from here on, and None at the end; with `skip_corrupt` those alone."""
        reader = self._reading()
        while True:
            try:
                yield from records(reader)
            except FormatError as error:
                if not self.skip_corrupt:
                    raise
                resync(reader, reader.offset)
                self.skipped += 1
                log.warning("%s; skipped to offset %d", error, reader.offset)

    def __iter__(self) -> Iterator[bytes]:
        """The records from here to the end."""
        first = self.read()
        rest = iter(self._records.__next__, None)
        if first is not None:
            yield first
            yield from rest

    def write(self, buf: bytes | bytearray | memoryview) -> None:
        """Append `buf`, of any content and less than 2**29 bytes, as a record.

        Raises:
            TypeError: it is no bytes.
            ParamError: it is too long.
            GnomonError: the file is not open for writing, or in another process.
            FileError: the disk is full, or the like; it names the file.
        """
        stream = self._writing()
        data = bytes(memoryview(buf))  # which a number, that `bytes` makes zeros of, has not
        if len(data) >= LIMIT:
            raise ParamError(complaint("write", "buf", f"less than {LIMIT} bytes", len(data)))
        try:
            stream.write(encode(data))
            stream.flush()
        except OSError as error:
            raise file_error(type(self).__name__, "write", self.uri, error) from error

    def tell(self) -> int:
        """The offset of the next record, to read or to write."""
        return self._writing().tell() if self.writable else self._reading().tell()


class MXIndexedRecordIO(MXRecordIO):
    """A record file with an index file beside it, for reading records in any order.

    The index has a line `key<TAB>offset` for each record. `keys` lists the keys in the order of the
    file and `idx` maps them to offsets.

    Args:
        idx_path: path of the index.
        key_type: makes a key of its text.
        uri, flag, skip_corrupt: as for `MXRecordIO`; `read_idx` never skips.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/x"
    >>> with MXIndexedRecordIO(path + ".idx", path + ".rec", "w") as f:
    ...     f.write_idx(3, b"three"), f.write_idx(7, b"seven")
    (None, None)
    >>> f = MXIndexedRecordIO(path + ".idx", path + ".rec", "r")
    >>> f.keys, f.read_idx(7)
    ([3, 7], b'seven')

    Raises:
        ParamError, FileError: as `MXRecordIO`.
        FormatError: the index has a line that is none.
    """

    _ahead = 1 << 13  # the next record may be anywhere

    def __init__(
        self,
        idx_path: str | os.PathLike[str],
        uri: str | os.PathLike[str],
        flag: str,
        key_type: Callable[[str], Any] = int,
        *,
        skip_corrupt: bool = False,
    ) -> None:
        self.idx_path = path_of(type(self).__name__, idx_path)
        self.key_type = key_type
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self.fidx: IO[str] | None = None
        super().__init__(uri, flag, skip_corrupt=skip_corrupt)

    def open(self) -> None:
        """Open both files at their beginning.

        Raises:
            ParamError, FileError, FormatError: as the constructor.
        """
        super().open()
        self._turn = exclusive()
        self.idx, self.keys = {}, []
        if self.writable:
            stream = opened(type(self).__name__, self.idx_path, "wb")
            self.fidx = io.TextIOWrapper(stream, encoding="utf-8")
        else:
            self._load_index()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_turn": None}

    def _load_index(self) -> None:
        text = read_bytes(type(self).__name__, self.idx_path).decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            try:
                name, offset = line.strip().split("\t")
                key, at = self.key_type(name), int(offset)
            except (TypeError, ValueError):
                where = f"{self.idx_path}: line {number}"
                raise FormatError(f"{where}: expected 'key<TAB>offset', got {line!r}") from None
            self.idx[key] = at
            self.keys.append(key)

    def close(self) -> None:
        """Close both files."""
        super().close()
        if self.fidx is not None:
            self.fidx.close()
        self.fidx = None

    def seek(self, idx: Any) -> None:
        """Go to the record with key `idx`.

        Raises:
            UnknownNameError: there is no such key.
            GnomonError: the file is not open for reading.
        """
        reader = self._reading()
        if idx not in self.idx:
            raise UnknownNameError(f"{self.idx_path}: no record has the key {idx!r}")
        at = self.idx[idx]
        if not 0 <= at <= reader.end:
            raise reader.fail(f"offset of record {idx!r}", f"0 to {reader.end}", at, at)
        reader.seek(at)

    def read_idx(self, idx: Any) -> bytes:
        """The record with key `idx`; several threads may ask at once.

        Raises:
            FormatError: it is damaged, or the index leads astray.
            UnknownNameError, GnomonError: as `seek`.
        """
        self._reading()  # a forked child opens the file anew, with a lock of its own
        with self._turn:
            self.seek(idx)
            return record(self._reading())

    def write_idx(self, idx: Any, buf: bytes | bytearray | memoryview) -> None:
        """Append `buf` under the key `idx`.

        Raises:
            ParamError, GnomonError: as `write`.
        """
        key = self.key_type(idx)
        at = self._writing().tell()
        self.write(buf)
        if self.fidx is not None:
            self.fidx.write(f"{key}\t{at}\n")
            self.fidx.flush()
        self.idx[key] = at
        self.keys.append(key)
