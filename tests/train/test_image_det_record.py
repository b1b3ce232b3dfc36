"""ImageDetRecordIter: labels, sizes, what it draws, order, damage."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from golden import det_crops

import gnomon as mx

QUANTILES = json.loads((Path(__file__).parent.parent / "golden" / "det_crops.json").read_text())
BOXES = [[k, 0.1 * (k + 1), 0.1, 0.1 * (k + 1) + 0.3, 0.5] for k in range(3)]


def pack(folder, labels, damage=None):
    path = str(folder / "a.rec")
    with mx.recordio.MXRecordIO(path, "w") as out:
        for k, label in enumerate(labels):
            image = np.zeros((40 + k, 60, 3), np.uint8) + np.array([10, 100, 200], np.uint8)
            data = cv2.imencode(".png", image)[1].tobytes()
            out.write(mx.recordio.pack((0, label, k, 0), b"damage" if k == damage else data))
    return path


def label(count):
    return [2.0, 5.0, *np.ravel(BOXES[:count])]


@pytest.fixture
def rec(tmp_path):
    return pack(tmp_path, [label(1 + k % 3) for k in range(5)])


def make(rec, **options):
    options = {"data_shape": (3, 20, 30), "batch_size": 2, "preprocess_threads": 2, **options}
    return mx.io.ImageDetRecordIter(path_imgrec=rec, **options)


def first(rec, **options):
    batch = next(make(rec, **options))
    return batch.data[0].asnumpy(), batch.label[0].asnumpy()


def test_labels(rec):
    it = make(rec)
    assert it.provide_data == [("data", (2, 3, 20, 30))]
    assert it.provide_label == [("softmax_label", (2, 21))]
    data, found = first(rec)
    np.testing.assert_allclose(found[0], [3, 20, 30, 7, *label(1), *[-1] * 10], rtol=1e-6)
    np.testing.assert_allclose(found[1], [3, 20, 30, 12, *label(2), *[-1] * 5], rtol=1e-6)
    assert data[0, :, 5, 5].tolist() == [200, 100, 10]
    _, found = first(rec, label_pad_width=30, label_pad_value=-9)
    assert found.shape == (2, 34)
    assert found[0, 11:].tolist() == [-9] * 23
    _, found = first(rec, rand_mirror_prob=1)
    np.testing.assert_allclose(found[0, 6:11], [0, 0.6, 0.1, 0.9, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "shape", "size"),
    [
        ("force", (3, 50, 50), (50, 50)),
        ("fit", (3, 50, 50), (33, 50)),
        ("fit", (3, 20, 50), (20, 30)),
        ("fit", (3, 100, 100), (66, 100)),
        ("shrink", (3, 50, 50), (33, 50)),
        ("shrink", (3, 100, 100), (40, 60)),
    ],
)
def test_sizes(rec, mode, shape, size):
    data, found = first(rec, resize_mode=mode, data_shape=shape, mean_r=10, std_r=2)
    assert found[0, 1:3].tolist() == list(size)
    assert data[0, 0, size[0] - 1, size[1] - 1] == 95
    outside = np.ones(shape[1:], bool)
    outside[: size[0], : size[1]] = False
    assert set(data[0, 0][outside].tolist()) <= {-5.0}


def test_order(rec):
    def rows(it):
        it.reset()
        return [(b.index.tolist(), b.label[0].asnumpy()[:, 3].tolist(), b.pad) for b in it]

    assert rows(make(rec)) == [([0, 1], [7, 12], 0), ([2, 3], [17, 7], 0), ([4, 0], [12, 7], 1)]
    assert rows(make(rec, shuffle=True, seed=3)) != rows(make(rec))
    parts = [rows(make(rec, num_parts=2, part_index=k, batch_size=1)) for k in range(2)]
    assert sorted(i for part in parts for ((i,), _, _) in part) == list(range(5))


def test_labels_of_a_list(rec, tmp_path):
    lines = [f"{k}\t2\t5\t7\t.1\t.1\t.2\t.2\tx.png\n" for k in range(5)]
    (tmp_path / "a.lst").write_text("".join(lines))
    _, found = first(rec, path_imglist=str(tmp_path / "a.lst"))
    np.testing.assert_allclose(found[1], [3, 20, 30, 7, 2, 5, 7, 0.1, 0.1, 0.2, 0.2], rtol=1e-6)
    (tmp_path / "a.lst").write_text("".join(lines[:3]))
    with pytest.raises(mx.MXNetError, match=r"record 3: .* has no label for it"):
        make(rec, path_imglist=str(tmp_path / "a.lst"))


@pytest.mark.parametrize("name", det_crops.CASES)
def test_draws_have_the_real_ones_distribution(name, tmp_path):
    path = str(tmp_path / "x.rec")
    det_crops.write(mx, path, 200, cv2)
    rows = det_crops.drawn(mx, path, 3, **det_crops.CASES[name])
    assert det_crops.distance(rows, QUANTILES[name], 1e-3) < 0.085


def test_chance_follows_the_seed_and_not_the_threads(rec):
    options = {**det_crops.CASES["all"], "max_random_hue": 30, "random_hue_prob": 0.5}

    def images(**more):
        return first(rec, batch_size=5, **options, **more)[0].tolist()

    assert images(preprocess_threads=1) == images(preprocess_threads=3)
    assert images(seed=1) != images()


def test_damage_is_told_or_passed_over(tmp_path):
    path = pack(tmp_path, [label(1)] * 4, damage=2)
    with pytest.raises(mx.MXNetError, match=r"a\.rec: offset \d+.*expected an image"):
        list(make(path))
    it = make(path, skip_corrupt=True)
    assert len(list(it)) == 2
    assert it.skipped == 1
    path = pack(tmp_path, [label(1), [2, 5, 0, 0.1], label(1)])
    with pytest.raises(mx.MXNetError, match=r"a\.rec: offset \d+: record 1: expected a label"):
        make(path)
    it = make(path, skip_corrupt=True)
    assert [b.index.tolist() for b in it] == [[0, 1], [2, 0]]
    assert it.skipped == 1


def test_a_deviation_that_is_not_above_0_divides_nothing(rec):
    plain = make(rec).next().data[0].asnumpy()
    data = make(rec, std_r=0, std_g=-2, std_b=2).next().data[0].asnumpy()
    assert np.array_equal(data, plain / np.array([1, 1, 2])[:, None, None])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_pad_width": 5}, "17 or more"),
        ({"label_width": 3}, "label_width"),
        ({"min_crop_scales": 0.5, "max_crop_scales": 0.1}, "max_crop_scales"),
        ({"min_crop_scales": (0.5, 0.1), "num_crop_sampler": 3}, "3 values"),
        ({"resize_mode": "other"}, "resize_mode"),
        ({"crop_emit_mode": "other"}, "crop_emit_mode"),
    ],
)
def test_bad_options(rec, options, words):
    with pytest.raises(mx.MXNetError, match=words):
        make(rec, **options)


@pytest.mark.parametrize("head", [[np.nan, 5.0], [2.0, np.nan], [np.inf, 5.0], [2.0, -np.inf]])
def test_labels_of_no_numbers_are_damage(tmp_path, head):
    path = pack(tmp_path, [label(1), [*head, *BOXES[0]]])
    with pytest.raises(mx.MXNetError, match="expected a label"):
        make(path)
    assert len(make(path, skip_corrupt=True).next().index) == 2
