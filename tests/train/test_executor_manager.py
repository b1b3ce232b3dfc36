"""`mx.executor_manager`: what programs older than `mx.mod` train with."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import base, model
from gnomon.base import GnomonError, ParamError
from gnomon.module import base_module
from gnomon.module.executor_group import DataParallelExecutorGroup

X = np.random.default_rng(0).normal(size=(12, 3)).astype("f")
Y = (X @ np.array([[1.0], [2.0], [-1.0]], "f")).ravel()


def network():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    return mx.sym.LinearRegressionOutput(net, mx.sym.var("goal"), name="out")


def data():
    return mx.io.NDArrayIter(X, Y, 4, label_name="goal")


def start():
    return {"fc_weight": mx.nd.ones((1, 3)), "fc_bias": mx.nd.zeros(1)}


@pytest.mark.parametrize("devices", [1, 2])
def test_training_by_hand(devices):
    batches, rate = data(), 0.05
    manager = mx.executor_manager.DataParallelExecutorManager(
        network(), [mx.cpu(k) for k in range(devices)], batches, work_load_list=[1] * devices
    )
    assert manager.param_names == ["fc_weight", "fc_bias"]
    assert manager.slices == [
        slice(k * 4 // devices, (k + 1) * 4 // devices) for k in range(devices)
    ]
    manager.set_params(start(), {})
    weight, bias = np.ones((1, 3), "f"), np.zeros(1, "f")
    metric = mx.metric.MSE()
    for batch in batches:
        x, y = batch.data[0].asnumpy(), batch.label[0].asnumpy()
        manager.load_data_batch(batch)
        manager.forward(is_train=True)
        manager.backward()
        manager.update_metric(metric, batch.label)
        error = x @ weight.T + bias - y[:, None]
        for (*places,), grads in zip(manager.param_arrays, manager.grad_arrays, strict=True):
            total = sum(g.asnumpy() for g in grads)
            for place in places:
                place -= mx.nd.array(rate * total)
        weight, bias = weight - rate * error.T @ x, bias - rate * error.sum(0)
    found = start()
    manager.copy_to(found, {})
    np.testing.assert_allclose(found["fc_weight"].asnumpy(), weight, 1e-4, 1e-5)
    np.testing.assert_allclose(found["fc_bias"].asnumpy(), bias, 1e-4, 1e-5)
    assert metric.get()[1] > 0


def test_buckets_share_parameters():
    def network_of(key):
        x = mx.sym.sum(mx.sym.Embedding(mx.sym.var("data"), input_dim=5, output_dim=2, name="e"), 1)
        return mx.sym.SoftmaxOutput(x, mx.sym.var("label"), name="out")

    sentences = [[1, 2], [2, 3], [1, 2, 3, 4], [4, 3, 2, 1]]

    class Buckets:
        batch_size, default_bucket_key = 2, 4
        provide_data = (("data", (2, 4)),)
        provide_label = (("label", (2,)),)

    manager = mx.executor_manager.DataParallelExecutorManager(
        network_of(4), mx.cpu(), Buckets(), sym_gen=network_of
    )
    table = mx.nd.array(np.arange(10).reshape(5, 2))
    manager.set_params({"e_weight": table, "unknown": table}, {})
    for rows in (sentences[:2], sentences[2:]):
        batch = mx.io.DataBatch(
            [mx.nd.array(rows)],
            [mx.nd.zeros(2)],
            bucket_key=len(rows[0]),
            provide_data=[("data", (2, len(rows[0])))],
            provide_label=[("label", (2,))],
        )
        manager.load_data_batch(batch)
        manager.forward()
        (output,) = manager.curr_execgrp.train_execs[0].outputs
        sums = table.asnumpy()[np.array(rows)].sum(1)
        wanted = np.exp(sums - sums.max(1, keepdims=True))
        np.testing.assert_allclose(output.asnumpy(), wanted / wanted.sum(1, keepdims=True), 1e-5)
    assert len(manager._groups) == 2
    with pytest.raises(ParamError, match="sym_gen"):
        manager.install_monitor(None)


def test_mistakes():
    manager = mx.executor_manager.DataParallelExecutorManager(network(), mx.cpu(), data())
    with pytest.raises(ParamError, match="load_data_batch"):
        manager.forward()
    with pytest.raises(ParamError, match=r"work_load_list.*1 numbers"):
        mx.executor_manager.DataParallelExecutorManager(
            network(), mx.cpu(), data(), work_load_list=[1, 2]
        )
    assert mx.model.DataParallelExecutorManager is type(manager)


def test_helpers_that_older_programs_import():
    helpers, x = mx.executor_manager, mx.sym.var("x")
    helpers._check_arguments(x + mx.sym.var("y"))
    with pytest.raises(ValueError, match="'x' twice"):
        helpers._check_arguments(x + mx.sym.var("x"))
    batch = mx.io.DataBatch([mx.nd.array([[1, 2], [3, 4]])], [mx.nd.array([5, 6])])
    first, second, whole = mx.nd.zeros((1, 2)), mx.nd.zeros((1, 2)), mx.nd.zeros(2)
    helpers._load_data(batch, [[(slice(0, 1), first), (slice(1, 2), second)]])
    helpers._load_label(batch, [whole])
    assert first.asnumpy().tolist() == [[1, 2]]
    assert second.asnumpy().tolist() == [[3, 4]]
    assert whole.asnumpy().tolist() == [5, 6]


@pytest.mark.parametrize("kvstore", ["local", "device", None])
def test_functions_that_modules_of_programs_import(kvstore):
    names, count = ["a", "b"], 1 if kvstore is None else 2
    args = {name: mx.nd.ones((2,)) for name in names}
    params = [[mx.nd.ones((2,)) for _ in range(count)] for _ in names]
    grads = [[mx.nd.ones((2,)) * (k + 1) for _ in range(count)] for k in range(2)]
    optimizer = mx.optimizer.SGD(learning_rate=0.5, param_idx2name=dict(enumerate(names)))
    store, on_store = model._create_kvstore(kvstore, count, args)
    if store is not None:
        model._initialize_kvstore(
            kvstore=store,
            param_arrays=params,
            arg_params=args,
            param_names=names,
            update_on_kvstore=on_store,
        )
    if on_store:
        store.set_optimizer(optimizer)
        model._update_params_on_kvstore(params, grads, store, names)
    else:
        updater = mx.optimizer.get_updater(optimizer)
        model._update_params(params, grads, updater, count, store, names)
    assert (store is None, on_store) == (kvstore is None, kvstore is not None)
    found = [[array.asnumpy().tolist() for array in arrays] for arrays in params]
    assert found == [[[1 - 0.5 * count * (k + 1)] * 2] * count for k in range(2)]


def test_parameters_are_updated_by_any_function():
    seen = []
    params = [[mx.nd.ones((2,))] for _ in range(3)]
    grads = [[mx.nd.ones((2,))], [None], [mx.nd.ones((2,))]]
    model._update_params(params, grads, lambda i, g, w: seen.append((i, len(g), len(w))), 1)
    assert seen == [((0, 2), 2, 2)]
    with pytest.raises(ParamError, match="arrays on 2 devices"):
        model._update_params(params, grads, None, 2)


def test_groups_of_modules_take_pairs_of_name_and_shape():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    net = mx.sym.SoftmaxOutput(net, name="softmax")
    shapes = [("data", [4, 3])], [("softmax_label", (4,))]
    devices, weights = [mx.cpu(0), mx.cpu(1)], ["fc_weight", "fc_bias"]
    group = DataParallelExecutorGroup(net, devices, [1, 1], *shapes, weights, True, False)
    again = DataParallelExecutorGroup(net, devices, [1, 1], *shapes, weights, True, False, group)
    group.set_params({"fc_weight": mx.nd.zeros((2, 3)), "fc_bias": mx.nd.array([0, 20])}, {})
    again.forward(mx.io.DataBatch([mx.nd.ones((4, 3))], [mx.nd.zeros((4,))]), is_train=False)
    assert again.get_outputs()[0].asnumpy().round().tolist() == [[0, 1]] * 4


def test_names_and_shapes_of_inputs_are_checked():
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)
    base_module._check_input_names(net, ["data"], "data", True)
    with pytest.raises(ValueError, match=r"data_names.*'date'; did you mean 'data'"):
        base_module._check_input_names(net, ["date"], "data", True)
    with pytest.warns(UserWarning, match="label_names"):
        base_module._check_input_names(net, ["label"], "label", False)
    (data,), labels = base_module._parse_data_desc(["data"], [], [("data", (2, 3))], None)
    assert (data, data.shape, labels) == (mx.io.DataDesc("data", (2, 3)), (2, 3), None)
    assert [base_module._as_list(x) for x in (None, (1, 2), 3)] == [[None], (1, 2), [3]]


def test_there_is_no_c_library():
    assert not hasattr(base._LIB, "MXGetVersion")
    base.check_call(0)
    with pytest.raises(AttributeError, match=r"_LIB\.MXGetVersion: gnomon has no C library"):
        base.check_call(base._LIB.MXGetVersion())
    with pytest.raises(GnomonError, match="check_call"):
        base.check_call(-1)
    assert base.mx_uint(3).value == 3 and base.mx_float(0.5).value == 0.5
