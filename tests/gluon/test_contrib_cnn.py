"""Deformable convolutions: names and graphs as MXNet 1.9.1 gives them, and what they compute."""

import json

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ParamError
from gnomon.gluon.contrib.cnn import DeformableConvolution, ModulatedDeformableConvolution

NODES = {  # recorded from MXNet 1.9.1 for `cls(8, kernel_size=(3, 3), padding=(1, 1), prefix="d_")`
    DeformableConvolution: [
        ("null", "data"),
        ("null", "d_offset_weight"),
        ("null", "d_offset_bias"),
        ("Convolution", "d_convolution0"),
        ("null", "d_deformable_conv_weight"),
        ("null", "d_deformable_conv_bias"),
        ("_contrib_DeformableConvolution", "d_fwd"),
    ],
    ModulatedDeformableConvolution: [
        ("null", "data"),
        ("null", "d_offset_weight"),
        ("null", "d_offset_bias"),
        ("Convolution", "d_convolution0"),
        ("slice_axis", "d_slice_axis0"),
        ("slice_axis", "d_slice_axis1"),
        ("sigmoid", "d_sigmoid0"),
        ("_mul_scalar", "d__mulscalar0"),
        ("null", "d_deformable_conv_weight"),
        ("null", "d_deformable_conv_bias"),
        ("_contrib_ModulatedDeformableConvolution", "d_fwd"),
    ],
}


@pytest.mark.parametrize("cls", NODES)
def test_graphs_are_those_of_mxnet(cls):
    net = cls(8, kernel_size=(3, 3), padding=(1, 1), in_channels=4, prefix="d_")
    nodes = json.loads(net(mx.sym.var("data")).tojson())["nodes"]
    assert [(node["op"], node["name"]) for node in nodes] == NODES[cls]


@pytest.mark.parametrize("cls", NODES)
@pytest.mark.parametrize("hybrid", [False, True])
def test_without_offsets_it_is_a_convolution(cls, hybrid):
    how = {"kernel_size": (3, 3), "padding": (1, 1), "groups": 2, "in_channels": 4}
    net = cls(6, activation="relu", num_deformable_group=2, **how)
    plain = mx.gluon.nn.Conv2D(6, activation="relu", **how)
    net.initialize(mx.init.Normal(0.5))
    net.offset_weight.set_data(mx.nd.zeros(net.offset_weight.shape))
    plain.initialize()
    plain.weight.set_data(net.deformable_conv_weight.data())
    x = mx.nd.random.normal(shape=(2, 4, 5, 6))
    if hybrid:
        net.hybridize()
    found, wanted = net(x).asnumpy(), plain(x).asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", NODES)
def test_channels_are_found_and_all_parameters_learn(cls):
    net = cls(3, kernel_size=(2, 2), offset_weight_initializer="normal")
    net.initialize()
    net.hybridize()
    with mx.autograd.record():
        loss = (net(mx.nd.random.normal(shape=(2, 5, 6, 6))) ** 2).sum()
    loss.backward()
    assert net.offset_weight.shape == (net._numbers * 4, 5, 2, 2)
    for name, parameter in net.collect_params().items():
        assert np.abs(parameter.grad().asnumpy()).max() > 0, name


def test_what_it_cannot_take_is_refused():
    with pytest.raises(ParamError, match=r"groups.*divisor"):
        DeformableConvolution(5, groups=2, in_channels=4)
    with pytest.raises(ParamError, match="layout"):
        DeformableConvolution(5, layout="NHWC")
