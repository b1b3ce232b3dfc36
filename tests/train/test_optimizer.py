"""Optimizers: multipliers, counts, schedules, master copies, saved states, refusals."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import optimizer as opt
from gnomon.ndarray.lazy import batch
from gnomon.optimizer import states

NAMES = {0: "a_weight", 1: "a_bias", 2: "bn_gamma", 3: "bn_beta", 4: "other"}


def array(*values, dtype="float32"):
    return mx.nd.array(values, dtype=dtype)


def rates(optimizer):
    return [optimizer._get_lr(i) for i in range(5)], [optimizer._get_wd(i) for i in range(5)]


def test_only_weights_and_gammas_decay():
    sgd = opt.create("sgd", learning_rate=0.5, wd=0.1, param_idx2name=NAMES)
    assert rates(sgd) == ([0.5] * 5, [0.1, 0, 0.1, 0, 0])


def test_gammas_do_not_decay_in_lars():  # as in MXNet
    names = {0: "fc_weight", 1: "bn_gamma", 2: "fc_bias"}
    optimizer = opt.create("lars", param_idx2name=names, wd=0.5)
    assert [optimizer._get_wd(index) for index in names] == [0.5, 0, 0]


def test_multipliers_by_name_index_and_symbol():
    weight = mx.sym.Variable("x_weight", lr_mult=2, wd_mult=0.5)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), weight=weight, num_hidden=3, name="fc")
    sgd = opt.create("SGD", sym=net, param_idx2name={0: "x_weight", 1: "fc_bias"}, wd=1.0)
    assert (sgd._get_lr(0), sgd._get_wd(0)) == (0.02, 0.5)
    sgd.set_lr_mult({"fc_bias": 3.0})
    sgd.set_wd_mult({"x_weight": 0.0})
    assert [sgd._get_lr(0), sgd._get_lr(1), sgd._get_wd(0)] == [0.02, pytest.approx(0.03), 0.0]
    assert sgd._get_lr("fc_bias") == pytest.approx(0.03)


def test_factors_by_their_old_name_are_refused():
    with pytest.raises(DeprecationWarning, match="set_lr_mult"):
        opt.create("sgd").set_lr_scale({0: 2.0})


def test_parameters_of_gluon_multiply_too():
    class Parameter:
        lr_mult, wd_mult = 3.0, 0.5

    sgd = opt.create("sgd", learning_rate=1.0, wd=1.0, param_dict={0: Parameter()})
    assert (sgd._get_lr(0), sgd._get_wd(0)) == (3.0, 0.5)


def test_counts_are_kept_per_index_and_device():
    sgd = opt.create("sgd", begin_num_update=10)
    for index in (0, 0, 1):
        sgd._update_count(index)
    assert sgd.num_update == 12
    sgd._set_current_context(1)
    sgd._update_count(0)
    assert sgd.num_update == 12
    assert sgd._all_index_update_counts == {0: {0: 12, 1: 11}, 1: {0: 11}}


def test_schedules_set_the_rate(caplog):
    schedule = mx.lr_scheduler.FactorScheduler(1, factor=0.5, base_lr=0.3)
    sgd = opt.create("sgd", lr_scheduler=schedule, learning_rate=0.8)
    assert "learning_rate=0.8" in caplog.text
    weight = array(0.0)
    for _ in range(3):
        sgd.update(0, weight, array(1.0), None)
    assert weight.asnumpy()[0] == pytest.approx(-(0.8 + 0.4 + 0.2))
    for kind in (ValueError, UserWarning):  # the second is MXNet's
        with pytest.raises(kind, match="FactorScheduler"):
            sgd.set_learning_rate(1.0)
    free = opt.create("sgd")
    free.set_learning_rate(0.25)
    assert free.learning_rate == 0.25


@pytest.mark.parametrize("kind", ["sgd", "nag", "adam"])
def test_half_precision_weights_have_a_master_copy(kind):
    settings = {"momentum": 0.9} if kind != "adam" else {}
    updater = opt.get_updater(
        opt.create(kind, learning_rate=1e-4, multi_precision=True, **settings)
    )
    half, single = array(1.0, dtype="float16"), array(1.0)
    plain = opt.get_updater(opt.create(kind, learning_rate=1e-4, **settings))
    for _ in range(8):  # each step is far below float16's resolution at 1
        updater(0, array(1.0, dtype="float16"), half)
        plain(0, array(1.0), single)
    assert half.dtype == np.float16
    assert half.asnumpy()[0] == np.float16(single.asnumpy()[0])
    assert half.asnumpy()[0] < 1


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_lazy_updates_of_half_precision_leave_rows_without_gradient_alone(kind, stype):
    settings = {"momentum": 0.9} if kind == "sgd" else {}
    optimizer = opt.create(kind, learning_rate=0.1, wd=0.5, multi_precision=True, **settings)
    updater = opt.get_updater(optimizer)
    weight = mx.nd.ones((4, 2), dtype="float16").tostype(stype)
    for row in (1, 2):
        rows = mx.nd.array([[1, 2]], dtype="float16"), [row]
        updater(0, mx.nd.sparse.row_sparse_array(rows, shape=(4, 2), dtype="float16"), weight)
    first, second = ([0.85, 0.75],) * 2 if kind == "sgd" else ([0.9, 0.9], [0.926, 0.926])
    expected = [[1, 1], first, second, [1, 1]]  # MXNet's in float32; its Adam's in float16, too
    np.testing.assert_allclose(weight.asnumpy(), expected, atol=1e-3)
    master = updater.states[0][kind == "sgd"]
    np.testing.assert_allclose(master.asnumpy(), expected, atol=1e-3)


def test_states_survive_a_save():
    first = opt.get_updater(opt.create("adam", learning_rate=0.1))
    weight = array(1.0, -2.0)
    first(0, array(0.5, 0.5), weight)
    second = opt.get_updater(opt.create("sgd"))
    second.set_states(first.get_states(dump_optimizer=True))
    assert isinstance(second.optimizer, opt.Adam)
    twin = weight.copy()
    first(0, array(-0.1, 0.3), weight)
    second(0, array(-0.1, 0.3), twin)
    assert (weight.asnumpy() == twin.asnumpy()).all()
    assert second.optimizer.num_update == 2


def test_broken_states_change_nothing():
    updater = opt.get_updater(opt.create("adam"))
    updater(0, array(1.0), array(1.0))
    before = updater.states
    for broken in (b"", b"nonsense", updater.get_states()[:-5], b"\x80\x04K\x03."):
        with pytest.raises(ValueError, match="set_states"):
            updater.set_states(broken)
    assert updater.states is before


def test_lists_are_updated_one_by_one():
    updater = opt.get_updater(opt.create("sgd", learning_rate=1.0))
    weights = [array(1.0), array(2.0)]
    updater([0, 1], [array(1.0), array(1.0)], weights)
    assert [w.asnumpy()[0] for w in weights] == [0, 1]


def fresh(kind="sgd", **settings):
    return opt.get_updater(opt.create(kind, learning_rate=0.5, momentum=0.5, **settings))


def test_many_weights_together_are_as_one_by_one():
    rng = np.random.default_rng(2)
    shapes = [(3, 4), (4,), (2, 3, 2, 2), (1,), ()] * 2
    together, alone = fresh(wd=0.1), fresh(wd=0.1)
    first = [mx.nd.array(rng.normal(size=shape)) for shape in shapes]
    second = [weight.copy() for weight in first]
    for _ in range(3):
        grads = [mx.nd.array(rng.normal(size=shape)) for shape in shapes]
        together(list(range(len(shapes))), grads, first)
        for index, (grad, weight) in enumerate(zip(grads, second, strict=True)):
            alone(index, grad, weight)
    for mine, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(mine.asnumpy(), other.asnumpy())
    assert together.optimizer.num_update == 3


def test_rates_and_factors_may_change_at_any_time():
    updater, weight = opt.get_updater(opt.create("sgd", learning_rate=1.0)), array(0.0)
    updater(0, array(1.0), weight)
    updater.optimizer.set_learning_rate(0.5)
    updater.optimizer.rescale_grad = 0.1
    updater(0, array(1.0), weight)
    updater.optimizer.clip_gradient = 0.01
    updater(0, array(1.0), weight)
    assert weight.asnumpy()[0] == pytest.approx(-(1 + 0.05 + 0.005))


@pytest.mark.parametrize("bound", [None, 0, 0.0, -1.0])
@pytest.mark.parametrize("centered", [False, True])
def test_no_bound(bound, centered):
    updater, weight = fresh(clip_gradient=bound), array(0.0)
    updater(0, array(9.0), weight)
    assert weight.asnumpy()[0] == -4.5
    adamax = opt.get_updater(opt.create("adamax", learning_rate=1.0, clip_gradient=bound))
    adamax(0, array(9.0, -9.0, 0.5), moved := array(0.0, 0.0, 0.0))
    np.testing.assert_allclose(moved.asnumpy(), [-1, 1, -1], 1e-6)
    rule = opt.create("rmsprop", learning_rate=1.0, centered=centered, clip_weights=bound)
    opt.get_updater(rule)(0, array(9.0), far := array(50.0))
    assert 45 < far.asnumpy()[0] < 50


def test_arrays_that_share_memory():
    updater, weight = fresh(), array(4.0, 2.0)
    updater(0, weight, weight)  # its own gradient
    assert weight.asnumpy().tolist() == [2, 1]
    updater, weight = fresh(), array(4.0, 2.0)
    updater([0, 1], [array(1.0, 1.0)] * 2, [weight, weight])  # twice, in order
    assert weight.asnumpy().tolist() == [3, 1]
    updater, whole = fresh(), mx.nd.array(np.arange(12).reshape(4, 3))
    parts = [whole[0:2], whole[2:4]]  # views of one chunk, one of them the other's gradient
    updater([0, 1], [parts[1], array(*[[1.0] * 3] * 2)], parts)
    expected = np.arange(12).reshape(4, 3) - 0.0
    expected[:2] -= 0.5 * expected[2:]
    expected[2:] -= 0.5
    np.testing.assert_allclose(whole.asnumpy(), expected)


def test_double_precision_stays():
    updater, weight = fresh(), array(1.0, dtype="float64")
    updater(0, array(1 / 3, dtype="float64"), weight)
    assert weight.dtype == np.float64
    assert weight.asnumpy()[0] == pytest.approx(1 - 0.5 * (1 / 3), rel=1e-15, abs=0)


def test_nothing_is_written_before_what_it_needs(slow_gradient):
    updater, weight = fresh(), array(1.0)
    grad, finish = slow_gradient(2.0)
    updater(0, grad, weight)
    finish()
    assert weight.asnumpy()[0] == 0


def test_optimizers_of_users():
    @opt.register
    class Halving(opt.Optimizer):
        """Halves weights."""

        def update(self, index, weight, grad, state):
            weight[:] = weight / 2

    weight = array(8.0)
    opt.get_updater(opt.create("halving"))(0, array(0.0), weight)
    assert weight.asnumpy()[0] == 4
    assert opt.create(opt.create("halving").__class__.__name__) is not None


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: opt.create("sgdd"), mx.MXNetError, "did you mean 'sgd'"),
        (lambda: opt.create("sgd", momentun=0.9), TypeError, "momentun"),
        (lambda: opt.create("sgd", param_idx2name=["a"]), mx.MXNetError, "param_idx2name"),
    ],
)
def test_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_factors_set_between_steps_count_at_once():
    weights = [mx.gluon.Parameter(f"w{k}", shape=(2,), init="ones") for k in range(2)]
    for weight in weights:
        weight.initialize()
    trainer = mx.gluon.Trainer(weights, "sgd", {"learning_rate": 0.5})

    def moved():
        before = [w.data().asnumpy() for w in weights]
        with mx.autograd.record():
            loss = sum(w.data().sum() for w in weights)
        loss.backward()
        trainer.step(1)
        pairs = zip(before, weights, strict=True)
        return [float((b - w.data().asnumpy())[0]) for b, w in pairs]

    assert moved() == moved() == [0.5, 0.5]
    weights[1].lr_mult = 0.5
    assert moved() == [0.5, 0.25]
    weights[1].lr_mult = 1.0
    weights[0].set_data(mx.nd.zeros((2,)))
    assert moved() == [0.5, 0.5]
    trainer.set_learning_rate(0.25)
    assert moved() == [0.25, 0.25]
    updater = trainer._updaters[0]
    assert updater.optimizer._index_update_count == {0: 5, 1: 5}
    trainer._optimizer.clip_gradient = 0.5
    assert moved() == [0.125, 0.125]


def test_counts_go_on_where_single_updates_come_between():
    optimizer = mx.optimizer.create("adam", learning_rate=0.1)
    updater = mx.optimizer.get_updater(optimizer)
    other = mx.optimizer.get_updater(mx.optimizer.create("adam", learning_rate=0.1))
    weights, expected = ([mx.nd.ones((2,)) for _ in range(2)] for _ in range(2))
    grads = tuple(mx.nd.array([1.0, -k]) for k in range(2))
    both = (0, 1), grads, tuple(weights)
    for turn in range(4):
        updater(*both)
        if turn == 1:
            updater(1, grads[1], weights[1])
    for turn in range(4):
        for k in range(2):
            other(k, grads[k], expected[k])
        if turn == 1:
            other(1, grads[1], expected[1])
    assert optimizer._index_update_count == {0: 4, 1: 5}
    for found, wanted in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-6)


def test_states_that_are_replaced_are_used():
    updater = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.5, learning_rate=1.0))
    weight, grad = mx.nd.zeros((2,)), mx.nd.ones((2,))
    given = (0,), (grad,), (weight,)
    updater(*given)
    updater.states[0] = mx.nd.array([-10.0, -10.0])
    updater(*given)
    assert weight.asnumpy().tolist() == [-7.0, -7.0]


def test_what_a_formula_must_give_is_told():
    class Lone(opt.Optimizer):
        """Gives an expression, and no tuple."""

        def formula(self, weight, grad, states, rates):
            return weight - rates.lr * grad

    with pytest.raises(TypeError, match=r"Lone.formula: argument 'return value': .* and 0 new sta"):
        Lone().update(0, array(1.0), array(1.0), None)


def test_updates_of_weights_alike_are_prepared_once(monkeypatch):
    """Layers that repeat have weights of one layout, whose updates differ by addresses alone."""
    shapes = [(3, 4), (5,), (3, 4), (5,), (3, 4), (2, 6)]
    rng = np.random.default_rng(5)
    values = [[mx.nd.array(rng.standard_normal(s)) for s in shapes] for _ in range(2)]
    alone, together = ([x.copy() for x in values[0]] for _ in range(2))
    updater = opt.get_updater(opt.SGD(momentum=0.9, learning_rate=0.1))
    for _ in range(2):
        for k, (grad, weight) in enumerate(zip(values[1], alone, strict=True)):
            updater(k, grad, weight)
    prepared = []
    prepare = batch.prepare
    monkeypatch.setattr(batch, "prepare", lambda *a: prepared.append(a) or prepare(*a))
    updater = opt.get_updater(opt.SGD(momentum=0.9, learning_rate=0.1))
    for _ in range(2):
        updater(list(range(6)), values[1], together)
    for x, y in zip(alone, together, strict=True):
        np.testing.assert_array_equal(x.asnumpy(), y.asnumpy())
    assert len(prepared) == 2  # of 12 and of 5 elements


def test_what_a_formula_reads_besides_rates_is_told():
    class Reads(mx.optimizer.Optimizer):
        def formula(self, weight, grad, states, rates):
            return (weight - rates.momentum * grad,)

    weight = mx.nd.ones(2)
    with pytest.raises(AttributeError, match=r"expected lr, wd, or more.*`self.momentum`"):
        Reads().update(0, weight, weight, None)
    assert weight.asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["sgd", "adam", "lbsgd"])
def test_updates_that_float16_loses_are_told(kind):
    half = mx.nd.ones(2, dtype="float16")
    with pytest.warns(UserWarning, match=r"create_state: the weight is float16.*multi_precision"):
        opt.create(kind).create_state_multi_precision(0, half)
    opt.create(kind, multi_precision=True).create_state_multi_precision(0, half)
    opt.create(kind).create_state_multi_precision(0, mx.nd.ones(2))


def test_states_loaded_for_float16_weights_warn_no_more():
    weight = mx.nd.ones(2, dtype="float16")
    first = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    with pytest.warns(UserWarning, match="multi_precision"):
        first(0, weight, weight.copy())
    again = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    again.set_states(first.get_states())
    again(0, weight, weight.copy())  # warnings are errors here


def test_weights_of_one_operator():
    kinds = {"sgd": 4, "ccsgd": 4, "lars": 4, "lamb": 45, "adam": 0, "nag": 0, "lbsgd": 0}
    assert {k: mx.optimizer.create(k).aggregate_num for k in kinds} == kinds
    pickled = states.loads(states.dumps([mx.optimizer.SGD(), mx.optimizer.NAG()]))
    assert [each.aggregate_num for each in pickled] == [4, 0]


def test_lbsgd_tells_its_settings(caplog):
    caplog.set_level("INFO")
    mx.optimizer.LBSGD(batch_scale=2, updates_per_epoch=3)
    assert len(caplog.messages) == 2
    wanted = "Batch_scale=2.000000, warmup_epochs=5, warmup_strategy=linear, updates_per_epoch=3"
    assert wanted in caplog.messages[1]
