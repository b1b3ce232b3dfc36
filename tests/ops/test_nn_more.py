"""Layers whose states MXNet's functions do not take: what it gave through symbols."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, nd
from gnomon.expr.composite import Scatter
from gnomon.expr.node import Buffer
from gnomon.expr.walk import postorder
from gnomon.ops import registry
from gnomon.ops.nn.ctc import CTCLoss
from gnomon.ops.nn.spatial import sampled

DATA = [[0.2, 0.4, 0.6], [0.3, 0.9, 0.5], [0.1, 0.2, 0.7], [0.8, 0.6, 0.4]]


def test_activations_are_pulled_to_a_share():
    attrs = {"sparseness_target": 0.2, "penalty": 0.1, "momentum": 0.9}
    net = mx.sym.IdentityAttachKLSparseReg(mx.sym.var("x"), name="reg", **attrs)
    assert net.list_auxiliary_states() == ["reg_moving_avg"]
    assert net.list_outputs() == ["reg_output"]
    x, average, grad = nd.array(DATA), nd.array([0.3, 0.4, 0.5]), nd.zeros((4, 3))
    bound = net.bind(mx.cpu(), {"x": x}, {"x": grad}, "write", {"reg_moving_avg": average})
    (out,) = bound.forward(is_train=True)
    bound.backward(nd.ones((4, 3)))
    np.testing.assert_array_equal(out.asnumpy(), x.asnumpy())
    np.testing.assert_allclose(average.asnumpy(), [0.305, 0.4125, 0.505], 1e-6)
    slopes = [1.0495342, 1.0876853, 1.1220121]  # by MXNet
    np.testing.assert_allclose(grad.asnumpy(), np.tile(slopes, (4, 1)), 1e-6)
    bound.forward(is_train=False)
    np.testing.assert_allclose(average.asnumpy(), [0.305, 0.4125, 0.505], 1e-6)


def test_relu_behind_batch_norm():
    draw = np.random.default_rng(1)
    values = {k: nd.array(draw.uniform(0.3, 1, 3)) for k in ("gamma", "moving_var")}
    values |= {k: nd.array(draw.normal(size=3)) for k in ("beta", "moving_mean")}
    values["data"] = nd.array(draw.normal(size=(4, 3, 2)))
    found = []
    for name in ("BatchNorm", "_contrib_BatchNormWithReLU"):
        make = getattr(mx.sym, name, None) or getattr(mx.sym._internal, name)
        names = ("data", "gamma", "beta", "moving_mean", "moving_var")
        net = make(*map(mx.sym.var, names), fix_gamma=False)
        net = mx.sym.relu(net) if name == "BatchNorm" else net
        args = {k: values[k] for k in names[:3]}
        grads = {k: v.zeros_like() for k, v in args.items()}
        states = {k: values[k].copy() for k in names[3:]}
        bound = net.bind(mx.cpu(), args, grads, "write", states)
        (out,) = bound.forward(is_train=True)
        bound.backward(nd.arange(24).reshape((4, 3, 2)))
        found.append([out, *grads.values(), *states.values()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), 1e-5, 1e-6)


def test_one_row_is_the_first_and_scaled_sizes_are_rounded_in_single_precision():
    resize = nd.contrib.BilinearResize2D
    x = nd.arange(12).reshape((1, 1, 3, 4))
    found = resize(x, height=1, width=2, align_corners=False)
    assert found.asnumpy().ravel().tolist() == [0.5, 2.5]  # by MXNet
    found = resize(x, height=3, width=1, align_corners=False)
    assert found.asnumpy().ravel().tolist() == [0, 4, 8]
    found = resize(nd.zeros((1, 1, 100, 50)), scale_height=0.29, scale_width=0.58)
    assert found.shape == (1, 1, 29, 29)
    found = resize(nd.zeros((2, 1, 1, 5)), mode="to_even_down", align_corners=False)
    assert found.shape == (2, 1, 0, 4)


@pytest.mark.parametrize(
    ("size", "corners", "rows", "columns"),  # by MXNet
    [
        ((7, 7), True, range(4), range(4)),
        ((8, 8), True, range(5), range(5)),
        ((3, 5), False, range(2), range(3)),
        ((4, 4), True, range(1, 2), range(1, 2)),
    ],
)
def test_a_pixel_that_is_not_finite_spoils_those_that_are_taken_from_it(
    size, corners, rows, columns
):
    values = np.ones((1, 1, 4, 4), "float32")
    values[0, 0, 1, 1] = np.nan
    data, (height, width) = nd.array(values), size
    data.attach_grad()
    with autograd.record():
        found = nd.contrib.BilinearResize2D(data, height=height, width=width, align_corners=corners)
    expected = np.zeros(size, bool)
    expected[np.ix_(rows, columns)] = True
    assert (np.isnan(found.asnumpy()[0, 0]) == expected).all()
    found.backward()
    assert np.isfinite(data.grad.asnumpy()).all()


@pytest.mark.parametrize(("size", "spoilt"), [(1, [[1]]), ((2, 3), [[0, 1, 1], [0, 1, 1]])])
@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_pixel_that_is_not_finite_spoils_the_means_that_hold_it(hole, size, spoilt):
    values = np.random.default_rng(0).normal(size=(1, 2, 5, 7)).astype("float32")
    values[0, 1, 2, 4] = hole  # in the middle row, which both rows of the result hold
    data = nd.array(values)
    data.attach_grad()
    with autograd.record():
        means = nd.contrib.AdaptiveAvgPooling2D(data, output_size=size)
    means.backward()
    assert np.isfinite(means.asnumpy()[0, 0]).all()
    assert (~np.isfinite(means.asnumpy()[0, 1])).tolist() == np.array(spoilt, bool).tolist()
    assert np.isfinite(data.grad.asnumpy()).all()


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_a_likelihood_of_no_numbers_is_no_number(hole):
    values = np.random.default_rng(0).normal(size=(5, 2, 3)).astype("float32")
    values[1, 0, 0] = hole
    data = mx.nd.array(values)
    data.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.CTCLoss(data, mx.nd.array([[1, 2], [2, 1]]))
    loss.backward()
    assert np.isnan(loss.asnumpy()).tolist() == [True, False]
    assert np.isnan(data.grad.asnumpy()).any((0, 2)).tolist() == [True, False]


def test_labels_are_aligned_once_for_loss_and_gradient(monkeypatch):
    found = []
    aligned = CTCLoss.aligned
    monkeypatch.setattr(
        CTCLoss, "aligned", lambda *given: found.append(aligned(*given)) or found[-1]
    )
    data = mx.nd.array(np.random.default_rng(1).normal(size=(5, 2, 4)))
    data.attach_grad()
    grads = []
    for train in (True, False):
        with mx.autograd.record(train_mode=train):
            loss = mx.nd.CTCLoss(data, mx.nd.array([[1, 2], [3, 3]]))
        loss.backward(mx.nd.array([1, 1000]))
        grads.append(data.grad.asnumpy())
    assert len(found) == 1 + 2
    assert np.abs(grads[0]).min() > 0
    assert np.array_equal(*grads)


@pytest.mark.parametrize("low", [-1e3, -2e9, -1e11])
def test_logarithms_of_probabilities_far_below_0_count(low):
    """The label comes first or last, each half as likely as the other would be alone."""
    data = mx.nd.array([[[0, low, low]], [[0, low, 0]]])
    data.attach_grad()
    with mx.autograd.record():
        loss = mx.nd.CTCLoss(data, mx.nd.array([[1]]))
    loss.backward()
    assert np.allclose(loss.asnumpy(), -low, rtol=1e-3)
    expected = [[[0.5, -0.5, 0]], [[0, -0.5, 0.5]]]
    assert np.allclose(data.grad.asnumpy(), expected, atol=1e-3)


@pytest.mark.parametrize("label", [np.nan, 1e30, np.inf, -np.inf])
def test_labels_that_are_no_classes_are_refused(label):
    with pytest.raises(mx.MXNetError, match=r"CTCLoss.*label.*classes"):
        mx.nd.CTCLoss(mx.nd.ones((5, 1, 3)), mx.nd.array([[label, 1]])).asnumpy()
    behind = mx.nd.CTCLoss(mx.nd.ones((5, 1, 3)), mx.nd.array([[1, 0, label]]))
    assert np.isfinite(behind.asnumpy()).all()


@pytest.mark.parametrize("modulated", [False, True])
def test_windows_deformed_to_infinity_take_nothing(modulated):
    offset = np.zeros((1, 4, 2, 2), "float32")
    offset[0, :2, 0, 0], offset[0, 2:, 1, 1] = (-np.inf, np.inf), (np.inf, -np.inf)
    arrays = [nd.ones((1, 1, 2, 3)), nd.array(offset)] + [nd.ones((1, 2, 2, 2))] * modulated
    arrays.append(nd.ones((1, 1, 1, 2)))
    name = "ModulatedDeformableConvolution" if modulated else "DeformableConvolution"
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        found = getattr(nd.contrib, name)(*arrays, kernel=(1, 2), num_filter=1, no_bias=True)
    found.backward()
    assert found.asnumpy().ravel().tolist() == [1, 2, 2, 1]
    assert all(np.isfinite(array.grad.asnumpy()).all() for array in arrays)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_sample_at_a_pixel_moves_along_the_slope_to_the_next_one(level):
    image = np.array([[1, 4, 9], [3, 5, 8]], "float32") * level + 7
    data, theta = nd.array(image[None, None]), nd.array([[1, 0, 0, 0, 1, 0]])
    grid = nd.GridGenerator(theta, transform_type="affine", target_shape=(2, 3))
    for array in (theta, grid):
        array.attach_grad()
    size = {"target_shape": (2, 3), "transform_type": "affine", "sampler_type": "bilinear"}
    with mx.autograd.record():
        found = nd.SpatialTransformer(data, theta, **size), nd.BilinearSampler(data, grid)
    autograd.backward(found)
    beyond = np.pad(image, ((0, 1), (0, 1)))  # what lies outside is 0
    slopes = [np.diff(beyond[:2], axis=1), np.diff(beyond[:, :3], axis=0) / 2]
    np.testing.assert_allclose(grid.grad.asnumpy()[0], slopes)
    places = [*grid.asnumpy()[0], np.ones((2, 3))]
    expected = [(slope * place).sum() for slope in slopes for place in places]
    np.testing.assert_allclose(theta.grad.asnumpy()[0], expected)
    for array in found:
        np.testing.assert_array_equal(array.asnumpy()[0, 0], image)


def test_labels_of_ctc_loss_that_cannot_be():
    logits = np.zeros((3, 2, 4), np.float32)
    logits[:, 0, 2] = -np.inf  # a class that is masked, of the first label
    x = nd.array(logits)
    x.attach_grad()
    with autograd.record():
        loss = nd.CTCLoss(x, nd.array([[2, 1], [3, 1]]), blank_label="first")
    loss.backward()
    np.testing.assert_allclose(loss.asnumpy(), [np.inf, 2.5494452], rtol=1e-6)
    third = 1 / 3
    np.testing.assert_allclose(
        x.grad.asnumpy()[0], [[third, third, 0, third], [0.05, 0.25, 0.25, -0.55]], atol=1e-6
    )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("how", [{}, {"global_pool": True}, {"pooling_convention": "same"}])
def test_means_of_integers_hold_their_sums(dtype, how):
    x = np.full((1, 1, 20, 20), 100).astype(dtype)
    x[..., ::2] = 60
    given = {"kernel": (20, 20), "pool_type": "avg", **how}
    for name in ("Pooling", "Pooling_v1"):
        if name == "Pooling_v1" and "pooling_convention" in how:
            continue
        found = nd.op.__getattr__(name)(nd.array(x, dtype=dtype), **given)
        assert found.asnumpy().dtype == dtype
        assert (found.asnumpy()[0, 0, :, ::2] >= 79).all()
        assert found[0, 0, 0, 0].asscalar() == 80


def test_sampled_pixels_are_found_without_divisions():
    loop = sampled(Buffer((2, 3, 5, 6)), Buffer((2, 2, 4, 7))).loop()
    assert "/" not in loop and "%" not in loop


def test_classes_along_axis_1_have_the_normalization_of_that_axis():
    settings = {"multi_output": True, "preserve_shape": True, "normalization": "batch"}
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("d"), name="s", **settings)
    executor = net.simple_bind(mx.cpu(), d=(2, 2, 3, 3))
    executor.forward(is_train=True)
    executor.backward()
    expected = np.full((2, 2, 3, 3), 0.5 / 18)  # of 2 samples with 9 places each, as in MXNet
    expected[:, 0] *= -1
    np.testing.assert_allclose(executor.grad_dict["d"].asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(("normalization", "divisor"), [("null", 1), ("batch", 6), ("valid", 5)])
def test_normalization_counts_all_labels_that_are_given(normalization, divisor):
    settings = {"normalization": normalization, "ignore_label": 1, "name": "s"}
    net = mx.sym.SoftmaxOutput(mx.sym.Variable("d"), **settings)
    executor = net.simple_bind(mx.cpu(), d=(2, 3, 2))
    executor.arg_dict["s_label"][:] = mx.nd.array([[0, 2, 0], [0, 1, 2]])  # as it is inferred
    executor.forward(is_train=True)
    executor.backward()
    expected = np.full((2, 6), 1 / 6)  # classes are joined: of the labels, two name one
    expected[0, 0] -= 1
    expected[1, 2] -= 1
    found = executor.grad_dict["d"].asnumpy().reshape(2, 6)
    np.testing.assert_allclose(found, expected / divisor, rtol=1e-5)  # as in MXNet


@pytest.mark.parametrize("name", ["BilinearSampler", "SpatialTransformer"])
def test_threads_share_the_channels_of_what_sampled_data_receive(name):
    is_sampler = name == "BilinearSampler"
    settings = {"target_shape": (4, 7), "transform_type": "affine", "sampler_type": "bilinear"}
    op = registry.find(name).parse({} if is_sampler else settings)
    inputs = Buffer((2, 3, 5, 6)), Buffer((2, 2, 4, 7) if is_sampler else (2, 6))
    out = Buffer((2, 3, 4, 7))
    found = op.backward([out], inputs, [out])[0]
    added = [n.shape for n in postorder([found]) if isinstance(n, Scatter)]
    assert added == [(2 * 5 * 6, 3)] * 4  # elements of one row never meet
