"""Executors on arrays: binding, requests, modes, parameters, monitoring, errors."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gnomon as mx
from gnomon import config, engine
from gnomon.base import DTypeError, GnomonError, ParamError, ShapeError
from gnomon.engine import NaiveEngine
from gnomon.runtime.devices import pool

nd, sym = mx.nd, mx.sym


def mlp():
    data = sym.Variable("data")
    net = sym.Activation(sym.FullyConnected(data, num_hidden=4, name="fc1"), act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=3, name="fc2"), name="softmax")


def filled(executor, seed=0):
    rng = np.random.default_rng(seed)
    for name, array in executor.arg_dict.items():
        array[:] = rng.standard_normal(array.shape) if "label" not in name else 1
    return executor


def bound(**params):
    return filled(mlp().simple_bind(mx.cpu(), data=(5, 6), **params))


# binding ------------------------------------------------------------------------------------


def test_simple_bind_makes_every_array():
    executor = bound()
    assert {k: v.shape for k, v in executor.arg_dict.items()} == {
        "data": (5, 6),
        "fc1_weight": (4, 6),
        "fc1_bias": (4,),
        "fc2_weight": (3, 4),
        "fc2_bias": (3,),
        "softmax_label": (5,),
    }
    assert executor.grad_dict["fc1_weight"].shape == (4, 6)
    assert list(executor.output_dict) == ["softmax_output"]
    assert [o.shape for o in executor.outputs] == [(5, 3)]
    assert executor.aux_dict == {}


def test_requests_by_word_list_and_dict():
    names = mlp().list_arguments()
    assert bound(grad_req="null").grad_arrays == [None] * 6
    by_list = bound(grad_req=["null", "write", "add", "null", "null", "null"])
    assert [k for k, g in by_list.grad_dict.items() if g is not None] == ["fc1_weight", "fc1_bias"]
    by_dict = bound(grad_req={"fc2_bias": "add"})
    assert [k for k, g in by_dict.grad_dict.items() if g is not None] == ["fc2_bias"]
    for bad in ("wirte", {"data": 3}, ["write"]):
        with pytest.raises(ParamError, match="simple_bind: argument 'grad_req'"):
            bound(grad_req=bad)
    assert len(names) == 6


def test_bind_takes_lists_and_dicts():
    x = sym.Variable("x")
    net = sym.FullyConnected(x, num_hidden=2, name="fc")
    arrays = [nd.ones((1, 3)), nd.ones((2, 3)), nd.zeros((2,))]
    names = net.list_arguments()
    for args in (arrays, dict(zip(names, arrays, strict=True))):
        executor = net.bind(mx.cpu(), args, {"x": nd.zeros((1, 3))})
        assert executor.forward()[0].asnumpy().tolist() == [[3, 3]]
        assert [g is None for g in executor.grad_arrays] == [False, True, True]


def test_what_was_bound_is_what_is_computed_with():
    x = nd.array([1, 2])
    executor = (sym.Variable("x") * 2).bind(mx.cpu(), [x])
    x[:] = 5
    assert executor.forward()[0].asnumpy().tolist() == [10, 10]
    assert executor.arg_dict["x"] is x


def test_binding_refuses_what_does_not_go_together():
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    good = {"data": nd.ones((1, 3)), "fc_weight": nd.ones((2, 3)), "fc_bias": nd.ones((2,))}
    with pytest.raises(ParamError, match="none for fc_weight, fc_bias"):
        net.bind(mx.cpu(), {"data": good["data"]})
    with pytest.raises(ParamError, match=r"3 arrays .data, fc_weight, fc_bias., got 1"):
        net.bind(mx.cpu(), [good["data"]])
    with pytest.raises(ShapeError, match=r"node 'fc'.*\(7,\)"):
        net.bind(mx.cpu(), {**good, "fc_bias": nd.ones((7,))})
    with pytest.raises(DTypeError, match=r"node 'fc'.*float16"):
        net.bind(mx.cpu(), {**good, "fc_bias": nd.ones((2,), dtype="float16")})
    with pytest.raises(ShapeError, match=r"args_grad\[data\]"):
        net.bind(mx.cpu(), good, {"data": nd.ones((9,))})
    with pytest.raises(TypeError, match=r"args\[data\].*an NDArray"):
        net.bind(mx.cpu(), {**good, "data": np.ones((1, 3))})
    with pytest.raises(TypeError, match="a context"):
        net.bind("cpu", good)
    with pytest.raises(GnomonError, match=r"the shape of these is not known.*data"):
        net.simple_bind(mx.cpu())


def test_dtypes_of_simple_bind():
    executor = mlp().simple_bind(mx.cpu(), type_dict={"data": "float64"}, data=(2, 6))
    assert executor.arg_dict["fc1_weight"].dtype == np.float64
    assert executor.outputs[0].dtype == np.float64


def test_variables_of_one_name():
    net = sym.Variable("x") + sym.Variable("x")
    executor = net.bind(mx.cpu(), {"x": nd.array([1, 2])})
    assert executor.forward()[0].asnumpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match="x"):
        executor.arg_dict


# computing ----------------------------------------------------------------------------------


def by_hand(executor):
    a = {k: v.asnumpy() for k, v in executor.arg_dict.items()}
    h = np.tanh(a["data"] @ a["fc1_weight"].T + a["fc1_bias"])
    s = h @ a["fc2_weight"].T + a["fc2_bias"]
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = p - np.eye(3)[a["softmax_label"].astype(int)]
    return p, d.T @ h, ((d @ a["fc2_weight"]) * (1 - h * h)).T @ a["data"]


def check(executor, factor=1.0):
    out, second, first = by_hand(executor)
    np.testing.assert_allclose(executor.outputs[0].asnumpy(), out, 1e-5, 1e-6)
    for name, expected in (("fc1_weight", first), ("fc2_weight", second)):
        got = executor.grad_dict[name].asnumpy()
        np.testing.assert_allclose(got, factor * expected, 1e-4, 1e-5)


def test_forward_and_backward():
    executor = bound()
    outputs = executor.forward(is_train=True)
    executor.backward()
    check(executor)
    assert outputs[0] is executor.outputs[0]


def test_forward_takes_arrays_by_name():
    executor = bound()
    values = np.ones((5, 6), np.float32)
    executor.forward(is_train=True, data=values, softmax_label=nd.zeros((5,)))
    executor.backward()
    assert (executor.arg_dict["data"].asnumpy() == 1).all()
    check(executor)
    before = executor.arg_dict["data"].asnumpy()
    with pytest.raises(TypeError, match=r"'dat'.*did you mean 'data'"):
        executor.forward(dat=values)
    with pytest.raises(ShapeError, match=r"'data': expected shape \(5, 6\), got shape \(5, 7\)"):
        executor.forward(softmax_label=np.ones(5), data=np.ones((5, 7)))
    assert (executor.arg_dict["softmax_label"].asnumpy() == 0).all()
    np.testing.assert_array_equal(executor.arg_dict["data"].asnumpy(), before)


def test_adding_counts_every_backward():
    executor = bound(grad_req="add")
    for _ in range(3):
        executor.forward(is_train=True)
        executor.backward()
    check(executor, 3)


def test_backward_without_a_fresh_forward():
    executor = bound()
    executor.forward(is_train=True)
    executor.backward()
    executor.backward()
    check(executor)
    executor.forward(is_train=False)
    executor.backward()
    check(executor)
    another = bound()
    another.backward()
    check(another)


def test_a_prediction_between_forward_and_backward():
    executor = bound(shared_exec=None)
    executor.forward(is_train=True)
    other = executor.reshape(data=(2, 6), partial_shaping=True)
    other.forward()
    executor.backward()
    check(executor)


def test_heads_are_needed_where_no_loss_ends_the_net():
    x = sym.Variable("x")
    executor = sym.Group([x * x, x + 1]).simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = [3, 4]
    executor.forward(is_train=True)
    one = nd.ones((2,))
    executor.backward([one, one * 10])
    assert executor.grad_dict["x"].asnumpy().tolist() == [16, 18]
    names = executor._symbol.list_outputs()
    executor.backward({names[0]: one, names[1]: one})
    assert executor.grad_dict["x"].asnumpy().tolist() == [7, 9]
    with pytest.raises(GnomonError, match="pass it as out_grads"):
        executor.backward()
    with pytest.raises(ShapeError, match="out_grads"):
        executor.backward([one, nd.ones((3,))])
    with pytest.raises(ParamError, match="at most 2"):
        executor.backward([one] * 3)
    with pytest.raises(TypeError, match="NDArrays"):
        executor.backward(3)
    with pytest.raises(ParamError, match="nothing"):
        executor.backward({"nothing": one})


def test_dropout_draws_anew_and_stays_the_same_for_its_gradient():
    executor = sym.Dropout(sym.Variable("x"), p=0.5).simple_bind(mx.cpu(), x=(400,))
    executor.arg_dict["x"][:] = 1
    one = nd.ones((400,))
    first = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(one)
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), first)
    executor.backward(one)  # forward is computed again, with the same numbers
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), first)
    second = executor.forward(is_train=True)[0].asnumpy()
    assert (first != second).any()
    assert (executor.forward(is_train=False)[0].asnumpy() == 1).all()


def test_moving_averages_follow_the_batches():
    net = sym.BatchNorm(sym.Variable("x"), momentum=0.5, fix_gamma=False, name="bn")
    executor = net.simple_bind(mx.cpu(), x=(8, 2))
    executor.arg_dict["bn_gamma"][:] = 1
    x = np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32)
    executor.aux_dict["bn_moving_var"][:] = 1
    executor.forward(is_train=True, x=x)
    assert not executor.aux_dict["bn_moving_mean"].asnumpy().any()
    for k in range(1, 3):  # the second computes forward again
        executor.backward(nd.ones((8, 2)))
        found = executor.aux_dict["bn_moving_mean"].asnumpy()
        np.testing.assert_allclose(found, x.mean(0) * (1 - 0.5**k), rtol=1e-4, atol=1e-6)
    executor.forward()
    np.testing.assert_array_equal(executor.aux_dict["bn_moving_mean"].asnumpy(), found)


def test_what_changes_the_states_it_reads_is_not_done_again():
    step = sym.sgd_mom_update(*map(sym.Variable, "wgm"), lr=0.1, momentum=0.9)
    executor = sym.exp(step).simple_bind(mx.cpu(), w=(2,))
    executor.forward(is_train=True)
    one = nd.ones((2,))
    executor.backward(one)
    with pytest.raises(GnomonError, match="right before backward"):
        executor.backward(one)


def test_a_program_is_one_engine_operation_a_pass():
    executor = bound()
    executor.forward(is_train=True)
    executor.backward()
    (run,) = executor._runs.values()
    assert [len(run.operators(p)) for p in ("forward", "backward")] == [1, 1]


# parameters ---------------------------------------------------------------------------------


def test_parameters_are_copied_by_name():
    executor = bound()
    executor.copy_params_from({"fc1_bias": nd.ones((4,))})
    assert (executor.arg_dict["fc1_bias"].asnumpy() == 1).all()
    with pytest.raises(ParamError, match=r"did you mean 'fc1_bias'.*got 'fc1_bais'"):
        executor.copy_params_from({"fc1_bais": nd.ones((4,))})
    with pytest.raises(ShapeError, match="fc1_weight"):
        executor.copy_params_from({"fc1_bias": nd.zeros((4,)), "fc1_weight": nd.ones((1,))})
    assert (executor.arg_dict["fc1_bias"].asnumpy() == 1).all()
    executor.copy_params_from({"more": nd.ones((4,))}, allow_extra_params=True)


def test_memory_goes_with_the_executor():
    nd.waitall()
    gc.collect()
    before = pool.stats().used
    executor = sym.exp(sym.tanh(sym.Variable("x")) * 2).simple_bind(mx.cpu(), x=(100_000,))
    executor.forward(is_train=True)
    executor.backward(nd.ones((100_000,)))
    nd.waitall()
    assert pool.stats().used >= before + 3 * 400_000
    gc.disable()
    try:
        del executor  # nothing in it refers to itself
        assert pool.stats().used < before + 400_000
    finally:
        gc.enable()


# looking inside -----------------------------------------------------------------------------


def test_a_monitor_tells_sums_of_gradients_under_the_real_name():
    x = mx.sym.Variable("x")
    h = mx.sym.tanh(x, name="h")
    executor, seen = (h * mx.sym.exp(h)).simple_bind(mx.cpu(), x=(2,)), []
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2,)))
    assert "sum_grad_output" in seen


def test_a_monitor_sees_every_value():
    executor, seen = bound(), {}
    executor.set_monitor_callback(lambda name, array: seen.__setitem__(name, array.asnumpy()))
    executor.forward(is_train=True)
    executor.backward()
    check(executor)
    order = [name for name in seen if name in ("fc1_output", "fc2_output", "softmax_output")]
    assert order == ["fc1_output", "fc2_output", "softmax_output"]
    a = {k: v.asnumpy() for k, v in executor.arg_dict.items()}
    expected = a["data"] @ a["fc1_weight"].T + a["fc1_bias"]
    np.testing.assert_allclose(seen["fc1_output"], expected, 1e-5, 1e-6)
    assert any(name.startswith("fc1_backward_output") for name in seen)
    seen.clear()
    executor.set_monitor_callback(
        lambda name, array: seen.__setitem__(name, array.shape), monitor_all=True
    )
    executor.forward()
    assert seen["fc1_data"] == (5, 6)
    executor.set_monitor_callback(None)
    seen.clear()
    executor.forward()
    assert not seen
    with pytest.raises(TypeError, match="a function"):
        executor.set_monitor_callback(3)


def test_debug_shows_what_each_pass_makes(capsys):
    with mx.AttrScope(ctx_group="far"):
        x = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc")
    with mx.AttrScope(ctx_group="near"):
        x = mx.sym.MakeLoss(mx.sym.tanh(x), name="loss")
    with config.using(debug=6):
        groups = {"far": mx.cpu(1), "near": mx.cpu(0)}
        x.simple_bind(mx.cpu(), x=(2, 4), group2ctx=groups).forward(is_train=True)
    text = capsys.readouterr().err
    for name in ("placement", "gradient", "fusion", "calls"):
        assert f"{name}, before:\n" in text, name
        assert f"{name}, after:\n" in text, name
    assert "_CrossDeviceCopy(fc)" in text


def test_a_monitor_of_everything_is_told_what_mxnet_tells():
    y = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    z = mx.sym.elemwise_add(mx.sym.BatchNorm(y, name="bn"), y, name="plus")
    z = mx.sym.SoftmaxOutput(z, name="softmax")
    executor, told = z.simple_bind(mx.cpu(), data=(2, 4)), []
    executor.set_monitor_callback(lambda name, array: told.append(name), monitor_all=True)
    executor.forward(is_train=True)
    both = [f"fc_{k}" for k in ("weight", "bias") for _ in range(2)]
    states = ("gamma", "beta", "moving_mean", "moving_var")
    assert told == [
        *("data", "fc_data", *both, "fc_output"),
        *("bn_data", *(f"bn_{k}" for k in states for _ in range(2))),
        *("bn_output", "bn_mean", "bn_var"),
        *("plus_lhs", "plus_rhs", "plus_output"),
        *("softmax_data", "softmax_label", "softmax_label", "softmax_output"),
    ]
    told.clear()
    executor.backward()
    reads = [f"fc_backward_input{k}" for k in range(3)]
    at = told.index(reads[0])
    assert told[at : at + 5] == [reads[0], "data", reads[1], "fc_weight", reads[2]]


def test_the_plan_shows_each_life():
    plan = bound().memory_plan()
    names = [life.name for life in plan.lives]
    assert "softmax" in names
    assert plan.total < plan.unshared
    assert f"{plan.total} bytes" in str(plan)
    assert bound().memory_plan(is_train=False).total <= plan.total
    text = bound().debug_str()
    assert "Op:FullyConnected, Name=fc1" in text
    assert "Total 0 MB allocated" in text


def test_what_no_gradient_reads_is_freed_early():
    """FullyConnected's gradient does not read its output: in the plan it dies in forward."""
    net = sym.FullyConnected(sym.FullyConnected(sym.Variable("x"), num_hidden=4, name="a"),
                             num_hidden=4, name="b")  # fmt: skip
    net = sym.LinearRegressionOutput(sym.exp(net), name="out")
    plan = net.simple_bind(mx.cpu(), x=(2, 3)).memory_plan()
    lives = {life.name: life for life in plan.lives}
    forward = lives["out"].born
    products = [v for k, v in lives.items() if k.startswith(("b+", "b:"))]
    assert products
    assert all(v.dies <= forward for v in products)


