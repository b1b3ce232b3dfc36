"""`mx.image`: functions, augmenters with the real library's numbers for a seed, ImageIter."""

import json
import random

import cv2
import numpy as np
import pytest

import gnomon as mx

image = mx.image
PICTURE = np.random.RandomState(0).randint(0, 256, (10, 12, 3)).astype(np.uint8)
DATA = cv2.imencode(".png", PICTURE[:, :, ::-1])[1].tobytes()
VALUES, VECTORS = [55.46, 4.794, 1.148], [
    [-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203],
]  # fmt: skip


def picture(dtype="uint8"):
    return mx.nd.array(PICTURE, dtype=dtype)


def test_decoding(tmp_path):
    found = image.imdecode(DATA)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found.asnumpy(), PICTURE)
    np.testing.assert_array_equal(image.imdecode(DATA, to_rgb=0).asnumpy(), PICTURE[:, :, ::-1])
    assert image.imdecode(bytearray(DATA), flag=0).shape == (10, 12, 1)
    file = tmp_path / "x.png"
    file.write_bytes(DATA)
    out = mx.nd.zeros((10, 12, 3), dtype="uint8")
    assert image.imread(str(file), out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), PICTURE)
    for call in (lambda: image.imread("nowhere"), lambda: image.imdecode(b"abc")):
        with pytest.raises(mx.MXNetError, match=r"nowhere|expected an image"):
            call()


def test_sizes():
    assert image.scale_down((640, 480), (720, 120)) == (640, 106)
    assert image.scale_down((360, 1000), (480, 500)) == (360, 375)
    assert image.resize_short(picture(), 5).shape == (5, 6, 3)
    assert image.resize_short(picture(), 24).shape == (24, 28, 3)
    got = image.imresize(picture(), 5, 7).asnumpy()
    np.testing.assert_array_equal(got, cv2.resize(PICTURE, (5, 7)))
    assert image.imresize(picture("float32"), 24, 20, interp=9).dtype == np.float32
    for bad in ((0, 5, 1), (5, 5, 7)):
        with pytest.raises(mx.MXNetError, match="imresize"):
            image.imresize(picture(), *bad)


def test_crops():
    random.seed(0)
    part, (x, y, w, h) = image.random_crop(picture(), (4, 5))
    np.testing.assert_array_equal(part.asnumpy(), PICTURE[y : y + h, x : x + w])
    part, place = image.center_crop(picture(), (4, 5))
    assert place == (4, 2, 4, 5)
    np.testing.assert_array_equal(part.asnumpy(), PICTURE[2:7, 4:8])
    part, place = image.center_crop(picture(), (40, 5))
    assert (part.shape, place) == ((5, 40, 3), (0, 4, 12, 1))
    part, (x, y, w, h) = image.random_size_crop(picture(), (4, 5), (0.3, 0.5), (0.7, 1.3))
    assert part.shape == (5, 4, 3)
    assert 0.2 < w * h / 120 < 0.6
    assert image.fixed_crop(picture(), 1, 2, 4, 5, size=(8, 9)).shape == (9, 8, 3)
    beyond = image.fixed_crop(picture(), 9, 2, 4, 99).asnumpy()
    np.testing.assert_array_equal(beyond, PICTURE[2:, 9:])
    for place in [(-1, 2, 4, 5), (PICTURE.shape[1], 0, 1, 1), (0, 0, 2, 0)]:
        with pytest.raises(mx.MXNetError, match="a part of an image"):
            image.fixed_crop(picture(), *place)
    with pytest.raises(mx.MXNetError, match="height, width, channels"):
        image.center_crop(mx.nd.ones((4, 4)), (2, 2))


