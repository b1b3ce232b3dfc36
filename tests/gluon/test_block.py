"""Blocks: names, children, hooks, files, errors."""

from __future__ import annotations

import numpy as np
import pytest

import gnomon as mx
from gnomon import nd
from gnomon.base import DTypeError, FormatError, GnomonError, ParamError, ShapeError
from gnomon.gluon import Block, HybridBlock, Parameter, SymbolBlock, nn
from gnomon.gluon.contrib.nn import Concurrent, PixelShuffle2D


def stack(prefix=None):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
    return net


def test_names_count_by_kind_and_scope():
    with mx.name.NameManager():
        names = [nn.Dense(1).name, nn.Dense(1).name, nn.Conv2D(1, 1).name, nn.MaxPool2D().name]
        assert names == ["dense0", "dense1", "conv0", "pool0"]
        net = stack()
        assert list(net.collect_params()) == [
            "hybridsequential0_dense0_weight",
            "hybridsequential0_dense0_bias",
            "hybridsequential0_dense1_weight",
            "hybridsequential0_dense1_bias",
        ]
        assert list(net.collect_params(".*1_weight|.*bias")) == [
            "hybridsequential0_dense0_bias",
            "hybridsequential0_dense1_weight",
            "hybridsequential0_dense1_bias",
        ]
        with nn.Sequential(prefix="").name_scope():
            assert nn.Dense(1).name == "dense2"
        shared = nn.Dense(1, params=nn.Dense(1, prefix="a_").params)
        assert list(shared.collect_params()) == ["a_weight", "a_bias"]


def test_attributes():
    net = Block()
    net.layer = nn.Dense(1)
    net.weight = Parameter("w", shape=(1,))
    with pytest.raises(TypeError, match="argument 'layer': expected another Block, got int"):
        net.layer = 1
    with pytest.raises(TypeError, match="another Parameter"):
        net.weight = None
    with pytest.raises(ParamError, match="would be overwritten"):
        net.weight = Parameter("v", shape=(1,))
    with pytest.raises(ValueError, match="expected a HybridBlock, or use Sequential"):
        stack().add(nn.Lambda("relu"))
    with pytest.raises(TypeError, match="'prefix': expected a string or None"):
        nn.Dense(1, prefix=3)
    assert repr(net).startswith("Block(\n  (layer): Dense(None -> 1, linear)")


def test_slices_and_length():
    net = stack("s_")
    assert len(net) == len(list(net)) == 2
    assert net[0] is next(iter(net))
    assert [type(x).__name__ for x in net[0:1]] == ["Dense"]
    assert net[-1:].prefix == "s_"


def test_hooks():
    net, told = nn.Dense(2, in_units=3), []
    net.initialize()
    before = net.register_forward_pre_hook(lambda block, given: told.append(("before", block)))
    with net.register_forward_hook(lambda block, given, found: told.append(found.shape)):
        net(nd.ones((1, 3)))
    before.detach()
    net(nd.ones((1, 3)))
    assert told == [("before", net), (1, 2)]
    with pytest.raises(TypeError, match="expected a function"):
        net.register_forward_hook(1)


def test_apply_visits_all():
    seen = []
    net = stack("s_").apply(lambda block: seen.append(block.name))
    assert seen == ["s_dense0_relu", "s_dense0", "s_dense1", "s"]
    assert isinstance(net, nn.HybridSequential)


@pytest.mark.parametrize("hybrid", [False, True])
def test_errors_name_block_and_cause(hybrid):
    net = nn.Dense(2, in_units=3, prefix="fc_")
    net.hybridize(hybrid)
    with pytest.raises(GnomonError, match="'fc_weight' has not been initialized"):
        net(nd.ones((2, 3)))
    net.initialize()
    with pytest.raises(ShapeError):
        net(nd.ones((2, 4)))
    with pytest.raises(DTypeError):
        net(nd.ones((2, 3), dtype="float64"))
    with pytest.raises(TypeError, match="Dense 'fc': argument 'inputs': expected NDArrays"):
        net(np.ones((2, 3)))
    with pytest.raises(TypeError, match="got both"):
        net.hybrid_forward and HybridBlock.forward(net, mx.sym.var("x"), nd.ones((1,)))
    with pytest.raises(GnomonError, match=r"'fc_(weight|bias)' is not initialized on cpu\(1\)"):
        net(nd.ones((2, 3), ctx=mx.cpu(1)))


