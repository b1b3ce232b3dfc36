"""Operators of neural networks: gradients by finite differences, inference, edges."""

from __future__ import annotations

import numpy as np
import pytest
from ops.records import record

import gnomon as mx
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.dtype import float16, float32
from gnomon.expr.oracle import evaluate
from gnomon.ops import find
from gnomon.ops.derive import Needs
from gnomon.ops.testing import (
    FixedRandom,
    backward,
    check,
    check_gradient,
    check_values,
    forward,
    leaf,
)

F = float32


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def act(kind):
    return record("Activation", (7,), act_type=kind)


STATES = (np.array([0.1, -0.2, 0.3]), np.array([0.5, 1.0, 2.0]))
LABELS = np.array([1.0, 0, 3])

RECORDS = [
    record("FullyConnected", (5, 3), (4, 3), (4,), num_hidden=4,
           reference=lambda x, w, b: x @ w.T + b),
    record("FullyConnected", (2, 3, 2), (4, 6), num_hidden=4, no_bias=True,
           reference=lambda x, w: x.reshape(2, 6) @ w.T),
    record("FullyConnected", (2, 3, 2), (4, 2), (4,), num_hidden=4, flatten=False,
           reference=lambda x, w, b: x @ w.T + b),
    record("FullyConnected", (0, 3), (4, 3), (4,), num_hidden=4),
    *map(act, ("relu", "sigmoid", "softrelu", "softsign", "tanh")),
    *(record("LeakyReLU", (7,), act_type=kind) for kind in ("elu", "gelu", "leaky", "selu")),
    record("LeakyReLU", (2, 3, 2), (3,), act_type="prelu"),
    record("LeakyReLU", (5, 3), act_type="rrelu"),
    record("LeakyReLU", (5, 3), act_type="rrelu", train=True),
    record("Dropout", (5, 7), p=0.3, reference=lambda x: x),
    record("Dropout", (5, 7), p=0.3, train=True),
    record("Dropout", (5, 7), p=0.3, axes=(0,), mode="always"),
    record("Dropout", (5, 7), p=1, train=True, reference=np.zeros_like),
    record("softmax", (2, 5), reference=lambda x: softmax(x, 1)),
    record("softmax", (2, 3, 2), axis=1, temperature=2.5,
           reference=lambda x: softmax(x / 2.5, 1)),
    record("softmax", (2, 5), np.array([3, 5], np.int32), use_length=True),
    record("softmin", (2, 5), reference=lambda x: softmax(-x, 1)),
    record("log_softmax", (2, 5), reference=lambda x: np.log(softmax(x, 1))),
    record("log_softmax", (2, 5), temperature=0.5, axis=0),
    record("SoftmaxActivation", (2, 3, 2), reference=lambda x: softmax(x, -1)),
    record("SoftmaxActivation", (5,), reference=lambda x: softmax(x, 0)),
    record("SoftmaxActivation", (2, 3, 2), mode="channel", reference=lambda x: softmax(x, 1)),
    record("softmax_cross_entropy", (3, 4), LABELS, differentiable=(0,),
           reference=lambda x, y: -np.log(softmax(x, 1))[range(3), y.astype(int)].sum()
           .reshape(1)),
    record("SoftmaxOutput", (3, 4), LABELS, reference=lambda x, y: softmax(x, 1),
           differentiable=()),
    record("SoftmaxOutput", (2, 3, 4), (2, 4), reference=lambda x, y: softmax(x, 1),
           multi_output=True, differentiable=()),
    record("LinearRegressionOutput", (3, 4), (3, 4), reference=lambda x, y: x, differentiable=()),
    record("BatchNorm", (4, 3), (3,), (3,), *STATES, fix_gamma=False, train=True,
           differentiable=(0, 1, 2)),
    record("BatchNorm", (2, 3, 2, 2), (3,), (3,), *STATES, train=True, differentiable=(0, 2)),
    record("BatchNorm", (2, 2, 3), (3,), (3,), *STATES, axis=-1, fix_gamma=False,
           differentiable=(0, 1, 2)),
    record("BatchNorm", (2, 3), (3,), (3,), *STATES, use_global_stats=True, fix_gamma=False,
           train=True, differentiable=(0, 1, 2)),
    record("LayerNorm", (2, 5), (5,), (5,)),
    record("LayerNorm", (2, 3, 2), (3,), (3,), axis=1, output_mean_var=True),
    record("InstanceNorm", (2, 3, 4), (3,), (3,)),
    record("GroupNorm", (2, 4, 3), (2,), (2,), num_groups=2),
    *(record("L2Normalization", (2, 3, 2), mode=m) for m in ("instance", "channel", "spatial")),
    record("LRN", (2, 5, 2), nsize=3),
    record("LRN", (1, 3, 1, 1), nsize=5, alpha=0.5),
    record("Convolution", (2, 3, 5, 4), (4, 3, 3, 2), (4,), kernel=(3, 2), num_filter=4),
    record("Convolution", (1, 4, 6), (4, 2, 3), kernel=(3,), num_filter=4, num_group=2,
           no_bias=True, stride=(2,), pad=(1,)),
    record("Convolution", (1, 2, 5, 5), (3, 2, 2, 2), (3,), kernel=(2, 2), num_filter=3,
           dilate=(2, 2), pad=(1, 0)),
    record("Convolution", (1, 4, 4, 2), (3, 2, 2, 2), kernel=(2, 2), num_filter=3, no_bias=True,
           layout="NHWC"),
    record("Convolution", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,), kernel=(2, 2, 2), num_filter=2),
    record("Deconvolution", (2, 3, 3, 2), (3, 2, 3, 2), kernel=(3, 2), num_filter=2,
           stride=(2, 1), pad=(1, 0), adj=(1, 0)),
    record("Deconvolution", (1, 4, 3), (4, 1, 3), (2,), kernel=(3,), num_filter=2, num_group=2,
           no_bias=False, stride=(2,), target_shape=(5,)),
    record("Deconvolution", (1, 2, 3), (2, 1, 3), kernel=(3,), num_filter=1, pad=(1,),
           target_shape=(0,)),
    record("UpSampling", (1, 2, 2, 3), (2, 1, 4, 4), scale=2, sample_type="bilinear",
           num_filter=2, num_args=2),
    record("SVMOutput", (3, 4), LABELS, reference=lambda x, y: x, differentiable=()),
    record("Pooling", (2, 2, 5, 4), kernel=(2, 2), stride=(2, 2)),
    record("Pooling", (2, 2, 5, 4), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg"),
    record("Pooling", (1, 2, 5), kernel=(3,), stride=(2,), pad=(1,), pool_type="avg",
           count_include_pad=False),
    record("Pooling", (1, 2, 5), kernel=(2,), pool_type="sum"),
    record("Pooling", (1, 2, 3, 4), kernel=(1, 2), pad=(2, 3), pool_type="sum"),
    record("Pooling", (1, 2, 5), kernel=(2,), pool_type="lp", p_value=2, low=0.5),
    record("Pooling", [[[1.0, -2, 3, -4]]], kernel=(4,), pool_type="lp", p_value=1,
           reference=lambda x: x.sum(2, keepdims=True)),
    record("Pooling", [[[1.0, -2, 3, -4]]], kernel=(4,), pool_type="lp", p_value=3,
           reference=lambda x: np.cbrt((x**3).sum(2, keepdims=True))),
    record("Pooling", (1, 2, 6, 5), kernel=(3, 3), stride=(2, 2), pooling_convention="full"),
    record("Pooling", (2, 3, 4, 5), global_pool=True, pool_type="avg",
           reference=lambda x: x.mean((2, 3), keepdims=True)),
    record("Pooling", (2, 3, 4, 5), global_pool=True,
           reference=lambda x: x.max((2, 3), keepdims=True)),
    record("Pooling", (1, 5, 4, 2), kernel=(2, 2), layout="NHWC"),
    record("UpSampling", (1, 2, 2, 3), scale=2, sample_type="nearest", num_args=1,
           reference=lambda x: x.repeat(2, 2).repeat(2, 3)),
    record("UpSampling", (1, 2, 2, 2), (1, 1, 4, 4), scale=2, sample_type="nearest", num_args=2),
    record("UpSampling", (1, 2, 2, 2), (1, 2, 1, 1), scale=2, sample_type="nearest", num_args=2,
           multi_input_mode="sum"),
    record("Embedding", np.array([[1, 0], [2, 9]], np.int32), (3, 4), input_dim=3, output_dim=4,
           reference=lambda i, w: w[np.minimum(i, 2)]),
    record("take", (3, 4), np.array([[2, -1, 7]]), reference=lambda a, i: a[[[2, 0, 2]]]),
    record("take", (3, 4), np.array([1, -1]), axis=1, mode="wrap",
           reference=lambda a, i: a[:, [1, 3]]),
    record("take", (2, 3, 4), np.array([[1], [0]]), axis=1, reference=lambda a, i: a[:, i]),
    record("batch_take", (2, 3), np.array([2, 0]), reference=lambda a, i: a[[0, 1], i]),
    record("pick", (2, 3), np.array([2, 0]), reference=lambda a, i: a[[0, 1], i]),
    record("pick", (2, 3), np.array([5, -1, 1]), axis=0, keepdims=True,
           reference=lambda a, i: a[[1, 0, 1], range(3)][None]),
    record("pick", (2, 3), np.array([-1, 4]), mode="wrap",
           reference=lambda a, i: a[[0, 1], [2, 1]]),
    record("one_hot", np.array([1, 0, 9]), depth=3, on_value=2, off_value=-1, dtype="float64",
           reference=lambda i: np.where(i[:, None] == np.arange(3), 2.0, -1.0)),
    record("where", np.array([[1.0, 0], [0, np.nan]]), (2, 2), (2, 2), differentiable=(1, 2),
           reference=np.where),
    record("where", np.array([1, 0]), (2, 3), (2, 3),
           reference=lambda c, x, y: np.where(c[:, None], x, y)),
    record("MakeLoss", (3,), reference=lambda x: x, differentiable=()),
]  # fmt: skip


