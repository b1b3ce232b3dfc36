"""`gnomon im2rec`: lists, records, and the errors on the way."""

import cv2
import numpy as np
import pytest

import gnomon as mx
from gnomon import cli
from gnomon.ground.bar import Bar

RNG = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cat/a.png", "cat/b.png", "dog/c.jpg", "dog/deep/d.png", "dog/note.txt"):
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("not an image")
        if file.suffix != ".txt":
            cv2.imwrite(str(file), RNG.integers(0, 256, (10, 16, 3)).astype(np.uint8))
    return tmp_path


def lines(name):
    with open(name) as stream:  # noqa: PTH123
        return [line.rstrip("\n").split("\t") for line in stream]


def im2rec(*arguments):
    return cli.main(["im2rec", *map(str, arguments)])


def test_lists(folder, capsys):
    assert im2rec("--list", "--recursive", "--no-shuffle", "all", "images") == 0
    assert capsys.readouterr().out == "cat 0\ndog 1\ndog/deep 2\n"
    assert lines("all.lst") == [
        ["0", "0.000000", "cat/a.png"],
        ["1", "0.000000", "cat/b.png"],
        ["2", "1.000000", "dog/c.jpg"],
        ["3", "2.000000", "dog/deep/d.png"],
    ]
    im2rec("flat", "images/cat", "--list", "--exts", ".png")
    assert sorted(lines("flat.lst")) == [["0", "0.000000", "a.png"], ["1", "0.000000", "b.png"]]


def test_folders_are_labelled_as_by_mxnet(folder):
    """A folder's own files come first, then the folders in it, also those that are linked."""
    images = folder / "images"
    (images / "z.png").write_bytes((images / "cat/a.png").read_bytes())
    (images / "dog/z.jpg").write_bytes((images / "dog/c.jpg").read_bytes())
    (images / "ant").symlink_to(images / "cat")
    (images / "dog/round").symlink_to(images)
    im2rec("--list", "--recursive", "--no-shuffle", "all", "images")
    assert [row[1:] for row in lines("all.lst")] == [
        ["0.000000", "z.png"],
        ["1.000000", "ant/a.png"],
        ["1.000000", "ant/b.png"],
        ["2.000000", "cat/a.png"],
        ["2.000000", "cat/b.png"],
        ["3.000000", "dog/c.jpg"],
        ["3.000000", "dog/z.jpg"],
        ["4.000000", "dog/deep/d.png"],
    ]


def test_lists_in_parts(folder):
    im2rec("--list", "--recursive", "--train-ratio", "0.5", "--test-ratio", "0.25", "p", "images")
    found = {kind: lines(f"p_{kind}.lst") for kind in ("train", "test", "val")}
    assert {kind: len(rows) for kind, rows in found.items()} == {"train": 2, "test": 1, "val": 1}
    assert sorted(row[0] for rows in found.values() for row in rows) == ["0", "1", "2", "3"]
    im2rec("--list", "--recursive", "--chunks", "2", "c", "images")
    assert [len(lines(f"c_{k}.lst")) for k in (0, 1)] == [2, 2]


def test_shares_are_of_a_whole_chunk(folder):
    cv2.imwrite("images/more.png", np.zeros((5, 5, 3), np.uint8))
    options = ("--chunks", "2", "--train-ratio", "0.67", "--test-ratio", "0.33")
    im2rec("--list", "--recursive", *options, "p", "images")
    found = [len(lines(f"p_{k}_train.lst")) for k in (0, 1)]
    assert found == [2, 2]  # of 3 and of 2, as MXNet's tool has it


def test_records(folder):
    im2rec("--list", "--recursive", "--no-shuffle", "all", "images")
    assert im2rec("all", "images", "--encoding", ".png", "--quality", "3") == 0
    with mx.recordio.MXIndexedRecordIO("all.idx", "all.rec", "r") as file:
        assert file.keys == [0, 1, 2, 3]
        header, image = mx.recordio.unpack_img(file.read_idx(3))
    assert (header.id, header.label) == (3, 2.0)
    np.testing.assert_array_equal(image, cv2.imread("images/dog/deep/d.png"))
    it = mx.io.ImageRecordIter(path_imgrec="all.rec", data_shape=(3, 10, 10), batch_size=4)
    assert next(it).label[0].asnumpy().tolist() == [0, 0, 1, 2]
    assert sorted(p.name for p in folder.iterdir()) == ["all.idx", "all.lst", "all.rec", "images"]


