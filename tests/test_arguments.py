"""What constructors and functions refuse: the error names the argument, and what came."""

import inspect

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import GnomonError
from gnomon.gluon import contrib, data, loss, nn, rnn, utils

BIG = mx.nd.ones((50, 50))
IMAGES, ROWS, STEPS = mx.nd.ones((2, 3, 8, 8)), mx.nd.ones((2, 3)), mx.nd.ones((4, 2, 3))
NET = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2)


def cell(kind=rnn.LSTMCell):
    made = kind(3)
    made.initialize()
    return made


REFUSED = {
    # layers whose operator would refuse it later, or never
    "Dense: argument 'units': expected a whole number from 1, got -3": lambda: nn.Dense(-3),
    "Dense: argument 'units': .* got '3'": lambda: nn.Dense("3"),
    "Dense: argument 'in_units': .* from 0, got -1": lambda: nn.Dense(3, in_units=-1),
    "Dense: argument 'flatten': expected bool, got None": lambda: nn.Dense(3, flatten=None),
    "Dense: argument 'activation': .*did you mean 'relu'": lambda: nn.Dense(3, "rellu"),
    "Dropout: argument 'rate': expected a number, got 'a'": lambda: nn.Dropout("a"),
    "Dropout: argument 'axes': expected tuple of ints": lambda: nn.Dropout(0.5, "a"),
    "BatchNorm: argument 'axis': expected int, got 'a'": lambda: nn.BatchNorm(axis="a"),
    "LayerNorm: argument 'epsilon': expected float": lambda: nn.LayerNorm(epsilon=[]),
    "GroupNorm: argument 'num_groups': .* got 0": lambda: nn.GroupNorm(0),
    "Embedding: argument 'input_dim'": lambda: nn.Embedding(-1, 3),
    "Conv2D: argument 'strides': expected tuple of ints >= 1": lambda: nn.Conv2D(3, 3, -1),
    "MaxPool2D: argument 'pool_size': .* got 0": lambda: nn.MaxPool2D(0),
    "PReLU: argument 'in_channels': .* got 'a'": lambda: nn.PReLU(in_channels="a"),
    "ELU: argument 'alpha': expected float, got 'a'": lambda: nn.ELU("a"),
    "Swish: argument 'beta': expected a number, got 'a'": lambda: nn.Swish("a"),
    "Sequential: argument 'block': expected a Block, got 3": lambda: nn.Sequential().add(3),
    "LSTM: argument 'hidden_size': .* from 1, got 0": lambda: rnn.LSTM(0),
    "LSTM: argument 'dropout': expected float >= 0": lambda: rnn.LSTM(3, dropout="a"),
    "LSTM: argument 'state_clip_min'": lambda: rnn.LSTM(3, state_clip_min="a"),
    "RNNCell: argument 'activation': expected a string or a function, got 3": lambda: rnn.RNNCell(
        3, activation=3
    ),
    "GRUCell: argument 'hidden_size': .* got 3.0": lambda: rnn.GRUCell(3.0),
    "ZoneoutCell: argument 'zoneout_outputs'": lambda: rnn.ZoneoutCell(cell(), "a"),
    "DropoutCell: argument 'rate'": lambda: rnn.DropoutCell(BIG),
    "SequentialRNNCell: argument 'block'": lambda: rnn.SequentialRNNCell().add(3),
    "L2Loss: argument 'batch_axis': expected tuple of ints or None": lambda: loss.L2Loss(
        batch_axis="a"
    ),
    "HuberLoss: argument 'rho': expected a number, got 'a'": lambda: loss.HuberLoss("a"),
    "SoftmaxCrossEntropyLoss: argument 'axis'": lambda: loss.SoftmaxCELoss(axis="a"),
    "Concurrent: argument 'axis'": lambda: contrib.nn.Concurrent("a"),
    "LSTMPCell: argument 'projection_size'": lambda: contrib.rnn.LSTMPCell(3, 0),
    "LSTMCell: argument 'num_hidden'": lambda: mx.rnn.LSTMCell(0),
    # other constructors, by their annotations
    "DataLoader: argument 'num_workers'": lambda: data.DataLoader(ROWS, 2, num_workers="a"),
    "Trainer: argument 'optimizer_params': expected a mapping": lambda: mx.gluon.Trainer(
        nn.Dense(3).collect_params(), "sgd", BIG
    ),
    "Module: argument 'data_names': expected strings": lambda: mx.mod.Module(NET, [0, 1]),
    "Module: argument 'context': expected a context": lambda: mx.mod.Module(NET, context="a"),
    "CompositeEvalMetric: argument 'metrics'": lambda: mx.metric.CompositeEvalMetric(BIG),
    "PrefetchingIter: argument 'iters': .* got 3": lambda: mx.io.PrefetchingIter(3),
    # functions and methods
    "split_and_load: argument 'ctx_list': expected at least one": lambda: utils.split_and_load(
        np.ones(3), []
    ),
    "FactorScheduler: argument 'num_update'": lambda: mx.lr_scheduler.FactorScheduler(10)("a"),
    "Mixed: argument 'patterns': .* got '\\('": lambda: mx.init.Mixed(["("], [mx.init.Zero()]),
    "as_in_context: argument 'context'": lambda: ROWS.as_in_context(BIG),
    "print_summary: argument 'shape'": lambda: mx.viz.print_summary(NET, shape=3),
    "LSTMCell 'lstm.*: argument 'states': expected 2 of them": lambda: cell()(ROWS, None),
    "LSTMCell.unroll: argument 'length'": lambda: cell().unroll("a", STEPS),
    "unroll: argument 'inputs'": lambda: cell().unroll(3, 3),
    "argument 'B': expected 50 rows, as the product": lambda: mx.nd.linalg.gemm2(BIG, ROWS),
    "full: argument 'val': expected float, got 'a'": lambda: mx.nd.full((2,), "a"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(words):
    with pytest.raises(GnomonError, match=words):
        REFUSED[words]()


TAKEN = {
    "text for an operator": lambda: nn.BatchNorm(axis="1"),
    "a size of -1": lambda: nn.Conv2D(4, 3, in_channels=-1),
    "any truth value": lambda: nn.InstanceNorm(scale=[], axis=np.int64(1)),
    "an unknown size": lambda: nn.Conv2D(np.int32(4), (3, 3), in_channels=0),
    "a rate that drops nothing": lambda: nn.Dropout(-1),
    "no axes": lambda: nn.Dropout(0.5, axes=None),
    "a number of no strings": lambda: nn.ELU("1"),
}


@pytest.mark.parametrize("what", TAKEN)
def test_layers_that_mxnet_runs(what):
    layer = TAKEN[what]()
    layer.initialize()
    assert layer(IMAGES).shape[0] == 2


@pytest.mark.parametrize("axis", [None, "0", [], 1])
def test_axes_of_losses(axis):
    assert loss.L2Loss(batch_axis=axis)(ROWS, ROWS).asnumpy().sum() == 0


def test_classes_of_programs_may_mean_something_else():
    class Mish(nn.Activation):
        def hybrid_forward(self, F, x):
            return x * F.tanh(F.Activation(x, act_type="softrelu"))

    assert Mish("mish")(ROWS).shape == ROWS.shape


def test_numbers_in_text_and_without_an_axis():
    assert mx.nd.full((2,), "3").asnumpy().tolist() == [3, 3]
    assert mx.nd.pick(mx.nd.array([1, 2, 3]), mx.nd.array(1)).asnumpy().tolist() == [2]
    with pytest.raises(GnomonError, match="'index': expected shape"):
        mx.nd.pick(ROWS, mx.nd.array(1))


def test_the_layout_that_help_shows():
    shown = {kind: inspect.signature(kind).parameters["layout"].default for kind in CONVOLUTIONS}
    assert shown == CONVOLUTIONS
    assert nn.conv_layers._Conv(4, 3, layout="NCW")._kwargs["layout"] == "NCW"


CONVOLUTIONS = {
    nn.Conv1D: "NCW",
    nn.Conv2D: "NCHW",
    nn.Conv3D: "NCDHW",
    nn.Conv1DTranspose: "NCW",
    nn.Conv2DTranspose: "NCHW",
    nn.Conv3DTranspose: "NCDHW",
}


def test_private_names_that_programs_use():
    assert issubclass(nn.MaxPool1D, nn.conv_layers._Pooling)
    assert issubclass(rnn.LSTM, rnn.rnn_layer._RNNLayer)
    pool = nn.conv_layers._Pooling(2, None, 0, False, False, "max", "NCW")
    assert pool(STEPS).shape == (4, 2, 1)
    ((name, array),) = mx.io.utils._init_data(np.ones(3), False, "x")
    assert (name, array.shape) == ("x", (3,))
