"""Networks on several contexts: where arrays are, which copies there are, the same values."""

import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.base import DeviceError, MXNetError
from gnomon.executor import run

GROUPS = {"one": mx.cpu(1), "two": mx.cpu(2)}


def chain():
    a, b, c = map(mx.sym.Variable, "abc")
    with mx.AttrScope(ctx_group="one"):
        net = (a + b) * 3
    with mx.AttrScope(ctx_group="two"):
        return net + mx.sym.exp(c)


def mlp():
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1")
        x = mx.sym.Activation(x, act_type="relu", name="act")
    with mx.AttrScope(ctx_group="two"):
        x = mx.sym.BatchNorm(mx.sym.FullyConnected(x, num_hidden=3, name="fc2"), name="bn")
        return mx.sym.SoftmaxOutput(x, name="softmax")


@pytest.mark.parametrize("passes", [False, True])
def test_a_chain_over_two_contexts_equals_one(passes):
    found = []
    for groups in ({}, GROUPS):
        places = [GROUPS["one"], GROUPS["one"], GROUPS["two"]] if groups else [mx.cpu(0)] * 3
        arrays = [mx.nd.full((4, 5), k + 1, ctx=c) for k, c in enumerate(places)]
        grads = [mx.nd.zeros((4, 5), ctx=c) for c in places]
        with config.using(passes=passes):
            bound = chain().bind(mx.cpu(0), arrays, grads, group2ctx=groups)
            bound.forward(is_train=True)
            bound.backward(mx.nd.full((4, 5), 2))
        assert bound.outputs[0].context == places[2]
        assert bound.debug_str().count("Op:_CrossDeviceCopy") == (1 if groups else 0)
        found.append([x.asnumpy() for x in (*bound.outputs, *grads)])
    np.testing.assert_array_equal(*found)


def test_simple_bind_makes_arrays_where_their_readers_are():
    net = mlp()
    bound = net.simple_bind(mx.cpu(0), group2ctx=GROUPS, data=(2, 6))
    for table in (bound.arg_dict, bound.grad_dict, bound.aux_dict):
        for name, array in table.items():
            first = name in ("data", "fc1_weight", "fc1_bias")
            assert array.context == GROUPS["one" if first else "two"], name
    alone = net.simple_bind(mx.cpu(0), data=(2, 6))
    rng = np.random.default_rng(0)
    for name, array in alone.arg_dict.items():
        array[:] = rng.random(array.shape)
        bound.arg_dict[name][:] = array.as_in_context(bound.arg_dict[name].context)
    for each in (alone, bound):
        each.forward(is_train=True)
        each.backward()
    for name, array in (alone.grad_dict | alone.aux_dict | alone.output_dict).items():
        other = (bound.grad_dict | bound.aux_dict | bound.output_dict)[name]
        np.testing.assert_array_equal(array.asnumpy(), other.asnumpy(), err_msg=name)


def test_arrays_elsewhere_need_groups():
    arrays = {n: mx.nd.ones((2,), ctx=mx.cpu(int(n == "c"))) for n in "abc"}
    expected = r"bind: argument 'args\[c\]': expected an array on cpu\(0\), got one on cpu\(1\)"
    with pytest.raises(DeviceError, match=expected):
        chain().bind(mx.cpu(0), arrays)
    grads = {"a": mx.nd.ones((2,), ctx=mx.cpu(3))}
    with pytest.raises(DeviceError, match=r"args_grad\[a\].*on cpu\(0\), got one on cpu\(3\)"):
        chain().bind(mx.cpu(0), arrays, grads, group2ctx=GROUPS)
    with pytest.raises(TypeError, match=r"group2ctx\[one\].*'cpu'"):
        chain().simple_bind(mx.cpu(0), group2ctx={"one": "cpu"}, a=(2,))
    with pytest.raises(DeviceError, match="gpu"):
        chain().simple_bind(mx.cpu(0), group2ctx={"one": mx.gpu(0)}, a=(2,))


class Meeting(mx.operator.CustomOp):
    """Twice the data, once all that are to meet are here; a missing partner is an error."""

    barrier = threading.Barrier(2)

    def forward(self, is_train, req, in_data, out_data, aux):
        self.barrier.wait(60)
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.barrier.wait(60)
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("test_meeting")
class MeetingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, types):
        return Meeting()


def test_segments_of_two_contexts_run_at_the_same_time():
    """Both passes meet in the middle: one after the other they would wait for ever."""
    halves = []
    for group, name in zip(GROUPS, "xy", strict=True):
        with mx.AttrScope(ctx_group=group):
            x = mx.sym.tanh(mx.sym.Variable(name))
            halves.append(mx.sym.exp(mx.sym.Custom(x, op_type="test_meeting")))
    net = halves[0] + halves[1]
    bound = net.simple_bind(mx.cpu(0), group2ctx=GROUPS, x=(3,), y=(3,))
    given = {n: np.float32([0.1, 0.2, 0.3]) * (k + 1) for k, n in enumerate("xy")}
    expected = sum(np.exp(2 * np.tanh(v)) for v in given.values())
    for _ in range(3):
        (out,) = bound.forward(is_train=True, **given)
        bound.backward(mx.nd.ones((3,)))
        np.testing.assert_allclose(out.asnumpy(), expected, 1e-5)
        for name, value in given.items():
            slope = 2 * np.exp(2 * np.tanh(value)) * (1 - np.tanh(value) ** 2)
            np.testing.assert_allclose(bound.grad_dict[name].asnumpy(), slope, 1e-5)


