"""What prediction keeps of parameters: equal values, whatever changes these between forwards."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, dtype, engine
from gnomon.executor import train_step
from gnomon.runtime.libraries import tile

sym = mx.sym


def network(fix_gamma=True, no_bias=False):
    x = sym.Variable("x")
    x = sym.Convolution(x, num_filter=6, kernel=(3, 3), pad=(1, 1), no_bias=no_bias, name="conv")
    x = sym.Activation(sym.BatchNorm(x, fix_gamma=fix_gamma, eps=1e-3, name="bn"), act_type="relu")
    x = sym.Convolution(x, num_filter=6, kernel=(3, 3), num_group=6, no_bias=True, name="deep")
    x = sym.Flatten(sym.BatchNorm(x, fix_gamma=False, name="dn"))
    x = sym.FullyConnected(x, num_hidden=5, no_bias=no_bias, name="fc")
    return sym.BatchNorm(x, fix_gamma=fix_gamma, name="fn")


def bound(net, **settings):
    with config.using(**settings):
        executor = net.simple_bind(mx.cpu(), x=(2, 3, 6, 6))
        fill(executor, 0)
        executor.forward()
    return executor


def fill(executor, seed):
    rng = np.random.default_rng(seed)
    for array in (*executor.arg_arrays, *executor.aux_arrays):
        array[:] = rng.random(array.shape, np.float32) + 0.1


def expected(executor):
    """What the network gives for the parameters of `executor`, without passes."""
    other = bound(executor._symbol, passes=False)
    with config.using(passes=False):
        for name, array in executor.arg_dict.items():
            other.arg_dict[name][:] = array
        for name, array in executor.aux_dict.items():
            other.aux_dict[name][:] = array
        return other.forward()[0].asnumpy()


def check(executor, outputs):
    np.testing.assert_allclose(outputs[0].asnumpy(), expected(executor), 2e-4, 1e-4)


def program(executor):
    """What the prediction of `executor` keeps of parameters."""
    (run,) = (r for m, r in executor._runs.items() if not m.train and m.fuse)
    return run._prepared


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize("fix_gamma", [False, True])
@pytest.mark.parametrize("no_bias", [False, True])
def test_predictions_are_the_same(fix_gamma, no_bias, onednn):
    with config.using(onednn=onednn):
        executor = bound(network(fix_gamma, no_bias))
        check(executor, executor.forward())
    names = [t.name for t in next(iter(executor._runs.values())).layout.tasks]
    if not any(m.train for m in executor._runs):
        assert not any(n.startswith("bn") for n in names)


def test_what_is_kept_is_made_again_where_a_parameter_has_changed():
    executor = bound(network())
    runs = []
    mx.nd.waitall()
    for part in program(executor)._parts:
        run = part.program.run
        part.program = type("Counted", (), {"run": lambda self, run=run: runs.append(run())})()
    for _ in range(3):
        executor.forward(x=mx.nd.ones((2, 3, 6, 6)))
    mx.nd.waitall()
    assert not runs
    for count, name in enumerate(("conv_weight", "bn_beta", "fc_bias"), 1):
        executor.arg_dict[name][:] = 3.5
        check(executor, executor.forward())
        assert len(runs) == count
    executor.aux_dict["bn_moving_var"][:] = 2
    check(executor, executor.forward())
    assert len(runs) == 4


def test_what_may_have_to_be_made_first_counts_as_work_under_the_lock(monkeypatch):
    executor, current, asked = bound(network()), engine.get(), []
    (whole,) = (r._pass("forward") for m, r in executor._runs.items() if not m.train)
    work = whole._own.program.work + program(executor).work
    assert program(executor).work > 0
    brief = current.run_brief
    monkeypatch.setattr(current, "run_brief", lambda fn, *a: asked.append(fn) or brief(fn, *a))
    for limit, is_brief in ((work, True), (work - 1, False)):
        monkeypatch.setattr(train_step, "BRIEF", limit)
        again = bound(network())
        mx.nd.waitall()
        asked.clear()
        outputs = again.forward()
        assert any(isinstance(fn, train_step.TrainStep) for fn in asked) == is_brief
        check(again, outputs)


def test_slices_and_arithmetic_in_place_count_as_changes():
    executor = bound(network())
    executor.arg_dict["conv_weight"][1:3] += 1
    check(executor, executor.forward())
    executor.arg_dict["fc_weight"].reshape((-1,))[3:5] = 9
    check(executor, executor.forward())


def test_a_training_step_changes_what_prediction_computes():
    executor = bound(network())
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2, 5)))
        check(executor, executor.forward())


@pytest.mark.parametrize("programs", [False, True])
def test_parameters_may_be_fed(programs):
    with config.using(programs=programs):
        executor = bound(network())
        for value in (1.0, 2.0):
            fed = {"conv_weight": mx.nd.full((6, 3, 3, 3), value), "x": mx.nd.ones((2, 3, 6, 6))}
            check(executor, executor.forward(**fed))


def test_memory_that_others_may_write_counts_as_changed():
    executor = bound(network())
    other = mx.nd.from_dlpack(executor.arg_dict["conv_weight"].to_dlpack_for_write())
    executor.forward()
    mx.nd.waitall()
    other[:] = 0.25  # another variable of the engine
    other.wait_to_read()
    check(executor, executor.forward())


def test_what_is_kept_is_counted():
    plan = bound(network()).memory_plan(is_train=False)
    kept = [life for life in plan.lives if life.name.startswith("bn_folded")]
    assert [life.nbytes for life in kept] == [4 * 6 * 27, 4 * 6]
    assert plan.kept >= sum(life.nbytes for life in kept)
    assert f"{plan.kept} kept" in str(plan)


def recurrent(mode, bidirectional=False, projection=None):
    names = ["x", "weights", "start", *(["cell"] if mode == "lstm" else [])]
    return sym.RNN(
        *map(sym.Variable, names), mode=mode, state_size=9, num_layers=2,
        bidirectional=bidirectional, state_outputs=True, projection_size=projection,
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "projection"), [("lstm", None), ("gru", None), ("lstm", 6)])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch", [2, 40])
def test_recurrent_weights_are_packed_once(mode, projection, bidirectional, batch):
    net = recurrent(mode, bidirectional, projection)

    def filled(passes):
        with config.using(passes=passes):
            executor = net.simple_bind(mx.cpu(), x=(35, batch, 5))
            fill(executor, 1)
            return executor

    packing, plain = filled(True), filled(False)
    for change in ("weights", "x", "weights"):
        for executor in (packing, plain):
            executor.arg_dict[change][:] -= 0.25
        with config.using(passes=False):
            expected = [v.asnumpy() for v in plain.forward()]
        for _ in range(2):
            for value, want in zip(packing.forward(), expected, strict=True):
                np.testing.assert_array_equal(value.asnumpy(), want)
    kept = [life.name for life in packing.memory_plan(is_train=False).lives]
    for name in ("w_hid1", "w_out1")[: 1 if projection is None else 2]:
        assert any(n.endswith(name) for n in kept) == tile.packs(dtype.float32)
