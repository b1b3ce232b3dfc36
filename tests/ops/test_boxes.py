"""Operators on boxes, as arrays and in symbols: what they refuse, and how long they take."""

import time

import numpy as np
import pytest

import gnomon as mx
from gnomon.native.serve import served
from gnomon.ops.nn.span_taps import (
    of_regions,
    shared_out,
    shared_out_doubles,
    summed,
    summed_doubles,
)


def test_the_gradient_of_suppression_goes_to_the_rows_that_are_kept():
    data = mx.nd.array([[0, 0.5, 0, 0, 2, 2], [0, 0.9, 0, 0, 2, 2.1], [0, 0.7, 3, 3, 4, 4]])
    data.attach_grad()
    with mx.autograd.record():
        kept = mx.nd.contrib.box_nms(data)
    kept.backward(mx.nd.array(np.arange(18.0).reshape(3, 6)))
    assert kept[:, 1].asnumpy().tolist() == pytest.approx([0.9, 0.7, -1])
    assert data.grad.asnumpy().tolist() == [[0] * 6, [*range(6)], [*range(6, 12)]]


@pytest.mark.parametrize(
    ("background", "left"), [(-1, [0, 0.5, 1.25]), (0, [0.5, 1.25, -1]), (1, [0, 0.5, 1.25])]
)
def test_only_its_own_number_is_the_background(background, left):  # as in MXNet
    rows = [[kind, 0.5, k, 0, k + 1, 1] for k, kind in enumerate((0, 0.5, 1.25, -1))]
    kept = mx.nd.contrib.box_nms(mx.nd.array(rows), id_index=0, background_id=background)
    assert set(left) <= set(kept[:, 0].asnumpy().tolist())


@pytest.mark.native
@pytest.mark.parametrize("spread", [10, 1000])
def test_suppression_of_many_boxes_is_quick(spread):
    generator = np.random.default_rng(1)
    corner = generator.uniform(0, spread, (10000, 2))
    scores = generator.permutation(10000)[:, None] / 10000
    rows = np.concatenate([scores, corner, corner + 1], 1)
    data = mx.nd.array(rows)
    net = mx.sym.contrib.box_nms(mx.sym.var("data"), coord_start=1, score_index=0)
    start = time.perf_counter()
    found = mx.nd.contrib.box_nms(data, coord_start=1, score_index=0).asnumpy()
    assert time.perf_counter() - start < 10
    assert np.array_equal(net.eval(data=data)[0].asnumpy(), found)
    kept = found[found[:, 0] > 0]
    assert np.all(np.diff(kept[:, 0]) <= 0)
    shares = mx.nd.contrib.box_iou(mx.nd.array(kept[:500, 1:]), mx.nd.array(kept[:500, 1:]))
    assert (shares.asnumpy() > 0.5).sum() == len(kept[:500])


def test_no_boxes_and_no_numbers():
    assert mx.nd.contrib.box_nms(mx.nd.array(np.zeros((2, 0, 6)))).shape == (2, 0, 6)
    data = mx.nd.array([[0, np.nan, 0, 0, 2, 2], [0, 0.5, 0, 0, 2, np.nan]])
    assert mx.nd.contrib.box_nms(data)[:, 1].asnumpy().tolist() == [0.5, -1]


@pytest.mark.parametrize(("batch", "count", "n"), [(2, 0, 3), (2, 2, 0), (0, 2, 3), (0, 0, 0)])
def test_detectors_of_no_anchors_labels_or_images(batch, count, n):
    shapes = [(1, n, 4), (batch, count, 5), (batch, 3, n), (batch, 4 * n)]
    anchors, labels, classes, moves = (mx.nd.array(np.zeros(shape)) for shape in shapes)
    found = mx.nd.contrib.MultiBoxTarget(anchors, labels, classes)
    assert [x.shape for x in found] == [(batch, 4 * n), (batch, 4 * n), (batch, n)]
    assert (found[2].asnumpy() == -1).all()
    boxes = mx.nd.contrib.MultiBoxDetection(classes, moves, anchors)
    assert boxes.asnumpy().tolist() == [[[-1] * 6] * n] * batch


