"""Bound graphs on a GPU: one program with planned memory, equal to the processor's."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, config, gluon, nd
from gnomon.executor.executor import Executor
from gnomon.ndarray.remote import way
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.runtime.kernels.gpu_program import GpuProgram
from tests.executor.test_random_graphs import SHAPE, Grower

G, CPU = mx.gpu(0), mx.cpu()
STEPS = 3  # the first gives launches one by one, the second captures them, the third launches
TOLERANCE = 2e-5  # sums of a few dozen float32 in another order


def close(found, want, bound=TOLERANCE):
    assert len(found) == len(want)
    for ours, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(ours, theirs, bound, bound)


def filled(executor, seed=0):
    """The same numbers in every argument, wherever it lies."""
    numbers = np.random.RandomState(seed)
    for name, array in sorted(executor.arg_dict.items()):
        whole = name.endswith(("label", "words"))
        given = numbers.randint(0, 3, array.shape) if whole else numbers.randn(*array.shape) * 0.4
        array[:] = given.astype(np.float32)
    for name, array in sorted(executor.aux_dict.items()):
        array[:] = float(name.endswith("var"))
    return executor


def arrays_of(executor):
    grads = [g for g in executor.grad_arrays if g is not None]
    return [x.asnumpy() for x in (*executor.outputs, *grads, *executor.aux_arrays)]


def trained(symbol, ctx, shapes, steps=STEPS, apart=True, **options):
    """What a few steps leave in outputs, gradients and states, and what is predicted behind them.

    `apart`: forward and backward as two calls, else as one.
    """
    mx.random.seed(5)
    bound = filled(symbol.simple_bind(ctx, **options, **shapes))
    assert type(bound) is Executor
    numbers, found = np.random.RandomState(1), []
    heads = [nd.array(numbers.randn(*x.shape), ctx=ctx) for x in bound.outputs]
    fed = next(iter(shapes))
    for _ in range(steps):
        given = nd.array(numbers.randint(0, 3, shapes[fed]).astype(np.float32))
        if apart:
            bound.forward(is_train=True, **{fed: given})
            bound.backward(heads)
        else:
            bound.forward_backward([(bound.arg_dict[fed], given)])
        found += arrays_of(bound)
    for _ in range(2):
        found += [x.asnumpy() for x in bound.forward()]
    return found


def var(name):
    return mx.sym.Variable(name)


def mlp():
    net = mx.sym.FullyConnected(var("data"), num_hidden=5)
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="relu"), num_hidden=3)
    return mx.sym.SoftmaxOutput(net, name="softmax"), {"data": (4, 6)}


def convolutions():
    net = mx.sym.Convolution(var("data"), num_filter=3, kernel=(3, 3), pad=(1, 1), name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, fix_gamma=False), act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.Pooling(net, kernel=(2, 2), pool_type="avg", global_pool=True)
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=3)
    return mx.sym.SoftmaxOutput(net, name="softmax"), {"data": (2, 2, 6, 6)}


def cells():
    words = mx.sym.Embedding(var("words"), input_dim=4, output_dim=3)
    outputs, _ = mx.rnn.GRUCell(3, prefix="g_").unroll(2, words, merge_outputs=True, layout="NTC")
    return mx.sym.sum(outputs, axis=1), {"words": (2, 2)}


def several_outputs():
    left, right = mx.sym.SliceChannel(var("data"), num_outputs=2, axis=1)
    both = mx.sym.Concat(left * right, mx.sym.exp(right), dim=1)
    return mx.sym.Group([mx.sym.BlockGrad(left), both, right.sum()]), {"data": (3, 4)}


def dropout():
    net = mx.sym.Dropout(mx.sym.tanh(var("data")), p=0.4)
    return mx.sym.Dropout(mx.sym.FullyConnected(net, num_hidden=6), p=0.5), {"data": (4, 6)}


def shared_arguments():
    weight = var("w")
    net = mx.sym.FullyConnected(var("data"), weight, no_bias=True, num_hidden=4)
    net = mx.sym.FullyConnected(mx.sym.tanh(net), weight, no_bias=True, num_hidden=4)
    return mx.sym.broadcast_add(net, mx.sym.sum(weight, axis=0)), {"data": (3, 4)}


def constants():
    table = mx.sym.dot(mx.sym.ones((4, 4)), mx.sym.arange(16).reshape((4, 4)))
    return mx.sym.broadcast_add(var("data"), mx.sym.sum(table, axis=0)), {"data": (3, 4)}


NETS = [mlp, convolutions, cells, several_outputs, dropout, shared_arguments, constants]


@pytest.mark.parametrize("make", NETS)
def test_networks(make):
    symbol, shapes = make()
    close(trained(symbol, G, shapes), trained(symbol, CPU, shapes))


def test_both_passes_as_one_call_that_adds_gradients():
    symbol, shapes = mlp()
    found, want = (trained(symbol, ctx, shapes, apart=False, grad_req="add") for ctx in (G, CPU))
    close(found, want)
    symbol, shapes = shared_arguments()
    requests = {"data": "write", "w": "add"}
    found, want = (trained(symbol, ctx, shapes, grad_req=requests) for ctx in (G, CPU))
    close(found, want)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_graphs(seed):
    net = Grower(seed, "float32").network()
    shapes = {"x": SHAPE, "y": SHAPE}
    found, want = (trained(net, ctx, shapes, steps=2) for ctx in (G, CPU))
    largest = max(np.abs(v).max(initial=0) for v in want)
    for ours, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(ours, theirs, 2e-3, 3e-5 * largest)


# --- what is done ---------------------------------------------------------------------------------


def counted(monkeypatch, name):
    """How often a call of the driver is made from now on."""
    calls = []
    real = getattr(Simulated, name)

    def noted(self, *given):
        calls.append(name)
        return real(self, *given)

    monkeypatch.setattr(Simulated, name, noted)
    return calls


def test_a_program_is_one_launch_of_a_graph(monkeypatch):
    symbol, shapes = mlp()
    bound = filled(symbol.simple_bind(G, **shapes))
    kernels, graphs = counted(monkeypatch, "launch"), counted(monkeypatch, "launch_graph")
    bound.forward_backward()
    first = len(kernels)
    assert first > 5 and not graphs
    bound.forward_backward()  # captured: the kernels are recorded, not launched
    assert (len(kernels), len(graphs)) == (2 * first, 1)
    for _ in range(3):
        bound.forward_backward()
    assert (len(kernels), len(graphs)) == (2 * first, 4)


def test_memory_is_planned():
    net = var("data")
    for _ in range(6):
        net = mx.sym.softmax(net * 2.0)
    bound = filled(net.simple_bind(G, data=(8, 16), grad_req="null"))
    plan = bound.memory_plan()
    assert plan.total <= 2 * 8 * 16 * 4 < plan.unshared
    assert bound.arena.room(G).storage.device == "gpu(0)"
    np.testing.assert_allclose(bound.forward()[0].asnumpy().sum(1), 1, 1e-5)
    assert "bytes between operators" in bound.debug_str()


def test_graphs_go_with_their_programs(monkeypatch):
    made, gone = (counted(monkeypatch, word) for word in ("end_capture", "destroy_graph"))
    symbol, shapes = dropout()
    gc.collect()  # those of tests before
    mx.nd.waitall()
    made.clear()
    gone.clear()
    trained(symbol, G, shapes)
    gc.collect()
    mx.nd.waitall()  # what died is released with what is done next
    assert len(made) == len(gone) == 3  # training forwards and backwards, and predicting


# --- parts that the processor does ----------------------------------------------------------------


class Doubling(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2 + aux[0])
        aux[0][:] = aux[0] + 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("doubling_in_a_program")
class DoublingProp(mx.operator.CustomOpProp):
    def list_auxiliary_states(self):
        return ["turns"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return Doubling()


def custom():
    net = mx.sym.Custom(mx.sym.tanh(var("data")), op_type="doubling_in_a_program", name="own")
    return mx.sym.FullyConnected(mx.sym.sigmoid(net), num_hidden=2), {"data": (3, 4)}


def sorting():
    return mx.sym.exp(mx.sym.sort(var("data") * 0.3, axis=1)) * 2.0, {"data": (3, 4)}


def recurrent():
    net = mx.sym.RNN(mx.sym.tanh(var("data")), state_size=3, num_layers=1, mode="gru", name="rnn")
    return mx.sym.relu(net), {"data": (2, 2, 3)}


def looked_up():
    return mx.sym.gather_nd(var("data") * 2.0, mx.sym.ones((2, 3))) + 1.0, {"data": (3, 4)}


def loop():
    def body(x, total):
        return x * total, total + x

    outputs, _ = mx.sym.contrib.foreach(body, var("data") * 0.5, mx.sym.ones((4,)))
    return mx.sym.tanh(outputs), {"data": (3, 4)}


TOLD = {
    custom: ["Custom", "_backward_Custom"],
    sorting: [],
    recurrent: [],
    looked_up: [],
    loop: ["_foreach", "_backward__foreach"],
}


@pytest.mark.parametrize("make", TOLD)
def test_operators_that_the_processor_does(make, caplog, monkeypatch):
    monkeypatch.setattr(way, "_told", set())
    symbol, shapes = make()
    close(trained(symbol, G, shapes), trained(symbol, CPU, shapes))
    told = [r.message for r in caplog.records if "runs on the processor" in r.message]
    names = [text.split(":")[0] for text in told]
    assert names == TOLD[make]


def test_a_gradient_that_the_processor_adds():
    symbol, shapes = custom()
    alone = mx.sym.Custom(var("data"), op_type="doubling_in_a_program")
    for net in (symbol, alone):
        found, want = (trained(net, ctx, shapes, grad_req="add") for ctx in (G, CPU))
        close(found, want)


def test_an_index_out_of_bounds_is_refused():
    bound = mx.sym.gather_nd(var("data"), var("at")).simple_bind(G, data=(3,), at=(1, 2))
    bound.arg_dict["at"][:] = nd.array([[1, 7]], ctx=G)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        bound.forward()[0].asnumpy()


# --- executors ------------------------------------------------------------------------------------


def test_reshape_and_parameters():
    symbol, _ = mlp()
    found = []
    for ctx in (G, CPU):
        wide = filled(symbol.simple_bind(ctx, data=(4, 6)))
        narrow = wide.reshape(data=(2, 6), partial_shaping=True)
        assert type(narrow) is Executor and narrow.arena is wide.arena
        given = {"fullyconnected0_bias": nd.ones((5,))}
        names = [n for n in wide.arg_dict if n.endswith("bias")]
        wide.copy_params_from({names[0]: given.popitem()[1]})
        for _ in range(STEPS):
            for bound in (wide, narrow):
                bound.forward(is_train=True)
                bound.backward()
                found.append((ctx, arrays_of(bound)))
    half = len(found) // 2
    for (_, ours), (_, theirs) in zip(found[:half], found[half:], strict=True):
        close(ours, theirs)


def test_two_executors_in_one_memory():
    symbol, shapes = mlp()
    small = {"data": (2, 6)}
    found = []
    for ctx in (G, CPU):
        first = filled(symbol.simple_bind(ctx, **shapes))
        second = symbol.simple_bind(ctx, shared_exec=first, **small)
        assert second.arena is first.arena
        for _ in range(STEPS):
            first.forward(is_train=True)
            second.forward(is_train=True, data=first.arg_dict["data"][:2])
            first.backward()  # its forward pass is done again: the other one came between
            found.append(arrays_of(first) + arrays_of(second))
    for ours, theirs in zip(found[:STEPS], found[STEPS:], strict=True):
        close(ours, theirs)


def test_a_monitor_sees_every_operator():
    symbol, shapes = mlp()
    seen = []
    for ctx in (G, CPU):
        bound, rows = filled(symbol.simple_bind(ctx, **shapes)), []
        bound.set_monitor_callback(lambda name, array, rows=rows: rows.append((name, array)), True)
        bound.forward(is_train=True)
        bound.backward()
        assert all(array.context == ctx for _, array in rows)
        seen.append(rows)
    assert len(seen[0]) == len(seen[1]) > 20
    close([x.asnumpy() for _, x in seen[0]], [x.asnumpy() for _, x in seen[1]])


def test_weights_with_a_normalization_in_them():
    """Predicting folds it into the layer before, whenever a parameter has changed."""
    symbol, shapes = convolutions()
    bound, want = (filled(symbol.simple_bind(c, **shapes, grad_req="null")) for c in (G, CPU))
    for k in range(3):
        for each in (bound, want):
            each.arg_dict["conv_weight"][:] = each.arg_dict["conv_weight"] * (k + 1)
            each.forward()
        close(arrays_of(bound), arrays_of(want))
    assert bound.memory_plan(False).kept > 0


def test_without_passes_or_programs():
    symbol, shapes = convolutions()
    want = trained(symbol, CPU, shapes)
    with config.using(passes=False):
        close(trained(symbol, G, shapes), want)
    with config.using(programs=False):
        close(trained(symbol, G, shapes), want)


def test_blocks_that_feed_a_program_twice():
    """A hybridized block called twice before it is differentiated; states and dropout inside."""
    found = []
    for ctx in (G, CPU):
        mx.random.seed(3)
        np.random.seed(3)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.4))
        net.initialize(mx.init.Xavier(), ctx=ctx)
        net(nd.zeros((3, 5), ctx=ctx))
        net.hybridize()
        mx.random.seed(4)  # dropout's numbers are those of the device
        x = nd.array(np.random.RandomState(0).randn(3, 5), ctx=ctx)
        x.attach_grad()
        rows = []
        for _ in range(STEPS):
            with autograd.record():
                y = net(x) + net(2 * x).sum()
            y.backward()
            rows += [y.asnumpy(), x.grad.asnumpy()]
            rows += [p.grad(ctx).asnumpy() for p in net.collect_params().values() if p._grad]
        found.append([*rows, net(x).asnumpy()])
    close(*found)


def test_programs_hold_no_more_than_they_say(monkeypatch):
    """Words that are too many for an entry are sent once, not at each run."""
    made = []
    real = GpuProgram.__init__

    def noted(self, *given):
        real(self, *given)
        made.append(self)

    monkeypatch.setattr(GpuProgram, "__init__", noted)
    many = mx.sym.add_n(*[var(f"x{k}") * float(k) for k in range(80)])
    bound = many.simple_bind(G, **{f"x{k}": (3,) for k in range(80)}, grad_req="null")
    for array in bound.arg_arrays:
        array[:] = 1
    copies = counted(monkeypatch, "copy")
    for _ in range(STEPS):
        bound.forward()
    assert not copies and len(made) == 1
    np.testing.assert_allclose(bound.outputs[0].asnumpy(), sum(range(80)), 1e-6)


# --- updates, and copies --------------------------------------------------------------------------


def test_an_update_of_weights_that_stay_is_one_launch(monkeypatch):
    shapes = (3, 4), (5,), (2, 3)
    found = []
    for ctx in (G, CPU):
        optimizer = mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9)
        updater = mx.optimizer.get_updater(optimizer)
        weights, grads = ([nd.ones(s, ctx=ctx) * k for s in shapes] for k in (1, 2))
        kernels, graphs = counted(monkeypatch, "launch"), counted(monkeypatch, "launch_graph")
        for k in range(5):
            optimizer.lr = 0.5 / (k + 1)
            updater([0, 1, 2], grads, weights)
        if ctx == G:
            # twice each update one by one, and once to be captured; states are zeros of the device
            assert (len(kernels), len(graphs)) == (3 * len(shapes), 3)
        updater([0, 1, 2], grads, [w.copy() for w in weights])  # elsewhere: not the same graph
        assert len(graphs) == (3 if ctx == G else 0)
        found.append([w.asnumpy() for w in weights])
    close(*found)


def test_copies_of_one_layout_are_copies_of_bytes(monkeypatch):
    source = nd.array(np.arange(6.0).reshape(2, 3))
    dest, again = (nd.zeros((2, 3), ctx=G) for _ in range(2))
    kernels, copies = counted(monkeypatch, "launch"), counted(monkeypatch, "copy")
    way.move(source, dest)
    way.move(dest, again)
    assert (len(kernels), len(copies)) == (0, 2)
    source[:] = 7  # after the copy, whenever that is done
    np.testing.assert_array_equal(again.asnumpy(), np.arange(6.0).reshape(2, 3))
    rows = nd.array(np.arange(4.0), ctx=G)
    way.move(rows[:2], rows[2:])
    assert rows.asnumpy().tolist() == [0, 1, 0, 1]
    way.move(rows, there := nd.zeros((4,), ctx=mx.gpu(1)))
    assert there.asnumpy().tolist() == [0, 1, 0, 1]
