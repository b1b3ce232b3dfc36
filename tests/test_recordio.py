"""Record files: the bytes MXNet writes, both ways; damage found, named and passed over."""

import gc
import json
import logging
import multiprocessing
import os
import pickle
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon import recordio
from gnomon.base import FormatError, GnomonError, ParamError, UnknownNameError
from gnomon.native.serve import served
from gnomon.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, parts, unpack
from gnomon.recordio.parts import LIMIT, MAGIC, encode

GOLDEN = Path(__file__).parent / "golden"
FACTS = json.loads((GOLDEN / "records.json").read_text())
RECORDS = [bytes.fromhex(r) for r in FACTS["records"]]
FORK = multiprocessing.get_context("fork")


def written(path, records) -> Path:
    with MXRecordIO(path, "w") as file:
        for record in records:
            file.write(record)
    return path


def in_child(job):
    """What `job()` gives in a forked child, or the text of its error."""
    mine, other = FORK.Pipe()

    def run():
        try:
            other.send(job())
        except GnomonError as e:
            other.send(f"{type(e).__name__}: {e}")

    child = FORK.Process(target=run)
    child.start()
    result = mine.recv()
    child.join()
    return result


# --- the real library's bytes -----------------------------------------------------------------


def test_the_real_librarys_records_are_read():
    with MXIndexedRecordIO(GOLDEN / "records.idx", GOLDEN / "records.rec", "r") as file:
        assert list(file) == RECORDS
        assert file.keys == [10 * i for i in range(len(RECORDS))]
        for i in reversed(range(len(RECORDS))):
            assert file.read_idx(10 * i) == RECORDS[i]
        assert file.read() == RECORDS[1]


def test_what_is_written_is_what_the_real_library_writes(tmp_path):
    with MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w") as file:
        for i, record in enumerate(RECORDS):
            file.write_idx(10 * i, record)
    for ours, theirs in (("x.rec", "records.rec"), ("x.idx", "records.idx")):
        assert (tmp_path / ours).read_bytes() == (GOLDEN / theirs).read_bytes()


def test_headers_are_packed_as_the_real_library_packs_them():
    for header, record in zip(FACTS["headers"], RECORDS[-len(FACTS["headers"]) :], strict=True):
        assert pack(tuple(header), b"content") == record
        back, content = unpack(record)
        assert content == b"content"
        assert np.array_equal(np.float32(header[1]), back.label)
        assert back[2:] == tuple(header[2:])


def test_a_header_is_shown_as_the_real_library_shows_it():
    assert repr(IRHeader(0, 3.0, 5, 0)) == "HEADER(flag=0, label=3.0, id=5, id2=0)"


# --- reading and writing ----------------------------------------------------------------------


@settings(max_examples=150)
@given(st.lists(st.lists(st.sampled_from([MAGIC, b"a", b"bc", b"\0\0\0\0"]), max_size=6)))
def test_any_records_come_back(tmp_path_factory, chunks):
    records = [b"".join(c) for c in chunks]
    path = written(tmp_path_factory.getbasetemp() / "any.rec", records)
    with MXRecordIO(path, "r") as file:
        assert list(file) == records
        assert file.read() is None
        file.reset()
        assert list(file) == records


def test_positions(tmp_path):
    path = tmp_path / "x.rec"
    with MXRecordIO(path, "w") as file:
        places = []
        for record in RECORDS:
            places.append(file.tell())
            file.write(memoryview(record))
    with MXRecordIO(path, "r") as file:
        assert [(file.tell(), file.read())[0] for _ in RECORDS] == places


def test_to_ask_for_the_place_at_each_record_takes_little(tmp_path):
    path = written(tmp_path / "x.rec", [b""] * 24_000)
    with MXRecordIO(path, "r") as file:
        begin = time.process_time()
        assert len(list(file)) == 24_000
        plain = time.process_time() - begin
        file.reset()
        begin = time.process_time()
        while file.tell() < 8 * 24_000:
            file.read()
        assert time.process_time() - begin < 50 * plain + 0.1


