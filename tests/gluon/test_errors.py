"""Mistakes of programs: what the error names, and which lines its traceback shows."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import gnomon as mx
from gnomon import config
from gnomon.base import DTypeError, FormatError, GnomonError, ParamError, ShapeError
from gnomon.gluon import nn


def dense_net(**how):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))
    net.initialize(**how)
    return net


class Wrong(mx.gluon.HybridBlock):
    """Has a wrong line of its own around a network."""

    def __init__(self):
        super().__init__(prefix="wrong_")
        with self.name_scope():
            self.body = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.body(F.dot(x, x))  # the wrong line


def raised(kind, function):
    with pytest.raises(kind) as found:
        function()
    return found.value


def lines(error):
    """Functions and lines of the traceback behind those of this file's helpers."""
    rows = traceback.extract_tb(error.__traceback__)
    return [
        (row.name, row.line) for row in rows if row.name not in ("raised", "called", "<lambda>")
    ]


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_wrong_shape_names_block_and_parameters(hybrid):
    net = dense_net()
    if hybrid:
        net.hybridize()
    error = raised(ShapeError, lambda: net(mx.nd.ones((2, 5))))
    whole = "".join(traceback.format_exception(error))
    assert str(error).startswith("HybridSequential 'net': " if hybrid else "Dense 'net_dense0': ")
    assert "FullyConnected: argument 'weight': expected shape (4, 5), got (4, 3)" in str(error)
    for words in ("net_dense0_weight", "(2, 5) float32"):
        assert words in whole
    assert lines(error) == [("__call__", "found = self.forward(*args)")]
    assert whole.count("Traceback") == 1


def test_the_line_of_a_block_of_the_program_is_shown():
    net = Wrong()
    net.initialize()
    error = raised(ShapeError, lambda: net(mx.nd.ones((2, 5))))
    assert str(error).startswith("Wrong 'wrong': dot: argument 'rhs'")
    assert lines(error)[-1] == (
        "hybrid_forward",
        "return self.body(F.dot(x, x))  # the wrong line",
    )
    assert len(lines(error)) == 2


def test_errors_of_functions_and_symbols_are_short():
    x = mx.nd.ones((2, 3))
    assert len(lines(raised(ShapeError, lambda: mx.nd.dot(x, x)))) <= 3
    symbol = mx.sym.FullyConnected(mx.sym.var("a"), mx.sym.var("w"), num_hidden=3, name="fc")
    error = raised(ShapeError, lambda: symbol.simple_bind(mx.cpu(), a=(2, 3), w=(4, 4)))
    assert "node 'fc'" in str(error) and error.__cause__ is None
    assert len(lines(error)) == 1


def test_all_frames_are_there_where_they_are_wanted():
    with config.using(short_tracebacks=False):
        error = raised(ShapeError, lambda: dense_net()(mx.nd.ones((2, 5))))
    assert len(lines(error)) > 8 and "Dense 'net_dense0': " in str(error)


def test_other_exceptions_keep_their_frames():
    class Fails(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x.nothing_like_that

    net = Fails()
    error = raised(AttributeError, lambda: net(mx.nd.ones((2,))))
    assert [name for name, _ in lines(error)][:2] == ["__call__", "forward"]


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_blocks_lack(hybrid):
    class Empty(mx.gluon.HybridBlock):
        pass

    def called(net, *args):
        if hybrid:
            net.hybridize()
        return net(*args)

    x = mx.nd.ones((2, 3))
    error = raised(NotImplementedError, lambda: called(Empty(), x))
    assert "must define hybrid_forward" in str(error) and len(lines(error)) == 1
    error = raised(GnomonError, lambda: called(nn.Dense(2, prefix="fc_"), x))
    assert str(error).startswith("Dense 'fc': Parameter 'fc_weight' has not been initialized")
    error = raised(GnomonError, lambda: called(dense_net(), x.as_in_context(mx.cpu(1))))
    assert "Parameter 'net_dense0_weight' is not initialized on cpu(1), only on" in str(error)
    error = raised(TypeError, lambda: called(dense_net(), np.ones((2, 3))))
    assert "'net': argument 'inputs': expected NDArrays, or symbols, got ndarray;" in str(error)
    assert "nd.array(x)" in str(error)
    error = raised((DTypeError, GnomonError), lambda: called(dense_net(), x.astype("float64")))
    assert "'net" in str(error)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, y: x + y,
        lambda x, y: x.__imul__(y),
        lambda x, y: x < y.asnumpy(),
        lambda x, y: mx.nd.dot(x, x),
        lambda x, y: x.reshape((4, 4)),
    ],
)
def test_wrong_shapes_show_few_frames_of_gnomon(wrong):
    error = raised(ShapeError, lambda: wrong(mx.nd.ones((2, 3)), mx.nd.ones((4, 5))))
    inside = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    assert len(inside) <= 3, inside


