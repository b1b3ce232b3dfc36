"""Reading files that may be broken, and replacing files so that a failure leaves the old one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import io
import os
import stat
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from gnomon.base import (
    FileError,
    FilePermissionError,
    FormatError,
    GnomonError,
    MissingFileError,
    ParamError,
    complaint,
    shown,
)
from gnomon.ground.lock import exclusive, load_module

_KINDS_OF_FILES = {  # by what they begin with
    b"PK\x03\x04": "a zip archive, as torch.save and numpy.savez write",
    b"\x93NUMPY": "an array of numpy.save",
    b"\x89HDF": "HDF5, as Keras and h5py write",
    b"\x80": "a pickle",
    b"\x1f\x8b": "packed by gzip",
    b"version https:": "a pointer of Git LFS: 'git lfs pull' fetches the file",
    b"\x12\x01\0\0\0\0\0\0": "arrays, as nd.save writes",
    b"\n#\xd7\xce": "records, as im2rec writes",
    b"{": "JSON, as a network's",
    b"<": "a page of the web",
}
Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]


def kind_of(head: bytes) -> str:
    """What a file is that begins so, in brackets for a message; empty where that is unknown.

    >>> kind_of(b"<!DOCTYPE html>"), kind_of(b"what else"), kind_of(b"")
    (' (a page of the web)', '', ' (the file is empty)')
    """
    known = (kind for start, kind in _KINDS_OF_FILES.items() if head.startswith(start))
    kind = next(known, "") if head else "the file is empty"
    return kind and f" ({kind})"


@contextlib.contextmanager
def naming(path: Any) -> Iterator[None]:
    """Has a FormatError within name the file that the content comes from."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from error


class Reader:
    """A binary stream whose every read is checked against what the stream still has.

    A length that a file claims is compared with the bytes that are left before memory for it is
    taken, so that a hostile header costs nothing. Each complaint names the file and the offset.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.stream = stream
        self.name = name
        start = stream.tell()
        self.end = stream.seek(0, io.SEEK_END)
        self.offset = stream.seek(start)

    @property
    def left(self) -> int:
        """Bytes between here and the end."""
        return self.end - self.offset

    def fail(self, what: str, expected: object, got: object, at: int | None = None) -> FormatError:
        """The error for `what`, read at offset `at` (default: here), ready to be raised."""
        offset = self.offset if at is None else at
        return FormatError(f"{self.name}: offset {offset}: {what}: expected {expected}, got {got}")

    def need(self, nbytes: int, what: str) -> None:
        """Complain unless `nbytes` more bytes are there."""
        if nbytes > self.left:
            raise self.fail(what, f"{nbytes} bytes", f"{self.left} before the end")

    def take(self, nbytes: int, what: str) -> bytes:
        """The next `nbytes` bytes."""
        if nbytes > self.end - self.offset:
            self.need(nbytes, what)
        data = self.stream.read(nbytes)
        if len(data) != nbytes:  # the file was cut while it was read
            raise self.fail(what, f"{nbytes} bytes", f"{len(data)} before the end")
        self.offset += nbytes
        return data

    def skip(self, nbytes: int, what: str) -> bytes:
        """Pass over `nbytes` bytes, which must be there; gives none of them."""
        self.need(nbytes, what)
        self.seek(self.offset + nbytes)
        return b""

    def seek(self, offset: int) -> None:
        """Read on at `offset`."""
        self.offset = self.stream.seek(offset)

    def into(self, buffer: memoryview, what: str) -> None:
        """Fill `buffer` from the stream; its size must have been checked by `need` already."""
        got = 0
        while got < len(buffer):
            step = self.stream.readinto(buffer[got:])  # type: ignore[attr-defined]
            if not step:
                raise self.fail(what, f"{len(buffer)} bytes", f"{got} before the end")
            got += step
        self.offset += got

    def unpack(self, layout: str, what: str) -> tuple[Any, ...]:
        """The next values of a `struct` layout."""
        return struct.unpack(layout, self.take(struct.calcsize(layout), what))


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a place that fsspec reads, as `s3://bucket/x`.

    >>> is_remote("memory://x"), is_remote("/tmp/x")
    (True, False)
    """
    return "://" in os.fspath(path)


@contextlib.contextmanager
def access(where: str, path: Any, doing: str = "read") -> Iterator[None]:
    """Turns errors of the operating system within into a FileError that names `where` and `path`.

    >>> with access("load", "/no/x"):
    ...     open("/no/x")
    Traceback (most recent call last):
    gnomon.base.MissingFileError: load: cannot read '/no/x': No such file or directory

    Raises:
        FileError: as above; it is the built-in error too, as FileNotFoundError.
        TypeError: `path` is no path.
        ParamError: it is one that no file can have.
    """
    name = path_of(where, path)
    try:
        if not name:  # which `Path` takes for the folder
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        yield
    except FileError:
        raise
    except OSError as error:
        raise file_error(where, doing, name, error) from error