class Failing(mx.operator.CustomOp):
    """Itself, or an error."""

    fails = False

    def forward(self, is_train, req, in_data, out_data, aux):
        if Failing.fails:
            raise ValueError("on purpose")
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("test_failing_place")
class FailingProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, types):
        return Failing()


def test_what_fails_on_one_context_fails_what_reads_it_and_heals(monkeypatch):
    monkeypatch.setattr(Failing, "fails", True)
    with mx.AttrScope(ctx_group="one"):
        x = mx.sym.Custom(mx.sym.Variable("x") * 2, op_type="test_failing_place")
    with mx.AttrScope(ctx_group="two"):
        y = mx.sym.exp(mx.sym.Variable("y"))
        net = mx.sym.Group([y, x + y])
    bound = net.simple_bind(mx.cpu(0), group2ctx=GROUPS, x=(3,), y=(3,))
    outputs = bound.forward(is_train=True, x=mx.nd.ones((3,)), y=mx.nd.zeros((3,)))
    bound.backward([mx.nd.ones((3,))] * 2)
    np.testing.assert_array_equal(outputs[0].asnumpy(), [1, 1, 1])  # it reads nothing of the other
    for _ in range(2):
        with pytest.raises(MXNetError, match="on purpose"):
            outputs[1].asnumpy()
    Failing.fails = False
    bound.forward(is_train=True)
    bound.backward([mx.nd.ones((3,))] * 2)
    np.testing.assert_array_equal(outputs[1].asnumpy(), [3, 3, 3])
    np.testing.assert_array_equal(bound.grad_dict["x"].asnumpy(), [2, 2, 2])


def cell(x, state, size, weights):
    """A step of an LSTM layer: its next state, of hidden numbers and memory."""
    gates = mx.sym.FullyConnected(x, weights[0], num_hidden=4 * size, no_bias=True)
    if state is not None:
        gates = gates + mx.sym.FullyConnected(
            state[0], weights[1], num_hidden=4 * size, no_bias=True
        )
    i, f, g, o = mx.sym.SliceChannel(gates, num_outputs=4)
    memory = mx.sym.sigmoid(i) * mx.sym.tanh(g)
    if state is not None:
        memory = memory + mx.sym.sigmoid(f) * state[1]
    return mx.sym.sigmoid(o) * mx.sym.tanh(memory), memory


def unrolled(size, steps, custom):
    """Two LSTM layers, each on a context of its own, and a loss at the end.

    With `custom`, what goes from one to the other passes through an operator on data.
    """
    data = mx.sym.SliceChannel(
        mx.sym.Variable("data"), num_outputs=steps, axis=1, squeeze_axis=True
    )
    weights = [[mx.sym.Variable(f"lstm{k}_{n}_weight") for n in ("in", "hid")] for k in range(2)]
    states, outputs = [None, None], []
    for k in range(steps):
        x = data[k]
        for layer, group in enumerate(GROUPS):
            with mx.AttrScope(ctx_group=group):
                states[layer] = cell(x, states[layer], size, weights[layer])
                x = states[layer][0]
                x = mx.sym.Custom(x, op_type="test_failing_place") if custom else x
        outputs.append(x)
    with mx.AttrScope(ctx_group="two"):
        score = mx.sym.FullyConnected(mx.sym.concat(*outputs, dim=0), num_hidden=5, name="score")
        return mx.sym.SoftmaxOutput(score, name="softmax")


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("brief", [0, run.BRIEF])
@pytest.mark.parametrize("passes", [False, True])
def test_layers_on_two_contexts_equal_one(custom, brief, passes, monkeypatch):
    """As one program, and as segments that run side by side: on workers, or where they are."""
    monkeypatch.setattr(run, "BRIEF", brief)
    net, found = unrolled(8, 6, custom), []
    for groups in ({}, GROUPS):
        with config.using(passes=passes):
            bound = net.simple_bind(mx.cpu(0), group2ctx=groups, data=(4, 6, 3))
            rng = np.random.default_rng(0)
            for name, array in sorted(bound.arg_dict.items()):
                array[:] = rng.random(array.shape) - 0.5 if name != "softmax_label" else 2
            for _ in range(3):
                bound.forward(is_train=True)
                bound.backward()
        grads = {k: v.asnumpy() for k, v in bound.grad_dict.items()}
        found.append(grads | {"out": bound.outputs[0].asnumpy()})
        (made,) = bound._runs.values()
        assert all((s.after is None) != (custom and bool(groups)) for s in made.segments("forward"))
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name], err_msg=name)
