"""Calls of neural networks: the library, the fallback and NumPy agree, however operands lie."""

import numpy as np
import pytest

from gnomon import config
from gnomon.expr import call
from gnomon.expr.call import conv, pool
from gnomon.expr.diff import vjp
from gnomon.expr.node import Buffer
from gnomon.expr.oracle import evaluate
from gnomon.runtime.libraries.dnn.library import available
from gnomon.runtime.statements.prepare import Store, prepare
from gnomon.shadow import Tensor


def lying(values, last):
    """A buffer of these values, with the channels last in memory where asked."""
    order = (0, *range(2, values.ndim), 1) if last and values.ndim > 2 else range(values.ndim)
    held = np.ascontiguousarray(values.transpose(order))
    back = held.transpose(np.argsort(list(order)))
    strides = [s // 4 for s in back.strides]
    return Buffer(values.shape, strides=strides, address=held.ctypes.data, owner=held), back


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def computed(make, operands, lasts, saver="saveto"):
    """What the steps store, and what NumPy says."""
    buffers, views = zip(*map(lying, operands, lasts[:-1]), strict=True)
    value = make(*buffers)
    dest, seen = lying(np.ones(value.shape, np.float32), lasts[-1])
    for step in prepare([Store(dest, saver, value)]):
        step.run()
    return seen.copy(), evaluate(make(*[lying(v, last=False)[0] for v in views]))


GEOMETRY = conv.Geometry((2, 1), (1, 2), (1, 1), 1)
WINDOWS = [
    pool.Window((2, 2), (2, 2), (0, 0), False),
    pool.Window((3, 2), (2, 1), (1, 0), True),
    pool.Window((6, 5), (1, 1), (0, 0), False),
]
CALLS = {
    "convolution": (
        lambda x, w: call.Convolution(x, w, GEOMETRY),
        [draw(2, 3, 6, 5), draw(20, 3, 3, 3)],
    ),
    "biased": (
        lambda x, w, b: call.BiasedConvolution(x, w, b, GEOMETRY),
        [draw(2, 3, 6, 5), draw(20, 3, 3, 3), draw(20)],
    ),
    "data": (
        lambda g, w: call.ConvolutionData(g, w, GEOMETRY, (6, 5)),
        [draw(2, 20, 3, 7), draw(20, 3, 3, 3)],
    ),
    "weight": (
        lambda x, g: call.ConvolutionWeight(x, g, GEOMETRY, (3, 3)),
        [draw(2, 3, 6, 5), draw(2, 20, 3, 7)],
    ),
}
for number, window in enumerate(WINDOWS):
    counts = window.counts((6, 5))
    for counted in (True, False):
        CALLS[f"avg {number} {counted}"] = (
            lambda x, w=window, c=counted: call.AvgPool(x, w, c),
            [draw(2, 20, 6, 5)],
        )
        CALLS[f"avg gradient {number} {counted}"] = (
            lambda g, w=window, c=counted: call.AvgPoolGradient(g, w, c, (6, 5)),
            [draw(2, 20, *counts)],
        )
    CALLS[f"max gradient {number}"] = (
        lambda x, g, w=window: call.MaxPoolGradient(x, call.MaxPool(x, w), g, w),
        [draw(2, 20, 6, 5), draw(2, 20, *counts)],
    )


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("last", ["none", "all", "first", "dest", "ends"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_numpy(name, last, onednn):
    make, operands = CALLS[name]
    count = len(operands)
    lasts = {
        "none": [False] * (count + 1),
        "all": [True] * (count + 1),
        "first": [True, *[False] * count],
        "dest": [*[False] * count, True],
        "ends": [True, *[False] * (count - 1), True],
    }[last]
    with config.using(onednn=onednn):
        got, expected = computed(make, operands, lasts)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("name", ["convolution", "biased", "data", "weight"])
def test_floats_of_16_bits_are_computed_in_single_precision(name, onednn):
    """By the library where it is there, and rounded once."""
    make, operands = CALLS[name]
    halves = [v.astype(np.float16) for v in operands]
    value = make(*map(Tensor, halves))
    dest = Tensor(np.empty(value.shape, np.float16))
    with config.using(onednn=onednn):
        for step in prepare([Store(dest, "saveto", value)]):
            step.run()
    wide = [v.astype(np.float32) for v in halves]
    want = evaluate(make(*[lying(v, last=False)[0] for v in wide]))
    np.testing.assert_allclose(dest.numpy(), want, rtol=1e-3, atol=1e-4)


def grouped(groups, channels, filters, rank=2):
    """The three calls of a convolution in groups, with their operands."""
    pad, dilate = (1, 2, 0)[:rank], (1, 2, 1)[:rank]
    how = conv.Geometry((2, 1, 1)[:rank], pad, dilate, groups)
    space, kernel = (6, 7, 4)[:rank], (3, 2, 2)[:rank]
    data = draw(2, groups * channels, *space)
    weight = draw(groups * filters, channels, *kernel)
    made = call.Convolution(lying(data, last=False)[0], lying(weight, last=False)[0], how)
    grad = draw(*made.shape)
    return {
        "forward": (lambda x, w: call.Convolution(x, w, how), [data, weight]),
        "data": (lambda g, w: call.ConvolutionData(g, w, how, space), [grad, weight]),
        "weight": (lambda x, g: call.ConvolutionWeight(x, g, how, kernel), [data, grad]),
    }


@pytest.mark.parametrize("part", ["forward", "data", "weight"])
@pytest.mark.parametrize(
    "sizes", [(5, 1, 1), (3, 2, 3), (2, 5, 4), (2, 1, 2, 1), (2, 5, 4, 1), (3, 1, 1, 3)]
)
def test_groups_agree_with_numpy_without_a_library(sizes, part):
    make, operands = grouped(*sizes)[part]
    with config.using(onednn=False):
        got, expected = computed(make, operands, [False] * 3)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_sums_into_channels_last():
    make, operands = CALLS["convolution"]
    got, expected = computed(make, operands, [True, False, True], "plusto")
    np.testing.assert_allclose(got, expected + 1, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["biased", "avg 1 True", "avg gradient 1 False"])
def test_gradients_agree_with_differences(name):
    make, operands = CALLS[name]
    buffers = [lying(v, last=False)[0] for v in operands]
    value = make(*buffers)
    g = draw(*value.shape)
    grads = vjp([value], [lying(g, last=False)[0]], buffers)
    for k, grad in enumerate(grads):
        away = [np.zeros_like(v) for v in operands]
        away[k] = draw(*operands[k].shape[::-1]).reshape(operands[k].shape)
        sides = [
            evaluate(
                make(
                    *[lying(v + e * d, last=False)[0] for v, d in zip(operands, away, strict=True)]
                )
            )
            for e in (0.5, -0.5)
        ]
        expected = float(((sides[0] - sides[1]) * g).sum(dtype=np.float64))
        found = float((evaluate(grad) * away[k]).sum(dtype=np.float64))
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_a_gradient_with_the_channels_last_is_made_where_it_belongs():
    data, grad = draw(2, 20, 6, 5), draw(2, 20, 3, 3)
    window = pool.Window((2, 2), (2, 2), (0, 0), True)
    x, g, out = (lying(v, last)[0] for v, last in ((data, True), (grad, False), (data, True)))
    value = call.MaxPoolGradient(x, call.MaxPool(x, window), g, window)
    names = [step.name for step in prepare([Store(out, "saveto", value)])]
    assert names[-1] == "pooling_backward" or not available()


@pytest.mark.parametrize("full", [False, True])
def test_a_window_over_everything_is_one_step_for_each_element(full):
    """Its stride says nothing: no element is looked for in windows that there are not."""
    window = pool.Window((5, 4), (1, 1), (0, 1), full)
    data, grad = draw(2, 3, 5, 3), draw(2, 3, 1, 2)
    assert window.apart((5, 3)).most == [1, 4]
    for make, operands in (
        (lambda x, g: call.MaxPoolGradient(x, call.MaxPool(x, window), g, window), [data, grad]),
        (lambda g: call.AvgPoolGradient(g, window, True, (5, 3)), [grad]),
    ):
        with config.using(onednn=False):
            got, expected = computed(make, operands, [False] * (len(operands) + 1))
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