@pytest.mark.parametrize(
    ("name", "inputs", "params", "words"),
    [
        ("box_iou", [(3, 4), (4,)], {}, "box_iou.*rhs.*shape"),
        ("box_iou", [(3, 5), (2, 4)], {}, "box_iou.*lhs.*shape"),
        ("box_nms", [(6,)], {}, "box_nms.*data.*shape"),
        ("box_nms", [(3, 5)], {}, "box_nms.*data.*6 or more"),
        ("box_nms", [(3, 6)], {"id_index": 3}, "box_nms.*id_index.*coordinate"),
        ("box_nms", [(3, 6)], {"score_index": -1}, "box_nms.*score_index.*0 or more"),
        ("MultiBoxPrior", [(1, 2, 3)], {}, "MultiBoxPrior.*data.*4 axes"),
        (
            "MultiBoxPrior",
            [(1, 2, 3, 3)],
            {"steps": (1,)},
            "MultiBoxPrior.*steps.*tuple of 2 floats",
        ),
        ("MultiBoxPrior", [(1, 2, 3, 3)], {"sizes": ()}, "MultiBoxPrior.*sizes.*1 number"),
        ("MultiBoxTarget", [(1, 8, 4), (2, 3, 4), (2, 2, 8)], {}, "Target.*label.*5 numbers"),
        ("MultiBoxTarget", [(1, 8, 4), (2, 3, 5), (2, 2, 7)], {}, "Target.*shape"),
        ("MultiBoxDetection", [(1, 1, 8), (1, 32), (1, 8, 4)], {}, "Detection.*cls_prob.*class"),
        ("MultiBoxDetection", [(1, 2, 8), (1, 30), (1, 8, 4)], {}, "Detection.*loc_pred"),
    ],
)
def test_what_is_refused(name, inputs, params, words):
    arrays = [mx.nd.zeros(shape) for shape in inputs]
    with pytest.raises(mx.MXNetError, match=words):
        getattr(mx.nd.contrib, name)(*arrays, **params)
    args = list(map(mx.sym.var, "abcdef"[: len(inputs)]))
    with pytest.raises(mx.MXNetError, match=words):
        getattr(mx.sym.contrib, name)(*args, **params).infer_shape(*inputs)


def aligned(name, regions, **params):
    """What an operator takes of an image of 4 x 5 pixels."""
    data = mx.nd.array(np.arange(20.0).reshape(1, 1, 4, 5))
    operator = getattr(mx.nd.contrib, name)
    return operator(data, mx.nd.array(regions), pooled_size=(2, 2), spatial_scale=1.0, **params)


@pytest.mark.parametrize("size", [100, 1e9, 1e15, 3e38])
def test_regions_far_larger_than_the_image_take_no_more_than_the_image(size):
    found = aligned("ROIAlign", [[0, 0, 0, size, size]]).asnumpy()[0, 0]
    turned = aligned("RROIAlign", [[0, 2, 1.5, size, size, 30]]).asnumpy()
    side = min(size, 1e30) / 2  # of each part
    assert 0 <= found[0, 0] <= 1.05 * (4.5 * 5.5) * 20 / side**2
    assert found.ravel()[1:].tolist() == [0, 0, 0]
    assert np.all((turned >= 0) & (turned <= 30 * 20 / side**2))
    if size == 100:
        assert found[0, 0] == pytest.approx(sum(range(20)) / side**2, rel=0.4)


@pytest.mark.timeout(30)
def test_regions_around_an_image_pass_over_the_samples_outside_of_it():
    """In single floats the places of millions of them are one: a minute to go through all."""
    found = aligned("ROIAlign", [[0, -1e15, -1e15, 3e15, 3e15]] * 3000, aligned=True).asnumpy()
    assert np.isfinite(found).all()


def addresses(*arrays):
    return [a.ctypes.data for a in arrays]


def test_taps_are_what_weights_of_rows_and_columns_give():
    rng = np.random.default_rng(3)
    images, which = np.array([1, -1, 0]), np.arange(6).reshape(2, 3) % 2
    tops, lefts = rng.integers(0, 4, (3, 2)), rng.integers(0, 5, (3, 3))
    down, right = (rng.integers(0, 3, shape) / 2 for shape in ((3, 2, 3), (3, 3, 2)))
    weight = down[:, :, None, :, None] * right[:, None, :, None, :]
    weight[1] = 0
    at = np.argwhere(weight)
    y, x = tops[at[:, 0], at[:, 1]] + at[:, 3], lefts[at[:, 0], at[:, 2]] + at[:, 4]
    want = ((images[at[:, 0]] * 8 + which[*at[:, 1:3].T]) * 7 + y) * 8 + x
    ends = np.cumsum([0, *np.count_nonzero(weight, (3, 4)).ravel()])
    for function in (of_regions, *served(of_regions)):
        found = [np.zeros(n, d) for n, d in ((19, int), (weight.size, int), (weight.size, float))]
        given = images, which, tops, down, lefts, right, *found
        function(*addresses(*given), 3, 2, 3, 3, 2, 8, 7, 8)
        np.testing.assert_array_equal(found[0], ends)
        np.testing.assert_array_equal(found[1][: len(want)], want)
        np.testing.assert_array_equal(found[2][: len(want)], weight[weight != 0])


@pytest.mark.parametrize(
    ("dtype", "forward", "back"),
    [(np.float32, summed, shared_out), (np.float64, summed_doubles, shared_out_doubles)],
)
def test_taps_are_summed_and_the_sums_shared_out_again(dtype, forward, back):
    rng = np.random.default_rng(3)
    ends, places = np.sort(rng.integers(0, 40, 13)), rng.integers(0, 30, 40)
    weights, data = rng.normal(size=40), rng.normal(size=120).astype(dtype)
    sizes = 3, 4, 2, 60  # regions, parts, channels; 60 elements to the next channel
    matrix = np.zeros((3, 2, 4, 120))
    for (r, c, k), row in zip(np.ndindex(3, 2, 4), matrix.reshape(-1, 120), strict=True):
        for tap in range(ends[4 * r + k], ends[4 * r + k + 1]):
            row[places[tap] + 60 * c] += weights[tap]
    for function in (forward, *served(forward)):
        sums = np.full((3, 2, 4), 9, dtype)
        function(*addresses(ends, places, weights, data, sums), *sizes)
        np.testing.assert_allclose(sums, matrix @ data, rtol=1e-4, atol=1e-5)
    for function in (back, *served(back)):
        found = data.copy()
        function(*addresses(ends, places, weights, found, sums), *sizes)
        want = data + np.tensordot(sums, matrix, 3)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_regions_that_are_no_numbers_do_no_harm_to_others():
    good = [0, 0.5, 1, 3.2, 2.9]
    bad = [[0, np.nan, 0, 3, 3], [0, 0, 0, np.inf, np.inf], [0, 1e30, 1e30, 2e30, 2e30]]
    alone = aligned("ROIAlign", [good]).asnumpy()
    assert aligned("ROIAlign", [*bad, good]).asnumpy()[3:].tolist() == alone.tolist()
    good = [0, 2, 2, 3, 2, 30]
    bad = [[0, 2, 2, np.nan, 3, 30], [0, 2, 2, 2, 2, np.inf], [0, np.inf, 2, 2, 2, 20]]
    alone = aligned("RROIAlign", [good]).asnumpy()
    assert aligned("RROIAlign", [*bad, good]).asnumpy()[3:].tolist() == alone.tolist()


def proposed(info, **params):
    """Proposals of anchors of one size."""
    inputs = mx.nd.ones((1, 2, 3, 3)), mx.nd.zeros((1, 4, 3, 3)), mx.nd.array([info])
    return mx.nd.contrib.Proposal(*inputs, scales=(1,), **{"ratios": (1,), **params}).asnumpy()


def test_proposals_refuse_images_and_anchors_without_size():
    with pytest.raises(mx.MXNetError, match=r"Proposal.*im_info.*finite"):
        proposed([np.nan, 48, 1])
    with pytest.raises(mx.MXNetError, match=r"Proposal.*ratios.*above 0"):
        proposed([48, 48, 1], ratios=(0,))


@pytest.mark.parametrize("row", [[0, 0, np.inf, np.inf], [-np.inf, -np.inf, np.inf, np.inf]])
def test_regions_without_an_end_have_nothing_in_them(row):
    """As in MXNet."""
    data, rois = mx.nd.ones((1, 4, 6, 6)), mx.nd.array([[0, *row]])
    pooled = mx.nd.contrib.PSROIPooling(
        data, rois, spatial_scale=1, output_dim=1, pooled_size=2, group_size=2
    )
    assert not pooled.asnumpy().any()


@pytest.mark.parametrize("matrix", [[[np.nan, 1], [2, 3]], [[1, np.nan], [2, 3]]])
def test_the_sign_of_a_determinant_that_is_no_number_is_0(matrix):
    sign, logarithm = mx.nd.linalg.slogdet(mx.nd.array(matrix))
    assert sign.asscalar() == 0 and np.isnan(logarithm.asscalar())


def test_samples_on_the_border_are_rounded_as_in_mxnet():
    """By another order of rounding they lie outside."""
    data = mx.nd.array(np.arange(1, 17).reshape(1, 1, 4, 4))
    found = mx.nd.contrib.ROIAlign(
        data, mx.nd.array([[0, -3, -3, 5, 5]]), pooled_size=(5, 5), spatial_scale=0.5,
        sample_ratio=2, aligned=True,
    )  # fmt: skip
    np.testing.assert_allclose(found.asnumpy()[0, 0, 1], [0, 1.0, 1.1, 1.8, 2.6], rtol=1e-6)