def test_blocks_without_a_formula():
    with pytest.raises(NotImplementedError, match="Block 'b': the class must define forward"):
        Block(prefix="b_")(nd.ones((1,)))
    with pytest.raises(NotImplementedError, match="'h': the class must define hybrid_forward"):
        HybridBlock(prefix="h_")(nd.ones((1,)))


def test_mixed_contexts_are_refused_when_hybrid():
    net = nn.HybridLambda("add_n")
    net.hybridize()
    with pytest.raises(GnomonError, match=r"arrays on one context.*cpu\(0\), cpu\(1\)"):
        net(nd.ones((1,)), nd.ones((1,), ctx=mx.cpu(1)))


def test_no_backends_no_unknown_flags():
    net = nn.Dense(1, prefix="fc_")
    with pytest.raises(ParamError, match="'backend': expected none: there are no plug-ins"):
        net.hybridize(backend="MKLDNN")
    with pytest.raises(ParamError, match="there are no plug-ins"):
        net.optimize_for(nd.ones((1, 2)), backend="MKLDNN")
    with pytest.raises(ParamError, match="did you mean 'static_alloc'"):
        net.hybridize(static_aloc=True)


def test_parameters_that_cannot_be_inferred():
    class Scale(HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.scale = self.params.get("scale", shape=(0,), allow_deferred_init=True)

        def hybrid_forward(self, F, x, scale):
            return F.broadcast_mul(x, scale)

    net = Scale(prefix="s_")
    net.initialize()
    with pytest.raises(GnomonError, match=r"'s': the shape of parameter 's_scale', \(\?,\)"):
        net(nd.ones((2, 3)))


def test_export_needs_a_trace(tmp_path):
    net = stack("s_")
    net.initialize()
    net.hybridize()
    with pytest.raises(GnomonError, match="call the block once"):
        net.export(str(tmp_path / "net"))


def test_parameters_are_saved_once_if_asked(tmp_path):
    net, file = nn.Sequential(), str(tmp_path / "p")
    first = nn.Dense(3, in_units=3)
    net.add(first, nn.Dense(3, in_units=3, params=first.params))
    net.initialize()
    net.save_parameters(file, deduplicate=True)
    assert list(nd.load(file)) == ["1.weight", "1.bias"]
    expected = first.weight.data().asnumpy()
    net.initialize(mx.init.Zero(), force_reinit=True)
    net.load_parameters(file)
    np.testing.assert_array_equal(first.weight.data().asnumpy(), expected)


def test_files_that_do_not_fit(tmp_path):
    file = str(tmp_path / "p")
    net = stack()
    net.initialize()
    net(nd.ones((1, 3)))
    net.save_parameters(file)
    other = nn.HybridSequential()
    other.add(nn.Dense(4), nn.Dense(3))
    with pytest.raises(ShapeError, match="loading Parameter 'dense"):
        other.load_parameters(file)
    other.add(nn.Dense(2))
    with pytest.raises(ParamError, match=r"'2\.weight', '2\.bias' not in the file"):
        other.load_parameters(file)
    with pytest.raises(ParamError, match=r"'1\.weight', '1\.bias', which the network has not"):
        nn.HybridSequential().load_parameters(file)
    net.save(str(tmp_path / "net"))
    with pytest.raises(FormatError, match=r"expected the blocks \['dense', 'dense', 'dense'\]"):
        other.load(str(tmp_path / "net"))


def test_summary(capsys):
    net = stack("s_")
    net.initialize()
    net.summary(nd.ones((5, 3)))
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines]
    assert ["Dense-2", "(5,", "4)", "16"] in rows
    assert ["Dense-3", "(5,", "2)", "10"] in rows
    assert "   Total params: 26" in lines
    net.hybridize()
    with pytest.raises(GnomonError, match="'s' is hybridized"):
        net.summary(nd.ones((5, 3)))


