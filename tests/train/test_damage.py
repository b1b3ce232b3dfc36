"""Record files that are broken anywhere, vanish, or cannot be written: told or counted, no more.

The format has no checksums: another number in a label, or other bytes that still decode, cannot be
noticed. What must not be is a crash, a hang, or an image with the label of another one.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import cv2
import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.recordio.parts import MAGIC

ROOT = Path(__file__).parent.parent.parent
COUNT, SIDE = 12, 12
PLACES, ALL_PLACES = 150, 10_000


def colour(k: int) -> int:
    """The grey of image `k`, by which its label can be told."""
    return 20 * k


def pack(path: Path) -> bytes:
    """A record file of grey images; gives its bytes."""
    with mx.recordio.MXIndexedRecordIO(str(path.with_suffix(".idx")), str(path), "w") as out:
        for k in range(COUNT):
            image = np.full((SIDE, SIDE, 3), colour(k), np.uint8)
            data = cv2.imencode(".png", image)[1].tobytes()
            out.write_idx(k, mx.recordio.pack((0, float(k), k, 0), data))
    return path.read_bytes()


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    return pack(tmp_path_factory.mktemp("sound") / "a.rec")


def make(path, **options):
    return mx.io.ImageRecordIter(
        path_imgrec=str(path), data_shape=(3, SIDE, SIDE), batch_size=4, **options
    )


def rows(it) -> list[tuple[np.ndarray, float]]:
    """Image and label of all rows of an epoch."""
    found = []
    for batch in it:
        found += zip(batch.data[0].asnumpy(), batch.label[0].asnumpy().tolist(), strict=True)
    return found


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content with one damage: cut off, a bit changed, some bytes lost or twice there."""
    how, at = rng.randrange(4), rng.randrange(len(content))
    if how == 0:
        return content[:at]
    if how == 1:
        return content[:at] + content[at + rng.randrange(1, 40) :]
    if how == 2:
        return content[:at] + content[max(0, at - rng.randrange(1, 40)) :]
    while in_a_label(at, content):
        at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


def in_a_label(at: int, content: bytes) -> bool:
    """Whether the number there is a record's label, which may be any."""
    start = content.rfind(MAGIC, 0, at + 4)
    return start >= 0 and 12 <= at - start < 16


def check(found: list[tuple[np.ndarray, float]], seed: int) -> None:
    """No image has another one's label."""
    for image, label in found:
        assert label in range(COUNT), seed
        grey = int(image[0, 0, 0])
        of_another = grey != colour(int(label)) and grey % 20 == 0 and (image == grey).all()
        assert not of_another, (seed, label, grey)


def hunt(content: bytes, folder: Path, seeds: range) -> dict[str, int]:
    """Damage the file at a place for each seed and read it in all ways; gives what was seen."""
    seen = {"told": 0, "skipped": 0, "unnoticed": 0}
    for seed in seeds:
        data = damaged(random.Random(seed), content)
        broken = folder / "broken.rec"
        broken.write_bytes(data)
        for skip in (False, True):
            it, found, said = read(broken, skip)
            if said:
                assert "broken.rec" in said, (seed, said)
                assert skip is False or not data or "no " in said, (seed, said)
                seen["told"] += 1
            else:
                check(found, seed)
                seen["skipped" if it.skipped else "unnoticed"] += 1
                whole = {label for _, label in found} == set(range(COUNT))
                assert whole or it.skipped or len(data) != len(content), seed
        in_turn(broken, seed)
    return seen


def read(broken: Path, skip: bool) -> tuple[mx.io.DataIter | None, list, str]:
    """An iterator over the file, its rows, and what its error said, if anything."""
    try:
        it = make(broken, skip_corrupt=skip, preprocess_threads=1)
        return it, rows(it), ""
    except GnomonError as error:
        return None, [], str(error)


def in_turn(broken: Path, seed: int) -> None:
    """Read from the start, with and without passing over damage."""
    for skip in (False, True):
        count, said = counted(broken, skip)
        assert count <= COUNT + 1, seed
        assert not said or (skip is False and "broken.rec: offset" in said), (seed, said)


def counted(broken: Path, skip: bool) -> tuple[int, str]:
    """How many records there are up to an error, and what that said."""
    count = 0
    with mx.recordio.MXRecordIO(str(broken), "r", skip_corrupt=skip) as file:
        try:
            for _ in file:
                count += 1
        except GnomonError as error:
            return count, str(error)
    return count, ""


def test_damage_anywhere(content, tmp_path):
    seen = hunt(content, tmp_path, range(PLACES))
    assert seen["told"] > PLACES // 2
    assert seen["skipped"] > PLACES // 2


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_damage_at_ten_thousand_places(content, tmp_path):
    seen = hunt(content, tmp_path, range(ALL_PLACES))
    print(seen)
    assert seen["told"] > ALL_PLACES // 2


