"""Detection: augmenters of images with boxes, rotation, `ImageDetIter`, as the real library."""

import json
import random
from pathlib import Path

import cv2
import numpy as np
import pytest
from golden import detection

import gnomon as mx
from gnomon import recordio

image = mx.image
FILE = Path(__file__).parent.parent / "golden" / "detection.json"


@pytest.fixture(scope="module")
def wanted():
    return json.loads(FILE.read_text())


@pytest.fixture
def folder(tmp_path):
    detection.files(mx, tmp_path, cv2)
    return tmp_path


def test_augmenters_draw_as_the_real_ones(wanted):
    for (dumps, found), (real_dumps, real) in zip(
        detection.drawn(mx), wanted["drawn"], strict=True
    ):
        assert dumps == real_dumps
        for (shape, means, label), (real_shape, real_means, real_label) in zip(
            found, real, strict=True
        ):
            assert shape == real_shape, dumps
            np.testing.assert_allclose(label, real_label, atol=2e-5, err_msg=str(dumps))
            np.testing.assert_allclose(means, real_means, atol=0.05, err_msg=str(dumps))


def test_rotation_as_the_real_one(wanted):
    for found, real in zip(detection.rotated(mx), wanted["rotated"], strict=True):
        np.testing.assert_allclose(found, real, atol=1e-3)


def test_batches_as_the_real_ones(wanted, folder):
    for (epoch, means, label, pad), real in zip(
        detection.batches(mx, folder), wanted["batches"], strict=True
    ):
        assert epoch == real[0]
        assert pad in (0, real[3])  # rows carried over are no padding
        np.testing.assert_allclose(label, real[2], atol=2e-5)
        np.testing.assert_allclose(means, real[1], atol=0.05)


def rows_of(folder, *labels):
    return [[np.array(label), f"{folder}/{k % 5}.png"] for k, label in enumerate(labels)]


def iterator(folder, *labels, batch_size=1, **options):
    rows = rows_of(folder, *labels)
    return image.ImageDetIter(batch_size, (3, 20, 30), imglist=rows, path_root="", **options)


BOX = [0, 0.1, 0.1, 0.4, 0.5]


def test_sources_give_the_same(folder):
    rows = detection.labelled(folder)
    text = ""
    with recordio.MXRecordIO(str(folder / "x.rec"), "w") as out:
        for k, (label, path) in enumerate(rows):
            out.write(recordio.pack((0, label, k, 0), Path(path).read_bytes()))
            text += "\t".join([str(k), *map(str, label), f"{k}.png"]) + "\n"
    (folder / "x.lst").write_text(text)
    sources = (
        {"path_imgrec": str(folder / "x.rec")},
        {"path_imglist": str(folder / "x.lst"), "path_root": str(folder)},
        {"imglist": rows, "path_root": ""},
    )
    its = [image.ImageDetIter(2, (3, 20, 30), **source) for source in sources]
    assert [it.provide_label for it in its] == [[("label", (2, 3, 5))]] * 3
    for first, *others in zip(*its, strict=True):
        for other in others:
            for name in ("data", "label"):
                (a,), (b,) = getattr(first, name), getattr(other, name)
                np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_more_than_boxes_of_objects(folder):
    it = iterator(folder, [3, 6, 9, *BOX, 0.7], [3, 6, 9, *BOX, 0.1, 1, 0.9, 0.9, 0.2, 0.2, 0])
    assert it.label_shape == (1, 6)
    np.testing.assert_allclose(next(it).label[0].asnumpy(), [[[*BOX, 0.7]]])


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ([2, 5], "got 2 numbers"),
        ([2, 5, 0, 0.1, 0.1, 0.4], "got 6 numbers"),
        ([1, 5, *BOX], "of them 1 before objects"),
        ([np.nan, 5, *BOX], "of them 0 before objects"),
        ([2, np.inf, *BOX], "7 numbers, of them 2 before objects"),
        ([2, 4, 0, 0.1, 0.1, 0.4, 0.2], "objects of 4"),
        ([2, 5, *BOX, 1], "got 8 numbers"),
        ([2, 5, 0, 0.5, 0.1, 0.4, 0.5], "an object with an area"),
    ],
)
def test_labels_of_another_form(folder, label, words):
    with pytest.raises(mx.MXNetError, match=words):
        iterator(folder, label)


def test_subclasses_read_labels_of_another_form(folder):  # as programs for MXNet do
    class Corners(image.ImageDetIter):
        def _parse_label(self, label):
            return super()._parse_label(np.concatenate([[2, 5], label[4:], label[:4]]))

    row = [[0.1, 0.2, 0.5, 0.6, 3], f"{folder}/0.png"]
    batch = Corners(1, (3, 20, 30), imglist=[row], path_root="").next()
    np.testing.assert_allclose(batch.label[0].asnumpy(), [[[3, 0.1, 0.2, 0.5, 0.6]]], 1e-6)