def test_symbol_blocks():
    x = mx.sym.var("data")
    both = mx.sym.Group([x * 2, mx.sym.FullyConnected(x, num_hidden=2, name="fc")])
    net = SymbolBlock(both, x)
    net.initialize()
    net.hybridize()
    twice, found = net(nd.ones((1, 3)))
    assert (twice.asnumpy() == 2).all()
    assert found.shape == (1, 2)
    inner = mx.sym.var("z")
    assert "fc_weight" in net(inner * 3)[1].list_arguments()
    with pytest.raises(ParamError, match="expected variables"):
        SymbolBlock(both, x * 2)
    added = SymbolBlock(x + inner, [x, inner])
    assert added(nd.ones((1,)), nd.ones((1,))).asscalar() == 2
    with pytest.raises(ParamError, match="an array for each of data, z, got 1 arrays"):
        added(nd.ones((1,)))
    net.cast("float16")
    assert net(nd.ones((1, 3), dtype="float16"))[1].dtype == np.float16


def test_imports_checks_names(tmp_path):
    net = stack("s_")
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    net.export(str(tmp_path / "net"), epoch=3)
    files = [str(tmp_path / f"net{end}") for end in ("-symbol.json", "-0003.params")]
    with pytest.raises(ParamError, match="expected one of data, s_dense0_weight"):
        SymbolBlock.imports(files[0], "dato")
    block = SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_allclose(
        block(nd.ones((1, 3))).asnumpy(), net(nd.ones((1, 3))).asnumpy(), rtol=1e-6
    )


def test_layers_refuse_what_they_cannot_do():
    with pytest.raises(ParamError, match="'alpha': expected at least 0"):
        nn.LeakyReLU(-1)
    with pytest.raises(ParamError, match="'layout': expected one of NCHW, NHWC"):
        nn.Conv2D(1, 1, layout="CHWN")
    with pytest.raises(ParamError, match="'kernel_size': expected an integer, or 2 of them"):
        nn.Conv2D(1, (1, 2, 3))
    with pytest.raises(ParamError, match="'groups': expected a divisor of 4 and 3 channels"):
        nn.Conv2D(3, 1, groups=2, in_channels=4)
    with pytest.raises(ParamError, match="did you mean 'relu'"):
        nn.HybridLambda("rely")
    assert repr(PixelShuffle2D(2)) == "PixelShuffle2D((2, 2))"
    net = Concurrent(axis=0)
    net.add(nn.Lambda("relu"), nn.Lambda(lambda x: x * 2))
    assert net(nd.array([-1, 1])).asnumpy().tolist() == [0, 1, -2, 2]


def test_layers_and_symbols_are_shown():
    assert repr(nn.LayerNorm()).endswith("in_channels=0)")
    assert repr(nn.BatchNorm()).endswith("in_channels=None)")
    assert repr(nn.Conv2DTranspose(2, 3)).startswith("Conv2DTranspose(2 -> 0, ")
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    block = mx.gluon.SymbolBlock([mx.sym.elemwise_add(x, y, name="sum"), x], [x, y])
    assert repr(block) == "SymbolBlock(\n<Symbol group [sum, x]> : 2 -> 2\n)"


def test_names_that_blocks_of_programs_use():
    text = "Dense(\n)"
    assert mx.gluon.block._indent(text, 3) == mx.gluon.utils._indent(text, 3) == "Dense(\n   )"
    net = nn.Dense(1, in_units=1)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    weight = net.weight
    assert [x.context for x in weight._check_and_get(weight._data, list)] == weight.list_ctx()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    assert trainer._contexts == weight.list_ctx()