def test_records_of_all_sizes_in_turn(tmp_path):
    sizes = [0, 5, 70_000, 40, 65_000, 65_521, 65_536, 3, 300_000, 9, 1_000] * 3
    wanted = [bytes([k]) * n for k, n in enumerate(sizes)]
    path = tmp_path / "x"
    with MXIndexedRecordIO(f"{path}.idx", f"{path}.rec", "w") as file:
        for k, data in enumerate(wanted):
            file.write_idx(k, data)
    with MXIndexedRecordIO(f"{path}.idx", f"{path}.rec", "r") as file:
        places = [*file.idx.values(), path.with_suffix(".rec").stat().st_size]
        for k, data in enumerate(file):
            assert data == wanted[k]
            assert file.tell() == places[k + 1]
        assert file.read() is None
        found = []
        file.seek(25)
        for data in file:  # read and seek move it too
            found.append(data)
            if len(found) == 2:
                assert file.read() == wanted[27]
                file.seek(4)
            if len(found) == 4:
                assert file.read_idx(1) == wanted[1]
            if len(found) == 6:
                break
        assert found == [wanted[k] for k in (25, 26, 4, 5, 2, 3)]


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*RECORDS, MAGIC, b"", b"a"]), max_size=9), st.data())
def test_native_code_finds_the_records_that_python_finds(records, data):
    block = bytearray(b"".join(map(encode, records)) + MAGIC)
    for _ in range(data.draw(st.integers(0, 3))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    at = data.draw(st.integers(-5, len(block) + 5))
    ways = [(parts.cut, []), (served(parts.cut)[0], [])]
    ends = [way(bytes(block), at, found) for way, found in ways]
    assert ends[0] == ends[1]
    assert ways[0][1] == ways[1][1]


def test_a_file_that_is_closed_while_it_is_read(tmp_path):
    path = str(tmp_path / "x.rec")
    with MXRecordIO(path, "w") as file:
        for k in range(5):
            file.write(bytes([k]))
    file = MXRecordIO(path, "r")
    rest = iter(file)
    assert next(rest) == b"\0"
    file.close()
    with pytest.raises(GnomonError, match="closed"):
        next(rest)
    with pytest.raises(GnomonError, match=r"x\.rec.* closed"):
        file.read()


def test_flags_and_states(tmp_path):
    path = written(tmp_path / "x.rec", [b"a"])
    with pytest.raises(ParamError, match="MXRecordIO: argument 'flag': expected 'r' or 'w', got"):
        MXRecordIO(path, "rw")
    with pytest.raises(FileNotFoundError):
        MXRecordIO(tmp_path / "none.rec", "r")
    file = MXRecordIO(path, "r")
    with pytest.raises(GnomonError, match="write: expected a file open for writing"):
        file.write(b"a")
    file.close()
    file.close()
    with pytest.raises(GnomonError, match=r"read: expected a file open for reading, got .* closed"):
        file.read()
    file.open()
    assert file.read() == b"a"
    writer = MXRecordIO(path, "w")
    with pytest.raises(GnomonError, match=r"open for reading, got .* writing"):
        writer.read()
    del writer, file
    gc.collect()  # an open file is closed, not warned about


def test_a_record_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(recordio.file, "LIMIT", 10)
    with MXRecordIO(tmp_path / "x.rec", "w") as file:
        with pytest.raises(ParamError, match="less than 10 bytes, got 10"):
            file.write(bytes(10))
        assert file.tell() == 0
    assert LIMIT == 2**29


def test_keys_of_another_type(tmp_path):
    paths = tmp_path / "x.idx", tmp_path / "x.rec"
    with MXIndexedRecordIO(*paths, "w", key_type=str) as file:
        file.write_idx("one", b"1")
        assert (file.keys, file.idx) == (["one"], {"one": 0})
    with MXIndexedRecordIO(*paths, "r", key_type=str) as file:
        assert file.read_idx("one") == b"1"
        with pytest.raises(UnknownNameError, match=r"x\.idx: no record has the key 'two'"):
            file.read_idx("two")
    with pytest.raises(FormatError, match=r"x\.idx: line 1: expected 'key<TAB>offset', got 'one"):
        MXIndexedRecordIO(*paths, "r")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0 7", "line 1: expected 'key<TAB>offset'"),
        ("0\tx", "line 1: expected"),
        ("0\t-5", "offset of record 0: expected 0 to 12, got -5"),
        ("0\t999", "offset of record 0: expected 0 to 12, got 999"),
        ("0\t4", "offset 4: record header: expected magic word 0a23d7ce"),
    ],
)
def test_an_index_that_leads_astray(tmp_path, line, complaint):
    written(tmp_path / "x.rec", [b"abcd"])
    (tmp_path / "x.idx").write_text(line)
    with pytest.raises(FormatError, match=complaint):
        MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "r").read_idx(0)


