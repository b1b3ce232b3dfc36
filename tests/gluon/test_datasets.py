"""Data sets in files, and transforms of images."""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import FormatError, ParamError, ShapeError
from gnomon.gluon import data


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.tobytes()


def test_mnist(tmp_path):
    images = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype(np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images))
    labels = gzip.compress(idx(np.array([5, 0, 9], np.uint8)))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(labels)
    found = data.vision.MNIST(tmp_path)
    image, label = found[2]
    assert (image.shape, image.dtype, label, label.dtype) == ((28, 28, 1), np.uint8, 9, np.int32)
    np.testing.assert_array_equal(image.asnumpy()[..., 0], images[2])
    assert len(found) == 3
    assert data.vision.FashionMNIST(tmp_path, transform=lambda i, y: y + 1)[0] == 6
    with pytest.raises(FileNotFoundError, match=r"t10k-images.*nothing is fetched"):
        data.vision.MNIST(tmp_path, train=False)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images)[:-1])
    with pytest.raises(FormatError, match=r"train-images.*2351"):
        data.vision.MNIST(tmp_path)


@pytest.mark.parametrize("base", [data.dataset._DownloadedDataset, data.vision.MNIST])
def test_programs_read_files_of_their_own(base, tmp_path):  # as those for MXNet do
    class Rows(base):
        def __init__(self, root, transform=None):
            super().__init__(root=root, transform=transform)

        def _get_data(self):
            lines = Path(self._root + "/rows.txt").read_text().split()
            self._label = np.array(lines, np.int32)
            self._data = mx.nd.array(self._label) * 2

    (tmp_path / "rows.txt").write_text("3\n4\n")
    assert len(Rows(tmp_path)) == 2
    assert [(x.asscalar(), y) for x, y in Rows(str(tmp_path))] == [(6, 3), (8, 4)]
    assert Rows(tmp_path, lambda x, y: y + 1)[1] == 5
    first = Rows(tmp_path).transform_first(lambda x: x + 1)
    assert isinstance(first, data.dataset._LazyTransformDataset)
    assert first[0][0].asscalar() == 7


def test_programs_list_images_of_their_own(tmp_path):
    class Flat(data.vision.ImageFolderDataset):
        def _list_images(self, root):
            self.synsets = ["all"]
            self.items = [(f"{root}/{name}.png", 0) for name in "ab"]

    listed = Flat(tmp_path)
    assert (len(listed), listed.items[1]) == (2, (f"{tmp_path}/b.png", 0))


def test_cifar(tmp_path):
    rows = np.random.default_rng(0).integers(0, 256, (2, 3073)).astype(np.uint8)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(rows.tobytes())
    found = data.vision.CIFAR10(tmp_path, train=False)
    image, label = found[1]
    assert (image.shape, label) == ((32, 32, 3), rows[1, 0])
    np.testing.assert_array_equal(
        image.asnumpy(), rows[1, 1:].reshape(3, 32, 32).transpose(1, 2, 0)
    )
    (tmp_path / "test.bin").write_bytes(np.insert(rows, 0, [7, 8], axis=1).tobytes())
    for fine, expected in ((False, 7), (True, rows[0, 0])):
        assert data.vision.CIFAR100(tmp_path, fine, train=False)[0][1] == expected
    with pytest.raises(FileNotFoundError, match=r"data_batch_1.bin, data_batch_2"):
        data.vision.CIFAR10(tmp_path)


@pytest.fixture
def pictures(tmp_path):
    """Two folders with a picture each, red and green, a record file and a list of them."""
    import cv2  # of the extra `test`

    colours = {"a": (0, 0, 255), "b": (0, 255, 0)}
    record = mx.recordio.MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w")
    for number, (name, colour) in enumerate(colours.items()):
        (tmp_path / "all" / name).mkdir(parents=True)
        image = np.full((4, 6, 3), colour, np.uint8)
        cv2.imwrite(str(tmp_path / "all" / name / "one.png"), image)
        header = mx.recordio.IRHeader(0, float(number), number, 0)
        record.write_idx(number, mx.recordio.pack_img(header, image, img_fmt=".png"))
    record.close()
    (tmp_path / "all" / "b" / "notes.txt").write_text("no image")
    (tmp_path / "all.lst").write_text("0\t1.5\t2\ta/one.png\n1\t3\t4\tb/one.png\n")
    return tmp_path