# size ---------------------------------------------------------------------------------------


def test_a_deep_network_is_bound_and_run():
    net = sym.Variable("x")
    for k in range(2000):
        net = sym.relu(net) if k % 2 else net + 1.0
    executor = net.simple_bind(mx.cpu(), x=(4,))
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [1000] * 4
    executor.backward(nd.ones((4,)))
    assert executor.grad_dict["x"].asnumpy().tolist() == [1] * 4


def test_feeds_are_assigned_one_after_the_other():
    net = sym.Variable("a") - 10 * sym.Variable("b")
    executor = net.simple_bind(mx.cpu(), grad_req="null", a=(2,), b=(2,))
    a, b = executor.arg_dict["a"], executor.arg_dict["b"]
    b[:] = 3
    executor.forward(a=b, b=np.array([5, 6]))  # one of them no array of this package
    assert executor.outputs[0].asnumpy().tolist() == [-47, -57]
    executor.forward(b=np.array([1, 2]), a=b)
    assert executor.outputs[0].asnumpy().tolist() == [-9, -18]
    executor.forward(a=nd.array([7, 8]), b=a)
    assert executor.outputs[0].asnumpy().tolist() == [-63, -72]


def test_engines_may_change():
    executor = bound()
    executor.forward(is_train=True)
    before = engine.get()
    engine.use(NaiveEngine())
    try:
        executor.forward(is_train=True)
        executor.backward()
        check(executor)
    finally:
        engine.use(before)