def test_shared_parameters_of_different_shapes():
    first = nn.Dense(3, in_units=2, prefix="fc_")
    error = raised(ParamError, lambda: nn.Dense(3, in_units=4, params=first.params))
    assert "Parameter 'fc_weight': argument 'shape': expected (3, 2)" in str(error)
    first = nn.Dense(3, prefix="fc_")
    second = nn.Dense(3, prefix="other_", params=first.params)
    first.initialize()
    first(mx.nd.ones((1, 2)))
    error = raised(ShapeError, lambda: second(mx.nd.ones((1, 5))))
    assert "Dense 'other': FullyConnected: argument 'weight': expected shape (3, 5)" in str(error)
    assert "parameters: fc_weight (3, 2)" in error.__notes__[0]


def test_a_loss_of_shapes_that_differ():
    loss = mx.gluon.loss.L2Loss(prefix="l2_")
    error = raised(ShapeError, lambda: loss(mx.nd.ones((2, 3)), mx.nd.ones((2, 4))))
    words = "L2Loss 'l2': reshape_like: argument 'lhs': expected as many elements as (2, 3) has"
    assert str(error) == f"{words}, got (2, 4)"


def test_blocks_in_containers_are_told():
    class Holder(mx.gluon.Block):
        def __init__(self, register):
            super().__init__(prefix="holder_")
            self.parts = {"first": [nn.Dense(2)], "second": nn.Dense(3)}
            if register:
                for part in (*self.parts["first"], self.parts["second"]):
                    self.register_child(part)

    words = "Holder 'holder': blocks in the container 'parts' are not registered"
    with pytest.warns(UserWarning, match=words):
        assert not Holder(False).collect_params()
    assert len(Holder(True).collect_params()) == 4


def test_a_constructor_without_its_base_s():
    class Eager(mx.gluon.HybridBlock):
        def __init__(self):
            self.dense = nn.Dense(2)

    error = raised(AttributeError, Eager)
    assert str(error) == "Eager.dense: call super().__init__() in Eager.__init__ first"


@pytest.mark.parametrize(
    "use", [lambda net: net(mx.nd.ones((2,))), lambda net: net.initialize(), lambda net: net.name]
)
def test_blocks_that_no_constructor_has_begun(use):
    class Quiet(mx.gluon.HybridBlock):
        def __init__(self):
            self.units = 3

    net = Quiet()
    error = raised(AttributeError, lambda: use(net))
    assert str(error).endswith(": call super().__init__() in Quiet.__init__ first")