def test_borders_and_normalization():
    wide = image.copyMakeBorder(picture(), 1, 2, 3, 4, value=7).asnumpy()
    np.testing.assert_array_equal(
        wide, np.pad(PICTURE, ((1, 2), (3, 4), (0, 0)), constant_values=7)
    )
    edge = image.copyMakeBorder(picture(), 1, 2, 3, 4, type=1).asnumpy()
    np.testing.assert_array_equal(edge, np.pad(PICTURE, ((1, 2), (3, 4), (0, 0)), "edge"))
    mean, std = mx.nd.array([1, 2, 3]), mx.nd.array([2, 2, 2])
    got = image.color_normalize(picture("float32"), mean, std).asnumpy()
    np.testing.assert_allclose(got, (PICTURE - [1, 2, 3]) / 2, 1e-6)


# the mean colour after `random.seed(1)` and `numpy.random.seed(1)`, in the real library
RECORDED = [
    (image.BrightnessJitterAug, {"brightness": 0.5}, [76.61532, 77.35014, 78.50258]),
    (image.ContrastJitterAug, {"contrast": 0.5}, [121.14759, 121.88241, 123.03487]),
    (image.SaturationJitterAug, {"saturation": 0.5}, [121.14763, 121.88243, 123.034836]),
    (image.HueJitterAug, {"hue": 0.5}, [122.2192, 121.14082, 124.04567]),
    (
        image.LightingAug,
        {"alphastd": 0.1, "eigval": np.array(VALUES), "eigvec": np.array(VECTORS)},
        [115.42735, 116.75172, 118.67089],
    ),
    (image.RandomGrayAug, {"p": 1.0}, [121.81724, 121.81724, 121.81724]),
    (image.HorizontalFlipAug, {"p": 1.0}, [120.775, 121.933334, 123.75]),
    (
        image.ColorJitterAug,
        {"brightness": 0.1, "contrast": 0.1, "saturation": 0.1},
        [119.605255, 120.69473, 122.40339],
    ),
    (image.RandomCropAug, {"size": (4, 5)}, [106.3, 150.1, 105.4]),
    (image.CenterCropAug, {"size": (4, 5)}, [99.05, 118.55, 123.85]),
    (
        image.RandomSizedCropAug,
        {"size": (4, 5), "area": 0.5, "ratio": (0.7, 1.3)},
        [124.24988, 113.56615, 115.449905],
    ),
]


@pytest.mark.parametrize(
    ("kind", "settings", "mean"), RECORDED, ids=lambda x: getattr(x, "__name__", "")
)
def test_augmenters_draw_as_the_real_ones(kind, settings, mean):
    random.seed(1)
    np.random.seed(1)
    augmenter = kind(**settings)
    got = augmenter(picture("float32"))
    np.testing.assert_allclose(got.asnumpy().mean((0, 1)), mean, 1e-5)
    text = augmenter.dumps()
    assert (json.loads(text) if isinstance(text, str) else text)[0] == kind.__name__.lower()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        row[:2]
        for row in RECORDED
        if row[0].__name__.endswith(("JitterAug", "LightingAug", "GrayAug"))
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_colours_of_whole_numbers_are_refused(kind, settings):
    with pytest.raises(
        mx.base.ParamError, match=r"image of floats \(CastAug gives one\), got uint8"
    ):
        kind(**settings)(picture())


def test_create_augmenter():
    made = image.CreateAugmenter(
        (3, 8, 8), resize=9, rand_crop=True, rand_mirror=True, mean=True, std=True, brightness=0.1,
        hue=0.1, pca_noise=0.1, rand_gray=0.2,
    )  # fmt: skip
    assert [type(each).__name__.removesuffix("Aug") for each in made] == [
        "Resize", "RandomCrop", "HorizontalFlip", "Cast", "ColorJitter", "HueJitter", "Lighting",
        "RandomGray", "ColorNormalize",
    ]  # fmt: skip
    chain = image.SequentialAug(made)
    assert chain(picture()).shape == (8, 8, 3)
    assert chain.dumps()[0] == "sequentialaug"
    with pytest.raises(NotImplementedError, match="must define"):
        image.Augmenter()(picture())


