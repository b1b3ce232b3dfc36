"""Networks on several contexts: where arrays are, which copies there are, the same values."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.base import DeviceError

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