def test_sizes_colours_and_files_as_they_are(folder):
    im2rec("--list", "cats", "images/cat")

    def image(*options):
        im2rec("cats", "images/cat", "--encoding", ".png", "--quality", "1", *options)
        with mx.recordio.MXIndexedRecordIO("cats.idx", "cats.rec", "r") as file:
            return mx.recordio.unpack(file.read_idx(0))[1]

    def shape(data):
        return cv2.imdecode(np.frombuffer(data, np.uint8), -1).shape

    assert shape(image("--resize", "5")) == (5, 8, 3)
    assert shape(image("--center-crop")) == (10, 10, 3)
    assert shape(image("--center-crop", "--resize", "20", "--color", "0")) == (20, 20)
    assert image("--pass-through") == (folder / "images/cat/a.png").read_bytes()


def test_several_labels(folder):
    (folder / "two.lst").write_text("7\t1.5\t2\tcat/a.png\n\n8\t3\tcat/b.png\n")

    def headers():
        with mx.recordio.MXIndexedRecordIO("two.idx", "two.rec", "r") as file:
            return [mx.recordio.unpack(file.read_idx(key))[0] for key in (7, 8)]

    assert im2rec("two", "images") == 0
    assert headers() == [(0, 1.5, 7, 0), (0, 3, 8, 0)]
    assert im2rec("two", "images", "--pack-label") == 0
    both, one = headers()
    assert (both.flag, both.label.tolist()) == (2, [1.5, 2])
    assert one == (0, 3, 8, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "write one by --list"),
        ("x\tcat/a.png\n", "line 1"),
        ("0\tcat/a.png\n", "bad.lst: cat/a.png: expected a label or several, got none"),
        ("0\t1\tcat/none.png\n", "bad.rec: im2rec: cannot read 'images/cat/none.png'"),
        ("0\t1\tdog/note.txt\n", "no image of "),
    ],
)
def test_what_is_wrong_is_told_and_nothing_left(folder, capsys, text, words):
    if text:
        (folder / "bad.lst").write_text(text)
    before = sorted(folder.iterdir())
    assert im2rec("bad", "images") == 1
    assert words in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_what_is_no_image_is_told_and_left_out(folder, capsys):
    rows = ("cat/a.png", "dog/note.txt", "cat/none.png", "cat/b.png")
    (folder / "some.lst").write_text("".join(f"{k}\t{k}\t{row}\n" for k, row in enumerate(rows)))
    assert im2rec("some", "images") == 0
    told = capsys.readouterr().err
    assert "some.rec: 'images/dog/note.txt' is no image; left out" in told
    assert (
        "some.rec: im2rec: cannot read 'images/cat/none.png': No such file or directory; left"
        in told
    )
    assert "some.rec: 2 images" in told
    with mx.recordio.MXIndexedRecordIO("some.idx", "some.rec", "r") as file:
        assert file.keys == [0, 3]
        assert mx.recordio.unpack(file.read_idx(3))[0].label == 3


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("gnomon.ground.bar.PAUSE", 0)
    with Bar(2, "x") as bar:
        bar.update()
        bar.say("odd")
        bar.update()
    drawn = capsys.readouterr().err.replace("\x1b[K", "").replace("\r", "\n").splitlines()
    assert drawn[1].startswith("x [" + "=" * 20 + " " * 20 + "] 1/2, ")
    assert drawn[1].endswith("s left") and drawn[2] == "x: odd"
    assert drawn[-1].startswith("x [" + "=" * 40 + "] 2/2, ")


def test_folders_without_images_are_told(folder, capsys):
    assert im2rec("--list", "x", "nowhere") == 1
    assert "is no folder" in capsys.readouterr().err
    assert im2rec("--list", "x", "images") == 1
    assert "there are no images" in capsys.readouterr().err
