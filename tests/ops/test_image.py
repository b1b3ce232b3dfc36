"""Operators on images: against the real library, at random, and what they refuse."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.expr.oracle import evaluate
from gnomon.ops.image_random import RandomColorJitter, brighter, contrasted, saturated, turned
from gnomon.ops.testing import leaf

GOLDEN = Path(__file__).parent.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import images  # noqa: E402

image = mx.nd.image
RNG = np.random.default_rng(0)


def picture(h=4, w=5, c=3, dtype="float32"):
    return mx.nd.array(RNG.integers(0, 256, (h, w, c)), dtype=dtype)


def test_values_are_those_of_the_real_library():
    record = json.loads((GOLDEN / "images.json").read_text())
    found = images.results(mx)
    cases = [case for case in images.CASES for _ in case[2]]
    for case, (shape, dtype, numbers), (theirs, theirs_dtype, expected) in zip(
        cases, found, record, strict=True
    ):
        assert (shape, dtype) == (theirs, theirs_dtype), case
        # integers: 116.99999 in one and 117.00001 in the other are cut off
        atol = 1.001 if dtype == "uint8" else 2e-3
        np.testing.assert_allclose(numbers, expected, rtol=1e-5, atol=atol, err_msg=str(case))


@pytest.mark.parametrize("width", [1, 4, 5])
def test_odd_widths_are_mirrored_whole(width):
    x = picture(3, width)
    np.testing.assert_array_equal(image.flip_left_right(x).asnumpy(), x.asnumpy()[:, ::-1])
    y = x.transpose((1, 0, 2))
    np.testing.assert_array_equal(image.flip_top_bottom(y).asnumpy(), y.asnumpy()[::-1])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16"])
@pytest.mark.parametrize("name", ["left_right", "top_bottom"])
def test_random_flips_are_as_likely_as_not(name, dtype):
    x = picture(2, 3, dtype=dtype)
    flip = getattr(image, f"random_flip_{name}")
    mirrored = getattr(image, f"flip_{name}")(x).asnumpy()
    found = [np.array_equal(flip(x).asnumpy(), mirrored) for _ in range(200)]
    assert 60 < sum(found) < 140


def test_saturation_moves_colours_away_from_gray():
    x = picture()
    gray = (x.asnumpy() * [0.299, 0.587, 0.114]).sum(-1, keepdims=True)
    found = image.random_saturation(x, 1.5, 1.5).asnumpy()
    np.testing.assert_allclose(found, x.asnumpy() * 1.5 - gray * 0.5, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(image.random_saturation(x, 0, 0).asnumpy(), gray + 0 * found, 1e-4)


@pytest.mark.parametrize("name", ["saturation", "hue"])
def test_one_channel_has_one_colour(name):
    x = picture(c=1)
    found = getattr(image, f"random_{name}")(x, 0.2, 1.9).asnumpy()
    np.testing.assert_array_equal(found, x.asnumpy())


def test_factors_are_drawn_from_their_range():
    x = mx.nd.ones((1, 1, 3))
    found = [float(image.random_brightness(x, 0.5, 1.5).asnumpy()[0, 0, 0]) for _ in range(100)]
    assert 0.5 <= min(found) < 0.7 < 1.3 < max(found) <= 1.5
    lights = [image.random_lighting(x, 0.1).asnumpy()[0, 0] - 1 for _ in range(200)]
    np.testing.assert_allclose(np.std(lights, axis=0), np.hypot(55.46 * 0.058, 0.35), rtol=0.2)


def test_a_jitter_without_strength_changes_nothing():
    x = picture(dtype="uint8")
    np.testing.assert_array_equal(image.random_color_jitter(x, 0, 0, 0, 0).asnumpy(), x.asnumpy())


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("left_out", [None, "brightness", "hue"])
def test_a_jitter_is_its_changes_one_after_the_other(order, left_out):
    widths = {"brightness": 0.4, "contrast": 0.5, "saturation": 0.6, "hue": 0.1}
    widths |= {left_out: 0.0} if left_out else {}
    draw = [0.1, 0.9, 0.7, 0.2, *np.argsort(order) / 4]
    x = want = leaf(RNG.uniform(0, 255, (3, 4, 3)))
    wide = [leaf(np.full(x.shape, d, np.float64)) for d in draw]
    changes = (brighter, contrasted, saturated, turned)
    for k in order:
        if width := list(widths.values())[k]:
            want = changes[k](want, wide[k] * (2 * width) + ((k < 3) - width))
    found = RandomColorJitter(**widths).colours(x, wide)
    np.testing.assert_allclose(evaluate(found), evaluate(want), 1e-9)


@pytest.mark.parametrize(("widths", "spoilt"), [((0.3, 0, 0, 0), 1), ((0.3, 0, 0.3, 0.1), 3)])
def test_a_jitter_without_contrast_leaves_other_pixels_alone(widths, spoilt):
    x = picture(4, 4)
    x[1, 1, 1] = np.nan
    assert np.isnan(image.random_color_jitter(x, *widths).asnumpy()).sum() == spoilt


def test_a_jitter_takes_its_changes_in_any_order():
    """Brightness 2 and contrast away from the mean do not commute with a cut at 0."""
    x = picture(2, 2)
    bright = image.random_color_jitter(x, brightness=0.5, contrast=0, saturation=0, hue=0)
    ratio = bright.asnumpy() / x.asnumpy()
    assert ratio.std() < 1e-5
    assert 0.5 <= ratio.mean() <= 1.5
    mixed = image.random_color_jitter(x, 0.3, 0.3, 0.3, 0.1).asnumpy()
    assert np.isfinite(mixed).all()
    assert not np.array_equal(mixed, x.asnumpy())


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("random_flip_left_right", {}),
        ("random_flip_top_bottom", {}),
        ("random_brightness", {"min_factor": 0.5, "max_factor": 1.5}),
        ("random_contrast", {"min_factor": 0.5, "max_factor": 1.5}),
        ("random_saturation", {"min_factor": 0.5, "max_factor": 1.5}),
        ("random_lighting", {"alpha_std": 0.1}),
    ],
)
def test_gradients_belong_to_the_same_draw(name, params):
    """All of these are linear in the image, up to what is added."""
    x, weight = picture(3, 4), mx.nd.array(RNG.normal(size=(3, 4, 3)))
    x.attach_grad()
    change = getattr(image, name)
    for _ in range(5):
        with mx.autograd.record():
            y = change(x, **params)
        y.backward(weight)
        added = 0.0
        if name == "random_lighting":
            added = ((y - x) * weight).sum().asscalar()
        left = (y * weight).sum().asscalar()
        right = (x * x.grad).sum().asscalar() + added
        np.testing.assert_allclose(left, right, rtol=1e-3, atol=0.2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: image.to_tensor(mx.nd.ones((4, 5))), ShapeError, "height, width, channels"),
        (lambda: image.flip_left_right(mx.nd.ones((1, 4, 5, 3))), ShapeError, "4, 5, 3"),
        (lambda: image.random_hue(mx.nd.ones((4, 5, 2)), 1, 1), ShapeError, "1 or 3 channels"),
        (lambda: image.random_hue(picture(), -1, 1), ParamError, "min_factor"),
        (lambda: image.random_hue(picture(), 2, 1), ParamError, "max_factor"),
        (lambda: image.crop(picture(), x=3, y=0, width=3, height=1), ShapeError, "1 x 6 pixels"),
        (lambda: image.crop(picture(), x=-1, y=0, width=3, height=1), ParamError, "'x'"),
        (lambda: image.normalize(picture(dtype="uint8")), DTypeError, "floating-point"),
        (lambda: image.normalize(picture(3), mean=(1, 2)), ShapeError, "'mean'"),
        (lambda: image.normalize(picture(3), mean=(1, 1)), ShapeError, "'mean'"),
        (lambda: image.normalize(picture(3), std=(2, 2, 2, 2)), ShapeError, "'std'"),
        (lambda: image.normalize(picture(3), std=0), ParamError, "'std'"),
        (lambda: image.adjust_lighting(picture(), alpha=(1, 2)), ParamError, "tuple of 3 floats"),
        (lambda: image.resize(picture(), size=()), ParamError, "'size'"),
        (lambda: image.resize(picture(), size=(3, 0)), ParamError, "'size'"),
        (lambda: image.resize(picture(), size=3, interp=9), ParamError, "'interp'"),
        (lambda: image.resize(picture(dtype="int32"), size=3), DTypeError, "uint8"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call().wait_to_read()


def test_resize_has_no_gradient():
    x = picture()
    x.attach_grad()
    with pytest.raises(GnomonError, match="gradient"):  # noqa: PT012
        with mx.autograd.record():
            y = image.resize(x, size=3)
        y.backward()
        x.grad.wait_to_read()


def test_symbols_of_images():
    x = mx.sym.Variable("x")
    net = mx.sym.image.to_tensor(
        mx.sym.image.resize(mx.sym.image.random_flip_left_right(x), size=2)
    )
    assert net.list_outputs() == [f"{net.name}_output"]
    out = net.eval(x=picture(4, 4, dtype="uint8"))[0]
    assert out.shape == (3, 2, 2)


def test_imdecode_cuts_subtracts_and_fills_batches():
    import cv2  # of the extra `test`

    pixels = RNG.integers(0, 256, (4, 5, 3)).astype("uint8")
    data = cv2.imencode(".png", pixels[..., ::-1])[1].tobytes()
    planes = pixels.transpose(2, 0, 1).astype("f")
    found = mx.nd.imdecode(data)
    assert (found.shape, found.dtype) == ((3, 4, 5), np.float32)
    np.testing.assert_array_equal(found.asnumpy(), planes)
    part = mx.nd.imdecode(data, (1, 0, 4, 2), mean=mx.nd.full((3, 2, 3), 2))
    np.testing.assert_array_equal(part.asnumpy(), planes[:, :2, 1:4] - 2)
    assert mx.nd.imdecode(data, channels=1).shape == (1, 4, 5)
    batch = mx.nd.zeros((2, 3, 4, 5))
    assert mx.nd.imdecode(data, out=batch, index=1) is batch
    np.testing.assert_array_equal(batch.asnumpy(), [0 * planes, planes])
    node = mx.sym._internal._imdecode(mx.sym.var("buf"), x1=3, y1=2)
    raw = mx.nd.array(np.frombuffer(data, np.uint8), dtype="uint8")
    np.testing.assert_array_equal(node.eval(buf=raw)[0].asnumpy(), planes[:, :2, :3])
    for given, error in (
        ({"clip_rect": (1, 0, 9, 2)}, GnomonError),
        ({"clip_rect": (3, 0, 2, 2)}, ParamError),
        ({"channels": 2}, ParamError),
        ({"mean": mx.nd.ones((3, 2, 2))}, ShapeError),
        ({"out": mx.nd.ones((3, 2, 2))}, ShapeError),
        ({"out": batch, "index": 3}, IndexError),
    ):
        with pytest.raises(error):
            mx.nd.imdecode(data, **given).wait_to_read()
    with pytest.raises(GnomonError, match="expected an image"):
        mx.nd.imdecode(b"nothing")