@pytest.mark.parametrize("example", RECORDS, ids=str)
def test_gradients(example):
    check(
        example.op(),
        example.arrays(),
        example.reference,
        differentiable=example.differentiable,
        train=example.train,
    )


def test_one_slope_may_serve_all_channels():
    op, x = find("LeakyReLU")(act_type="prelu"), np.linspace(-1, 2, 12).reshape(2, 3, 2)
    assert op.infer_shape([(2, 3, 2), (1,)])[0] == [(2, 3, 2), (1,)]
    check_values(op, [x, np.array([0.1])], np.where(x > 0, x, 0.1 * x))
    check_gradient(op, [x, np.array([0.1])])


def test_softmax_output_gives_the_gradient_of_its_cross_entropy():
    x, label = np.random.default_rng(0).normal(size=(3, 4)), LABELS
    head = np.full((3, 4), 7.0)
    for params, factor in (({}, 1), ({"grad_scale": 2}, 2), ({"normalization": "batch"}, 1 / 3)):
        grad, none = backward(find("SoftmaxOutput")(**params), [x, label], [head])
        np.testing.assert_allclose(grad, (softmax(x, 1) - np.eye(4)[[1, 0, 3]]) * factor)
        assert none is None
    ignoring = find("SoftmaxOutput")(use_ignore=True, ignore_label=0, normalization="valid")
    grad, _ = backward(ignoring, [x, label], [head])
    np.testing.assert_allclose(grad[1], 0)
    np.testing.assert_allclose(grad[0], (softmax(x, 1) - np.eye(4)[[1, 0, 3]])[0] / 2)