WIKI = " \n = Title = \n \n a b c d e f g h a a b <unk> \n x y z \u00e9 w \n"


def test_texts(tmp_path):
    text = mx.gluon.contrib.data.text
    for part in ("train", "valid", "test"):
        (tmp_path / f"wiki.{part}.tokens").write_text(WIKI, "utf-8")
    for segment in ("train", "validation", "test"):
        found = text.WikiText2(tmp_path, segment, seq_len=4)
        assert len(found) == 5  # as MXNet has them
        assert [x.asnumpy().tolist() for x in found[0]] == [[3, 5, 3, 1], [5, 3, 1, 2]]
        assert [x.asnumpy().tolist() for x in found[4]] == [[1, 13, 14, 15], [13, 14, 15, 16]]
    assert "".join(found.vocabulary.idx_to_token) == "<unk><eos>a=bTitlecdefghwxyz\u00e9"
    assert (found.frequencies["a"], found.frequencies["<eos>"]) == (3, 0)
    vocab = mx.contrib.text.vocab.Vocabulary(Counter({"a": 2, "b": 1}))
    found = text.WikiText2(tmp_path, vocab=vocab, seq_len=4)
    assert found.vocabulary is vocab
    assert [x.asnumpy().tolist() for x in found[1]] == [[1, 2, 0, 0], [2, 0, 0, 0]]
    with zipfile.ZipFile(tmp_path / "wikitext-103-v1.zip", "w") as archive:
        archive.writestr("wikitext-103/wiki.train.tokens", WIKI)
    (tmp_path / "wiki.train.tokens").unlink()
    assert len(text.WikiText103(tmp_path, seq_len=7)) == 3


def test_texts_that_are_not_there(tmp_path):
    text = mx.gluon.contrib.data.text
    words = r"WikiText2: neither wiki.test.tokens nor wikitext-2-v1.zip found .*nothing is fetched"
    with pytest.raises(FileNotFoundError, match=words):
        text.WikiText2(tmp_path, "test")
    (tmp_path / "wikitext-2-v1.zip").write_bytes(b"x")
    with pytest.raises(FormatError, match=r"wikitext-2-v1.zip: expected wiki.test.tokens"):
        text.WikiText2(tmp_path, "test")
    (tmp_path / "wiki.train.tokens").write_bytes(b"a b c")
    with pytest.raises(ShapeError, match=r"WikiText2: argument 'seq_len'.*got 4"):
        text.WikiText2(tmp_path)
    with pytest.raises(ParamError, match="segment"):
        text.WikiText2(tmp_path, "valid")


def test_images_in_files(pictures, caplog):
    folders = data.vision.ImageFolderDataset(pictures / "all")
    assert folders.synsets == ["a", "b"]
    assert "notes.txt" in caplog.text
    records = data.vision.ImageRecordDataset(pictures / "x.rec")
    listed = data.vision.ImageListDataset(pictures / "all", pictures / "all.lst")
    for found in (folders, records, listed):
        assert len(found) == 2
        for number, colour in enumerate(([255, 0, 0], [0, 255, 0])):
            image, _ = found[number]
            assert (image.shape, image.dtype) == ((4, 6, 3), np.uint8)
            assert image.asnumpy()[0, 0].tolist() == colour
    assert [folders[1][1], records[1][1], listed[0][1].tolist()] == [1, 1.0, [1.5, 2.0]]
    assert data.vision.ImageFolderDataset(pictures / "all", flag=0)[0][0].shape == (4, 6, 1)
    rows = data.vision.ImageListDataset(pictures / "all", [[7, "a/one.png"]])
    assert rows[0][1].tolist() == [7]
    (pictures / "all" / "a" / "two.jpg").write_bytes(b"no image")
    with pytest.raises(FormatError, match=r"two.jpg"):
        data.vision.ImageFolderDataset(pictures / "all")[1]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        data.vision.ImageFolderDataset(pictures / "nowhere")
    with pytest.raises(FormatError, match="row 0"):
        data.vision.ImageListDataset(".", [["a.png"]])


