"""Files: checked reading says where a file breaks, and replacing leaves the old file on failure."""

import errno
import io
import os
import pickle
import stat
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

import gnomon as mx
from gnomon.base import FileError, FormatError, MissingFileError, ParamError
from gnomon.ground.files import reading, replacing


def test_a_reader_counts_from_where_it_starts():
    stream = io.BytesIO(b"head" + b"\1\0\0\0rest")
    stream.seek(4)
    with reading("load", stream) as r:
        assert (r.offset, r.left) == (4, 8)
        assert r.unpack("<I", "number") == (1,)
        assert (r.offset, r.left) == (8, 4)


def test_a_short_file_is_reported_with_its_name_and_offset(tmp_path):
    path = tmp_path / "short.bin"
    path.write_bytes(b"abc")
    with reading("load", path) as r:
        r.take(1, "tag")
        with pytest.raises(FormatError, match=r"short\.bin: offset 1: body: .*4 bytes, got 2 "):
            r.take(4, "body")


def test_a_stream_that_cannot_seek_is_read():
    class Pipe(io.BytesIO):
        name = "pipe"

        def seekable(self):
            return False

    with reading("load", Pipe(b"abc")) as r:
        assert (r.name, r.take(3, "all")) == ("pipe", b"abc")


def test_a_file_cut_while_it_is_read_is_reported(tmp_path):
    path = tmp_path / "cut.bin"
    path.write_bytes(bytes(10_000))
    with reading("load", path) as r:
        os.truncate(path, 5)
        with pytest.raises(FormatError, match="10000 bytes, got 5 before the end"):
            r.into(memoryview(bytearray(10_000)), "data")
    with reading("load", memoryview(b"abc")) as r:
        r.end = 5
        with pytest.raises(FormatError, match="5 bytes, got 3 before the end"):
            r.take(5, "data")


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.params"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing("save", path) as stream:
        stream.writelines([b"new", None])
    assert path.read_bytes() == b"old"
    assert [f.name for f in tmp_path.iterdir()] == ["model.params"]


def test_a_new_file_has_the_old_ones_permissions_and_goes_where_a_link_points(tmp_path):
    path, link = tmp_path / "real", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing("save", link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_first_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.touch()
    with replacing("save", ours):
        pass
    assert ours.stat().st_mode == plain.stat().st_mode


def test_saves_neither_copy_arrays_nor_wait_for_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", None)
    x = mx.nd.arange(1 << 20)
    y = x + 1
    mx.nd.waitall()
    tracemalloc.start()
    mx.nd.save(str(tmp_path / "x"), {"x": y, "y": x})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 18
    found = mx.nd.load(str(tmp_path / "x"))
    assert (found["x"] - found["y"]).sum().asscalar() == 1 << 20


def test_a_missing_folder_and_a_device_are_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), replacing("save", tmp_path / "no" / "x"):
        pass
    with replacing("save", os.devnull) as stream:
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
            with replacing("save", tmp_path / f"ours{k}"):
                pass
        assert (tmp_path / "ours0").stat().st_mode & 0o777 == 0o640
    finally:
        stop.set()
        watcher.join()
        os.umask(before)
    assert seen == {0o640}