def test_the_margin_loss_gives_what_mxnet_gives():
    x, label = np.array([[0.5, -0.2, 2], [1.5, 0.3, -0.7]]), np.array([0.0, 2])
    op = find("SVMOutput")(regularization_coefficient=0.5)
    grad, _ = backward(op, [x, label], [np.ones_like(x)])
    np.testing.assert_allclose(grad, [[-0.5, 0.8, 3], [2.5, 1.3, -1.7]])
    linear = find("SVMOutput")(regularization_coefficient=0.5, use_linear=True)
    grad, _ = backward(linear, [x, label], [np.ones_like(x)])
    np.testing.assert_allclose(grad, [[-0.5, 0.5, 0.5], [0.5, 0.5, -0.5]])


def test_deconvolution_gives_what_mxnet_gives():
    x = np.arange(8.0).reshape(1, 2, 2, 2)
    w = np.arange(54.0).reshape(2, 3, 3, 3)
    for more, size, total, first in (
        ({}, 4, 25866, [108, 247, 257, 147]),
        ({"stride": (2, 2)}, 5, 25866, [108, 112, 251, 141]),
        ({"stride": (2, 2), "pad": (1, 1)}, 3, 11328, [124, 281, 159, 306]),
        ({"stride": (2, 2), "pad": (1, 1), "adj": (1, 1)}, 4, 19485, [124, 281, 159, 165]),
    ):
        (y,) = forward(find("Deconvolution")(kernel=(3, 3), num_filter=3, **more), [x, w])
        assert (y.shape, y.sum()) == ((1, 3, size, size), total)
        np.testing.assert_array_equal(y.ravel()[:4], first)


