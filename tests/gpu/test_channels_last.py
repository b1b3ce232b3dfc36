"""Networks of 16 bits on a GPU, laid out with the channels last: what turns, and equal numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import autograd, gluon, nd
from gnomon import dtype as dtypes
from gnomon.contrib import amp
from gnomon.executor.report.profile import planned_tasks
from gnomon.expr.call.pool import Winner
from gnomon.gluon import nn
from gnomon.graph import infer
from gnomon.graph.node import Entry, Graph, Node, variable
from gnomon.graph.passes.channels_last import WeightLast, channels_last
from gnomon.graph.typed_graph import Purpose, TypedGraph
from gnomon.ops import registry
from gnomon.ops.nn.convolution import WeightFirst
from gnomon.runtime.devices.cuda.simulated import Simulated
from gnomon.shape import channels_last as strides_last

pytestmark = pytest.mark.filterwarnings("ignore:.*the weight is float16")  # it is meant to be here

G, CPU = mx.gpu(0), mx.cpu()
STEPS = 3  # launches one by one, captured, launched as a graph
HALF, BRAIN = dtypes.float16, dtypes.bfloat16


# --- which convolutions ---------------------------------------------------------------------------


def passed(dtype=HALF, differentiate=True, filters=4, **params):
    """The pass's result for a convolution of 4 channels, and what it was given."""
    sizes = {"kernel": (3, 3), "num_filter": filters, "no_bias": True, **params}
    op = registry.find("Convolution").parse(sizes)
    data, weight = variable("x"), variable("w")
    graph = Graph([Entry(Node(op, "c", (data, weight)), 0)])
    shapes = infer.shapes(graph, {data.node: (2, 4, *(6, 5, 4)[: len(op.kernel)])})
    types = infer.types(graph, dict.fromkeys(graph.variables, dtype))
    typed = TypedGraph(graph, shapes, types)
    return channels_last(typed, Purpose(differentiate, differentiate, "gpu(0)")), typed


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_of_16_bits_are_turned_with_their_weights(dtype, groups):
    found, _ = passed(dtype, num_group=groups)
    nodes = {n.name: n for n in found.graph.topo}
    turned = {"x_channels_last", "c", "c_channels_first"}
    if groups == 4:  # a weight of one channel a group lies both ways
        assert type(nodes["c"].op) is WeightFirst
    else:
        turned.add("w_channels_last")
        assert found.shapes[nodes["c"].inputs[1]] == (4, 3, 3, 4 // groups)
    assert {n.name for n in found.graph.topo if n.op is not None} == turned
    assert nodes["c"].op.layout == "NHWC"


@pytest.mark.parametrize(
    ("dtype", "params"),
    [(dtypes.float32, {}), (dtypes.float64, {}), (HALF, {"kernel": (3,)}),
     (HALF, {"kernel": (2, 2, 2)})],
)  # fmt: skip
def test_others_stay(dtype, params):
    found, given = passed(dtype, **params)
    assert found is given


def test_all_stay_without_the_library(monkeypatch):
    monkeypatch.setattr(Simulated, "dnn", lambda driver: None)
    found, given = passed()
    assert found is given


@pytest.mark.parametrize(("kernel", "kept"), [((3, 3), True), ((1, 1), False)])
def test_predictions_keep_weights_turned(kernel, kept):
    found, _ = passed(differentiate=False, kernel=kernel)
    kinds = [type(n.op) for n in found.graph.topo]
    assert (WeightLast in kinds) is kept
    assert (WeightFirst in kinds) is not kept


# --- networks -------------------------------------------------------------------------------------


def layer(x, filters, size=1, stride=1, act=True, bias=True, **params):
    """A convolution, its normalization and rectifier."""
    x = mx.sym.Convolution(
        x, num_filter=filters, kernel=(size, size), stride=(stride, stride),
        pad=(size // 2, size // 2), no_bias=not bias, **params,
    )  # fmt: skip
    x = mx.sym.BatchNorm(x, fix_gamma=False, momentum=0.5)
    return mx.sym.Activation(x, act_type="relu") if act else x


def classified(x, classes=5):
    x = mx.sym.Cast(mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=classes), dtype="float32")
    return mx.sym.SoftmaxOutput(x, name="softmax", normalization="batch")


def lenet(x):
    for filters in (4, 6):
        x = mx.sym.Convolution(x, num_filter=filters, kernel=(3, 3))
        x = mx.sym.Activation(x, act_type="tanh")
        x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    return classified(x)


def pooled(x):
    return mx.sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg")


def resnet(x):
    x = layer(x, 8, 3, 2, bias=False)
    x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    y = layer(layer(x, 4, bias=False), 4, 3, bias=False)
    y = layer(y, 16, act=False, bias=False)
    y = mx.sym.Activation(y + layer(x, 16, act=False, bias=False), act_type="relu")
    return classified(pooled(y))


def mobile(x):
    x = layer(x, 8, 3, 2, bias=False)
    for filters, stride in ((8, 1), (16, 2)):
        channels = 8 if stride == 1 else filters // 2
        x = layer(layer(x, channels, 3, stride, num_group=channels, bias=False), filters)
    return classified(pooled(x))


def inception(x):
    """Joined branches, groups, dilation, means; something that does not go along."""
    x = layer(x, 6, 3)
    mean = mx.sym.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type="avg")
    x = mx.sym.Concat(layer(x, 4, num_group=2), mean, layer(x, 2, 3, num_group=2), dim=1)
    x = mx.sym.UpSampling(x, scale=2, sample_type="nearest", num_args=1)
    x = mx.sym.Convolution(x, num_filter=3, kernel=(3, 2), stride=(2, 3), dilate=(2, 1))
    return classified(mx.sym.LeakyReLU(x, act_type="elu"))


