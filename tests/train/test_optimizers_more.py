"""Optimizers whose formula the real library gets wrong, draws from chance, or applies apart."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import optimizer as opt
from gnomon.base import ParamError

EVERY = sorted({cls for cls in dir(opt) if cls[0].isupper()} - {"Optimizer", "Updater"})
RNG = np.random.default_rng(7)
WEIGHT, GRADS = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3, 4))


def trace(kind, weight=WEIGHT, grads=GRADS, dtype="float32", names=None, **settings):
    """The weight after each update."""
    update = opt.get_updater(opt.create(kind, param_idx2name=names or {}, **settings))
    array, seen = mx.nd.array(weight, dtype=dtype), []
    for grad in grads:
        update(0, mx.nd.array(grad, dtype=dtype), array)
        seen.append(array.asnumpy().astype(np.float64))
    return seen


def test_every_optimizer_is_found():
    assert {"AdaDelta", "DCASGD", "LAMB", "LARS", "LBSGD", "SGLD", "AdamW"} < set(EVERY)
    assert opt.contrib.GroupAdaGrad is opt.GroupAdaGrad
    with pytest.raises(AttributeError, match="did you mean 'Adamax'"):
        _ = opt.Adamaxx


@pytest.mark.parametrize("kind", [k for k in EVERY if k not in ("SGLD", "AdamW")])
def test_half_floats_follow_their_master_copy(kind):
    wide = trace(kind, grads=GRADS.astype(np.float16), weight=WEIGHT.astype(np.float16))
    half = trace(
        kind, dtype="float16", multi_precision=True, grads=GRADS, weight=WEIGHT.astype(np.float16)
    )
    np.testing.assert_allclose(half[-1], wide[-1], 2e-3, 1e-3)


@pytest.mark.parametrize("kind", [k for k in EVERY if k not in ("SGLD", "Nadam")])
def test_several_weights_at_once_are_as_one_by_one(kind):
    names = {0: "a_weight", 1: "a_bias"}
    results = []
    for together in (True, False):
        update = opt.get_updater(opt.create(kind, param_idx2name=names))
        arrays = [mx.nd.array(WEIGHT), mx.nd.array(WEIGHT[::-1])]
        for grad in GRADS:
            grads = [mx.nd.array(grad), mx.nd.array(grad * 2)]
            for part in ([0, 1],) if together else ([0], [1]):
                update(part, [grads[k] for k in part], [arrays[k] for k in part])
        results.append([x.asnumpy() for x in arrays])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kind", ["ftrl", "ftml"])
@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_nothing_moves_at_a_rate_of_0(kind, stype):  # in MXNet all is NaN from there on
    update = opt.get_updater(opt.create(kind, learning_rate=0.5))
    weight, same = mx.nd.array(WEIGHT), mx.nd.array(WEIGHT)
    for rate, grad in zip((0.5, 0, 0.5), GRADS, strict=False):
        update.optimizer.set_learning_rate(rate)
        before = [x.asnumpy() for x in (weight, *(update.states.get(0) or ()))]
        update(0, mx.nd.array(grad).tostype(stype), weight)
        if rate == 0:
            for x, was in zip((weight, *update.states[0]), before, strict=True):
                np.testing.assert_array_equal(x.asnumpy(), was)
    always = opt.get_updater(opt.create(kind, learning_rate=0.5))
    if kind == "ftrl":  # which does not count updates
        for grad in GRADS[::2]:
            always(0, mx.nd.array(grad), same)
        np.testing.assert_allclose(weight.asnumpy(), same.asnumpy(), 1e-6)
    assert np.isfinite(weight.asnumpy()).all()


def test_ftrl_leaves_rows_of_sparse_weights_alone_and_none_of_dense_ones():
    grad = mx.nd.sparse.row_sparse_array(([[3.0]], [1]), shape=(2, 1))
    after = {}
    for stype in ("default", "row_sparse"):
        after[stype] = mx.nd.array([[0.5], [0.5]]).tostype(stype)
        opt.get_updater(opt.create("ftrl", learning_rate=0.1))(0, grad, after[stype])
    moved = (15 - 3 - 0.01) / (3 + 1) * 0.1  # z = 3 - 3 * 0.5 / 0.1 and n = 9
    np.testing.assert_allclose(after["default"].asnumpy(), [[0], [moved]], 1e-5)  # as in MXNet
    np.testing.assert_allclose(after["row_sparse"].asnumpy(), [[0.5], [moved]], 1e-5)


def test_nan_is_not_hidden_by_ftrl():
    (after,) = trace("ftrl", weight=np.ones(2), grads=[np.array([np.nan, 1])])
    assert np.isnan(after).tolist() == [True, False]


def test_dcasgd_with_momentum():
    got = trace("dcasgd", learning_rate=0.1, momentum=0.9, lamda=0.5, wd=0.1)
    weight, before, momentum = WEIGHT, WEIGHT, 0
    for grad, seen in zip(GRADS, got, strict=True):
        late = 0.5 * grad * grad * (weight - before)
        momentum = 0.9 * momentum - 0.1 * (grad + 0.1 * weight + late)
        before, weight = weight, weight + momentum
        np.testing.assert_allclose(seen, weight, 1e-4, 1e-6)


def test_lars_corrects_the_momentum_of_every_weight():
    schedule = mx.lr_scheduler.FactorScheduler(1, factor=0.5, base_lr=0.1)
    got = trace("lars", learning_rate=0.1, lr_scheduler=schedule, momentum=0.9, eta=0.01)
    weight, momentum, last = WEIGHT, 0, None
    rates = mx.lr_scheduler.FactorScheduler(1, factor=0.5, base_lr=0.1)
    for step, (grad, seen) in enumerate(zip(GRADS, got, strict=True), 1):
        rate = rates(step)
        correction = rate / last if last else 1
        fit = 0.01 * np.linalg.norm(weight) / np.linalg.norm(grad)
        momentum = 0.9 * correction * momentum - rate * fit * grad
        weight, last = weight + momentum, rate
        np.testing.assert_allclose(seen, weight, 1e-4, 1e-6)


@pytest.mark.parametrize(("weight", "grad", "after"), [(0, 1, -0.1), (1, 0, 0.99)])
def test_lars_takes_the_plain_rate_where_a_norm_is_0(weight, grad, after):
    full = np.ones((2, 2))
    (seen,) = trace("lars", weight * full, [grad * full], learning_rate=0.1, wd=0.1)
    np.testing.assert_allclose(seen, after * full, 1e-6)


@pytest.mark.parametrize("corrected", [True, False])
def test_adamw(corrected):
    got = trace("adamw", learning_rate=0.1, wd=0.1, correct_bias=corrected)
    weight, mean, square = WEIGHT, 0, 0
    for step, (grad, seen) in enumerate(zip(GRADS, got, strict=True), 1):
        mean = 0.9 * mean + 0.1 * grad
        square = 0.999 * square + 0.001 * grad * grad
        rate = 0.1 * (np.sqrt(1 - 0.999**step) / (1 - 0.9**step) if corrected else 1)
        weight = weight - rate * mean / (np.sqrt(square) + 1e-6) - 0.1 * 0.1 * weight
        np.testing.assert_allclose(seen, weight, 1e-4, 1e-6)


def test_sgld_walks_by_the_gradient_and_by_noise_of_its_rate():
    mx.random.seed(3)
    (seen,) = trace(
        "sgld", np.ones((200, 200)), [np.full((200, 200), 4.0)], learning_rate=0.04, wd=0.5,
        rescale_grad=0.5, clip_gradient=1.0,
    )  # fmt: skip
    assert abs(seen.mean() - (1 - 0.02 * (1 + 0.5))) < 0.004
    assert abs(seen.std() - 0.2) < 0.003


def test_group_adagrad_keeps_one_number_a_row():
    got = trace("groupadagrad", learning_rate=0.1, clip_gradient=0.5)
    weight, history = WEIGHT, np.zeros((3, 1))
    for grad, seen in zip(np.clip(GRADS, -0.5, 0.5), got, strict=True):
        history = history + (grad * grad).mean(1, keepdims=True)
        weight = weight - 0.1 * grad / np.sqrt(history + 1e-5)
        np.testing.assert_allclose(seen, weight, 1e-5, 1e-6)


def test_group_adagrad_leaves_rows_without_gradient_alone():
    update = opt.get_updater(opt.create("groupadagrad", learning_rate=0.1))
    weight = mx.nd.array(WEIGHT)
    update(0, mx.nd.array(GRADS[0] * [[0], [1], [0]]).tostype("row_sparse"), weight)
    moved = np.abs(weight.asnumpy() - WEIGHT.astype(np.float32)).sum(1) > 0
    assert moved.tolist() == [False, True, False]
    assert update.states[0].shape == (3, 1)


def test_group_adagrad_refuses_decay_and_vectors():
    with pytest.raises(mx.MXNetError, match="no decay"):
        trace("groupadagrad", wd=0.1)
    with pytest.raises(mx.MXNetError, match="two axes"):
        trace("groupadagrad", WEIGHT[0])


class Quartered(opt.SGD):
    def _get_lrs(self, indices):
        return [0.25 * rate for rate in super()._get_lrs(indices)]


class Own(opt.Adam):
    def _get_lr(self, index):
        return 0.25 * (index + 1)

    def _get_wd(self, index):
        return 0.5


class Heavy(opt.NAG):
    def _get_wds(self, indices):
        return [0.5 for _ in indices]


@pytest.mark.parametrize(("kind", "value"), [(Quartered, 0.75), (Own, 0.75), (Heavy, -0.5)])
def test_a_subclass_says_what_rate_and_decay_are(kind, value):
    """The values are MXNet's."""
    one, weight = kind(learning_rate=1.0), mx.nd.ones((2,))
    one.update(0, weight, mx.nd.ones((2,)), one.create_state(0, weight))
    assert weight.asnumpy() == pytest.approx(value, abs=3e-6)
    weights = [mx.nd.ones((2,)), mx.nd.ones((3,))]
    opt.get_updater(kind(learning_rate=1.0))(
        [0, 1], [mx.nd.ones(w.shape) for w in weights], weights
    )
    second = 0.5 if kind is Own else value
    assert weights[0].asnumpy() == pytest.approx(value, abs=3e-6)
    assert weights[1].asnumpy() == pytest.approx(second, abs=3e-6)


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb", "nadam", "sgld"])
@pytest.mark.parametrize("method", ["update", "update_multi_precision"])
def test_lists_of_weights(name, method):
    def updated(together):
        mx.random.seed(1)
        optimizer = mx.optimizer.create(name, learning_rate=0.1)
        weights = [mx.nd.ones(2), mx.nd.ones(3) * 2]
        states = [optimizer.create_state(k, w) for k, w in enumerate(weights)]
        given = [0, 1], weights, [mx.nd.ones(2), mx.nd.ones(3)], states
        for each in [given] if together else zip(*given, strict=True):
            getattr(optimizer, method)(*each)
        return [w.asnumpy().tolist() for w in weights], optimizer.num_update

    assert updated(True) == updated(False)
    optimizer, one = mx.optimizer.create(name), mx.nd.ones(2)
    with pytest.raises(ParamError, match=r"lists of one length.*\[1, 2, 1, 1\]"):
        getattr(optimizer, method)([0], [one, one], [one], [None])
