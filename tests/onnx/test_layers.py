"""Translated layers, with their weights: written, run by ONNX's own Python, and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gnomon as mx
from tests.onnx.roundtrip import SETTINGS, apply, check, holds, indices, op, reals, weighted

sym = mx.sym

# layers ----------------------------------------------------------------------------------------


@SETTINGS
@given(st.booleans(), st.booleans(), st.integers(2, 4))
def test_fully_connected(flatten, bias, rank):
    shape = (3, 2, 4, 2)[:rank]
    inner = int(np.prod(shape[1:])) if flatten else shape[-1]
    weights = [reals(5, inner), *([reals(5)] if bias else [])]
    weighted(
        "FullyConnected", reals(*shape), *weights, num_hidden=5, no_bias=not bias, flatten=flatten
    )


@st.composite
def convolution(draw):
    n = draw(st.integers(1, 3))
    pick = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(n))  # noqa: E731
    return (
        n,
        pick(1, 3),
        pick(1, 2),
        pick(0, 1),
        pick(1, 2),
        draw(st.sampled_from([1, 2])),
        draw(st.booleans()),
    )


@SETTINGS
@given(convolution())
def test_convolution(case):
    n, kernel, stride, pad, dilate, group, bias = case
    weights = [reals(4, 2 // group, *kernel), *([reals(4)] if bias else [])]
    how = {"kernel": kernel, "stride": stride, "pad": pad, "dilate": dilate, "num_group": group}
    weighted("Convolution", reals(2, 2, *(7,) * n), *weights, num_filter=4, no_bias=not bias, **how)


@SETTINGS
@given(convolution())
def test_deconvolution(case):
    n, kernel, stride, _, _, group, bias = case
    weights = [reals(4, 4 // group, *kernel), *([reals(4)] if bias else [])]
    how = {"kernel": kernel, "stride": stride, "num_group": group, "no_bias": not bias}
    oracle = {"oracle": None} if group > 1 else {}  # ONNX's own Python knows no groups
    weighted("Deconvolution", reals(2, 4, *(4,) * n), *weights, num_filter=4, **how, **oracle)


def test_convolution_of_other_layouts():
    how = {"kernel": (3, 3), "num_filter": 4, "layout": "NHWC"}
    weighted("Convolution", reals(1, 6, 6, 3), reals(4, 3, 3, 3), reals(4), **how)
    more = {"target_shape": (7, 8), "stride": (2, 2)}
    weighted(
        "Deconvolution", reals(1, 2, 4, 4), reals(2, 3, 3, 3), kernel=(3, 3), num_filter=3, **more
    )
    more = {"pad": (1, 1), "adj": (1, 0), "stride": (2, 2), "target_shape": (0, 0)}
    weighted(
        "Deconvolution", reals(1, 2, 4, 4), reals(2, 3, 3, 3), kernel=(3, 3), num_filter=3, **more
    )


@st.composite
def pooling(draw):
    n = draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(2, 3)) for _ in range(n))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(n))
    pad = tuple(draw(st.integers(0, 1)) for _ in range(n))
    return n, {"kernel": kernel, "stride": stride, "pad": pad}


@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize("kind", ["max", "avg", "mean", "sum", "lp"])
@SETTINGS
@given(pooling())
def test_pooling(kind, convention, case):
    n, how = case
    how["pool_type"] = "avg" if kind == "mean" else kind
    if kind == "mean":
        how["count_include_pad"] = False
    if kind == "lp":
        how["p_value"] = 2
    oracle = {} if convention == "valid" and kind != "lp" else {"oracle": None}
    holds("Pooling", reals(2, 2, *(6,) * n), pooling_convention=convention, **how, **oracle)


def test_pooling_of_everything():
    for kind in ("max", "avg", "sum"):
        holds("Pooling", reals(2, 3, 4, 5), global_pool=True, pool_type=kind, kernel=(1, 1))
    holds(
        "Pooling",
        reals(2, 3, 5),
        pool_type="max",
        kernel=(2,),
        stride=(2,),
        pooling_convention="same",
    )
    holds("Pooling_v1", reals(1, 2, 5, 5), pool_type="avg", kernel=(2, 2))
    holds("Pooling", reals(2, 5, 5, 3), pool_type="max", kernel=(2, 2), layout="NHWC")
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 6, 5), output_size=(1, 1))
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 6, 4), output_size=(3, 2))
    holds("_contrib_AdaptiveAvgPooling2D", reals(1, 2, 7, 5), output_size=(3, 2))


@pytest.mark.parametrize("kind", ["relu", "sigmoid", "softrelu", "tanh", "softsign"])
def test_activations(kind):
    holds("Activation", reals(2, 3), act_type=kind)


@pytest.mark.parametrize("kind", ["leaky", "elu", "selu", "gelu", "rrelu"])
def test_rectifiers(kind):
    holds("LeakyReLU", reals(2, 3, 4), act_type=kind, slope=0.3)


def test_rectifiers_with_weights():
    weighted("LeakyReLU", reals(2, 3, 4), reals(3), act_type="prelu")
    weighted("LeakyReLU", reals(2, 3), reals(1), act_type="prelu")


def test_softmax():
    x, lengths = reals(2, 4, 3), np.array([[1, 2, 3], [4, 1, 2]], np.int32)
    for name in ("softmax", "softmin", "log_softmax"):
        holds(name, x, axis=1)
        holds(name, x, temperature=2.0)
    holds("softmax", x, lengths, axis=1, use_length=True)
    holds("softmax", x, dtype="float64")
    holds("SoftmaxActivation", x, mode="channel")
    holds("SoftmaxActivation", reals(2, 3))


@pytest.mark.parametrize(
    "name",
    ["LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput", "SVMOutput"],
)
def test_outputs(name):
    x = reals(3, 4)
    label = reals(3) if name == "SVMOutput" else reals(3, 4)
    labelled(name, x, label)


def labelled(name: str, x: Any, label: Any, **params: Any) -> None:
    net = apply(name, [sym.var("x"), sym.var("label")], params)
    check(net, {"x": x, "label": label}, shapes=[x.shape])


def test_softmax_outputs():
    labelled("SoftmaxOutput", reals(3, 4), reals(3))
    labelled("SoftmaxOutput", reals(3, 4, 2), reals(3, 2), multi_output=True)
    labelled("SoftmaxOutput", reals(3, 4, 2), reals(3, 4), preserve_shape=True)


# normalizations --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["BatchNorm", "_contrib_BatchNormWithReLU"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("fix_gamma", [False, True])
def test_batch_norm(name, axis, fix_gamma):
    x = reals(2, 3, 4, 5)
    c = x.shape[axis]
    states = [reals(c), reals(c), reals(c), reals(c, low=0.5)]
    weighted(name, x, *states, axis=axis, fix_gamma=fix_gamma, eps=1e-3)


def test_normalizations():
    x = reals(2, 4, 3, 3)
    weighted("LayerNorm", x, reals(3), reals(3))
    weighted("LayerNorm", x, reals(4), reals(4), axis=1)
    weighted("LayerNorm", x, reals(4), reals(4), axis=1, output_mean_var=True)
    weighted("InstanceNorm", x, reals(4), reals(4))
    weighted("GroupNorm", x, reals(2), reals(2), num_groups=2)
    weighted("_contrib_SyncBatchNorm", x, reals(4), reals(4), reals(4), reals(4, low=0.5), key="a")
    for mode in ("instance", "channel", "spatial"):
        holds("L2Normalization", x, mode=mode)
    holds("LRN", reals(4, 4, 3, 3), nsize=3, alpha=0.5)


# products --------------------------------------------------------------------------------------


def test_products():
    holds("dot", reals(2, 3), reals(3, 4))
    holds("dot", reals(3, 2), reals(4, 3), transpose_a=True, transpose_b=True)
    holds("dot", reals(2, 3, 4), reals(4, 3, 2))
    holds("dot", reals(3), reals(3))
    holds("batch_dot", reals(2, 3, 4), reals(2, 5, 4), transpose_b=True)
    holds("batch_dot", reals(2, 2, 4, 3), reals(2, 2, 4, 5), transpose_a=True)
    holds("_linalg_gemm2", reals(2, 3, 4), reals(2, 4, 5), alpha=0.5)
    holds("_linalg_gemm", reals(2, 3, 4), reals(2, 4, 5), reals(2, 3, 5), beta=0.5, alpha=2.0)
    holds("_linalg_det", reals(2, 3, 3))
    holds("_linalg_det", reals(3, 3))
    holds("khatri_rao", reals(2, 3), reals(4, 3), num_args=2)


def test_attention():
    qkv, kv, q = reals(5, 2, 24), reals(4, 2, 16), reals(5, 2, 8)
    scores, cross = reals(4, 5, 5), reals(4, 5, 4)
    holds("_contrib_interleaved_matmul_selfatt_qk", qkv, heads=2)
    holds("_contrib_interleaved_matmul_selfatt_valatt", qkv, scores, heads=2)
    holds("_contrib_interleaved_matmul_encdec_qk", q, kv, heads=2)
    holds("_contrib_interleaved_matmul_encdec_valatt", kv, cross, heads=2)


# images ----------------------------------------------------------------------------------------


def test_images():
    x = reals(2, 3, 4, 5)
    holds("UpSampling", x, scale=2, sample_type="nearest", num_args=1)
    holds("UpSampling", x, reals(2, 1, 8, 10), scale=4, sample_type="nearest", num_args=2)
    how = {"sample_type": "bilinear", "num_filter": 3, "num_args": 2}
    weighted("UpSampling", x, reals(3, 1, 4, 4), scale=2, **how)
    for corners in (True, False):
        holds("_contrib_BilinearResize2D", x, height=7, width=3, align_corners=corners)
    holds("_contrib_BilinearResize2D", x, reals(2, 3, 6, 6), mode="like")
    grid = reals(2, 2, 3, 3, low=-1.2, high=1.2)
    holds("BilinearSampler", x, grid, oracle=None)
    theta = np.tile(np.array([1, 0.2, 0.1, -0.1, 0.9, 0], np.float32), (2, 1))
    holds("GridGenerator", theta, transform_type="affine", target_shape=(3, 4))
    how = {"transform_type": "affine", "sampler_type": "bilinear", "target_shape": (3, 4)}
    holds("SpatialTransformer", x, theta, oracle=None, **how)


ROIS = np.array([[0, 0, 0, 4, 4], [1, 1, 1, 3, 3]], np.float32)


def test_regions():
    x = reals(2, 3, 6, 6)
    for aligned in (False, True):
        how = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sample_ratio": 2, "aligned": aligned}
        holds("_contrib_ROIAlign", x, ROIS, **how)
    holds("ROIPooling", x, ROIS, pooled_size=(2, 2), spatial_scale=1.0, oracle=None)


def test_boxes():
    holds("_contrib_MultiBoxPrior", reals(1, 2, 3, 4), sizes=(0.5, 0.2), ratios=(1, 2))
    for form in ("center", "corner"):
        anchors = np.sort(reals(1, 5, 4, low=0, high=1), -1)
        holds("_contrib_box_decode", reals(2, 5, 4), anchors, format=form, clip=0.5, std0=0.1)


def test_suppression():
    rows = np.concatenate([indices(2, 2, 9, 1), reals(2, 9, 1, low=0, high=1)], -1)
    corners = reals(2, 9, 2, low=0, high=2)
    rows = np.concatenate([rows, corners, corners + reals(2, 9, 2, low=0.5, high=1)], -1)
    how = {"coord_start": 2, "score_index": 1, "again": False}
    for more in (
        {},
        {"id_index": 0},
        {"topk": 4, "valid_thresh": 0.3},
        {"background_id": 0, "id_index": 0},
    ):
        holds("_contrib_box_nms", rows, overlap_thresh=0.3, **how, **more)


# recurrent layers ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_recurrent_layers(mode, both, layers):
    size, channels, d = 4, 3, 1 + both
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    inputs = [channels if k == 0 else size * d for k in range(layers)]
    count = sum(d * gates * size * (i + size + 2) for i in inputs)
    x, states = (
        reals(5, 2, channels),
        [reals(layers * d, 2, size) for _ in range(1 + (mode == "lstm"))],
    )
    arrays = {"x": x, "w": reals(count, low=-0.5, high=0.5), "h": states[0]}
    arrays |= {"c": states[1]} if mode == "lstm" else {}
    how = {"mode": mode, "state_size": size, "num_layers": layers, "bidirectional": both}
    net = op("RNN", arrays, state_outputs=True, **how)
    weights = {"w": arrays.pop("w")}
    # ONNX's own Python has one direction, and no relu
    oracle = {"oracle": None} if both or mode == "rnn_relu" else {}
    check(net, arrays, weights, **oracle)
