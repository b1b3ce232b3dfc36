"""Symbols: composition, names, parts, attributes, errors that say what was expected."""

import copy
import inspect
import json
import pickle
import re
import threading

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import FormatError, GnomonError, ParamError, ShapeError
from gnomon.ops.property import OperatorProperty, register_op_property
from gnomon.symbol import methods

sym = mx.sym


def fc(**params):
    return sym.FullyConnected(sym.Variable("data"), num_hidden=4, name="fc", **params)


# composition --------------------------------------------------------------------------------


def test_missing_inputs_become_variables_named_after_the_node():
    assert fc().list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert fc(no_bias=True).list_arguments() == ["data", "fc_weight"]
    bn = sym.BatchNorm(fc(), name="bn")
    assert bn.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert bn.attr_dict()["bn_moving_var"]["__init__"] == '["one", {}]'


def test_inputs_go_by_place_and_by_name():
    w = sym.Variable("w")
    assert sym.FullyConnected(weight=w, num_hidden=3, name="f").list_arguments() == [
        "f_data",
        "w",
        "f_bias",
    ]
    assert sym.FullyConnected(sym.Variable("x"), w, None, 3).list_arguments()[:2] == ["x", "w"]


def test_names_are_counted_by_hint_and_thread():
    names = []
    with mx.name.NameManager():
        first, second = sym.relu(fc()), sym.relu(fc())
        thread = threading.Thread(target=lambda: names.append(sym.relu(fc()).name))
        thread.start()
        thread.join()
    assert (first.name, second.name) == ("relu0", "relu1")
    assert names == ["relu0"]
    with mx.name.Prefix("p_"):
        assert fc().name == "p_fc"


def test_a_network_takes_another_as_input():
    net = fc()(data=sym.relu(sym.Variable("x"), name="r"))
    assert net.list_arguments() == ["x", "fc_weight", "fc_bias"]
    assert fc()(data=sym.Variable("z"), name="other").list_outputs() == ["other_output"]
    original = fc()
    original(fc_weight=sym.Variable("w"))
    assert "fc_weight" in original.list_arguments()


def test_composition_refuses_what_does_not_fit():
    with pytest.raises(ParamError, match="'bias': expected nothing unless no_bias=False"):
        sym.FullyConnected(sym.Variable("x"), num_hidden=3, no_bias=True, bias=sym.Variable("b"))
    with pytest.raises(ParamError, match=r"fc_weigth.*did you mean 'fc_weight'"):
        fc()(fc_weigth=sym.Variable("x"))
    with pytest.raises(ParamError, match="symbols by name"):
        fc()(sym.Variable("x"))
    with pytest.raises(TypeError, match="symbols by name"):
        fc()(sym.Variable("x"), fc_weight=sym.Variable("w"))
    with pytest.raises(TypeError, match="'args': expected a symbol, got 3"):
        fc()(3)
    with pytest.raises(ParamError, match="one output"):
        sym.relu(sym.split(sym.Variable("x"), num_outputs=2))
    with pytest.raises(TypeError, match=r"argument 'data'.*a Symbol, got 3"):
        sym.FullyConnected(3, num_hidden=3)
    with pytest.raises(TypeError, match=r"'data'.*a Symbol, got an NDArray of shape \(2, 2\)$"):
        sym.FullyConnected(nd.ones((2, 2)), num_hidden=3)
    with pytest.raises(TypeError, match=r"'arg1'.*a Symbol, got an NDArray of shape \(2,\)$"):
        sym.Concat(sym.Variable("x"), nd.ones(2))
    with pytest.raises(TypeError, match=r"'data'.*an NDArray, got <Symbol x>"):
        nd.exp(sym.Variable("x"))
    with pytest.raises(TypeError, match="a symbol or a number"):
        sym.Variable("x") + "y"
    with pytest.raises(ParamError, match=r"num_hiden.*num_hidden"):
        sym.FullyConnected(sym.Variable("x"), num_hiden=3)