@pytest.mark.parametrize(("how", "words"), [
    ({"stride": (2, 2), "adj": (2, 2)}, "'adj': expected numbers below stride"),
    ({"adj": (1, 0)}, "'adj': expected numbers below stride"),
    ({"target_shape": (4, 4)}, "'data': expected sizes from which target_shape"),
    ({"target_shape": (4,)}, "'target_shape': expected 2 numbers"),
])  # fmt: skip
def test_outputs_of_deconvolution_with_more_windows_than_inputs_are_refused(how, words):
    x, w = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 3, 3))
    with pytest.raises(GnomonError, match=words):
        mx.nd.Deconvolution(x, w, kernel=(3, 3), num_filter=1, **how)


def test_dropout_keeps_the_mean_and_one_fate_along_shared_axes():
    x = np.ones((200, 50))
    y, mask = forward(find("Dropout")(p=0.25), [x], train=True)
    assert set(np.unique(y).round(6)) == {0, 1.333333}
    assert abs(y.mean() - 1) < 0.02
    np.testing.assert_array_equal(y, mask)
    y, mask = forward(find("Dropout")(p=0.25, axes=(0,)), [x], train=True)
    assert mask.shape == (1, 50)
    assert (y == y[:1]).all()


def test_batch_norm_moves_its_averages_in_backward_passes_of_training_only():
    op = find("BatchNorm")(momentum=0.9)
    x = np.random.default_rng(0).normal(2, 3, (50, 3))
    inputs = [leaf(a) for a in (x, np.ones(3), np.zeros(3), *STATES)]
    outputs = [leaf(y) for y in forward(op, [x, np.ones(3), np.zeros(3), *STATES], train=True)]
    new = op.updates_backward(inputs[:3], inputs[3:], outputs)
    from_oracle = {k: evaluate(e) for k, e in new.items()}
    np.testing.assert_allclose(from_oracle[0], STATES[0] * 0.9 + x.mean(0) * 0.1)
    np.testing.assert_allclose(from_oracle[1], STATES[1] * 0.9 + x.var(0) * 0.1)
    assert not op.updates_backward(inputs[:3], inputs[3:], outputs, train=False)
    assert not op.updates(inputs[:3], inputs[3:], outputs)


def test_statistics_of_half_floats_are_float32():
    op = find("BatchNorm")()
    assert op.infer_type([float16, None, None]) == ([float16, F, F], [float16, F, F], [F, F])