@pytest.fixture
def sources(tmp_path):
    rec = str(tmp_path / "a.rec")
    with mx.recordio.MXRecordIO(rec, "w") as file:
        for k in range(5):
            file.write(mx.recordio.pack((0, float(k), k, 0), DATA))
    (tmp_path / "im.png").write_bytes(DATA)
    (tmp_path / "x.lst").write_text("0\t5\t0.5\tim.png\n1\t6\t0.6\tim.png\n")
    return rec, tmp_path


def labels(it):
    found = [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in it]
    it.reset()
    return found


def test_image_iter_over_records(sources):
    rec, _ = sources
    it = image.ImageIter(2, (3, 8, 8), path_imgrec=rec)
    assert it.provide_data == [("data", (2, 3, 8, 8))]
    batch = next(it)
    np.testing.assert_array_equal(batch.data[0].asnumpy()[1], PICTURE[1:9, 2:10].transpose(2, 0, 1))
    it.reset()
    assert labels(it) == labels(it) == [([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]
    listed = image.ImageIter(
        2, (3, 8, 8), path_imgrec=rec, imglist=[[7.0, "a.png"], [8.0, "b.png"]]
    )
    listed.seq = [1, 2]
    with pytest.raises(mx.MXNetError, match=r"record 2: the list of images has no label"):
        next(listed)
    it = image.ImageIter(2, (3, 8, 8), path_imgrec=rec, last_batch_handle="discard")
    assert labels(it) == [([0, 1], 0), ([2, 3], 0)]
    it = image.ImageIter(2, (3, 8, 8), path_imgrec=rec, last_batch_handle="roll_over")
    assert labels(it) + labels(it) == [
        ([0, 1], 0), ([2, 3], 0), ([4, 0], 0), ([1, 2], 0), ([3, 4], 0),
    ]  # fmt: skip
    parts = [
        image.ImageIter(1, (1, 8, 8), path_imgrec=rec, num_parts=2, part_index=k) for k in (0, 1)
    ]
    assert [x for part in parts for (x,), _ in labels(part)] == [0, 1, 2, 3]  # as MXNet


def test_samples_as_a_subclass_sees_and_gives_them(sources):
    rec, _ = sources

    class Doubled(image.ImageIter):
        def next_sample(self):
            label, data = super().next_sample()
            return 2 * label, data

    it = Doubled(2, (3, 8, 8), path_imgrec=rec)
    label, data = it.next_sample()
    assert isinstance(label, float)
    assert (label, data) == (0.0, DATA)
    it.reset()
    assert labels(it) == [([0, 2], 0), ([4, 6], 0), ([8, 0], 1)]


@pytest.mark.parametrize(
    ("handle", "calls", "rows"),
    [  # MXNet's, for rows that `_batchify` begins with and labels of two epochs
        ("pad", [0, 0, 0, 1, 0] * 2, [[0, 1], [2, 3], [4, 0]] * 2),
        ("discard", [0, 0, 0] * 2, [[0, 1], [2, 3]] * 2),
        ("roll_over", [0, 0, 0, 1, 0, 0, 0], [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]),
    ],
)
def test_subclasses_fill_batches(sources, handle, calls, rows):
    rec, _ = sources
    begun = []

    class Numbered(image.ImageIter):
        def _batchify(self, batch_data, batch_label, start=0):
            begun.append(start)
            k = start
            try:
                while k < self.batch_size:
                    label, data = self.next_sample()
                    picture = self.augmentation_transform(self.imdecode(data))
                    batch_data[k] = self.postprocess_data(picture)
                    batch_label[k] = label
                    k += 1
            except StopIteration:
                if not k:
                    raise
            return k

    it = Numbered(2, (3, 8, 8), path_imgrec=rec, last_batch_handle=handle)
    assert [row for row, _ in labels(it) + labels(it)] == rows
    assert begun == calls


def test_samples_of_a_subclass_end_where_it_says(sources):
    rec, _ = sources

    class Three(image.ImageIter):
        def next_sample(self):
            if self.cur == 3:
                raise StopIteration
            return super().next_sample()

    it = Three(2, (3, 8, 8), path_imgrec=rec)
    assert labels(it) == [([0, 1], 0), ([2, 0], 1)]


def test_image_iter_over_lists(sources):
    _, folder = sources
    it = image.ImageIter(
        2, (3, 8, 8), label_width=2, path_imglist=str(folder / "x.lst"), path_root=str(folder)
    )
    assert labels(it)[0][0] == [[5, 0.5], pytest.approx([6, 0.6])]
    rows = [[1.0, "im.png"], [2.0, "im.png"]]
    it = image.ImageIter(2, (3, 8, 8), imglist=rows, path_root=str(folder), shuffle=True)
    assert sorted(labels(it)[0][0]) == [1, 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of path_imgrec"),
        ({"imglist": []}, "no images"),
        ({"imglist": [[1.0, "none.png"]]}, "none.png"),
        ({"imglist": [[1.0, "im.png"]], "aug_list": []}, "after the augmenters"),
        ({"imglist": [[1.0, "im.png"]], "label_width": 2}, "2 labels"),
        ({"imglist": [[1.0, "im.png"]], "last_batch_handle": "keep"}, "last_batch_handle"),
        ({"imglist": [[1.0, "im.png"]], "num_parts": 2, "part_index": 2}, "below num_parts"),
        ({"imglist": [[1.0, "im.png"]], "data_shape": (2, 8, 8)}, "1 or 3 channels"),
        ({"path_imglist": "bad.lst"}, "line 1"),
    ],
)
def test_what_is_wrong_is_told(sources, monkeypatch, options, words):
    _, folder = sources
    monkeypatch.chdir(folder)
    (folder / "bad.lst").write_text("x\tim.png\n")
    options = {"batch_size": 1, "data_shape": (3, 8, 8), **options}
    with pytest.raises(mx.MXNetError, match=words):
        next(image.ImageIter(**options))


@pytest.mark.parametrize(
    ("kind", "record", "words"),
    [
        (image.ImageIter, mx.recordio.pack((0, 1.0, 0, 0), b"no image"), "expected an image"),
        (image.ImageIter, b"short", "24 bytes of header"),
        (image.ImageDetIter, mx.recordio.pack((0, [2, 5, 1], 0, 0), b""), "got 3 numbers"),
        (
            image.ImageDetIter,
            mx.recordio.pack((0, [2, 5, 0, 0.1, 0.1, 0.9, 0.9], 0, 0), b"no image"),
            "expected an image",
        ),
    ],
)
def test_damage_in_records_is_told_with_its_place(tmp_path, kind, record, words):
    with mx.recordio.MXRecordIO(tmp_path / "x.rec", "w") as file:
        file.write(record)
    with pytest.raises(mx.MXNetError, match=rf"x\.rec: offset 0: .*{words}"):
        next(kind(1, (3, 8, 8), path_imgrec=str(tmp_path / "x.rec")))


def test_a_png_takes_no_memory_for_what_it_claims(monkeypatch):
    whole = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    assert image.imdecode(whole + b"behind its end").shape == (4, 4, 3)
    at = whole.index(b"IDAT") - 4
    monkeypatch.setattr(cv2, "imdecode", None)
    with pytest.raises(mx.MXNetError, match=r"expected an image, .* a part of 1996488\d+"):
        image.imdecode(whole[:at] + b"\x77" + whole[at + 1 :])


def test_resized_crops_of_the_usual_augmenters_are_random_ones():
    with pytest.raises(
        mx.MXNetError, match=r"'rand_crop': expected True with rand_resize, got False"
    ):
        mx.image.CreateAugmenter((3, 5, 5), rand_resize=True)


def test_the_mean_of_imagenet_is_dumped_as_the_float32_it_is():
    said = mx.image.CreateAugmenter((3, 5, 5), mean=True)[-1].dumps()
    assert said == (
        '["colornormalizeaug", {"mean": [123.68000030517578, 116.27999877929688, '
        '103.52999877929688], "std": null}]'
    )