# --- other processes --------------------------------------------------------------------------


def test_a_forked_reader_reads_for_itself(tmp_path):
    records = [b"%d" % i for i in range(5000)]
    with MXRecordIO(written(tmp_path / "x.rec", records), "r") as file:
        assert file.read() == b"0"
        assert in_child(lambda: list(file)) == records
        assert list(file) == records[1:]


def test_a_forked_writer_is_refused_and_writes_nothing_twice(tmp_path):
    file = MXRecordIO(tmp_path / "x.rec", "w")
    file.write(b"parent")

    def job():
        try:
            file.write(b"child")
        finally:
            file.close()

    assert "opened by process" in in_child(job)
    file.write(b"again")
    file.close()
    assert list(MXRecordIO(tmp_path / "x.rec", "r")) == [b"parent", b"again"]


def test_pickling(tmp_path):
    path = written(tmp_path / "x.rec", RECORDS)
    file = MXRecordIO(path, "r", skip_corrupt=True)
    file.read()
    copy = pickle.loads(pickle.dumps(file))
    assert list(copy) == RECORDS
    assert copy.skip_corrupt
    assert file.read() == RECORDS[1]
    file.close()
    assert not pickle.loads(pickle.dumps(file)).is_open
    with (
        MXRecordIO(tmp_path / "y.rec", "w") as writer,
        pytest.raises(GnomonError, match="cannot be pickled"),
    ):
        pickle.dumps(writer)


# --- damage -----------------------------------------------------------------------------------


def damaged(tmp_path, edit) -> Path:
    """A file of ten records to which `edit` was done, as a bytearray."""
    path = written(tmp_path / "x.rec", [b"record %d " % i + MAGIC * (i % 3) for i in range(10)])
    raw = bytearray(path.read_bytes())
    edit(raw)
    path.write_bytes(raw)
    return path


SIZE = len(encode(b"record 0 "))


def flip(raw):
    raw[0] ^= 1


def cut(raw):
    del raw[-3:]


def insert(raw):
    raw[SIZE + 8 : SIZE + 8] = b"?????"


def lengthen(raw):
    raw[4] += 200


