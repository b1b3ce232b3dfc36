"""Models: what is refused before anything is served, and predictions in parts of a batch."""

import itertools

import numpy as np
import pytest
from served import custom, mlp

import gnomon as mx
from gnomon import serving
from gnomon.base import GnomonError, ParamError, ShapeError
from gnomon.serving.folder import read_folder
from gnomon.serving.predictor import Predictor

RNG = np.random.default_rng(0)


class Rows:
    """A request of these items."""

    def __init__(self, name, values):
        self.inputs, self.rows, self.items = {name: values}, len(values), (values.shape[1:],)


def test_each_request_gets_the_outputs_of_its_items():
    predictor = Predictor(mlp(RNG, max_batch=12))
    predictor.warm()
    whole = RNG.normal(size=(12, 20)).astype(np.float32)
    (expected,) = predictor.predict([Rows("data", whole)])
    cuts = [0, 1, 4, 5, 9]
    parts = [Rows("data", whole[a:b]) for a, b in itertools.pairwise(cuts)]
    found = predictor.predict(parts)
    joined = np.concatenate([share["softmax_output"] for share in found])
    np.testing.assert_allclose(joined, expected["softmax_output"][:9], rtol=1e-5)


def test_several_rows_an_item():
    x = mx.sym.Reshape(mx.sym.Variable("x"), shape=(-1, 2))
    predictor = Predictor(serving.Model(mx.sym.square(x, name="y"), {}, {"x": (3, 2)}))
    values = np.arange(30.0, dtype=np.float32).reshape(5, 3, 2)
    first, last = predictor.predict([Rows("x", values[:2]), Rows("x", values[2:])])
    np.testing.assert_array_equal(first["y_output"], values[:2].reshape(6, 2) ** 2)
    np.testing.assert_array_equal(last["y_output"], values[2:].reshape(9, 2) ** 2)


def test_items_of_old_batches_do_not_come_again():
    predictor = Predictor(custom("picky"))
    bad, good = np.full((4, 2), 13, np.float32), np.ones((3, 2), np.float32)
    with pytest.raises(GnomonError, match="thirteen"):
        predictor.predict([Rows("x", bad)])
    (found,) = predictor.predict([Rows("x", good)])
    np.testing.assert_array_equal(found["y_output"], good)


def test_executors_are_bounded():
    x = mx.sym.Variable("x")
    predictor = Predictor(serving.Model(mx.sym.square(x, name="y"), {}, {"x": (-1,)}, kept=3))
    for size in (*range(1, 8), 6, 1):
        values = np.full((1, size), size, np.float32)
        (found,) = predictor.predict([Rows("x", values)])
        np.testing.assert_array_equal(found["y_output"], values**2)
        assert len(predictor._bound) <= 3


def test_parameters_are_shared_by_all_executors():
    model = mlp(RNG)
    one, two = model.bind(1, ((20,),)), model.bind(8, ((20,),))
    for name in ("fc0_weight", "fc1_bias"):
        assert one.executor.arg_dict[name] is two.executor.arg_dict[name]


def test_half_precision_follows_from_the_parameters():
    x, w = mx.sym.Variable("x"), mx.nd.ones((2, 3), dtype="float16")
    net = mx.sym.FullyConnected(x, num_hidden=2, no_bias=True, name="y")
    model = serving.Model(net, {"arg:y_weight": w}, {"x": (3,)})
    assert [spec.datatype for spec in (*model.inputs, *model.outputs)] == ["FP16", "FP16"]


@pytest.mark.parametrize(
    ("shapes", "options", "complaint"),
    [
        ({}, {}, "argument 'data': expected a parameter, or a shape if it is an input"),
        ({"data": (3,), "date": (3,)}, {}, "expected inputs of the network: data"),
        ({"data": (3,), "fc_bias": (3,)}, {}, "expected inputs of the network: data"),
        ({"data": (0,)}, {}, "expected sizes from 1, or -1 for any"),
        ({"data": "3"}, {}, "expected sizes from 1, or -1 for any"),
        ({"data": (3,)}, {"max_batch": 0}, "'max_batch': expected a number from 1, got 0"),
        ({"data": (3,)}, {"max_batch": True}, "'max_batch': expected a number from 1, got True"),
        ({"data": (3,)}, {"batch": 1}, "'batch': expected True or False, got 1"),
        ({"data": (3,)}, {"max_delay_ms": -1}, "'max_delay_ms': expected a number from 0"),
        ({"data": (3,)}, {"max_dealy": 1}, "max_dealy"),
    ],
)
def test_what_is_refused(shapes, options, complaint):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones(2)}
    with pytest.raises(ParamError) as raised:
        serving.Model(net, params, shapes, **options)
    assert complaint in str(raised.value)


def test_a_missing_parameter_is_no_zeros():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    with pytest.raises(ParamError, match="'fc_bias': expected a parameter"):
        serving.Model(net, {"fc_weight": mx.nd.ones((2, 3))}, {"data": (3,)})


def test_shapes_that_do_not_fit():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, no_bias=True, name="fc")
    with pytest.raises(ShapeError, match="fc"):
        serving.Model(net, {"fc_weight": mx.nd.ones((2, 3))}, {"data": (4,)})


def test_outputs_that_do_not_grow_with_the_batch():
    net = mx.sym.sum(mx.sym.Variable("x"), name="s")
    with pytest.raises(ShapeError, match=r"'s_output': expected twice .* or batch=False"):
        serving.Model(net, {}, {"x": (3,)})
    serving.Model(net, {}, {"x": (3,)}, batch=False)


def test_a_folder_of_models(tmp_path):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    module = mx.mod.Module(net, label_names=[])
    module.bind([("data", (1, 3))], for_training=False)
    module.init_params()
    for epoch in (2, 11):
        module.save_checkpoint(str(tmp_path / "net"), epoch)
    (tmp_path / "net.toml").write_text("max_batch = 4\n[shapes]\ndata = [3]\n")
    names = 'symbol = "net-symbol.json"\nparams = "net-0002.params"\n'
    (tmp_path / "other.toml").write_text(names + 'version = "b"\nshapes = {data = [3]}')
    found = read_folder(tmp_path, {"max_batch": 8, "workers": 2})
    assert {n: (m.version, m.options.max_batch, m.options.workers) for n, m in found.items()} == {
        "net": ("11", 4, 2),
        "other": ("b", 8, 2),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("max_batch = ", "net.toml"),
        ("max_batch = 3", "argument 'shapes': expected a table"),
        ("shapes = 3", "argument 'shapes': expected a table"),
        ("shapes = {data = [3]}", "no file net-0000.params"),
        ("params = 3\nshapes = {data = [3]}", "argument 'params': expected a string, got 3"),
        ('params = "x"\nshapes = {data = [3]}', "cannot read"),
    ],
)
def test_bad_files_of_a_folder(tmp_path, text, complaint):
    (tmp_path / "net.toml").write_text(text)
    with pytest.raises(GnomonError) as raised:
        read_folder(tmp_path, {})
    assert complaint in str(raised.value)


def test_folders_without_models(tmp_path):
    with pytest.raises(GnomonError, match="no model in"):
        read_folder(tmp_path, {})
    with pytest.raises(GnomonError, match="there is no folder"):
        read_folder(tmp_path / "x", {})