def test_subclasses_say_what_labels_are_valid_and_how_large(folder, caplog):  # as before
    class Chosen(image.ImageDetIter):
        def _estimate_label_shape(self):
            return 3, 5

        def _check_valid_label(self, label):
            super()._check_valid_label(label)
            if label[0, 0] == 7:
                raise RuntimeError("no seven")

    rows = [[2, 5, kind, *BOX[1:], f"{folder}/0.png"] for kind in (7, 1, 2)]
    it = Chosen(2, (3, 20, 30), imglist=rows, path_root="")
    (batch,) = it
    assert it.label_shape == (3, 5)
    assert batch.label[0][:, :, 0].asnumpy().tolist() == [[1, -1, -1], [2, -1, -1]]
    assert it.skipped == 1
    assert "no seven" in caplog.text


def test_objects_of_different_widths(folder):
    with pytest.raises(mx.MXNetError, match=r"\[5, 6\]"):
        iterator(folder, [2, 5, *BOX], [2, 6, *BOX, 1])


def test_images_without_objects_are_passed_over(folder, caplog):
    it = iterator(folder, [2, 5, -1, *BOX[1:]], [2, 5, *BOX])
    assert len(list(it)) == 1
    assert it.skipped == 1
    assert "no object in sample 0" in caplog.text
    assert list(iterator(folder, [2, 5, -1, *BOX[1:]])) == []


def test_shapes_of_labels(folder):
    it = iterator(folder, [2, 5, *BOX], batch_size=2)
    it.reshape(label_shape=(4, 5))
    assert it.provide_label == [("label", (2, 4, 5))]
    assert next(it).label[0].asnumpy()[0, 1:].tolist() == [[-1] * 5] * 3
    for bad in ((3, 5), (4, 6), (4,)):
        with pytest.raises(mx.MXNetError, match="label_shape"):
            it.reshape(label_shape=bad)
    with pytest.raises(mx.MXNetError, match="data_shape"):
        it.reshape(data_shape=(4, 5))
    other = iterator(folder, [2, 5, *BOX, *BOX])
    assert other.sync_label_shape(it, verbose=True) is it
    assert other.label_shape == it.label_shape == (4, 5)
    it.reshape(data_shape=(3, 10, 10))
    assert it.provide_data == [("data", (2, 3, 10, 10))]
    with pytest.raises(mx.MXNetError, match="ImageDetIter"):
        it.sync_label_shape(5)


def test_drawing(tmp_path):
    flat = np.zeros((20, 30, 3), np.uint8) + np.array([10, 100, 200], np.uint8)
    cv2.imwrite(f"{tmp_path}/0.png", flat)
    it = iterator(tmp_path, [2, 5, 1, 0.1, 0.2, 0.5, 0.6, 0, 0.6, 0.6, 0.9, 0.95])

    def drawn(**options):
        it.reset()
        (found,) = it.draw_next(color=(255, 0, 7), thickness=1, **options)
        return found

    picture = drawn()
    changed = (picture != flat).any(axis=2)
    ys, xs = np.nonzero(changed)
    assert (changed.sum(), ys.min(), ys.max(), xs.min(), xs.max()) == (68, 4, 18, 3, 26)
    assert picture[4, 3].tolist() == [7, 0, 255]
    assert drawn(mean=True)[0, 0].tolist() == [113, 216, 255]
    assert drawn(std=True)[0, 0].tolist() == [255, 255, 255]
    assert drawn(mean=True, clip=False)[0, 0].tolist() == [113, 216, 67]
    mean, std = mx.nd.array([1, 2, 3]), np.array([1, 1, 2])
    assert drawn(mean=mean, std=std)[0, 0].tolist() == [23, 102, 201]
    assert (drawn(id2labels={0: "a", 1: "b"}) != flat).any(axis=2).sum() == 117


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: image.DetRandomCropAug(area_range=(0.5, 0.1)), "area_range"),
        (lambda: image.DetRandomCropAug(aspect_ratio_range=(0, 1)), "aspect_ratio_range"),
        (lambda: image.DetRandomPadAug(area_range=(1.0, 1.0)), "larger than the image"),
        (lambda: image.DetRandomSelectAug([image.CastAug()]), "aug_list"),
        (lambda: image.DetBorrowAug(image.DetHorizontalFlipAug(1)), "augmenter"),
        (
            lambda: image.CreateMultiRandCropAugmenter([0.1, 0.2], max_attempts=[1, 2, 3]),
            "3 settings",
        ),
    ],
)
def test_settings_that_are_refused(make, words):
    with pytest.raises(mx.MXNetError, match=words):
        make()


def test_a_crop_keeps_labels_apart_and_its_source(folder):
    random.seed(0)
    picture, label = detection.picture(mx), detection.LABEL.copy()
    for _ in range(20):
        image.DetRandomCropAug()(picture, label)
        image.DetRandomPadAug()(picture, label)
    np.testing.assert_array_equal(label, detection.LABEL)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: image.imrotate(x, 30, True, True), "zoom_out"),
        (lambda x: image.imrotate(x.astype("uint8"), 30), "float32"),
        (lambda x: image.imrotate(x[0], 30), "channels, height, width"),
        (lambda x: image.imrotate(x, mx.nd.array([30])), "a number for one image"),
        (lambda x: image.imrotate(x.expand_dims(0), mx.nd.array([1, 2, 3])), "1 angles"),
    ],
)
def test_rotations_that_are_refused(call, words):
    with pytest.raises(mx.MXNetError, match=words):
        call(mx.nd.ones((1, 4, 5)))