@pytest.mark.parametrize(
    ("name", "count", "parameters", "message"),
    [
        ("topk", 2, {}, "topk: argument 'inputs': expected 1 of them: data, got 2"),
        ("topk", 7, {}, "topk: argument 'inputs': expected 1 of them: data, got 7"),
        ("LayerNorm", 4, {}, "'inputs': expected 3 of them: data, gamma, beta, got 4"),
        ("LayerNorm", 7, {}, "'inputs': expected 3 of them: data, gamma, beta, got 7"),
        ("exp", 3, {}, "exp: argument 'inputs': expected 1 of them: data, got 3"),
        ("concat", 2, {"num_args": 1}, "'inputs': expected 1 of them: arg0, got 2"),
        ("FullyConnected", 4, {"num_hidden": 2}, "3 of them: data, weight, bias, got 4"),
        ("FullyConnected", 3, {"num_hidden": 2, "no_bias": True}, "nothing unless no_bias=False"),
        ("FullyConnected", 4, {"num_hidden": 2, "no_bias": True}, "nothing unless no_bias=False"),
    ],
)
def test_too_many_inputs_are_the_same_error_for_arrays_and_symbols(
    name, count, parameters, message
):
    for space, given in ((nd, nd.ones((2, 2))), (sym, sym.Variable("x"))):
        with pytest.raises(ParamError, match=re.escape(message)):
            getattr(space, name)(*[given] * count, **parameters)


def test_numbers_of_numpy_on_the_left():
    x = sym.Variable("x")
    for number in (np.float32(2), np.float64(2), np.int64(2)):
        total = (number * x) + (number - x)
        assert total.eval(x=nd.ones(2))[0].asnumpy().tolist() == [3, 3]
    with pytest.raises(TypeError, match="a symbol or a number"):
        np.ones(2) + x


def test_attributes_of_users_among_the_parameters():
    layer = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc", lr_mult=3)
    assert layer.attr("lr_mult") == layer.attr("__lr_mult__") == "3"
    assert layer.attr_dict()["fc_weight"]["__lr_mult__"] == "3"
    with pytest.raises(TypeError, match=r"FullyConnected: argument 'name': .* got 3"):
        sym.FullyConnected(sym.Variable("x"), num_hidden=2, name=3)
    with pytest.raises(ParamError, match="_set_attr: argument 'self': expected one node"):
        sym.Group([layer, layer + 1])._set_attr(mood="good")


@pytest.mark.parametrize(
    ("kernel", "text"), [([3, 3], "[3, 3]"), (np.array([3, 3]), "(3, 3)"), ((3, 3), "(3, 3)")]
)
def test_texts_of_parameters_can_be_read_again(kernel, text):
    layer = sym.Convolution(sym.Variable("x"), kernel=kernel, num_filter=np.int64(2), name="c")
    assert layer.attr("kernel") == text
    assert sym.load_json(layer.tojson()).infer_shape(x=(1, 1, 4, 4))[1] == [(1, 2, 2, 2)]
    assert sym.Dropout(sym.Variable("x"), p=np.float32(0.3)).attr("p") == "0.3"


def test_counted_outputs_are_those_of_mxnet():
    x = sym.Variable("x")
    lstm = sym.RNN(x, mode="lstm", state_size=2, num_layers=2, state_outputs=True)
    whole = sym.RNN(x, mode="gru", state_size=2, num_layers=2)
    values = sym.topk(x, ret_typ="value")
    for symbol, count in ((lstm, 3), (whole, 1), (sym.sort(x), 2), (values, 2), (sym.topk(x), 1)):
        *_, before, after = json.loads(symbol.tojson())["node_row_ptr"]
        assert after - before == count
    assert sym.sort(x, name="s").list_outputs() == ["s_output0"]
    assert sym.split_v2(x, (1, 3)).list_attr()["indices"] == "[0, 1, 3]"


def test_groups():
    x = sym.Variable("x")
    group = sym.Group([x, sym.Group([fc(), x])])
    assert group.list_outputs() == ["x", "fc_output", "x"]
    assert group.name is None
    assert repr(group) == "<Symbol group [x, fc, x]>"
    for bad in ([], [3]):
        with pytest.raises(TypeError, match="a list of symbols"):
            sym.Group(bad)


# parts --------------------------------------------------------------------------------------


def test_outputs_by_number_name_and_slice():
    parts = sym.split(sym.Variable("x"), num_outputs=3, name="s")
    assert len(parts) == 3
    assert [p.list_outputs() for p in parts] == [["s_output0"], ["s_output1"], ["s_output2"]]
    assert parts["s_output1"].list_outputs() == parts[1].list_outputs() == ["s_output1"]
    assert parts[1:].list_outputs() == ["s_output1", "s_output2"]
    assert parts[-1].list_outputs() == ["s_output2"]
    with pytest.raises(IndexError, match="below 3, got 3"):
        parts[3]
    with pytest.raises(ParamError, match=r"no output of the name 's_outptu1'.*s_output1"):
        parts["s_outptu1"]
    with pytest.raises(ParamError, match="several outputs"):
        sym.Group([parts, parts])["s_output1"]
    with pytest.raises(TypeError, match="int, str or slice"):
        parts[1.0]
    with pytest.raises(TypeError, match="a list of symbols"):
        parts[2:1]


