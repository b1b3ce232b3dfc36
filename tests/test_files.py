"""Files: checked reading says where a file breaks, and replacing leaves the old file on failure."""

import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gnomon.base import FormatError
from gnomon.files import reading, replacing


def test_a_reader_counts_from_where_it_starts():
    stream = io.BytesIO(b"head" + b"\1\0\0\0rest")
    stream.seek(4)
    with reading(stream) as r:
        assert (r.offset, r.left) == (4, 8)
        assert r.unpack("<I", "number") == (1,)
        assert (r.offset, r.left) == (8, 4)


def test_a_short_file_is_reported_with_its_name_and_offset(tmp_path):
    path = tmp_path / "short.bin"
    path.write_bytes(b"abc")
    with reading(path) as r:
        r.take(1, "tag")
        with pytest.raises(FormatError, match=r"short\.bin: offset 1: body: .*4 bytes, got 2 "):
            r.take(4, "body")


def test_a_stream_that_cannot_seek_is_read():
    class Pipe(io.BytesIO):
        name = "pipe"

        def seekable(self):
            return False

    with reading(Pipe(b"abc")) as r:
        assert (r.name, r.take(3, "all")) == ("pipe", b"abc")


def test_a_file_cut_while_it_is_read_is_reported(tmp_path):
    path = tmp_path / "cut.bin"
    path.write_bytes(bytes(10_000))
    with reading(path) as r:
        os.truncate(path, 5)
        with pytest.raises(FormatError, match="10000 bytes, got 5 before the end"):
            r.into(memoryview(bytearray(10_000)), "data")
    with reading(memoryview(b"abc")) as r:
        r.end = 5
        with pytest.raises(FormatError, match="5 bytes, got 3 before the end"):
            r.take(5, "data")


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.params"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as stream:
        stream.writelines([b"new", None])
    assert path.read_bytes() == b"old"
    assert [f.name for f in tmp_path.iterdir()] == ["model.params"]


def test_a_new_file_has_the_old_ones_permissions_and_goes_where_a_link_points(tmp_path):
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_first_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.touch()
    with replacing(ours):
        pass
    assert ours.stat().st_mode == plain.stat().st_mode


def test_a_missing_folder_and_a_device_are_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "x"):
        pass
    with replacing(os.devnull) as stream:
        stream.write(b"gone")
    assert not Path(os.devnull).is_file()


def test_other_threads_files_have_their_permissions_meanwhile(tmp_path):
    """The process's mask is never changed, not even for a moment."""
    before = os.umask(0o027)
    stop, seen = threading.Event(), set()

    def watch() -> None:
        path = tmp_path / "other"
        while not stop.is_set():
            path.touch()
            seen.add(path.stat().st_mode & 0o777)
            path.unlink()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for k in range(300):
            with replacing(tmp_path / f"ours{k}"):
                pass
        assert (tmp_path / "ours0").stat().st_mode & 0o777 == 0o640
    finally:
        stop.set()
        watcher.join()
        os.umask(before)
    assert seen == {0o640}


KILLED = """
import os, sys
from gnomon.files import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half of")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_the_next_save_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "x.params"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", KILLED, str(path)]
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **how) as gone, subprocess.Popen(command, **how) as alive:
        assert gone.stdout.readline() == alive.stdout.readline() == "writing\n"
        gone.kill()
        gone.wait()
        assert len(list(tmp_path.iterdir())) == 3
        with replacing(tmp_path / "x"):  # another file's leftovers are left
            pass
        assert len(list(tmp_path.iterdir())) == 4
        with replacing(path) as stream:
            stream.write(b"new")
        assert len(list(tmp_path.iterdir())) == 3  # that of the writer that lives is there
        assert path.read_bytes() == b"new"
        alive.communicate("")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "x", path]
    assert path.read_bytes() == b"half of"


def test_saves_to_one_name_at_once_all_succeed(tmp_path):
    path, failed = tmp_path / "x", []

    def save(content: bytes) -> None:
        try:
            for _ in range(50):
                with replacing(path) as stream:
                    stream.write(content)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(bytes([65 + k]) * 1000,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert list(tmp_path.iterdir()) == [path]
    assert len(set(path.read_bytes())) == 1