@pytest.mark.parametrize(
    "compute", [lambda F, x: F.reshape(x, shape=(x.shape[0], -1)), lambda F, x: mx.nd.relu(x)]
)
def test_arrays_in_what_is_traced(compute):
    class Concrete(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return compute(F, x)

    net = Concrete(prefix="concrete_")
    assert net(mx.nd.ones((2, 3))).shape == (2, 3)
    net.hybridize()
    error = raised((AttributeError, TypeError), lambda: net(mx.nd.ones((2, 3))))
    assert (
        "Concrete 'concrete' is hybridized: hybrid_forward was called with symbols"
        in (error.__notes__[0])
    )


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_hybrid_forward_is_called_with_is_told(hybrid):
    class Scale(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="scale_")
            self.weight = self.params.get("weight", shape=(3,))

        def hybrid_forward(self, F, x):
            return x

    def called(net, *args):
        net.initialize()
        if hybrid:
            net.hybridize()
        return net(*args)

    x = mx.nd.ones((2, 3))
    error = raised(TypeError, lambda: called(Scale(), x))
    words = "hybrid_forward of Scale 'scale' is called with F, as many inputs as the block (1)"
    assert error.__notes__[0] == f"{words} and the block's parameters by name: weight"
    error = raised(TypeError, lambda: called(nn.Dense(2, prefix="fc_"), x, x))
    words = "hybrid_forward of Dense 'fc' is called with F, as many inputs as the block (2)"
    assert error.__notes__[0] == f"{words} and the block's parameters by name: weight, bias"


@pytest.mark.parametrize("hybrid", [False, True])
def test_too_few_states_of_a_cell(hybrid):
    cell = mx.gluon.rnn.LSTMCell(3, prefix="cell_")
    cell.initialize()
    if hybrid:
        cell.hybridize()
    x = mx.nd.ones((2, 3))
    error = raised(ShapeError, lambda: cell(x, [x]))
    words = "argument 'states': expected 2 of them, as of begin_state, got 1 of them"
    assert str(error) == f"LSTMCell 'cell': {words}"


def test_inputs_of_another_width_for_a_recurrent_layer():
    layer = mx.gluon.rnn.LSTM(4, input_size=3, prefix="lstm_")
    layer.initialize()
    error = raised(ShapeError, lambda: layer(mx.nd.ones((5, 2, 7))))
    words = "argument 'inputs': expected 3 features, the last axis, got shape (5, 2, 7)"
    assert str(error) == f"LSTM 'lstm': {words}"


def test_keywords_that_no_layer_takes_are_told_with_the_layer():
    error = raised(TypeError, lambda: nn.Conv2D(4, 3, stride=1))
    assert str(error).startswith("Conv2D: argument 'stride': expected one of channels")
    assert str(error).endswith("got 1; did you mean 'strides'?")
    error = raised(TypeError, lambda: mx.gluon.loss.L2Loss(wieght=1))
    assert "L2Loss: argument 'wieght'" in str(error)


@pytest.mark.parametrize(
    ("layer", "inner"),
    [(nn.BatchNorm, ("settings", "size")), (nn.MaxPool2D, ("axes", "global_pool", "pool_type"))],
)
def test_what_a_layer_gives_its_base_is_no_keyword_of_it(layer, inner):
    for name in inner:
        error = raised(TypeError, lambda name=name: layer(**{name: 3}))
        assert f"{layer.__name__}: argument {name!r}: expected one of" in str(error)
        listed = str(error).partition("one of ")[2].partition(", got")[0].split(", ")
        assert "prefix" in listed and not set(listed) & set(inner)


def test_tracebacks_of_a_program_s_own_constructor_are_its_own():
    class Own(nn.Dense):
        def __init__(self, units, **kwargs):
            super().__init__(units, **kwargs)
            raise KeyError("mine")

    error = raised(KeyError, lambda: Own(3))
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    assert files == {__file__}
    error = raised(TypeError, lambda: Own(3, use_bais=False))
    assert "did you mean 'use_bias'" in str(error)


FOREIGN = {
    b"PK\x03\x04": "a zip archive, as torch.save and numpy.savez write",
    b"\x89HDF\r\n": "HDF5, as Keras and h5py write",
    b"\x80\x04": "a pickle",
    b"<!DOCTYPE": "a page of the web",
    b"what else": "b'what els'",
}


@pytest.mark.parametrize("start", FOREIGN)
def test_parameters_of_another_program_are_told_by_what_they_are(start, tmp_path):
    path = tmp_path / "x.params"
    path.write_bytes(start + bytes(40))
    error = raised(FormatError, lambda: nn.Dense(1).load_parameters(str(path)))
    assert "x.params: offset 0: file header: expected an MXNet array file" in str(error)
    assert FOREIGN[start] in str(error)


def load_module_states(path):
    """States of an optimizer into a module."""
    module = mx.mod.Module(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1), ["data"], []
    )
    module.bind([("data", (1, 2))])
    module.init_params()
    module.init_optimizer(kvstore=None)
    module.load_optimizer_states(path)