def test_internals_and_children():
    net = sym.BatchNorm(fc(), name="bn")
    names = net.get_internals().list_outputs()
    assert names[:4] == ["data", "fc_weight", "fc_bias", "fc_output"]
    assert names[-1] == "bn_output"
    assert net.get_internals()["fc_output"].list_arguments() == fc().list_arguments()
    assert net.get_children().list_outputs()[0] == "fc_output"
    assert sym.Variable("x").get_children() is None


# attributes ---------------------------------------------------------------------------------


def test_attributes_of_scopes_calls_and_variables():
    with mx.AttrScope(ctx_group="dev1", __own__="1"):
        x = sym.Variable("x", shape=(2, 0), lr_mult=2, dtype="float16", attr={"free": "y"})
        net = sym.relu(x, name="r", attr={"__call__": "2"})
    assert x.attr("ctx_group") == "dev1"
    assert x.list_attr() == {
        "__ctx_group__": "dev1",
        "ctx_group": "dev1",
        "__own__": "1",
        "free": "y",
        "__shape__": "(2, 0)",
        "__lr_mult__": "2",
        "lr_mult": "2",
        "__dtype__": "2",
    }
    assert net.attr("__call__") == "2"
    assert net.attr("nothing") is None
    assert sym.Group([x, net]).list_attr() == x.list_attr()


def test_attributes_must_be_strings_and_well_named():
    with pytest.raises(ParamError, match=r"'foo'.*a name such as __this__"):
        sym.Variable("x", foo=3)
    with pytest.raises(ParamError, match="a string as attribute"):
        sym.Variable("x", attr={"__a__": 3})
    with pytest.raises(ParamError, match="foo"):
        sym.Activation(sym.Variable("x"), act_type="relu", attr={"foo": "3"})
    without_parameters = sym.relu(sym.Variable("x"), attr={"foo": "3"}, name="plain")
    assert without_parameters.attr_dict() == {"plain": {"foo": "3"}}  # kept, as MXNet does
    with pytest.raises(TypeError, match="argument 'name': expected a string, got 3"):
        sym.Variable(3)


def test_setting_attributes_reaches_the_operator():
    net = fc()
    net._set_attr(num_hidden="7", mirror_stage="True")
    assert net.infer_shape(data=(2, 3))[1] == [(2, 7)]
    assert net.attr("mirror_stage") == "True"
    with pytest.raises(ParamError, match="nonsense"):
        net._set_attr(nonsense="1")
    assert "nonsense" not in net.list_attr()


def test_initializers_are_kept_as_text():
    class Init:
        def dumps(self):
            return '["one", {}]'

    assert sym.Variable("x", init=Init()).attr("__init__") == '["one", {}]'
    assert sym.Variable("x", init="xavier").attr("__init__") == "xavier"


# inference ----------------------------------------------------------------------------------


def test_shapes_by_name_by_place_and_in_part():
    assert fc().infer_shape(data=(2, 3)) == ([(2, 3), (4, 3), (4,)], [(2, 4)], [])
    assert fc().infer_shape((2, 3)) == fc().infer_shape(data=(2, 3))
    with pytest.warns(UserWarning, match="data: \\(\\)"):
        assert fc().infer_shape() == (None, None, None)
    arguments, outputs, _ = fc().infer_shape_partial(data=(0, 3))
    assert arguments[1] == (4, 3)
    assert outputs == [(0, 4)]


def test_shape_errors_name_the_node_and_what_is_known():
    with pytest.raises(ShapeError, match=r"node 'fc'.*fc_weight.*\(4, 9\)"):
        fc().infer_shape(data=(2, 3), fc_weight=(4, 9))
    with pytest.raises(ParamError, match=r"'dat'.*did you mean 'data'"):
        fc().infer_shape(dat=(2, 3))
    with pytest.raises(ParamError, match="both"):
        fc().infer_shape((2, 3), data=(2, 3))
    with pytest.raises(TypeError, match="a tuple of ints"):
        fc().infer_shape(data="x")


def test_types():
    assert fc().infer_type(data="float16") == ([np.float16] * 3, [np.float16], [])
    with pytest.warns(UserWarning, match="dtype"):
        assert fc().infer_type() == (None, None, None)
    assert fc().infer_type_partial()[1] == [None]


# files --------------------------------------------------------------------------------------


