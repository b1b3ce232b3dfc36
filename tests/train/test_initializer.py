"""Initializers that are alike are equal, and names choose what fills an array."""

import numpy as np
import pytest

import gnomon as mx
from gnomon import gluon, nd


def test_equal_where_class_and_arguments_are():
    assert mx.init.Xavier(magnitude=2) == mx.init.Xavier(magnitude=2)
    assert mx.init.Xavier(magnitude=2) != mx.init.Xavier(magnitude=3)
    assert mx.init.Zero() != mx.init.One()
    assert len({mx.init.Zero(), mx.init.Zero(), mx.init.One()}) == 2


def test_a_shared_parameter_may_be_asked_for_with_its_initializer():
    params = gluon.ParameterDict("net_")
    weight = params.get("weight", shape=(2, 3), init=mx.init.Normal(0.1))
    assert params.get("weight", init=mx.init.Normal(0.1)) is weight
    with pytest.raises(ValueError, match="as it was made"):
        params.get("weight", init=mx.init.Normal(0.2))


def test_plain_names_of_upsampling_layers():
    weight = nd.zeros((1, 1, 4, 4))
    mx.init.One()("upsampling0_weight", weight)
    row = np.array([0.25, 0.75, 0.75, 0.25], "f")
    np.testing.assert_array_equal(weight[0, 0].asnumpy(), np.outer(row, row))


def test_arrays_are_compared_element_by_element():
    one, same, other = (mx.init.Constant(np.array(x)) for x in ([1, 2], [1, 2], [1, 3]))
    assert one == same and one != other


def test_a_constant_of_a_text_is_its_number():
    weight = nd.zeros(2)
    mx.init.Constant("1.5")("w_weight", weight)
    assert weight.asnumpy().tolist() == [1.5, 1.5]
    assert mx.init.Constant("1").dumps() == '["constant", {"value": "1"}]'
    with pytest.raises(TypeError, match=r"Constant.*'value'.*'x'"):
        mx.init.Constant("x")("w_weight", weight)


def test_load_logs_what_mxnet_does(caplog):
    caplog.set_level("INFO")
    filler = mx.init.Load({"arg:known": nd.ones((2,))}, default_init=mx.init.Zero(), verbose=True)
    for name in ("known", "other_weight"):
        filler(mx.init.InitDesc(name), nd.zeros((2,)))
    said = [
        record.getMessage() for record in caplog.records if "Initialized" in record.getMessage()
    ]
    assert said == ["Initialized known by loading", "Initialized other_weight by default"]