def square():
    x = sym.Variable("x")
    return (x * x).simple_bind(mx.cpu(), x=(2,))


def test_forward_heeds_the_present_settings_of_its_own_thread():
    e, other = square(), ThreadPoolExecutor(1)
    fused = []
    for passes in (True, False, True):
        with config.using(passes=passes):
            e.forward(is_train=True)
            fused.append(e.arena.content.mode.fuse)
            other.submit(e.forward, True).result()  # where nothing is set
        fused.append(e.arena.content.mode.fuse)
    assert fused == [True, True, False, True, True, True]
    other.shutdown()
    e.forward()
    assert not e.arena.content.mode.train


def test_forward_again_calls_few_functions_of_python():
    e, calls = square(), []
    e.forward(is_train=True)
    e.forward(is_train=True)
    sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code))
    try:
        e.forward(is_train=True)
    finally:
        sys.setprofile(None)
    own = [code.co_name for code in calls if "/gnomon/executor/" in code.co_filename]
    assert len(own) <= 10, own  # 15 before its program was kept


def test_a_reshaped_executor_has_gradients_of_what_asks_for_them_alone():
    shapes = [(2, 2), (1, 2), (1,)]
    net = mx.sym.FullyConnected(mx.sym.Variable("d"), num_hidden=1, name="f")
    given, grads = ([nd.ones(s) for s in shapes] for _ in range(2))
    requests = {"d": "null", "f_weight": "write", "f_bias": "add"}
    executor = net.bind(mx.cpu(), given, grads, requests)
    found = executor.reshape(d=(1, 2)).grad_dict
    assert found.pop("d") is None
    assert {k: g.shape for k, g in found.items()} == {"f_weight": (1, 2), "f_bias": (1,)}