@pytest.mark.parametrize(
    ("name", "params", "ins", "outs", "found"),
    [
        ("FullyConnected", {"num_hidden": 4}, [(0, 3), None, None], [(5, 4)],
         ([(5, 3), (4, 3), (4,)], [(5, 4)])),
        ("FullyConnected", {"num_hidden": 4, "flatten": False}, [(2, 0), (0, 3), None], None,
         ([(2, 3), (4, 3), (4,)], [(2, 4)])),
        ("Convolution", {"kernel": (3, 3), "num_filter": 8, "num_group": 2},
         [(0, 4, 28, 28), None, None], None,
         ([(0, 4, 28, 28), (8, 2, 3, 3), (8,)], [(0, 8, 26, 26)])),
        ("Pooling", {"kernel": (2, 2), "stride": (2, 2)}, [(0, 4, 7, 8)], [(3, 0, 0, 0)],
         ([(3, 4, 7, 8)], [(3, 4, 3, 4)])),
        ("SoftmaxOutput", {}, [(5, 3), None], None, ([(5, 3), (5,)], [(5, 3)])),
        ("SoftmaxOutput", {"multi_output": 1}, [(5, 3, 7), None], None,
         ([(5, 3, 7), (5, 7)], [(5, 3, 7)])),
        ("SoftmaxOutput", {"multi_output": 1}, [(5, 3, 7, 2), None], None,
         ([(5, 3, 7, 2), (5, 14)], [(5, 3, 7, 2)])),
        ("SoftmaxOutput", {"multi_output": 1}, [(5, 3), None], None,
         ([(5, 3), (5, 1)], [(5, 3)])),
        ("LinearRegressionOutput", {}, [(5, 1), None], None, ([(5, 1), (5,)], [(5, 1)])),
    ],
)  # fmt: skip
def test_shapes_in_both_directions(name, params, ins, outs, found):
    assert find(name)(**params).infer_shape(ins, outs)[:2] == found


