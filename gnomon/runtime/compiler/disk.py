"""Entries on disk by name: a folder of files that many processes share without locks.

An entry is written aside and renamed into its place, so that a reader sees all of it or nothing. It
begins with a digest of the rest and holds its own name: what is cut off, damaged or misplaced
counts as missing and is removed. Machine code is read from files that only this user, or the
system's, can write; others are left alone.

The folder is bounded by bytes: when a process has written a 16th of the limit since it last looked,
and when it first writes, it counts, and removes what was used longest ago (reading an entry sets
its time). Several processes at once may exceed the limit by their 16ths.

What came with the package is kept in a folder of the same form, which is only read.

State: *usable* until writing fails (the disk is full, or read-only); from then on this process only
reads. Nothing here raises OSError.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import time
from _blake2 import blake2b  # hashlib would load OpenSSL as well (4 ms)
from pathlib import Path
from typing import NamedTuple

from gnomon import config

MAGIC = b"gnomon kernel 1\n"
DIGEST = 20  # bytes of a name
_SEAL = 16  # and of what tells whether an entry is sound
SUFFIX, ASIDE = ".kernel", ".part"
CARRIED = Path(__file__).parents[2] / "carried"
ABANDONED = 3600.0  # seconds after which a file aside has no writer any more
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")
_READ = os.O_RDONLY
for _name in _FLAGS:
    _READ |= getattr(os, _name, 0)


def digest(*parts: str) -> str:
    """A name of these texts, in hexadecimal."""
    hashed = blake2b(digest_size=DIGEST)
    for part in parts:
        data = part.encode()
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()


def configured() -> Disk | None:
    """Where the settings want code to be kept; None for nowhere."""
    limit = config.get("disk_cache_limit")
    if not config.get("disk_cache") or not limit:
        return None
    return _disk(config.get("cache_dir"), limit)


@functools.lru_cache(maxsize=8)
def _disk(folder: Path, limit: int) -> Disk:
    return Disk(folder / "kernels", limit)


def find(name: str) -> bytes | None:
    """The entry `name`, kept or come with the package; None where there is no sound one."""
    place = configured()
    return None if place is None else place.read(name) or _carried(name)


def is_kept(name: str) -> bool:
    """Whether there is a file of the entry `name`, kept or come with the package; not read."""
    place = configured()
    return place is not None and any(
        (folder / (name + SUFFIX)).exists() for folder in (place.folder, CARRIED)
    )


def _carried(name: str) -> bytes | None:
    """What came with the package: its owner is not asked for, who can write the sources, too."""
    try:
        return _opened(name, (CARRIED / (name + SUFFIX)).read_bytes())
    except OSError:
        return None


class _File(NamedTuple):
    """One file of the folder: when it was used last, its size."""

    used: float
    size: int
    path: Path


class Disk:
    """The entries in one folder, at most `limit` bytes together."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.usable = True
        self._unseen = limit  # bytes written since the folder was counted; about, with threads

    def read(self, name: str) -> bytes | None:
        """The entry `name`; None where there is no sound one."""
        path = self._path(name)
        try:
            data = self._trusted(path)
        except OSError:
            return None
        if data is None:
            return None
        content = _opened(name, data)
        if content is None:
            _say(f"{path} is damaged: removed")
            self.remove(name)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def _trusted(self, path: Path) -> bytes | None:
        """The file's bytes; None where others than this user and the system's could write it."""
        descriptor = os.open(path, _READ)
        with os.fdopen(descriptor, "rb") as stream:
            about = os.fstat(descriptor)
            mine = not hasattr(os, "geteuid") or about.st_uid in (0, os.geteuid())
            if not stat.S_ISREG(about.st_mode) or not mine or about.st_mode & 0o022:
                _say(f"{path} is left alone: others could have written it")
                return None
            return stream.read(min(about.st_size, self.limit) + 1)

    def write(self, name: str, content: bytes) -> None:
        """Keep `content` under `name`; without effect where that is impossible."""
        data = _sealed(name, content)
        if not self.usable or len(data) > self.limit // 4:
            return
        aside = self.folder / f"{name}.{os.urandom(6).hex()}{ASIDE}"
        try:
            self._make_room(len(data))
            _write_new(aside, data)
            aside.replace(self._path(name))
        except OSError as error:
            self.usable = False
            _say(f"kernels are not kept on disk: {error}")
            _remove(aside)

    def remove(self, name: str) -> None:
        """Forget the entry `name`."""
        _remove(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / (name + SUFFIX)

    def _make_room(self, size: int) -> None:
        """Count the folder where that is due; it exists afterwards."""
        self._unseen += size
        if self._unseen <= self.limit // 16:
            return
        self._unseen = 0
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = sorted(self._files())
        total = size + sum(file.size for file in files)
        # a little more than must be, so that not every entry that follows starts anew
        goal = self.limit if total <= self.limit else self.limit * 3 // 4
        for file in files:
            if total <= goal:
                break
            _remove(file.path)
            total -= file.size

    def _files(self) -> list[_File]:
        """The entries; what a writer left aside long ago goes."""
        found = []
        late = time.time() - ABANDONED
        with os.scandir(self.folder) as entries:
            for entry in entries:
                file = _about(entry)
                if file is None:
                    continue
                if entry.name.endswith(SUFFIX):
                    found.append(file)
                elif file.used < late:
                    _remove(file.path)
        return found


def _about(entry: os.DirEntry[str]) -> _File | None:
    """A file of ours; None for another, or one that has just gone."""
    if not entry.name.endswith((SUFFIX, ASIDE)):
        return None
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    return _File(about.st_mtime, about.st_size, Path(entry.path))


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sealed(name: str, content: bytes) -> bytes:
    body = name.encode() + b"\n" + content
    return MAGIC + blake2b(body, digest_size=_SEAL).digest() + body


def _opened(name: str, data: bytes) -> bytes | None:
    """The content of an entry, or None where it is not sound or not of that name."""
    start = len(MAGIC) + _SEAL
    body = data[start:]
    sound = blake2b(body, digest_size=_SEAL).digest() == data[len(MAGIC) : start]
    head = name.encode() + b"\n"
    if not sound or not data.startswith(MAGIC) or not body.startswith(head):
        return None
    return body[len(head) :]


def _say(message: str) -> None:
    if config.get("debug") >= 1:
        print(f"kernel cache: {message}", file=sys.stderr)
