"""Files of other places than the disk: record files, lists and tables, by fsspec."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import fsspec
import numpy as np
import pytest

import gnomon as mx

PLACE = "memory://gnomon-test"


def put(name, content):
    path = f"{PLACE}/{name}"
    with fsspec.open(path, "wb") as stream:
        stream.write(content)
    return path


def test_records_are_written_and_read():
    rec, idx = f"{PLACE}/a.rec", f"{PLACE}/a.idx"
    with mx.recordio.MXIndexedRecordIO(idx, rec, "w") as out:
        for k in range(5):
            image = np.full((8, 8, 3), 20 * k, np.uint8)
            out.write_idx(k, mx.recordio.pack_img((0, float(k), k, 0), image, 3, ".png"))
    with mx.recordio.MXIndexedRecordIO(idx, rec, "r") as file:
        header, image = mx.recordio.unpack_img(file.read_idx(3))
        assert (header.label, int(image[0, 0, 0])) == (3, 60)
        assert len(list(file)) == 1
    with mx.recordio.MXRecordIO(rec, "r") as file:
        assert len(list(file)) == 5
    it = mx.io.ImageRecordIter(
        path_imgrec=rec, data_shape=(3, 8, 8), batch_size=5, preprocess_threads=2
    )
    (batch,) = it
    assert batch.data[0].asnumpy()[:, 0, 0, 0].tolist() == [0, 20, 40, 60, 80]
    assert len(list(mx.image.ImageIter(5, (3, 8, 8), path_imgrec=rec))) == 1


def test_lists_and_images():
    image = cv2.imencode(".png", np.full((8, 8, 3), 7, np.uint8))[1].tobytes()
    put("x.png", image)
    listed = put("a.lst", b"0\t4\tx.png\n")
    it = mx.image.ImageIter(1, (3, 8, 8), path_imglist=listed, path_root=PLACE)
    batch = next(it)
    assert batch.label[0].asnumpy().tolist() == [4]
    assert float(batch.data[0].asnumpy().mean()) == 7


def test_tables():
    it = mx.io.CSVIter(data_csv=put("a.csv", b"1,2\n3,4\n"), data_shape=(2,), batch_size=2)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2], [3, 4]]
    it = mx.io.LibSVMIter(data_libsvm=put("a.svm", b"1 0:5\n"), data_shape=(2,), batch_size=1)
    assert next(it).data[0].asnumpy().tolist() == [[5, 0]]


class Ranges(SimpleHTTPRequestHandler):
    """Serves files, also parts of them: what `Range: bytes=a-b` asks for."""

    def do_GET(self):
        content = Path(self.translate_path(self.path))
        if not content.is_file():
            self.send_error(404)
            return
        data = content.read_bytes()
        start, end, code = 0, len(data), 200
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end, code = int(first), min(int(last) + 1, end) if last else end, 206
        self.send_response(code)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        if code == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start:end])

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def address(tmp_path):
    """Of a server of the files in `tmp_path`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=tmp_path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_files_of_a_web_server(tmp_path, address):
    records = [bytes([k]) * (50_000 if k % 3 else 20) for k in range(9)]
    with mx.recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as out:
        for k, record in enumerate(records):
            out.write_idx(k, record)
    with mx.recordio.MXIndexedRecordIO(f"{address}/a.idx", f"{address}/a.rec", "r") as file:
        assert file.read_idx(7) == records[7] and list(file) == records[8:]
    with mx.recordio.MXRecordIO(f"{address}/a.rec", "r") as file:
        assert list(file) == records
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    it = mx.io.CSVIter(data_csv=f"{address}/a.csv", data_shape=(2,), batch_size=2)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(mx.MXNetError, match=r"read '.*no\.rec': No such file or directory"):
        mx.recordio.MXRecordIO(f"{address}/no.rec", "r")
    with pytest.raises(mx.MXNetError, match=r"new\.rec': fsspec cannot write"):
        mx.recordio.MXRecordIO(f"{address}/new.rec", "w")
    assert mx.gluon.data.RecordFileDataset(f"{address}/a.rec")[7] == records[7]


@pytest.mark.parametrize("path", [f"{PLACE}/nowhere.rec", "nosuchplace://x.rec"])
def test_what_is_not_there(path):
    with pytest.raises(mx.MXNetError, match=path):
        mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=1)
    with pytest.raises((OSError, mx.MXNetError)):
        mx.recordio.MXRecordIO(path, "r")