def odd(x):
    """Windows of one axis, data that becomes one pixel, a single channel."""
    x = mx.sym.Convolution(x, num_filter=1, kernel=(1, 5), stride=(3, 2), pad=(0, 1))
    x = mx.sym.Convolution(x, num_filter=3, kernel=(3, 1))
    x = mx.sym.Pooling(x, kernel=(1, 4), pool_type="avg", pad=(0, 2), count_include_pad=False)
    return classified(mx.sym.Convolution(mx.sym.tanh(x), num_filter=4, kernel=(1, 3)))


NETS = {
    "lenet": (lenet, (3, 1, 14, 14)),
    "resnet": (resnet, (3, 3, 13, 16)),
    "mobile": (mobile, (3, 3, 16, 15)),
    "inception": (inception, (2, 3, 7, 6)),
    "odd": (odd, (2, 2, 9, 11)),
}


def network(name, dtype="float16"):
    """A network, whose layers have the same names each time, and the shape of its data."""
    make, shape = NETS[name]
    with mx.name.NameManager():
        data = mx.sym.Variable("data")
        return make(data if dtype is None else mx.sym.Cast(data, dtype=dtype)), shape


def bound(name, ctx, dtype="float16", **options):
    net, shape = network(name, dtype)
    return filled(net.simple_bind(ctx, data=shape, softmax_label=shape[:1], **options))


def filled(executor):
    numbers = np.random.RandomState(0)
    for key, array in sorted(executor.arg_dict.items()):
        given = numbers.randn(*array.shape)
        if key.endswith("weight"):
            given *= (2 / np.prod(array.shape[1:])) ** 0.5
        array[:] = given % 5 // 1 if key == "softmax_label" else given
    for key, array in sorted(executor.aux_dict.items()):
        array[:] = float(key.endswith("var"))
    return executor


def trained(executor):
    """What a few steps with updates leave: outputs, gradients, weights and states."""
    found = []
    for _ in range(STEPS):
        executor.forward_backward()
        found += [x.asnumpy() for x in (*executor.outputs, *executor.aux_arrays)]
        found += [g.asnumpy() for g in executor.grad_arrays if g is not None]
        for x, g in zip(executor.arg_arrays, executor.grad_arrays, strict=True):
            if g is not None:
                x -= 0.05 * g.astype(x.dtype)
    return [*found, *(x.asnumpy() for x in executor.arg_arrays)]


def agree(found, want, bound):
    for ours, theirs in zip(found, want, strict=True):
        scale = max(1.0, float(np.abs(theirs.astype("float32")).max()))
        np.testing.assert_allclose(
            ours.astype("float32"), theirs.astype("float32"), rtol=bound, atol=bound * scale
        )


@pytest.mark.parametrize("name", NETS)
def test_networks_train_to_the_numbers_of_the_processor(asked, name):
    agree(trained(bound(name, G)), trained(bound(name, CPU)), 2e-2)
    assert len(asked) > 4
    assert all(what.last or 1 in what.shapes[0][1:] for what in asked)


def test_float32_stays_as_it_is(asked):
    agree(trained(bound("resnet", G, "float32")), trained(bound("resnet", CPU, "float32")), 1e-4)
    assert not any(what.last for what in asked)


@pytest.mark.parametrize("name", ["lenet", "mobile"])
def test_bfloat16(asked, name):
    found = [trained(bound(name, ctx, "bfloat16")) for ctx in (G, CPU)]
    agree(*found, 1e-1)
    assert asked and all(what.last and what.dtype is BRAIN for what in asked)


def test_gradients_are_added():
    found = []
    for ctx in (G, CPU):
        executor = bound("resnet", ctx, grad_req="add")
        for grad in executor.grad_arrays:
            if grad is not None:
                grad[:] = 1
        executor.forward_backward()
        found.append([g.asnumpy() for g in executor.grad_arrays if g is not None])
    agree(*found, 2e-2)