LOADERS = {
    "states": lambda path: mx.gluon.Trainer(dense_net().collect_params(), "sgd").load_states(path),
    "states of a module": load_module_states,
    "symbol": mx.sym.load,
    "block": lambda path: mx.gluon.SymbolBlock.imports(path, ["data"]),
    "records": lambda path: mx.recordio.MXRecordIO(path, "r").read(),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_files_of_another_kind_are_told_by_what_they_are(loader, tmp_path):
    path = tmp_path / "x"
    mx.nd.save(str(path), [mx.nd.ones((2,))])
    kinds = {**FOREIGN, path.read_bytes()[:16]: "arrays, as nd.save writes"}
    for start in [start for start in kinds if start not in (b"\x80\x04", b"what else")]:
        path.write_bytes(start + bytes(40))
        error = raised(FormatError, lambda: LOADERS[loader](str(path)))
        assert kinds[start] in str(error) and str(path) in str(error)


def test_a_path_without_a_name_is_no_folder():
    for load in (mx.nd.load, mx.sym.load):
        error = raised(FileNotFoundError, lambda load=load: load(""))
        assert "cannot read '': No such file" in str(error)


def test_the_names_of_a_checkpoint_are_told_as_the_file_has_them(tmp_path):
    path = str(tmp_path / "mlp-0003.params")
    mx.nd.save(path, {"arg:fc1_weight": mx.nd.ones((2, 3)), "arg:fc1_bias": mx.nd.ones((2,))})
    net = nn.Dense(2, prefix="dense3_")
    error = str(raised(ParamError, lambda: net.load_parameters(path)))
    assert "'dense3_weight', 'dense3_bias' not in the file" in error
    assert "which has 'arg:fc1_weight', 'arg:fc1_bias';" in error
    error = str(raised(ParamError, lambda: net.load_parameters(path, allow_missing=True)))
    assert f"the file {path} has 'arg:fc1_weight', 'arg:fc1_bias', which the network" in error


def test_layers_that_are_not_there_are_told_by_the_nearest_names():
    error = raised(AttributeError, lambda: nn.Conv2d)
    assert "module 'gnomon.gluon.nn' has no attribute 'Conv2d'; did you mean 'Conv2D'" in str(error)
    error = raised(AttributeError, lambda: mx.gluon.rnn.Lstm)
    assert "did you mean 'LSTM'" in str(error)


X = mx.nd.ones((2, 3))


def trained(*args):
    net = dense_net()
    return mx.gluon.Trainer(net.collect_params(), "sgd", *args)


def stored():
    store = mx.kv.create("local")
    store.init(3, mx.nd.ones((2, 3)))
    return store


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: trained().step(0), "Trainer.step: argument 'batch_size': .*other than 0, got 0"),
        (lambda: trained().step("x"), "Trainer.step: argument 'batch_size': .*got 'x'"),
        (lambda: trained().set_learning_rate("x"), "'lr': expected a number, got 'x'"),
        (lambda: trained({"learning_rate": "x"}), "SGD: argument 'learning_rate': .*got 'x'"),
        (lambda: dense_net(init=5), "initialize: argument 'init': expected an Init.*, got 5"),
        (lambda: dense_net(ctx="cpu"), "initialize: argument 'ctx': expected a con.*, got 'cpu'"),
        (lambda: dense_net(ctx=5), "initialize: argument 'ctx': expected a con.*, got 5"),
        (lambda: dense_net().collect_params("["), r"collect_params: argument 'select': .*'\['"),
        (lambda: mx.gluon.data.DataLoader(5, 2), "DataLoader: argument 'dataset': .*got 5"),
        (lambda: mx.metric.CustomMetric(5), "CustomMetric: argument 'feval': .*got 5"),
        (lambda: mx.optimizer.get_updater("sgd"), "get_updater: argument 'optimizer': .*'sgd'"),
        (
            lambda: mx.optimizer.SGD().update(0, mx.nd.ones((2, 3)), mx.nd.ones(7), None),
            r"SGD.update: argument 'grad of weight 0': .*\(2, 3\), got \(7,\)",
        ),
        (lambda: mx.gluon.data.SimpleDataset([1]).filter(5), "Dataset.filter: argument 'fn': .*5"),
        (lambda: mx.gluon.data.SimpleDataset([1]).transform(5), "transform: argument 'fn': .*5"),
        (lambda: mx.nd.contrib.foreach(5, X, []), "foreach: argument 'body': .*got 5"),
        (lambda: mx.nd.contrib.while_loop(5, len, [X], 1), "while_loop: argument 'cond': .*got 5"),
        (lambda: mx.nd.contrib.cond(X, len, 5), "cond: argument 'else_func': .*got 5"),
        (lambda: mx.sym.contrib.foreach(5, mx.sym.var("x"), []), "foreach: argument 'body'"),
        (lambda: stored().push("3", mx.nd.ones((2, 3))), "one of those in init, 3, got '3'"),
    ],
)
def test_arguments_are_named(mistake, words):
    with pytest.raises((TypeError, ValueError), match=words):
        mistake()