KILLED = """
import os, sys
from gnomon.ground.files import replacing
with replacing("save", sys.argv[1]) as stream:
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
        with replacing("save", tmp_path / "x"):  # another file's leftovers are left
            pass
        assert len(list(tmp_path.iterdir())) == 4
        with replacing("save", path) as stream:
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
                with replacing("save", path) as stream:
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


# --- what cannot be read or written is told ------------------------------------------------------

NET = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
MISSING = {
    "nd.load": mx.nd.load,
    "nd.save": lambda p: mx.nd.save(p, mx.nd.ones(1)),
    "symbol.load": mx.sym.load,
    "Symbol.save": NET.save,
    "checkpoint": lambda p: mx.model.load_checkpoint(p, 1),
    "Module.load": lambda p: mx.mod.Module.load(p, 1),
    "save_checkpoint": lambda p: mx.model.save_checkpoint(p, 1, NET, {}, {}),
    "load_parameters": lambda p: mx.gluon.nn.Dense(1).load_parameters(p),
    "Block.load": lambda p: mx.gluon.nn.Dense(1).load(p),
    "imports": lambda p: mx.gluon.SymbolBlock.imports(p, ["data"]),
    "Trainer.load_states": lambda p: trainer().load_states(p),
    "Trainer.save_states": lambda p: trainer().save_states(p),
    "load_optimizer_states": lambda p: store().load_optimizer_states(p),
    "save_optimizer_states": lambda p: store().save_optimizer_states(p),
    "MXRecordIO": lambda p: mx.recordio.MXRecordIO(p, "r"),
    "MXRecordIO to write": lambda p: mx.recordio.MXRecordIO(p, "w"),
    "MXIndexedRecordIO": lambda p: mx.recordio.MXIndexedRecordIO(p, p, "r"),
    "ImageRecordIter": lambda p: mx.io.ImageRecordIter(
        path_imgrec=p, data_shape=(3, 2, 2), batch_size=1
    ),
    "CSVIter": lambda p: mx.io.CSVIter(data_csv=p, data_shape=(1,), batch_size=1),
    "LibSVMIter": lambda p: mx.io.LibSVMIter(data_libsvm=p, data_shape=(1,), batch_size=1),
    "MNISTIter": lambda p: mx.io.MNISTIter(image=p, label=p, batch_size=1),
    "ImageIter": lambda p: mx.image.ImageIter(1, (3, 2, 2), path_imglist=p, path_root="."),
    "imread": mx.image.imread,
    "RecordFileDataset": lambda p: mx.gluon.data.RecordFileDataset(p + ".rec"),
    "MNIST": mx.gluon.data.vision.MNIST,
    "ImageFolderDataset": mx.gluon.data.vision.ImageFolderDataset,
    "ImageListDataset": lambda p: mx.gluon.data.vision.ImageListDataset(imglist=p),
    "get_model": lambda p: mx.gluon.model_zoo.vision.get_model("alexnet", pretrained=True, root=p),
    "check_sha1": lambda p: mx.gluon.utils.check_sha1(p, "0"),
    "embedding": mx.contrib.text.embedding.CustomEmbedding,
    "init.Load": mx.init.Load,
}


def trainer():
    net = mx.gluon.nn.Dense(1, in_units=1)
    net.initialize()
    return mx.gluon.Trainer(net.collect_params(), "sgd")


def store():
    made = mx.kv.create("local")
    made.set_optimizer(mx.optimizer.create("sgd"))
    return made


@pytest.mark.parametrize("what", MISSING)
def test_a_missing_file_is_an_error_of_mxnet_and_of_python(what, tmp_path):
    path = str(tmp_path / "no" / "x")
    with pytest.raises(mx.MXNetError) as found:
        MISSING[what](path)
    assert isinstance(found.value, FileNotFoundError)
    assert path in str(found.value)
    assert "Errno" not in str(found.value)


@pytest.mark.parametrize("call", [mx.nd.load, mx.sym.load, mx.image.imread, NET.save])
def test_a_folder_in_place_of_a_file_and_names_that_none_has(call, tmp_path):
    with pytest.raises(FileError, match=r"cannot (read|write) '.*': Is a directory"):
        call(str(tmp_path))
    with pytest.raises(
        ParamError, match=r"argument '(path|fname)': expected a path, got 'a.*x00b'"
    ):
        call("a\0b")
    with pytest.raises(TypeError, match=r"argument '(path|source|fname)': expected a path"):
        call(3)


def test_errors_of_files_survive_pickling():
    with pytest.raises(FileError) as found:
        mx.nd.load("nowhere")
    again = pickle.loads(pickle.dumps(found.value))
    assert (
        str(again)
        == str(found.value)
        == ("nd.load: cannot read 'nowhere': No such file or directory")
    )
    assert (type(again), again.errno, again.filename) == (MissingFileError, errno.ENOENT, "nowhere")


def test_what_is_written_within_a_block_is_told_with_the_file(tmp_path):
    with (
        pytest.raises(FileError, match=r"save: cannot write '.*x': No space left"),
        replacing("save", tmp_path / "x"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []
