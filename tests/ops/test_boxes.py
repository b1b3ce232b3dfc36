"""Operators on boxes, as arrays and in symbols: what they refuse, and how long they take."""

import time

import numpy as np
import pytest

import gnomon as mx


def test_the_gradient_of_suppression_goes_to_the_rows_that_are_kept():
    data = mx.nd.array([[0, 0.5, 0, 0, 2, 2], [0, 0.9, 0, 0, 2, 2.1], [0, 0.7, 3, 3, 4, 4]])
    data.attach_grad()
    with mx.autograd.record():
        kept = mx.nd.contrib.box_nms(data)
    kept.backward(mx.nd.array(np.arange(18.0).reshape(3, 6)))
    assert kept[:, 1].asnumpy().tolist() == pytest.approx([0.9, 0.7, -1])
    assert data.grad.asnumpy().tolist() == [[0] * 6, [*range(6)], [*range(6, 12)]]


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
        ("MultiBoxPrior", [(1, 2, 3, 3)], {"steps": (1,)}, "MultiBoxPrior.*steps.*2 numbers"),
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