@pytest.mark.parametrize(
    ("name", "params", "shapes", "says"),
    [
        ("FullyConnected", {"num_hidden": 4}, [(2, 3), (4, 5), None],
         r"'weight': expected shape \(4, 3\), got \(4, 5\)"),
        ("Convolution", {"kernel": (3, 3), "num_filter": 4}, [(1, 3, 2, 9), None, None],
         "'data': expected sizes of at least the window's"),
        ("Convolution", {"kernel": (3, 3), "num_filter": 4}, [(1, 3, 9), None, None], "4 axes"),
        ("Convolution", {"kernel": 3, "num_filter": 4, "num_group": 2}, [(1, 3, 9), None, None],
         "channels in 2 groups"),
        ("Pooling", {"kernel": (3, 3)}, [(1, 1, 2, 2)], "at least the window's"),
        ("SoftmaxOutput", {}, [(5, 3), (4,)], r"'label': expected a label .*shape \(4,\)"),
        ("LinearRegressionOutput", {}, [(5, 3), (5,)], "as many elements as data"),
        ("BatchNorm", {}, [(5, 3), (4,), None], r"'gamma': expected shape \(3,\), got \(4,\)"),
        ("GroupNorm", {"num_groups": 2}, [(5, 3, 2), None, None], "channels in 2 groups"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_named(name, params, shapes, says):
    with pytest.raises(ShapeError, match=f"{name}: argument .*{says}|{name}: argument {says}"):
        find(name)(**params).infer_shape(shapes)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("FullyConnected", {}),
        ("FullyConnected", {"num_hidden": 0}),
        ("Convolution", {"kernel": (3, 3), "num_filter": 4, "stride": (1,)}),
        ("Convolution", {"kernel": (3, 3), "num_filter": 4, "layout": "NCW"}),
        ("Convolution", {"kernel": (3, 3), "num_filter": 3, "num_group": 2}),
        ("Pooling", {}),
        ("Pooling", {"kernel": (2, 2), "pad": (2, 0)}),
        ("Pooling", {"kernel": (2, 2), "pool_type": "lp"}),
        ("Dropout", {"p": 1.5}),
        ("Activation", {"act_type": "rely"}),
        ("LeakyReLU", {"lower_bound": 0.5, "upper_bound": 0.1}),
        ("softmax", {"temperature": 0}),
    ],
)
def test_parameters_that_do_not_fit_are_refused(name, params):
    with pytest.raises(ParamError, match=f"{name}: argument"):
        find(name)(**params)


def test_what_gradients_read_lets_the_rest_be_freed():
    dense = find("FullyConnected")(num_hidden=4)
    assert dense.backward_needs([(2, 3), (4, 3), (4,)], [F] * 3) == Needs((0,), (0, 1), ())
    pool = find("Pooling")(kernel=(2, 2), stride=(2, 2))
    assert pool.backward_needs([(1, 1, 4, 4)], [F]) == Needs((0,), (0,), (0,))
    assert find("Activation")(act_type="tanh").backward_needs([(3,)], [F]) == Needs((0,), (), (0,))
    assert find("Activation")(act_type="relu").backward_needs([(3,)], [F]) == Needs((0,), (), (0,))
    assert find("Dropout")().backward_needs([(3,)], [F]) == Needs((0,), (), (1,))
    softmax_output = find("SoftmaxOutput")()
    assert softmax_output.backward_needs([(3, 4), (3,)], [F] * 2) == Needs((), (1,), (0,))
    assert find("elemwise_add")().backward_needs([(3,)] * 2, [F] * 2) == Needs((0,), (), ())


def test_draws_lie_where_they_should():
    (y,) = find("_random_uniform")(low=2, high=3, shape=(1000,)).apply([], random=FixedRandom())
    values = evaluate(y)
    assert values.dtype == np.float32
    assert (values >= 2).all()
    assert (values < 3).all()
    (y,) = find("_random_normal")(loc=5, scale=0.1, shape=(1000,)).apply([], random=FixedRandom())
    assert abs(evaluate(y).mean() - 5) < 0.02
    (y,) = find("_random_randint")(low=-2, high=3, shape=(1000,)).apply([], random=FixedRandom())
    assert set(evaluate(y)) == {-2, -1, 0, 1, 2}
    with pytest.raises(ParamError, match="_random_uniform: argument 'high'"):
        find("_random_uniform")(low=2, high=1)


def test_groups_of_channels_share_their_gamma_and_beta():
    # the numbers are those of MXNet
    data = mx.sym.Variable("d")
    shapes, _, _ = mx.sym.GroupNorm(data, num_groups=2, name="g").infer_shape(d=(1, 4, 2))
    assert shapes == [(1, 4, 2), (2,), (2,)]
    x = mx.nd.array((np.arange(16) ** 1.5).reshape(2, 4, 2))
    gamma, beta = mx.nd.array([1, 2]), mx.nd.array([0, 10])
    for array in (x, gamma, beta):
        array.attach_grad()
    with mx.autograd.record():
        y = mx.nd.GroupNorm(x, gamma, beta, num_groups=2)
    y.backward(mx.nd.array(np.cos(np.arange(16)).reshape(2, 4, 2)))
    first = [-1.141008, -0.635274, 0.289422, 1.48686, 7.401631, 9.02216, 10.81403, 12.76218]
    slopes = [0.044926, 0.009169, -0.114839, 0.060744, -0.149696, 0.10676, 0.206946, -0.164011]
    np.testing.assert_allclose(y[0].asnumpy().ravel(), first, rtol=1e-5)
    np.testing.assert_allclose(x.grad[0].asnumpy().ravel(), slopes, atol=1e-5)
    np.testing.assert_allclose(gamma.grad.asnumpy(), [-2.8053887, -0.369144], atol=1e-5)
    np.testing.assert_allclose(beta.grad.asnumpy(), [-1.7571132, 2.4724412], atol=1e-5)


@pytest.mark.parametrize("name", ["LayerNorm", "GroupNorm", "InstanceNorm"])
def test_gradients_of_norms_in_half_floats_far_from_0(name):
    """Means that are rounded to 16 bits are off by as much as the data differ."""
    rng, found = np.random.default_rng(0), {}
    values, heads = rng.normal(500, 1, (4, 8, 32)).astype(np.float16), rng.normal(size=(4, 8, 32))
    for dtype in ("float16", "float64"):
        count = {"LayerNorm": 32, "GroupNorm": 2, "InstanceNorm": 8}[name]
        data = [mx.nd.array(x, dtype=dtype) for x in (values, np.ones(count), np.zeros(count))]
        for x in data:
            x.attach_grad()
        options = {"num_groups": 2} if name == "GroupNorm" else {}
        with mx.autograd.record():
            y = getattr(mx.nd, name)(*data, **options)
        y.backward(mx.nd.array(heads.astype(np.float16), dtype=dtype))
        found[dtype] = [x.grad.asnumpy().astype(np.float64) for x in data]
    for rough, exact in zip(*found.values(), strict=True):
        np.testing.assert_allclose(rough, exact, rtol=2e-3, atol=2e-3 * np.abs(exact).max())
