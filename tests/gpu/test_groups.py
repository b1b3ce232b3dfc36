"""`group2ctx`: networks whose parts are on several GPUs, or on the processor and a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import DeviceError
from gnomon.executor.stepwise import StepwiseExecutor

G, H, CPU = mx.gpu(0), mx.gpu(1), mx.cpu()
PLACES = [(G, H, G), (CPU, G, CPU), (G, CPU, H), (G, G, CPU)]  # of both groups, and of the rest


def group(name):
    return mx.AttrScope(ctx_group=name)


def mlp(dropped=0.5):
    with group("one"):
        x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
        x = mx.sym.Dropout(mx.sym.Activation(x, act_type="relu"), p=dropped)
    with group("two"):
        x = mx.sym.FullyConnected(x, num_hidden=3, no_bias=True, name="fc2")
        x = mx.sym.BatchNorm(x, name="bn")
        return mx.sym.SoftmaxOutput(x, name="softmax")


def recurrent(steps=3):
    """Two layers over a few steps, each on a device of its own, with a shared decoder."""
    embedding, label = mx.sym.Variable("embed_weight"), mx.sym.Variable("label")
    states = [mx.sym.Variable("first"), mx.sym.Variable("second")]
    with group("one"):
        x = mx.sym.Embedding(mx.sym.Variable("data"), embedding, input_dim=7, output_dim=4)
        rows = mx.sym.split(x, num_outputs=steps, axis=1, squeeze_axis=True)
    weights = [mx.sym.Variable(f"w{k}") for k in range(2)]
    outputs = []
    for step in range(steps):
        x = rows[step]
        for k, name in enumerate(("one", "two")):
            with group(name):
                joined = mx.sym.concat(x, states[k], dim=1)
                x = states[k] = mx.sym.tanh(mx.sym.dot(joined, weights[k]))
        outputs.append(x)
    with group("two"):
        x = mx.sym.FullyConnected(mx.sym.concat(*outputs, dim=0), num_hidden=7, name="decode")
        return mx.sym.SoftmaxOutput(x, mx.sym.reshape(label, shape=(-1,)), name="softmax")


def filled(bound):
    """The arguments get numbers, which depend on their names alone."""
    for name, array in bound.arg_dict.items():
        numbers = np.random.RandomState(len(name)).randn(*array.shape)
        array[:] = abs(numbers).round() % 3 if name in ("data", "label") else numbers
    return bound


def values(bound):
    tables = bound.output_dict | bound.grad_dict | bound.aux_dict
    return {name: x.asnumpy() for name, x in tables.items()}


def stepped(bound, heads=None):
    """What a few passes leave, with gradients that add up, and then a prediction."""
    mx.random.seed(5)
    for _ in range(3):
        bound.forward(is_train=True)
        bound.backward(heads)
    found = values(bound)
    bound.forward(is_train=False)
    return found | {"predicted": bound.outputs[0].asnumpy()}


def close(found, want):
    assert found.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, 1e-5, 1e-5, err_msg=name)


@pytest.mark.parametrize(("one", "two", "rest"), PLACES)
@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_network_on_several_devices(one, two, rest, request_):
    groups = {"one": one, "two": two}
    kinds = dict.fromkeys(mlp().list_arguments(), request_)
    bound = mlp().simple_bind(rest, kinds, group2ctx=groups, data=(16, 6))
    assert isinstance(bound, StepwiseExecutor)
    for table in (bound.arg_dict, bound.grad_dict, bound.aux_dict):
        for name, array in table.items():
            assert array.context == (one if name in ("data", "fc1_weight", "fc1_bias") else two)
    assert bound.outputs[0].context == two
    alone = mlp().simple_bind(CPU, kinds, data=(16, 6))
    close(stepped(filled(bound)), stepped(filled(alone)))
    found, want = (filled(x.reshape(partial_shaping=True, data=(12, 6))) for x in (bound, alone))
    close(stepped(found), stepped(want))


@pytest.mark.parametrize(("one", "two", "rest"), PLACES)
def test_layers_of_a_recurrent_network(one, two, rest):
    shapes = {"data": (2, 3), "label": (3, 2), "first": (2, 4), "second": (2, 4)}
    shapes |= {"w0": (8, 4), "w1": (8, 4)}
    found = []
    for groups in ({"one": one, "two": two}, {}):
        ctx = rest if groups else CPU
        bound = filled(recurrent().simple_bind(ctx, group2ctx=groups, **shapes))
        found.append(stepped(bound))
    close(*found)


def test_gradients_of_outputs_come_from_anywhere():
    with group("one"):
        a = mx.sym.Variable("a") * 2
    with group("two"):
        net = mx.sym.exp(a) + mx.sym.Variable("b")
    groups, found = {"one": G, "two": H}, []
    for ctx in (H, CPU):
        args = {"a": nd.array([1, 2], ctx=G), "b": nd.array([3, 4], ctx=H)}
        grads = {"a": nd.zeros((2,), ctx=G), "b": nd.zeros((2,), ctx=H)}
        bound = net.bind(G, args, grads, group2ctx=groups)
        bound.forward(is_train=True, a=nd.array([0, 1], ctx=ctx))
        bound.backward(nd.array([1, 3], ctx=ctx))
        found.append(values(bound))
    close(*found)
    np.testing.assert_allclose(found[0]["a"], [2, 6 * np.exp(2)], 1e-6)
    grads["b"] = nd.zeros((2,), ctx=G)
    with pytest.raises(DeviceError, match=r"args_grad\[b\].*an array on gpu\(1\), got one on gpu"):
        net.bind(G, args, grads, group2ctx=groups)


def test_states_are_where_their_operator_is():
    with group("one"):
        x = mx.sym.Variable("x") * 2
    with group("two"):
        net = mx.sym.BatchNorm(x, name="bn")
    args = {
        "x": nd.ones((4, 3), ctx=G),
        **{f"bn_{n}": nd.ones(3, ctx=H) for n in ("gamma", "beta")},
    }
    for ctx in (H, G, CPU):
        aux = {f"bn_moving_{n}": nd.ones(3, ctx=ctx) for n in ("mean", "var")}
        groups = {"one": G, "two": H}
        if ctx == H:
            grads = {"x": nd.zeros((4, 3), ctx=G)}
            bound = net.bind(G, args, grads, aux_states=aux, group2ctx=groups)
            (out,) = bound.forward(is_train=True)
            bound.backward(out)
            assert out.context == H and aux["bn_moving_mean"].asnumpy().tolist() != [1, 1, 1]
            continue
        told = rf"bn_moving_mean.*gpu\(1\), as operator 'bn' is, got one on {ctx.device_type}"
        with pytest.raises(DeviceError, match=told):
            net.bind(G, args, aux_states=aux, group2ctx=groups)


def test_one_gpu_for_all_groups_is_a_program():
    groups = {"one": G, "two": G}
    bound = mlp().simple_bind(G, group2ctx=groups, data=(16, 6))
    assert bound.memory_plan().total
    close(stepped(filled(bound)), stepped(filled(mlp().simple_bind(CPU, data=(16, 6)))))


def test_copies_are_told_and_there_is_no_plan():
    bound = mlp().simple_bind(G, group2ctx={"one": G, "two": H}, data=(16, 6))
    told = []
    bound.set_monitor_callback(lambda name, array: told.append((name, array.context)))
    bound.forward()
    assert ("softmax_output", H) in told
    assert bound.debug_str().count("_CrossDeviceCopy") == 1
    with pytest.raises(mx.MXNetError, match="memory_plan: arrays are sparse or on several devices"):
        bound.memory_plan()


@pytest.mark.parametrize(
    ("contexts", "groups"), [([G], {"one": G, "two": H}), ([G, H], {"one": [G, H], "two": [H, G]})]
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_modules(contexts, groups, optimizer):
    numbers = np.random.RandomState(0).randn(32, 6).astype(np.float32)
    batches = mx.io.NDArrayIter(numbers, (numbers.sum(1) > 0) * 2.0, batch_size=16)
    found = []
    for places in (contexts, [mx.cpu(k) for k in range(len(contexts))]):
        mx.random.seed(1)
        np.random.seed(1)
        groups_there = groups if places is contexts else None
        module = mx.mod.Module(mlp(0.0), context=places, group2ctxs=groups_there)
        module.fit(batches, num_epoch=2, optimizer=optimizer, initializer=mx.init.Xavier())
        tables = module.get_params()
        found.append({n: x.asnumpy() for table in tables for n, x in table.items()})
    close(*found)


def test_sparse_arrays_go_from_one_context_to_another():
    x, w = mx.sym.Variable("x", stype="csr"), mx.sym.Variable("w")
    with group("one"):
        net = mx.sym.dot(x, w)
    with group("two"):
        net = net * 2
    found = []
    for groups in ({"one": mx.cpu(1), "two": G}, {}):
        bound = net.simple_bind(CPU, group2ctx=groups, x=(3, 4), w=(4, 2))
        bound.arg_dict["x"][:] = nd.array(np.eye(3, 4)).tostype("csr")
        bound.arg_dict["w"][:] = np.arange(8).reshape(4, 2)
        found.append(stepped(bound, nd.ones((3, 2))))
    close(*found)