def test_files_that_vanish(content, tmp_path):
    with pytest.raises(mx.MXNetError, match=r"nowhere\.rec"):
        make(tmp_path / "nowhere.rec")
    path = tmp_path / "a.rec"
    path.write_bytes(content)
    it = make(path, prefetch_buffer=0)
    assert len(rows(it)) == COUNT
    os.truncate(path, len(content) // 2)
    it.reset()
    with pytest.raises(mx.MXNetError, match=r"a\.rec.*offset \d+"):
        rows(it)
    os.truncate(path, 0)
    with pytest.raises(mx.MXNetError, match=r"a\.rec"):
        make(path)
    path.write_bytes(content)
    it = make(path)
    path.unlink()  # what is open stays readable
    assert [label for _, label in rows(it)] == [float(k) for k in range(COUNT)]


def test_images_that_vanish(tmp_path):
    names = [f"{k}.png" for k in range(3)]
    for k, name in enumerate(names):
        cv2.imwrite(str(tmp_path / name), np.full((SIDE, SIDE, 3), colour(k), np.uint8))
    it = mx.image.ImageIter(
        1, (3, SIDE, SIDE), imglist=[[k, n] for k, n in enumerate(names)], path_root=str(tmp_path)
    )
    (tmp_path / "1.png").unlink()
    next(it)
    with pytest.raises(mx.MXNetError, match=r"1\.png"):
        next(it)
    assert next(it).label[0].asnumpy().tolist() == [2.0]


def run(folder, code: str, *arguments: str, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, timeout=100, check=False,
                          capture_output=True, text=True, **options)  # fmt: skip


def images(folder: Path, count: int) -> None:
    """A folder of images, and a list of them."""
    (folder / "img").mkdir()
    rng = np.random.default_rng(0)
    lines = []
    for k in range(count):
        image = rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)
        cv2.imwrite(str(folder / "img" / f"{k}.png"), image)
        lines.append(f"{k}\t{k}\t{k}.png\n")
    (folder / "a.lst").write_text("".join(lines))


def test_a_full_disk_while_packing(tmp_path):
    images(tmp_path, 20)
    (tmp_path / "a.rec").write_bytes(b"before")
    code = """
        import resource, signal, sys
        from gnomon.cli import main
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sys.dont_write_bytecode = True  # Python's own would be cut off, and others read it
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        sys.exit(main(["im2rec", "a", "img", "--pass-through", "--num-thread", "2"]))
    """
    done = run(tmp_path, code)
    assert done.returncode == 1
    assert re.search(r"gnomon: .*cannot write '.*a\.rec.*': .*large", done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "a.rec").read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.lst", "a.rec", "img"]


def test_a_writer_that_is_killed_leaves_whole_records(tmp_path):
    code = """
        import itertools, sys
        import gnomon as mx
        with mx.recordio.MXRecordIO("a.rec", "w") as out:
            for k in itertools.count():
                out.write(mx.recordio.pack((0, float(k), k, 0), bytes([k % 256]) * 5_000))
                if k == 50:
                    print("going", flush=True)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    with mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "r", skip_corrupt=True) as file:
        found = [mx.recordio.unpack(each) for each in file]
    assert len(found) > 50
    assert [header.label for header, _ in found] == [float(k) for k in range(len(found))]
    assert all(data == bytes([k % 256]) * 5_000 for k, (_, data) in enumerate(found))
    assert file.skipped <= 1


def test_a_reader_that_is_killed_leaves_the_others(content, tmp_path):
    path = tmp_path / "a.rec"
    path.write_bytes(content)
    it = make(path)
    next(it)
    child = os.fork()
    if child == 0:
        while True:
            rows(make(path))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert [label for _, label in rows(it)] == [float(k) for k in range(4, COUNT)]


def test_packing_that_is_killed_leaves_the_old_file(tmp_path):
    images(tmp_path, 3)
    (tmp_path / "a.rec").write_bytes(b"before")
    code = """
        import os, signal
        from gnomon.commands import im2rec
        from gnomon.cli import main
        im2rec.Bar.update = lambda self: os.kill(os.getpid(), signal.SIGKILL)
        main(["im2rec", "a", "img", "--pass-through", "--num-thread", "1"])
    """
    assert run(tmp_path, code).returncode == -signal.SIGKILL
    assert (tmp_path / "a.rec").read_bytes() == b"before"
    done = run(tmp_path, "from gnomon.cli import main; main(['im2rec', 'a', 'img'])")
    assert done.returncode == 0, done.stderr
    with mx.recordio.MXIndexedRecordIO(f"{tmp_path}/a.idx", f"{tmp_path}/a.rec", "r") as file:
        assert [mx.recordio.unpack(file.read_idx(k))[0].label for k in range(3)] == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.idx", "a.lst", "a.rec", "img"]