DAMAGE = {
    "magic": (flip, r"x\.rec: offset 0: record header: expected magic word 0a23d7ce, got 0b23", 1),
    "cut": (cut, r"offset \d+: padding of a record: expected 3 bytes, got 0 before the end", 1),
    "inserted": (insert, r"offset 44: record header: expected magic word", 1),
    "length": (
        lengthen,
        f"offset 0: record: expected an end within {SIZE - 8} bytes, got 209 and a",
        1,
    ),
    "kind": (lambda raw: raw.__setitem__(7, 0x40), "part of kind 0 or 1, got 2", 1),
    "two places": (lambda raw: (flip(raw), cut(raw)), "offset 0", 2),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_reported_and_stays(tmp_path, case):
    edit, message, _ = DAMAGE[case]
    with MXRecordIO(damaged(tmp_path, edit), "r") as file:
        with pytest.raises(FormatError, match=message):
            list(file)
        place = file.tell()
        with pytest.raises(FormatError):
            file.read()
        assert file.tell() == place


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_passed_over(tmp_path, case, caplog):
    edit, _, times = DAMAGE[case]
    with (
        caplog.at_level(logging.WARNING),
        MXRecordIO(damaged(tmp_path, edit), "r", skip_corrupt=True) as file,
    ):
        records = list(file)
    assert file.skipped == times == len(caplog.records)
    assert "skipped to offset" in caplog.text
    assert {r[:9] for r in records[-8:]} <= {b"record %d " % i for i in range(10)}
    assert len(records) >= 10 - 2 * times


def test_rubbish_is_no_record_file(tmp_path):
    path = tmp_path / "x.rec"
    path.write_bytes(os.urandom(3 << 20).replace(MAGIC, b"") + MAGIC)
    with MXRecordIO(path, "r", skip_corrupt=True) as file:
        assert file.read() is None
        assert file.skipped == 1


def test_a_claimed_length_takes_no_memory(tmp_path):
    path = tmp_path / "x.rec"
    path.write_bytes(MAGIC + struct.pack("<I", LIMIT - 1) + b"abc")
    expected = f"expected {LIMIT - 1} bytes, got 3 before the end"
    with MXRecordIO(path, "r") as file, pytest.raises(FormatError, match=expected):
        file.read()


@settings(max_examples=200)
@given(st.data())
def test_mutated_files_are_read_or_refused_but_nothing_else(tmp_path_factory, data):
    raw = bytearray(b"".join(map(encode, RECORDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "mutated.rec"
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        with MXRecordIO(path, "r") as file:
            list(file)
    except FormatError:
        with MXRecordIO(path, "r", skip_corrupt=True) as file:
            list(file)
            assert file.skipped


# --- headers and images -----------------------------------------------------------------------


def test_short_headers_are_refused():
    with pytest.raises(FormatError, match="expected at least 24 bytes of header, got 3"):
        unpack(b"abc")
    with pytest.raises(FormatError, match="expected 3 labels, got 8 bytes"):
        unpack(pack(IRHeader(0, [1, 2, 3], 0, 0), b"")[:-4])
    with pytest.raises(ParamError, match="pack: argument 'header'"):
        pack((0, 1.0, -1, 0), b"")


def test_images_come_back():
    picture = np.random.default_rng(0).integers(0, 255, (7, 5, 3), np.uint8)
    header, back = recordio.unpack_img(
        recordio.pack_img((0, 3.0, 1, 2), picture, quality=5, img_fmt=".png")
    )
    assert header == (0, 3.0, 1, 2)
    assert np.array_equal(back, picture)
    flat = np.full((8, 8), 100, np.uint8)
    _, grey = recordio.unpack_img(recordio.pack_img((0, 0.0, 0, 0), flat), iscolor=0)
    assert grey.shape == (8, 8)
    assert abs(grey.astype(int) - 100).max() <= 2
    _, colour = recordio.unpack_img(recordio.pack_img((0, 0.0, 0, 0), flat), iscolor=1)
    assert colour.shape == (8, 8, 3)


def test_png_takes_the_quality_of_jpeg_without_a_warning(capfd):
    recordio.pack_img((0, 0.0, 0, 0), np.zeros((2, 2), np.uint8), img_fmt=".png")
    assert capfd.readouterr().err == ""


def test_bad_images_are_refused():
    for rest in (b"", b"no picture at all"):
        with pytest.raises(FormatError, match="unpack_img: expected an image"):
            recordio.unpack_img(pack((0, 0.0, 0, 0), rest))
    with pytest.raises(ParamError, match="'img_fmt': expected one of"):
        recordio.pack_img((0, 0.0, 0, 0), np.zeros((2, 2), np.uint8), img_fmt=".gif")
    with pytest.raises(ParamError, match=r"'img': expected .* got complex128 of shape \(2, 2\)"):
        recordio.pack_img((0, 0.0, 0, 0), np.zeros((2, 2), complex))


def test_without_opencv_the_way_to_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(GnomonError, match=r"pack_img needs OpenCV: pip install 'gnomon\[image\]'"):
        recordio.pack_img((0, 0.0, 0, 0), np.zeros((2, 2), np.uint8))


def test_threads_may_share_an_indexed_reader(tmp_path, monkeypatch):
    wanted = {k: bytes([k]) * (40 + 900 * k) for k in range(12)}
    with MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w") as f:
        for key, data in wanted.items():
            f.write_idx(key, data)
    f = MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "r")
    at_once = f._reader.read_at

    def slowly(nbytes, at):
        time.sleep(0.0005)
        return at_once(nbytes, at)

    monkeypatch.setattr(f._reader, "read_at", slowly)
    with ThreadPoolExecutor(4) as pool:
        assert dict(zip(wanted, pool.map(f.read_idx, wanted), strict=True)) == wanted