@pytest.mark.parametrize("name", ["shape", "dtype", "context", "T", "grad"])
def test_what_only_arrays_have_says_that_a_symbol_has_no_data(name):
    asked = []

    class Asks(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            asked.append(getattr(x, name))
            return x

    net = Asks()
    net(X)
    net.hybridize()
    with pytest.raises(
        AttributeError, match=f"attribute '{name}', as arrays have: a symbol has no"
    ):
        net(X)
    assert not hasattr(mx.sym.var("x"), name)


def test_create_operator_gives_an_operator():
    @mx.operator.register("forgotten")
    class Forgotten(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            pass

    with pytest.raises(GnomonError, match=r"Forgotten.create_operator: .* a CustomOp, got None"):
        mx.nd.Custom(X, op_type="forgotten").wait_to_read()


@pytest.mark.parametrize(("given", "words"), [
    ((6, 3), {"in_channels": "4"}), ((6, 3), {"groups": None}), ((6, 3), {"groups": 0}),
    (("6", 3), {}), ((-6, 3), {}), ((6, 3), {"activation": 5}), ((6, 3), {"groups": 4}),
])  # fmt: skip
def test_channels_groups_and_activation_of_convolutions(given, words):
    named = next(iter(words), "channels")
    for layer in (nn.Conv2D, nn.Conv2DTranspose):
        with pytest.raises((ParamError, TypeError), match=rf"{layer.__name__}: argument '{named}'"):
            layer(*given, **words)


def test_what_came_is_told_in_a_few_words():
    for wrong in (lambda: mx.nd.reshape(mx.nd.ones(3), shape=list(range(5000))),
                  lambda: mx.nd.zeros(np.ones((300, 300))),
                  lambda: mx.lr_scheduler.FactorScheduler(step=np.ones(3000))):  # fmt: skip
        with pytest.raises((GnomonError, TypeError)) as found:
            wrong()
        assert len(str(found.value)) < 2200


def test_dropout_of_steps_looks_at_no_lengths():
    steps = [mx.nd.ones((2, 4)) * k for k in range(3)]
    outputs, states = mx.gluon.rnn.DropoutCell(0.5).unroll(
        3, steps, valid_length=mx.nd.array([1, 2])
    )
    assert states == []
    for output, step in zip(outputs, steps, strict=True):
        np.testing.assert_array_equal(output.asnumpy(), step.asnumpy())
