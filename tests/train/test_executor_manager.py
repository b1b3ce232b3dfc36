"""`mx.executor_manager`: what programs older than `mx.mod` train with."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ParamError

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