def test_copies_and_pickles_are_networks_of_their_own():
    net = fc()
    for again in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert again.tojson() == net.tojson()
        again._set_attr(__mine__="1")
    assert net.attr("__mine__") is None


def test_files_are_written_whole_and_read_back(tmp_path):
    path = tmp_path / "net-symbol.json"
    fc().save(path)
    assert path.read_text() == fc().tojson()
    assert sym.load(str(path)).tojson() == fc().tojson()
    with pytest.raises(GnomonError, match="no/such"):
        fc().save(tmp_path / "no" / "such")
    with pytest.raises(GnomonError, match="cannot read"):
        sym.load(tmp_path / "nothing")
    with pytest.raises(TypeError, match="fname"):
        sym.load(3)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="net-symbol"):
        sym.load(path)


def test_a_deep_network_is_copied_pickled_and_inferred():
    net = sym.Variable("x", shape=(2,))
    for _ in range(3000):
        net = sym.relu(net)
    again = pickle.loads(pickle.dumps(net))
    assert again.infer_shape()[1] == [(2,)]
    assert len(again.get_internals()) == 3001


# functions and methods ----------------------------------------------------------------------


def test_functions_have_signatures_and_documentation():
    signature = inspect.signature(sym.FullyConnected)
    assert list(signature.parameters)[:4] == ["data", "weight", "bias", "num_hidden"]
    assert repr(signature.parameters["num_hidden"].default) == "<required>"
    assert signature.parameters["flatten"].default is True
    assert list(signature.parameters)[-4:] == ["name", "attr", "out", "kwargs"]
    assert "num_hidden : int" in sym.FullyConnected.__doc__
    assert str(inspect.signature(sym.Concat)).startswith("(*data, ")
    assert sym.FullyConnected.__name__ == "FullyConnected"


def test_functions_stand_in_their_namespaces():
    assert sym._internal._plus_scalar(sym.Variable("x"), scalar=2).attr("scalar") == "2"
    assert sym.op.relu(sym.Variable("x"), name="r").name == "r"
    assert sym.sparse.relu.__name__ == "relu"
    with pytest.raises(AttributeError, match="no attribute 'Fullyconnected'"):
        sym.Fullyconnected
    assert "FullyConnected" in dir(sym)


def test_methods_are_the_functions_with_the_symbol_first():
    x = sym.Variable("x")
    assert x.reshape((2, -1)).attr("shape") == x.reshape(2, -1).attr("shape") == "(2, -1)"
    assert x.sum(axis=1, keepdims=True).attr("axis") == "1"
    assert x.astype("float16").attr("dtype") == "float16"
    for found in (x.squeeze(1, True), x.expand_dims(axis=1, inplace=True, name="more")):
        assert found.attr("axis") == "1"
    assert x.flatten(True).infer_shape(x=(2, 3, 4))[1] == [(2, 12)]
    assert x.squeeze(inplace=False).infer_shape(x=(1, 3, 1))[1] == [(3,)]
    assert sym.Symbol.sum.__name__ == "sum"


@pytest.mark.parametrize("method", ["asnumpy", "wait_to_read", "copy", "backward", "asscalar"])
def test_what_needs_data_is_refused(method):
    with pytest.raises(sym.NotImplementedForSymbol, match=f"Symbol.{method}: a symbol has no data"):
        getattr(sym.Variable("x"), method)()