def test_predictions_follow_weights():
    """Weights that a program keeps turned are turned again when they change."""
    found = []
    for ctx in (G, CPU):
        executor, values = bound("mobile", ctx, grad_req="null"), []
        weights = [x for n, x in executor.arg_dict.items() if n.endswith("weight")]
        for _ in range(3):
            values += [executor.forward()[0].asnumpy() for _ in range(3)]
            for array in weights:
                array *= 0.5
        found.append(values)
    agree(*found, 1e-2)
    assert np.abs(found[0][0] - found[0][-1]).max() > 0.01


def modules(ctx):
    """The weights of a Module after a few updates, and what it predicts."""
    net, shape = network("lenet")
    module = mx.mod.Module(net, context=ctx)
    module.bind([("data", shape)], [("softmax_label", shape[:1])])
    mx.random.seed(2)
    module.init_params(mx.init.Xavier())
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    numbers = np.random.RandomState(0)
    for _ in range(STEPS):
        data = nd.array(numbers.randn(*shape))
        batch = mx.io.DataBatch([data], [nd.array(numbers.randint(0, 5, shape[:1]))])
        module.forward_backward(batch)
        module.update()
    module.forward(batch, is_train=False)
    weights = [x.asnumpy() for _, x in sorted(module.get_params()[0].items())]
    return [*weights, module.get_outputs()[0].asnumpy()]


def test_module(asked):
    agree(modules(G), modules(CPU), 2e-2)
    assert all(what.last for what in asked)


def blocks(ctx):
    """The weights of a hybridized block after a few steps."""
    mx.random.seed(3)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(2, 2))
    net.add(nn.Conv2D(4, 3, strides=2), nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(3))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.cast("float16")
    net.hybridize(static_alloc=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss, numbers = gluon.loss.L2Loss(), np.random.RandomState(0)
    for _ in range(STEPS):
        x, y = (nd.array(numbers.randn(*s), ctx, "float16") for s in ((2, 3, 12, 13), (2, 3)))
        with autograd.record():
            found = loss(net(x), y)
        found.backward()
        trainer.step(2)
        guessed = net(x)
    return [
        found.asnumpy(),
        guessed.asnumpy(),
        *(p.data(ctx).asnumpy() for p in net.collect_params().values()),
    ]


def test_hybridized_blocks(asked):
    agree(blocks(G), blocks(CPU), 2e-2)
    assert asked and all(what.last for what in asked)


def test_mixed_precision(asked):
    """Casts of data and weights go before what turns them."""
    net, shape = network("resnet", None)
    net, found = amp.convert_symbol(net, target_dtype="float16"), []
    for ctx in (G, CPU):
        executor = net.simple_bind(ctx, data=shape, softmax_label=shape[:1])
        found.append(trained(filled(executor)))
    agree(*found, 2e-2)
    assert asked and all(what.last for what in asked)


# --- what turns -----------------------------------------------------------------------------------


def turning(executor):
    """How many steps of training there are, and how many do nothing but turn."""
    run = executor._run(executor._mode(True))
    steps, turns = [], []
    for row in planned_tasks(run, "forward and backward"):
        steps += row.steps
        views = all(s is not None for s in row.task.form.seen)
        turns += [s for s in row.steps if s.name == "copy" or views]
    return len(steps), len(turns)


@pytest.mark.parametrize(
    ("name", "steps", "turns"),
    [
        ("lenet", 29, 2),  # the second weight, and its gradient
        ("resnet", 72, 4),  # two weights of 3 by 3 and their gradients; data where it is cast
        ("mobile", 73, 2),  # the first weight and its gradient
    ],
)
def test_what_turns_stands_at_the_borders(name, steps, turns):
    assert turning(bound(name, G)) == (steps, turns)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_is_written_with_channels_last_turns_nothing(dtype):
    x = mx.sym.Cast(mx.sym.Variable("data"), dtype=dtype)
    for number, stride in enumerate((1, 2)):
        x = mx.sym.Convolution(
            x,
            kernel=(3, 3),
            stride=(stride, stride),
            num_filter=4,
            layout="NHWC",
            num_group=number + 1,
        )
        x = mx.sym.Activation(mx.sym.BatchNorm(x, axis=3), act_type="relu")
        x = mx.sym.Pooling(x, kernel=(2, 2), pool_type=("max", "avg")[number], layout="NHWC")
    executor = classified(x).simple_bind(G, data=(2, 12, 13, 2))
    assert turning(executor)[1] == 0


def test_winners_of_windows_lie_as_their_pictures():
    executor = bound("lenet", G)
    layout = executor._run(executor._mode(True)).layout
    winners = [
        layout.buffers[task.made[0]]
        for task in layout.tasks
        if any(isinstance(n, Winner) for n in task.form.nodes)
    ]
    assert [x.shape for x in winners] == [(3, 6, 2, 2), (3, 4, 6, 6)]
    assert all(x.strides == strides_last(x.shape) for x in winners)