def test_transforms():
    t = data.vision.transforms
    rng = np.random.default_rng(0)
    image = mx.nd.array(rng.integers(0, 256, (20, 30, 3)), dtype="uint8")
    change = t.Compose([t.RandomResizedCrop(16), t.RandomFlipLeftRight(), t.ToTensor()])
    assert change(image).shape == (3, 16, 16)
    change = t.Compose([t.Resize(10, keep_ratio=True), t.CenterCrop((8, 6)), t.Cast("float32")])
    assert change(image).shape == (6, 8, 3)
    assert t.CenterCrop(40)(image).shape == (40, 40, 3)
    middle = t.CenterCrop((4, 2))(image).asnumpy()
    np.testing.assert_array_equal(middle, image.asnumpy()[9:11, 13:17])
    part = t.CropResize(1, 2, 6, 4)(image).asnumpy()
    np.testing.assert_array_equal(part, image.asnumpy()[2:6, 1:7])
    assert t.CropResize(1, 2, 6, 4, size=(3, 5))(image).shape == (5, 3, 3)
    tensor = t.Compose([t.ToTensor(), t.Normalize((0.1, 0.2, 0.3), (1, 2, 4))])(image).asnumpy()
    expected = (image.asnumpy().transpose(2, 0, 1) / 255 - [[[0.1]], [[0.2]], [[0.3]]]) / [
        [[1]], [[2]], [[4]]
    ]  # fmt: skip
    np.testing.assert_allclose(tensor, expected, rtol=1e-4, atol=1e-5)
    colours = [
        t.RandomBrightness(0.1), t.RandomContrast(0.1), t.RandomSaturation(0.1), t.RandomHue(0.1),
        t.RandomColorJitter(0.1, 0.1, 0.1, 0.1), t.RandomLighting(0.1), t.RandomFlipTopBottom(),
        t.RandomApply(t.Resize(7), p=0.0),
    ]  # fmt: skip
    for each in colours:
        assert each(image).shape == image.shape
    with pytest.raises(ParamError, match=r"RandomHue.*hue"):
        t.RandomHue(-1)
    with pytest.raises(ShapeError, match="CenterCrop"):
        t.CenterCrop(3)(mx.nd.ones((2, 3)))


def test_rotations():
    kinds = data.vision.transforms
    x = mx.nd.array(np.arange(48).reshape(4, 4, 3) / 48).transpose((2, 0, 1))
    sums = {(): 19.986303, ("zoom_in",): 23.5, ("zoom_out",): 13.324203}  # as in MXNet
    for flags, total in sums.items():
        found = kinds.Rotate(30, **dict.fromkeys(flags, True))(x)
        np.testing.assert_allclose(found.sum().asscalar(), total, rtol=1e-6)
    near = kinds.RandomRotation((30, 30.0001))(x).sum().asscalar()
    np.testing.assert_allclose(near, 19.986301, rtol=1e-6)
    assert kinds.RandomRotation((10, 30), rotate_with_proba=0)(x) is x
    batch = kinds.RandomRotation((-90, 90))(mx.nd.stack(x, x))
    assert batch.shape == (2, 3, 4, 4) and (batch[0] - batch[1]).abs().max().asscalar() > 0.01
    with pytest.raises(TypeError, match="float32"):
        kinds.Rotate(30)(x.astype("uint8"))
    for wrong in ({"angle_limits": 10}, {"angle_limits": (30, 10)}, {"zoom_in": 1, "zoom_out": 1},
                  {"rotate_with_proba": 1.5}):  # fmt: skip
        with pytest.raises(ParamError, match=f"RandomRotation: argument '{[*wrong][-1]}'"):
            kinds.RandomRotation(**{"angle_limits": (10, 30), **wrong})
