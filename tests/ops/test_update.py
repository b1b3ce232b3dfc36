"""Optimizer updates: what MXNet 1.9.1 gives for the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.dtype import float16, float32
from gnomon.expr.oracle import evaluate
from gnomon.ops import find
from gnomon.ops.testing import leaf

WEIGHT, GRAD, STATE = np.array([1.0, -2, 0.5]), np.array([10.0, -3, 0.2]), np.array([0.3, 0.4, 0.5])
SETTINGS = {"lr": 0.1, "wd": 0.5, "rescale_grad": 0.5}

# name, further parameters, clip_gradient, new weight, new states
RECORDED = [
    ("sgd_update", {}, -1, [0.45, -1.75, 0.465], []),
    ("sgd_update", {}, 2, [0.75, -1.75, 0.465], []),
    ("sgd_update", {}, 0, [0.95, -1.9, 0.475], []),
    ("sgd_mom_update", {"momentum": 0.9}, -1, [0.72, -1.39, 0.915], [[-0.28, 0.61, 0.415]]),
    ("sgd_mom_update", {"momentum": 0.9}, 2, [1.02, -1.39, 0.915], [[0.02, 0.61, 0.415]]),
    ("nag_mom_update", {"momentum": 0.9}, -1, [0.198, -1.201, 0.8385],
     [[-0.2399, 0.57005, 0.398075]]),
    ("nag_mom_update", {"momentum": 0.9}, 2, [0.768, -1.201, 0.8385],
     [[0.0316, 0.57005, 0.398075]]),
    ("adam_update", {}, -1, [0.8572453, -2.0172668, 0.4313847],
     [[0.82, 0.11, 0.485], [0.3299496, 0.40585, 0.4996225]]),
    ("adam_update", {}, 2, [0.9147144, -2.0251851, 0.4313847],
     [[0.47, 0.16, 0.485], [0.3037, 0.4036, 0.4996225]]),
    ("signsgd_update", {}, -1, [0.85, -1.8, 0.375], []),
    ("rmsprop_update", {}, -1, [0.5897693, -1.6995791, 0.4495409], [[1.7975, 0.6925, 0.481125]]),
    ("rmsprop_update", {}, 2, [0.7128167, -1.7373872, 0.4495409], [[0.485, 0.58, 0.481125]]),
    ("rmsprop_update", {"clip_weights": 0.7}, -1, [0.5897693, -0.7, 0.4495409],
     [[1.7975, 0.6925, 0.481125]]),
    ("signum_update", {"momentum": 0.9, "wd_lh": 0.01}, 2, [1.099, -1.898, 0.5995],
     [[0.02, 0.61, 0.415]]),
    ("ftrl_update", {}, 2, [0.41455474, -0.701992512, -0.0314498],
     [[-12.959215, 18.80853, 0.5648196], [4.3, 2.65, 0.51]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params", "clip", "weight", "states"), RECORDED)
def test_against_recorded_numbers(name, params, clip, weight, states):
    op = find(name)(clip_gradient=clip, **SETTINGS, **params)
    inputs, aux = [leaf(WEIGHT), leaf(GRAD)], [leaf(STATE) for _ in op.auxiliary()]
    (output,) = op.apply([*inputs, *aux])
    np.testing.assert_allclose(evaluate(output), weight, 2e-6)
    updates = op.updates(inputs, aux, [output])
    assert list(updates) == list(range(len(states)))
    for k, state in enumerate(states):
        np.testing.assert_allclose(evaluate(updates[k]), state, 2e-6)
    assert op.backward([output], inputs, [output]) == (None, None)


def test_a_half_float_weight_follows_its_float32_copy():
    half = np.array([1, 2], np.float16)
    copy = np.array([1.0001, 2.0001], np.float32)
    op = find("mp_sgd_mom_update")(lr=0.1, momentum=0.9)
    inputs, aux = [leaf(half), leaf(half)], [leaf(np.array([0.1, 0.2], np.float32)), leaf(copy)]
    (output,) = op.apply([*inputs, *aux])
    updates = op.updates(inputs, aux, [output])
    np.testing.assert_allclose(evaluate(updates[0]), [-0.01, -0.02], 1e-5)
    np.testing.assert_allclose(evaluate(updates[1]), [0.9901, 1.9801], 1e-6)
    np.testing.assert_array_equal(evaluate(output), np.array([0.9901, 1.9801], np.float16))
    assert op.infer_type([float16, None])[2] == [float32, float32]


def test_arrays_are_reset():
    arrays = [nd.ones((2, 3)), nd.arange(4), nd.empty((0, 2)), nd.ones(3, dtype="float16")]
    nd.reset_arrays(*arrays, num_arrays=4)
    for x in arrays:
        np.testing.assert_array_equal(x.asnumpy(), np.zeros(x.shape))


def test_numbers_for_each_weight_are_counted():
    arrays = [nd.ones(2) for _ in range(4)]
    with pytest.raises(mx.MXNetError, match="multi_sgd_update: argument 'wds': expected 2 numbers"):
        nd.multi_sgd_update(*arrays, lrs=(0.1, 0.2), wds=(0.1,), num_weights=2)
    with pytest.raises(mx.MXNetError, match="multi_sgd_update: argument 'inputs': expected 2"):
        nd.multi_sgd_update(*arrays, lrs=(0.1,), wds=(0.1,), num_weights=1)
