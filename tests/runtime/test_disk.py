"""The folder of kernels stays within its bound, and leaves alone what is not its own."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gnomon.runtime.compiler.disk import Disk


def test_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    limit = 1 << 16
    place = Disk(tmp_path, limit)
    now = time.time() - 1000
    for k in range(60):
        name = f"{k:040d}"
        place.write(name, bytes(2000))
        os.utime(tmp_path / f"{name}.kernel", (now + k, now + k))
        assert place.read(f"{0:040d}") is not None, "it is used again and again"
        total = sum(path.stat().st_size for path in tmp_path.glob("*"))
        assert total <= limit + limit // 16
    left = {int(path.stem) for path in tmp_path.glob("*.kernel")}
    assert left == {0, *range(60 - len(left) + 1, 60)}
    assert len(left) > 20


def test_counting_leaves_what_is_not_ours_and_removes_what_was_abandoned(tmp_path: Path) -> None:
    for name in ("notes.txt", "a.part", "b.part"):
        (tmp_path / name).write_bytes(bytes(5000))
    for name in ("notes.txt", "a.part"):
        os.utime(tmp_path / name, (0, 0))
    Disk(tmp_path, 1 << 14).write("name", b"content")
    assert {path.name for path in tmp_path.glob("*")} == {"notes.txt", "b.part", "name.kernel"}


def test_an_entry_too_large_is_not_kept(tmp_path: Path) -> None:
    place = Disk(tmp_path / "kernels", 1000)
    place.write("name", bytes(2000))
    assert not (tmp_path / "kernels").exists()