def test_a_symbol_has_neither_truth_nor_hash():
    with pytest.raises(sym.NotImplementedForSymbol):
        bool(sym.Variable("x"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(sym.Variable("x"))


def test_created_symbols_know_their_shapes():
    made = sym.Group([sym.zeros((2, 3)), sym.arange(2, 8, 2), sym.eye(3, 2), sym.ones((1,))])
    assert made.infer_shape()[1] == [(2, 3), (3,), (3, 2), (1,)]
    assert sym.maximum(2, 3) == 3
    assert sym.power(2, 3) == 8


# operators of users -------------------------------------------------------------------------


def test_linspace_and_histogram():
    line = sym.linspace(0, 1, 7, dtype="float64")
    assert line.eval()[0].asnumpy().tolist() == np.linspace(0, 1, 7).tolist()
    assert sym.linspace(2, 0, 4, endpoint=False).eval()[0].asnumpy().tolist() == [2, 1.5, 1, 0.5]
    assert sym.linspace(0, 9, 1).eval()[0].asnumpy().tolist() == [0]
    x, values = sym.Variable("x"), nd.array([0, 0.1, 0.5, 0.7, 1, 2])
    counts, edges = sym.histogram(x, bins=3, range=(0, 1)).eval(x=values)
    assert (counts.asnumpy().tolist(), counts.dtype) == ([2, 1, 2], np.int64)
    assert np.allclose(edges.asnumpy(), [0, 1 / 3, 2 / 3, 1])
    by_edges = sym.histogram(x, bins=sym.Variable("e"))
    assert by_edges.infer_shape(x=(2, 3), e=(5,))[1] == [(4,), (5,)]
    e = nd.array([0, 0.2, 0.6, 1])
    assert by_edges.eval(x=values, e=e)[0].asnumpy().tolist() == [2, 1, 2]
    assert nd.histogram(values, bins=e)[0].asnumpy().tolist() == [2, 1, 2]
    with pytest.raises(ParamError, match="given together with bin_cnt"):
        nd._internal._histogram(values, e, range=(0, 1))


def test_operators_of_users_say_their_inputs():
    class ScaleProperty(OperatorProperty):
        """Data times a scale."""

        def list_arguments(self):
            return ["x", "scale"]

        def list_auxiliary_states(self):
            return ["count"]

    register_op_property("TestScale")(ScaleProperty)
    x, s = sym.Variable("a"), sym.Variable("b")
    net = sym.TestScale(x, name="t")
    assert net.list_inputs() == ["a", "t_scale", "t_count"]
    assert net.list_auxiliary_states() == ["t_count"]
    assert sym.TestScale(x, s, name="t").list_arguments() == ["a", "b"]
    assert sym.TestScale(scale=s, name="t").list_arguments() == ["t_x", "b"]
    with pytest.raises(ParamError, match="one of the inputs x, scale, count"):
        sym.TestScale(x, weight=s)
    assert sym.load_json(net.tojson()).list_inputs() == net.list_inputs()


def test_operators_that_are_missing_are_attributes_that_are_missing(monkeypatch):
    method = methods.Operator("no_such_operator")
    monkeypatch.setattr(methods.Methods, "no_such", method, raising=False)
    assert not hasattr(mx.sym.Symbol, "no_such")
    with pytest.raises(AttributeError, match="'no_such_operator' is not registered"):
        mx.sym.Variable("x").no_such()


def test_symbols_have_no_plug_ins():
    x = mx.sym.Variable("x")
    assert x.as_nd_ndarray() is x
    for function in (x.optimize_for, x.get_backend_symbol):
        with pytest.raises(ParamError, match=r"optimize_for: argument 'backend'.*'TensorRT'"):
            function("TensorRT")


def test_attributes_of_operators_are_taken_as_text():
    attr = {"__init__": mx.init.One(), "__lr_mult__": 2}
    net = sym.FullyConnected(sym.Variable("x"), num_hidden=1, name="fc", attr=attr)
    assert net.attr_dict()["fc_weight"]["__init__"] == '["one", {}]'
    assert net.attr_dict()["fc"]["__lr_mult__"] == "2"


def test_no_dtype_is_numpys():
    x = mx.sym.Variable("x")
    for net in (x.astype(None), mx.sym.softmax(x, dtype=None)):
        assert json.loads(net.tojson())["nodes"][1]["attrs"] == {"dtype": "float64"}
        assert net.infer_type(x="float32")[1] == [np.float64]


def test_what_is_listed_is_there():
    x = mx.sym.Variable("x")
    assert all(hasattr(x, name) for name in dir(x))
    assert not {"T", "grad", "shape"} & {*dir(x)}


@pytest.mark.parametrize("infer", ["infer_shape", "infer_type"])
def test_what_cannot_be_inferred_is_told_at_the_line_that_asks(infer):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2) + mx.sym.var("z")
    with pytest.warns(UserWarning, match="cannot decide the .* of these inputs") as told:
        assert getattr(net, infer)() == (None, None, None)
    assert told[0].filename == __file__


def test_the_name_is_an_attribute():
    layer = mx.sym.FullyConnected(mx.sym.Variable("a"), num_hidden=2, name="fc")
    assert layer.attr("name") == "fc"
    assert mx.sym.Variable("a").attr("name") == "a"
    assert mx.sym.split(layer, 2, name="s").attr("name") == "s"
    assert mx.sym.Group([layer, mx.sym.Variable("a")]).attr("name") is None
    assert "name" not in layer.list_attr()


def test_shuffles_are_named_as_in_mxnet():
    with mx.name.NameManager():
        data = mx.sym.Variable("a")
        assert mx.sym.random.shuffle(data).name == "_shuffle0"
        assert mx.sym.shuffle(data).name == "shuffle0"