def path_of(where: str, path: Any, argument: str = "path") -> str:
    """A path as text; TypeError where it is none, ParamError where no file can have it."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(complaint(where, argument, "a path", shown(path)))
    name = os.fsdecode(path)
    if "\0" in name:
        raise ParamError(complaint(where, argument, "a path", repr(name)))
    return name


_KINDS = {FileNotFoundError: MissingFileError, PermissionError: FilePermissionError}


def file_error(where: str, doing: str, path: str, error: OSError) -> FileError:
    """The FileError for an error of the operating system, which need not name the file."""
    missing = isinstance(error, FileNotFoundError)  # of a web server with the address alone
    number = error.errno or (errno.ENOENT if missing else 0)
    reason = error.strerror or (os.strerror(number) if missing else str(error))
    told = _KINDS.get(type(error), FileError)(number, reason, path)
    told.attempt = f"{where}: cannot {doing}"
    return told


def opened(where: str, path: str | os.PathLike[str], mode: str) -> Any:
    """The binary file `path`, a local one or, as `s3://bucket/x`, one that fsspec knows.

    Raises:
        FileError: it cannot be opened.
        GnomonError: fsspec, or what it needs for this kind of place, is not installed; nothing can
            be written there.
    """
    with access(where, path, "read" if mode == "rb" else "write"):
        return _remote(os.fspath(path), mode) if is_remote(path) else Path(path).open(mode)


def _remote(where: str, mode: str) -> Any:
    try:
        return load_module("fsspec").open(where, mode).open()
    except NotImplementedError as error:
        raise GnomonError(f"{where!r}: fsspec cannot write to such places") from error
    except ModuleNotFoundError as error:
        needed = "fsspec (pip install 'gnomon[remote]')"
        raise GnomonError(f"{where!r} needs {needed}: {error}") from error
    except (ImportError, ValueError) as error:  # a package for such places; a kind it knows not
        raise GnomonError(f"{where!r} cannot be reached by fsspec: {error}") from error


def read_bytes(where: str, path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file, a local one or one that fsspec knows.

    Raises:
        FileError, GnomonError: as `opened`.
    """
    with access(where, path), opened(where, path, "rb") as stream:
        return bytes(stream.read())


def read_json(where: str, path: str | os.PathLike[str]) -> str:
    """The text of a file that holds a symbol as JSON, so far as its beginning tells.

    Raises:
        FileError, GnomonError: as `opened`.
        FormatError: it is a file of another kind, as records are, or no text.
    """
    data, name = read_bytes(where, path), os.fspath(path)
    if not data.startswith(b"{") and (kind := kind_of(data[:16])):
        raise FormatError(f"{name}: expected the JSON of a symbol, got {data[:8]!r}{kind}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{name}: expected text, got {error}") from None


class RandomAccess:
    """A file that any thread reads at any place; `size` is the number of its bytes.

    `read(nbytes, start)` gives up to `nbytes` bytes from offset `start` on, fewer at the end.

    Raises:
        FileError, GnomonError: as `opened`.
    """

    read: Callable[[int, int], bytes]

    def __init__(self, where: str, path: str | os.PathLike[str]) -> None:
        self._stream = opened(where, path, "rb")
        self.size = self._stream.seek(0, io.SEEK_END)
        if is_remote(path):
            self._lock = exclusive()
            self.read = self._read
        else:
            self.read = partial(os.pread, self._stream.fileno())

    def _read(self, nbytes: int, start: int) -> bytes:
        with self._lock:
            self._stream.seek(start)
            return bytes(self._stream.read(nbytes))

    def close(self) -> None:
        """Close the file; closing twice is no fault."""
        self._stream.close()

    def __del__(self) -> None:
        if "_stream" in self.__dict__:
            self.close()


@contextlib.contextmanager
def reading(where: str, source: Source) -> Iterator[Reader]:
    """A `Reader` over a path, a bytes-like object or an open binary file.

    >>> with reading("load", b"abcd") as r:
    ...     r.take(2, "tag"), r.left
    (b'ab', 2)

    Raises:
        FileError: the file cannot be read.
        TypeError: `source` is none of these.
    """
    if isinstance(source, str | os.PathLike):
        with access(where, source), Path(source).open("rb") as stream:
            yield Reader(stream, os.fspath(source))
    elif isinstance(source, bytes | bytearray | memoryview):
        yield Reader(io.BytesIO(source), f"<{memoryview(source).nbytes} bytes>")
    else:
        if not hasattr(source, "seekable"):
            expected = "a path, bytes or an open binary file"
            raise TypeError(complaint(where, "source", expected, shown(source)))
        name = str(getattr(source, "name", "<stream>"))
        yield Reader(source if source.seekable() else io.BytesIO(source.read()), name)


@contextlib.contextmanager
def replacing(where: str, path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new binary file that takes the place of `path` when the block ends without an error.

    Until then, and after an error, whatever stood at `path` is untouched. The new file has the old
    one's permissions; a link is followed. Nothing waits for the disk. What a process that was
    killed meanwhile leaves beside it is removed by the next that writes to `path`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with replacing("save", f"{folder.name}/x") as f:
    ...     f.write(b"all or nothing")
    14
    >>> Path(f"{folder.name}/x").read_bytes()
    b'all or nothing'
    >>> folder.cleanup()

    Raises:
        FileError: the folder is missing, not writable, or the disk is full.
    """
    with access(where, path, "write"), _replacement(Path(os.path.realpath(path))) as stream:
        yield stream


@contextlib.contextmanager
def _replacement(target: Path) -> Iterator[BinaryIO]:
    """The new file; what stands at `target` is replaced when the block ends."""
    if target.exists() and not target.is_file():  # a pipe or /dev/stdout cannot be replaced
        with target.open("wb") as stream:
            yield stream
        return
    _remove_leftovers(target)
    handle, temporary = _new_beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_beside(target: Path) -> tuple[int, Path]:
    """A new file in the folder of `target`, locked as long as this process writes it."""
    while True:
        path = target.with_name(_unfinished(target, os.urandom(6).hex()))
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)  # taken for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove what writers of `target` left that were killed: they lock theirs while they live."""
    for path in target.parent.glob(glob.escape(_unfinished(target, "")) + "?" * 12):
        with contextlib.suppress(OSError), path.open("rb") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _unfinished(target: Path, number: str) -> str:
    """The name of an unfinished file for `target`."""
    return f".{target.name[:100]}.unfinished.{number}"
